// What is wrong with tensor memory: each case is the right kernel of tcgen05_support.h with one change.
#include <gtest/gtest.h>

#include "tcgen05_support.h"

namespace roofgen::sim_test::tcgen05_findings_test {
namespace {

using Changes = std::vector<std::pair<std::string, std::string>>;

std::string changed_text(const Mma& p, const Changes& changes) {
  std::string text = p.text();
  for (const auto& [from, to] : changes) {
    const size_t at = text.find(from);
    EXPECT_NE(at, text.npos) << from;
    if (at != text.npos) text.replace(at, from.size(), to);
  }
  return text;
}

/// "kind: message" of the first finding; "refused: ..."; "": none.
std::string found(const Mma& p, const Changes& changes) {
  const MmaResult r = run_mma(p, changed_text(p, changes));
  if (!r.refused.empty()) return "refused: " + r.refused;
  return r.run.findings.empty() ? "" : r.run.findings[0].kind + ": " + r.run.findings[0].message;
}

void expect_found(const Mma& p, const Changes& changes, const std::string& kind, const std::string& part) {
  const std::string says = found(p, changes);
  EXPECT_TRUE(says.starts_with(kind + ":") && says.find(part) != says.npos)
      << "expected " << kind << " with '" << part << "', found: " << says;
}

Mma pair_of(uint32_t m) {
  Mma p;
  p.group = 2, p.m = m;
  p.a.rows = m / 2, p.b.rows = p.n / 2;
  return p;
}

const std::string kWait = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4], 0;\n@!%p2 bra WAIT;\n";
const std::string kRelaxedWait =
    "WAIT:\nmbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p2, [%r4], 0;\n@!%p2 bra WAIT;\n";
const std::string kAfter = "tcgen05.fence::after_thread_sync;\n//read";

TEST(Tcgen05Findings, OrderOfTensorMemory) {
  const Mma p;
  EXPECT_EQ(found(p, {}), "");
  expect_found(p, {{kWait, ""}}, "race", "nothing orders them");  // a load in another warp comes before the product
  expect_found(p, {{kWait, "setp.eq.u32 %p2, %r6, 0;\n@%p2 bra READY;\n" + kWait + "READY:\n"}}, "async-pending",
               "no wait at the mbarrier of a tcgen05.commit");
  expect_found(p, {{"//waitst\ntcgen05.wait::st.sync.aligned;", ""}}, "async-pending", "no tcgen05.wait::st");
  expect_found(p, {{"tcgen05.fence::before_thread_sync;\nbar.sync 0;", "tcgen05.fence::before_thread_sync;\n"}},
               "async-pending", "no tcgen05.wait::st");  // another warp has not come there
  // A commit is for the work of its thread.
  const std::string commit = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r4];\n";
  const std::string sync = "ISSUED:\nbar.warp.sync -1;\n";
  const auto by = [&](int lane) {
    return Changes{{"//issued\n" + commit, ""},
                   {sync, fmt::format("{}setp.eq.u32 %p2, %r1, {};\n@%p2 {}", sync, lane, commit)}};
  };
  EXPECT_EQ(found(p, by(0)), "");
  expect_found(p, by(1), "async-pending", "no wait at the mbarrier of a tcgen05.commit");
  // The columns go back while other warps still read them.
  expect_found(p, {{"//end\nbar.sync 0;", ""}}, "race", "gives back");
}

/// "The standard memory consistency model synchronization mechanisms also apply" (PTX ISA, "Specialized Inter-thread
/// Synchronization for tcgen05 instructions"); the patterns with fences have relaxed arrivals and waits.
TEST(Tcgen05Findings, RelaxedWaitsNeedFences) {
  const Mma p;
  const std::string before = "tcgen05.fence::before_thread_sync;\n", after = "tcgen05.fence::after_thread_sync;\n";
  EXPECT_EQ(found(p, {{kAfter, "//read"}}), "");
  EXPECT_EQ(found(p, {{before + "bar.sync 0;\n" + after, "bar.sync 0;\n"}}), "");
  EXPECT_EQ(found(p, {{kWait, kRelaxedWait}}), "");
  expect_found(p, {{kWait, kRelaxedWait}, {kAfter, "//read"}}, "unfenced",
               "fence::after_thread_sync after the relaxed");
  const auto meet = [&](const std::string& first, const std::string& arrive, const std::string& last) {
    const std::string init = "mbarrier.init.shared::cta.b64 [%r4], 1;\n";
    return Changes{{init, init + "mbarrier.init.shared::cta.b64 [%r4+8], 128;\n"},
                   {before + "bar.sync 0;\n" + after,
                    first + "mbarrier.arrive." + arrive +
                        ".cluster.shared::cta.b64 _, [%r4+8];\nMEET:\n"
                        "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p2, [%r4+8], 0;\n@!%p2 bra MEET;\n" +
                        last}};
  };
  EXPECT_EQ(found(p, meet(before, "relaxed", after)), "");
  expect_found(p, meet(before, "relaxed", ""), "unfenced", "fence::after_thread_sync after the relaxed");
  expect_found(p, meet("", "relaxed", after), "race", "nothing orders them");
  expect_found(p, meet("", "release", after), "unfenced", "fence::before_thread_sync");
}

TEST(Tcgen05Findings, LoadsAreOverAfterAWaitOrAUse) {
  const Mma p;
  const std::string load = "//waitld\ntcgen05.wait::ld.sync.aligned;\nst.global.u32 [%rd12], %r24;\n";
  const std::string store = "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r25], {%r23};\ntcgen05.wait::st.sync.aligned;\n";
  EXPECT_EQ(found(p, {{load, "tcgen05.wait::ld.sync.aligned;\n" + store}}), "");
  expect_found(p, {{load, store}}, "async-pending", "no tcgen05.wait::ld");
  EXPECT_EQ(found(p, {{load, "add.u32 %r40, %r24, 1;\n" + store}}), "") << "the sum needs the loaded value";
  EXPECT_EQ(found(p, {{load, "mov.b32 %r41, %r24;\nadd.u32 %r40, %r41, 1;\n" + store}}), "");
  expect_found(p, {{load, "mov.b32 %r41, %r24;\n" + store}}, "async-pending", "no tcgen05.wait::ld");
}

/// The end of an access has to come before the arrival, not only before the access of another warp in this run.
TEST(Tcgen05Findings, AWaitAfterTheArrivalIsTooLate) {
  const Mma p;
  const std::string init = "mbarrier.init.shared::cta.b64 [%r4], 1;\n", sync = "bar.sync 0;";
  const auto meet = [&](const std::string& before, const std::string& begin, const std::string& end, bool late) {
    const std::string arrive = "mbarrier.arrive.shared::cta.b64 _, [%r4+8];\n";
    return Changes{
        {init, init + "mbarrier.init.shared::cta.b64 [%r4+8], 128;\n"},
        {before + sync, begin + (late ? arrive + end : end + arrive) +
                            "MEET:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [%r4+8], 0;\n@!%p2 bra MEET;\n"}};
  };
  const std::string stored = "//waitst\ntcgen05.wait::st.sync.aligned;\n//before\ntcgen05.fence::before_thread_sync;\n";
  EXPECT_EQ(found(p, meet(stored, "", "tcgen05.wait::st.sync.aligned;\n", false)), "");
  expect_found(p, meet(stored, "", "tcgen05.wait::st.sync.aligned;\n", true), "async-pending",
               "no tcgen05.wait::st comes between");
  const std::string load = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r24}, [%r21];\n";
  for (const char* end : {"tcgen05.wait::ld.sync.aligned;\n", "add.u32 %r40, %r24, 1;\n"}) {
    EXPECT_EQ(found(p, meet("//end\n", load, end, false)), "");
    expect_found(p, meet("//end\n", load, end, true), "async-pending", "no tcgen05.wait::ld comes between");
  }
}

TEST(Tcgen05Findings, SharedMemoryOfProducts) {
  const Mma p;
  expect_found(p, {{"fence.proxy.async;", ""}}, "race", "no fence.proxy.async between");
  const std::string store = "mad.lo.u32 %r35, %r1, 16, %r2;\nsetp.eq.u32 %p4, %r6, 0;\n@%p4 st.shared.u32 [%r35], 0;\n";
  expect_found(p, {{"//wait\n", store}}, "async-pending", "the tensor core may still read");
  EXPECT_EQ(found(p, {{kAfter, store + kAfter}}), "");
  expect_found(p,
               {{"@%p1 bra IMAGE;", "@%p1 bra IMAGE;\nbra SKIP;\nSKIP:"},
                {"mul.lo.u32 %r10, %r1, 16;", "mad.lo.u32 %r10, %r1, 16, 2048;"}},
               "uninitialised", "never written");
}

TEST(Tcgen05Findings, Allocations) {
  const Mma p;
  const std::string alloc = "[%r4+16], 512;", dealloc = "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 512;";
  for (const char* columns : {"16", "48", "0", "1024"})
    expect_found(p, {{alloc, fmt::format("[%r4+16], {};", columns)}}, "bad-tensor-memory", "expected a power of 2");
  expect_found(p, {{dealloc, ""}}, "bad-tensor-memory", "no tcgen05.dealloc");
  expect_found(p, {{dealloc, dealloc + "\n" + dealloc}}, "bad-tensor-memory", "where no allocation begins");
  expect_found(p, {{dealloc, "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r20, 256;"}}, "bad-tensor-memory",
               "where 512 are allocated");
  expect_found(p, {{dealloc, dealloc + "\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%r24}, [%r21];"}}, "bad-tensor-memory",
               "has allocated none");
  expect_found(p, {{"//alloc", "tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;"}}, "bad-tensor-memory",
               "after the tcgen05.relinquish_alloc_permit");
  expect_found(p, {{"//relinquish", "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4+16], 32;"}},
               "deadlock", "columns of tensor memory");
  expect_found(p, {{alloc, "[%r4+16], 256;"}, {"512;\n@%p1 bra BEFORE;", "257;\n@%p1 bra BEFORE;"}},
               "bad-tensor-memory", "has allocated 0 to 255");
  expect_found(p, {{alloc, "[%r4+16], 32;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r4+20], 64;"}},
               "bad-tensor-memory", "must not be larger");
  expect_found(p, {{dealloc, "tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r20, 512;"}}, "bad-tensor-memory",
               "cta_group::2");
}

TEST(Tcgen05Findings, LanesAndColumns) {
  const Mma p;
  const std::string read = "add.u32 %r25, %r21, %r23;\ntcgen05.ld";
  EXPECT_EQ(found(p, {{read, "add.u32 %r25, %r20, %r23;\ntcgen05.ld"}}), "") << "lane 0 is the first of each warp's";
  expect_found(p, {{read, "add.u32 %r25, %r21, %r23;\nadd.u32 %r25, %r25, 2097152;\ntcgen05.ld"}}, "bad-tensor-memory",
               "it reaches lanes 0 to 31 only");
  expect_found(p, {{read, "add.u32 %r25, %r21, %r1;\ntcgen05.ld"}}, "bad-tensor-memory", "in lane 0");
  expect_found(p, {{"512;\n@%p1 bra AFTER;", "513;\n@%p1 bra AFTER;"}}, "bad-tensor-memory", "512 columns");
  expect_found(p, {{"//issue\n", "add.u32 %r30, %r30, 480;\n"}}, "bad-tensor-memory", "512 columns");
  expect_found(p, {{"//issue\n", "add.u32 %r30, %r30, 65536;\n"}}, "bad-tensor-memory", "D of 128 rows at lane 1");
}

TEST(Tcgen05Findings, UnwrittenCells) {
  const Mma p;
  const Changes unwritten{{"tcgen05.st.sync.aligned.32x32b.x1.b32 [%r25], {%r24};", ""}};
  expect_found(p, unwritten, "uninitialised", "of tensor memory");
  Mma adds;
  adds.keeps = true;
  expect_found(adds, unwritten, "uninitialised", "which nothing has written");
}

TEST(Tcgen05Findings, Descriptors) {
  const auto instruction = [](const Mma& p, uint32_t with, uint32_t without, const char* part) {
    expect_found(p,
                 {{fmt::format("mov.u32 %r31, {};", p.descriptor()),
                   fmt::format("mov.u32 %r31, {};", (p.descriptor() & ~without) | with)}},
                 "bad-descriptor", part);
  };
  const Mma p;
  instruction(p, 1 << 6, 0, "reserved bits 0x40");
  instruction(p, 1 << 23, 0, "reserved bits 0x800000");
  instruction(p, 4, 0, "no .sp");
  instruction(p, 7 << 7, 0, "7 is no type of A of kind::f16");
  instruction(p, 2 << 4, 3 << 4, "2 is no type of D of kind::f16");
  instruction(p, 16 << 24, 31 << 24, "M = 256 of kind::f16 with cta_group::1");
  instruction(p, 1 << 24, 31 << 24, "M = 16");
  instruction(p, 0, 63 << 17, "N = 0");
  Mma half = p;
  half.sum = 0;
  instruction(half, 0, 0, "sums of f16 need A and B of f16");
  const auto shared = [&](const char* change, const char* part) {
    expect_found(p, {{"//issue\n", std::string(change) + "\n"}}, "bad-descriptor", part);
  };
  shared("or.b64 %rd20, %rd20, 0x4000;", "reserved bits 0x4000");
  shared("and.b64 %rd20, %rd20, 0xffff3fffffffffff;", "bits 46 to 48 are 0");
  shared("or.b64 %rd21, %rd21, 0x2000000000000000;", "no swizzling mode");
  shared("add.u64 %rd21, %rd21, 7;", "go past the 128 bytes of the swizzle");
  Mma scaled;
  scaled.kind = "mxf8f6f4", scaled.scales = 1;
  scaled.a.type = scaled.b.type = kE4m3;
  scaled.a.container = scaled.b.container = 8;
  EXPECT_EQ(found(scaled, {}), "");
  instruction(scaled, 0, 1 << 23, "scales of ue8m0");
}

TEST(Tcgen05Findings, AMatrixMayBeginInsideThePattern) {
  // Row 3 of 8: the pattern itself begins at a multiple of 1024, as tensor copies write it, so its base offset is 0.
  const uint64_t bits = 0x4000404004000058;
  EXPECT_EQ(sim::TensorMatrix::fault(bits, false, 32), "");
  const sim::TensorMatrix at = sim::TensorMatrix::of(bits);
  EXPECT_EQ(at.along_k(0, 0), 0x580u ^ 3u << 4);
  EXPECT_EQ(at.along_k(5, 1), 0x800u + 16);
}

TEST(Tcgen05Findings, MetadataOfSparseMatrices) {
  Mma p;
  p.sparse = true, p.b.rows_of_32 = 2;
  EXPECT_EQ(found(p, {}), "");
  const auto instruction = [&](uint32_t with, uint32_t without, const char* kind, const char* part) {
    expect_found(p,
                 {{fmt::format("mov.u32 %r31, {};", p.descriptor()),
                   fmt::format("mov.u32 %r31, {};", (p.descriptor() & ~without) | with)}},
                 kind, part);
  };
  instruction(0, 4, "bad-descriptor", "it says dense, but the instruction has .sp");
  instruction(2, 3, "bad-descriptor", "its sparsity selector is 2: expected 0 or 1");
  instruction(4 << 24, 31 << 24, "not-modelled", "a sparse A with 64 rows in a CTA");
  const auto place = fmt::format("add.u32 %r35, %r20, {};", Mma::kMetadata);
  expect_found(p, {{place, fmt::format("add.u32 %r35, %r20, {};", Mma::kMetadata + 1)}}, "bad-tensor-memory",
               "expected lane 0 and an even column");
  expect_found(p, {{place, "add.u32 %r35, %r20, 512;"}}, "bad-tensor-memory", "512 columns");
  // A column of zeros: both stored elements would have the same place.
  expect_found(p,
               {{"add.u32 %r25, %r21, %r23;", fmt::format("setp.eq.u32 %p5, %r23, {};\n@%p5 mov.u32 %r24, 0;\nadd.u32 "
                                                          "%r25, %r21, %r23;",
                                                          Mma::kMetadata)}},
               "bad-metadata", "bits 0 to 3 of lane 0, column 340 are 0b0000");
  Mma narrow = p;
  narrow.b.span = 32;
  expect_found(narrow, {}, "not-modelled", "64 bytes along K of B in rows of 32 bytes");
  p.kind = "i8", p.sum = 2;
  p.a.type = p.b.type = kS8;
  p.a.container = p.b.container = 8;
  instruction(1, 3, "bad-descriptor", "its sparsity selector is 1: expected 0");
}

TEST(Tcgen05Findings, NotModelled) {
  const auto bit = [](const Mma& p, uint32_t bit, const char* part) {
    EXPECT_EQ(found(p, {}), "");
    expect_found(p,
                 {{fmt::format("mov.u32 %r31, {};", p.descriptor()),
                   fmt::format("mov.u32 %r31, {};", p.descriptor() | 1u << bit)}},
                 "not-modelled", part);
  };
  Mma stationary;
  stationary.stationary = true;
  bit(stationary, 30, "a shift of B is not modelled");
  const auto mask = [](uint32_t value) {
    return Changes{{"//issue\n", fmt::format("mov.b64 %rd24, {};\n", value)}, {", %p3;", ", %p3, %rd24;"}};
  };
  EXPECT_EQ(found(stationary, mask(0)), "");
  expect_found(stationary, mask(1), "not-modelled", "a mask of columns");
  Mma packed;
  packed.kind = "mxf4", packed.scales = 2;
  packed.a.type = packed.b.type = kE2m1x2;
  packed.a.container = packed.b.container = 4;
  bit(packed, 31, "K = 96 of mxf4 is not modelled");
  expect_found(Mma(), {{"//issue\n", "or.b64 %rd21, %rd21, 0x10000000000000;\n"}}, "not-modelled",
               "an absolute address of the leading dimension");
}

TEST(Tcgen05Findings, Pairs) {
  for (const uint32_t m : {128u, 256u}) {
    const Mma p = pair_of(m);
    EXPECT_EQ(found(p, {}), "");
    // The other CTA's shared and tensor memory may not be ready.
    expect_found(p, {{"barrier.cluster.arrive;\nbarrier.cluster.wait;", "bar.sync 0;"}}, "race", "may not have begun");
    // The commit reaches only the first CTA.
    expect_found(p, {{"mov.u16 %rs1, 3;", "mov.u16 %rs1, 1;"}}, "deadlock", "");
    // The other CTA reads without the wait.
    expect_found(p, {{kWait, "setp.eq.u32 %p2, %r5, 1;\n@%p2 bra READY;\n" + kWait + "READY:\n"}}, "race",
                 "nothing orders them");
    EXPECT_EQ(found(p, {{kAfter, "//read"}}), "");
    EXPECT_EQ(found(p, {{kWait, kRelaxedWait}}), "");
    expect_found(p, {{kWait, kRelaxedWait}, {kAfter, "//read"}}, "unfenced", "fence::after_thread_sync");
    expect_found(p, {{"fence.proxy.async;", ""}}, "race", "no fence.proxy.async between");
  }
  Mma alone = pair_of(256);
  const std::string text = changed_text(alone, {{"setp.ne.u32 %p1, %r5, 0;", ""}});
  Bench bench;
  ASSERT_EQ(bench.load(text), "");
  const DevicePtr zeros = bench.buffer(std::vector<uint32_t>(1 << 16)), out = bench.poisoned(1 << 18);
  for (const DevicePtr& x : {zeros, zeros, out}) bench.arg(x);
  const RunResult run = bench.run({1, 1, 1}, {128, 1, 1}, Mma::kShared);
  ASSERT_FALSE(run.findings.empty());
  EXPECT_EQ(run.findings[0].kind, "bad-tensor-memory");
  EXPECT_NE(run.findings[0].message.find("cluster of an even number of CTAs"), std::string::npos);
}

TEST(Tcgen05Findings, Barriers) {
  const Mma p;
  expect_found(p, {{"mbarrier.init.shared::cta.b64 [%r4], 1;", ""}}, "uninitialised", "");
  expect_found(p, {{"//issued\n", "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%r4+4];\n"}}, "misaligned",
               "");
  expect_found(p, {{"mbarrier.init.shared::cta.b64 [%r4], 1;", "mbarrier.init.shared::cta.b64 [%r4], 2;"}}, "deadlock",
               "1 of 2 arrivals");
}

TEST(Tcgen05Findings, RefusedByName) {
  const Mma p;
  const std::string mma = p.instruction();
  const auto refused = [&](const std::string& text, const char* part) {
    const std::string says = found(p, {{mma, text}});
    EXPECT_TRUE(says.starts_with("refused:") && says.find(part) != says.npos) << says;
  };
  refused("tcgen05.shift.cta_group::1.down [%r30];\n", "shifts of tensor memory");
  refused("tcgen05.cp.cta_group::1.4x256b [%r30], %rd20;\n", "copies to 4 lanes");
  refused("tcgen05.cp.cta_group::1.128x128b.b8x16.b4x16_p64 [%r30], %rd20;\n", "widen elements");
  refused("tcgen05.mma.cta_group::1.kind::f17 [%r30], %rd20, %rd21, %r31, %p3;\n", "unknown instruction");
  const std::string older = found(p, {{".target sm_100a", ".target sm_100"}});
  EXPECT_NE(older.find("needs '.target sm_100a'"), older.npos) << older;
}

}  // namespace
}  // namespace roofgen::sim_test::tcgen05_findings_test

// A pipeline of tensor copies and products that is right, and the same with one thing wrong each: every one of these is
// a finding or a wrong result.
#include <gtest/gtest.h>

#include <bit>

#include "wgmma_support.h"

namespace roofgen::sim_test::wgmma_mutants_test {
namespace {

constexpr uint32_t kRows = 64, kColumns = 16, kDepth = 256, kTiles = 4;
constexpr uint32_t kStage = 10240, kPlaceB = 8192, kOut = 2 * kStage, kBarriers = kOut + 4096;

/// Warpgroup 0 loads tiles of A and B into a ring of two stages, warpgroup 1 multiplies them, 64 x 16 x 256, and stores
/// the sums by way of shared memory.
std::string pipeline() {
  const std::string place = R"(and.b32 %r5, %r4, 1;
shr.u32 %r6, %r4, 1;
shl.b32 %r8, %r5, 3;
add.u32 %r8, %r3, %r8;
mul.lo.u32 %r9, %r5, 10240;
add.u32 %r9, %r2, %r9;
add.u32 %r10, %r9, 8192;
)";
  std::string body = R"(.reg .f32 %d<8>;
ld.param.u64 %rd1, [p0];
ld.param.u64 %rd2, [p1];
ld.param.u64 %rd3, [p2];
mov.u32 %r1, %tid.x;
mov.u32 %r2, tile;
add.u32 %r3, %r2, 24576;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra INIT;
mbarrier.init.shared::cta.b64 [%r3], 1;
mbarrier.init.shared::cta.b64 [%r3+8], 1;
mbarrier.init.shared::cta.b64 [%r3+16], 4;
mbarrier.init.shared::cta.b64 [%r3+24], 4;
fence.mbarrier_init.release.cluster;
INIT:
bar.sync 0;
setp.ge.u32 %p2, %r1, 128;
@%p2 bra CONSUMER;
setmaxnreg.dec.sync.aligned.u32 24;
@%p1 bra END;
mov.u32 %r4, 0;
PLOOP:
)" + place + R"(xor.b32 %r7, %r6, 1;
and.b32 %r7, %r7, 1;
PWAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r8+16], %r7;
@!%p3 bra PWAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 10240;
shl.b32 %r11, %r4, 6;
mov.u32 %r12, 0;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r9], [%rd1, {%r11, %r12}], [%r8];
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd2, {%r11, %r12}], [%r8];
//loaded
add.u32 %r4, %r4, 1;
setp.lt.u32 %p4, %r4, 4;
@%p4 bra PLOOP;
bra END;
CONSUMER:
setmaxnreg.inc.sync.aligned.u32 240;
mov.u32 %r4, 0;
CLOOP:
)" + place + R"(and.b32 %r7, %r6, 1;
CWAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r8], %r7;
@!%p3 bra CWAIT;
shr.u32 %r13, %r9, 4;
cvt.u64.u32 %rd10, %r13;
or.b64 %rd10, %rd10, 0x4000004000010000;
add.u64 %rd11, %rd10, 512;
//fence
wgmma.fence.sync.aligned;
)";
  for (int step = 0; step < 4; ++step)
    body += fmt::format(
        "{}add.u64 %rd20, %rd10, {};\nadd.u64 %rd21, %rd11, {};\n"
        "wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {{%d0, %d1, %d2, %d3, %d4, %d5, %d6, %d7}}, %rd20, "
        "%rd21, "
        "{}, 1, 1, 0, 0;\n",
        step == 0 ? "setp.ne.u32 %p5, %r4, 0;\nsetp.eq.u32 %p8, 0, 0;\n" : "", 2 * step, 2 * step,
        step == 0 ? "%p5" : "%p8");
  body += R"(//issued
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
//waited
and.b32 %r14, %r1, 31;
setp.eq.u32 %p6, %r14, 0;
@%p6 mbarrier.arrive.shared::cta.b64 _, [%r8+16];
//arrived
add.u32 %r4, %r4, 1;
setp.lt.u32 %p4, %r4, 4;
@%p4 bra CLOOP;
//summed
shr.u32 %r15, %r1, 5;
and.b32 %r15, %r15, 3;
shr.u32 %r16, %r14, 2;
and.b32 %r17, %r14, 3;
mad.lo.u32 %r18, %r15, 16, %r16;
mul.lo.u32 %r18, %r18, 64;
mad.lo.u32 %r18, %r17, 8, %r18;
add.u32 %r20, %r2, 20480;
add.u32 %r19, %r20, %r18;
st.shared.v2.f32 [%r19], {%d0, %d1};
st.shared.v2.f32 [%r19+512], {%d2, %d3};
st.shared.v2.f32 [%r19+32], {%d4, %d5};
st.shared.v2.f32 [%r19+544], {%d6, %d7};
fence.proxy.async.shared::cta;
bar.sync 1, 128;
setp.ne.u32 %p7, %r1, 128;
@%p7 bra STORED;
mov.u32 %r12, 0;
cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd3, {%r12, %r12}], [%r20];
cp.async.bulk.commit_group;
//committed
cp.async.bulk.wait_group.read 0;
STORED:
//stored
END:
)";
  std::string text = kernel_text(3, body, ".extern .shared .align 1024 .b8 tile[];");
  text.replace(text.find(".target sm_90\n"), 14, ".target sm_90a\n");
  return text.insert(text.find("\n{\n"), "\n.maxntid 256, 1, 1\n.maxnreg 168");
}

/// "" if right, else the kind of the first finding, or "wrong sums".
std::string outcome(const std::string& text, std::string* message = nullptr, uint32_t swizzle = 128) {
  Bench b;
  if (const std::string error = b.load(text); !error.empty()) return "refused: " + error;
  std::vector<uint16_t> a(kRows * kDepth), x(kColumns * kDepth);
  for (size_t i = 0; i < a.size(); ++i) a[i] = to_bf16(static_cast<float>(static_cast<int>(i * 7 % 11) - 5));
  for (size_t i = 0; i < x.size(); ++i) x[i] = to_bf16(static_cast<float>(static_cast<int>(i * 5 % 13) - 6));
  const auto map = [&](DevicePtr at, uint32_t bytes, uint32_t wide, uint32_t high, uint32_t box, uint32_t span) {
    sim::TensorView v;
    v.address = at.address;
    v.rank = 2;
    v.element_bytes = bytes;
    v.swizzle_bytes = span;
    v.dims[0] = wide, v.dims[1] = high;
    v.strides[0] = bytes, v.strides[1] = uint64_t{wide} * bytes;
    v.box[0] = box, v.box[1] = high;
    std::vector<std::byte> out(sim::kTensorMapBytes);
    v.encode(out.data());
    return b.buffer(out, "map");
  };
  const DevicePtr out = b.poisoned(kRows * kColumns * 4);
  const DevicePtr maps[] = {map(b.buffer(a), 2, kDepth, kRows, 64, swizzle),
                            map(b.buffer(x), 2, kDepth, kColumns, 64, 128), map(out, 4, kColumns, kRows, kColumns, 0)};
  for (const DevicePtr& m : maps) b.arg(m);
  const RunResult r = b.run({1, 1, 1}, {256, 1, 1}, kBarriers + 32);
  if (!r.findings.empty()) {
    if (message) *message = r.findings[0].message;
    return r.findings[0].kind;
  }
  const auto sums = b.read<float>(out, kRows * kColumns);
  for (uint32_t row = 0; row < kRows; ++row)
    for (uint32_t column = 0; column < kColumns; ++column) {
      float sum = 0;
      for (uint32_t k = 0; k < kDepth; ++k) sum += from_bf16(a[row * kDepth + k]) * from_bf16(x[column * kDepth + k]);
      if (sums[row * kColumns + column] != sum) return "wrong sums";
    }
  return "";
}

TEST(Pipeline, IsRight) {
  std::string message;
  EXPECT_EQ(outcome(pipeline(), &message), "") << message;
}

struct Mutant {
  const char* name;
  std::vector<std::pair<std::string, std::string>> changes;
  const char* is;  ///< what finds it
  uint32_t swizzle = 128;
};

const std::string kWait = "wgmma.wait_group.sync.aligned 0;\n", kCommit = "wgmma.commit_group.sync.aligned;\n";
const std::string kArrive = "@%p6 mbarrier.arrive.shared::cta.b64 _, [%r8+16];\n";
const std::string kFullWait = "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r8], %r7;\n@!%p3 bra CWAIT;\n";
const std::string kEmptyWait = "mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r8+16], %r7;\n@!%p3 bra PWAIT;\n";
const std::string kProxy = "fence.proxy.async.shared::cta;\n", kNamed = "bar.sync 1, 128;\n";
const std::string kExpect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 10240;";

std::vector<Mutant> mutants() {
  return {
      {"no `wgmma.fence`", {{"wgmma.fence.sync.aligned;\n", ""}}, "race"},
      {"sums changed after the fence",
       {{"wgmma.fence.sync.aligned;\n", "wgmma.fence.sync.aligned;\n@%p4 add.f32 %d0, %d0, %d1;\n"},
        {"mov.u32 %r4, 0;\nCLOOP:", "mov.u32 %r4, 0;\nsetp.eq.u32 %p4, 0, 1;\nCLOOP:"}},
       "race"},
      {"no `wgmma.commit_group`", {{kCommit, ""}}, "async-pending"},
      {"no `wgmma.wait_group`", {{kWait, ""}}, "async-pending"},
      {"a wait that leaves one batch", {{"wait_group.sync.aligned 0", "wait_group.sync.aligned 1"}}, "async-pending"},
      {"arrival before the wait",
       {{kArrive, ""},
        {kWait, "@%p9 mbarrier.arrive.shared::cta.b64 _, [%r8+16];\n" + kWait},
        {"CLOOP:\n", "CLOOP:\nand.b32 %r14, %r1, 31;\nsetp.eq.u32 %p9, %r14, 0;\n"}},
       "async-pending"},
      {"sums read before the wait", {{"//issued\n", "//issued\nadd.f32 %f1, %d0, %d1;\n"}}, "async-pending"},
      {"sums cleared before the wait", {{"//issued\n", "//issued\nmov.f32 %d0, 0f00000000;\n"}}, "async-pending"},
      {"no wait for the tile", {{kFullWait, ""}}, "async-pending"},
      {"wait for the tile by the wrong parity",
       {{"and.b32 %r7, %r6, 1;\nCWAIT:", "and.b32 %r7, %r6, 1;\nxor.b32 %r7, %r7, 1;\nCWAIT:"}},
       "barrier-order"},
      {"parity that never changes", {{"and.b32 %r7, %r6, 1;\nCWAIT:", "mov.u32 %r7, 0;\nCWAIT:"}}, "deadlock"},
      {"no wait for the empty stage", {{kEmptyWait, ""}}, "bad-barrier"},
      {"wait for the empty stage by the wrong parity", {{"xor.b32 %r7, %r6, 1;", "xor.b32 %r7, %r6, 0;"}}, "deadlock"},
      {"parity of the empty stage that never changes",
       {{"and.b32 %r7, %r7, 1;\nPWAIT", "mov.u32 %r7, 1;\nPWAIT"}},
       "bad-barrier"},
      {"too few bytes expected", {{kExpect, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 8192;"}}, "deadlock"},
      {"too many bytes expected",
       {{kExpect, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 16384;"}},
       "deadlock"},
      {"no bytes expected", {{kExpect, "mbarrier.arrive.shared::cta.b64 _, [%r8];"}}, "race"},
      {"no arrival of the producer",
       {{kExpect, "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r8], 10240;"}},
       "deadlock"},
      {"no arrival at the empty stage", {{kArrive, ""}}, "deadlock"},
      {"all lanes arrive at the empty stage", {{kArrive, kArrive.substr(5)}}, "barrier-order"},
      {"empty barrier counts one arrival", {{"[%r3+16], 4", "[%r3+16], 1"}}, "barrier-order"},
      {"empty barrier counts too many", {{"[%r3+16], 4", "[%r3+16], 5"}}, "deadlock"},
      {"full barrier counts two arrivals",
       {{"mbarrier.init.shared::cta.b64 [%r3], 1", "mbarrier.init.shared::cta.b64 [%r3], 2"}},
       "deadlock"},
      {"a barrier that is not initialised", {{"mbarrier.init.shared::cta.b64 [%r3+8], 1;\n", ""}}, "uninitialised"},
      {"no barrier after the initialisation", {{"INIT:\nbar.sync 0;\n", "INIT:\n"}}, "race"},
      {"B is loaded over A", {{"[%r10], [%rd2", "[%r9], [%rd2"}}, "async-pending"},
      {"the second copy completes another barrier",
       {{"[%rd2, {%r11, %r12}], [%r8]", "[%rd2, {%r11, %r12}], [%r8+16]"}},
       "deadlock"},
      {"only A is loaded",
       {{"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%r10], [%rd2, {%r11, %r12}], "
         "[%r8];\n",
         ""},
        {kExpect, "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r8], 8192;"}},
       "uninitialised"},
      {"coordinates of the tile before", {{"shl.b32 %r11, %r4, 6;", "shl.b32 %r11, %r4, 5;"}}, "wrong sums"},
      {"coordinates exchanged", {{"[%rd1, {%r11, %r12}]", "[%rd1, {%r12, %r11}]"}}, "wrong sums"},
      {"A loaded with another swizzle", {}, "wrong sums", 64},
      {"A loaded without swizzle", {}, "wrong sums", 0},
      {"descriptor with another swizzle", {{"0x4000004000010000", "0x8000004000010000"}}, "bad-descriptor"},
      {"descriptor without swizzle", {{"0x4000004000010000", "0x0000004000010000"}}, "wrong sums"},
      {"strides of the descriptor exchanged", {{"0x4000004000010000", "0x4000000100400000"}}, "wrong sums"},
      {"stride of the descriptor too small", {{"0x4000004000010000", "0x4000002000010000"}}, "wrong sums"},
      {"address of the descriptor not shifted", {{"shr.u32 %r13, %r9, 4;", "mov.u32 %r13, %r9;"}}, "out-of-bounds"},
      {"B's descriptor is A's", {{"add.u64 %rd11, %rd10, 512;", "mov.b64 %rd11, %rd10;"}}, "wrong sums"},
      {"a step of k too small", {{"add.u64 %rd20, %rd10, 2;", "add.u64 %rd20, %rd10, 1;"}}, "wrong sums"},
      {"a step of k past the row", {{"add.u64 %rd20, %rd10, 6;", "add.u64 %rd20, %rd10, 7;"}}, "bad-descriptor"},
      {"offset of B in the descriptor not shifted",
       {{"add.u64 %rd11, %rd10, 512;", "add.u64 %rd11, %rd10, 8192;"}},
       "out-of-bounds"},
      {"sums always replaced", {{"setp.ne.u32 %p5, %r4, 0;", "setp.ne.u32 %p5, 0, 0;"}}, "wrong sums"},
      {"sums never replaced", {{"setp.ne.u32 %p5, %r4, 0;", "setp.ne.u32 %p5, 1, 0;"}}, "uninitialised"},
      {"B turned", {{"%p8, 1, 1, 0, 0;", "%p8, 1, 1, 0, 1;"}}, "wrong sums"},
      {"product subtracted", {{"%p8, 1, 1, 0, 0;", "%p8, -1, 1, 0, 0;"}}, "wrong sums"},
      {"a warp leaves before the product", {{"//fence\n", "setp.gt.u32 %p9, %r1, 223;\n@%p9 exit;\n"}}, "partial-warp"},
      {"a lane leaves before the product", {{"//fence\n", "setp.gt.u32 %p9, %r1, 254;\n@%p9 exit;\n"}}, "partial-warp"},
      {"the producer ends early",
       {{"setp.lt.u32 %p4, %r4, 4;\n@%p4 bra PLOOP;", "setp.lt.u32 %p4, %r4, 3;\n@%p4 bra PLOOP;"}},
       "deadlock"},
      {"the producer loads one more tile",
       {{"setp.lt.u32 %p4, %r4, 4;\n@%p4 bra PLOOP;", "setp.lt.u32 %p4, %r4, 5;\n@%p4 bra PLOOP;"}},
       "async-pending"},
      {"the consumer ends early",
       {{"setp.lt.u32 %p4, %r4, 4;\n@%p4 bra CLOOP;", "setp.lt.u32 %p4, %r4, 3;\n@%p4 bra CLOOP;"}},
       "async-pending"},
      {"no proxy fence before the store", {{kProxy, ""}}, "race"},
      {"proxy fence before the writes", {{kProxy, ""}, {"//summed\n", "//summed\n" + kProxy}}, "race"},
      {"no barrier before the store", {{kNamed, ""}}, "race"},
      {"barrier of too many threads", {{kNamed, "bar.sync 1, 256;\n"}}, "deadlock"},
      {"a part of the sums not written", {{"st.shared.v2.f32 [%r19+544], {%d6, %d7};\n", ""}}, "uninitialised"},
      {"tile overwritten before its store has read it",
       {{"//committed\n", "//committed\nst.shared.u32 [%r20], %r1;\n"}},
       "async-pending"},
      {"another warp overwrites it",
       {{"//stored\n", "setp.lt.u32 %p9, %r1, 224;\n@%p9 bra END;\nst.shared.u32 [%r19], %r1;\n"}},
       "race"},
      {"store not committed", {{"cp.async.bulk.commit_group;\n", ""}}, "async-pending"},
      {"store not waited for", {{"cp.async.bulk.wait_group.read 0;\n", ""}}, "async-pending"},
      {"too few registers are given back",
       {{"setmaxnreg.dec.sync.aligned.u32 24;", "setmaxnreg.dec.sync.aligned.u32 104;"}},
       "deadlock"},
      {"the roles' registers exchanged",
       {{"setmaxnreg.dec.sync.aligned.u32 24;", "setmaxnreg.dec.sync.aligned.u32 240;"}},
       "bad-registers"},
  };
}

TEST(Pipeline, EveryMutantIsFound) {
  const auto all = mutants();
  EXPECT_GE(all.size(), 40u);
  for (const Mutant& m : all) {
    std::string text = pipeline(), message;
    for (const auto& [from, to] : m.changes) {
      const size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << m.name << ": " << from;
      text.replace(at, from.size(), to);
    }
    const std::string is = outcome(text, &message, m.swizzle);
    EXPECT_EQ(is.substr(0, is.find(':')), m.is) << m.name << ": " << message << is;
  }
}

}  // namespace
}  // namespace roofgen::sim_test::wgmma_mutants_test

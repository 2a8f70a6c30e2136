// Warp-wide requests are often served at once (machine_rows.cpp); volatile ones always lane by lane. Both must
// read, write, count and find the same, except that plain writes of two lanes to one place race.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "support.h"

namespace roofgen::sim_test::rows_random_test {
namespace {

constexpr uint32_t kBytes = 1024;  ///< of the source, the destination, and each of them in shared memory

struct Access {
  const char *type, *registers;
  uint32_t bytes;
};
constexpr Access kAccesses[] = {{"u8", "%rs1", 1},          {"s8", "%r10", 1},
                                {"u16", "%rs1", 2},         {"s16", "%r10", 2},
                                {"s32", "%rd10", 4},        {"f32", "%f1", 4},
                                {"u64", "%rd10", 8},        {"v2.u16", "{%rs1,%rs2}", 4},
                                {"v2.f32", "{%f1,%f2}", 8}, {"v4.u32", "{%r10,%r11,%r12,%r13}", 16}};

/// Lane i, if in the mask, copies the source at table[i] to the destination at table[32 + i].
std::string copy_kernel(const Access& access, bool shared, bool lane_by_lane) {
  const std::string space = std::string(lane_by_lane ? ".volatile" : "") + (shared ? ".shared." : ".global.");
  const std::string stored = access.type[0] == 's' ? "u" + std::string(access.type + 1) : access.type;
  const std::string head =
      "ld.param.u64 %rd1,[p0]; ld.param.u64 %rd2,[p1]; ld.param.u64 %rd3,[p2]; ld.param.u64 %rd4,[p3]; ld.param.u64 "
      "%rd20,[p4];\n"
      "mov.u32 %r1,%tid.x; mul.wide.u32 %rd5,%r1,4; add.s64 %rd6,%rd1,%rd5;\n"
      "ld.volatile.global.u32 %r2,[%rd6]; ld.volatile.global.u32 %r3,[%rd6+128];\n"
      "shr.u64 %rd7,%rd4,%r1; and.b64 %rd7,%rd7,1; setp.ne.u64 %p1,%rd7,0;\n";
  const std::string move = "@%p1 ld" + space + access.type + " " + access.registers + ",[ADDRESS1];\n@%p1 st" + space +
                           stored + " [ADDRESS2]," + access.registers + ";\n";
  const auto with = [](std::string text, const std::string& a, const std::string& b) {
    text.replace(text.find("ADDRESS1"), 8, a);
    text.replace(text.find("ADDRESS2"), 8, b);
    return text;
  };
  if (!shared)
    return head + "cvt.u64.u32 %rd8,%r2; add.s64 %rd8,%rd8,%rd2; cvt.u64.u32 %rd9,%r3; add.s64 %rd9,%rd9,%rd3;\n" +
           with(move, "%rd8", "%rd9");
  // First copies both buffers into shared memory (of the source, its written part), at the end the destination back.
  return head +
         "mov.u32 %r4,smem; mov.u64 %rd11,0;\n"
         "IN: cvt.u64.u32 %rd12,%r1; add.s64 %rd12,%rd12,%rd11; cvt.u32.u64 %r5,%rd12; add.s32 %r5,%r5,%r4; add.s64 "
         "%rd13,%rd12,%rd2; add.s64 %rd14,%rd12,%rd3;\n"
         "setp.lt.u64 %p2,%rd12,%rd20; @%p2 ld.volatile.global.u8 %rs9,[%rd13]; @%p2 st.volatile.shared.u8 "
         "[%r5],%rs9;\n"
         "ld.volatile.global.u8 %rs9,[%rd14]; st.volatile.shared.u8 [%r5+1024],%rs9;\n"
         "add.s64 %rd11,%rd11,32; setp.lt.u64 %p3,%rd11,1024; @%p3 bra IN;\n"
         "bar.warp.sync -1;\n"
         "add.s32 %r2,%r2,%r4; add.s32 %r3,%r3,%r4; add.s32 %r3,%r3,1024;\n" +
         with(move, "%r2", "%r3") +
         "bar.warp.sync -1;\n"
         "mov.u64 %rd11,0;\n"
         "OUT: cvt.u64.u32 %rd12,%r1; add.s64 %rd12,%rd12,%rd11; cvt.u32.u64 %r5,%rd12; add.s32 %r5,%r5,%r4; add.s64 "
         "%rd14,%rd12,%rd3;\n"
         "ld.volatile.shared.u8 %rs9,[%r5+1024]; st.volatile.global.u8 [%rd14],%rs9;\n"
         "add.s64 %rd11,%rd11,32; setp.lt.u64 %p3,%rd11,1024; @%p3 bra OUT;\n";
}

struct Outcome {
  std::string finding;
  uint64_t thread = 0;
  std::vector<uint8_t> destination;
  Counts counts;
};

Outcome run(Bench& bench, const std::vector<uint32_t>& table, uint32_t mask, uint32_t written) {
  std::mt19937 random(3);
  std::vector<uint8_t> source(written), destination(kBytes);
  for (uint8_t& b : source) b = static_cast<uint8_t>(random());
  for (uint8_t& b : destination) b = static_cast<uint8_t>(random());
  const DevicePtr offsets = bench.buffer(table, "table"), from = bench.poisoned(kBytes, "from"),
                  to = bench.buffer(destination, "to");
  if (written > 0 && !bench.executor().write(from, std::as_bytes(std::span(source)))) abort();
  const RunResult r =
      bench.arg(offsets).arg(from).arg(to).arg64(mask).arg64(written).run({1, 1, 1}, {32, 1, 1}, 2 * kBytes);
  Outcome out;
  out.counts = *r.counts;
  if (!r.findings.empty())
    out.finding = r.findings[0].kind + ": " + r.findings[0].message, out.thread = r.findings[0].thread;
  out.destination = bench.read<uint8_t>(to, kBytes);
  for (DevicePtr p : {offsets, from, to}) bench.executor().release(p);
  return out;
}

/// Typical offsets of 32 lanes: consecutive, strided, descending, all equal, in groups, random; sometimes a row that
/// runs past the end, or a lane that is out of bounds or misaligned.
void offsets(std::mt19937& random, uint32_t bytes, uint32_t* out) {
  const uint32_t places = kBytes / bytes, begin = random() % places, way = random() % 6, stride = 1 + random() % 9;
  const bool past = random() % 8 == 0;
  for (uint32_t l = 0; l < 32; ++l) {
    const uint32_t at = way == 0   ? begin + l
                        : way == 1 ? begin + l * stride
                        : way == 2 ? begin + 31 - l
                        : way == 3 ? begin
                        : way == 4 ? begin + (l ^ stride)
                                   : random();
    out[l] = (past && way < 2 ? at : at % places) * bytes;
  }
  if (random() % 16 == 0) out[random() % 32] += kBytes;
  if (random() % 16 == 0) out[random() % 32] += 1;
}

/// Whether two lanes of the mask access a common byte.
bool overlap(const uint32_t* offset, uint32_t bytes, uint32_t mask) {
  for (uint32_t a = 0; a < 32; ++a)
    for (uint32_t b = 0; b < a; ++b)
      if (mask >> a & mask >> b & 1 && offset[a] < offset[b] + bytes && offset[b] < offset[a] + bytes) return true;
  return false;
}

TEST(RandomRows, AreAsLaneByLane) {
  int clean = 0, found = 0, raced = 0;
  for (const bool shared : {false, true})
    for (const Access& access : kAccesses) {
      Bench together, apart;
      const char* head = ".extern .shared .align 128 .b8 smem[];\n";
      ASSERT_EQ(together.load(kernel_text(5, copy_kernel(access, shared, false), head)), "");
      ASSERT_EQ(apart.load(kernel_text(5, copy_kernel(access, shared, true), head)), "");
      std::mt19937 random(shared ? 1 : 2);
      for (int i = 0; i < 150; ++i) {
        std::vector<uint32_t> table(64);
        offsets(random, access.bytes, table.data());
        offsets(random, access.bytes, table.data() + 32);
        const uint32_t mask = random() % 3 == 0 ? static_cast<uint32_t>(random() | 1) : ~0u;
        // Initialised part of the source: all, or up to a position near one of the lanes, often the last.
        const uint32_t edge =
            table[random() % 2 ? 31 : random() % 32] + static_cast<uint32_t>(random() % (access.bytes + 1));
        const uint32_t written = random() % 3 == 0 ? std::min(edge, kBytes) : kBytes;
        const Outcome a = run(together, table, mask, written), b = run(apart, table, mask, written);
        const std::string label = std::string(access.type) + (shared ? " shared " : " global ") + std::to_string(i);
        if (a.finding.starts_with("race: ")) {  // volatile writes of two lanes to one place do not race
          const bool reads_destination = *std::max_element(table.data(), table.data() + 32) + access.bytes > kBytes;
          ASSERT_TRUE(overlap(table.data() + 32, access.bytes, mask) || reads_destination) << label << " " << a.finding;
          ++raced;
          continue;
        }
        ASSERT_EQ(a.finding, b.finding) << label;
        ASSERT_EQ(a.thread, b.thread) << label;
        ASSERT_EQ(a.destination, b.destination) << label;
        if (!a.finding.empty()) {  // the two ways count partial requests differently
          ++found;
          continue;
        }
        ++clean;
        ASSERT_EQ(a.counts.l2_read_sectors, b.counts.l2_read_sectors) << label;
        ASSERT_EQ(a.counts.l2_write_sectors, b.counts.l2_write_sectors) << label;
        ASSERT_EQ(a.counts.unique_read_sectors, b.counts.unique_read_sectors) << label;
        ASSERT_EQ(a.counts.unique_write_sectors, b.counts.unique_write_sectors) << label;
        ASSERT_EQ(a.counts.smem_wavefronts, b.counts.smem_wavefronts) << label;
        ASSERT_EQ(a.counts.smem_ideal_wavefronts, b.counts.smem_ideal_wavefronts) << label;
        ASSERT_EQ(a.counts.narrow_load, b.counts.narrow_load) << label;
        ASSERT_EQ(a.counts.bulk_load_16, b.counts.bulk_load_16) << label;
      }
    }
  EXPECT_GT(clean, 1000);
  EXPECT_GT(found, 300);
  EXPECT_GT(raced, 200);
}

// Words written by another CTA are checked one by one, even for warp-wide accesses.
TEST(RandomRows, RacesBetweenCtasAreFound) {
  const auto kind = [](const std::string& body) {
    Bench bench;
    EXPECT_EQ(bench.load(kernel_text(1,
                                     "ld.param.u64 %rd1,[p0]; mov.u32 %r1,%tid.x; mov.u32 %r2,%ctaid.x; mul.wide.u32 "
                                     "%rd2,%r1,4; add.s64 %rd3,%rd1,%rd2;\n" +
                                         body)),
              "");
    return bench.arg(bench.poisoned(8192)).kind({2, 1, 1}, {32, 1, 1});
  };
  const std::string own = "mul.wide.u32 %rd4,%r2,128; add.s64 %rd5,%rd3,%rd4; st.global.u32 [%rd5],%r1;\n";
  EXPECT_EQ(kind(own), "");
  EXPECT_EQ(kind(own + "ld.global.u32 %r3,[%rd5];"), "");
  EXPECT_EQ(kind(own + "setp.eq.u32 %p1,%r2,1; @%p1 ld.global.u32 %r3,[%rd3];"), "race");
  EXPECT_EQ(kind("st.global.u32 [%rd3],%r2;"), "race");
  EXPECT_EQ(kind("st.global.u32 [%rd3],%r1;"), "");  // the same values
  EXPECT_EQ(kind("mul.wide.u32 %rd4,%r2,124; add.s64 %rd5,%rd3,%rd4; st.global.u32 [%rd5],%r1;"),
            "race");  // one shared word
}

}  // namespace
}  // namespace roofgen::sim_test::rows_random_test

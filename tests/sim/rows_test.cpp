// Warp-wide accesses to one allocation are served at once (machine_rows.cpp); volatile ones lane by lane. Both must
// leave the same values and counts, and report the same findings.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support.h"

namespace roofgen::sim_test::rows_test {
namespace {

/// p1[i] = p0[i] for elements of `count` x `type`, starting at the thread's element %r8 plus `shift` elements of
/// `bytes`.
std::string copy(const std::string& order, int count, int bytes, int shift, const std::string& between = "") {
  const std::string type = bytes == 8 ? "u64" : "u32", r = bytes == 8 ? "%rd" : "%r",
                    vector = count == 1 ? "" : fmt::format(".v{}", count);
  std::string list;
  for (int i = 0; i < count; ++i) list += fmt::format("{}{}{}", i ? ", " : "", r, 20 + i);
  if (count > 1) list = "{" + list + "}";
  return kernel_text(
      2, fmt::format("ld.param.u64 %rd1, [p0];\nld.param.u64 %rd2, [p1];\nmov.u32 %r1, %tid.x;\nmov.u32 %r2, "
                     "%ctaid.x;\nmov.u32 %r3, %ntid.x;\nmad.lo.u32 %r8, %r2, %r3, %r1;\n"
                     "mul.wide.u32 %rd3, %r8, {0};\nadd.u64 %rd4, %rd1, %rd3;\nadd.u64 %rd5, %rd2, "
                     "%rd3;\n{5}\nld{1}.global{2}.{3} {4}, [%rd4+{6}];\nst{1}.global{2}.{3} [%rd5+{6}], {4};\n",
                     count * bytes, order, vector, type, list, between, shift * count * bytes));
}

struct Seen {
  std::vector<uint32_t> values;
  Counts counts;
  std::vector<std::vector<LineAccess>> trace;
  std::string kind;
};
Seen run(const std::string& ptx, uint32_t ctas, uint32_t threads, uint32_t words, uint32_t given) {
  Bench b;
  EXPECT_EQ(b.load(ptx), "");
  std::vector<uint32_t> in(given);
  for (uint32_t i = 0; i < given; ++i) in[i] = i * 2654435761u;
  const DevicePtr x = b.poisoned(words * 4), y = b.poisoned(words * 4);
  if (!b.executor().write(x, std::as_bytes(std::span(in)))) abort();
  Seen s;
  RunOptions options;
  options.trace = &s.trace;
  const RunResult r = b.arg(x).arg(y).run({ctas, 1, 1}, {threads, 1, 1}, 0, options);
  s.kind = r.findings.empty() ? ""
                              : r.findings[0].kind + " " + std::to_string(r.findings[0].cta) + " " +
                                    std::to_string(r.findings[0].thread);
  s.counts = *r.counts;
  s.values = b.read<uint32_t>(y, words);
  return s;
}

TEST(Rows, EqualLaneByLaneAccesses) {
  for (const auto& [count, bytes] :
       {std::pair(1, 4), std::pair(2, 4), std::pair(4, 4), std::pair(1, 8), std::pair(2, 8)})
    for (int shift : {0, 1, 3, 9}) {
      const uint32_t words = static_cast<uint32_t>((2 * 64 + shift) * count * bytes / 4);
      const Seen row = run(copy("", count, bytes, shift), 2, 64, words, words),
                 lanes = run(copy(".volatile", count, bytes, shift), 2, 64, words, words);
      SCOPED_TRACE(fmt::format("v{} of {} bytes, shifted by {}", count, bytes, shift));
      EXPECT_EQ(row.kind, "");
      EXPECT_EQ(row.values, lanes.values);
      EXPECT_EQ(row.values.back(), (words - 1) * 2654435761u);
      EXPECT_EQ(row.counts.l2_read_sectors, lanes.counts.l2_read_sectors);
      EXPECT_EQ(row.counts.l2_write_sectors, lanes.counts.l2_write_sectors);
      EXPECT_EQ(row.counts.unique_read_sectors, lanes.counts.unique_read_sectors);
      EXPECT_EQ(row.counts.unique_write_sectors, lanes.counts.unique_write_sectors);
      EXPECT_EQ(row.counts.bulk_load_16, lanes.counts.bulk_load_16);
      EXPECT_EQ(row.counts.narrow_load, lanes.counts.narrow_load);
      ASSERT_EQ(row.trace.size(), lanes.trace.size());
      for (size_t c = 0; c < row.trace.size(); ++c) {
        ASSERT_EQ(row.trace[c].size(), lanes.trace[c].size());
        for (size_t i = 0; i < row.trace[c].size(); ++i) {
          EXPECT_EQ(row.trace[c][i].line, lanes.trace[c][i].line);
          EXPECT_EQ(row.trace[c][i].sectors, lanes.trace[c][i].sectors);
          EXPECT_EQ(row.trace[c][i].write, lanes.trace[c][i].write);
        }
      }
    }
}

TEST(Rows, FindTheLaneThatGoesOutside) {
  EXPECT_EQ(run(copy("", 1, 4, 0), 2, 64, 127, 127).kind, "out-of-bounds 1 63");
  EXPECT_EQ(run(copy("", 4, 4, 0), 1, 32, 4 * 32 - 1, 4 * 32 - 1).kind, "out-of-bounds 0 31");
}

TEST(Rows, FindTheLaneThatReadsUnwrittenMemory) {
  EXPECT_EQ(run(copy("", 2, 8, 0), 1, 32, 4 * 32, 4 * 31).kind, "uninitialised 0 31");
}

TEST(Rows, FindAMisalignedLane) {
  EXPECT_EQ(run(copy("", 2, 4, 0, "add.u64 %rd4, %rd4, 4;"), 1, 32, 66, 66).kind, "misaligned 0 0");
}

TEST(Rows, FindRacesWithAnotherCta) {
  // Every CTA writes the same row, then reads it: the second CTA meets the first CTA's data.
  const std::string same_place = "ld.param.u64 %rd5, [p1];\nmul.wide.u32 %rd3, %r1, 4;\nadd.u64 %rd5, %rd5, %rd3;";
  EXPECT_EQ(run(copy("", 1, 4, 0, same_place), 2, 64, 128, 128).kind, "race 1 0");
  EXPECT_EQ(run(copy("", 1, 4, 0, same_place), 1, 64, 128, 128).kind, "");
  // CTA 1 reads CTA 0's data: in place, one CTA further on.
  const std::string behind = "mov.u64 %rd5, %rd4;\nadd.u64 %rd5, %rd5, 256;";
  EXPECT_EQ(run(copy("", 1, 4, 0, behind), 2, 64, 192, 192).kind, "race 1 0");
}

}  // namespace
}  // namespace roofgen::sim_test::rows_test

// Mutants of rows kernels, each with one wrong line. Each must be caught by a finding of the simulator, or by the
// comparison with a wide margin (truncation errs by at most one ulp where half an ulp is allowed).
#include <gtest/gtest.h>

#include "tests/kernels/expect_caught.h"
#include "tests/kernels/rows_case.h"

namespace roofgen::test::rows_mutants_test {
namespace {

constexpr const char *kRows = "rows/rows.cu.jinja", *kFormula = "rows/formula.cuh.jinja", *kKept = "rows/kept.cuh",
                     *kSlice = "lib/row_slice.cuh", *kReduce = "lib/row_reduce.cuh", *kPack = "lib/pack.cuh",
                     *kMath = "lib/math.cuh";

struct Mutant {
  const char* name;
  RowsCase problem;
  std::vector<Edit> edits;
  bool finding;  ///< the simulator must report a finding; otherwise the comparison must fail
};

void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }

class RowsMutants : public testing::TestWithParam<Mutant> {};

TEST_P(RowsMutants, IsCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  auto request = request_of(m.problem);
  ASSERT_TRUE(request) << to_string(request.error());
  request->edits = m.edits;
  expect_caught(run(*request), m.finding ? CaughtBy::kFinding : CaughtBy::kComparison, 1.5);
}

const RowsCase kNorm{"rmsnorm", 5, 1001, DType::kBf16, kResidual}, kWide{"layernorm", 3, 4096, DType::kFp16, kBoth},
    kQuant{"rmsnorm", 6, 1000, DType::kBf16, {}, kInt8}, kSoft{"softmax", 3, 4099},
    kScaled{"map", 3, 512, DType::kBf16, {}, {{"expr", "x * 1.1"}}};

RowsCase with(RowsCase c, Pins pins) {
  c.pins = std::move(pins);
  return c;
}

const Mutant kMutants[] = {
    {"tail_of_a_row_dropped",
     kNorm,
     {{kSlice,
       "    else if (!kAligned)\n      group.store_some(to + step / kSources, (first + step) / kSources, count / "
       "kSources);",
       ""}},
     false},
    {"tail_not_summed", kNorm, {{kRows, "if (!at[r].inside(step + j)) t[j]", "if (!at[r].full(step)) t[j]"}}, false},
    {"neighbours_summed_too",
     kNorm,
     {{kPack, "if (static_cast<unsigned>(first + j) < static_cast<unsigned>(count)) {\n        unsigned one;",
       "{\n        unsigned one;"},
      {kRows, "if (!at[r].inside(step + j)) t[j] = Reduction::neutral();", ";"}},
     true},
    {"reduction_barrier_dropped",
     kWide,
     {{kReduce, "    __syncthreads();  // every warp of the row has written its part\n", ""}},
     true},
    {"one_warp_left_out",
     kWide,
     {{kReduce, "for (int step = kRowWarps / 2; step > 0; step /= 2)",
       "for (int step = kRowWarps / 4; step > 0; step /= 2)"}},
     false},
    {"half_the_lanes_left_out",
     kNorm,
     {{kReduce, "(kRowThreads < 32 ? kRowThreads : 32) / 2", "(kRowThreads < 32 ? kRowThreads : 32) / 4"}},
     false},
    {"wrong_divisor_of_the_mean",
     {"rmsnorm", 5, 63, DType::kFp32, kResidual},
     {{kRows, "thread.inv_cols = inv_cols;", "thread.inv_cols = 1.0f / (cols - 1);"}},
     false},
    {"eps_forgotten",
     {"layernorm", 7, 1, DType::kFp32, kBias},
     {{kRows, "thread.scalars.s_{{ name }} = s_{{ name }};", "thread.scalars.s_{{ name }} = 0.0f;"}},
     false},
    {"one_row_too_few", kNorm, {{kRows, "kRowsAtOnce < rows ?", "kRowsAtOnce < rows - 1 ?"}}, false},
    {"one_row_too_many", kNorm, {{kRows, "kRowsAtOnce < rows ?", "kRowsAtOnce <= rows ?"}}, true},
    {"sum_not_written",
     kNorm,
     {{kFormula, "      write({{ o.param }}, ",
       "      if constexpr ({{ \"false\" if o.buffer == \"sum\" else \"true\" }}) write({{ o.param }}, "}},
     false},
    {"residual_of_the_first_row",
     kWide,
     {{kFormula, "group = at.load(from, step);", "group = at.load_columns(from, step);"}},
     false},
    {"truncated_instead_of_rounded",
     kScaled,
     {{kMath, "cvt.rn.bf16x2.f32 %0, %1, %2;", "cvt.rz.bf16x2.f32 %0, %1, %2;"}},
     false},
    {"scale_of_the_wrong_row",
     kQuant,
     {{kRows, "common ? at[r].row : at[r].row", "(common ? at[r].row : at[r].row ^ 1)"}},
     false},
    {"scale_by_the_wrong_thread",
     kQuant,
     {{kRows, "if (lane == 0 && at[r].count > 0", "if (lane == kRowThreads && at[r].count > 0"}},
     false},
    {"maximum_not_rescaled",
     with(kSoft, {{"residency", text("memory")}}),
     {{kReduce, "sum[r] *= Exp::exp(top[r] - base);", ""}},
     false},
    {"maximum_of_one_thread",
     with(kSoft, {{"residency", text("memory")}}),
     {{kReduce, "sum[r] *= Exp::exp(own[r] - base_of(top[r]));", ";"}},
     false},
    {"kept_in_the_wrong_slot",
     with(kSoft, {{"residency", text("shared")}}),
     {{kKept, "slots().take(r * kChunks + slot).to_floats(v);",
       "slots().take(r * kChunks + slot / kBatch * kBatch).to_floats(v);"}},
     false},
    {"kept_before_it_changed",
     with({"layernorm", 3, 4096, DType::kBf16, kResidual}, {{"residency", text("shared")}}),
     {{kRows, "if constexpr (kPass < kPhases) kept.changed", "if constexpr (kPass == 0) kept.changed"}},
     false},
    {"last_batch_skipped",
     with(kSoft, {{"residency", text("memory")}, {"batch", n(1)}}),
     {{kRows, "thread.batches = (groups + kBatch * kRowThreads - 1) / (kBatch * kRowThreads);",
       "thread.batches = groups / (kBatch * kRowThreads);"}},
     false},
    {"held_groups_counted_twice",
     with({"softmax", 2, 131072}, {{"cluster", n(1)}}),
     {{kRows, "(kHeldGroups ? 0 : kHeld) + first_slot", "first_slot"}},
     false},
    {"segment_too_short",
     {"softmax", 2, 20000, DType::kBf16, {}, {}, {}, "split"},
     {{kRows, "min(segment, cols - part * segment)", "min(segment - 1, cols - part * segment)"}},
     false},
};
INSTANTIATE_TEST_SUITE_P(Rows, RowsMutants, testing::ValuesIn(kMutants),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace roofgen::test::rows_mutants_test

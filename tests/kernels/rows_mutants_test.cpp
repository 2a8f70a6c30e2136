// Mutants of rows kernels, each with one wrong line. Each must be caught by a finding of the simulator, or by the
// comparison with a wide margin (truncation errs by at most one ulp where half an ulp is allowed).
#include <gtest/gtest.h>

#include "tests/kernels/expect_caught.h"
#include "tests/kernels/rows_case.h"

namespace roofgen::test {
namespace {

const std::string kRows = "rows/rows.cu.jinja", kPack = "lib/pack.cuh", kMath = "lib/math.cuh";

struct Mutant {
  std::string name;
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
     {{kRows, "  else if (!kAligned)\n    group.store_some(to, first / kOfEach, at.count / kOfEach);", ""}},
     false},
    {"tail_not_summed",
     kNorm,
     {{kRows, "at[r].inside(first + j) ? t : Reduce", "at[r].full(first) ? t : Reduce"}},
     false},
    {"neighbours_summed_too",
     kNorm,
     {{kPack, "if (static_cast<unsigned>(first + j) < static_cast<unsigned>(count)) {\n        unsigned one;",
       "{\n        unsigned one;"},
      {kRows, "at[r].inside(first + j) ? t : Reduce{{ i }}::neutral()", "t"}},
     true},
    {"reduction_barrier_dropped",
     kWide,
     {{kRows, "    __syncthreads();  // every warp of the row has written its part\n", ""}},
     true},
    {"one_warp_left_out",
     kWide,
     {{kRows, "for (int step = kRowWarps / 2; step > 0; step /= 2)",
       "for (int step = kRowWarps / 4; step > 0; step /= 2)"}},
     false},
    {"half_the_lanes_left_out",
     kNorm,
     {{kRows, "(kRowThreads < 32 ? kRowThreads : 32) / 2", "(kRowThreads < 32 ? kRowThreads : 32) / 4"}},
     false},
    {"wrong_divisor_of_the_mean",
     {"rmsnorm", 5, 63, DType::kFp32, kResidual},
     {{kRows, "s, at[r].m(), inv_cols);\n{% endif %}\n{% endfor %}\n{% if writes",
       "s, at[r].m(), 1.0f / (cols - 1));\n{% endif %}\n{% endfor %}\n{% if writes"}},
     false},
    {"eps_forgotten",
     {"layernorm", 7, 1, DType::kFp32, kBias},
     {{kRows, "  s.s_{{ name }} = s_{{ name }};", "  s.s_{{ name }} = 0.0f;"}},
     false},
    {"one_row_too_few", kNorm, {{kRows, "at[r].row < rows ?", "at[r].row < rows - 1 ?"}}, false},
    {"one_row_too_many", kNorm, {{kRows, "at[r].row < rows ?", "at[r].row <= rows ?"}}, true},
    {"sum_not_written",
     kNorm,
     {{kRows, "        store_group({{ o.param }}, at[r], first, y_{{ o.buffer }});",
       "{% if o.buffer != \"sum\" %}\n        store_group({{ o.param }}, at[r], first, y_{{ o.buffer }});\n{% endif "
       "%}"}},
     false},
    {"residual_of_the_first_row",
     kWide,
     {{kRows, "of_{{ t.name }}[r][c] = load_group({{ t.param }}, at[r], first);",
       "of_{{ t.name }}[r][c] = load_columns({{ t.param }}, at[r], first);"}},
     false},
    {"truncated_instead_of_rounded",
     kScaled,
     {{kMath, "cvt.rn.bf16x2.f32 %0, %1, %2;", "cvt.rz.bf16x2.f32 %0, %1, %2;"}},
     false},
    {"scale_of_the_wrong_row",
     kQuant,
     {{kRows, "{{ o.param }} + at[r].row * segments", "{{ o.param }} + (at[r].row ^ 1) * segments"}},
     false},
    {"scale_by_the_wrong_thread",
     kQuant,
     {{kRows, "if (lane == 0 && at[r].count > 0) {\n      FormulaElement",
       "if (lane == kRowThreads && at[r].count > 0) {\n      FormulaElement"}},
     false},
    {"maximum_not_rescaled",
     with(kSoft, {{"residency", text("memory")}}),
     {{kRows, "sum[r] *= {{ phase.exp }}(top[r] - base);", ""}},
     false},
    {"maximum_of_one_thread",
     with(kSoft, {{"residency", text("memory")}}),
     {{kRows, "sum[r] *= {{ phase.exp }}(own[r] - finite_top(top[r]));", ""}},
     false},
    {"kept_in_the_wrong_slot",
     with(kSoft, {{"residency", text("shared")}}),
     {{kRows, "Keeper<float>::take(r * kChunks + batch * count + c)",
       "Keeper<float>::take(r * kChunks + batch * count)"}},
     false},
    {"kept_before_it_changed",
     with({"layernorm", 3, 4096, DType::kBf16, kResidual}, {{"residency", text("shared")}}),
     {{kRows, "        Keeper<float>::put(r * kChunks + batch * count + c, changed);\n",
       "        if (first >= 0 && {{ i }} == 0) Keeper<float>::put(r * kChunks + batch * count + c, changed);\n"}},
     false},
    {"last_batch_skipped",
     with(kSoft, {{"residency", text("memory")}, {"batch", n(1)}}),
     {{kRows, "const int batches = (groups + kBatch * kRowThreads - 1) / (kBatch * kRowThreads);",
       "const int batches = groups / (kBatch * kRowThreads);"}},
     false},
    {"held_groups_counted_twice",
     {"softmax", 2, 131072},
     {{kRows, "constexpr int begin = kHeld, count = kBatch;", "constexpr int begin = 0, count = kBatch;"}},
     false},
    {"segment_too_short",
     {"softmax", 2, 20000, DType::kBf16, {}, {}, {}, "split"},
     {{kRows, "min(segment, cols - at[r].first_col)", "min(segment - 1, cols - at[r].first_col)"}},
     false},
};
INSTANTIATE_TEST_SUITE_P(Rows, RowsMutants, testing::ValuesIn(kMutants),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace roofgen::test

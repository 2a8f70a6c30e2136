// Mutants of GEMM kernels, each with one wrong line. Each must be caught by a finding of the simulator, or by the
// comparison with an error of at least about two tolerances (docs/mutants.md).
#include <gtest/gtest.h>

#include "tests/kernels/expect_caught.h"
#include "tests/kernels/gemm_support.h"

namespace roofgen::test::gemm_mutants_test {
namespace {

constexpr const char *kGemm = "gemm/gemm.cu.jinja", *kEpilogue = "gemm/epilogue.cuh.jinja",
                     *kCopy = "lib/operand_copy.cuh", *kTile = "lib/smem_tile.cuh", *kRows = "rows/rows.cu.jinja",
                     *kSlice = "lib/row_slice.cuh";
const std::string kFormula = "silu(acc * 0.1 + bias[n]) + residual[m,n]";

struct Mutant {
  const char* name;
  std::vector<Edit> edits;
  bool finding;  ///< the simulator must report a finding; otherwise the comparison must fail
  Gemm gemm = {150, 136, 424, DType::kBf16, kFormula};
  Pins pins = {{"store", std::string("staged")}, {"BM", int64_t{64}}, {"BN", int64_t{64}}};
  std::string variant = "fused", stage = "gemm";
};
void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }

class GemmMutants : public testing::TestWithParam<Mutant> {};

TEST_P(GemmMutants, IsCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  auto problem = gemm(m.gemm);
  ASSERT_TRUE(problem) << to_string(problem.error());
  expect_caught(run({*problem, m.variant, {{m.stage, m.pins}}, InputPattern::kNormal, m.edits}),
                m.finding ? CaughtBy::kFinding : CaughtBy::kComparison, 1.9);
}

const Gemm kReducing{70, 100, 64, DType::kBf16, "acc * rsqrt(mean(acc * acc) + 0.001)"};
const Gemm kGated{70, 136, 72, DType::kBf16, "acc * 0.1 + bias[n]", "row", "col", "silu"};
const Gemm kSplit{70, 48, 2100, DType::kBf16, kFormula};
const Gemm kGatedOdd{70, 134, 72, DType::kBf16, "acc * 0.1 + bias[n]", "row", "col", "silu"},
    kGatedSplit{70, 50, 2100, DType::kBf16, "acc * 0.02 + bias[n]", "row", "col", "silu"};
const Pins kPlain{};

const Mutant kMutants[] = {
    {"k_tail_dropped",
     {{kGemm, "const int k0 = 0, k_end = K;", "const int k0 = 0, k_end = K / kTileK * kTileK;"}},
     false},
    {"last_tile_skipped",
     {{kGemm, "while (k_left > -(kStages - 1) * kTileK) {", "while (k_left > -(kStages - 2) * kTileK) {"}},
     false},
    {"tail_not_zeroed", {{kCopy, "p, valid ? kPiece : 0);", "p, kPiece);"}}, true},
    {"wait_one_short",
     {{kGemm, "cp_async_wait<kStages - 2>();  // the next tile", "cp_async_wait<kStages - 1>();"}},
     true},
    {"barrier_missing",
     {{kGemm, "__syncthreads();               // ... for all warps, and this tile may be overwritten", ""}},
     true},
    {"staging_barrier_missing",
     {{kEpilogue, "sync_warps();  // all warps have read their tiles; shared memory becomes the staging area", ""}},
     true},
    {"staging_not_synchronised", {{kEpilogue, "    __syncwarp();\n    const int col", "    const int col"}}, true},
    {"stage_overwritten_early", {{kGemm, "load_tile(free_stage);", "load_tile(read_stage);"}}, true},
    {"swizzle_mismatch",
     {{kCopy, "to = Layout::offset(row, byte / 16) + byte % 16;",
       "to = Layout::offset(row ^ 2, byte / 16) + byte % 16;"}},
     false},
    {"fragments_of_this_step",
     {{kGemm, "load_fragments(Int<(kStep + 1) % kSteps>{});", "load_fragments(Int<kStep>{});"}},
     false},
    {"second_half_of_b_twice",
     {{kGemm, "b_next[kStep % 2][n / 2][n % 2 * 2 + 1]);", "b_next[kStep % 2][n / 2][n % 2 * 2]);"}},
     false},
    {"bias_one_column_on",
     {{kEpilogue, "const {{ t.element }}* const p = {{ t.param }} + {{ place(t, \"n\") }};",
       "const {{ t.element }}* const p = {{ t.param }} + {{ place(t, \"(n ^ 2)\") }};"}},
     false},
    {"residual_of_the_row_below",
     {{kEpilogue, "m = kEvenM ? m_first : min(m_first, M - 1);\n        [[maybe_unused]] FormulaElement e[2] = {",
       "m = min(m_first + 1, M - 1);\n        [[maybe_unused]] FormulaElement e[2] = {"}},
     false,
     {150, 136, 424, DType::kBf16, kFormula}},
    {"one_row_too_few", {{kEpilogue, "M - row, min(cols - col,", "M - row - 1, min(cols - col,"}}, false},
    {"one_piece_too_few", {{kEpilogue, "M - row, min(cols - col,", "M - row, min(cols - col - 8,"}}, false},
    {"one_row_too_many", {{kEpilogue, "M - row, min(cols - col,", "M + 1 - row, min(cols - col,"}}, true},
    {"last_column_not_written",
     {{kEpilogue, "if (second) store_as(p + 1, y[1]);", ""}},
     false,
     {33, 35, 40, DType::kBf16, "acc"},
     kPlain},
    {"rounding_towards_zero",
     {{"lib/math.cuh", "cvt.rn.bf16x2.f32", "cvt.rz.bf16x2.f32"}},
     false,
     {150, 136, 424, DType::kBf16, "acc"}},
    {"gate_and_value_swapped", {{kEpilogue, "(of[0]) * of[1]}", "(of[1]) * of[0]}"}}, false, kGated, kPlain},
    {"tiles_of_a_group_swapped",
     {{kGemm, "static_cast<int>(blockIdx.x) % kGroup) * BM",
       "(static_cast<int>(blockIdx.x) + 1) % kGroup / 2 * 2) * BM"}},
     false,
     {300, 136, 40, DType::kBf16, "acc"},
     {{"BM", int64_t{64}}, {"group", int64_t{4}}}},
    {"row_total_of_a_quarter",
     {{kEpilogue, "for (int step = 1; step < 4; step *= 2)", "for (int step = 1; step < 2; step *= 2)"}},
     false,
     kReducing,
     kPlain},
    {"row_total_without_the_other_warp",
     {{kEpilogue, "for (int w = 0; w < kWarpsN; ++w)", "for (int w = 0; w < kWarpsN - 1; ++w)"}},
     false,
     kReducing,
     kPlain},
    {"row_total_with_columns_beyond",
     {{kEpilogue, "if (kEvenN || n_first + k < N) part", "part"}},
     false,
     {70, 100, 64, DType::kBf16, "acc / sum(exp(acc * 0.1))"},
     kPlain},
    {"row_total_barrier_missing",
     {{kEpilogue,
       "    sync_warps();\n#pragma unroll\n    for (int i = 0; i < MT; ++i)\n#pragma unroll\n      for (int h = 0; "
       "h < 2; ++h) {\n        float total",
       "#pragma unroll\n    for (int i = 0; i < MT; ++i)\n#pragma unroll\n      for (int h = 0; h < 2; ++h) {\n        "
       "float total"}},
     true,
     kReducing,
     kPlain},
    {"slab_lost",
     {{kGemm, "const int k0 = blockIdx.z * k_per_split, k_end = min(K, k0 + k_per_split);",
       "const int k0 = blockIdx.z * k_per_split, k_end = blockIdx.z == 2 ? k0 : min(K, k0 + k_per_split);"}},
     false,
     kSplit,
     kPlain,
     "split_k4",
     "partial"},
    {"slabs_overlap",
     {{kGemm, "k_end = min(K, k0 + k_per_split);", "k_end = min(K, k0 + k_per_split + 1);"}},
     false,
     kSplit,
     kPlain,
     "split_k4",
     "partial"},
    {"slabs_in_one_place",
     {{kEpilogue, "{{ \" + blockIdx.z * (static_cast<long long>(M) * cols)\" if splits > 1 else \"\" }}", ""}},
     true,
     kSplit,
     kPlain,
     "split_k4",
     "partial"},
    // The second kernel of a gated product.
    {"rows_gate_and_value_swapped",
     {{kRows, "activation(value(j)) * value(j + kHalves - 1)", "activation(value(j + kHalves - 1)) * value(j)"}},
     false,
     kGatedOdd,
     kPlain,
     "unfused"},
    {"rows_value_without_its_epilogue",
     {{kRows, "activation(value(j)) * value(j + kHalves - 1)", "activation(value(j)) * v[j + kHalves - 1]"}},
     false,
     kGatedOdd,
     kPlain,
     "unfused"},
    {"rows_value_of_the_gate_before",
     {{kRows, "activation(value(j)) * value(j + kHalves - 1)", "activation(value(j)) * value((j + kVec - 1) % kVec)"}},
     false,
     kGatedOdd,
     kPlain,
     "unfused"},
    {"rows_bias_of_the_output_column",
     {{kSlice, "from += first_col + first;", "from += (first_col + first) / 2;"}},
     false,
     kGatedOdd,
     kPlain,
     "unfused"},
    {"rows_outputs_where_their_columns_were",
     {{kSlice, "to += start / kSources;", "to += start;"}},
     true,
     kGatedOdd,
     kPlain,
     "unfused"},
    {"rows_last_pair_not_written",
     {{kSlice, "(first + step) / kSources, count / kSources);",
       "(first + step) / kSources, max(0, count / kSources - 1));"}},
     false,
     kGatedOdd,
     kPlain,
     "unfused"},
    {"rows_slab_not_added",
     {{kRows, "for (int slab = 1; slab < kSlabs; ++slab)", "for (int slab = 2; slab < kSlabs; ++slab)"}},
     false,
     kGatedSplit,
     kPlain,
     "split_k4",
     "partial"},
};

INSTANTIATE_TEST_SUITE_P(Gemm, GemmMutants, testing::ValuesIn(kMutants),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace roofgen::test::gemm_mutants_test

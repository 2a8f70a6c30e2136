// Mutants of attention kernels, each with one wrong line. Each must be caught by a finding of the simulator, or by the
// comparison with a wide margin.
#include <gtest/gtest.h>

#include "tests/kernels/expect_caught.h"

namespace roofgen::test::attention_mutants_test {
namespace {

constexpr const char *kFused = "attention/fused.cu.jinja", *kScores = "attention/scores.cu.jinja",
                     *kSoftmax = "attention/softmax.cu.jinja", *kPv = "attention/pv.cu.jinja",
                     *kOnline = "attention/online_softmax.cuh", *kWarpgroup = "attention/warpgroup.cu.jinja",
                     *kSoften = "attention/warpgroup_softmax.cuh.jinja",
                     *kExponentials = "attention/exponentials.cuh.jinja",
                     *kProducts = "attention/warpgroup_products.cuh.jinja", *kBarrier = "lib/barrier.cuh",
                     *kSlab = "lib/swizzled_slab.cuh";

struct Mutant {
  const char* name;
  const char* variant;
  std::vector<Edit> edits;
  bool finding;  ///< the simulator must report a finding; otherwise the comparison must fail
  Pins pins = {};
  std::string pinned = "attention";  ///< the stage for `pins`
};

void PrintTo(const Mutant& m, std::ostream* out) { *out << m.name; }

class Mutants : public testing::TestWithParam<Mutant> {};

// Lengths that no tile divides, more tiles than stages, two heads, a mask, LSE: every line matters.
TEST_P(Mutants, IsCaught) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  const Mutant& m = GetParam();
  Request request;
  request.problem = attention({{"L", 390}, {"kv_len", 421}, {"d", 64}, {"batch", 1}, {"heads", 2}},
                              {{"causal", true}, {"lse", true}});
  request.variant = m.variant;
  request.edits = m.edits;
  if (!m.pins.empty()) request.pins[m.pinned] = m.pins;
  expect_caught(run(request), m.finding ? CaughtBy::kFinding : CaughtBy::kComparison, 5);
}

const Mutant kMutants[] = {
    {"last_tile_skipped",
     "fused",
     {{kFused, "int steps = ceil_div(kv_len, BN);", "int steps = ceil_div(kv_len, BN) - 1;"}},
     false},
    {"scale_dropped", "fused", {{kFused, ">(state, scale_log2);", ">(state, 1.44269504f);"}}, false},
    {"cp_async_wait_missing",
     "fused",
     {{kFused, "cp_async_wait<kStages - 2>();  // K and V of this step", "// no wait"}},
     true},
    {"stage_reuse_barrier_dropped",
     "fused",
     {{kFused, "__syncthreads();               // ... for all warps; the stage of the previous step is free", ""}},
     true},
    {"one_stage_value_wait_missing",
     "fused",
     {{kFused, "cp_async_wait<0>();  // V of this step", ""}},
     true,
     {{"stages", int64_t{1}}}},
    {"one_stage_barrier_dropped",
     "fused",
     {{kFused, "__syncthreads();     // ... for all warps; K of this step is free", ""}},
     true,
     {{"stages", int64_t{1}}}},
    {"mask_one_too_far",
     "fused",
     {{kFused, "min(limit[i][h], q_row + lead);", "min(limit[i][h], q_row + lead + 1);"}},
     false},
    {"mask_one_too_near",
     "fused",
     {{kFused, "min(limit[i][h], q_row + lead);", "min(limit[i][h], q_row + lead - 1);"}},
     false},
    {"row_maximum_not_shared", "fused", {{kOnline, "row_max = quad_max(row_max);", ""}}, false},
    {"row_sum_not_shared", "fused", {{kFused, "quad_sum(state.sum[i][h])", "state.sum[i][h]"}}, false},
    {"output_not_rescaled",
     "fused",
     {{kOnline, "state.o[i][n][2 * h] *= factor;", ""}},
     false,
     {{"rescale", std::string("always")}}},
    {"output_row_stride_wrong",
     "fused",
     {{kFused, "(sm_warp_q, o_rows, 2 * o_row_stride,", "(sm_warp_q, o_rows, 2 * o_head_stride,"}},
     true},
    {"lse_in_base_two", "fused", {{kExponentials, "(max * c + log2_sum) * kLn2", "max * c + log2_sum"}}, false},
    {"tail_not_zeroed",
     "fused",
     {{"lib/async_copy.cuh", "16, %2;\" ::\"r\"(to), \"l\"(from), \"r\"(bytes)",
       "16, %2;\" ::\"r\"(to), \"l\"(from), \"r\"(16)"}},
     true},
    {"warpgroup_k_not_waited_for",
     "warpgroup",
     {{kWarpgroup, "const auto wait_k = [&] { barrier_wait(k_full + 8 * k_place.stage, k_place.parity); };",
       "const auto wait_k = [&] {};"}},
     true},
    {"warpgroup_v_not_waited_for",
     "warpgroup",
     {{kWarpgroup, "const auto wait_v = [&] { barrier_wait(v_full + 8 * v_place.stage, v_place.parity); };",
       "const auto wait_v = [&] {};"}},
     true},
    {"warpgroup_q_not_waited_for", "warpgroup", {{kWarpgroup, "barrier_wait(q_full, 0);", ""}}, true},
    {"warpgroup_phase_never_changes", "warpgroup", {{kBarrier, "stage = 0, parity ^= 1;", "stage = 0;"}}, true},
    {"warpgroup_short_transaction_count",
     "warpgroup",
     {{kWarpgroup, "barrier_arrive_expect(barrier, kTileBytes);", "barrier_arrive_expect(barrier, kTileBytes - 128);"}},
     true},
    {"warpgroup_long_transaction_count",
     "warpgroup",
     {{kWarpgroup, "else \"kQBytes\" }});", "else \"kQBytes + 128\" }});"}},
     true},
    {"warpgroup_k_never_released",
     "warpgroup",
     {{kWarpgroup, "if (lane == 0) barrier_arrive(k_empty + 8 * k_place.stage);", ""}},
     true},
    {"warpgroup_v_released_by_one_group",
     "warpgroup",
     {{kWarpgroup, "barrier_init(v_empty + 8 * s, 4 * kGroups{{", "barrier_init(v_empty + 8 * s, 4{{"}},
     true},
    {"warpgroup_k_released_before_its_product",
     "warpgroup",
     {{kWarpgroup, "      wgmma_wait<1>();\n      hold(s[0]);\n      release_k();",
       "      release_k();\n      wgmma_wait<1>();\n      hold(s[0]);"}},
     true},
    {"warpgroup_scores_used_in_flight", "warpgroup", {{kWarpgroup, "      wgmma_wait<1>();\n", ""}}, true},
    {"warpgroup_output_scaled_in_flight",
     "warpgroup",
     {{kWarpgroup,
       "wait_k();  // of the next step, but here: ptxas moves the softmax behind wgmma_wait, not behind this\n      "
       "wgmma_wait<0>();",
       "wait_k();\n"}},
     true},
    {"warpgroup_last_product_not_waited_for",
     "warpgroup",
     {{kWarpgroup, "    wait_v();\n    start_values();\n    wgmma_wait<0>();\n    hold(o);\n{% if several",
       "    wait_v();\n    start_values();\n{% if several"}},
     true},
    {"warpgroup_fence_missing", "warpgroup", {{kProducts, "  hold(p);\n  wgmma_fence();\n", "  hold(p);\n"}}, true},
    {"warpgroup_first_turn_missing",
     "warpgroup",
     {{kWarpgroup, "{% if pingpong %}\n      turns.begin();\n", "{% if pingpong %}\n"}},
     true},
    {"warpgroup_output_without_proxy_fence",
     "warpgroup",
     {{kWarpgroup, "{% endif %}\n  async_proxy_fence();\n  __syncwarp();", "{% endif %}\n  __syncwarp();"}},
     true},
    {"warpgroup_output_without_warp_barrier",
     "warpgroup",
     {{kWarpgroup, "{% endif %}\n  async_proxy_fence();\n  __syncwarp();", "{% endif %}\n  async_proxy_fence();"}},
     true},
    {"warpgroup_core_matrices_overlap", "warpgroup", {{kSlab, "(8 * kPitch >> 4)", "(4 * kPitch >> 4)"}}, false},
    {"warpgroup_output_not_swizzled",
     "warpgroup",
     {{kSlab,
       "constexpr int offset(int row, int chunk) {\n    return row * kPitch + (chunk ^ (row * kPitch / 128) % kChunks)",
       "constexpr int offset(int row, int chunk) {\n    return row * kPitch + chunk"}},
     false},
    {"warpgroup_values_of_the_next_rows",
     "warpgroup",
     {{kProducts, "moved(v_tile, 16 * i * Slab::kPitch)", "moved(v_tile, 8 * i * Slab::kPitch)"}},
     false},
    {"warpgroup_rows_of_another_group",
     "warpgroup",
     {{kWarpgroup, "sm_q = q_tile + 64 * consumer * Slab::kPitch;",
       "sm_q = q_tile + 64 * (kGroups - 1 - consumer) * Slab::kPitch;"}},
     false},
    {"warpgroup_mask_one_too_far", "warpgroup", {{kSoften, "diagonal(h))", "diagonal(h) + 1)"}}, false},
    {"warpgroup_mask_one_too_near", "warpgroup", {{kSoften, "diagonal(h))", "diagonal(h) - 1)"}}, false},
    {"warpgroup_diagonal_tile_not_masked",
     "warpgroup",
     {{kWarpgroup, "max(0, group_row + lead + 1) / BN", "max(0, group_row + lead + BN) / BN"}},
     false},
    {"warpgroup_last_tile_skipped",
     "warpgroup",
     {{kWarpgroup, "[[maybe_unused]] int steps = ceil_div(kv_len, BN);", "int steps = ceil_div(kv_len, BN) - 1;"}},
     false},
    {"warpgroup_row_maximum_not_shared", "warpgroup", {{kSoften, "quad_max(row_max)", "row_max"}}, false},
    {"warpgroup_output_not_rescaled", "warpgroup", {{kWarpgroup, "if (rescale) factors.apply(o);", ""}}, false},
    {"warpgroup_sum_not_rescaled", "warpgroup", {{kSoften, "      rows.sum[h] *= factors.of[h];\n", ""}}, false},
    {"warpgroup_fragment_of_p_turned",
     "warpgroup",
     {{kSoften, "pack2<Half>(s[2 * i + e / 2][e % 2 * 2], s[2 * i + e / 2][e % 2 * 2 + 1])",
       "pack2<Half>(s[2 * i + e % 2][e / 2 * 2], s[2 * i + e % 2][e / 2 * 2 + 1])"}},
     false},
    {"warpgroup_lse_in_base_two",
     "warpgroup",
     {{kExponentials, "(max * c + log2_sum) * kLn2", "max * c + log2_sum"}},
     false},
    {"scores_scale_dropped",
     "unfused",
     {{kScores, "{{ \"1.0f\" if formula.has_score else \"scale\" }}", "1.0f"}},
     false},
    {"scores_wait_missing", "unfused", {{kScores, "cp_async_wait<kAhead - 1>();  // Q and K of this step", ""}}, true},
    {"softmax_mask_one_too_far",
     "unfused",
     {{kSoftmax, "row + 1 + kv_len - q_len", "row + 2 + kv_len - q_len"}},
     false},
    {"softmax_not_normalised",
     "unfused",
     {{kSoftmax, "store(p + key, inverse);\n  }\n{% else %}", "store(p + key, 1.0f);\n  }\n{% else %}"}},
     false},
    {"pv_last_step_skipped",
     "unfused",
     {{kPv, "int steps = ceil_div(kv_len, BK);", "int steps = ceil_div(kv_len, BK) - 1;"}},
     false},
    {"pv_barrier_dropped",
     "unfused",
     {{kPv, "__syncthreads();               // ... for all warps; the stage of the previous step is free", ""}},
     true},
    {"pv_staging_barrier_dropped",
     "unfused",
     {{kPv, "__syncthreads();  // all warps have read the last stage", "//"}},
     true,
     {{"BK", int64_t{32}}},
     "pv"},
};

INSTANTIATE_TEST_SUITE_P(Attention, Mutants, testing::ValuesIn(kMutants),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace roofgen::test::attention_mutants_test

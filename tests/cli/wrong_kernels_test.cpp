// Wrong kernels of all ops (tests/cli/wrong_kernel.h).
#include "tests/cli/wrong_kernel.h"

namespace roofgen::test::wrong_kernels_test {
namespace {

constexpr const char* kOwnHead = "head / group";
constexpr const char* kHeadModulo = "head % (static_cast<int>(gridDim.y) / group)";
constexpr const char* kHeadPerKv = "head / (static_cast<int>(gridDim.y) / group)";
constexpr const char* kNextGroup = "min((head + 1) / group, static_cast<int>(gridDim.y) / group - 1)";
#define ROOFGEN_WRONG_ATTENTION "attention --L 192 --d 64 --batch 1 "
#define ROOFGEN_WRONG_GEMM "gemm --M 192 --N 192 --K 128 "

const Wrong kWrong[] = {
    {"kv_head_modulo_28_4", "attention/fused.cu.jinja", kOwnHead, kHeadModulo,
     ROOFGEN_WRONG_ATTENTION "--heads 28 --kv-heads 4 --variant fused --set pack_gqa=false"},
    {"kv_head_modulo_24_8_causal", "attention/fused.cu.jinja", kOwnHead, kHeadModulo,
     ROOFGEN_WRONG_ATTENTION "--heads 24 --kv-heads 8 --causal --variant fused --set pack_gqa=false"},
    {"kv_head_modulo_40_8_unfused", "attention/pv.cu.jinja", kOwnHead, kHeadModulo,
     ROOFGEN_WRONG_ATTENTION "--heads 40 --kv-heads 8 --variant unfused"},
    {"kv_head_modulo_20_4", "attention/scores.cu.jinja", kOwnHead, kHeadModulo,
     ROOFGEN_WRONG_ATTENTION "--heads 20 --kv-heads 4 --variant unfused"},
    {"kv_head_per_kv_heads_32_8", "attention/fused.cu.jinja", kOwnHead, kHeadPerKv,
     ROOFGEN_WRONG_ATTENTION "--heads 32 --kv-heads 8 --variant fused --set pack_gqa=false"},
    {"kv_head_next_group_56_8", "attention/fused.cu.jinja", kOwnHead, kNextGroup,
     ROOFGEN_WRONG_ATTENTION "--heads 56 --kv-heads 8 --variant fused --set pack_gqa=false"},
    {"sum_not_rescaled", "attention/online_softmax.cuh", "state.sum[i][h] *= factor;", "",
     ROOFGEN_WRONG_ATTENTION "--heads 2 --variant fused"},
    {"output_not_rescaled", "attention/online_softmax.cuh", "state.o[i][n][2 * h] *= factor;", "",
     ROOFGEN_WRONG_ATTENTION "--heads 2 --causal --variant fused"},
    {"lag_overflows_fp16", "attention/online_softmax.cuh", "* c, kMaxLag)", "* c, 40.0f)",
     ROOFGEN_WRONG_ATTENTION "--kv-len 1024 --heads 2 --dtype fp16 --variant fused --set rescale=lazy"},
    {"scalars_exchanged", "gemm/epilogue.cuh.jinja", "s_{{ s }}{{ \", \"",
     "s_{{ formula.scalars[loop.length - loop.index] }}{{ \", \"",
     ROOFGEN_WRONG_GEMM "--epilogue 'alpha*acc + beta*residual[m,n]' --variant fused"},
    {"scalar_ignored", "gemm/epilogue.cuh.jinja", "s_{{ s }}{{ \", \"", "1.0f{{ \", \"",
     ROOFGEN_WRONG_GEMM "--epilogue 'alpha*acc' --variant fused"},
    {"eps_dropped", "rows/rows.cu.jinja", "= s_{{ name }};", "= 0.0f;",
     "rmsnorm --rows 64 --cols 1024 --variant fused"},
    {"eps_dropped_layernorm", "rows/rows.cu.jinja", "= s_{{ name }};", "= 0.0f;",
     "layernorm --rows 64 --cols 1024 --variant fused"},
    {"relu_drops_nan", "lib/pointwise.cuh", "return max_nan(x, 0.0f);", "return fmaxf(x, 0.0f);",
     ROOFGEN_WRONG_GEMM "--epilogue 'relu(acc + bias[n])' --variant fused"},
    {"sigmoid_overflows", "lib/pointwise.cuh", "return fmaf(0.5f, tanh_fast(0.5f * x), 0.5f);",
     "return ex2(x * 1.44269504f) / (1.0f + ex2(x * 1.44269504f));",
     ROOFGEN_WRONG_GEMM "--epilogue 'acc * sigmoid(residual[m,n])' --variant fused"},
    {"infinity_saturates", "gemm/epilogue.cuh.jinja",
     "= { {{ o.call }}(x[i][j][2 * h], e[0], totals[i][h], scalars, m, n),",
     "= { fminf(65504.0f, {{ o.call }}(x[i][j][2 * h], e[0], totals[i][h], scalars, m, n)),",
     ROOFGEN_WRONG_GEMM "--dtype fp16 --epilogue 'acc + residual[m,n]' --variant fused"},

    // Tiles and places that neither the reduced problem nor the slices of the real launch run.
    {"gemm_tile_exchanged", "gemm/gemm.cu.jinja", "tile = blockIdx.x / kGroup;",
     "tile = gridDim.x > 40 && blockIdx.x / kGroup == 2 ? 3 : blockIdx.x / kGroup;",
     "gemm --M 1536 --N 1536 --K 128 --variant fused"},
    {"gemm_rows_of_a_tile_exchanged", "gemm/gemm.cu.jinja", "\"m0 * a_stride + k0\"",
     "\"(n0 >= 640 && n0 < 900 && m0 < 2 * BM ? m0 ^ BM : m0) * a_stride + k0\"",
     "gemm --M 1500 --N 1500 --K 192 --dtype fp16 --variant fused"},
    {"gemm_tile_decoded_in_fp32", "gemm/gemm.cu.jinja", "(tile / col_tiles * kGroup",
     "(static_cast<int>(static_cast<float>(tile) * (1.0f / static_cast<float>(col_tiles))) * kGroup",
     "gemm --M 1280 --N 5248 --K 96 --variant fused"},
    {"attention_head_exchanged", "attention/fused.cu.jinja", "const int head = blockIdx.y,",
     "const int head = gridDim.y > 8 && blockIdx.y == 3 ? 4 : blockIdx.y,",
     "attention --L 128 --d 64 --batch 1 --heads 12 --variant fused"},
    {"attention_batch_exchanged", "attention/fused.cu.jinja", "const int batch = blockIdx.z;",
     "const int batch = gridDim.z > 3 && blockIdx.z == 2 ? 1 : blockIdx.z;",
     "attention --L 200 --d 64 --batch 5 --heads 2 --causal --variant fused"},
    {"attention_rows_of_a_head_exchanged", "attention/fused.cu.jinja",
     "q + batch * q_batch_stride + head * q_head_stride + row0 * q_row_stride",
     "q + batch * q_batch_stride + head * q_head_stride + "
     "(head == 2 && gridDim.x > 3 ? (row0 / BM ^ 1) * BM : row0) * q_row_stride",
     "attention --L 1024 --d 64 --batch 1 --heads 6 --variant fused"},
    {"rows_exchanged", "rows/rows.cu.jinja", ": blockIdx.x;", ": gridDim.x > 60 && blockIdx.x == 40 ? 41 : blockIdx.x;",
     "softmax --rows 16384 --cols 256 --variant fused"},
    {"rows_exchanged_rmsnorm", "rows/rows.cu.jinja", ": blockIdx.x;",
     ": gridDim.x > 60 && blockIdx.x == 40 ? blockIdx.x + 1 : blockIdx.x;",
     "rmsnorm --rows 8192 --cols 1024 --variant fused"},
    // Strides taken from the sizes.
    {"query_row_stride_ignored", "attention/fused.cu.jinja", "q_copy(thread, 2 * q_row_stride)",
     "q_copy(thread, 2 * D * gridDim.y)", ROOFGEN_WRONG_ATTENTION "--heads 4 --variant fused"},
    {"value_head_stride_ignored", "attention/fused.cu.jinja", "kv_head * v_head_stride", "kv_head * D",
     ROOFGEN_WRONG_ATTENTION "--heads 4 --kv-heads 2 --variant fused --set pack_gqa=false"},
    {"output_row_stride_ignored", "attention/fused.cu.jinja", "o_rows, 2 * o_row_stride", "o_rows, 2 * D * gridDim.y",
     ROOFGEN_WRONG_ATTENTION "--heads 2 --causal --variant fused"},
    {"gemm_stride_ignored", "gemm/gemm.cu.jinja", "b_stride * sizeof(Bits)", "K * sizeof(Bits)",
     ROOFGEN_WRONG_GEMM "--variant fused"},
    // Inputs that are not tame.
    {"rescale_without_scale", "attention/online_softmax.cuh", "ex2((state.max[i][h] - reference) * c)",
     "ex2(state.max[i][h] - reference)", ROOFGEN_WRONG_ATTENTION "--kv-len 512 --heads 2 --variant fused"},
    {"no_maximum", "attention/online_softmax.cuh", "next[i][h] = larger(state.max[i][h], row_max);",
     "next[i][h] = 0.0f * row_max;", ROOFGEN_WRONG_ATTENTION "--heads 2 --variant fused"},
    {"no_maximum_under_softcap", "attention/online_softmax.cuh", "next[i][h] = larger(state.max[i][h], row_max);",
     "next[i][h] = 0.0f * row_max;", ROOFGEN_WRONG_ATTENTION "--heads 2 --dtype fp16 --softcap 30 --variant fused"},
    {"output_accumulated_in_bf16", "attention/online_softmax.cuh",
     "mma_m16n8k16<T>(state.o[i][2 * kPair], p[i], v[0], v[1]);",
     "mma_m16n8k16<T>(state.o[i][2 * kPair], p[i], v[0], v[1]); for (float& x : state.o[i][2 * kPair]) "
     "x = __uint_as_float((__float_as_uint(x) + 0x8000u) & 0xffff0000u);",
     ROOFGEN_WRONG_ATTENTION "--kv-len 1024 --heads 2 --variant fused"},
    {"softmax_of_hidden_blocks", "lib/row_reduce.cuh", "return top == neg_inf() ? 0.0f : top;", "return top;",
     "softmax --rows 64 --cols 4096 --variant fused --set residency=memory"},
    {"softmax_maximum_at_least_zero", "lib/row_reduce.cuh",
     "static __device__ __forceinline__ float neutral() { return neg_inf(); }\n  float top",
     "static __device__ __forceinline__ float neutral() { return 0.0f; }\n  float top",
     "softmax --rows 64 --cols 4096 --variant fused --set residency=memory"},
    {"relu_drops_nan_of_sums", "lib/pointwise.cuh", "return max_nan(x, 0.0f);", "return fmaxf(x, 0.0f);",
     ROOFGEN_WRONG_GEMM "--epilogue 'relu(acc)' --variant fused"},
    {"sigmoid_of_sums_overflows", "lib/pointwise.cuh", "return fmaf(0.5f, tanh_fast(0.5f * x), 0.5f);",
     "return ex2(x * 1.44269504f) / (1.0f + ex2(x * 1.44269504f));",
     ROOFGEN_WRONG_GEMM "--epilogue 'sigmoid(acc)' --variant fused"},
    {"sums_saturate", "gemm/epilogue.cuh.jinja", "= { {{ o.call }}(x[i][j][2 * h], e[0], totals[i][h], scalars, m, n),",
     "= { fminf(65504.0f, {{ o.call }}(x[i][j][2 * h], e[0], totals[i][h], scalars, m, n)),",
     ROOFGEN_WRONG_GEMM "--dtype fp16 --epilogue 'acc * 2' --variant fused"},
    {"int8_sums_through_fp32", "gemm/epilogue.cuh.jinja", "__int_as_float(c[i][j][2 * h]),",
     "__int_as_float(static_cast<int>(static_cast<float>(c[i][j][2 * h]))),",
     "gemm --M 192 --N 192 --K 2048 --dtype int8 --variant fused"},
    {"row_index_of_32_bits", "rows/rows.cu.jinja", "computed_once(row * cols + part",
     "computed_once(static_cast<long long>(static_cast<int>(row * cols)) + part",
     "softmax --rows 100000 --cols 32000 --variant fused"},
    {"gemm_output_index_of_32_bits", "gemm/epilogue.cuh.jinja", "to + static_cast<long long>(row) * cols + col)",
     "to + row * cols + col)", "gemm --M 65536 --N 49152 --K 64 --variant fused --set store=staged"},
    {"gemm_direct_output_index_of_32_bits", "gemm/epilogue.cuh.jinja", "to + static_cast<long long>(m) * cols + n",
     "to + m * cols + n", "gemm --M 65536 --N 49152 --K 64 --variant fused --set store=direct"},
    {"gemm_input_index_of_32_bits", "gemm/gemm.cu.jinja", "\"m0 * a_stride + k0\"",
     "\"static_cast<int>(m0 * a_stride) + k0\"", "gemm --M 65536 --N 64 --K 40000 --variant fused"},
    {"query_index_of_32_bits", "attention/fused.cu.jinja", "batch * q_batch_stride",
     "static_cast<int>(batch * q_batch_stride)", "attention --L 512 --d 128 --heads 128 --batch 512 --variant fused"},
    {"probability_index_of_32_bits", "attention/pv.cu.jinja", "p_row * kv_pitch", "static_cast<int>(p_row * kv_pitch)",
     "attention --L 2048 --d 64 --heads 32 --batch 32 --variant unfused"},
    {"keys_assumed_at_128_bytes", "attention/fused.cu.jinja", "reinterpret_cast<const char*>(k + batch",
     "reinterpret_cast<const char*>(~127ull & (unsigned long long)k) + 2 * (batch",
     ROOFGEN_WRONG_ATTENTION "--heads 2 --variant fused"},
    {"operand_assumed_at_32_bytes", "gemm/gemm.cu.jinja", "\"m0 * a_stride + k0\"",
     "\"m0 * a_stride + k0 - (reinterpret_cast<unsigned long long>(a) & 16) / sizeof(Bits)\"",
     ROOFGEN_WRONG_GEMM "--variant fused"},
    {"rows_assumed_at_32_bytes", "rows/rows.cu.jinja", "at[r].load(x, step_of(c))",
     "at[r].load(x - (reinterpret_cast<unsigned long long>(x) & 16) / sizeof(*x), step_of(c))",
     "rmsnorm --rows 64 --cols 1024 --variant fused"},
};

class WrongKernels : public testing::TestWithParam<Wrong> {};

TEST_P(WrongKernels, AreRejected) { expect_rejected(GetParam()); }

INSTANTIATE_TEST_SUITE_P(All, WrongKernels, testing::ValuesIn(kWrong), testing::PrintToStringParamName());

}  // namespace
}  // namespace roofgen::test::wrong_kernels_test

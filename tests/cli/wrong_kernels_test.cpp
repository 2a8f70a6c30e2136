// Wrong kernels, planted in a template by one changed line: tune must reject every candidate on its default checks.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/cli/program.h"

namespace roofgen::test::wrong_kernels_test {
namespace {

struct Wrong {
  const char* name;
  const char* file;  ///< below templates/
  const char *from, *to;
  const char* job;
};

void PrintTo(const Wrong& w, std::ostream* out) { *out << w.name; }

constexpr const char* kOwnHead = "head / group * {}_head_stride";
constexpr const char* kHeadModulo = "head % (static_cast<int>(gridDim.y) / group) * {}_head_stride";
constexpr const char* kHeadPerKv = "head / (static_cast<int>(gridDim.y) / group) * {}_head_stride";
constexpr const char* kNextGroup = "min((head + 1) / group, static_cast<int>(gridDim.y) / group - 1) * {}_head_stride";
#define ROOFGEN_WRONG_ATTENTION "attention --L 192 --d 64 --batch 1 "
#define ROOFGEN_WRONG_GEMM "gemm --M 192 --N 192 --K 128 "

const Wrong kWrong[] = {
    {"kv_head_modulo_28_4", "attention/fused.cu.jinja", kOwnHead, kHeadModulo,
     ROOFGEN_WRONG_ATTENTION "--heads 28 --kv-heads 4 --variant fused"},
    {"kv_head_modulo_24_8_causal", "attention/fused.cu.jinja", kOwnHead, kHeadModulo,
     ROOFGEN_WRONG_ATTENTION "--heads 24 --kv-heads 8 --causal --variant fused"},
    {"kv_head_modulo_40_8_unfused", "attention/pv.cu.jinja", kOwnHead, kHeadModulo,
     ROOFGEN_WRONG_ATTENTION "--heads 40 --kv-heads 8 --variant unfused"},
    {"kv_head_modulo_20_4", "attention/scores.cu.jinja", kOwnHead, kHeadModulo,
     ROOFGEN_WRONG_ATTENTION "--heads 20 --kv-heads 4 --variant unfused"},
    {"kv_head_per_kv_heads_32_8", "attention/fused.cu.jinja", kOwnHead, kHeadPerKv,
     ROOFGEN_WRONG_ATTENTION "--heads 32 --kv-heads 8 --variant fused"},
    {"kv_head_next_group_56_8", "attention/fused.cu.jinja", kOwnHead, kNextGroup,
     ROOFGEN_WRONG_ATTENTION "--heads 56 --kv-heads 8 --variant fused"},
    {"sum_not_rescaled", "attention/online_softmax.cuh", "state.sum[i][h] *= factor;", "",
     ROOFGEN_WRONG_ATTENTION "--heads 2 --variant fused"},
    {"output_not_rescaled", "attention/online_softmax.cuh", "state.o[i][n][2 * h] *= factor;", "",
     ROOFGEN_WRONG_ATTENTION "--heads 2 --causal --variant fused"},
    {"lag_overflows_fp16", "attention/online_softmax.cuh", "* c > kMaxLag", "* c > 40.0f",
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
};

class WrongKernels : public testing::TestWithParam<Wrong> {};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

TEST_P(WrongKernels, AreRejected) {
  const Wrong& w = GetParam();
  const Home home;
  std::ifstream in(std::string(ROOFGEN_SOURCE_DIR "/templates/") + w.file);
  const std::string right(std::istreambuf_iterator<char>(in), {});
  std::string wrong = right;
  for (const char* tensor : {"k", "v"})
    wrong = replaced(wrong, replaced(w.from, "{}_", std::string(tensor) + "_"),
                     replaced(w.to, "{}_", std::string(tensor) + "_"));
  ASSERT_NE(wrong, right);
  home.write(std::string("wrong/templates/") + w.file, wrong);
  const std::string command = std::string("tune ") + w.job + " --evals 1 --executor sim --data-dir wrong";
  const Outcome o = home.run(command);
  EXPECT_EQ(o.exit, 1) << o.out << o.err;
  EXPECT_NE(o.err.find("nothing was verified: verify: "), std::string::npos) << o.err;
}

INSTANTIATE_TEST_SUITE_P(All, WrongKernels, testing::ValuesIn(kWrong), testing::PrintToStringParamName());

}  // namespace
}  // namespace roofgen::test::wrong_kernels_test

// The op gemm: defaults, rejected input, buffers, reduced problems, and its reference against the textbook sum.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "generator/ops/elements.h"
#include "generator/ops/gemm.h"
#include "generator/ops/gemm_inputs.h"
#include "generator/ops/gemm_reference.h"
#include "runtime/sim/opcode_table.h"
#include "tests/kernels/gemm_support.h"

namespace roofgen::test::gemm_op_test {
namespace {

std::string refusal(const Gemm& g) {
  auto problem = gemm(g);
  if (problem) return "accepted";
  EXPECT_EQ(problem.error().exit, Exit::kUsage);
  return to_string(problem.error());
}

TEST(GemmOp, RefusesImpossibleProblems) {
  EXPECT_NE(refusal({0, 1, 1}).find("M is 0; 1 to"), std::string::npos);
  EXPECT_NE(refusal({1, 1, int64_t{1} << 31}).find("K is 2147483648"), std::string::npos);
  EXPECT_NE(refusal({1 << 30, 1 << 30, 1}).find("C would hold"), std::string::npos);
  EXPECT_NE(refusal({1, 1, 1, DType::kFp32}).find("no dtype fp32; bf16, fp16, tf32"), std::string::npos);
  EXPECT_NE(refusal({1, 1, 131072, DType::kInt8}).find("always fit int32"), std::string::npos);
  EXPECT_NE(refusal({1, 1, 1, DType::kBf16, "acc", "diagonal"}).find("a_layout is 'diagonal'; row or col"),
            std::string::npos);
  EXPECT_NE(refusal({1, 3, 1, DType::kBf16, "acc", "row", "col", "silu"}).find("N is 3"), std::string::npos);
  EXPECT_NE(refusal({1, 2, 1, DType::kBf16, "acc", "row", "col", "swish"}).find("gated is 'swish'; silu"),
            std::string::npos);
  EXPECT_NE(refusal({1, 2, 1, DType::kBf16, "acc / amax(acc)", "row", "col", "silu"}).find("gated"), std::string::npos);
  Gemm scaled = block_scaled(8, 8, 16);
  EXPECT_EQ(refusal(scaled), "accepted");
  scaled.dtype = DType::kBf16;
  EXPECT_EQ(refusal(scaled), "error: --scales block needs --dtype fp8; the dtype is bf16");
  scaled.scales = "row";
  EXPECT_EQ(refusal(scaled), "error: scales is 'row'; block was expected");
  const std::string unknown = refusal({1, 1, 1, DType::kBf16, "gelu(acc + bais[n])"});
  EXPECT_NE(unknown.find("bais"), std::string::npos);
  EXPECT_NE(unknown.find("bias"), std::string::npos) << unknown;
  EXPECT_NE(refusal({1, 1, 1, DType::kBf16, "acc + bias[k]"}).find("k"), std::string::npos);
  const auto declared = [](const std::string& epilogue, const TensorArg& arg) {
    return refusal({8, 8, 8, DType::kBf16, epilogue, "row", "col", "", {arg}});
  };
  EXPECT_EQ(declared("alpha * acc + beta * C[m,n]", {"C", DType::kBf16, {"m", "n"}}),
            "--arg:1:1: error: C is a name of gemm's own; another one was expected, like C_in\n"
            "    1 | C:bf16[m,n]\n"
            "      | ^");
  for (const char* own : {"A", "B", "T", "partial", "y", "a_scale", "b_scale"})
    EXPECT_NE(declared("acc", {own, DType::kFp32, {"n"}}).find("gemm's own"), std::string::npos) << own;
  EXPECT_EQ(declared("acc + w[n,m]", {"w", DType::kFp32, {"n", "m"}}),
            "--arg:1:7: error: w lies across the rows of the output; [m,n] was expected, the transposed tensor\n"
            "    1 | w:fp32[n,m]\n"
            "      |       ^~~~~");
  EXPECT_EQ(declared("acc + w[m,n]", {"w", DType::kFp32, {"m", "n"}}), "accepted");
}

// The fast forms for 16-bit outputs use tanh.approx where the exact forms use an exponential.
TEST(GemmOp, TheFloorCountsTheExponentialsOfTheGate) {
  const auto exps = [](const char* gate, DType out) {
    return gemm_op()
        .required(*gemm({32, 64, 16, DType::kBf16, "acc", "row", "col", gate, {}, {}, {{"out", out}}}))
        ->exps;
  };
  for (const char* gate : {"silu", "sigmoid", "gelu", "gelu_tanh"}) {
    EXPECT_EQ(exps(gate, DType::kBf16), 0) << gate;
    EXPECT_EQ(exps(gate, DType::kFp32), 32 * 32) << gate;
  }
  EXPECT_EQ(exps("relu", DType::kFp32), 0);
  EXPECT_EQ(exps("", DType::kFp32), 0);
}

// Two columns of the product make one column of C, so each column has half of C's bytes and of the gate's work.
TEST(GemmOp, OnlyKernelsThatEndInTheGateIncludeIt) {
  const auto formula = [](const char* gate, DType out, const char* name) {
    return *gemm_op()
                .scope(*gemm({32, 64, 16, DType::kBf16, "acc + bias[n]", "row", "col", gate, {}, {}, {{"out", out}}}))
                .at("formulas")
                .map()
                ->at(name)
                .map();
  };
  const auto number = [](const expr::Map& f, const char* group, const char* name) {
    const expr::Value v = f.at(group).map()->at(name);
    return v.as<double>() ? *v.as<double>() : static_cast<double>(*v.as<int64_t>());
  };
  for (const char* name : {"epilogue", "epilogue_of_stored"}) {
    const expr::Map plain = formula("", DType::kFp32, name), gated = formula("silu", DType::kFp32, name);
    EXPECT_FALSE(plain.count("gate"));
    EXPECT_EQ(gated.at("gate").str(), "silu_exact");
    EXPECT_EQ(formula("silu", DType::kFp16, name).at("gate").str(), "silu_fast");
    EXPECT_EQ(number(plain, "bytes", "written"), 4);
    EXPECT_EQ(number(gated, "bytes", "written"), 2);
    EXPECT_EQ(number(formula("silu", DType::kInt8, name), "bytes", "written"), 0.5);
    EXPECT_EQ(number(gated, "cost", "exps") - number(plain, "cost", "exps"), 0.5);
    EXPECT_GT(number(gated, "cost", "fp32"), number(plain, "cost", "fp32"));
  }
  for (const char* name : {"identity", "partial2"})
    EXPECT_FALSE(formula("silu", DType::kFp32, name).count("gate")) << name;
}

TEST(GemmOp, TheStoredProductHoldsTheSums) {
  const auto stored = [](DType dtype, DType out) {
    const expr::Map scope =
        gemm_op().scope(*gemm({8, 8, 8, dtype, "acc * scale", "row", "col", "", {}, {}, {{"out", out}}}));
    EXPECT_EQ(scope.at("stored_size").str(), std::to_string(size_of(*parse_dtype(scope.at("stored_dtype").str()))));
    return scope.at("stored_dtype").str();
  };
  EXPECT_EQ(stored(DType::kBf16, DType::kBf16), "bf16");
  EXPECT_EQ(stored(DType::kFp16, DType::kFp16), "fp16");
  EXPECT_EQ(stored(DType::kBf16, DType::kFp8), "bf16");
  EXPECT_EQ(stored(DType::kTf32, DType::kFp32), "fp32");
  EXPECT_EQ(stored(DType::kInt8, DType::kInt8), "int32");
  EXPECT_EQ(stored(DType::kInt8, DType::kFp16), "int32");
  EXPECT_EQ(stored(DType::kInt8, DType::kInt32), "int32");
}

TEST(GemmOp, OutputsAreWideEnoughForSums) {
  const auto out = [](DType dtype, const std::string& epilogue = "acc") {
    return gemm({8, 8, 8, dtype, epilogue})->dtypes.at("out");
  };
  EXPECT_EQ(out(DType::kBf16), DType::kBf16);
  EXPECT_EQ(out(DType::kFp16), DType::kFp16);
  EXPECT_EQ(out(DType::kTf32), DType::kFp32);
  EXPECT_EQ(out(DType::kFp8), DType::kBf16);
  EXPECT_EQ(out(DType::kInt8), DType::kInt32);
  EXPECT_EQ(out(DType::kInt8, "relu(acc - 3)"), DType::kInt32) << "an int";
  EXPECT_EQ(out(DType::kInt8, "acc * scale"), DType::kBf16);
}

TEST(GemmOp, BuffersIncludeTheEpiloguesOperands) {
  const Op& op = gemm_op();
  const auto problem =
      gemm({30, 20, 10, DType::kBf16, "acc + bias[n] + w[n]", "row", "col", "", {{"w", DType::kFp32, {"n"}}}});
  ASSERT_TRUE(problem) << to_string(problem.error());
  std::map<std::string, uint64_t> bytes;
  for (const Buffer& b : op.buffers(*problem)) bytes[b.name] = b.bytes;
  EXPECT_EQ(bytes, (std::map<std::string, uint64_t>{{"A", 600}, {"B", 400}, {"C", 1200}, {"bias", 40}, {"w", 80}}));
  const RequiredWork work = *op.required(*problem);
  EXPECT_EQ(work.mma_flops, 2.0 * 30 * 20 * 10);
  EXPECT_EQ(work.dram_bytes, 600 + 400 + 1200 + 40 + 80);
}

TEST(GemmOp, ScalesHaveOneNumberForEachBlock) {
  std::map<std::string, uint64_t> bytes;
  for (const Buffer& b : gemm_op().buffers(*gemm(block_scaled(30, 260, 300)))) bytes[b.name] = b.bytes;
  EXPECT_EQ(bytes, (std::map<std::string, uint64_t>{
                       {"A", 9000}, {"B", 78000}, {"C", 15600}, {"a_scale", 4 * 30 * 3}, {"b_scale", 4 * 3 * 3}}));
}

TEST(GemmOp, AReducedProblemKeepsEveryTail) {
  const auto reduced = [](const Gemm& g) { return gemm_op().reduced(*gemm(g)).dims; };
  EXPECT_EQ(reduced({4096, 1000, 4096}), (std::map<std::string, int64_t>{{"M", 256}, {"N", 488}, {"K", 4096}}));
  EXPECT_EQ(reduced({512, 513, 7}), (std::map<std::string, int64_t>{{"M", 512}, {"N", 257}, {"K", 7}}));
  EXPECT_EQ(reduced({512, 8192, 7, DType::kBf16, "acc / amax(acc)"}).at("N"), 8192);
}

TEST(GemmReference, IsTheSumOfProducts) {
  for (const DType dtype : {DType::kBf16, DType::kTf32, DType::kInt8})
    for (const char* a_layout : {"row", "col"})
      for (const char* b_layout : {"row", "col"}) {
        const gemm::Shape s(*gemm({11, 300, 270, dtype, "acc", a_layout, b_layout}));
        const auto products = gemm::products_of(s, InputPattern::kNormal, {3, 10, 5, 290, 2, 270});
        const auto at = [&](const char* name, int64_t index) {
          double x;
          TensorContents{InputPattern::kNormal, name, dtype}.values(static_cast<uint64_t>(index), {&x, 1});
          return as_operand(x, dtype);
        };
        for (const auto& [m, n] : {std::pair{3, 5}, std::pair{9, 289}, std::pair{6, 261}}) {
          double sum = 0, square = 0;
          for (int64_t k = 2; k < 270; ++k) {
            const double product =
                at("A", s.a_rows ? m * s.k + k : k * s.m + m) * at("B", s.b_rows ? k * s.n + n : n * s.k + k);
            sum += product;
            square += product * product;
          }
          const size_t i = static_cast<size_t>((m - 3) * products->cols + n - 5);
          EXPECT_NEAR(products->sum[i], sum, 1e-9 * std::sqrt(square));
          EXPECT_NEAR(products->square[i], square, 1e-9 * square);
        }
      }
}

TEST(GemmReference, ScalesBlocksOfTheOperands) {
  const Gemm plain{11, 300, 400, DType::kFp8};
  const gemm::Shape scaled(*gemm(block_scaled(11, 300, 400))), unscaled(*gemm(plain));
  const gemm::Rectangle where{3, 10, 100, 290, 100, 300};
  const auto products = gemm::products_of(scaled, InputPattern::kNormal, where);
  const auto scale = [](gemm::Operand operand, int64_t index) {
    double x;
    gemm::scale_values(InputPattern::kNormal, operand, static_cast<uint64_t>(index), {&x, 1});
    return x;
  };
  for (const auto& [m, n] : {std::pair{3, 100}, std::pair{9, 289}, std::pair{6, 127}, std::pair{6, 128}}) {
    double sum = 0;
    for (int64_t block = 0; block < 3; ++block) {
      const auto part = gemm::products_of(
          unscaled, InputPattern::kNormal,
          {m, m + 1, n, n + 1, std::max<int64_t>(100, 128 * block), std::min<int64_t>(300, 128 * (block + 1))});
      sum += scale(gemm::Operand::kA, m * 4 + block) * scale(gemm::Operand::kB, n / 128 * 4 + block) * part->sum[0];
    }
    EXPECT_NEAR(products->sum[static_cast<size_t>((m - 3) * products->cols + n - 100)], sum, 1e-9);
  }
}

// Sums in fp32 with one rounding per product, as in the simulator: the error must be within the model, but not far
// within.
TEST(GemmReference, ErrorsOfSumsAreAsModelled) {
  constexpr int64_t kDepth = 4096, kSums = 2000;
  double worst = 0, squares = 0;
  std::vector<double> a(kDepth), b(kDepth);
  for (int64_t i = 0; i < kSums; ++i) {
    TensorContents{InputPattern::kNormal, "A", DType::kBf16}.values(static_cast<uint64_t>(i * kDepth), a);
    TensorContents{InputPattern::kNormal, "B", DType::kBf16}.values(static_cast<uint64_t>(i * kDepth), b);
    float sum = 0;
    double exact = 0, square = 0;
    for (int64_t k = 0; k < kDepth; ++k) {
      sum += static_cast<float>(a[k]) * static_cast<float>(b[k]);
      exact += a[k] * b[k];
      square += a[k] * b[k] * a[k] * b[k];
    }
    const double error =
        (sum - exact) / gemm::accumulation_sigma(DType::kBf16, false, InputPattern::kNormal, kDepth, exact, square);
    worst = std::max(worst, std::fabs(error));
    squares += error * error;
  }
  EXPECT_LT(worst, 1);
  EXPECT_GT(std::sqrt(squares / kSums), 0.02);
}

/// Errors of sums of e4m3 products as tensor cores of sm_90 add them, `promotion` products at a time, in sigmas.
struct Fp8Errors {
  double deviation, worst;
};
Fp8Errors fp8_errors(int64_t depth, int64_t promotion, int64_t tiles) {
  constexpr int64_t kRows = 16, kCols = 256, kStep = 32;
  alignas(64) static uint32_t registers[128][32];
  uint32_t* rows[128];
  for (size_t i = 0; i < 128; ++i) rows[i] = registers[i];
  const TensorContents a_contents{InputPattern::kNormal, "A", DType::kFp8},
      b_contents{InputPattern::kNormal, "B", DType::kFp8};
  double squares = 0, worst = 0;
  for (int64_t tile = 0; tile < tiles; ++tile) {
    std::vector<double> exact(kRows * kCols), square(exact.size()), sum(exact.size()), line(kStep);
    std::vector<float> a(kRows * kStep), b(kCols * kStep);
    for (int64_t k = 0; k < depth; k += kStep) {
      // Elements in blocks of 8 rows or columns, as WgmmaTable has them; the order within a block does not matter.
      for (const auto& [contents, out, count] : {std::tuple{&a_contents, &a, kRows}, {&b_contents, &b, kCols}})
        for (int64_t i = 0; i < count; ++i) {
          contents->values(static_cast<uint64_t>((tile * kCols + i) * depth + k), line);
          for (int64_t kk = 0; kk < kStep; ++kk)
            (*out)[static_cast<size_t>((i / 8 * kStep + kk) * 8 + i % 8)] = static_cast<float>(line[kk]);
        }
      uint32_t* const* const all = rows;
      const bool keeps = k % promotion != 0;
      sim::host_lanes().wgmma.multiply_fp8(sim::Multiplicand::kE4m3, sim::Multiplicand::kE4m3, sim::WgmmaSum::kF32,
                                           &all, a.data(), b.data(), kCols, kStep, &keeps, 1);
      const bool promoted = (k + kStep) % promotion == 0 || k + kStep == depth;
      for (int64_t i = 0; i < kRows * kCols; ++i) {
        const int64_t row = i / kCols, column = i % kCols;
        for (int64_t kk = 0; kk < kStep; ++kk) {
          const double product = double{a[static_cast<size_t>((row / 8 * kStep + kk) * 8 + row % 8)]} *
                                 b[static_cast<size_t>((column / 8 * kStep + kk) * 8 + column % 8)];
          exact[i] += product, square[i] += product * product;
        }
        if (promoted)
          sum[i] += std::bit_cast<float>(
              registers[4 * (column / 8) + 2 * (row / 8) + column % 8 / 4][4 * (row % 8) + column % 4]);
      }
    }
    for (size_t i = 0; i < sum.size(); ++i) {
      const double error = (sum[i] - exact[i]) / gemm::accumulation_sigma(DType::kFp8, false, InputPattern::kNormal,
                                                                          depth, exact[i], square[i]);
      squares += error * error;
      worst = std::max(worst, std::fabs(error));
    }
  }
  return {std::sqrt(squares / static_cast<double>(tiles * kRows * kCols)), worst};
}

// Sigma counts a whole unit for each product; of N(0,1) factors few lose anything. It bounds the deviation from above,
// by about the same factor at every depth.
TEST(GemmReference, PromotedFp8SumsHaveTheErrorsOfTheModel) {
  for (const auto& [depth, tiles] : {std::pair{64, 16}, {128, 16}, {512, 4}, {4096, 1}}) {
    const Fp8Errors e = fp8_errors(depth, 128, tiles);
    EXPECT_LT(e.worst, 5) << depth;
    EXPECT_LT(e.deviation, 0.4) << depth;
    EXPECT_GT(e.deviation, 0.15) << depth;
  }
}

// A kernel that adds all products in the tensor cores exceeds 6 sigma in a tile of 16 x 256.
TEST(GemmReference, Fp8SumsWithoutPromotionFail) {
  for (const int64_t depth : {1024, 4096, 16384}) {
    const Fp8Errors e = fp8_errors(depth, depth, 1);
    EXPECT_GT(e.worst, depth == 1024 ? 6 : 20) << depth;
  }
}

}  // namespace
}  // namespace roofgen::test::gemm_op_test

// The row ops without a kernel: defaults, rejected input, buffers, required arguments.
#include <gtest/gtest.h>

#include <cmath>

#include "generator/generate.h"
#include "generator/ops/op.h"
#include "generator/ops/rows_formulas.h"

namespace roofgen::rows_op_test {
namespace {

const Op& op(const std::string& name) { return **find_op(name); }

Problem asked(const std::string& name, int64_t rows, int64_t cols) {
  return {name, {{"rows", rows}, {"cols", cols}}, DType::kBf16, {}, {}};
}

Problem complete(const Problem& p) {
  auto done = op(p.op).complete(p);
  EXPECT_TRUE(done) << done.error().message;
  return *done;
}
std::string refusal(const Problem& p) {
  auto done = op(p.op).complete(p);
  if (done) return "accepted";
  EXPECT_EQ(done.error().exit, Exit::kUsage);
  return done.error().message;
}
std::string names(const Problem& p) {
  std::string out;
  for (const Buffer& b : op(p.op).buffers(p))
    out += b.name + ":" + to_string(b.dtype) + "=" + std::to_string(b.bytes) +
           (b.role == Buffer::Role::kOutput ? "! " : " ");
  return out;
}

TEST(RowsOp, Defaults) {
  EXPECT_EQ(complete(asked("rmsnorm", 8, 64)).reals.at("eps"), 1e-6);
  EXPECT_EQ(complete(asked("layernorm", 8, 64)).reals.at("eps"), 1e-5);
  EXPECT_FALSE(complete(asked("layernorm", 8, 64)).flags.at("bias"));
  EXPECT_FALSE(complete(asked("rmsnorm", 8, 64)).flags.at("residual"));
  Problem quantised = asked("rmsnorm", 8, 64);
  quantised.texts["quant"] = "int8";
  EXPECT_EQ(complete(quantised).texts.at("quant_scale"), "row");
  quantised.texts["quant_scale"] = "tensor";
  EXPECT_EQ(complete(quantised).reals.at("scale"), 1);
}

TEST(RowsOp, RefusesImpossibleProblemsWithTheLimit) {
  EXPECT_EQ(refusal({"softmax", {{"rows", 4}}, DType::kBf16, {}, {}}), "softmax needs cols");
  EXPECT_EQ(refusal(asked("softmax", 0, 4)), "rows is 0; 1 to 2147483647 was expected");
  EXPECT_EQ(refusal(asked("softmax", 1, int64_t{1} << 31)), "cols is 2147483648; 1 to 2147418111 was expected");
  EXPECT_NE(refusal(asked("softmax", 2147483647, 1 << 20)).find("2^38"), std::string::npos);
  Problem p = asked("rmsnorm", 4, 4);
  p.dtype = DType::kInt8;
  EXPECT_EQ(refusal(p), "rmsnorm has no dtype int8; bf16, fp16 or fp32 was expected");
  p = asked("rmsnorm", 4, 4);
  p.flags["bias"] = true;
  EXPECT_EQ(refusal(p), "rmsnorm has no bias");
  p = asked("softmax", 4, 4);
  p.flags["residual"] = true;
  EXPECT_EQ(refusal(p), "softmax has no residual");
  p = asked("softmax", 4, 4);
  p.texts["quant"] = "fp8";
  EXPECT_EQ(refusal(p), "softmax has no quant");
  p = asked("rmsnorm", 4, 4);
  p.texts["quant"] = "fp4";
  EXPECT_EQ(refusal(p), "quant is 'fp4'; fp8 or int8 was expected");
  p.texts["quant"] = "fp8";
  p.texts["quant_scale"] = "column";
  EXPECT_EQ(refusal(p), "quant_scale is 'column'; row or tensor was expected");
  p.texts.erase("quant_scale");
  p.reals["scale"] = 2;
  EXPECT_EQ(refusal(p), "scale applies to a whole tensor; quant_scale tensor was expected");
  p = asked("rmsnorm", 4, 4);
  p.dtypes["out"] = DType::kFp8;
  EXPECT_EQ(refusal(p), "rmsnorm writes no fp8; bf16, fp16 or fp32, or quant was expected");
  for (const double eps : {-1.0, 0.0, 2.0, double{NAN}}) {
    p = asked("rmsnorm", 4, 4);
    p.reals["eps"] = eps;
    EXPECT_NE(refusal(p).find("1e-30 to 1 was expected"), std::string::npos) << refusal(p);
  }
  EXPECT_NE(refusal(asked("map", 4, 4)).find("map needs expr"), std::string::npos);
  p = asked("map", 4, 4);
  p.texts["expr"] = "gelu(x + bais[n])";
  EXPECT_NE(refusal(p).find("bias"), std::string::npos) << refusal(p);
  p.texts["expr"] = "x + w[n,m]";
  p.args = {{"w", DType::kFp32, {"n", "m"}}};
  EXPECT_NE(refusal(p).find("w lies across the rows of the output; [m,n] was expected"), std::string::npos)
      << refusal(p);
  p.texts["expr"] = "x";
  for (const char* own : {"x", "y"}) {
    p.args = {{own, DType::kFp32, {"n"}}};
    EXPECT_NE(refusal(p).find("a name of map's own"), std::string::npos) << refusal(p);
  }
  p = asked("rmsnorm", 4, 4);
  p.args.push_back({"t", DType::kFp32, {"n"}});
  EXPECT_EQ(refusal(p), "rmsnorm takes no expression, so it reads no tensor t:fp32[n]");
}

TEST(RowsOp, Buffers) {
  Problem p = asked("rmsnorm", 3, 10);
  EXPECT_EQ(names(complete(p)), "x:bf16=60 weight:bf16=20 y:bf16=60! ");
  p.flags["residual"] = true;
  p.texts["quant"] = "fp8";
  EXPECT_EQ(names(complete(p)), "x:bf16=60 residual:bf16=60 weight:bf16=20 sum:bf16=60! y:fp8=30! row_scale:fp32=12! ");
  p = asked("layernorm", 3, 10);
  p.flags["bias"] = true;
  p.dtypes["out"] = DType::kFp32;
  EXPECT_EQ(names(complete(p)), "x:bf16=60 weight:bf16=20 bias:bf16=20 y:fp32=120! ");
  p = asked("map", 3, 10);
  p.texts["expr"] = "x * slope[m] + t[m,n]";
  p.args = {{"slope", DType::kFp32, {"m"}}, {"t", DType::kFp16, {"m", "n"}}, {"unused", DType::kFp16, {"n"}}};
  EXPECT_EQ(names(complete(p)), "x:bf16=60 slope:fp32=12 t:fp16=60 y:bf16=60! ");
}

TEST(RowsOp, RequiredIsEachBufferOnce) {
  const Problem p = complete(asked("softmax", 5, 100));
  const RequiredWork work = *op("softmax").required(p);
  EXPECT_EQ(work.dram_bytes, 2 * 5 * 100 * 2);
  EXPECT_EQ(work.exps, 500);
  EXPECT_EQ(work.mma_flops, 0);
}

TEST(RowsOp, ReducedKeepsColumnsAndTheRowsLeftOver) {
  const auto rows = [](int64_t count, int64_t cols) {
    const Problem p = complete(asked("softmax", count, cols)), r = op("softmax").reduced(p);
    EXPECT_EQ(r.dims.at("cols"), cols);
    return r.dims.at("rows");
  };
  EXPECT_EQ(rows(8192, 128), 64);
  EXPECT_EQ(rows(8193, 128), 65);
  EXPECT_EQ(rows(1023, 4096), 16 + 15);
  EXPECT_EQ(rows(3, 4097), 3);
  EXPECT_EQ(rows(4096, 131072), 4);
  EXPECT_EQ(rows(1, 1000003), 1);
}

// A problem only has the variants with something to split.
TEST(RowsOp, Variants) {
  const auto forms = [](const Problem& p) {
    std::string out;
    const auto all = op(p.op).variants(DataFiles(), complete(p));
    EXPECT_TRUE(all) << all.error().message;
    for (const Variant& v : *all) {
      out += v.name + ":";
      for (const Stage& s : v.stages) out += " " + s.name + "(" + s.buffers.at("X") + ")->" + s.output;
      out += std::to_string(v.temporaries.size()) + "; ";
    }
    return out;
  };
  Problem p = asked("rmsnorm", 8, 64);
  EXPECT_EQ(forms(p), "fused: rmsnorm(x)->y0; ");
  p.flags["residual"] = true;
  EXPECT_EQ(forms(p), "fused: rmsnorm(x)->y0; unfused: add(x)->sum norm(sum)->y0; ");
  p.texts["quant"] = "int8";
  EXPECT_EQ(forms(p), "fused: rmsnorm(x)->y0; unfused: add(x)->sum norm(sum)->normed quantise(normed)->y1; ");
  p.flags["residual"] = false;
  EXPECT_EQ(forms(p), "fused: rmsnorm(x)->y0; unfused: norm(x)->normed quantise(normed)->y1; ");
  EXPECT_EQ(forms(asked("softmax", 8, 8192)), "fused: softmax(x)->y0; ");
  EXPECT_EQ(forms(asked("softmax", 8, 8193)),
            "fused: softmax(x)->y0; split: partial(x)->partial_top combine(partial_top)->top normalise(x)->y4; ");
}

// Every default schedule is legal for any shape, with the smallest and the largest shared memory.
TEST(RowsOp, DefaultsAreLegal) {
  for (const int64_t smem : {49152, 232448})
    for (const char* name : {"rmsnorm", "layernorm", "softmax", "map"})
      for (const DType dtype : {smem < 65536 ? DType::kBf16 : DType::kFp32, DType::kFp16})
        for (const int64_t cols : {1, 3, 8, 63, 64, 1000, 4097, 8192, 16385, 50000, 131072, 2147418111})
          for (const int64_t rows : {1, 100}) {
            Problem p = asked(name, rows, cols);
            p.dtype = dtype;
            if (p.op == "map") p.texts["expr"] = "relu(x + bias[n])";
            if (p.op == "rmsnorm") p.flags["residual"] = true, p.texts["quant"] = "fp8";
            p = complete(p);
            const expr::Map device{{"smem_per_block", smem},     {"smem_per_sm", smem + 1024},
                                   {"regs_per_sm", 65536},       {"sms", 132},
                                   {"max_threads_per_sm", 2048}, {"arch", 90}};
            const auto variants = op(name).variants(DataFiles(), p);
            ASSERT_TRUE(variants);
            const auto scope = problem_scope(op(name), p, device);
            ASSERT_TRUE(scope);
            for (const Variant& v : *variants)
              for (const Stage& s : v.stages) {
                const auto schedule = default_schedule(v, s, *scope, {});
                ASSERT_TRUE(schedule) << schedule.error().message;
                const auto checked = check_schedule(v, s, *schedule, *scope);
                if (const auto* rejected = std::get_if<Rejected>(&checked))
                  FAIL() << to_string(p) << ": " << s.name << " " << to_string(rejected->schedule) << ": "
                         << rejected->reason;
                if (const auto* error = std::get_if<Error>(&checked)) FAIL() << to_string(*error);
                ASSERT_TRUE(make_launch(s, std::get<Legal>(checked)));
              }
          }
}

/// Segments masked with the smallest number of the format instead of -infinity.
TEST(SplitSoftmax, CountsTheLeastNumbersToo) {
  for (const double least : {-0x1.fep127, -0x1.fffffep127}) {
    auto formulas = rows::formulas(rows::kSoftmax, {"softmax", {{"rows", 1}, {"cols", 16}}, DType::kFp32, {}, {}});
    ASSERT_TRUE(formulas) << formulas.error().message;
    const std::vector<pointwise::Estimate> row(16, {least, 0});
    const int64_t m = 0;
    const auto out = formulas->at("partial").evaluate(row, {&m, 1}, 0, nullptr);
    EXPECT_EQ(out[0][0].value, least);
    EXPECT_EQ(out[1][0].value, 16);
  }
}

}  // namespace
}  // namespace roofgen::rows_op_test

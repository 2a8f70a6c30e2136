// Tensor parallelism over a group of GPUs: divided work, exchanged data, and the resulting time.
#include <algorithm>

#include "model_support.h"

namespace roofgen::model_parallel_test {
namespace {

ModelRun on(const char* model, int64_t tp, int64_t batch = 16, const char* device = "h100-sxm") {
  ModelRequest q;
  q.tp = tp;
  q.batch = batch;
  return run_of(model_named(model), device_named(device), q);
}

TEST(ModelParallel, TwoGpusHoldHalfTheWeightsAndReadHalf) {
  const ModelRun one = on("generic-7b", 1), two = on("generic-7b", 2);
  EXPECT_DOUBLE_EQ(two.memory.weights, one.memory.weights / 2);
  EXPECT_DOUBLE_EQ(two.memory.kv_cache, one.memory.kv_cache / 2);
  EXPECT_DOUBLE_EQ(two.flops, one.flops / 2);
  EXPECT_DOUBLE_EQ(operator_named(two, "ffn up").explanation.work->kernels.front().operands[1].bytes(),
                   operator_named(one, "ffn up").explanation.work->kernels.front().operands[1].bytes() / 2);
  EXPECT_EQ(one.units, two.units);
}

TEST(ModelParallel, ExchangesTwoAllReducesALayer) {
  for (int64_t tp : {2, 4, 8}) {
    const ModelRun r = on("generic-7b", tp);
    // In a ring all-reduce, each GPU sends 2 (p - 1) / p of batch x d_model two-byte elements; the link has 450 GB/s
    // per direction.
    const double each = 2.0 * static_cast<double>(tp - 1) / static_cast<double>(tp) * 16 * 4096 * 2;
    EXPECT_DOUBLE_EQ(r.parallel.link_bytes, 32 * 2 * each);
    EXPECT_NEAR(r.parallel.collective_seconds, 32 * 2 * each / (0.8 * 450e9), 1e-12);
    EXPECT_EQ(operator_named(r, "all_reduce after o").regime, Regime::kNvlink);
    EXPECT_TRUE(operator_named(r, "all_reduce after o").collective);
  }
  EXPECT_EQ(on("generic-7b", 1).parallel.link_bytes, 0);
}

TEST(ModelParallel, ResidualsAreAddedToTheSumOfTheGroup) {
  const struct {
    const char *model, *product, *add;
    double elements;  // of a residual at batch 16
  } cases[] = {{"generic-7b", "o", "residual of o", 16 * 4096},
               {"generic-7b", "ffn down", "residual of ffn down", 16 * 4096},
               {"dit-xl-2", "proj", "residual of proj", 16 * 256 * 1152},
               {"dit-xl-2", "mlp down", "residual of mlp down", 16 * 256 * 1152}};
  const auto reads_it = [](const OperatorRun& o) {
    const auto& operands = o.explanation.work->kernels.front().operands;
    return std::any_of(operands.begin(), operands.end(), [](const OperandWork& x) { return x.name == "residual"; });
  };
  for (const auto& c : cases) {
    const ModelRun one = on(c.model, 1), two = on(c.model, 2);
    EXPECT_TRUE(reads_it(operator_named(one, c.product))) << c.add;
    EXPECT_TRUE(std::none_of(one.operators.begin(), one.operators.end(), [&](const OperatorRun& o) {
      return o.name == c.add;
    })) << c.add;
    // A partial sum cannot include the residual: every GPU adds it after the exchange, with two reads and a write of
    // two-byte elements.
    EXPECT_FALSE(reads_it(operator_named(two, c.product))) << c.add;
    const OperatorRun& add = operator_named(two, c.add);
    EXPECT_DOUBLE_EQ(add.dram_bytes, static_cast<double>(add.count) * 3 * 2 * c.elements);
    EXPECT_EQ((&add - 1)->name, std::string("all_reduce after ") + c.product);
  }
}

TEST(ModelParallel, SpeedUpStaysBelowItsBounds) {
  for (const char* model : {"generic-7b", "llama-3-8b", "llama-3-70b", "deepseek-r1"})
    for (int64_t tp : {2, 4, 8}) {
      const ModelRun r = on(model, tp);
      EXPECT_GT(r.parallel.speedup, 1) << model << tp;
      EXPECT_LT(r.parallel.speedup, r.parallel.amdahl_bound) << model << tp;
      EXPECT_LE(r.parallel.amdahl_bound, static_cast<double>(tp)) << model << tp;
      EXPECT_DOUBLE_EQ(r.parallel.amdahl_bound, amdahl_bound(1 - r.parallel.unsharded_share, static_cast<double>(tp)));
    }
}

TEST(ModelParallel, NormsAreNotDivided) {
  const ModelRun one = on("llama-3-8b", 1), eight = on("llama-3-8b", 8);
  EXPECT_DOUBLE_EQ(operator_named(one, "ffn norm").seconds, operator_named(eight, "ffn norm").seconds);
  EXPECT_FALSE(operator_named(eight, "ffn norm").sharded);
  EXPECT_GT(one.parallel.unsharded_share, 0);
  EXPECT_LT(one.parallel.unsharded_share, 0.01);
}

TEST(ModelParallel, EveryGpuHoldsTheWholeLatentCache) {
  EXPECT_DOUBLE_EQ(on("deepseek-r1", 8, 16, "b200").memory.kv_cache, on("deepseek-r1", 1, 16, "b200").memory.kv_cache);
  EXPECT_DOUBLE_EQ(on("llama-3-70b", 8).memory.kv_cache, on("llama-3-70b", 1).memory.kv_cache / 8);
}

TEST(ModelParallel, SeventyBillionParametersNeedAGroup) {
  const ModelRun one = on("llama-3-70b", 1), two = on("llama-3-70b", 2, 1), four = on("llama-3-70b", 4);
  EXPECT_FALSE(one.memory.fits());
  EXPECT_EQ(one.largest_batch, 0);
  ASSERT_FALSE(one.warnings.empty());
  EXPECT_NE(one.warnings[0].text.find("not even one sequence"), std::string::npos);
  EXPECT_TRUE(two.memory.fits());
  EXPECT_TRUE(four.memory.fits());
  EXPECT_GT(four.largest_batch, two.largest_batch);
}

std::string refusal(const char* model, const char* device, const ModelRequest& q) {
  const auto run = run_model(model_named(model), device_named(device), q);
  EXPECT_FALSE(run);
  return run ? "" : to_string(run.error());
}

TEST(ModelParallel, RefusesIndivisibleGroups) {
  ModelRequest q;
  q.tp = 3;
  EXPECT_NE(refusal("llama-3-8b", "h100-sxm", q).find("tp 3 does not divide"), std::string::npos);
  q.tp = 16;  // 8 key and value heads
  EXPECT_NE(refusal("llama-3-8b", "h100-sxm", q).find("tp 16 does not divide kv_heads = 8"), std::string::npos);
  q.tp = 0;
  EXPECT_NE(refusal("llama-3-8b", "h100-sxm", q).find("tp is 0; 1 to 1024 was expected"), std::string::npos);
}

TEST(ModelParallel, RefusesADeviceWithoutNvlink) {
  ModelRequest q;
  EXPECT_TRUE(run_model(model_named("generic-7b"), device_named("l4"), q));
  q.tp = 2;
  EXPECT_NE(refusal("generic-7b", "l4", q).find("l4 has no NVLink"), std::string::npos);
}

}  // namespace
}  // namespace roofgen::model_parallel_test

// The shipped models against their authors' published figures.
#include <algorithm>

#include "model_support.h"

namespace roofgen::model_catalogue_test {
namespace {

const std::vector<std::string> kReal = {"llama-2-7b", "llama-3-8b", "llama-3-70b", "deepseek-r1", "dit-xl-2"};

TEST(Models, AreShipped) {
  std::vector<std::string> expected = kReal;
  expected.push_back("generic-7b");
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(model_names(DataFiles()), expected);
}

TEST(Models, ParametersAreThePublishedOnes) {
  for (const std::string& name : kReal) {
    const Model m = model_named(name);
    ASSERT_GT(m.published_parameters, 0) << name;
    const auto parameters = parameter_count(m);
    ASSERT_TRUE(parameters) << to_string(parameters.error());
    EXPECT_NEAR(*parameters / m.published_parameters, 1, 0.001) << name;
  }
  // The Llamas' tensor sizes are published; the parameter counts must match.
  for (const char* name : {"llama-2-7b", "llama-3-8b", "llama-3-70b"}) {
    const Model m = model_named(name);
    EXPECT_EQ(*parameter_count(m), m.published_parameters) << name;
  }
}

TEST(Models, EveryPhaseAndStorageRuns) {
  const Device device = device_named("b200");
  for (const std::string& name : model_names(DataFiles())) {
    const Model m = model_named(name);
    for (const ModelPhase& phase : m.phases)
      for (const ModelDtypes& dtypes : m.dtypes)
        for (int64_t tp : {1, 8}) {
          SCOPED_TRACE(name + " " + phase.name + " " + dtypes.name + " " + std::to_string(tp));
          ModelRequest q;
          q.phase = phase.name;
          q.dtypes = dtypes.name;
          q.tp = tp;
          q.batch = 3;
          const ModelRun r = run_of(m, device, q);
          double share = 0;
          for (const OperatorRun& o : r.operators) share += o.share;
          EXPECT_NEAR(share, 1, 1e-9);
          ASSERT_TRUE(r.ai_limit && r.units_per_s_limit);
          EXPECT_GE(*r.ai_limit, r.arithmetic_intensity());
          EXPECT_GE(*r.units_per_s_limit,
                    (1 - 1e-9) * r.units_per_s());  // equal, up to rounding, where everything is already compute-bound
        }
  }
}

TEST(Models, StoredWeightsEqualTheProductsOperands) {
  // Weights are given twice, as storage and as operands, and both must agree. Experts and embeddings read less than
  // they store.
  for (const std::string& name : model_names(DataFiles())) {
    const Model m = model_named(name);
    for (const ModelPhase& phase : m.phases) {
      ModelRequest q;
      q.phase = phase.name;
      q.batch = 1 << 12;  // enough rows for every expert
      const ModelRun r = run_of(m, device_named("h200-sxm"), q);
      expr::Map params(m.params.begin(), m.params.end());
      params["tokens"] = int64_t{1} << 30;
      for (const auto& [let, e] : m.let) params[let] = *e.eval(params);
      for (const ModelOperator& o : m.operators) {
        if (!o.weights || (o.formula->op() != "gemm" && o.formula->op() != "grouped_gemm")) continue;
        for (const OperatorRun& x : r.operators) {
          if (x.name != o.name) continue;
          double read = 0;
          for (const OperandWork& operand : x.explanation.work->kernels.front().operands)
            if (operand.name == "B" || operand.name == "bias") read += operand.elements;
          EXPECT_EQ(read, *o.weights->elements.eval_number(params)) << name << " " << o.name;
        }
      }
    }
  }
}

TEST(Models, Llama2FeedForwardIsEightGibibytes) {
  // Three products of 4096 x 11008 in 32 layers with two bytes per element.
  const ModelRun r = run_of(model_named("llama-2-7b"), device_named("a100-sxm-80"), {});
  double bytes = 0;
  for (const char* name : {"gate, up", "down"})
    for (const OperandWork& o : operator_named(r, name).explanation.work->kernels.front().operands)
      if (o.name == "B") bytes += 32 * o.bytes();
  EXPECT_NEAR(bytes / 0x1p30, 8.06, 0.005);
}

TEST(Models, GroupedQueriesRaiseTheIntensityOfDecodeAttention) {
  const Device device = device_named("h100-sxm");
  EXPECT_NEAR(
      operator_named(run_of(model_named("llama-2-7b"), device, {}), "attention").explanation.arithmetic_intensity, 1,
      0.01);
  EXPECT_NEAR(
      operator_named(run_of(model_named("llama-3-8b"), device, {}), "attention").explanation.arithmetic_intensity, 4,
      0.02);
  EXPECT_NEAR(
      operator_named(run_of(model_named("llama-3-70b"), device, {}), "attention").explanation.arithmetic_intensity, 8,
      0.04);
}

TEST(Models, PrefillIsComputeBoundAndCountsTwoFlopsAParameter) {
  const Model m = model_named("llama-3-8b");
  ModelRequest q;
  q.phase = "prefill";
  q.length = 2048;
  const ModelRun r = run_of(m, device_named("h100-sxm"), q);
  EXPECT_EQ(r.regime, Regime::kCompute);
  EXPECT_FALSE(r.below_ridge());
  // Embedding rows are only looked up, and logits are computed for one position. The other weights multiply each token,
  // and attention adds 4 L^2/2 d.
  const double tables = 2 * 128256.0 * 4096, norms = 65 * 4096.0;
  const double attention = 32 * 32 * 4 * 128 * (2048.0 * 2049 / 2);
  EXPECT_DOUBLE_EQ(r.flops, 2 * 2048 * (m.published_parameters - tables - norms) + attention + tables);
}

TEST(Models, DeepSeekTouchesAsManyExpertsAsChanceAllows) {
  const Model m = model_named("deepseek-r1");
  const Device device = device_named("b200");
  const auto touched = [&](int64_t batch) {
    ModelRequest q;
    q.batch = batch;
    return operator_named(run_of(m, device, q), "experts down").explanation.work->dims.at("experts");
  };
  EXPECT_EQ(touched(1), 8);
  EXPECT_EQ(touched(2), 16);    // 15.75
  EXPECT_EQ(touched(32), 163);  // 256 (1 - (31/32)^32) = 163.3
  EXPECT_EQ(touched(4096), 256);
}

TEST(Models, DeepSeekActivates37BillionParameters) {
  // 36.6 G with the output head, by the published weight documentation; embedding rows and norms are not multiplied. A
  // short cache makes attention itself negligible.
  ModelRequest q;
  q.length = 1;
  const ModelRun r = run_of(model_named("deepseek-r1"), device_named("b200"), q);
  EXPECT_NEAR(r.flops / 2e9, 36.6, 0.1);
}

TEST(Models, DeepSeekStoredInFourBitsIsThePublishedCheckpointsSize) {
  const Model m = model_named("deepseek-r1");
  ModelRequest q;
  q.dtypes = "nvfp4";
  // FP4 weights with scales, attention and embeddings in BF16: the 4-bit checkpoint has about 400 GB, the FP8
  // checkpoint about 690 GB including 11.5 G parameters for multi-token prediction.
  EXPECT_NEAR(run_of(m, device_named("b200"), q).memory.weights / 1e9, 397, 1);
  q.dtypes = "fp8";
  EXPECT_NEAR(run_of(m, device_named("b200"), q).memory.weights / 1e9, 673, 1);
}

TEST(Models, LatentCacheIsSmall) {
  // 576 elements per token and layer, instead of 2 x 128 heads x 128.
  ModelRequest q;
  q.length = 1000;
  EXPECT_DOUBLE_EQ(run_of(model_named("deepseek-r1"), device_named("b200"), q).memory.kv_cache, 61 * 1000 * 576.0 * 2);
}

TEST(Models, DitActivatesTheConditioningBeforeItIsProjected) {
  ModelRequest q;
  q.batch = 8;
  const ModelRun r = run_of(model_named("dit-xl-2"), device_named("h200-sxm"), q);
  EXPECT_DOUBLE_EQ(operator_named(r, "conditioning silu").explanation.exps, 8 * 1152);
  EXPECT_DOUBLE_EQ(operator_named(r, "conditioning silu").dram_bytes, 2 * 8 * 1152 * 2);
  for (const char* name : {"adaLN", "final adaLN"}) EXPECT_EQ(operator_named(r, name).explanation.exps, 0) << name;
}

TEST(Models, NarrowFormatsOnADeviceWithoutThemAreNotedOnce) {
  const ModelRun widened = run_of(model_named("llama-3-8b"), device_named("v100-sxm2"), {});
  ASSERT_EQ(widened.notes.size(), 1u);
  EXPECT_EQ(widened.notes[0].rfind("v100-sxm2 has no bf16 matrix units", 0), 0u) << widened.notes[0];
  EXPECT_TRUE(run_of(model_named("llama-3-8b"), device_named("h100-sxm"), {}).notes.empty());
}

TEST(Models, DitMultiplyAddsAreThePapers) {
  const Model m = model_named("dit-xl-2");
  ModelRequest q;
  // The Gflops in the paper's Table 4 are multiply-adds: 118.64 at 256 x 256, 524.60 at 512 x 512.
  EXPECT_NEAR(run_of(m, device_named("h200-sxm"), q).flops / 2e9, 118.64, 0.05);
  q.length = 1024;
  EXPECT_NEAR(run_of(m, device_named("h200-sxm"), q).flops / 2e9, 524.60, 0.1);
}

}  // namespace
}  // namespace roofgen::model_catalogue_test

// The attention of `roofgen model` and the floor of `roofgen tune attention` are one bound: the same work, the same
// time.
#include <gtest/gtest.h>

#include <algorithm>

#include "roofline/analyses/model.h"
#include "tuner/work.h"

namespace roofgen::decode_floor_test {

namespace {

Problem attention(const OpWork& work) {
  const Op* op = *find_op("attention");
  Problem p;
  p.op = op->name();
  for (const char* dim : {"L", "kv_len", "d", "batch", "heads", "kv_heads"}) p.dims[dim] = work.dims.at(dim);
  p.flags["causal"] = work.flags.at("causal");
  return *op->complete(p);
}

/// Compares the attention of one step with the floor of the same problem, both without launches.
void expect_the_same_bound(const char* model_name, const char* phase, int64_t batch, int64_t length, int64_t tp) {
  SCOPED_TRACE(testing::Message() << model_name << " " << phase << " batch " << batch << " length " << length << " tp "
                                  << tp);
  const DataFiles files;
  const Device device = *load_device(files, "h200-sxm");
  ModelRequest request;
  request.phase = phase;
  request.batch = batch;
  request.length = length;
  request.tp = tp;
  request.roofs = RoofSet::kSustained;
  request.bandwidth_efficiency = request.compute_efficiency = 1;
  const auto run = run_model(*load_model(files, model_name), device, request);
  ASSERT_TRUE(run) << to_string(run.error());
  const auto o = std::find_if(run->operators.begin(), run->operators.end(),
                              [](const OperatorRun& x) { return x.name == "attention"; });
  ASSERT_NE(o, run->operators.end());
  const OpWork& work = *o->explanation.work;
  const Problem problem = attention(work);
  const Op* op = *find_op("attention");
  const WorkFormula formula = *WorkFormula::load(files, "attention");
  const auto required = required_work(*op, &formula, problem);
  ASSERT_TRUE(required);
  const auto near = [](double a, double b) { EXPECT_NEAR(a / b, 1, 0.01) << a << " against " << b; };
  near(work.mma_flops(), required->mma_flops);
  near(work.exps(), required->exps);
  near(work.dram_bytes(), required->dram_bytes);
  // The op itself counts its buffers once each, and all pairs.
  double bytes = 0;
  for (const Buffer& b : op->buffers(problem)) bytes += static_cast<double>(b.bytes);
  near(work.dram_bytes(), bytes);
  const ProblemFloor floor = problem_floor(device, *required, problem.dtype, RoofSet::kSustained);
  near(o->seconds / static_cast<double>(o->count), floor.seconds - 1e-6 * device.at("launch_us"));
}

}  // namespace

TEST(DecodeFloor, EqualsTheAttentionOfAModel) {
  for (const char* model : {"llama-3-8b", "llama-3-70b"})
    for (const int64_t batch : {1, 8, 64, 256})
      for (const int64_t kv : {512, 2048, 8192, 131072}) expect_the_same_bound(model, "decode", batch, kv, 1);
  expect_the_same_bound("llama-3-70b", "decode", 32, 8192, 4);
}

TEST(DecodeFloor, AndOfAPrompt) {
  for (const char* model : {"llama-3-8b", "llama-3-70b"}) expect_the_same_bound(model, "prefill", 1, 4096, 1);
}

}  // namespace roofgen::decode_floor_test

// The what-if of attention: qk > scale > mask > softmax > pv. Its variants are partitions of these five steps; a partition
// without a variant says why there is none.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "generator/suggest.h"
#include "tuner/whatif/whatif.h"

namespace roofgen {
namespace {

const std::vector<std::string> kSteps{"qk", "scale", "mask", "softmax", "pv"};
constexpr size_t kSoftmax = 3;

struct Known {
  const char* variant;
  std::vector<size_t> cuts;
};
const std::vector<Known>& known_variants() {
  static const std::vector<Known> table = {{"fused", {}}, {"unfused", {2, 3}}};
  return table;
}

std::string plan_name(const std::vector<size_t>& cuts) {
  std::string out = kSteps[0];
  for (size_t i = 1; i < kSteps.size(); ++i)
    out += (std::find(cuts.begin(), cuts.end(), i - 1) != cuts.end() ? " | " : "+") + kSteps[i];
  return out;
}

/// Why there is no kernel of the steps [first, last); empty when there is one.
std::string broken(size_t first, size_t last, int64_t keys) {
  // The online softmax of all five steps at once needs no row of scores; any other kernel does.
  if (first == 0 && last == kSteps.size()) return "";
  if (first == 0 && last > kSoftmax)
    return fmt::format("a row reduction across CTAs: softmax needs all {} scores of a row, which the CTAs of qk share by tiles; only a kernel that goes on to pv can do without them", keys);
  if (first > 0 && first <= kSoftmax && last == kSteps.size())
    return fmt::format("no template: from {} to pv a kernel would load scores as matrix fragments and run the fused kernel's online softmax on them; it is not generated", kSteps[first]);
  return "";
}

std::vector<size_t> cuts_of(uint32_t mask) {
  std::vector<size_t> out;
  for (size_t i = 0; i + 1 < kSteps.size(); ++i)
    if (mask >> i & 1) out.push_back(i);
  return out;
}

std::string why_none(const std::vector<size_t>& cuts, int64_t keys) {
  size_t first = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    const size_t last = i < cuts.size() ? cuts[i] + 1 : kSteps.size();
    if (const std::string why = broken(first, last, keys); !why.empty()) return why;
    first = last;
  }
  return "no template: scale and mask are one or two instructions a score, and a kernel of their own would read and write all scores once more";
}

/// Bytes of the scores, or the probabilities: what crosses an edge but the last step's output.
double score_bytes(const Problem& p) {
  double n = size_of(p.dtype);
  for (const char* dim : {"batch", "heads", "L", "kv_len"}) n *= static_cast<double>(p.dims.at(dim));
  return n;
}

PartitionReport partition_of(const VariantReport& v, const std::vector<size_t>& cuts, const WhatIfReport& report) {
  PartitionReport out;
  out.name = plan_name(cuts);
  out.cuts = cuts;
  if (!v.available) out.failed = v.rejected_because;
  else if (!v.verified) out.failed = fmt::format("nothing was verified of the variant {}", v.name);
  if (!out.failed.empty()) return out;
  out.kernels = v.kernels;
  out.together = v.verification;
  out.seconds = v.seconds;
  out.dram_bytes = v.dram_bytes;
  out.l2_bytes = v.l2_bytes;
  out.flops = v.flops;
  double work = 0, kernel = 0;
  for (const KernelReport& k : v.kernels) {
    work += k.time.work_seconds;
    kernel += k.time.kernel_seconds;
  }
  if (work > 0) {
    out.waste = work / report.floor.seconds;
    out.idle = kernel / work;
    out.stall = v.seconds / kernel;
  }
  for (size_t i = 0; i < cuts.size(); ++i) {
    const double bytes = score_bytes(report.problem);
    // All scores pass between two reads of one of them: the tuner's rule for temporaries.
    out.intermediates.push_back({cuts[i], bytes, bytes * static_cast<double>(cuts.size()), v.kernels[i].intermediate_in_l2});
  }
  return out;
}

}  // namespace

Result<WhatIfReport> whatif_attention(const WhatIfContext& c, const Problem& problem, const std::string& plan, const TuneOptions& options) {
  const auto started = std::chrono::steady_clock::now();
  ROOFGEN_TRY(const Op* op, find_op("attention"));
  WhatIfReport report;
  report.title = "qk > scale > mask > softmax > pv";
  report.steps = kSteps;
  if (!plan.empty()) {
    std::string wanted;
    for (char ch : plan)
      if (!std::isspace(static_cast<unsigned char>(ch))) wanted += ch == '|' ? std::string(" | ") : std::string(1, ch);
    std::vector<std::string> names;
    for (uint32_t mask = 0; mask < 16; ++mask) names.push_back(plan_name(cuts_of(mask)));
    if (std::find(names.begin(), names.end(), wanted) == names.end())
      return Error{Exit::kUsage, fmt::format("--plan {}: no partition of {}{}", plan, report.title, did_you_mean(wanted, names))};
    report.forced = wanted;
  }
  ROOFGEN_TRY(const TuneResult tuned, tune({c.files, *op, c.device, c.compiler, c.executor, c.gpu, c.store}, problem, options));
  const TuneReport& r = tuned.report;
  report.problem = problem;
  report.device = r.device;
  report.executor_device = r.executor_device;
  report.arch = r.arch;
  report.compiler = r.compiler;
  report.times = r.time_origin();
  report.floor = r.floor_sustained;
  report.considered = r.considered;
  report.compiled = r.compiled;
  report.compiled_now = r.compiled_now;
  report.evaluated_now = r.evaluated_now;
  report.interrupted = r.interrupted;
  for (const VariantReport& v : r.variants) report.parts += v.kernels.size();
  for (uint32_t mask = 0; mask < 16; ++mask) {
    const std::vector<size_t> cuts = cuts_of(mask);
    const auto known = std::find_if(known_variants().begin(), known_variants().end(), [&](const Known& k) { return k.cuts == cuts; });
    const VariantReport* v = known == known_variants().end() ? nullptr : r.find(known->variant);
    if (v) {
      report.partitions.push_back(partition_of(*v, cuts, report));
      continue;
    }
    PartitionReport none;
    none.name = plan_name(cuts);
    none.cuts = cuts;
    none.illegal = why_none(cuts, problem.dims.at("kv_len"));
    report.partitions.push_back(std::move(none));
  }
  conclude(report);
  report.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
  return report;
}

}  // namespace roofgen

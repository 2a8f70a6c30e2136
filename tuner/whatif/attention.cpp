// The what-if of attention: qk > scale > mask > softmax > pv.
#include "generator/ops/attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <ranges>

#include "base/suggest.h"
#include "generator/ops/attention_parts.h"
#include "generator/ops/chain_op.h"
#include "roofline/work.h"
#include "tuner/whatif/subject.h"
#include "tuner/work.h"

namespace roofgen {
namespace {

/// Candidates: of the fused kernel (as in `tune`), of a searched part, and of a pointwise part.
constexpr uint64_t kWholeEvals = 36, kSearchEvals = 14, kPointwiseEvals = 6;

std::string joined(const std::vector<std::string>& steps, const char* between) {
  std::string out;
  for (const std::string& s : steps) out += (out.empty() ? "" : between) + s;
  return out;
}

std::string without_spaces(std::string text) {
  std::erase_if(text, [](unsigned char ch) { return std::isspace(ch); });
  return text;
}

/// The variants of `tune` beside `fused` that keep the scores on the chip, on a device with `sms` SMs: other kernels of
/// all steps, and splits of the keys.
Result<std::vector<Variant>> one_pass_variants(const DataFiles& files, const Device& device, double sms,
                                               const Problem& problem) {
  Device sized = device;
  sized.cells["sms"].value = sms;
  ROOFGEN_TRY(ProblemVariants at, variants_of(files, attention_op(), limits(sized), problem));
  std::erase_if(at.variants, [](const Variant& v) { return !v.fused || v.name == "fused"; });
  return std::move(at.variants);
}

/// Split keys leave parts of O in memory.
bool splits_keys(const Variant& v) { return !v.temporaries.empty(); }

bool has_parts(const Partition& p) { return p.variant && p.variant->passed_bytes > 0; }

/// Why no variant splits the keys. `ctas`: of the kernel of all steps.
Result<std::string> why_not_split(const DataFiles& files, const Device& device, const Problem& problem, double ctas) {
  ROOFGEN_TRY(const std::vector<Variant> on_more_sms, one_pass_variants(files, device, 1e9, problem));
  if (std::none_of(on_more_sms.begin(), on_more_sms.end(), splits_keys))
    return fmt::format("the keys are not split: kv_len={} is too short", problem.dims.at("kv_len"));
  return fmt::format("the keys are not split: the kernel of all steps fills the {:g} SMs without it{}",
                     device.at("sms"), ctas > 0 ? fmt::format(" ({:g} CTAs)", ctas) : "");
}

/// The name in reports of the partition --plan; empty for none.
Result<std::string> plan_of(const std::string& text, const AttentionSubject& subject, const DataFiles& files,
                            const Device& device, const Problem& problem) {
  const std::string wanted = without_spaces(text);
  if (wanted.empty()) return wanted;
  ROOFGEN_TRY(const std::vector<Partition> all, subject.partitions(files, device));
  std::vector<std::string> names;
  bool splits = false;
  for (const Partition& p : all) {
    if (without_spaces(p.name) == wanted) return p.name;
    names.push_back(p.name);
    splits |= has_parts(p);
  }
  const std::vector<std::string> steps = subject.steps();
  std::string why = did_you_mean(text, names);
  if (wanted.find("mask") != std::string::npos && std::find(steps.begin(), steps.end(), "mask") == steps.end()) {
    why = "; without --causal or --mask nothing is masked";
  } else if (wanted.find("split") != std::string::npos && !splits) {
    ROOFGEN_TRY(why, why_not_split(files, device, problem, 0));
    why = "; " + why;
  }
  return Error{Exit::kUsage, fmt::format("--plan {}: no partition of {}{}", text, joined(steps, " > "), why)};
}

}  // namespace

AttentionSubject::AttentionSubject(const Problem& problem) : problem_(problem), steps_(attention_steps(problem)) {}

std::string AttentionSubject::name(Part part) const { return attention_part_name(problem_, part); }

/// Each split<n> and merged<n> of `tune` is a partition: "qk+scale+softmax+pv split16 | combine".
Result<std::vector<Partition>> AttentionSubject::partitions(const DataFiles& files, const Device& device) const {
  std::vector<Partition> out = attention_partitions(problem_);
  const Part all{0, steps_.size()};
  ROOFGEN_TRY(const std::vector<Variant> variants, one_pass_variants(files, device, device.at("sms"), problem_));
  ROOFGEN_TRY(const expr::Map scope, problem_scope(attention_op(), problem_, limits(device)));
  for (const Variant& v : variants) {
    Partition p{{all}, name(all) + " " + v.name, ""};
    for (size_t i = 1; i < v.stages.size(); ++i) p.name += " | " + v.stages[i].name;
    p.variant = {v.name, 0, default_ctas(ranking_device(device), v, scope, problem_.dtype)};
    ROOFGEN_TRY(const std::vector<Buffer> passed, temporaries(v, scope));
    for (const Buffer& b : passed)
      if (!b.zeroed) p.variant->passed_bytes += static_cast<double>(b.bytes);  // counters are no parts
    out.push_back(std::move(p));
  }
  return out;
}

Result<RequiredWork> AttentionSubject::required(const DataFiles& files) const {
  ROOFGEN_TRY(const WorkFormula formula, WorkFormula::load(files, attention_op().name()));
  return required_work(attention_op(), &formula, problem_);
}

Result<PlanProblem> AttentionSubject::make(const std::vector<Part>& plan) const {
  auto op = std::make_unique<AttentionParts>(problem_, plan);
  Problem problem = op->problem_of(problem_);
  return PlanProblem{std::move(op), std::move(problem)};
}

/// Kernels of one template differ by a few instructions per score: only the simplest is searched.
Part AttentionSubject::leader(Part part) const {
  const size_t softmax = this->softmax();
  if (is_whole(part) || part.first > softmax) return part;
  if (part.first == 0) return {0, 1};
  if (part.last <= softmax) return {1, 2};
  return {softmax, part.last};
}

uint64_t AttentionSubject::evals(Part part, uint64_t asked) const {
  if (is_whole(part)) return asked > 0 ? asked : kWholeEvals;
  const uint64_t search = asked > 0 ? asked : kSearchEvals;
  if (!(leader(part) == part)) return std::min(search, kPartEvals);
  return part.last <= softmax() && part.first > 0 ? std::min(search, kPointwiseEvals) : search;
}

const Op* AttentionSubject::whole() const { return &attention_op(); }

double AttentionSubject::value_bytes(size_t step, Part kernel) const {
  return attention_value_bytes(problem_, step, kernel);
}

Result<WhatIfReport> whatif_attention(const TuneResources& context, const Problem& problem, const std::string& plan,
                                      const TuneOptions& options) {
  if (problem.texts.count("rotary") || problem.flags.count("append") || problem.dtypes.count("kv"))
    return Error{Exit::kUsage,
                 "whatif attention does not divide --rotary, --append or --kv-dtype yet; tune compares them with a "
                 "kernel of their own"};
  if (problem.dtype == DType::kFp8)
    return Error{
        Exit::kUsage,
        "whatif attention has no kernels of --dtype fp8 that end between its steps; bf16 or fp16 was expected"};
  const AttentionSubject subject(problem);
  ROOFGEN_TRY(const std::string wanted, plan_of(plan, subject, context.files, context.device, problem));
  ROOFGEN_TRY(WhatIfReport report, search(context, subject, joined(subject.steps(), " > "), problem, wanted, options));
  if (subject.steps().size() == 4) report.notes.push_back("the step mask is left out: it needs --causal or --mask");
  ROOFGEN_TRY(const std::vector<Partition> all, subject.partitions(context.files, context.device));
  if (std::none_of(all.begin(), all.end(), has_parts)) {
    const PartitionReport* whole = report.find(subject.name({0, subject.steps().size()}));
    const double ctas = whole && whole->timed() ? whole->kernels[0].work.ctas : 0;
    ROOFGEN_TRY(report.notes.emplace_back(), why_not_split(context.files, context.device, problem, ctas));
  }
  return report;
}

// ---- The what-if of a chain ------------------------------------------------------------------------

std::vector<std::string> ChainSubject::steps() const {
  std::vector<std::string> out;
  for (const ChainStep& s : chain_.steps()) out.push_back(s.label);
  return out;
}

Result<std::vector<Partition>> ChainSubject::partitions(const DataFiles& files, const Device&) const {
  int64_t widest = 1;  // columns that a CTA of a gemm holds, at most
  if (chain_.has_gemm()) {
    ROOFGEN_TRY(const std::vector<Variant> products, one_kernel_products(files));
    for (const Variant& product : products)
      for (const Param& p : product.stages[0].params)
        if (p.name == "BN")
          for (const ParamValue& v : p.values) widest = std::max(widest, std::get<int64_t>(v));
  }
  return roofgen::partitions(chain_, chain_columns(problem_), widest);
}

Result<RequiredWork> ChainSubject::required(const DataFiles&) const {
  std::vector<Part> each;
  for (size_t i = 0; i < chain_.size(); ++i) each.push_back({i, i + 1});
  ROOFGEN_TRY(const auto whole, ChainOp::make(chain_, each));
  return *whole->required(problem_);
}

Result<PlanProblem> ChainSubject::make(const std::vector<Part>& plan) const {
  ROOFGEN_TRY(auto op, ChainOp::make(chain_, plan));
  Problem problem = op->problem_of(problem_);
  return PlanProblem{std::move(op), std::move(problem)};
}

/// Kernels of one template differ by a few instructions per element: only one is searched. Of gemms the bare one; a row
/// reduction in the epilogue needs tiles as wide as the row, which may be slow for the bare gemm. Of other parts, with
/// row reductions and without, the one with the most steps.
Part ChainSubject::leader(Part part) const {
  const auto is = [&](size_t step, ChainStep::Kind kind) { return chain_.steps()[step].kind == kind; };
  const auto reduces = [&](Part p) {
    return std::ranges::any_of(std::views::iota(p.first, p.last),
                               [&](size_t i) { return is(i, ChainStep::Kind::kRow); });
  };
  if (is(part.first, ChainStep::Kind::kGemm)) return reduces(part) ? part : Part{0, 1};
  if (reduces(part)) return {chain_.has_gemm() ? size_t{1} : 0, chain_.size()};
  while (part.first > (chain_.has_gemm() ? 1 : 0) && !reduces({part.first - 1, part.first})) --part.first;
  while (part.last < chain_.size() && !reduces({part.last, part.last + 1})) ++part.last;
  return part;
}

uint64_t ChainSubject::evals(Part part, uint64_t asked) const {
  const uint64_t search = asked > 0 ? asked : kMainLoopEvals;
  return chain_.has_gemm() && part == Part{0, 1} ? search : std::min(search, kPartEvals);
}

double ChainSubject::value_bytes(size_t step, Part) const {
  return static_cast<double>(chain_rows(problem_)) * static_cast<double>(chain_columns(problem_)) *
         size_of(chain_.steps()[step].dtype);
}

Result<WhatIfReport> whatif_chain(const TuneResources& context, const Chain& chain, const Problem& problem,
                                  const std::vector<Part>& plan, const TuneOptions& options) {
  std::string name;
  for (const Part& part : plan) name += (name.empty() ? "" : " | ") + chain.name(part);
  ROOFGEN_TRY(WhatIfReport report,
              search(context, ChainSubject(chain, problem), problem.texts.at(kChain), problem, name, options));
  const PartitionReport* best = report.best();
  if (chain.has_gemm() && best && best->kernels[0].work.ctas < context.device.at("sms"))
    report.notes.push_back(
        fmt::format("{} fills {:g} of {:g} SMs: kernels that split the sum over K, as some of tune gemm, take two "
                    "launches and are "
                    "no part of a chain",
                    best->kernels[0].stage, best->kernels[0].work.ctas, context.device.at("sms")));
  return report;
}

}  // namespace roofgen

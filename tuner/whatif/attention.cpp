// The what-if of attention: qk > scale > mask > softmax > pv.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

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

/// The name in reports of the partition --plan; empty for none.
Result<std::string> plan_of(const std::string& text, const Problem& problem) {
  std::string wanted;
  for (char ch : text)
    if (!std::isspace(static_cast<unsigned char>(ch))) wanted += ch == '|' ? std::string(" | ") : std::string(1, ch);
  if (wanted.empty()) return wanted;
  std::vector<std::string> names;
  for (const Partition& p : attention_partitions(problem)) names.push_back(p.name);
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return wanted;
  const std::vector<std::string> steps = attention_steps(problem);
  const bool maskless =
      wanted.find("mask") != std::string::npos && std::find(steps.begin(), steps.end(), "mask") == steps.end();
  return Error{Exit::kUsage,
               fmt::format("--plan {}: no partition of {}{}", text, joined(steps, " > "),
                           maskless ? "; without --causal or --mask nothing is masked" : did_you_mean(wanted, names))};
}

}  // namespace

AttentionSubject::AttentionSubject(const Problem& problem) : problem_(problem), steps_(attention_steps(problem)) {}

std::string AttentionSubject::name(Part part) const { return attention_part_name(problem_, part); }

Result<std::vector<Partition>> AttentionSubject::partitions(const DataFiles&) const {
  return attention_partitions(problem_);
}

Result<RequiredWork> AttentionSubject::required(const DataFiles& files) const {
  ROOFGEN_TRY(const Op* op, find_op("attention"));
  ROOFGEN_TRY(const WorkFormula formula, WorkFormula::load(files, op->name()));
  return required_work(*op, &formula, problem_);
}

Result<PlanProblem> AttentionSubject::make(const std::vector<Part>& plan, const std::vector<Point>& points) const {
  auto op = std::make_unique<AttentionParts>(problem_, plan, points);
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

/// The whole is searched as the variant `fused`.
Result<std::vector<OtherVariant>> AttentionSubject::untried(const DataFiles& files, const Device& device,
                                                            Part part) const {
  std::vector<OtherVariant> out;
  if (!is_whole(part)) return out;
  ROOFGEN_TRY(const Op* op, find_op("attention"));
  ROOFGEN_TRY(const std::vector<Variant> variants, op->variants(files, problem_));
  ROOFGEN_TRY(const expr::Map scope, problem_scope(*op, problem_, limits(device)));
  for (const Variant& v : variants)
    if (v.fused && v.name != "fused")
      out.push_back(
          {v.name, true, default_ctas(ranking_device(device), v, scope, problem_.dtype), "not tried by whatif"});
  return out;
}

double AttentionSubject::value_bytes(size_t step, Part kernel) const {
  return attention_value_bytes(problem_, step, kernel);
}

Result<WhatIfReport> whatif_attention(const TuneResources& context, const Problem& problem, const std::string& plan,
                                      const TuneOptions& options) {
  const AttentionSubject subject(problem);
  ROOFGEN_TRY(const std::string wanted, plan_of(plan, problem));
  ROOFGEN_TRY(WhatIfReport report, search(context, subject, joined(subject.steps(), " > "), problem, wanted, options));
  if (subject.steps().size() == 4) report.notes.push_back("the step mask is left out: it needs --causal or --mask");
  return report;
}

// ---- The what-if of a chain ------------------------------------------------------------------------

std::vector<std::string> ChainSubject::steps() const {
  std::vector<std::string> out;
  for (const ChainStep& s : chain_.steps()) out.push_back(s.label);
  return out;
}

Result<std::vector<Partition>> ChainSubject::partitions(const DataFiles& files) const {
  int64_t widest = 1;  // columns that a CTA of a gemm holds, at most
  if (chain_.has_gemm()) {
    ROOFGEN_TRY(const Stage gemm, load_stage(files, "stages/gemm.json"));
    for (const Param& p : gemm.params)
      if (p.name == "BN")
        for (const ParamValue& v : p.values) widest = std::max(widest, std::get<int64_t>(v));
  }
  return roofgen::partitions(chain_, chain_columns(problem_), widest);
}

Result<RequiredWork> ChainSubject::required(const DataFiles&) const {
  std::vector<Part> each;
  for (size_t i = 0; i < chain_.size(); ++i) each.push_back({i, i + 1});
  ROOFGEN_TRY(const auto whole, ChainOp::make(chain_, {each}));
  return *whole->required(problem_);
}

Result<PlanProblem> ChainSubject::make(const std::vector<Part>& plan, const std::vector<Point>& points) const {
  ROOFGEN_TRY(auto op, ChainOp::make(chain_, {plan}, points));
  Problem problem = op->problem_of(problem_);
  return PlanProblem{std::move(op), std::move(problem)};
}

Part ChainSubject::leader(Part part) const {
  const auto begin = chain_.steps().begin();
  const bool gemm = chain_.steps()[part.first].kind == ChainStep::Kind::kGemm;
  // A row reduction in the epilogue needs tiles as wide as the row, which may be slow for the bare gemm.
  const bool reduces =
      std::any_of(begin + static_cast<std::ptrdiff_t>(part.first), begin + static_cast<std::ptrdiff_t>(part.last),
                  [](const ChainStep& s) { return s.kind == ChainStep::Kind::kRow; });
  return gemm && !reduces ? Part{0, 1} : part;
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
  return search(context, ChainSubject(chain, problem), problem.texts.at("chain"), problem, name, options);
}

}  // namespace roofgen

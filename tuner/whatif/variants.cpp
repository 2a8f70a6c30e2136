// The what-if of an op whose variants are the partitions: its data has a fused and a separate form.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/suggest.h"
#include "roofline/work.h"
#include "tuner/whatif/subject.h"
#include "tuner/work.h"

namespace roofgen {

Result<VariantsSubject> VariantsSubject::make(const Op& op, const Problem& problem, const DataFiles& files,
                                              const Device& device) {
  VariantsSubject out(op, problem);
  ROOFGEN_TRY(const ProblemVariants at, variants_of(files, op, limits(device), problem));
  const Variant* cut = nullptr;
  for (const Variant& v : at.variants)
    if (!v.fused && (!cut || v.stages.size() > cut->stages.size())) cut = &v;
  if (!cut || cut->stages.size() < 2)
    return Error{Exit::kUsage, fmt::format("{} has no variant of several kernels for this problem: there is nothing to "
                                           "fuse; tune compares {}",
                                           op.name(), fmt::join(names_of(at.variants), ", "))};
  for (const Stage& s : cut->stages) out.steps_.push_back(s.name);
  for (const Variant& v : at.variants) {
    const bool same = std::ranges::equal(v.stages, out.steps_, {}, &Stage::name);
    if (!v.fused && !same) {
      out.others_.push_back(v.name);
      continue;
    }
    Partition p;
    for (size_t i = 0; same && i < out.steps_.size(); ++i) p.parts.push_back({i, i + 1});
    if (!same) p.parts.push_back({0, out.steps_.size()});
    for (const Part& part : p.parts) p.name += (p.name.empty() ? "" : " | ") + out.name(part);
    if (std::ranges::count(out.partitions_, p.name, &Partition::name) > 0) p.name += " " + v.name;
    p.variant = {v.name, 0, default_ctas(ranking_device(device), v, at.scope, problem.dtype)};
    out.partitions_.push_back(std::move(p));
  }
  return out;
}

std::string VariantsSubject::name(Part part) const {
  return fmt::format("{}", fmt::join(steps_.begin() + static_cast<std::ptrdiff_t>(part.first),
                                     steps_.begin() + static_cast<std::ptrdiff_t>(part.last), "+"));
}

Result<std::vector<Partition>> VariantsSubject::partitions(const DataFiles&, const Device&) const {
  return partitions_;
}

Result<RequiredWork> VariantsSubject::required(const DataFiles& files) const {
  std::optional<WorkFormula> formula;
  if (files.read("work/" + op_->name() + ".json")) {
    ROOFGEN_TRY(formula, WorkFormula::load(files, op_->name()));
  }
  return required_work(*op_, formula ? &*formula : nullptr, *problem_);
}

/// Every partition is a variant: none is made of kernels that were tuned alone.
Result<PlanProblem> VariantsSubject::make(const std::vector<Part>&) const {
  return Error{Exit::kFailed, op_->name() + " has no kernels of single steps"};
}

Result<WhatIfReport> whatif_variants(const TuneResources& context, const Op& op, const Problem& problem,
                                     const std::string& plan, const TuneOptions& options) {
  ROOFGEN_TRY(const VariantsSubject subject, VariantsSubject::make(op, problem, context.files, context.device));
  ROOFGEN_TRY(const std::vector<Partition> all, subject.partitions(context.files, context.device));
  std::vector<std::string> names;
  for (const Partition& p : all) names.push_back(p.name);
  if (!plan.empty() && std::ranges::count(names, plan) == 0)
    return Error{Exit::kUsage,
                 fmt::format("--plan {}: no partition of {}{}", plan, op.name(), did_you_mean(plan, names))};
  const std::string title = fmt::format("{}", fmt::join(subject.steps(), " > "));
  ROOFGEN_TRY(WhatIfReport report, search(context, subject, title, problem, plan, options));
  if (!subject.others().empty())
    report.notes.push_back(fmt::format("{} cut otherwise; tune compares them", fmt::join(subject.others(), ", ")));
  return report;
}

}  // namespace roofgen

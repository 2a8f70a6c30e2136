// The what-if of a chain. Gemms with an epilogue try the best schedules of the bare gemm.
#include <algorithm>

#include "generator/ops/chain_op.h"
#include "tuner/whatif/subject.h"

namespace roofgen {

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

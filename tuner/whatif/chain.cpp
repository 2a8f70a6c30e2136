// The what-if of a chain: its parts one by one, then the partitions made of them.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "generator/ops/chain_op.h"
#include "tuner/evaluation_json.h"
#include "tuner/verify.h"
#include "tuner/whatif/compose.h"
#include "tuner/whatif/whatif.h"
#include "tuner/work.h"

namespace roofgen {
namespace {

class ChainSearch {
 public:
  ChainSearch(const WhatIfContext& context, const Chain& chain, const Problem& problem, const TuneOptions& options)
      : context_(context), chain_(chain), problem_(problem), options_(options) {}

  Result<WhatIfReport> run(const std::vector<Part>& plan) {
    ROOFGEN_TRY(const int64_t widest, widest_tile());
    const std::vector<Partition> all = partitions(chain_, chain_columns(problem_), widest);
    describe();
    ROOFGEN_CHECK(set_floor());
    ROOFGEN_CHECK(tune_parts(all));
    const ComposeContext compose_context{chain_, context_.device, chain_rows(problem_), chain_columns(problem_), report_.floor.seconds, chain_.dtype()};
    for (const Partition& p : all) {
      report_.partitions.push_back(compose(compose_context, p, tuned_));
      if (p.parts == plan) report_.forced = p.name;
    }
    conclude(report_);
    ROOFGEN_CHECK(verify_together(all));
    report_.interrupted = stopped();
    report_.elapsed_s = seconds_since_start();
    return std::move(report_);
  }

 private:
  bool stopped() const { return options_.stop && options_.stop->load(); }
  double seconds_since_start() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count(); }

  TuneContext tuning(const Op& op) const { return {context_.files, op, context_.device, context_.compiler, context_.executor, context_.gpu, context_.store}; }

  /// The most columns that a CTA of a gemm holds.
  Result<int64_t> widest_tile() const {
    if (!chain_.has_gemm()) return int64_t{1};
    ROOFGEN_TRY(const Stage gemm, load_stage(context_.files, "stages/gemm.json"));
    int64_t widest = 0;
    for (const Param& p : gemm.params)
      if (p.name == "BN")
        for (const ParamValue& v : p.values) widest = std::max(widest, std::get<int64_t>(v));
    return widest;
  }

  void describe() {
    report_.problem = problem_;
    report_.title = problem_.texts.at("chain");
    for (const ChainStep& s : chain_.steps()) report_.steps.push_back(s.label);
    report_.device = context_.device;
    report_.compiler = context_.compiler.description();
    report_.matrix_flops = chain_.has_gemm();
  }

  Result<void> set_floor() {
    std::vector<Part> each;
    for (size_t i = 0; i < chain_.size(); ++i) each.push_back({i, i + 1});
    ROOFGEN_TRY(const auto whole, ChainOp::make(chain_, {each}));
    report_.floor = problem_floor(context_.device, *whole->required(problem_), chain_.dtype(), RoofSet::kSustained);
    return {};
  }

  /// The distinct parts of all legal partitions, the bare gemm first: the others start from what it finds.
  std::vector<Part> distinct_parts(const std::vector<Partition>& all) const {
    std::vector<Part> out;
    for (const Partition& p : all)
      for (const Part& part : p.parts)
        if (p.illegal.empty() && std::find(out.begin(), out.end(), part) == out.end()) out.push_back(part);
    std::sort(out.begin(), out.end(), [](Part a, Part b) { return std::pair(a.first, a.last) < std::pair(b.first, b.last); });
    return out;
  }

  Result<void> tune_parts(const std::vector<Partition>& all) {
    const std::vector<Part> parts = distinct_parts(all);
    for (const Part& part : parts) {
      if (options_.progress) options_.progress("tuning parts", tuned_.size(), parts.size());
      if (stopped() || (options_.time_limit_s > 0 && seconds_since_start() > options_.time_limit_s)) break;
      ROOFGEN_CHECK(tune_part(part));
    }
    report_.parts = tuned_.size();
    return {};
  }

  Result<void> tune_part(Part part) {
    const bool gemm = chain_.steps()[part.first].kind == ChainStep::Kind::kGemm;
    const bool main_loop = gemm && part.size() == 1;
    const bool reduces = std::any_of(chain_.steps().begin() + static_cast<std::ptrdiff_t>(part.first), chain_.steps().begin() + static_cast<std::ptrdiff_t>(part.last),
                                     [](const ChainStep& s) { return s.kind == ChainStep::Kind::kRow; });
    // A row reduction in the epilogue wants tiles as wide as the row, which need not be among the fastest of the bare gemm.
    const bool shares = gemm && !main_loop && !reduces && options_.strategy != "exhaustive";
    ROOFGEN_TRY(auto op, ChainOp::make(chain_, {{part}}, shares ? main_loop_ : std::vector<ChainOp::Point>{}));
    TuneOptions options = options_;
    const uint64_t search = options_.evals > 0 ? options_.evals : kMainLoopEvals;
    options.evals = main_loop ? search : std::min(search, kPartEvals);
    options.progress = nullptr;
    if (options_.time_limit_s > 0) options.time_limit_s = std::max(0.1, options_.time_limit_s - seconds_since_start());
    auto result = tune(tuning(*op), op->problem_of(problem_), options);
    TunedPart tuned{part, "", {}};
    if (!result) {
      // No legal point, or nothing compiles: the partitions with this part say so. What the user got wrong is told.
      if (result.error().exit == Exit::kUsage) return std::move(result).error();
      tuned.failed = fmt::format("{}: {}", chain_.name(part), result.error().message);
      tuned_.push_back(std::move(tuned));
      return {};
    }
    take(*result, tuned);
    if (main_loop)
      for (const Schedule& s : result->rankings[chain_.name(part)].front())
        if (main_loop_.size() < kPartEvals) main_loop_.push_back(s.params);
    tuned_.push_back(std::move(tuned));
    results_.emplace_back(part, std::move(*result));
    return {};
  }

  void take(const TuneResult& result, TunedPart& tuned) {
    const TuneReport& r = result.report;
    report_.considered += r.considered;
    report_.compiled += r.compiled;
    report_.compiled_now += r.compiled_now;
    report_.evaluated_now += r.evaluated_now;
    report_.executor_device = r.executor_device;
    report_.times = r.time_origin();
    if (!r.arch.empty()) report_.arch = r.arch;
    const VariantReport* v = r.find(chain_.name(tuned.part));
    if (v && v->verified && v->kernels.size() == 1) {
      tuned.kernel = v->kernels[0];
      return;
    }
    tuned.failed = fmt::format("nothing was verified of {}", chain_.name(tuned.part));
    for (const Rejected& x : r.rejections)
      if (x.stage != "constraint" && x.stage != "launch") {
        tuned.failed += fmt::format(": {}: {}", x.stage, x.reason.substr(0, x.reason.find('\n')));
        break;
      }
  }

  /// The partitions that verdicts rest on, each run whole: every kernel on what the kernel before it wrote.
  Result<void> verify_together(const std::vector<Partition>& all) {
    std::vector<std::string> names;
    const auto want = [&](const std::string& name) {
      if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    };
    if (const PartitionReport* best = report_.best()) want(best->name);
    for (const EdgeReport& e : report_.edges)
      for (const auto& side : {e.fused, e.cut})
        if (side) want(side->partition);
    if (report_.forced) want(*report_.forced);
    bool failed = false;
    for (size_t i = 0; i < names.size() && !stopped(); ++i) {
      if (options_.progress) options_.progress("verifying partitions", i, names.size());
      PartitionReport& p = *std::find_if(report_.partitions.begin(), report_.partitions.end(), [&](const PartitionReport& x) { return x.name == names[i]; });
      if (!p.timed() || p.kernels.size() < 2) continue;
      const Partition& partition = *std::find_if(all.begin(), all.end(), [&](const Partition& x) { return x.name == names[i]; });
      ROOFGEN_TRY(p.together, verify(partition));
      if (p.together->passed) continue;
      p.failed = "its kernels together: " + p.together->failure;
      failed = true;
    }
    if (failed) conclude(report_);
    return {};
  }

  Result<Verification> verify(const Partition& partition) {
    ROOFGEN_TRY(auto op, ChainOp::make(chain_, {partition.parts}));
    const Problem problem = op->problem_of(problem_);
    ROOFGEN_TRY(const std::vector<Variant> variants, op->variants(context_.files, problem));
    const double flops = op->required(op->reduced(problem))->mma_flops;
    std::vector<Candidate> chain;
    std::string binaries, schedules;
    for (size_t i = 0; i < partition.parts.size(); ++i) {
      const auto& [part, result] = *std::find_if(results_.begin(), results_.end(), [&](const auto& r) { return r.first == partition.parts[i]; });
      const std::string name = chain_.name(part);
      Schedule schedule = result.programs.at(name).front().schedule;
      schedule.variant = variants[0].name;
      schedule.stage = name;
      chain.push_back({&variants[0], i, schedule, result.binaries.at(name).front()});
      binaries += (i ? "+" : "") + chain.back().binary.digest;
      schedules += to_string(schedule) + ";";
    }
    Verifier verifier(*op, problem, flops, context_.device, variants[0], context_.executor);
    const StoreKey key{binaries, fmt::format("{} {} {}", to_string(problem), schedules, verifier.plan().key()), fmt::format("{} evaluation {}", context_.executor.info().name, kEvaluationVersion), ""};
    if (context_.store)
      if (const auto payload = context_.store->lookup(key))
        if (const auto known = from_payload(*payload)) return known->verification;
    Evaluation e;
    ROOFGEN_TRY(e.verification, verifier.verify_chain(chain));
    if (context_.store) context_.store->put(key, to_payload(e));
    return e.verification;
  }

  const WhatIfContext& context_;
  const Chain& chain_;
  const Problem& problem_;
  const TuneOptions& options_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  WhatIfReport report_;
  std::vector<TunedPart> tuned_;
  std::vector<std::pair<Part, TuneResult>> results_;
  std::vector<ChainOp::Point> main_loop_;  ///< of the bare gemm, the fastest first
};

}  // namespace

Result<WhatIfReport> whatif_chain(const WhatIfContext& context, const Chain& chain, const Problem& problem, const std::vector<Part>& plan, const TuneOptions& options) {
  return ChainSearch(context, chain, problem, options).run(plan);
}

}  // namespace roofgen

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <mutex>
#include <ranges>
#include <thread>
#include <tuple>
#include <utility>

#include "base/pool.h"
#include "tuner/search/kernel_timer.h"
#include "tuner/strategy/strategy.h"
#include "tuner/tune.h"
#include "tuner/verify/verify.h"
#include "tuner/whatif/subject.h"

namespace roofgen {
namespace {

/// Of each kernel that was not hopeless for its leader, a part tries the default and the leader's best schedule: the
/// kernels differ by a few instructions, and each candidate costs a compilation. The leader's next ones replace
/// candidates that fail.
constexpr size_t kLed = 5;
constexpr uint64_t kLedEvals = 2;
/// Kernels that took this many times as long as the leader's best one are hopeless.
constexpr double kHopelessKernel = 1.15;

class Search {
 public:
  Search(const TuneResources& context, const Subject& subject, const Problem& problem, const TuneOptions& options)
      : context_(context), subject_(subject), problem_(problem), options_(options) {}

  Result<WhatIfReport> run(const std::string& title, const std::string& plan) {
    report_.title = title;
    ROOFGEN_TRY(const std::vector<Partition> all, subject_.partitions(context_.files, context_.device));
    describe();
    ROOFGEN_TRY(const RequiredWork required, subject_.required(context_.files));
    report_.floor = problem_floor(context_.device, required, subject_.dtype(), RoofSet::kSustained);
    ROOFGEN_CHECK(tune_parts(all));
    for (const Partition& p : all)
      report_.partitions.push_back(p.variant ? compose(report_.floor.seconds, p, tuned_variant(p), why_untimed(p))
                                             : compose(subject_, context_.device, report_.floor.seconds, p, tuned_,
                                                       [&](Part part, double bytes) { return retime(part, bytes); }));
    if (!plan.empty()) report_.forced = plan;
    report_.interrupted = stopped();
    conclude(report_);
    ROOFGEN_CHECK(verify_together(all));
    report_.interrupted = stopped();
    return std::move(report_);
  }

 private:
  bool stopped() const { return options_.stop && options_.stop->load(); }
  double seconds_since_start() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  }

  void describe() {
    report_.problem = problem_;
    report_.steps = subject_.steps();
    report_.device = context_.device;
    report_.compiler = context_.compiler.description();
    report_.matrix_flops = subject_.matrix_flops();
    if (context_.device.integer("arch") >= 90 && !context_.device.has(kDependentSaving))
      report_.notes.push_back(
          fmt::format("all launches are normal ones: {} has no {}", context_.device.name, kDependentSaving));
  }

  /// The distinct parts of all legal partitions, leaders first: the others try their best schedules.
  std::vector<Part> distinct_parts(const std::vector<Partition>& all) const {
    std::vector<Part> out;
    for (const Partition& p : all)
      for (const Part& part : p.parts)
        if (p.illegal.empty() && !p.variant && std::find(out.begin(), out.end(), part) == out.end())
          out.push_back(part);
    const auto rank = [&](Part p) { return std::tuple(!(subject_.leader(p) == p), p.first, p.last); };
    std::sort(out.begin(), out.end(), [&](Part a, Part b) { return rank(a) < rank(b); });
    return out;
  }

  /// Without a GPU two at a time: rounds of a search end with one core idle. Leaders come first, as the others need
  /// their results.
  Result<void> tune_parts(const std::vector<Partition>& all) {
    const std::vector<Part> parts = distinct_parts(all);
    const auto followers = std::ranges::find_if(parts, [&](Part p) { return !(subject_.leader(p) == p); });
    const size_t leaders = static_cast<size_t>(followers - parts.begin());
    std::vector<std::optional<TunedPart>> tuned(parts.size());
    for (const auto& [begin, end] : {std::pair(size_t{0}, leaders), std::pair(leaders, parts.size())})
      ROOFGEN_CHECK(for_each_index(context_.gpu ? 1 : 2, end - begin, [&, begin = begin](size_t i) -> Result<void> {
        if (stopped() || (options_.time_limit_s > 0 && seconds_since_start() > options_.time_limit_s)) return {};
        const std::string place = fmt::format("part {} of {}: ", begin + i + 1, parts.size());
        ROOFGEN_TRY(tuned[begin + i], tune_part(parts[begin + i], place));
        return {};
      }));
    for (std::optional<TunedPart>& t : tuned)
      if (t) tuned_.push_back(std::move(*t));
    report_.parts = tuned_.size();
    return tuned_.size() == parts.size() ? tune_variants(all) : Result<void>();
  }

  /// The partitions that are variants of the whole: one search, which shares its candidates among them.
  Result<void> tune_variants(const std::vector<Partition>& all) {
    TuneOptions options = options_;
    for (const Partition& p : all)
      if (p.variant) options.variants.push_back(p.variant->name);
    if (options.variants.empty() || stopped()) return {};
    options.evals = subject_.evals({0, subject_.steps().size()}, options_.evals);
    ROOFGEN_TRY(std::optional<TuneResult> result,
                run_tune(*subject_.whole(), problem_, options.in("variants: "), variants_failed_));
    if (!result) return {};
    variants_ = std::move(result->report);
    for (VariantReport& v : variants_->variants) {
      report_.parts += v.kernels.size();
      for (KernelReport& k : v.kernels) count_flops(subject_, k);
    }
    return {};
  }

  const VariantReport* tuned_variant(const Partition& p) const {
    return variants_ ? variants_->find(p.variant->name) : nullptr;
  }

  /// Why a variant has no time, if it has none.
  std::string why_untimed(const Partition& p) const {
    if (!variants_) return variants_failed_.empty() ? p.variant->name + " was not tuned" : variants_failed_;
    const VariantReport* v = tuned_variant(p);
    return v && !v->available ? v->rejected_because : nothing_verified(p.variant->name, *variants_, p.variant->name);
  }

  Result<TunedPart> tune_part(Part part, const std::string& place) {
    TuneOptions options = options_.in(place);
    options.evals = subject_.evals(part, options_.evals);
    // Only the fastest kernel of a part matters, and the partitions that a verdict names are run whole (verify()).
    options.best_only = options.settles = true;
    TuneOptions led = options;
    TunedPart tuned{part, "", {}};
    const bool leads = follow(subject_.leader(part), part, led);
    ROOFGEN_CHECK(tune_part(leads ? led : options, tuned));
    // The leader's kernels may be illegal here, or spill.
    if (!tuned.failed.empty() && leads && !stopped()) {
      tuned.failed.clear();
      ROOFGEN_CHECK(tune_part(options, tuned));
    }
    return tuned;
  }

  /// Lets the search of a part try the best schedules of its leader, without the leader's slow kernels. A GPU tries a
  /// candidate in no time, and goes on.
  bool follow(Part leader, Part part, TuneOptions& options) const {
    const TuneResult* result = result_of(leader);
    if (leader == part || !result) return false;
    const TuneReport& report = result->report;
    const double least = report.find(report.best_variant)->seconds;
    for (const VariantReport& v : report.variants) {
      const auto ranking = result->rankings.find(v.name);
      if (ranking == result->rankings.end() || !(v.seconds > 0) || v.seconds > kHopelessKernel * least) continue;
      options.variants.push_back(subject_.name(part) + kernel_of(leader, v.name));
      for (Schedule led : std::views::take(ranking->second.front(), kLed)) {
        led.variant = options.variants.back();
        options.first.push_back(std::move(led));
      }
    }
    if (!context_.gpu) options.evals = std::min(options.evals, options.variants.size() * kLedEvals);
    return !options.first.empty();
  }

  /// Of a variant of a part's op: the text after the name of the part, such as " warpgroup"; empty for the only kernel.
  std::string kernel_of(Part part, const std::string& variant) const {
    const std::string name = subject_.name(part);
    return variant.starts_with(name) ? variant.substr(name.size()) : "";
  }

  Result<void> tune_part(const TuneOptions& options, TunedPart& tuned) {
    ROOFGEN_TRY(const PlanProblem made, subject_.make({tuned.part}));
    ROOFGEN_TRY(std::optional<TuneResult> result, run_tune(*made.op, made.problem, options, tuned.failed));
    if (!result) {
      tuned.failed = fmt::format("{}: {}", subject_.name(tuned.part), tuned.failed);
      return {};
    }
    const TuneReport& r = result->report;
    const VariantReport* best = r.find(r.best_variant);
    if (!best) {
      tuned.failed = nothing_verified(subject_.name(tuned.part), r);
      return {};
    }
    tuned.kernel = best->kernels.at(0);
    const std::lock_guard lock(mutex_);
    results_.emplace_back(tuned.part, std::move(*result));
    return {};
  }

  const TuneResult* result_of(Part part) const {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(results_.begin(), results_.end(), [&](const auto& r) { return r.first == part; });
    return found == results_.end() ? nullptr : &found->second;
  }
  const TunedKernel& winner_of(Part part) const {
    const TuneResult& result = *result_of(part);
    return result.winners.at(result.report.best_variant).front();
  }

  /// Without a legal point, or if nothing compiles, there is no result, and `failed` says why: that only rejects
  /// partitions. Usage errors end the search.
  Result<std::optional<TuneResult>> run_tune(const Op& op, const Problem& problem, TuneOptions options,
                                             std::string& failed) {
    options.cold = true;  // the parts are problems, too: a result must not depend on the order in which they were tuned
    if (options_.time_limit_s > 0) options.time_limit_s = std::max(0.1, options_.time_limit_s - seconds_since_start());
    auto result = tune({context_, op}, problem, options);
    if (!result) {
      if (result.error().exit == Exit::kUsage) return std::move(result).error();
      failed = result.error().message;
      return std::optional<TuneResult>();
    }
    const TuneReport& r = result->report;
    const std::lock_guard lock(mutex_);
    report_.considered += r.considered;
    report_.compiled += r.compiled;
    report_.compiled_now += r.compiled_now;
    report_.evaluated_now += r.evaluated_now;
    report_.executor_device = r.executor_device;
    report_.times = r.time_origin();
    report_.arch = std::max(report_.arch, r.arch);  // sm_90a where any kernel needs it
    return std::optional<TuneResult>(std::move(*result));
  }

  /// With the first rejection; `variant`: of this variant.
  static std::string nothing_verified(const std::string& name, const TuneReport& r, const std::string& variant = "") {
    for (const Rejected& x : r.rejections)
      if (x.stage != "constraint" && x.stage != "launch" && (variant.empty() || x.schedule.variant == variant))
        return fmt::format("nothing was verified of {}: {}: {}", name, x.stage,
                           x.reason.substr(0, x.reason.find('\n')));
    return fmt::format("nothing was verified of {}", name);
  }

  /// A plan with the kernels that the searches of its parts have found.
  struct Plan {
    std::unique_ptr<Op> op;
    Problem problem;
    expr::Map scope;
    Variant variant;
  };
  Result<Plan> make(const std::vector<Part>& parts) const {
    ROOFGEN_TRY(PlanProblem made, subject_.make(parts));
    ROOFGEN_TRY(ProblemVariants at, variants_of(context_.files, *made.op, limits(context_.device), made.problem));
    std::string name;
    for (const Part& part : parts) name += (name.empty() ? "" : " | ") + subject_.name(part);
    name += kernel_of(parts[0], winner_of(parts[0]).program.schedule.variant);
    const Variant* const known = at.variants.size() == 1 ? &at.variants.front() : at.find(name);
    if (!known) return Error{Exit::kFailed, "no kernels for " + name};
    return Plan{std::move(made.op), std::move(made.problem), std::move(at.scope), *known};
  }

  /// Of all parts, in one run of nvdisasm.
  void read_winners() {
    if (std::exchange(winners_are_read_, true)) return;
    std::vector<const Binary*> all;
    for (const auto& [part, result] : results_) all.push_back(&winner_of(part).binary);
    context_.timer->read(all);
  }

  std::optional<CodeTime> retime(Part part, double dram_bytes) {
    if (context_.gpu || !context_.timer || !result_of(part)) return std::nullopt;
    const Result<Plan> plan = make({part});
    if (!plan) return std::nullopt;
    read_winners();
    const TunedKernel& k = winner_of(part);
    const auto own = temporaries(plan->variant, plan->scope);
    if (!own) return std::nullopt;
    auto timed =
        context_.timer->time({&k.binary, &k.launch, initial_contents(*plan->op, plan->problem, *own),
                              fmt::format("{} {}", to_string(plan->problem), plan->variant.name), dram_bytes, &k.lines},
                             TimeModel::kEvent);
    return timed ? std::optional(std::move(*timed)) : std::nullopt;
  }

  /// Runs the partitions that verdicts name: every kernel on the output of the kernel before it.
  Result<void> verify_together(const std::vector<Partition>& all) {
    const auto go_on = [&](size_t done, size_t named) {
      if (options_.progress) options_.progress("verifying partitions", done, named);
      return !stopped();
    };
    const int threads = context_.gpu ? 1 : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
    return verify_named(report_, threads, go_on, [&](const PartitionReport& p, bool on_whole_grid) {
      return verify(*std::find_if(all.begin(), all.end(), [&](const Partition& x) { return x.name == p.name; }),
                    on_whole_grid);
    });
  }

  /// The kernel of a part as the partition launches it: with the wait of a dependent launch, and the trigger of the
  /// next. Adds the launch to the text of all.
  Result<Candidate> in_partition(const Variant& variant, size_t i, const TunedKernel& alone, const expr::Map& scope,
                                 std::string& launches) {
    Candidate out{&variant, i, alone.program.schedule, alone.binary};
    out.schedule.variant = variant.name;
    out.schedule.stage = variant.stages[i].name;
    if (i > 0) out.schedule.params.emplace_back("dependent", !context_.gpu && context_.device.has(kDependentSaving));
    auto checked = check_schedule(variant, out.stage(), out.schedule, scope, false);
    if (auto error = std::get_if<Error>(&checked)) return *error;
    if (auto rejected = std::get_if<Rejected>(&checked))
      return Error{Exit::kFailed, fmt::format("{}: {}", to_string(out.schedule), rejected->reason)};
    ROOFGEN_TRY(const Program program, generate(context_.files, out.stage(), std::get<Legal>(checked)));
    ROOFGEN_TRY(const Launch launch, make_launch(out.stage(), std::get<Legal>(checked)));
    launches += to_string(out.schedule) + launch_text(launch) + ";";
    if (program.source == alone.program.source) return out;
    std::optional<Result<Binary>> binary;
    context_.compiler.compile_all({&program}, [&](CompileOutcome outcome) {
      binary = std::move(outcome.binary);
      return true;
    });
    ROOFGEN_TRY(out.binary, std::move(*binary));
    return out;
  }

  /// The kernels of a partition in a row on the reduced problem, and of an answer on every CTA of the real grid with a
  /// shorter sum. A slower partition lends the verdict its time alone.
  Result<Verification> verify(const Partition& partition, bool on_whole_grid) {
    // The search of the variants has verified its own kernels, the fastest variant's on the whole grid.
    if (partition.variant) return tuned_variant(partition)->verification;
    ROOFGEN_TRY(const Plan plan, make(partition.parts));
    const auto& [op, problem, scope, variant] = plan;
    const double flops = op->required(op->reduced(problem))->mma_flops;
    std::vector<Candidate> chain;
    std::string binaries, launches;
    for (size_t i = 0; i < partition.parts.size(); ++i) {
      ROOFGEN_TRY(chain.emplace_back(), in_partition(variant, i, winner_of(partition.parts[i]), scope, launches));
      binaries += (i ? "+" : "") + chain.back().binary.digest;
    }
    Verifier verifier(*op, problem, flops, context_.device, variant, context_.executor,
                      std::make_shared<SharedInputs>(context_.executor));
    const StoreKey key{
        binaries,
        fmt::format("{} {} {}{}", to_string(problem), launches, verifier.plan().key(), on_whole_grid ? "" : " reduced"),
        fmt::format("{} evaluation {}", context_.executor.info().name, kEvaluationVersion),
        limits_text(context_.device)};
    if (const auto stored = recall(context_.store, key)) return stored->verification;
    Evaluation e;
    Verification& v = e.verification;
    ROOFGEN_TRY(const std::vector<Verification> kernels,
                verifier.verify_chain(chain, on_whole_grid ? Sites::kAll : Sites::kReduced));
    v = sum_of(kernels);
    if (!v.passed) return v;
    v.not_run.clear();
    if (!verifier.plan().not_full.empty()) v.not_run.push_back(verifier.plan().not_full);
    if (!on_whole_grid) {
      v.not_run.push_back("whole grid not run: " + report_.best()->name + " is faster");
      if (!stopped()) remember(context_.store, key, e);
      return v;
    }
    auto grid = verifier.verify_grid(chain, [&](uint64_t, uint64_t) { return !stopped(); });
    // Too little memory, for example, is no fault of the kernels.
    if (!grid) grid = Verifier::Grid{{}, 0, grid.error().message};
    grid->add_to(v);
    v.passed = !grid->failed();
    v.failure = grid->verification.failure;
    if (!stopped()) remember(context_.store, key, e);
    return v;
  }

  const TuneResources& context_;
  const Subject& subject_;
  const Problem& problem_;
  const TuneOptions& options_;
  const std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
  WhatIfReport report_;
  std::vector<TunedPart> tuned_;
  std::deque<std::pair<Part, TuneResult>> results_;
  std::optional<TuneReport> variants_;
  std::string variants_failed_;
  bool winners_are_read_ = false;
  mutable std::mutex mutex_;  ///< of results_, and of report_ while parts are tuned
};

}  // namespace

Result<WhatIfReport> search(const TuneResources& context, const Subject& subject, const std::string& title,
                            const Problem& problem, const std::string& plan, const TuneOptions& options) {
  return Search(context, subject, problem, options).run(title, plan);
}

}  // namespace roofgen

#include "tuner/dispatch/family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <set>

#include "tuner/dispatch/cross.h"
#include "tuner/tune.h"

namespace roofgen {
namespace {

/// Schedules of a shape's best variant that are tried at the other shapes: the second best of one shape may be the best
/// of another. Assumption: the fourth rarely is.
constexpr size_t kFinalists = 3;
/// Other variants give their winner, if it takes at most this many times as long as the best. Assumption.
constexpr double kHopelessVariant = 1.1;

class Family {
 public:
  Family(const TuneContext& context, const std::vector<Problem>& problems, const TuneOptions& options, double within)
      : context_(context), problems_(problems), options_(options), within_(within) {}

  Result<FamilyResult> run() {
    for (const Problem& p : problems_) {
      ROOFGEN_TRY(variants_.emplace_back(), variants_of(context_.files, context_.op, limits(context_.device), p));
    }
    size_t done = 0;
    for (const size_t shape : tuning_order(problems_)) {
      ROOFGEN_CHECK(tune_shape(shape, fmt::format("shape {} of {}: ", ++done, problems_.size())));
      if (stopped()) return interrupted(done - 1);
    }
    ROOFGEN_CHECK(compile());
    ROOFGEN_CHECK(cross());
    ROOFGEN_TRY(const Cover cover, cover_verified());
    if (stopped()) return interrupted(problems_.size());
    ROOFGEN_CHECK(fill(cover));
    return std::move(out_);
  }

 private:
  bool stopped() const { return options_.stop && options_.stop->load(); }
  Error interrupted(size_t tuned) const {
    return {Exit::kInterrupted,
            fmt::format("stopped after {} of {} shapes; the same command goes on", tuned, problems_.size())};
  }
  std::string name(size_t shape) const { return to_string(problems_[shape]); }

  // ---- Tuning ----------------------------------------------------------------------------------

  Result<void> tune_shape(size_t shape, const std::string& place) {
    TuneOptions options = options_.in(place);
    options.best_only = true;
    options.settles = begun_;  // later shapes begin with the best schedules of their neighbours
    begun_ = true;
    auto result = tune(context_, problems_[shape], options);
    if (!result) return Error{result.error().exit, name(shape) + ": " + result.error().message};
    const TuneReport& r = result->report;
    if (r.interrupted) return {};
    if (r.best_variant.empty()) return Error{Exit::kFailed, name(shape) + ": nothing was verified"};
    DispatchTable& t = out_.table;
    t.executor = r.executor_device;
    t.arch = r.arch;
    t.compiler = r.compiler.substr(0, r.compiler.find(" at "));
    out_.compiled_now += r.compiled_now;
    out_.evaluated_now += r.evaluated_now;
    const double best = r.find(r.best_variant)->seconds;
    for (const VariantReport& v : r.variants)
      if (v.verified && v.seconds <= kHopelessVariant * best)
        ROOFGEN_CHECK(add_finalists(shape, v, *result, v.name == r.best_variant ? kFinalists : 1));
    return {};
  }

  /// Of a variant with several kernels the i-th finalist has the i-th best schedule of each, or its last one.
  Result<void> add_finalists(size_t shape, const VariantReport& report, const TuneResult& result, size_t most) {
    const Variant& variant = *variants_[shape].find(report.name);
    // The winner need not be the first of a ranking: of equally fast schedules it is the one with fewer registers.
    std::vector<std::vector<Schedule>> rankings = result.rankings.at(report.name);
    size_t longest = 0;
    for (size_t s = 0; s < rankings.size(); ++s) {
      std::erase_if(rankings[s], [&](const Schedule& x) { return x.params == report.kernels[s].schedule.params; });
      rankings[s].insert(rankings[s].begin(), report.kernels[s].schedule);
      longest = std::max(longest, rankings[s].size());
    }
    for (size_t i = 0; i < std::min(longest, most); ++i) {
      Implementation own{&variants_[shape], report.name, {}};
      std::string key = report.name;
      for (size_t s = 0; s < rankings.size(); ++s) {
        const Stage& stage = variant.stages[s];
        auto checked =
            check_schedule(variant, stage, rankings[s][std::min(i, rankings[s].size() - 1)], variants_[shape].scope);
        if (auto* error = std::get_if<Error>(&checked)) return std::move(*error);
        if (const auto* rejected = std::get_if<Rejected>(&checked))
          return Error{Exit::kFailed, to_string(rejected->schedule) + ": " + rejected->reason};
        Implementation::Kernel kernel{&stage, std::get<Legal>(std::move(checked)), {}, {}};
        ROOFGEN_TRY(kernel.program, generate(context_.files, stage, kernel.legal));
        key += "\n" + to_string(kernel.program.schedule) + "\n" + kernel.program.source;
        own.kernels.push_back(std::move(kernel));
      }
      if (known_.insert(std::move(key)).second) all_.push_back(std::move(own));
    }
    return {};
  }

  /// The finalists' binaries, which the searches have left in the cache.
  Result<void> compile() {
    std::vector<const Program*> programs;
    std::vector<Implementation::Kernel*> kernels;
    for (Implementation& i : all_)
      for (Implementation::Kernel& k : i.kernels) {
        programs.push_back(&k.program);
        kernels.push_back(&k);
      }
    std::optional<Error> failed;
    context_.compiler.compile_all(programs, [&](CompileOutcome outcome) {
      if (outcome.binary)
        kernels[outcome.index]->binary = std::move(*outcome.binary);
      else
        failed = outcome.binary.error();
      return !failed && !stopped();
    });
    if (failed) return *failed;
    if (stopped()) return interrupted(problems_.size());
    return {};
  }

  // ---- Choosing --------------------------------------------------------------------------------

  Result<void> cross() {
    seconds_.assign(all_.size(), std::vector<std::optional<double>>(problems_.size()));
    std::vector<const Implementation*> each;
    for (const Implementation& i : all_) each.push_back(&i);
    for (size_t shape = 0; shape < problems_.size() && !stopped(); ++shape) {
      const TuneOptions options = options_.in(fmt::format("shape {} of {}: ", shape + 1, problems_.size()));
      ROOFGEN_TRY(const auto run, CrossRun::make(context_, problems_[shape], options));
      ROOFGEN_TRY(const auto outcomes, run->time(each));
      for (size_t k = 0; k < all_.size(); ++k) seconds_[k][shape] = outcomes[k].seconds;
      out_.table.time_model = to_string(run->time_model());
      if (fastest(shape) == all_.size() && !stopped())
        return Error{Exit::kFailed, fmt::format("{}: no finalist has a time: {}", name(shape), outcomes[0].why_not)};
    }
    return {};
  }

  size_t fastest(size_t shape) const {
    size_t best = all_.size();
    for (size_t k = 0; k < all_.size(); ++k)
      if (seconds_[k][shape] && (best == all_.size() || *seconds_[k][shape] < *seconds_[best][shape])) best = k;
    return best;
  }

  /// Chooses until the fastest and the chosen kernel of each shape pass the checks of winners there.
  Result<Cover> cover_verified() {
    std::set<std::pair<size_t, size_t>> passed;
    for (;;) {
      if (stopped()) return Cover{};
      Cover cover = condense(seconds_, within_);
      bool all = true;
      for (size_t shape = 0; shape < problems_.size() && !stopped(); ++shape)
        for (const size_t k : {fastest(shape), cover.chosen[shape]}) {
          if (!seconds_[k][shape] || !passed.insert({k, shape}).second) continue;
          const TuneOptions options = options_.in(fmt::format("shape {} of {}: ", shape + 1, problems_.size()));
          ROOFGEN_TRY(const auto run, CrossRun::make(context_, problems_[shape], options));
          ROOFGEN_TRY(const std::string why, run->verify(all_[k]));
          if (why.empty() || stopped()) continue;
          all = false;
          seconds_[k][shape].reset();
          if (options_.warn)
            options_.warn(
                fmt::format("{} fails at {}: {}", to_string(all_[k].kernels[0].program.schedule), name(shape), why));
          if (fastest(shape) == all_.size())
            return Error{Exit::kFailed, fmt::format("{}: no finalist passes all checks: {}", name(shape), why)};
        }
      if (all) return cover;
    }
  }

  // ---- The table -------------------------------------------------------------------------------

  Result<void> fill(const Cover& cover) {
    DispatchTable& t = out_.table;
    t.device = context_.device.name;
    t.release = ROOFGEN_VERSION;
    t.origin = Origin::kModel;
    t.within = within_;
    t.exact = cover.exact;
    for (size_t shape = 0; shape < problems_.size(); ++shape) {
      const auto at = std::ranges::lower_bound(cover.kernels, cover.chosen[shape]);
      t.shapes.push_back({problems_[shape], *seconds_[fastest(shape)][shape],
                          static_cast<size_t>(at - cover.kernels.begin()), *seconds_[cover.chosen[shape]][shape]});
    }
    const std::vector<std::string> varied = t.varied();
    for (const size_t k : cover.kernels) {
      const Implementation& own = all_[k];
      DispatchKernel& kernel = t.kernels.emplace_back();
      kernel.variant = own.variant;
      kernel.tuned_for = static_cast<size_t>(own.tuned_for - variants_.data());
      std::vector<TunedKernel>& compiled = out_.kernels.emplace_back();
      for (const Implementation::Kernel& x : own.kernels) {
        ROOFGEN_TRY(const Launch launch, make_launch(*x.stage, x.legal));
        ROOFGEN_TRY(const auto requirements, requirements_of(*x.stage, x.legal, varied));
        kernel.stages.push_back({x.stage->name, x.program.schedule.params, x.binary.digest, requirements,
                                 x.binary.registers, x.binary.static_smem_bytes + launch.smem_bytes});
        compiled.push_back({x.program, x.binary, launch});
      }
    }
    return {};
  }

  const TuneContext& context_;
  const std::vector<Problem>& problems_;
  const TuneOptions& options_;
  const double within_;
  std::vector<ProblemVariants> variants_;  ///< by shape
  std::deque<Implementation> all_;         ///< the finalists of all shapes, each once
  std::set<std::string> known_;            ///< their schedules and sources
  TimeMatrix seconds_;                     ///< of `all_` and shapes
  bool begun_ = false;                     ///< a shape was tuned
  FamilyResult out_;
};

}  // namespace

std::vector<size_t> tuning_order(const std::vector<Problem>& problems) {
  std::vector<size_t> out(problems.size()), left;
  for (size_t i = 0; i < out.size(); ++i) out[i] = i;
  const auto size = [&](size_t i) {
    double sum = 0;
    for (const auto& [name, n] : problems[i].dims) sum += std::log2(static_cast<double>(std::max<int64_t>(1, n)));
    return sum;
  };
  std::ranges::stable_sort(out, {}, size);
  std::swap(out.front(), out[(out.size() - 1) / 2]);
  std::sort(out.begin() + 1, out.end());
  for (size_t next = 1; next < out.size(); ++next) {
    const auto far = [&](size_t i) {
      double least = std::numeric_limits<double>::infinity();
      for (size_t before = 0; before < next; ++before)
        least = std::min(least, distance(problems[i].dims, problems[out[before]].dims));
      return least;
    };
    const auto nearest = std::min_element(out.begin() + static_cast<ptrdiff_t>(next), out.end(),
                                          [&](size_t a, size_t b) { return far(a) < far(b); });
    std::rotate(out.begin() + static_cast<ptrdiff_t>(next), nearest, nearest + 1);
  }
  return out;
}

Result<FamilyResult> tune_family(const TuneContext& context, const std::vector<Problem>& problems,
                                 const TuneOptions& options, double within) {
  if (context.gpu)
    return Error{Exit::kUnavailable,
                 "a list of sizes has modelled times only: add --executor sim where a GPU is found"};
  return Family(context, problems, options, within).run();
}

}  // namespace roofgen

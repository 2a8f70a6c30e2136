#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/suggest.h"
#include "generator/points.h"
#include "runtime/measure/statistics.h"
#include "tuner/ceilings/ceilings.h"
#include "tuner/ceilings/data.h"

namespace roofgen {
namespace {

using Buffers = CeilingSpec::Buffers;

/// Launches per sample, so that the cost of events is negligible.
constexpr int kLaunches = 200;
constexpr int kLaunchSamples = 30, kLaunchWarmup = 5;

/// One ceiling with its legal points and their binaries.
struct CompiledPoint {
  CeilingResult result;
  const Variant* variant = nullptr;
  std::vector<MicroKernel> kernels;
  std::vector<Binary> binaries;  ///< as the kernels
};

class Session {
 public:
  Session(const CeilingsContext& context, const CeilingsOptions& options) : c_(context), o_(options) {}

  Result<CeilingsReport> run() {
    report_.device = c_.device;
    report_.gpu = c_.gpu.identity();
    report_.origin = c_.gpu.origin();
    report_.date = o_.date;
    report_.compiler = c_.compiler.description();
    report_.protocol = to_string(o_.protocol.mode);
    report_.chosen = !o_.only.empty();
    scope_ = ceiling_scope(limits(c_.device), o_.sizes ? *o_.sizes : ceiling_sizes(c_.device));
    ROOFGEN_TRY(variants_, load_variants(c_.files, "ceilings"));
    ROOFGEN_TRY(variants_, expand(std::move(variants_), scope_));
    ROOFGEN_CHECK(choose());
    compile();
    for (size_t i = 0; i < candidates_.size(); ++i) {
      CompiledPoint& c = candidates_[i];
      if (stopped()) report_.interrupted = true;
      if (c.result.missing.empty()) {
        if (report_.lost)
          c.result.missing = "the GPU was lost before it: " + report_.lost_because;
        else if (report_.interrupted)
          c.result.missing = "interrupted before it";
        else {
          progress(c.result.spec->what, i);
          measure_one(c);
        }
      }
      report_.results.push_back(std::move(c.result));
    }
    ceilings::derive_cells(report_);
    return std::move(report_);
  }

 private:
  bool stopped() const { return o_.hooks.stop && o_.hooks.stop->load(); }
  void progress(const char* what, size_t i) const {
    if (o_.hooks.progress) o_.hooks.progress(what, i, candidates_.size());
  }

  /// Collects the points of every requested ceiling.
  Result<void> choose() {
    std::vector<std::string> known;
    for (const CeilingSpec& s : ceiling_specs()) known.emplace_back(s.name);
    for (const std::string& name : o_.only)
      if (std::find(known.begin(), known.end(), name) == known.end())
        return Error{Exit::kUsage, fmt::format("unknown ceiling \"{}\"{}", name, did_you_mean(name, known))};
    for (const CeilingSpec& spec : ceiling_specs()) {
      if (!o_.only.empty() && std::find(o_.only.begin(), o_.only.end(), spec.name) == o_.only.end()) continue;
      CompiledPoint c;
      c.result.spec = &spec;
      c.result.limit = rate_limit(spec, c_.device);
      const auto variant =
          std::find_if(variants_.begin(), variants_.end(), [&](const Variant& v) { return v.name == spec.name; });
      if (variant == variants_.end())
        return Error{Exit::kFailed, fmt::format("search_spaces/ceilings has no variant {}", spec.name)};
      c.variant = &*variant;
      std::set<std::string> reasons;
      ROOFGEN_TRY(const LegalPoints points, legal_points(*variant, variant->stages.front(), scope_, {}));
      for (const Rejected& r : points.rejected) reasons.insert(r.reason);
      for (size_t i = 0; i < points.number; ++i) {
        auto made = make_micro_kernel(c_.files, spec, *variant, points.schedule(i), scope_);
        if (auto* error = std::get_if<Error>(&made)) return std::move(*error);
        if (auto* rejected = std::get_if<Rejected>(&made)) reasons.insert(rejected->reason);
        if (auto* kernel = std::get_if<MicroKernel>(&made)) c.kernels.push_back(std::move(*kernel));
      }
      if (c.kernels.empty()) {
        // A condition on the architecture fails at every point.
        for (const std::string& r : reasons)
          c.result.not_here = c.result.not_here || r.find("device.arch") != std::string::npos;
        c.result.missing = c.result.not_here ? fmt::format("{} has no such instruction in hardware", c_.device.arch)
                                             : "no point is legal: " + *reasons.begin();
      }
      candidates_.push_back(std::move(c));
    }
    return {};
  }

  void compile() {
    std::vector<const Program*> programs;
    std::vector<std::pair<size_t, size_t>> owners;
    for (size_t i = 0; i < candidates_.size(); ++i) {
      candidates_[i].binaries.resize(candidates_[i].kernels.size());
      for (size_t k = 0; k < candidates_[i].kernels.size(); ++k) {
        programs.push_back(&candidates_[i].kernels[k].program);
        owners.emplace_back(i, k);
      }
    }
    std::set<std::pair<size_t, size_t>> compiled;
    std::map<std::pair<size_t, size_t>, std::string> failed;
    c_.compiler.compile_all(programs, [&](CompileOutcome outcome) {
      const auto owner = owners[outcome.index];
      if (!outcome.binary)
        failed[owner] = outcome.binary.error().message;
      else if (outcome.binary->spill_bytes > 0)
        failed[owner] = "it spills registers";
      else {
        candidates_[owner.first].binaries[owner.second] = std::move(*outcome.binary);
        compiled.insert(owner);
      }
      if (o_.hooks.progress) o_.hooks.progress("compiling", compiled.size() + failed.size(), programs.size());
      return !stopped();
    });
    for (size_t i = 0; i < candidates_.size(); ++i) {
      CompiledPoint& c = candidates_[i];
      std::vector<MicroKernel> kernels;
      std::vector<Binary> binaries;
      for (size_t k = 0; k < c.kernels.size(); ++k) {
        if (compiled.count({i, k})) {
          kernels.push_back(std::move(c.kernels[k]));
          binaries.push_back(std::move(c.binaries[k]));
        } else {
          const auto why = failed.find({i, k});
          c.result.points.push_back(
              {c.kernels[k].legal.schedule, 0,
               why == failed.end() ? "interrupted before it was compiled" : "compile: " + why->second});
        }
      }
      if (kernels.empty() && c.result.missing.empty())
        c.result.missing = c.result.points.empty() ? "nothing was compiled" : c.result.points.front().rejected;
      c.kernels = std::move(kernels);
      c.binaries = std::move(binaries);
    }
  }

  void measure_one(CompiledPoint& c) {
    if (c.result.spec->buffers == Buffers::kNone) return measure_launch(c);
    auto buffers = micro_buffers(*c.result.spec, *c.variant, scope_);
    if (!buffers) {
      c.result.missing = buffers.error().message;
      return;
    }
    if (!verify(c, *buffers)) return;
    time(c, *buffers);
  }

  /// Handles an error of the GPU. True when it costs only this point.
  bool only_this_point(CompiledPoint& c, const Error& error) {
    if (c_.gpu.fault() == Fault::kLost) {
      report_.lost = true;
      report_.lost_because = error.message;
      c.result.missing = "the GPU was lost: " + error.message;
      return false;
    }
    return true;
  }

  using Addresses = std::map<std::string, DevicePtr>;

  /// Large inputs are written by the write kernel once its output was checked, else by the host.
  bool written_on_gpu(const CeilingSpec& spec, const MicroBuffer& b) const {
    return filler_ && spec.buffers == Buffers::kStream && b.fill && std::string(spec.name).starts_with("dram");
  }
  Contender::Kernel filling(const MicroBuffer& b) const {
    Contender::Kernel k{&filler_->second, filler_->first.launch};
    for (Arg& arg : k.launch.args) {
      if (arg.is_buffer) arg.name = b.name;
      if (arg.name == "seed") arg.bits = stream_seed(b.name);
      if (arg.name == "n") arg.bits = b.bytes / 4;
    }
    return k;
  }

  Result<Addresses> allocate(const CeilingSpec& spec, const std::vector<MicroBuffer>& buffers) {
    Addresses out;
    for (const MicroBuffer& b : buffers) {
      const bool on_gpu = written_on_gpu(spec, b);
      auto at = c_.gpu.allocate(b.bytes, b.name, on_gpu ? nullptr : b.fill);
      Result<void> filled;
      if (at && on_gpu) filled = launch(filler_->second, filling(b).launch, {{b.name, *at}});
      if (at) out[b.name] = *at;
      if (!at || !filled) {
        release(out);
        return at ? filled.error() : at.error();
      }
    }
    return out;
  }
  void release(const Addresses& at) {
    for (const auto& [name, ptr] : at) c_.gpu.release(ptr);
  }

  Result<void> launch(const Binary& binary, Launch launch, const Addresses& at) {
    for (Arg& arg : launch.args)
      if (arg.is_buffer) arg.bits = at.at(arg.name).address;
    ROOFGEN_TRY(const ModuleId module, c_.gpu.load(binary));
    const auto ran = c_.gpu.run(module, launch, {});
    if (!ran) return ran.error();
    c_.gpu.unload(module);
    return {};
  }

  /// Runs each point once and checks its output. A fault drops the point, a wrong result the ceiling.
  bool verify(CompiledPoint& c, const std::vector<MicroBuffer>& buffers) {
    const CeilingSpec& spec = *c.result.spec;
    std::optional<Addresses> at;
    uint64_t generation = 0;
    std::vector<MicroKernel> right;
    std::vector<Binary> binaries;
    for (size_t k = 0; k < c.kernels.size() && !stopped(); ++k) {
      const MicroKernel& kernel = c.kernels[k];
      const auto rejected = [&](std::string why) {
        c.result.points.push_back({kernel.legal.schedule, 0, std::move(why)});
      };
      if (at && generation != c_.gpu.generation()) at.reset();  // lost with the worker
      if (!at) {
        auto made = allocate(spec, buffers);
        if (!made) {
          if (only_this_point(c, made.error())) c.result.missing = made.error().message;
          return false;
        }
        at = std::move(*made);
        generation = c_.gpu.generation();
      }
      Result<void> ran = c_.gpu.poison(at->at("out"));
      if (ran) ran = launch(c.binaries[k], kernel.launch, *at);
      Result<std::string> wrong = std::string();
      if (ran)
        wrong = spec.check(kernel, [&](uint64_t offset, std::span<std::byte> to) {
          return c_.gpu.read({at->at("out").address + offset}, to);
        });
      if (!ran || !wrong) {
        const Error& error = ran ? wrong.error() : ran.error();
        if (!only_this_point(c, error)) return false;
        rejected(error.message);
        continue;
      }
      if (!wrong->empty()) {
        c.result.missing = fmt::format("wrong result of {}: {}", to_string(kernel.legal.schedule), *wrong);
        release(*at);
        return false;
      }
      right.push_back(kernel);
      binaries.push_back(c.binaries[k]);
    }
    if (at && generation == c_.gpu.generation()) release(*at);
    if (stopped()) report_.interrupted = true;
    if (report_.interrupted || right.empty()) {
      c.result.missing = report_.interrupted       ? "interrupted"
                         : c.result.points.empty() ? "nothing ran"
                                                   : c.result.points.back().rejected;
      return false;
    }
    c.kernels = std::move(right);
    c.binaries = std::move(binaries);
    if (std::string(spec.name) == "dram_write") filler_.emplace(c.kernels.front(), c.binaries.front());
    return true;
  }

  void time(CompiledPoint& c, const std::vector<MicroBuffer>& buffers) {
    const bool dram = std::string(c.result.spec->name).starts_with("dram");
    Workload workload;
    for (const MicroBuffer& b : buffers) {
      const bool on_gpu = written_on_gpu(*c.result.spec, b);
      workload.buffers.push_back({b.name, b.bytes, on_gpu ? nullptr : b.fill});
      if (on_gpu) workload.prepare.push_back(filling(b));
    }
    std::vector<Contender> contenders;
    for (size_t k = 0; k < c.kernels.size(); ++k)
      contenders.push_back({to_string(c.kernels[k].legal.schedule),
                            {{&c.binaries[k], c.kernels[k].launch}},
                            c.binaries[k].registers,
                            static_cast<int64_t>(c.kernels[k].launch.smem_bytes),
                            false});
    Protocol protocol = o_.protocol;
    protocol.cold = dram;  // the others do not touch DRAM
    protocol.hot = !dram;
    BenchHooks hooks = o_.hooks;
    hooks.progress = nullptr;  // too fine for one ceiling
    auto standings = measure(c_.gpu, workload, contenders, protocol, hooks);
    if (!standings) {
      if (only_this_point(c, standings.error())) c.result.missing = standings.error().message;
      return;
    }
    if (standings->lost) {
      report_.lost = true;
      report_.lost_because = standings->lost_because;
    }
    report_.interrupted = report_.interrupted || standings->interrupted;
    for (const std::string& note : standings->notes) {
      if (std::find(report_.notes.begin(), report_.notes.end(), note) == report_.notes.end())
        report_.notes.push_back(note);
    }
    const Measurement* best = nullptr;
    size_t which = 0;
    double best_ns = INFINITY;
    for (size_t k = 0; k < standings->outcomes.size(); ++k) {
      const Outcome& o = standings->outcomes[k];
      CeilingPoint point{c.kernels[k].legal.schedule, 0, o.rejected ? o.rejected->reason : ""};
      const Timing* t = !o.measurement       ? nullptr
                        : dram               ? (o.measurement->cold ? &*o.measurement->cold : nullptr)
                        : o.measurement->hot ? &*o.measurement->hot
                                             : nullptr;
      if (t && t->median_ns > 0) {
        point.rate =
            ceilings::rate_of(*c.result.spec, c_.device, c.kernels[k].amount, t->median_ns, o.measurement->sm_mhz);
        if (t->median_ns / c.kernels[k].amount < best_ns)
          best = &*o.measurement, which = k, best_ns = t->median_ns / c.kernels[k].amount;
      } else if (point.rejected.empty()) {
        point.rejected = "it was never timed";
      }
      c.result.points.push_back(std::move(point));
    }
    if (!best) {
      c.result.missing = c.result.points.empty() ? "nothing was timed" : c.result.points.back().rejected;
      return;
    }
    c.result.point = c.kernels[which].legal.schedule;
    c.result.amount = c.kernels[which].amount;
    c.result.timing = dram ? *best->cold : *best->hot;
    c.result.sm_mhz = best->sm_mhz;
    c.result.power_w = best->power_w;
    c.result.temperature_c = best->temperature_c;
    // An interrupted round has too few samples.
    if (c.result.timing.samples < std::min<uint64_t>(o_.protocol.min_samples, 5)) {
      c.result.missing = report_.interrupted ? "interrupted"
                         : report_.lost      ? "the GPU was lost: " + report_.lost_because
                                             : "too few samples";
      return;
    }
    ceilings::judge(c.result, c_.device);
  }

  /// The cost of one more launch of an empty kernel, in a stream and in a graph.
  void measure_launch(CompiledPoint& c) {
    const auto module = c_.gpu.load(c.binaries.front());
    if (!module) {
      if (only_this_point(c, module.error())) c.result.missing = module.error().message;
      return;
    }
    Timing timings[2];
    std::vector<double> mhz;
    for (const bool graph : {true, false}) {
      Shot shot{{}, false, graph};
      shot.steps.assign(kLaunches, {*module, c.kernels.front().launch});
      std::vector<double> times;
      for (int i = 0; i < kLaunchWarmup + kLaunchSamples && !stopped(); ++i) {
        const auto samples = c_.gpu.time(std::span(&shot, 1));
        if (!samples) {
          if (only_this_point(c, samples.error())) c.result.missing = samples.error().message;
          return;
        }
        if (i < kLaunchWarmup) continue;
        times.push_back(samples->front().time_ns / kLaunches);
        if (samples->front().sm_mhz > 0) mhz.push_back(samples->front().sm_mhz);
      }
      if (times.size() < kLaunchSamples) {
        report_.interrupted = true;
        c.result.missing = "interrupted";
        return;
      }
      timings[graph] = summarize(std::move(times));
    }
    c_.gpu.unload(*module);
    std::sort(mhz.begin(), mhz.end());
    c.result.point = c.kernels.front().legal.schedule;
    c.result.amount = 1;
    c.result.timing = timings[0];
    c.result.timing.stopped = "most samples";
    c.result.sm_mhz = mhz.empty() ? 0 : quantile(mhz, 0.5);
    c.result.extra.emplace_back("graph_us", timings[1].median_ns * 1e-3);
    c.result.points.push_back({c.result.point, timings[0].median_ns * 1e-3, ""});
    ceilings::judge(c.result, c_.device);
  }

  const CeilingsContext& c_;
  const CeilingsOptions& o_;
  CeilingsReport report_;
  std::vector<Variant> variants_;
  expr::Map scope_;
  std::vector<CompiledPoint> candidates_;
  std::optional<std::pair<MicroKernel, Binary>> filler_;
};

}  // namespace

Protocol CeilingsOptions::short_protocol() {
  Protocol p;
  p.warmup_s = 0.7;
  p.min_samples = 10;
  p.max_samples = 60;
  p.seconds_each = 0.25;
  p.finalists = 2;
  p.final_rounds = 15;
  return p;
}

const CeilingResult* CeilingsReport::find(const std::string& name) const {
  for (const CeilingResult& r : results)
    if (r.spec && name == r.spec->name) return &r;
  return nullptr;
}

Result<CeilingsReport> measure_ceilings(const CeilingsContext& context, const CeilingsOptions& options) {
  return Session(context, options).run();
}

}  // namespace roofgen

// One step of a model: its operators run one after the other, each at its binding roof.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/suggest.h"
#include "base/units.h"
#include "roofline/analyses/model.h"

namespace roofgen {
namespace {

constexpr int64_t kMaxBatch = int64_t{1} << 24;
constexpr int64_t kMaxLength = int64_t{1} << 24;
constexpr int64_t kMaxGroup = 1024;
constexpr double kMaxSoftmaxFlops = 1000;

/// Row counts that stand in for an unbounded batch. The smaller one serves operators whose dimensions would exceed the
/// formulas' limits.
constexpr int64_t kManyRows[] = {int64_t{1} << 26, int64_t{1} << 22};

/// Below this many launch overheads per kernel, gaps between launches are a large part of a step.
constexpr double kFewLaunches = 5;

/// A request with its names resolved.
struct Choice {
  ModelRequest request;
  const ModelPhase* phase = nullptr;
  const ModelDtypes* dtypes = nullptr;
  int64_t kv() const { return request.length; }
  int64_t seq() const { return phase->length == "seq" ? request.length : 1; }
};

template <class T>
Result<const T*> find(const std::vector<T>& items, const std::string& name, const char* kind, const Model& model) {
  if (name.empty()) return &items.front();
  std::vector<std::string> known;
  for (const T& item : items) {
    if (item.name == name) return &item;
    known.push_back(item.name);
  }
  return Error{Exit::kUsage, fmt::format("{} has no {} \"{}\"{}", model.name, kind, name, did_you_mean(name, known))};
}

Result<void> within(const char* name, int64_t value, int64_t most) {
  if (value >= 1 && value <= most) return {};
  return Error{Exit::kUsage, fmt::format("{} is {}; 1 to {} was expected", name, value, most)};
}

Result<Choice> choose(const Model& model, const ModelRequest& request) {
  Choice c{request, nullptr, nullptr};
  ROOFGEN_TRY(c.phase, find(model.phases, request.phase, "phase", model));
  ROOFGEN_TRY(c.dtypes, find(model.dtypes, request.dtypes, "weights", model));
  c.request.phase = c.phase->name;
  c.request.dtypes = c.dtypes->name;
  if (request.length == 0) c.request.length = c.phase->preset;
  ROOFGEN_CHECK(within("batch", request.batch, kMaxBatch));
  ROOFGEN_CHECK(within(c.phase->length.c_str(), c.request.length, kMaxLength));
  ROOFGEN_CHECK(within("tp", request.tp, kMaxGroup));
  for (const double share : {request.bandwidth_efficiency, request.compute_efficiency})
    if (!(share > 0 && share <= 1))
      return Error{Exit::kUsage, fmt::format("an efficiency of {:g}; above 0, at most 1 was expected", share)};
  if (!(request.softmax_flops >= 0 && request.softmax_flops <= kMaxSoftmaxFlops))
    return Error{Exit::kUsage, fmt::format("{:g} FLOPs per softmax element; 0 to {:g} was expected",
                                           request.softmax_flops, kMaxSoftmaxFlops)};
  return c;
}

Regime longest(const std::map<Regime, double>& seconds) {
  const auto most = std::max_element(seconds.begin(), seconds.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == seconds.end() ? Regime::kMemory : most->first;
}

class Step {
 public:
  Step(const Model& model, const Device& device, const Choice& choice) : model_(model), device_(device), c_(choice) {}

  Result<void> open() {
    for (const auto& [name, value] : model_.params) scope_[name] = value;
    scope_["batch"] = c_.request.batch;
    scope_["kv"] = c_.kv();
    scope_["seq"] = c_.seq();
    scope_["tokens"] = c_.request.batch * c_.seq();
    scope_["tp"] = c_.request.tp;
    scope_["phase"] = c_.phase->name;
    for (const auto& [role, format] : c_.dtypes->roles) scope_[role + "_bytes"] = format->bytes;
    for (const auto& [name, e] : model_.let) {
      ROOFGEN_TRY(scope_[name], e.eval(scope_));
    }
    stored_ = scope_;
    for (const char* name : {"batch", "kv", "seq", "tokens"})
      if (const auto* n = scope_[name].as<int64_t>()) stored_[name] = static_cast<double>(*n);
    return {};
  }

  Result<ModelRun> run() const {
    ModelRun out;
    out.request = c_.request;
    out.kv = c_.kv();
    out.seq = c_.seq();
    out.unit = c_.phase->unit;
    ROOFGEN_TRY(out.units, c_.phase->yields.eval_number(scope_));
    for (const ModelOperator& o : model_.operators) ROOFGEN_CHECK(add(o, out));
    std::map<std::string, double> by_roof;
    std::map<Regime, double> by_regime;
    for (OperatorRun& o : out.operators) {
      o.share = o.seconds / out.seconds;
      by_regime[o.regime] += o.seconds;
      const Explanation& e = o.explanation;
      if (!e.work->uses_matrix_units()) continue;
      double& sum = by_roof[e.compute.name];
      sum += o.flops;
      if (e.compute.name == out.compute.name || sum > by_roof[out.compute.name])
        out.compute = e.compute, out.ridge = e.ridge;
    }
    out.regime = longest(by_regime);
    for (const OperatorRun& o : out.operators) {
      const std::string& note = o.explanation.compute_note;
      if (!note.empty() && std::find(out.notes.begin(), out.notes.end(), note) == out.notes.end())
        out.notes.push_back(note);
    }
    return out;
  }

  /// Bytes on one GPU.
  Result<double> bytes(const ModelStorage& s) const {
    ROOFGEN_TRY(const double elements, s.elements.eval_number(stored_));
    return elements * format(s.dtype)->bytes / (s.sharded ? static_cast<double>(c_.request.tp) : 1);
  }
  Result<double> bytes(const std::vector<ModelStorage>& items) const {
    double out = 0;
    for (const ModelStorage& s : items) {
      ROOFGEN_TRY(const double one, bytes(s));
      out += one;
    }
    return out;
  }
  Result<double> weight_bytes() const {
    double out = 0;
    for (const ModelOperator& o : model_.operators) {
      if (!o.weights) continue;
      ROOFGEN_TRY(const double count, o.count.eval_number(scope_));
      ROOFGEN_TRY(const double one, bytes(*o.weights));
      out += count * one;
    }
    return out;
  }
  Result<double> parameters() const {
    double out = 0;
    for (const ModelOperator& o : model_.operators) {
      if (!o.weights) continue;
      ROOFGEN_TRY(const double count, o.count.eval_number(scope_));
      ROOFGEN_TRY(const double one, o.weights->elements.eval_number(scope_));
      out += count * one;
    }
    return out;
  }

 private:
  const NumberFormat* format(const std::string& name) const {
    const auto role = c_.dtypes->roles.find(name);
    return role != c_.dtypes->roles.end() ? role->second : *find_number_format(name);
  }

  Result<void> add(const ModelOperator& o, ModelRun& out) const {
    if (o.when) {
      ROOFGEN_TRY(const bool runs, o.when->check(scope_));
      if (!runs) return {};
    }
    ROOFGEN_TRY(const int64_t count, o.count.eval_int(scope_));
    if (count < 1) return {};
    WorkRequest request;
    request.softmax_flops = c_.request.softmax_flops;
    for (const auto& [name, e] : o.dims) {
      ROOFGEN_TRY(int64_t value, e.eval_int(scope_));
      if (std::find(o.sharded.begin(), o.sharded.end(), name) != o.sharded.end()) {
        if (value % c_.request.tp != 0)
          return Error{Exit::kUsage, fmt::format("tp {} does not divide {} = {} of {} in {}", c_.request.tp, name,
                                                 value, o.name, model_.name)};
        value /= c_.request.tp;
      }
      request.dims[name] = value;
    }
    for (const auto& [name, e] : o.flags) {
      ROOFGEN_TRY(request.flags[name], e.check(scope_));
    }
    for (const auto& [operand, role] : o.dtypes) request.dtypes[operand] = format(role)->name;
    ROOFGEN_CHECK(place(o.name, *o.formula, request, count, out));
    out.operators.back().sharded = !o.sharded.empty();
    if (!o.after || c_.request.tp == 1) return {};

    WorkRequest exchange;
    ROOFGEN_TRY(exchange.dims["elements"], o.after->elements.eval_int(scope_));
    exchange.dims["gpus"] = c_.request.tp;
    exchange.dtypes["x"] = format(o.after->dtype)->name;
    ROOFGEN_CHECK(
        place(fmt::format("{} after {}", o.after->formula->op(), o.name), *o.after->formula, exchange, count, out));
    OperatorRun& run = out.operators.back();
    run.collective = true;
    out.parallel.collective_seconds += run.seconds;
    out.parallel.link_bytes += run.link_bytes;
    return {};
  }

  /// Evaluates `formula` and appends it to the step.
  Result<void> place(const std::string& name, const WorkFormula& formula, const WorkRequest& request, int64_t count,
                     ModelRun& out) const {
    const auto in = [&](Error e) {
      e.notes.push_back(fmt::format("in operator {} of {}", name, model_.name));
      return e;
    };
    auto work = formula.evaluate(request);
    if (!work) return in(work.error());
    auto explained = explain(device_, std::move(*work), c_.request.roofs);
    if (!explained) return in(explained.error());
    OperatorRun run;
    run.name = name;
    run.count = count;
    run.explanation = std::move(*explained);
    run.flops = static_cast<double>(count) * run.explanation.flops;
    run.dram_bytes = static_cast<double>(count) * run.explanation.dram_bytes;
    time(run);
    (run.explanation.work->uses_matrix_units() ? out.flops : out.vector_flops) += run.flops;
    out.dram_bytes += run.dram_bytes;
    out.seconds += run.seconds;
    out.operators.push_back(std::move(run));
    return {};
  }

  double efficiency(Regime regime) const {
    return regime == Regime::kCompute || regime == Regime::kSpecialFunction ? c_.request.compute_efficiency
                                                                            : c_.request.bandwidth_efficiency;
  }

  /// Each kernel takes the time of its slowest roof at the stated efficiency, which also covers waves and tails. Shared
  /// memory is left out: its traffic depends on the tiles that a library picks for the device (explain shows it).
  void time(OperatorRun& run) const {
    const double launch = c_.request.launches == Launches::kSeparate ? 1e-6 * device_.at("launch_us") : 0;
    const double count = static_cast<double>(run.count);
    std::map<Regime, double> by_regime;
    for (const KernelExplanation& k : run.explanation.kernels) {
      Regime regime = k.regime;
      double slowest = 0;
      for (const RoofTime& b : k.bounds) {
        if (b.resource == Resource::kSharedMemory) continue;
        const double t = b.seconds / efficiency(regime_of(b.resource));
        if (t > slowest) slowest = t, regime = regime_of(b.resource);
      }
      by_regime[launch > slowest ? Regime::kLaunch : regime] += count * (slowest + launch);
      run.seconds += count * (slowest + launch);
      run.link_bytes += count * k.work->link_bytes;
    }
    run.regime = longest(by_regime);
  }

  const Model& model_;
  const Device& device_;
  const Choice& c_;
  expr::Map scope_;
  expr::Map stored_;  ///< the request as floating-point values: models beyond any memory may exceed 2^63 elements
};

Result<ModelRun> step(const Model& model, const Device& device, const Choice& choice) {
  Step s(model, device, choice);
  ROOFGEN_CHECK(s.open());
  return s.run();
}

Result<ModelMemory> memory(const Model& model, const Device& device, const Choice& choice) {
  Step s(model, device, choice);
  ROOFGEN_CHECK(s.open());
  ModelMemory out;
  ROOFGEN_TRY(out.weights, s.weight_bytes());
  ROOFGEN_TRY(out.kv_cache, s.bytes(model.kv_cache));
  ROOFGEN_TRY(out.activations, s.bytes(model.activations));
  out.capacity = device.at("memory_bytes");
  return out;
}

int64_t largest_batch(const Model& model, const Device& device, Choice choice) {
  int64_t fits = 0, too_many = kMaxBatch + 1;
  while (fits + 1 < too_many) {
    choice.request.batch = fits + (too_many - fits) / 2;
    // The search also tries batches far beyond any memory; a batch that overflows a `let` of the model does not fit.
    const auto m = memory(model, device, choice);
    (m && m->fits() ? fits : too_many) = choice.request.batch;
  }
  return fits;
}

double unsharded_share(const ModelRun& one) {
  double seconds = 0;
  for (const OperatorRun& o : one.operators)
    if (!o.sharded) seconds += o.seconds;
  return seconds / one.seconds;
}

void warn(const Model& model, const Device& device, ModelRun& run) {
  const ModelMemory& m = run.memory;
  if (!m.fits())
    run.warnings.push_back(
        {"R18", fmt::format("{} at batch {} and {} {} needs {}{}, {} has {}: {}", model.name, run.request.batch,
                            run.seq == 1 ? "kv" : "seq", run.kv, bytes_text(m.total()),
                            run.request.tp > 1 ? " on each GPU" : "", device.name, bytes_text(m.capacity),
                            run.largest_batch > 0 ? fmt::format("at most batch {} fits", run.largest_batch)
                                                  : "not even one sequence fits")});
  int64_t kernels = 0;
  for (const OperatorRun& o : run.operators) kernels += o.count * static_cast<int64_t>(o.explanation.kernels.size());
  const double launches = 1e-6 * device.at("launch_us") * static_cast<double>(kernels);
  if (run.request.launches == Launches::kSeparate && run.seconds < kFewLaunches * launches)
    run.warnings.push_back(
        {"R17", fmt::format("{} launches of {:g} us are {} of the step's {}: a CUDA graph removes the gaps", kernels,
                            device.at("launch_us"), time_text(launches), time_text(run.seconds))});
}

}  // namespace

double amdahl_bound(double share, double factor) { return 1 / (1 - share + share / factor); }

Result<double> parameter_count(const Model& model) {
  Choice c;
  c.phase = &model.phases.front();
  c.dtypes = &model.dtypes.front();
  c.request.length = c.phase->preset;
  const Device none;
  Step s(model, none, c);
  ROOFGEN_CHECK(s.open());
  return s.parameters();
}

Result<ModelRun> run_model(const Model& model, const Device& device, const ModelRequest& request) {
  ROOFGEN_TRY(const Choice choice, choose(model, request));
  if (request.tp > 1 && !device.has("nvlink_gb_s"))
    return Error{Exit::kUsage, fmt::format("{} has no NVLink: tp {} needs a device with one", device.name, request.tp)};
  ROOFGEN_TRY(ModelRun run, step(model, device, choice));
  ROOFGEN_TRY(run.memory, memory(model, device, choice));
  run.largest_batch = largest_batch(model, device, choice);

  for (const int64_t rows : kManyRows) {
    Choice many = choice;
    many.request.batch = std::max<int64_t>(1, rows / choice.seq());
    const auto limit = step(model, device, many);
    if (!limit) continue;
    run.ai_limit = limit->arithmetic_intensity();
    run.units_per_s_limit = limit->units_per_s();
    break;
  }
  if (choice.phase->length == "kv" && run.memory.kv_cache > 0)
    run.kv_units_per_s =
        run.units /
        (run.memory.kv_cache / (roof_of(device, Resource::kDram, request.roofs).rate * request.bandwidth_efficiency));

  if (request.tp > 1) {
    Choice alone = choice;
    alone.request.tp = 1;
    ROOFGEN_TRY(const ModelRun one, step(model, device, alone));
    run.parallel.unsharded_share = unsharded_share(one);
    run.parallel.amdahl_bound = amdahl_bound(1 - run.parallel.unsharded_share, static_cast<double>(request.tp));
    run.parallel.speedup = one.seconds / run.seconds;
  } else {
    run.parallel.unsharded_share = unsharded_share(run);
  }
  warn(model, device, run);
  return run;
}

Result<std::vector<ModelRun>> sweep_model(const Model& model, const Device& device, ModelRequest request,
                                          const std::vector<int64_t>& batches, const std::vector<int64_t>& lengths) {
  constexpr size_t kMaxRuns = 4096;
  if (batches.empty() || lengths.empty())
    return Error{Exit::kUsage, fmt::format("no {} to run {} at; at least one was expected",
                                           batches.empty() ? "batch" : "length", model.name)};
  if (batches.size() > kMaxRuns || lengths.size() > kMaxRuns || batches.size() * lengths.size() > kMaxRuns)
    return Error{Exit::kUsage, fmt::format("{} batches at {} lengths; at most {} points were expected", batches.size(),
                                           lengths.size(), kMaxRuns)};
  std::vector<ModelRun> out;
  for (int64_t length : lengths)
    for (int64_t batch : batches) {
      request.length = length;
      request.batch = batch;
      ROOFGEN_TRY(ModelRun run, run_model(model, device, request));
      out.push_back(std::move(run));
    }
  return out;
}

}  // namespace roofgen

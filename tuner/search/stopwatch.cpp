#include "tuner/search/stopwatch.h"

#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "base/suggest.h"

namespace roofgen {
namespace {

/// Candidates of one heat. Each round runs all of them once, and a drift of the clock within a round is
/// what interleaving cannot undo: rounds must be short.
constexpr size_t kHeat = 48;

/// Between two measurements of one run the GPU idles for seconds: it is warm, and the clock soon up again.
constexpr double kStillWarm_s = 0.5;

Contender contender_of(const std::string& name, std::vector<Contender::Kernel> kernels,
                       const std::vector<const Task*>& tasks) {
  Contender out;
  out.name = name;
  out.kernels = std::move(kernels);
  for (const Task* t : tasks) {
    out.registers = std::max(out.registers, t->candidate.binary.registers);
    out.smem_bytes = std::max<int64_t>(out.smem_bytes, t->candidate.binary.static_smem_bytes + t->launch.smem_bytes);
  }
  return out;
}

/// What the ranking goes by.
double median_ns(const Measurement& m) { return m.cold ? m.cold->median_ns : m.hot ? m.hot->median_ns : 0; }

}  // namespace

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

const char* to_string(Check check) {
  return check == Check::kAll ? "all" : check == Check::kFinalists ? "finalists" : "gpu";
}

Result<Check> parse_check(const std::string& name) {
  for (Check c : {Check::kAll, Check::kFinalists, Check::kGpu})
    if (name == to_string(c)) return c;
  return Error{Exit::kUsage,
               fmt::format("unknown check \"{}\"{}", name, did_you_mean(name, {"all", "finalists", "gpu"}))};
}

Stopwatch::Stopwatch(const TuneContext& context, const Problem& problem, const TuneOptions& options,
                     const SearchPlan& plan, TuneReport& report, std::function<void(Rejected)> reject,
                     std::function<double()> seconds_left)
    : context_(context),
      problem_(problem),
      options_(options),
      plan_(plan),
      report_(report),
      reject_(std::move(reject)),
      seconds_left_(std::move(seconds_left)) {}

/// A buffer that was not asked for (LSE) is a null pointer.
Contender::Kernel Stopwatch::kernel_of(const Task& task) const {
  Contender::Kernel out{&task.candidate.binary, task.launch};
  std::set<std::string> known;
  for (const Buffer& b : context_.op.buffers(problem_)) known.insert(b.name);
  if (auto temps = temporaries(*task.candidate.variant, plan_.scope))
    for (const Buffer& b : *temps) known.insert(b.name);
  for (Arg& arg : out.launch.args)
    if (arg.is_buffer && !known.count(arg.name)) {
      arg.is_buffer = false;
      arg.bits = 0;
    }
  return out;
}

std::vector<BenchBuffer> Stopwatch::buffers(const std::vector<Contender>& contenders,
                                            const std::vector<Contender::Kernel>& prepare) const {
  std::set<std::string> used;
  const auto use = [&](const Contender::Kernel& k) {
    for (const Arg& arg : k.launch.args)
      if (arg.is_buffer) used.insert(arg.name);
  };
  for (const Contender& c : contenders)
    for (const Contender::Kernel& k : c.kernels) use(k);
  for (const Contender::Kernel& k : prepare) use(k);
  std::vector<BenchBuffer> out;
  const auto add = [&](const Buffer& b) {
    if (used.erase(b.name) == 0) return;
    Fill fill = nullptr;
    if (b.role == Buffer::Role::kInput)
      fill = [op = &context_.op, problem = problem_, name = b.name](uint64_t offset, std::span<std::byte> to) {
        op->fill(problem, InputPattern::kNormal, name, offset, to);
      };
    out.push_back({b.name, b.bytes, std::move(fill)});
  };
  for (const Buffer& b : context_.op.buffers(problem_)) add(b);
  for (const Variant& v : plan_.variants)
    if (auto temps = temporaries(v, plan_.scope))
      for (const Buffer& b : *temps) add(b);
  return out;
}

Result<Standings> Stopwatch::run(const Workload& workload, const std::vector<Contender>& contenders, const char* phase,
                                 bool hot) {
  BenchHooks hooks;
  hooks.warn = options_.warn;
  hooks.stop = options_.stop;
  if (options_.progress)
    hooks.progress = [&](const char*, uint64_t done, uint64_t total) { options_.progress(phase, done, total); };
  if (options_.bench_clock) hooks.clock = *options_.bench_clock;
  if (seconds_left_) hooks.deadline_s = hooks.clock.now_s() + std::max(0.0, seconds_left_());
  Protocol protocol = options_.protocol;
  protocol.hot = protocol.hot && (hot || !protocol.cold);
  if (warm_) protocol.warmup_s = std::min(protocol.warmup_s, kStillWarm_s);
  warm_ = true;
  ROOFGEN_TRY(Standings standings, measure(*context_.gpu, workload, contenders, protocol, hooks));
  GpuRun& gpu = *report_.gpu;
  gpu.buffer_sets = gpu.timed == 0 ? standings.buffer_sets : std::min(gpu.buffer_sets, standings.buffer_sets);
  for (std::string& note : standings.notes)
    if (std::find(gpu.notes.begin(), gpu.notes.end(), note) == gpu.notes.end()) gpu.notes.push_back(std::move(note));
  if (standings.lost) {
    lost_ = true;
    gpu.lost_because = standings.lost_because;
  }
  report_.interrupted |= standings.interrupted;
  return standings;
}

Result<void> Stopwatch::rank(StagePlan& stage, const std::vector<const Task*>& before) {
  std::vector<Task*> tasks;
  for (Task& t : stage.tasks)
    if (t.verified()) tasks.push_back(&t);
  if (tasks.empty()) return {};
  Workload workload;
  for (const Task* t : before) workload.prepare.push_back(kernel_of(*t));
  const std::string label = "timing " + stage.variant->stages[stage.index].name;

  // One heat where it can be; else heats that each hold the default, and one more of the best of all.
  const auto heat = [&](const std::vector<Task*>& in, bool last) -> Result<void> {
    std::vector<Contender> contenders;
    for (Task* t : in) {
      contenders.push_back(contender_of(to_string(t->candidate.schedule), {kernel_of(*t)}, {t}));
      contenders.back().keep = t == tasks.front();
    }
    workload.buffers = buffers(contenders, workload.prepare);
    ROOFGEN_TRY(Standings s, run(workload, contenders, label.c_str(), last));
    for (size_t i = 0; i < in.size(); ++i) {
      if (s.outcomes[i].measurement) {
        if (!in[i]->measurement) ++report_.gpu->timed;
        in[i]->measurement = std::move(s.outcomes[i].measurement);
      } else if (s.outcomes[i].rejected) {
        // A candidate that fails in a later heat does not keep the time of an earlier one.
        in[i]->measurement.reset();
        reject_({in[i]->candidate.schedule, s.outcomes[i].rejected->stage, s.outcomes[i].rejected->reason});
      }
    }
    if (!last) return {};
    stage.ranking.clear();
    stage.finalists.clear();
    for (size_t i : s.order) stage.ranking.push_back(in[i]);
    for (const Pairing& p : s.finalists) {
      const Task& t = *in[p.contender];
      if (t.measurement)
        stage.finalists.push_back({t.candidate.schedule, median_ns(*t.measurement), p.ratio, p.low, p.high, p.tied});
    }
    return {};
  };
  if (tasks.size() <= kHeat) return heat(tasks, true);

  const size_t others = tasks.size() - 1, heats = (others + kHeat - 2) / (kHeat - 1),
               each = (others + heats - 1) / heats;
  for (size_t begin = 1; begin < tasks.size() && !lost_ && !report_.interrupted; begin += each) {
    std::vector<Task*> in{tasks.front()};
    in.insert(in.end(), tasks.begin() + static_cast<ptrdiff_t>(begin),
              tasks.begin() + static_cast<ptrdiff_t>(std::min(begin + each, tasks.size())));
    ROOFGEN_CHECK(heat(in, false));
  }
  std::vector<Task*> best;
  std::copy_if(tasks.begin(), tasks.end(), std::back_inserter(best),
               [](const Task* t) { return t->measurement.has_value(); });
  std::stable_sort(best.begin(), best.end(), [](const Task* a, const Task* b) {
    return median_ns(*a->measurement) < median_ns(*b->measurement);
  });
  std::vector<Task*> rest(best.begin() + static_cast<ptrdiff_t>(std::min(best.size(), 2 * options_.protocol.finalists)),
                          best.end());
  best.resize(std::min(best.size(), 2 * options_.protocol.finalists));
  if (best.empty()) return {};
  // The default is timed beside the best, however slow: what tuning gained is told of one measurement.
  if (const auto preset = std::find(rest.begin(), rest.end(), tasks.front()); preset != rest.end()) {
    best.push_back(*preset);
    rest.erase(preset);
  }
  if (lost_ || report_.interrupted) {
    stage.ranking = best;
  } else {
    ROOFGEN_CHECK(heat(best, true));
  }
  std::copy_if(rest.begin(), rest.end(), std::back_inserter(stage.ranking),
               [](const Task* t) { return t->measurement.has_value(); });
  return {};
}

Result<ChainStandings> Stopwatch::race(const std::vector<TunedVariant>& chains) {
  ChainStandings out;
  out.measurements.resize(chains.size());
  std::vector<Contender> contenders;
  for (const TunedVariant& c : chains) {
    std::vector<Contender::Kernel> kernels;
    for (const Task* t : c.kernels) kernels.push_back(kernel_of(*t));
    contenders.push_back(contender_of(c.variant, std::move(kernels), c.kernels));
    contenders.back().keep = true;
  }
  ROOFGEN_TRY(Standings s, run({buffers(contenders, {}), {}}, contenders, "timing variants", true));
  for (size_t i = 0; i < chains.size(); ++i) {
    out.measurements[i] = std::move(s.outcomes[i].measurement);
    if (s.outcomes[i].rejected)
      reject_({Schedule{chains[i].variant, "", {}}, s.outcomes[i].rejected->stage, s.outcomes[i].rejected->reason});
  }
  out.pairs = std::move(s.finalists);
  return out;
}

}  // namespace roofgen

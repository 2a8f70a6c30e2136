#include "profile/calibrate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <limits>
#include <set>

#include "base/pool.h"
#include "base/suggest.h"
#include "profile/compiled.h"
#include "profile/fit.h"
#include "roofline/device_cells.h"
#include "runtime/sass/code.h"

namespace roofgen::profile {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

struct Scalar {
  std::string name;
  std::vector<double> values;  ///< ascending
  size_t start;                ///< the value of the device's cell
};

/// Values that hardware may have; that of the device is one more.
std::vector<Scalar> scalars_of(const Device& device) {
  std::vector<Scalar> out{{"smem_wavefront_cycles", {1, 1.25, 1.5, 2, 2.5, 3, 4}, 0},
                          {"smem_instruction_cycles", {1, 2, 3, 4, 6, 8}, 0},
                          {"memory_queue", {2, 3, 4, 6, 8, 10, 12, 16, 24}, 0},
                          {"branch_cycles", {2, 4, 6, 8, 10, 12, 16, 20, 24}, 0},
                          {"cta_start_cycles", {50, 100, 200, 300, 400, 600, 800, 1200}, 0},
                          {"fetch_latency", {50, 100, 200, 300, 400, 600, 800}, 0},
                          {"instruction_cache_bytes", {16384, 32768, 65536, 98304, 131072, 196608, 262144}, 0}};
  for (Scalar& s : out) {
    const double now = device.at(s.name);
    const auto at = std::lower_bound(s.values.begin(), s.values.end(), now);
    s.start = static_cast<size_t>(at - s.values.begin());
    if (at == s.values.end() || *at != now) s.values.insert(at, now);
  }
  return out;
}

/// A line every few seconds, from the first few seconds on.
class Progress {
 public:
  explicit Progress(std::function<void(const std::string&)> show) : show_(std::move(show)) {}
  bool is_due() {
    const auto now = std::chrono::steady_clock::now();
    if (!show_ || now - last_ < std::chrono::seconds(5)) return false;
    last_ = now;
    return true;
  }
  void show(const std::string& line) const { show_(line); }

 private:
  std::function<void(const std::string&)> show_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

/// Memory for streams that are kept from one evaluation to the next: a quarter of the machine's.
size_t most_stream_bytes() {
  return static_cast<size_t>(std::max(0l, sysconf(_SC_PHYS_PAGES))) / 4 *
         static_cast<size_t>(std::max(0l, sysconf(_SC_PAGESIZE)));
}

/// The kernels, compiled, and their modelled times.
class Models {
 public:
  Models(const CalibrateRequest& request, const std::vector<Scalar>& scalars)
      : request_(request), scalars_(scalars), kernels_(request.kernels.size()) {}

  Result<void> load(Progress& progress) {
    std::atomic<size_t> done{0};
    const size_t block = static_cast<size_t>(request_.jobs);
    for (size_t from = 0; from < kernels_.size(); from += block) {
      const auto compile = [&](size_t i) -> Result<void> {
        check::Request r = request_.kernels[from + i].kernel;
        r.cache_dir = request_.cache_dir;
        auto made = CompiledKernel::make(std::move(r), request_.device);
        if (!made) return of_kernel(from + i, std::move(made).error());
        kernels_[from + i].compiled = std::move(*made);
        ++done;
        return {};
      };
      ROOFGEN_CHECK(for_each_index(request_.jobs, std::min(block, kernels_.size() - from), compile));
      if (progress.is_due()) progress.show(fmt::format("compiled {} of {} kernels", done.load(), kernels_.size()));
    }
    std::vector<sass::CodeRequest> wanted;
    for (const Kernel& k : kernels_) {
      const Binary& b = k.compiled->binary();
      wanted.push_back({b.cubin, b.entry, b.arch});
    }
    std::vector<Result<sass::Code>> codes = sass::read_code(wanted);
    for (size_t i = 0; i < codes.size(); ++i) {
      if (!codes[i]) return of_kernel(i, std::move(codes[i]).error());
      kernels_[i].code = std::move(*codes[i]);
    }
    return {};
  }

  /// log(modelled / measured)
  Result<double> log_ratio(size_t i, const Point& point) {
    Kernel& k = kernels_[i];
    if (const auto known = k.ratios.find(point); known != k.ratios.end()) return known->second;
    Device device = request_.device;
    for (size_t s = 0; s < scalars_.size(); ++s) device.cells[scalars_[s].name].value = scalars_[s].values[point[s]];
    ROOFGEN_TRY(const timing::Machine machine, timing::machine_of(device, request_.kernels[i].sm_mhz));
    const bool fresh = !k.model;
    if (fresh) k.model.emplace(request_.device, launch_request(k.code, k.compiled->subject()));
    auto time = k.model->time(machine);
    if (!time) return of_kernel(i, std::move(time).error());
    // Streams that do not fit in memory are interpreted again for each evaluation.
    if (fresh && (stream_bytes_ += k.model->stream_bytes()) > most_stream_bytes()) {
      stream_bytes_ -= k.model->stream_bytes();
      k.model.reset();
    }
    return k.ratios[point] = std::log(time->event_s / request_.kernels[i].time_s);
  }

 private:
  struct Kernel {
    std::unique_ptr<CompiledKernel> compiled;
    sass::Code code;
    std::optional<timing::LaunchModel> model;
    std::map<Point, double> ratios;
  };

  Error of_kernel(size_t i, Error e) const {
    const TimedKernel& k = request_.kernels[i];
    e.message = fmt::format("{}: {}", e.where.line ? fmt::format("{}:{}", e.where.file, e.where.line) : k.kernel.file,
                            e.message);
    e.where = k.where;
    e.notes.clear();
    return e;
  }

  const CalibrateRequest& request_;
  const std::vector<Scalar>& scalars_;
  std::vector<Kernel> kernels_;
  std::atomic<size_t> stream_bytes_{0};
};

TimeErrors errors_of(std::vector<double> errors) {
  TimeErrors out;
  for (const double e : errors) out.mean += e / static_cast<double>(errors.size());
  std::sort(errors.begin(), errors.end());
  const auto nine_tenths = static_cast<size_t>(std::ceil(0.9 * static_cast<double>(errors.size())));
  out.most_90 = errors[std::max<size_t>(nine_tenths, 1) - 1];
  return out;
}

class Calibrator {
 public:
  explicit Calibrator(const CalibrateRequest& request)
      : request_(request),
        progress_(request.progress),
        scalars_(scalars_of(request.device)),
        models_(request, scalars_) {
    for (const TimedKernel& k : request_.kernels) ++count_[k.family];
    for (const Scalar& s : scalars_) start_.push_back(s.start);
  }

  Result<Calibration> run() {
    std::vector<std::string> names;
    for (const auto& [name, count] : count_) names.push_back(name);
    for (const std::string& name : request_.hold_out)
      if (!count_.count(name))
        return Error{Exit::kUsage,
                     fmt::format("--hold-out {}: no kernel is of this family{}", name, did_you_mean(name, names))};
    const std::set<std::string> left_out(request_.hold_out.begin(), request_.hold_out.end());
    if (left_out.size() == count_.size()) return Error{Exit::kUsage, "--hold-out leaves no family to fit"};
    ROOFGEN_CHECK(models_.load(progress_));

    std::map<std::string, std::vector<double>> held;  // errors by family
    if (left_out.empty() && count_.size() > 1)
      for (const std::string& name : names) {
        Fit fit = make_fit({name}, "without " + name);
        ROOFGEN_TRY(const Point point, fit.run());
        ROOFGEN_TRY(const double log_scale, fit.log_scale(point));
        ROOFGEN_TRY(held[name], errors(name, point, log_scale));
      }
    Fit fit = make_fit(left_out, "fit");
    ROOFGEN_TRY(Point point, fit.run());
    ROOFGEN_CHECK(judge_scalars(fit, point));

    ROOFGEN_TRY(const double log_before, fit.log_scale(start_));
    ROOFGEN_TRY(const double log_after, fit.log_scale(point));
    std::vector<double> of_fit, of_held;
    const auto append = [](std::vector<double>& to, const std::vector<double>& more) {
      to.insert(to.end(), more.begin(), more.end());
    };
    for (const auto& [name, count] : count_) {
      FittedFamily f{name, count, {}, {}, {}};
      ROOFGEN_TRY(const std::vector<double> before, errors(name, start_, log_before));
      ROOFGEN_TRY(const std::vector<double> after, errors(name, point, log_after));
      f.before = errors_of(before);
      if (left_out.count(name)) {
        held[name] = after;
      } else {
        f.after = errors_of(after);
        append(of_fit, after);
      }
      if (const auto h = held.find(name); h != held.end()) {
        f.held_out = errors_of(h->second);
        append(of_held, h->second);
      }
      out_.families.push_back(std::move(f));
    }
    out_.device = request_.device.name;
    out_.arch = request_.device.arch;
    out_.times = request_.times;
    out_.scale = request_.scale;
    out_.scale_before = std::exp(log_before);
    out_.scale_after = std::exp(log_after);
    out_.after = errors_of(of_fit);
    if (!of_held.empty()) out_.held_out = errors_of(of_held);
    ROOFGEN_TRY(out_.objective_before, objective(fit, start_));
    ROOFGEN_TRY(out_.objective_after, objective(fit, point));
    fill_cells();
    return std::move(out_);
  }

 private:
  Fit make_fit(const std::set<std::string>& left_out, const std::string& phase) {
    FitProblem p;
    for (const Scalar& s : scalars_) p.values.push_back(s.values.size());
    p.start = start_;
    const double families = static_cast<double>(count_.size() - left_out.size());
    for (const TimedKernel& k : request_.kernels)
      p.weights.push_back(left_out.count(k.family) ? 0 : 1 / (families * static_cast<double>(count_.at(k.family))));
    p.scale = request_.scale;
    p.jobs = request_.jobs;
    return Fit(
        std::move(p), [this](size_t i, const Point& point) { return models_.log_ratio(i, point); },
        [this, phase, tried = 0](double best) mutable {
          ++tried;
          if (progress_.is_due())
            progress_.show(fmt::format("{}: {} points tried, objective {:.6f}", phase, tried, best));
        });
  }

  static Result<double> objective(Fit& fit, const Point& point) {
    ROOFGEN_TRY(const std::optional<double> value, fit.objective(point, kInfinite));
    return *value;
  }

  /// Puts scalars that are not determined back to the device's values.
  Result<void> judge_scalars(Fit& fit, Point& point) {
    ROOFGEN_TRY(double at, objective(fit, point));
    const auto moved_to = [&](size_t s, size_t value) {
      Point to = point;
      to[s] = value;
      return to;
    };
    std::vector<bool> determined(scalars_.size());
    for (size_t s = 0; s < scalars_.size(); ++s)
      for (size_t v = 0; v < scalars_[s].values.size() && !determined[s]; ++v) {
        ROOFGEN_TRY(const std::optional<double> value, fit.objective(moved_to(s, v), at + kDetermines));
        determined[s] = !value || std::abs(*value - at) >= kDetermines;
      }
    for (size_t s = 0; s < scalars_.size(); ++s)
      if (!determined[s]) point[s] = start_[s];
    ROOFGEN_TRY(at, objective(fit, point));
    for (size_t s = 0; s < scalars_.size(); ++s) {
      const Scalar& scalar = scalars_[s];
      FittedScalar f{scalar.name, scalar.values[start_[s]], scalar.values[point[s]], {}, {}, determined[s]};
      if (point[s] > 0) {
        ROOFGEN_TRY(const double value, objective(fit, moved_to(s, point[s] - 1)));
        f.less = value - at;
      }
      if (point[s] + 1 < scalar.values.size()) {
        ROOFGEN_TRY(const double value, objective(fit, moved_to(s, point[s] + 1)));
        f.more = value - at;
      }
      out_.scalars.push_back(std::move(f));
    }
    return {};
  }

  /// Of the kernels of a family.
  Result<std::vector<double>> errors(const std::string& family, const Point& point, double log_scale) {
    std::vector<double> out;
    for (size_t i = 0; i < request_.kernels.size(); ++i) {
      if (request_.kernels[i].family != family) continue;
      ROOFGEN_TRY(const double ratio, models_.log_ratio(i, point));
      out.push_back(std::abs(std::exp(ratio + log_scale) - 1));
    }
    return out;
  }

  void fill_cells() {
    std::vector<std::string> families, files;
    size_t kernels = 0;
    for (const FittedFamily& f : out_.families)
      if (f.after) families.push_back(f.name), kernels += f.kernels;
    for (const TimesSource& t : out_.times) files.push_back(std::filesystem::path(t.file).filename().string());
    const std::string source =
        fmt::format("fitted on {} kernel{} of {} {} ({}), 90 % error {:.1f} %{}", kernels, kernels == 1 ? "" : "s",
                    families.size() == 1 ? "family" : "families", fmt::join(families, ", "), fmt::join(files, ", "),
                    100 * out_.after.most_90,
                    out_.held_out ? fmt::format("; held-out {:.1f} %", 100 * out_.held_out->most_90) : "");
    for (const FittedScalar& s : out_.scalars)
      if (s.determined) out_.cells[s.name] = {s.fitted, std::string(cell_spec(s.name)->unit), Origin::kModel, source};
  }

  const CalibrateRequest& request_;
  Progress progress_;
  const std::vector<Scalar> scalars_;
  Models models_;
  std::map<std::string, size_t> count_;  ///< kernels of each family
  Point start_;
  Calibration out_;
};

}  // namespace

Result<Calibration> calibrate(CalibrateRequest request) {
  // Names the missing cell.
  ROOFGEN_CHECK(timing::machine_of(request.device));
  return Calibrator(request).run();
}

}  // namespace roofgen::profile

// Kernels of sm_90a in the event model, for docs/evidence/fidelity-kernels.md: the GEMM ladder of fast.cu and
// FlashAttention-3 at d 128, from kernels written after them (gemm_ladder.cu, attention.cu), beside published times;
// and schedules of roofgen's own templates beside measured times. No GPU takes part. Prints Markdown tables.
//
//   warpgroups FOLDER [--explain] [--only gemm|attention|measured] [--results DIR]
//
// FOLDER: of the two kernels. DIR: of `lab/visit/archives.py unpack DIR`, for the measured schedules.
#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "generator/ops/op.h"
#include "lab/fidelity/compiled.h"
#include "tests/profile/generated.h"
#include "tuner/timing/launch_time.h"

namespace {

using namespace roofgen;

/// Rows of 128 swizzled bytes, of a matrix of 16-bit elements or a stack of such matrices.
Arg map_of(const char* name, DType dtype, std::vector<uint64_t> dims, std::vector<uint64_t> stride_bytes,
           uint32_t box_rows) {
  auto map = std::make_shared<TensorMap>();
  map->dtype = dtype;
  map->box.assign(dims.size(), 1);
  map->box[0] = 64, map->box[1] = box_rows;
  map->dims = std::move(dims);
  map->stride_bytes = std::move(stride_bytes);
  map->swizzle_bytes = 128;
  Arg out{name, true, 0, 8, {}, {}};
  out.map = std::move(map);
  return out;
}

Arg scalar(const char* name, uint64_t bits) { return {name, false, bits, 4, {}, {}}; }

struct Timed {
  Binary binary;
  timing::LaunchTime time;
};

Timed timed(const std::string& source, const char* entry, const Launch& launch, double buffer_bytes,
            std::optional<double> dram_bytes, double clock) {
  static const Device device = need(load_device(DataFiles{}, "h100-sxm"));
  const auto [binary, code] = compiled(source, entry, "sm_90a");
  Timed out{binary, {}};
  timing::LaunchRequest request;
  request.code = &code;
  request.launch = timing::stream_launch(launch);
  request.registers = out.binary.registers;
  request.smem_bytes = out.binary.static_smem_bytes + launch.smem_bytes;
  request.buffer_bytes = buffer_bytes;
  request.dram_bytes = dram_bytes;
  const timing::Machine machine = need(timing::machine_of(device, clock));
  out.time = need(timing::launch_time(device, machine, std::move(request)));
  return out;
}

double share_of(const timing::LaunchTime& t, double cycles) { return 100 * cycles / t.sm.cycles; }
double tensor_share(const timing::LaunchTime& t) {
  return share_of(t, t.sm.pipe_cycles[static_cast<size_t>(sass::Pipe::kTensor)] / 4);
}

void explain(const timing::LaunchTime& t) {
  fmt::print(
      "    {} CTAs on an SM, {:.2f} waves, {} simulated, imbalance {:.2f}; L2 {:.0f} % ({:.2f} from DRAM), DRAM "
      "{:.0f} %, shared memory {:.0f} %; broken waits {}, doubts {}\n",
      t.occupancy.ctas_per_sm, t.waves, t.simulated_ctas, t.imbalance, share_of(t, t.sm.l2_cycles), t.l2_miss,
      share_of(t, t.sm.dram_cycles), share_of(t, t.sm.shared_cycles), t.sm.broken_waits, t.doubts.size());
  for (size_t k = 0; k < t.sm.stalls.size(); ++k)
    if (t.sm.stalls[k] > 0.01 * t.sm.warp_cycles)
      fmt::print("      {} {:.0f} %\n", to_string(static_cast<timing::Stall>(k)),
                 100 * t.sm.stalls[k] / t.sm.warp_cycles);
  for (const sass::Doubt& d : t.doubts) fmt::print("      doubt at {} x {}\n", d.index, d.count);
}

// ---- GEMM ----------------------------------------------------------------------------------------

constexpr int kSize = 4096;

struct Step {
  const char* name;
  double published;  ///< TFLOP/s
  int bm, bn, stages, consumers, producer, all_arrive, persistent, cluster, zero_first, staged;
};

// pranjalssh/fast.cu (examples/matmul at 38eb642) on an H100, 4096 x 4096 x 4096; its clock is not stated.
constexpr Step kSteps[] = {
    {"tensor copies, wgmma, 64 x 64", 317, 64, 64, 1, 1, 0, 0, 0, 1, 1, 0},
    {"tiles of 128 x 128", 423, 128, 128, 1, 1, 0, 0, 0, 1, 1, 0},
    {"a producer warpgroup, 5 stages", 498, 128, 128, 5, 1, 1, 1, 0, 1, 1, 0},
    {"two consumers, 128 x 256", 610, 128, 256, 3, 2, 1, 1, 0, 1, 1, 0},
    {"persistent, groups of tiles", 660, 128, 256, 3, 2, 1, 1, 1, 1, 1, 0},
    {"one arrival a warpgroup", 704, 128, 256, 3, 2, 1, 0, 1, 1, 1, 0},
    {"clusters of 2, multicast of B", 734, 128, 256, 3, 2, 1, 0, 1, 2, 1, 0},
    {"no zeroing of accumulators", 747, 128, 256, 3, 2, 1, 0, 1, 2, 0, 0},
    {"asynchronous stores of C", 758, 128, 256, 3, 2, 1, 0, 1, 2, 0, 1},
};

Timed timed(const Step& s, const std::string& source) {
  constexpr int kSms = 132;
  const auto matrix = [](const char* name, int box_rows) {
    return map_of(name, DType::kBf16, {kSize, kSize}, {2 * kSize}, static_cast<uint32_t>(box_rows));
  };
  Launch launch;
  const int tiles = (kSize / s.bm) * (kSize / s.bn);
  launch.grid = {static_cast<uint32_t>(s.persistent ? std::min(tiles, kSms) : tiles), 1, 1};
  launch.block = {static_cast<uint32_t>(128 * (s.consumers + s.producer)), 1, 1};
  launch.cluster = {static_cast<uint32_t>(s.cluster), 1, 1};
  launch.smem_bytes = static_cast<uint32_t>(1024 + s.stages * (s.bm + s.bn) * 128 + (s.staged ? s.bm * s.bn * 2 : 0));
  launch.args = {matrix("a", s.bm),
                 matrix("b", s.bn / s.cluster),
                 matrix("c", s.bm / s.consumers),
                 Arg{"c_direct", true, 0, 8, {}, {}},
                 scalar("m", kSize),
                 scalar("n", kSize),
                 scalar("k", kSize)};
  const std::string macros = fmt::format(
      "#define BM {}\n#define BN {}\n#define STAGES {}\n#define CONSUMERS {}\n#define PRODUCER {}\n#define ALL_ARRIVE "
      "{}\n#define PERSISTENT {}\n#define CLUSTER {}\n#define ZERO_FIRST {}\n#define STAGED {}\n",
      s.bm, s.bn, s.stages, s.consumers, s.producer, s.all_arrive, s.persistent, s.cluster, s.zero_first, s.staged);
  return timed(macros + source, "gemm", launch, 3.0 * 2 * kSize * kSize, {}, 0);
}

void print_gemm(const std::string& source, bool with_reasons) {
  fmt::print(
      "| step | published TFLOP/s | event | interval | roofline | published gain | event gain | quotient | "
      "SM clock | tensor pipe |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  double before = 0, published_before = 0;
  for (const Step& s : kSteps) {
    const timing::LaunchTime t = timed(s, source).time;
    const auto rate = [&](double seconds) { return 2.0 * kSize * kSize * kSize / seconds / 1e12; };
    const double event = rate(t.event_s);
    const std::string gains =
        before > 0 ? fmt::format("{:+.1f} % | {:+.1f} % | {:.2f}", 100 * (s.published / published_before - 1),
                                 100 * (event / before - 1), event / before / (s.published / published_before))
                   : "- | - | -";
    fmt::print("| {} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {} | {:.0f} MHz | {:.0f} % |\n", s.name, s.published, event,
               rate(t.interval_s), rate(t.roofline_s), gains, t.clock_hz / 1e6, tensor_share(t));
    if (with_reasons) explain(t);
    before = event, published_before = s.published;
  }
}

// ---- Attention -----------------------------------------------------------------------------------

struct Point {
  const char* role;
  int batch, length;
  bool causal;
  double us;  ///< published
  double clock_mhz;
};

/// The bars of a figure state TFLOP/s, with half the operations under a mask.
constexpr double us_of(int batch, int length, bool causal, double tflops) {
  return 4.0 * batch * 16 * length * length * 128 * (causal ? 0.5 : 1) / tflops / 1e6;
}

// FlashGPU-Sim, tests/baselines/fa3-sass-ccd2-20260914: Nsight Compute's times on an H100 at 1500 MHz. The others are
// bars of Dao-AILab/flash-attention, assets/flash3_fp16_fwd.png, at a clock that it does not state.
constexpr Point kPoints[] = {
    {"fit", 16, 512, false, 71.712, 1500},
    {"fit", 16, 512, true, 65.312, 1500},
    {"fit", 64, 512, false, 268.26, 1500},
    {"fit", 64, 512, true, 244.06, 1500},
    {"fit", 32, 1024, false, 457.6, 1500},
    {"fit", 32, 1024, true, 305.12, 1500},
    {"fit", 16, 2048, false, 842.72, 1500},
    {"fit", 16, 2048, true, 470.14, 1500},
    {"fit", 8, 4096, false, 1610.0, 1500},
    {"fit", 8, 4096, true, 841.18, 1500},
    {"report", 16, 1024, false, us_of(16, 1024, false, 565), 0},
    {"report", 16, 1024, true, us_of(16, 1024, true, 423), 0},
    {"report", 8, 2048, false, us_of(8, 2048, false, 625), 0},
    {"report", 8, 2048, true, us_of(8, 2048, true, 521), 0},
    {"report", 4, 4096, false, us_of(4, 4096, false, 638), 0},
    {"report", 4, 4096, true, us_of(4, 4096, true, 579), 0},
    {"report", 2, 8192, false, us_of(2, 8192, false, 646), 0},
    {"report", 2, 8192, true, us_of(2, 8192, true, 602), 0},
    {"report", 1, 16384, false, us_of(1, 16384, false, 648), 0},
    {"report", 1, 16384, true, us_of(1, 16384, true, 616), 0},
};

Timed timed(const Point& p, const std::string& source) {
  constexpr int kD = 128, kRows = 128, kSms = 132, kStages = 2;
  const int heads = 16 * p.batch, keys = p.causal ? 128 : 176;
  const auto stack = [&](const char* name, int box_rows) {
    const auto rows = static_cast<uint64_t>(p.length);
    return map_of(name, DType::kFp16, {kD, rows, static_cast<uint64_t>(heads)}, {2 * kD, 2 * kD * rows},
                  static_cast<uint32_t>(box_rows));
  };
  Launch launch;
  launch.grid = {static_cast<uint32_t>(std::min(kSms, (p.length + kRows - 1) / kRows * heads)), 1, 1};
  launch.block = {384, 1, 1};
  launch.smem_bytes = static_cast<uint32_t>(1024 + 2 * kD * (kRows + 2 * kStages * keys));
  // FlashAttention-3's order: heads in powers of two whose K and V fit in 32 MiB.
  uint64_t in_l2 = 1;
  while (2 * in_l2 * static_cast<uint64_t>(p.length) * 4 * kD <= (32u << 20) &&
         2 * in_l2 <= static_cast<uint64_t>(heads))
    in_l2 *= 2;
  const float scale = 1.4426950408889634f / 11.3137085f;
  uint32_t bits = 0;
  std::memcpy(&bits, &scale, sizeof bits);
  launch.args = {stack("q", kRows),
                 stack("k", keys),
                 stack("v", keys),
                 stack("o", kRows / 2),
                 scalar("length", static_cast<uint64_t>(p.length)),
                 scalar("heads", static_cast<uint64_t>(heads)),
                 scalar("heads_in_l2", in_l2),
                 scalar("scale", bits)};
  // Its order of tiles is made for L2: each tensor crosses DRAM once.
  const double bytes = 4.0 * 2 * kD * p.length * heads;
  return timed(fmt::format("#define KEYS {}\n#define CAUSAL {}\n", keys, p.causal ? 1 : 0) + source, "attention",
               launch, bytes, bytes, p.clock_mhz);
}

void print_attention(const std::string& source, bool with_reasons) {
  fmt::print(
      "| point | role | published us | event us | interval us | roofline us | event error | interval error | "
      "SM clock | tensor pipe |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  for (const Point& p : kPoints) {
    const timing::LaunchTime t = timed(p, source).time;
    const auto error = [&](double seconds) { return 100 * (seconds * 1e6 / p.us - 1); };
    fmt::print(
        "| {} x 16 heads, {}{} | {} | {:.1f} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} % | {:+.1f} % | {:.0f} MHz | "
        "{:.0f} % |\n",
        p.batch, p.length, p.causal ? " causal" : "", p.role, p.us, 1e6 * t.event_s, 1e6 * t.interval_s,
        1e6 * t.roofline_s, error(t.event_s), error(t.interval_s), t.clock_hz / 1e6, tensor_share(t));
    if (with_reasons) explain(t);
    std::fflush(stdout);
  }
}

// ---- Measured schedules ----------------------------------------------------------------------------

using Json = nlohmann::json;

struct Measured {
  std::string device;
  Problem problem;
  std::string text;  ///< of the schedule
  profile::Pins pins;
  double us = 0, clock_mhz = 0;
  std::string space;  ///< of a schedule that a search explored; empty: the best, or one timed alone
};

/// The text of a file, unpacked if its name ends in .gz.
std::string unpacked(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  std::string out;
  std::array<char, 1 << 16> part{};
  for (int got = 0; file && (got = gzread(file, part.data(), part.size())) > 0;)
    out.append(part.data(), static_cast<size_t>(got));
  if (file) gzclose(file);
  return out;
}

Problem problem_of(const Json& j) {
  Problem out;
  j.at("op").get_to(out.op);
  out.dtype = parse_dtype(j.at("dtype").get<std::string>()).value_or(DType::kBf16);
  for (const char* dim : {"M", "N", "K", "L", "d", "batch", "heads", "kv_heads", "kv_len"})
    if (j.contains(dim)) j.at(dim).get_to(out.dims[dim]);
  for (const char* flag : {"causal", "lse"})
    if (j.contains(flag)) out.flags[flag] = j.at(flag).get<bool>();
  for (const char* text : {"epilogue", "a_layout", "b_layout", "gated"})
    if (j.contains(text)) j.at(text).get_to(out.texts[text]);
  return need(need(find_op(out.op))->complete(std::move(out)));
}

std::string device_of(const std::string& gpu) {
  return gpu.find("H200") == std::string::npos ? "h100-sxm" : "h200-sxm";
}

Measured measured_of(const std::string& gpu, const Json& problem, const Json& params, double us, double clock_mhz) {
  Measured out{device_of(gpu), problem_of(problem), "", {}, us, clock_mhz, ""};
  for (const auto& [name, value] : params.items()) {
    if (value.is_boolean())
      out.pins[name] = value.get<bool>();
    else if (value.is_string())
      out.pins[name] = value.get<std::string>();
    else
      out.pins[name] = value.get<int64_t>();
    // Parameters that change nothing stay out of the table.
    if (value == 1 || value == 0 || value == false || value == "direct" || value == "always") continue;
    out.text += fmt::format("{}{}={}", out.text.empty() ? "" : " ", name,
                            value.is_string() ? value.get<std::string>() : value.dump());
  }
  out.pins.try_emplace("persistent", false);  // the first records are older than the parameter
  return out;
}

double measurement_of(const Json& point, const char* name) {
  for (const Json& m : point.at("measurements"))
    if (m.at("name") == name) return m.at("value").get<double>();
  return 0;
}

bool is_warpgroup(const Json& problem, const std::string& variant) {
  return variant == "warpgroup" && (problem.at("op") == "gemm" || problem.at("op") == "attention");
}

/// The best schedules of the warpgroup variants and those timed alone, each at its own clock, and those that searches
/// explored. The first exploration has the clock of its best alone, and its schedules with clusters are left out: their
/// arrivals at other CTAs were fences for the whole GPU, which the template has no more (templates/lib/barrier.cuh).
std::vector<Measured> measured_in(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<Measured> out;
  for (const auto& file : files) {
    const std::string name = file.filename();
    if ((name.starts_with("tune.") || name.starts_with("alone.")) && name.ends_with(".json")) {
      const Json whole = Json::parse(unpacked(file)), result = whole.value("result", Json());
      if (!result.is_object()) continue;
      for (const Json& variant : result.at("variants")) {
        if (!is_warpgroup(result.at("problem"), variant.at("name").get<std::string>()) || variant.at("kernels").empty())
          continue;
        const Json& m = variant.at("measurement");
        if (m.is_null()) continue;
        const Json& timing = m.at("cold").is_null() ? m.at("hot") : m.at("cold");
        out.push_back(measured_of(whole.at("gpu").at("name").get<std::string>(), result.at("problem"),
                                  variant.at("kernels")[0].at("schedule").at("params"),
                                  timing.at("median_us").get<double>(), m.at("sm_mhz").get<double>()));
      }
    } else if (name.ends_with(".t4.json.gz")) {
      const Json run = Json::parse(unpacked(file)), &about = run.at("metadata");
      if (!is_warpgroup(about.at("problem"), about.at("variant").get<std::string>())) continue;
      const Json& gpu = about.at("gpu");
      const bool first = name.starts_with("explore.");
      for (const Json& point : run.at("results")) {
        if (point.at("invalidity") != "correct" || (first && point.at("configuration").value("cluster", 1) > 1))
          continue;
        const double clock = first ? gpu.at("at_clock").at("sm_mhz").get<double>() : measurement_of(point, "sm_clock");
        if (!(clock > 0)) continue;
        out.push_back(measured_of(gpu.at("name").get<std::string>(), about.at("problem"), point.at("configuration"),
                                  1e3 * measurement_of(point, "time"), clock));
        out.back().space = file.parent_path().filename().string() + " " + name.substr(0, name.size() - 11);
      }
    }
  }
  return out;
}

Result<timing::LaunchTime> timed(const Measured& m) {
  const profile::Compiled compiled = need(profile::compile({m.problem, m.device, m.pins, {}, "warpgroup"}));
  const sass::Code code =
      need(std::move(sass::read_code({{compiled.binary.cubin, compiled.binary.entry, compiled.binary.arch}}).at(0)));
  timing::LaunchRequest request = profile::launch_request(compiled);
  request.code = &code;
  return timing::launch_time(compiled.device, need(timing::machine_of(compiled.device, m.clock_mhz)),
                             std::move(request));
}

double mean(const std::vector<double>& v) {
  double sum = 0;
  for (const double x : v) sum += x;
  return sum / static_cast<double>(v.size());
}

double covariance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t k = 0; k < a.size(); ++k) sum += (a[k] - mean(a)) * (b[k] - mean(b));
  return sum;
}

struct Errors {
  std::vector<double> percent, modelled, measured;  ///< of the event model; logarithms of times
};

std::string problem_text(const Problem& p) {
  const auto dim = [&](const char* name) { return p.dims.count(name) ? p.dims.at(name) : 0; };
  const bool causal = p.flags.count("causal") && p.flags.at("causal");
  return p.op == "gemm"
             ? fmt::format("GEMM {} {}", to_string(p.dtype), dim("M"))
             : fmt::format("attention {} d {}, {}{}", to_string(p.dtype), dim("d"), dim("L"), causal ? " causal" : "");
}

/// The single schedules, and a summary of each explored space.
void print_measured(const std::string& folder, bool with_reasons) {
  fmt::print(
      "| device | problem | schedule | measured us | event us | interval us | event error | interval error | SM clock "
      "| "
      "rule | tensor pipe |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n");
  std::map<std::string, Errors> spaces;
  for (const Measured& m : measured_in(folder)) {
    const timing::Machine machine = need(timing::machine_of(need(load_device(DataFiles{}, m.device))));
    const Result<timing::LaunchTime> modelled = timed(m);
    if (!modelled) {
      fmt::print(stderr, "warpgroups: {} {}: {}\n", problem_text(m.problem), m.text, to_string(modelled.error()));
      continue;
    }
    const timing::LaunchTime& t = *modelled;
    const auto error = [&](double seconds) { return 100 * (seconds * 1e6 / m.us - 1); };
    if (!m.space.empty()) {
      Errors& all = spaces[m.space];
      all.percent.push_back(error(t.event_s));
      all.modelled.push_back(std::log(t.event_s));
      all.measured.push_back(std::log(m.us));
      continue;
    }
    // The clock that the model would choose if the kernel took as long as measured.
    const double rule = timing::clock_of(machine, t.tensor_flops / t.tensor_peak_flops / (1e-6 * m.us)) / 1e6;
    fmt::print(
        "| {} | {} | {} | {:.1f} | {:.1f} | {:.1f} | {:+.1f} % | {:+.1f} % | {:.0f} MHz | {:.0f} MHz | {:.0f} % |\n",
        m.device, problem_text(m.problem), m.text, m.us, 1e6 * t.event_s, 1e6 * t.interval_s, error(t.event_s),
        error(t.interval_s), m.clock_mhz, rule, tensor_share(t));
    if (with_reasons) explain(t);
    std::fflush(stdout);
  }
  fmt::print(
      "\n| explored space | points | median error | median absolute error | correlation of the logarithms |\n"
      "| --- | --- | --- | --- | --- |\n");
  for (auto& [name, all] : spaces) {
    const double correlation =
        all.modelled.size() < 3
            ? 0
            : covariance(all.modelled, all.measured) /
                  std::sqrt(covariance(all.modelled, all.modelled) * covariance(all.measured, all.measured));
    const auto median = [](std::vector<double> v) {
      std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
      return v[v.size() / 2];
    };
    std::vector<double> absolute = all.percent;
    for (double& x : absolute) x = std::abs(x);
    fmt::print("| {} | {} | {:+.1f} % | {:.1f} % | {:.3f} |\n", name, all.percent.size(), median(all.percent),
               median(absolute), correlation);
  }
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  if (!file) {
    fmt::print(stderr, "warpgroups: cannot read {}\n", path);
    std::exit(2);
  }
  return {std::istreambuf_iterator<char>(file), {}};
}

/// The device helpers of the templates, then the kernel.
std::string kernel_of(const std::string& path) {
  std::string out;
  for (const char* helper : {"barrier", "tensor_copy", "wgmma", "cluster"})
    out += DataFiles{}.read(fmt::format("templates/lib/{}.cuh", helper)).value() + "\n";
  return out + text_of(path);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "__compile-worker") == 0) return compile_worker_main();
  std::string folder, only, results;
  bool with_reasons = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--explain")
      with_reasons = true;
    else if (argument == "--only" && i + 1 < argc)
      only = argv[++i];
    else if (argument == "--results" && i + 1 < argc)
      results = argv[++i];
    else if (folder.empty() && !argument.starts_with('-'))
      folder = argument;
    else
      folder.clear(), i = argc;
  }
  const bool wants_results = only.empty() || only == "measured";
  if (folder.empty() || (results.empty() && wants_results) ||
      (!only.empty() && only != "gemm" && only != "attention" && only != "measured")) {
    fmt::print(stderr, "usage: warpgroups FOLDER --results DIR [--explain] [--only gemm|attention|measured]\n");
    return 2;
  }
  const auto wanted = [&](const char* part) { return only.empty() || only == part; };
  if (wanted("gemm")) print_gemm(kernel_of(folder + "/gemm_ladder.cu"), with_reasons);
  if (only.empty()) fmt::print("\n");
  if (wanted("attention")) print_attention(kernel_of(folder + "/attention.cu"), with_reasons);
  if (only.empty()) fmt::print("\n");
  if (wanted("measured")) print_measured(results, with_reasons);
}

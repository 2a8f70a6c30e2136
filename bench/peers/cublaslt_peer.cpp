// cuBLASLt beside roofgen: matrix products with epilogues, and the two products of unfused attention, timed in
// turns. docs/peers.md.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cmath>
#include <ctime>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/output_file.h"
#include "base/text_table.h"
#include "base/units.h"
#include "bench/peers/cublaslt.h"
#include "bench/peers/stream_timer.h"
#include "runtime/measure/statistics.h"
#include "tuner/evidence/replay.h"

namespace roofgen::peers {
namespace {

using Json = nlohmann::ordered_json;

constexpr uint64_t kWorkspaceBytes = uint64_t{64} << 20;
constexpr int kMostAlgorithms = 8, kTrials = 5, kPlaces = 256;

struct Flags {
  int64_t m = 0, n = 0, k = 0;
  std::string format = "bf16", epilogue = "none", mode = "both", json, bundle;
  std::vector<int64_t> attention;
  int gpu = 0, rounds = 0, algorithms = kMostAlgorithms;
  double seconds = 60, warmup = 3, rest = 1;
  std::string command;
};

/// One who can be timed on a case.
struct Contender {
  std::string name, what;
  std::function<Result<void>(size_t set)> run;
  double error = 0;
  std::string state = "timed", reason;
};

/// A case's tensors on the GPU: copies of A, B and D to rotate through.
struct Tensors {
  struct Set {
    uint64_t a = 0, b = 0, d = 0;
  };
  std::vector<Set> sets;
  uint64_t bias = 0, workspace = 0;
  std::vector<uint16_t> host_a, host_b, host_bias;  ///< of the last set, in 16-bit units whatever the format
};

Result<uint64_t> place(Gpu& gpu, const std::vector<uint16_t>& bits, Format format, const char* what) {
  const size_t each = format == Format::kFp8 ? 1 : 2;
  ROOFGEN_TRY(const uint64_t at, gpu.allocate(bits.size() * each, what));
  if (each == 2) {
    ROOFGEN_CHECK(gpu.upload(at, bits.data(), bits.size() * 2));
    return at;
  }
  std::vector<uint8_t> bytes(bits.begin(), bits.end());
  ROOFGEN_CHECK(gpu.upload(at, bytes.data(), bytes.size()));
  return at;
}

Result<Tensors> tensors_of(Gpu& gpu, const GemmCase& c) {
  Tensors t;
  const double each = (c.format == Format::kFp8 ? 1 : 2) * static_cast<double>(c.a_elements() + c.b_elements()) +
                      2 * static_cast<double>(c.d_elements());
  const int sets = static_cast<int>(std::clamp(std::ceil(3 * static_cast<double>(gpu.l2_bytes) / each), 2.0, 8.0));
  for (int s = 0; s < sets; ++s) {
    const auto seed = static_cast<uint64_t>(2 * s);
    t.host_a.resize(static_cast<size_t>(c.a_elements()));
    t.host_b.resize(static_cast<size_t>(c.b_elements()));
    for (size_t i = 0; i < t.host_a.size(); ++i) t.host_a[i] = normal_bits(c.format, seed, i);
    for (size_t i = 0; i < t.host_b.size(); ++i) t.host_b[i] = normal_bits(c.format, seed + 1, i);
    Tensors::Set set;
    ROOFGEN_TRY(set.a, place(gpu, t.host_a, c.format, "A"));
    ROOFGEN_TRY(set.b, place(gpu, t.host_b, c.format, "B"));
    ROOFGEN_TRY(set.d, gpu.allocate(2 * static_cast<uint64_t>(c.d_elements()), "D"));
    t.sets.push_back(set);
  }
  for (int64_t i = 0; i < c.n; ++i)
    t.host_bias.push_back(normal_bits(result_format(c.format), 99, static_cast<uint64_t>(i)));
  ROOFGEN_TRY(t.bias, place(gpu, t.host_bias, result_format(c.format), "bias"));
  ROOFGEN_TRY(t.workspace, gpu.allocate(kWorkspaceBytes, "cuBLASLt's workspace"));
  return t;
}

/// Runs it on the last set, into poison, and compares.
Result<double> error_of(Gpu& gpu, const GemmCase& c, const Tensors& t, const Contender& one) {
  const uint64_t to = t.sets.back().d;
  std::vector<uint16_t> d(static_cast<size_t>(c.d_elements()));
  ROOFGEN_CHECK(gpu.driver().check(gpu.driver().fill(to, 0xff, d.size() * 2, gpu.stream()), "poisoning D"));
  ROOFGEN_CHECK(one.run(t.sets.size() - 1));
  ROOFGEN_CHECK(gpu.wait("running " + one.name));
  ROOFGEN_CHECK(gpu.download(d.data(), to, d.size() * 2));
  return error_over_tolerance(c, {t.host_a, t.host_b, t.host_bias, d}, places(c, kPlaces));
}

/// The stage of an unfused bundle that computes this case: QK^T writes S, PV reads P.
Result<Contender> ours(Gpu& gpu, const GemmCase& c, const Tensors& t, const Replay& replay) {
  if (const auto causal = replay.problem.flags.find("causal"); causal != replay.problem.flags.end() && causal->second)
    return Error{Exit::kUnavailable,
                 "the bundle is causal: its kernels leave out what the mask hides, cuBLASLt multiplies it all"};
  for (const ReplayKernel& k : replay.kernels) {
    const auto takes = [&](const char* name) {
      return std::any_of(k.launch.args.begin(), k.launch.args.end(),
                         [&](const Arg& a) { return a.is_buffer && a.name == name; });
    };
    if (!(c.b_is_kn ? takes("P") && takes("V") : takes("Q") && takes("K"))) continue;
    if (takes("Q") && takes("V"))
      return Error{Exit::kUnavailable, "the bundle's kernel is fused: it has no product of its own to compare"};
    if (k.launch.cluster.count() != 1 || k.launch.overlap ||
        std::any_of(k.launch.args.begin(), k.launch.args.end(), [](const Arg& a) { return a.map != nullptr; }))
      return Error{Exit::kUnavailable, "its launch has clusters or tensor maps, which this program does not do"};
    ROOFGEN_TRY(const cuda::Handle function,
                gpu.load(k.binary.cubin, k.binary.ptx, k.binary.entry, k.launch.smem_bytes));
    Contender one;
    one.name = "roofgen:" + k.stage;
    one.what = k.binary.entry;
    one.run = [&gpu, &c, &t, function, launch = k.launch](size_t set) -> Result<void> {
      std::vector<uint64_t> values;
      for (const Arg& a : launch.args) {
        const Tensors::Set& s = t.sets[set];
        uint64_t value = a.bits;
        if (a.is_buffer)
          value = a.name == (c.b_is_kn ? "P" : "Q")   ? s.a
                  : a.name == (c.b_is_kn ? "V" : "K") ? s.b
                  : a.name == (c.b_is_kn ? "O" : "S") ? s.d
                                                      : 0;
        values.push_back(value);
      }
      std::vector<void*> pointers;
      for (uint64_t& v : values) pointers.push_back(&v);
      const Launch& l = launch;
      return gpu.driver().check(gpu.driver().launch(function, l.grid.x, l.grid.y, l.grid.z, l.block.x, l.block.y,
                                                    l.block.z, l.smem_bytes, gpu.stream(), pointers.data(), nullptr),
                                "launching roofgen's kernel");
    };
    return one;
  }
  return Error{Exit::kUnavailable, "the bundle has no kernel for it"};
}

Json timing_json(const std::vector<double>& times, double flops, const std::vector<double>* base) {
  const Timing t = summarize(times);
  Json j{{"median_ns", t.median_ns}, {"q1_ns", t.q1_ns},       {"q3_ns", t.q3_ns},
         {"min_ns", t.min_ns},       {"low_ns", t.low_ns},     {"high_ns", t.high_ns},
         {"samples", t.samples},     {"times_ns", t.times_ns}, {"tflops", flops / t.median_ns / 1e3},
         {"ratio", nullptr}};
  if (base) {
    const Ratio r = paired_ratio(times, *base);
    j["ratio"] = {{"median", r.median},
                  {"low", r.interval.low},
                  {"high", r.interval.high},
                  {"pairs", std::min(times.size(), base->size())}};
  }
  return j;
}

Json state_json(const Turns& turns) {
  Json j = Json::object();
  if (!turns.sm_mhz.empty()) j["sm_mhz"] = summarize(turns.sm_mhz).median_ns;
  if (!turns.power_w.empty()) j["power_w"] = summarize(turns.power_w).median_ns;
  return j;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", std::gmtime(&now));
  return text;
}

class Comparison {
 public:
  Comparison(Gpu& gpu, const CublasLt& lt, const Flags& flags, const Replay* replay)
      : gpu_(gpu), lt_(lt), flags_(flags), replay_(replay) {}

  Result<Json> run(const GemmCase& c) {
    ROOFGEN_TRY(const Tensors t, tensors_of(gpu_, c));
    std::vector<Contender> contenders;
    std::vector<std::string> notes;
    if (replay_) {
      auto one = ours(gpu_, c, t, *replay_);
      if (one)
        contenders.push_back(std::move(*one));
      else
        notes.push_back("roofgen: " + one.error().message);
    } else {
      notes.push_back(flags_.attention.empty() ? "roofgen has no matrix product of its own yet: the peers alone"
                                               : "no bundle of roofgen's was given: the peers alone");
    }
    auto plan = Plan::make(lt_, c, t.bias, kWorkspaceBytes, flags_.algorithms);
    if (plan) {
      ROOFGEN_CHECK(add_cublaslt(c, t, **plan, contenders));
    } else {
      Contender absent{
          "cublaslt",          "cuBLASLt", nullptr, 0, plan.error().exit == Exit::kUnavailable ? "missing" : "failed",
          plan.error().message};
      contenders.push_back(std::move(absent));
    }
    ROOFGEN_TRY(Json doc, compare(c, t, contenders, notes));
    for (const Tensors::Set& s : t.sets)
      for (uint64_t at : {s.a, s.b, s.d}) gpu_.free(at);
    gpu_.free(t.bias);
    gpu_.free(t.workspace);
    return doc;
  }

 private:
  /// The heuristic's first choice, which is what a caller gets, and the best of all it proposes.
  Result<void> add_cublaslt(const GemmCase& c, const Tensors& t, const Plan& plan, std::vector<Contender>& into) {
    const auto runner = [this, &t, &plan](size_t algorithm) {
      return [this, &t, &plan, algorithm](size_t set) {
        return plan.run(algorithm, t.sets[set].a, t.sets[set].b, t.sets[set].d, t.workspace, gpu_.stream());
      };
    };
    size_t best = 0;
    double best_ns = INFINITY;
    for (size_t i = 0; i < plan.algorithms(); ++i) {
      std::vector<double> times;
      const auto run = runner(i);
      for (int trial = 0; trial < kTrials; ++trial) {
        const auto ns = gpu_.time([&] { return run(0); }, true);
        if (!ns) break;
        times.push_back(*ns);
      }
      if (times.size() < kTrials) continue;
      if (const double ns = summarize(times).median_ns; ns < best_ns) best_ns = ns, best = i;
    }
    into.push_back(
        {"cublaslt",
         fmt::format("cuBLASLt, the fastest of {} proposed algorithms (number {})", plan.algorithms(), best + 1),
         runner(best), 0, "timed", ""});
    if (best != 0)
      into.push_back({"cublaslt-first", "cuBLASLt, the first proposed algorithm", runner(0), 0, "timed", ""});
    return {};
  }

  Result<Json> compare(const GemmCase& c, const Tensors& t, std::vector<Contender>& contenders,
                       const std::vector<std::string>& notes) {
    for (Contender& one : contenders) {
      if (one.state != "timed") continue;
      auto error = error_of(gpu_, c, t, one);
      if (!error)
        one.state = "failed", one.reason = error.error().message;
      else if (one.error = *error; !(*error <= 1))
        one.state = "wrong", one.reason = fmt::format("its error is {:.3g} times the tolerance", *error);
    }
    std::vector<const Contender*> timed;
    for (const Contender& one : contenders)
      if (one.state == "timed") timed.push_back(&one);
    Json modes = Json::array();
    std::map<std::string, Json> timings;
    const std::string base = !timed.empty() && timed[0]->name.starts_with("roofgen:") ? timed[0]->name : "";
    for (const char* mode : {"burst", "steady"}) {
      if (timed.empty() || (flags_.mode != "both" && flags_.mode != mode)) continue;
      Stage stage;
      stage.run = [&](size_t i, size_t set) { return timed[i]->run(set); };
      stage.time = [&](const Gpu::Queue& queue, bool cold) { return gpu_.time(queue, cold); };
      stage.state = [&](Turns& turns) {
        if (const double mhz = gpu_.nvml.sm_mhz(); mhz > 0) turns.sm_mhz.push_back(mhz);
        if (const double watts = gpu_.nvml.power_w(); watts > 0) turns.power_w.push_back(watts);
      };
      stage.now_s = [] {
        return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
      };
      stage.sleep_s = [](double s) { std::this_thread::sleep_for(std::chrono::duration<double>(s)); };
      Rounds rounds = Rounds::of(mode, flags_.rounds, flags_.seconds);
      (rounds.mode == "burst" ? rounds.rest_s : rounds.warmup_s) = rounds.mode == "burst" ? flags_.rest : flags_.warmup;
      ROOFGEN_TRY(const Turns turns, take_turns(stage, timed.size(), t.sets.size(), rounds));
      modes.push_back({{"mode", mode},
                       {"ways", {"cold", "hot"}},
                       {"rounds", turns.rounds},
                       {"stopped", turns.stopped},
                       {"state", state_json(turns)}});
      for (size_t i = 0; i < timed.size(); ++i)
        for (const auto& [way, by] : turns.times)
          timings[timed[i]->name][mode][way] = timing_json(by[i], c.flops(), base.empty() || i == 0 ? nullptr : &by[0]);
    }
    Json doc{{"schema", "roofgen.peers.1"},
             {"origin", "measured"},
             {"time", utc_now()},
             {"command", flags_.command},
             {"op", "gemm"}};
    doc["problem"] = {{"op", "gemm"},
                      {"name", c.name},
                      {"dtype", to_string(c.format)},
                      {"epilogue", to_string(c.epilogue)},
                      {"dims", {{"m", c.m}, {"n", c.n}, {"k", c.k}, {"batch", c.batch * c.outer}}},
                      {"flags", {{"b_is_kn", c.b_is_kn}}}};
    doc["flop_convention"] = "2 x m x n x k x batch; the epilogue is not counted";
    doc["flops"] = c.flops();
    doc["baseline"] = base.empty() ? Json(nullptr) : Json(base);
    doc["gpu"] = {{"name", gpu_.name},
                  {"uuid", gpu_.uuid},
                  {"driver", gpu_.driver_version},
                  {"sms", gpu_.sms},
                  {"cc", fmt::format("{}.{}", gpu_.cc / 10, gpu_.cc % 10)},
                  {"l2_bytes", gpu_.l2_bytes},
                  {"memory_bytes", gpu_.memory_bytes},
                  {"max_sm_mhz", gpu_.nvml.max_sm_mhz()},
                  {"power_limit_w", gpu_.nvml.power_limit_w()}};
    doc["versions"] = {{"cublaslt", lt_.version()},
                       {"cublaslt_library", lt_.library},
                       {"driver_cuda", cuda::version_text(gpu_.driver().version)}};
    doc["protocol"] = {{"buffer_sets", t.sets.size()},
                       {"inputs", "N(0,1)"},
                       {"warmup_s", flags_.warmup},
                       {"rest_s", flags_.rest},
                       {"places_checked", kPlaces}};
    doc["modes"] = std::move(modes);
    doc["peers"] = Json::array();
    for (const Contender& one : contenders) {
      Json p{{"name", one.name},
             {"what", one.what},
             {"state", one.state},
             {"reason", one.reason},
             {"error_over_tolerance", std::isfinite(one.error) ? Json(one.error) : Json(nullptr)}};
      if (one.state == "timed") p["timings"] = timings.contains(one.name) ? timings[one.name] : Json::object();
      doc["peers"].push_back(std::move(p));
    }
    doc["notes"] = notes;
    return doc;
  }

  Gpu& gpu_;
  const CublasLt& lt_;
  const Flags& flags_;
  const Replay* replay_;
};

std::string table(const Json& doc) {
  std::string out =
      fmt::format("{} on {}\n", doc["problem"]["name"].get<std::string>(), doc["gpu"]["name"].get<std::string>());
  for (const Json& mode : doc["modes"])
    for (const char* way : {"cold", "hot"}) {
      TextTable rows({"peer", "time", "95 %", "IQR", "TFLOP/s", "time / ours", "err/tol"});
      rows.left(0);
      for (const Json& p : doc["peers"]) {
        if (p["state"] != "timed") continue;
        const Json& t = p["timings"][mode["mode"].get<std::string>()][way];
        const auto text = [&](const char* key) { return time_text(t[key].get<double>() * 1e-9); };
        const Json& r = t["ratio"];
        rows.row({p["name"], text("median_ns"), fmt::format("[{}, {}]", text("low_ns"), text("high_ns")),
                  time_text((t["q3_ns"].get<double>() - t["q1_ns"].get<double>()) * 1e-9),
                  fmt::format("{:.1f}", t["tflops"].get<double>()),
                  r.is_null() ? "-"
                              : fmt::format("{:.3f} [{:.3f}, {:.3f}]", r["median"].get<double>(),
                                            r["low"].get<double>(), r["high"].get<double>()),
                  fmt::format("{:.2f}", p["error_over_tolerance"].get<double>())});
      }
      std::string clock;
      if (mode["state"].contains("sm_mhz")) clock = fmt::format(", {:.0f} MHz", mode["state"]["sm_mhz"].get<double>());
      out += fmt::format("{}, {} ({} rounds, {}{})\n{}", mode["mode"].get<std::string>(), way,
                         mode["rounds"].get<int>(), mode["stopped"].get<std::string>(), clock, rows.str());
    }
  for (const Json& p : doc["peers"])
    if (p["state"] != "timed")
      out += fmt::format("{}: {}: {}\n", p["name"].get<std::string>(), p["state"].get<std::string>(),
                         p["reason"].get<std::string>());
  for (const Json& note : doc["notes"]) out += fmt::format("note: {}\n", note.get<std::string>());
  return out + "\n";
}

Result<Exit> compare(const Flags& flags) {
  ROOFGEN_TRY(const Format format, parse_format(flags.format));
  ROOFGEN_TRY(const Epilogue epilogue, parse_epilogue(flags.epilogue));
  std::optional<Replay> replay;
  if (!flags.bundle.empty()) {
    auto read = read_replay(flags.bundle);
    if (!read) read = read_replay(flags.bundle + "/replay");
    if (!read) return std::move(read).error();
    replay = std::move(*read);
    if (replay->problem.op != "attention")
      return Error{Exit::kUsage, fmt::format("no product of {} to compare; a bundle of unfused attention was expected",
                                             replay->problem.op)};
  }
  std::vector<GemmCase> cases;
  if (replay || !flags.attention.empty()) {
    std::vector<int64_t> a = flags.attention;
    if (replay) {
      const auto& dims = replay->problem.dims;
      if (dims.at("heads") != dims.at("kv_heads"))
        return Error{Exit::kUsage,
                     "heads share keys and values in this bundle, which a batched product of cuBLASLt cannot express"};
      a = {dims.at("L"), dims.at("kv_len"), dims.at("d"), dims.at("batch"), dims.at("heads")};
    }
    if (a.size() != 5) return Error{Exit::kUsage, "--attention: L kv_len d batch heads were expected"};
    ROOFGEN_TRY(cases, attention_cases(
                           a[0], a[1], a[2], a[3], a[4],
                           replay ? (replay->problem.dtype == DType::kFp16 ? Format::kFp16 : Format::kBf16) : format));
    if (replay) cases[0].scale = static_cast<float>(replay->problem.reals.at("scale"));
  } else if (flags.m || flags.n || flags.k) {
    ROOFGEN_TRY(const GemmCase one, plain_case(flags.m, flags.n, flags.k, format, epilogue));
    cases.push_back(one);
  } else {
    cases = suite(format);
  }
  ROOFGEN_TRY(const std::unique_ptr<Gpu> gpu, Gpu::open(flags.gpu));
  ROOFGEN_TRY(const std::unique_ptr<CublasLt> lt, CublasLt::open());
  Comparison comparison(*gpu, *lt, flags, replay ? &*replay : nullptr);
  Json documents = Json::array();
  bool timed = false, ours_failed = false;
  for (const GemmCase& c : cases) {
    ROOFGEN_TRY(Json doc, comparison.run(c));
    for (const Json& p : doc["peers"]) {
      timed |= p["state"] == "timed";
      ours_failed |= p["name"].get<std::string>().starts_with("roofgen:") && p["state"] != "timed";
    }
    if (flags.json != "-") fmt::print("{}", table(doc));
    std::fflush(stdout);
    documents.push_back(std::move(doc));
  }
  if (!flags.json.empty()) {
    const std::string text =
        (documents.size() == 1 ? documents[0] : documents).dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
    if (flags.json == "-")
      fmt::print("{}", text);
    else
      ROOFGEN_CHECK(write_output(flags.json, text));
  }
  return timed && !ours_failed ? Exit::kOk : Exit::kFailed;
}

int run(int argc, char** argv) {
  Flags flags;
  CLI::App app{
      "cuBLASLt beside roofgen on one GPU: products with epilogues, and those of unfused attention; docs/peers.md",
      "cublaslt_peer"};
  app.add_option("--m", flags.m, "rows of A and of the result; without --m, --n, --k: the sizes usually reported");
  app.add_option("--n", flags.n, "columns of the result");
  app.add_option("--k", flags.k, "depth");
  app.add_option("--dtype", flags.format, "bf16, fp16 or fp8 [bf16]");
  app.add_option("--epilogue", flags.epilogue, "none, bias, relu or gelu-bias [none]");
  app.add_option("--attention", flags.attention, "L kv_len d batch heads: QK^T and PV of unfused attention")
      ->expected(5);
  app.add_option(
      "--bundle", flags.bundle,
      "a replay bundle of unfused attention (roofgen emit ... --variant unfused): its products beside cuBLASLt's");
  app.add_option("--mode", flags.mode, "steady, burst or both [both]")
      ->check(CLI::IsMember({"steady", "burst", "both"}));
  app.add_option("--rounds", flags.rounds, "at most so many [steady 300, burst 10]")->check(CLI::PositiveNumber);
  app.add_option("--seconds", flags.seconds, "for each case and mode, at most [60]")->check(CLI::PositiveNumber);
  app.add_option("--warmup", flags.warmup, "seconds of work before steady rounds [3]")->check(CLI::NonNegativeNumber);
  app.add_option("--rest", flags.rest, "seconds before each burst round [1]")->check(CLI::NonNegativeNumber);
  app.add_option("--algorithms", flags.algorithms, "proposals of cuBLASLt that are tried [8]")
      ->check(CLI::Range(1, 100));
  app.add_option("--gpu", flags.gpu, "[0]")->check(CLI::NonNegativeNumber);
  app.add_option("--json", flags.json,
                 "write the result there, schema roofgen.peers.1 (several cases: a list); - for standard output");
  for (int i = 0; i < argc; ++i) flags.command += (i ? " " : "") + std::string(argv[i]);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    fmt::print(stderr, "cublaslt_peer: error: {}\n", e.what());
    return static_cast<int>(Exit::kUsage);
  }
  const Result<Exit> done = compare(flags);
  if (done) return static_cast<int>(*done);
  fmt::print(stderr, "cublaslt_peer: {}\n", to_string(done.error()));
  return static_cast<int>(done.error().exit);
}

}  // namespace
}  // namespace roofgen::peers

int main(int argc, char** argv) { return roofgen::peers::run(argc, argv); }

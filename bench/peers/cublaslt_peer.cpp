// cuBLASLt beside roofgen: matrix products with epilogues and the two products of unfused attention, timed in turns
// (docs/peers.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>

#include "base/output_file.h"
#include "bench/peers/cublaslt.h"
#include "bench/peers/gemm_report.h"
#include "runtime/measure/statistics.h"
#include "tuner/evidence/replay.h"

namespace roofgen::peers {
namespace {

constexpr uint64_t kWorkspaceBytes = uint64_t{64} << 20;
constexpr int kMostAlgorithms = 8, kTrials = 5, kPlaces = 256;

struct Flags {
  int64_t m = 0, n = 0, k = 0;
  std::string format = "bf16", epilogue = "none", mode = "both", json, bundle;
  std::vector<int64_t> attention;
  int gpu = 0, rounds = 0;
  double seconds = 60, warmup = 3, rest = 1;
  std::string command;
};

/// The tensors of a case on the GPU: several copies of A, B and D to rotate through.
struct Tensors {
  struct Set {
    uint64_t a = 0, b = 0, d = 0;
  };
  std::vector<Set> sets;
  uint64_t bias = 0, workspace = 0;
  std::vector<uint16_t> host_a, host_b, host_bias;  ///< of the last set; one element per entry, also of fp8
};

Result<uint64_t> place(Gpu& gpu, const std::vector<uint16_t>& bits, Format format, const char* what) {
  const std::vector<uint8_t> narrow(bits.begin(), format == Format::kFp8 ? bits.end() : bits.begin());
  const void* data = format == Format::kFp8 ? static_cast<const void*>(narrow.data()) : bits.data();
  const size_t bytes = bits.size() * element_bytes(format);
  ROOFGEN_TRY(const uint64_t at, gpu.allocate(bytes, what));
  ROOFGEN_CHECK(gpu.upload(at, data, bytes));
  return at;
}

Result<Tensors> tensors_of(Gpu& gpu, const GemmCase& c) {
  Tensors t;
  const double each =
      static_cast<double>(element_bytes(c.format)) * static_cast<double>(c.a_elements() + c.b_elements()) +
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

/// The error of a run on the last set whose D was filled with NaNs.
Result<double> error_of(Gpu& gpu, const GemmCase& c, const Tensors& t, const Contender& one) {
  const uint64_t to = t.sets.back().d;
  std::vector<uint16_t> d(static_cast<size_t>(c.d_elements()));
  ROOFGEN_CHECK(gpu.driver().check(gpu.driver().fill(to, 0xff, d.size() * 2, gpu.stream()), "poisoning D"));
  ROOFGEN_CHECK(one.run(t.sets.size() - 1));
  ROOFGEN_CHECK(gpu.wait("running " + one.name));
  ROOFGEN_CHECK(gpu.download(d.data(), to, d.size() * 2));
  return error_over_tolerance(c, {t.host_a, t.host_b, t.host_bias, d}, places(c, kPlaces));
}

/// The kernel of an unfused bundle for this case: QK^T writes S, PV reads P.
Result<Contender> ours(Gpu& gpu, const GemmCase& c, const Tensors& t, const Replay& replay) {
  if (const auto causal = replay.problem.flags.find("causal"); causal != replay.problem.flags.end() && causal->second)
    return Error{Exit::kUnavailable, "the bundle is causal: its kernels skip masked elements, cuBLASLt computes all"};
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
      return Error{Exit::kUnavailable, "its launch has clusters or tensor maps, which this program does not support"};
    ROOFGEN_TRY(const cuda::Handle function,
                gpu.load(k.binary.cubin, k.binary.ptx, k.binary.entry, k.launch.smem_bytes));
    Contender one{"roofgen:" + k.stage, k.binary.entry};
    one.run = [&gpu, &c, &t, function, launch = k.launch](size_t set) -> Result<void> {
      const Tensors::Set& s = t.sets[set];
      const std::map<std::string, uint64_t> buffers =
          c.b_is_kn ? std::map<std::string, uint64_t>{{"P", s.a}, {"V", s.b}, {"O", s.d}}
                    : std::map<std::string, uint64_t>{{"Q", s.a}, {"K", s.b}, {"S", s.d}};
      std::vector<uint64_t> values;
      for (const Arg& a : launch.args) {
        const auto buffer = buffers.find(a.name);
        values.push_back(!a.is_buffer ? a.bits : buffer == buffers.end() ? 0 : buffer->second);
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
    auto plan = Plan::make(lt_, c, t.bias, kWorkspaceBytes, kMostAlgorithms);
    if (plan) {
      ROOFGEN_CHECK(add_cublaslt(c, t, **plan, contenders));
    } else {
      const char* state = plan.error().exit == Exit::kUnavailable ? "missing" : "failed";
      contenders.push_back({"cublaslt", "cuBLASLt", nullptr, state, plan.error().message});
    }
    ROOFGEN_TRY(Json doc, compare(c, t, contenders, notes));
    for (const Tensors::Set& s : t.sets)
      for (uint64_t at : {s.a, s.b, s.d}) gpu_.free(at);
    gpu_.free(t.bias);
    gpu_.free(t.workspace);
    return doc;
  }

 private:
  /// The fastest of the proposed algorithms, and the first, which callers get by default.
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
    const auto what =
        fmt::format("cuBLASLt, the fastest of {} proposed algorithms (number {})", plan.algorithms(), best + 1);
    into.push_back({"cublaslt", what, runner(best)});
    if (best != 0) into.push_back({"cublaslt-first", "cuBLASLt, the first proposed algorithm", runner(0)});
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
    std::vector<Contender*> timed;
    for (Contender& one : contenders)
      if (one.state == "timed") timed.push_back(&one);
    Json modes = Json::array(), peers = Json::array();
    const bool has_base = !timed.empty() && timed[0]->name.starts_with("roofgen:");
    for (const char* mode : {"burst", "steady"}) {
      if (timed.empty() || (flags_.mode != "both" && flags_.mode != mode)) continue;
      Stage stage;
      stage.run = [&](size_t i, size_t set) { return timed[i]->run(set); };
      stage.time = [&](const Gpu::Queue& queue, bool cold) { return gpu_.time(queue, cold); };
      stage.state = [&](Turns& turns) {
        if (const double mhz = gpu_.nvml.sm_mhz(); mhz > 0) turns.sm_mhz.push_back(mhz);
        if (const double watts = gpu_.nvml.power_w(); watts > 0) turns.power_w.push_back(watts);
      };
      Rounds rounds = Rounds::of(mode, flags_.rounds, flags_.seconds);
      if (rounds.rest_s > 0) rounds.rest_s = flags_.rest;
      if (rounds.warmup_s > 0) rounds.warmup_s = flags_.warmup;
      ROOFGEN_TRY(const Turns turns, take_turns(stage, timed.size(), t.sets.size(), rounds));
      modes.push_back(mode_json(mode, turns));
      for (size_t i = 0; i < timed.size(); ++i)
        for (const auto& [way, by] : turns.times)
          timed[i]->timings[mode][way] = timing_json(by[i], c.flops(), has_base && i > 0 ? &by[0] : nullptr);
    }
    for (const Contender& one : contenders) peers.push_back(contender_json(one));
    return Json{{"schema", "roofgen.peers.1"},
                {"origin", "measured"},
                {"time", utc_now()},
                {"command", flags_.command},
                {"op", "gemm"},
                {"problem", case_json(c)},
                {"flop_convention", "2 x m x n x k x batch; the epilogue is not counted"},
                {"flops", c.flops()},
                {"baseline", has_base ? Json(timed[0]->name) : Json(nullptr)},
                {"gpu", gpu_json(gpu_)},
                {"versions",
                 {{"cublaslt", lt_.version()},
                  {"cublaslt_library", lt_.library},
                  {"driver_cuda", cuda::version_text(gpu_.driver().version)}}},
                {"protocol",
                 {{"buffer_sets", t.sets.size()},
                  {"inputs", "N(0,1)"},
                  {"warmup_s", flags_.warmup},
                  {"rest_s", flags_.rest},
                  {"places_checked", kPlaces}}},
                {"modes", modes},
                {"peers", peers},
                {"notes", notes}};
  }

  Gpu& gpu_;
  const CublasLt& lt_;
  const Flags& flags_;
  const Replay* replay_;
};

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
        return Error{Exit::kUsage, "the bundle has grouped keys, which a batched product of cuBLASLt cannot express"};
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
  app.add_option("--rounds", flags.rounds, "most rounds [steady 300, burst 10]")->check(CLI::PositiveNumber);
  app.add_option("--seconds", flags.seconds, "most time for each case and mode [60]")->check(CLI::PositiveNumber);
  app.add_option("--warmup", flags.warmup, "seconds of work before steady rounds [3]")->check(CLI::NonNegativeNumber);
  app.add_option("--rest", flags.rest, "seconds before each burst round [1]")->check(CLI::NonNegativeNumber);
  app.add_option("--gpu", flags.gpu, "[0]")->check(CLI::NonNegativeNumber);
  app.add_option("--json", flags.json,
                 "write the result as roofgen.peers.1 (several cases: a list); - for standard output");
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

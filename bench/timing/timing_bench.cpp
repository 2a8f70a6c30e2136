// Cost of the time models for one candidate on one core: schedules of attention with L = 2048 and d = 64 on h200-sxm,
// from the fewest to the most warp instructions. NVRTC and nvdisasm run before the measurement. Targets: 30 ms for the
// interval model with the streams of its round, 300 ms for the event model.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "generator/ops/op.h"
#include "runtime/compiler.h"
#include "runtime/sass/disassembler.h"
#include "tests/profile/generated.h"

namespace {

using namespace roofgen;

template <class T>
T need(Result<T> r) {
  if (r) return std::move(*r);
  std::fprintf(stderr, "%s\n", to_string(r.error()).c_str());
  std::exit(1);
}

struct Candidate {
  std::string name;
  profile::Compiled compiled;
  std::vector<sass::Text> texts;
  sass::Code code;
  timing::Machine machine;

  sass::CodeRequest request() const { return {compiled.binary.cubin, compiled.binary.entry, compiled.binary.arch}; }
};

Candidate candidate(const std::string& name, const profile::Pins& pins) {
  Problem problem{"attention", {{"L", 2048}, {"d", 64}}, DType::kBf16, {}, {}};
  Candidate out{name, {}, {}, {}, {}};
  out.compiled =
      need(profile::compile({need(need(find_op("attention"))->complete(std::move(problem))), "h200-sxm", pins}));
  const Binary& binary = out.compiled.binary;
  const sass::Cubin cubin = need(sass::read_cubin(binary.cubin));
  out.texts = std::move(need(sass::disassemble(binary.arch, {cubin.kernels.at(0).code})).at(0));
  out.machine = need(timing::machine_of(out.compiled.device));
  return out;
}

/// CTAs in the middle of the grid, as they come to one SM: `rounds` of those that it holds at a time.
std::vector<sass::CtaStream> streams_of(const Candidate& c, uint64_t rounds) {
  const timing::LaunchRequest request = profile::launch_request(c.compiled);
  const Dim3& grid = request.launch.grid;
  const uint64_t ctas =
      rounds * static_cast<uint64_t>(occupancy(c.compiled.device, request.registers, request.smem_bytes,
                                               static_cast<int>(request.launch.block.count()))
                                         .ctas_per_sm);
  sass::Interpreter interpreter(c.code, request.launch);
  std::vector<sass::CtaStream> out;
  for (uint64_t k = 0; k < ctas; ++k)
    out.push_back(need(interpreter.run((grid.count() / 2 + k * static_cast<uint64_t>(c.machine.sms)) % grid.count())));
  return out;
}

timing::SmLoad load_of(const Candidate& c, const std::vector<sass::CtaStream>& streams, uint64_t rounds) {
  timing::SmLoad load;
  for (const sass::CtaStream& one : streams) load.ctas.push_back(&one);
  load.resident = static_cast<int>(streams.size() / rounds);
  load.shared_bytes = static_cast<double>(profile::launch_request(c.compiled).smem_bytes) * load.resident;
  load.active_sms = c.machine.sms;
  load.l2_miss = 0.1;
  return load;
}

void decode(benchmark::State& state, const Candidate& c) {
  for (auto _ : state) benchmark::DoNotOptimize(need(sass::read_code(c.request(), c.texts)));
  state.counters["instructions"] = static_cast<double>(c.texts.size());
}

void streams_of_a_round(benchmark::State& state, const Candidate& c) {
  double steps = 0;
  for (auto _ : state) {
    steps = 0;
    for (const sass::CtaStream& one : streams_of(c, 1)) steps += static_cast<double>(one.instructions());
  }
  state.counters["warp_inst"] = steps;
}

void interval_of_a_round(benchmark::State& state, const Candidate& c) {
  const std::vector<sass::CtaStream> streams = streams_of(c, 1);
  const timing::SmLoad load = load_of(c, streams, 1);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        timing::interval(c.machine, c.code, load, timing::work_of_round(c.machine, c.code, load)).cycles);
}

void events_of_three_rounds(benchmark::State& state, const Candidate& c) {
  const std::vector<sass::CtaStream> streams = streams_of(c, 3);
  const timing::SmLoad load = load_of(c, streams, 3);
  for (auto _ : state) benchmark::DoNotOptimize(timing::simulate_sm(c.machine, c.code, load).cycles);
}

void launch_time(benchmark::State& state, const Candidate& c) {
  timing::LaunchTime time;
  for (auto _ : state) {
    timing::LaunchRequest request = profile::launch_request(c.compiled);
    request.code = &c.code;
    time = need(timing::launch_time(c.compiled.device, c.machine, std::move(request)));
  }
  state.counters["simulated_warp_inst"] = static_cast<double>(time.sm.issues);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "__compile-worker") == 0) return compile_worker_main();
  benchmark::Initialize(&argc, argv);
  std::vector<Candidate> candidates;
  candidates.push_back(candidate("smallest", {{"BM", int64_t{64}}, {"BN", int64_t{32}}, {"stages", int64_t{1}}}));
  candidates.push_back(candidate("preset", {}));
  candidates.push_back(candidate("wide_keys", {{"BN", int64_t{128}}, {"warps", int64_t{8}}}));
  candidates.push_back(candidate(
      "largest", {{"BM", int64_t{256}}, {"BN", int64_t{96}}, {"warps", int64_t{8}}, {"q_in", std::string("shared")}}));
  for (Candidate& c : candidates) {
    c.code = need(sass::read_code(c.request(), c.texts));
    using Part = void (*)(benchmark::State&, const Candidate&);
    for (const auto& [part, run] :
         std::initializer_list<std::pair<const char*, Part>>{{"decode", decode},
                                                             {"streams_of_a_round", streams_of_a_round},
                                                             {"interval_of_a_round", interval_of_a_round},
                                                             {"events_of_three_rounds", events_of_three_rounds},
                                                             {"launch_time", launch_time}})
      benchmark::RegisterBenchmark(fmt::format("{}/{}", part, c.name).c_str(), run, std::cref(c))
          ->Unit(benchmark::kMillisecond);
  }
  benchmark::RunSpecifiedBenchmarks();
}

// The tensor unit of sm_100 in the event model beside published measurements of a B200 (docs/evidence/blackwell.md):
// intervals and latencies of single products, and main loops of GEMMs. No GPU takes part. Prints one CSV line a point.
//
//   blackwell FOLDER products FIT_RESULTS_CSV | loops RESULTS_CSV
//
// FOLDER: of the kernels. The CSV files are umma_latency/fit_results.csv and cutlass_gemm_mainloop/results.csv of
// SemiAnalysisAI/microbench-blackwell.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>

#include "lab/fidelity/compiled.h"
#include "roofline/device.h"
#include "runtime/sim/tensor_map.h"
#include "tuner/timing/instruction_facts.h"

namespace {

using namespace roofgen;

using Row = std::map<std::string, std::string>;

std::vector<Row> rows_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<Row> out;
  std::vector<std::string> names;
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    std::istringstream words(line);
    std::vector<std::string> values;
    for (std::string word; std::getline(words, word, ',');) values.push_back(word);
    if (line.starts_with('#')) continue;
    if (names.empty()) {
      names = values;
      continue;
    }
    if (values.size() < names.size()) continue;
    Row& row = out.emplace_back();
    for (size_t k = 0; k < names.size(); ++k) row[names[k]] = values[k];
  }
  return out;
}

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// A kernel of FOLDER with its macros, compiled once.
const Compiled& kernel_of(const std::string& path, const char* entry, const std::string& macros) {
  static std::map<std::string, Compiled> known;
  const auto [at, fresh] = known.try_emplace(path + macros);
  if (fresh) at->second = compiled(macros + text_of(path), entry, "sm_100a");
  return at->second;
}

struct Params {
  std::vector<std::byte> bytes;
  void put(const void* from, size_t size, size_t alignment) {
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    const auto* at = static_cast<const std::byte*>(from);
    bytes.insert(bytes.end(), at, at + size);
  }
  void put(uint32_t value) { put(&value, 4, 4); }
};

/// Cycles of one CTA, alone on the GPU, whose data come from L2 or from DRAM.
double cycles_of(const timing::Machine& machine, const Compiled& kernel, uint32_t threads, uint32_t cluster,
                 const Params& params, uint32_t shared_bytes, bool from_dram) {
  sass::StreamLaunch launch;
  launch.grid = {cluster, 1, 1};
  launch.block = {threads, 1, 1};
  launch.cluster = {cluster, 1, 1};
  launch.dynamic_smem = shared_bytes;
  launch.params = params.bytes;
  sass::Interpreter interpreter(kernel.code, std::move(launch));
  const sass::CtaStream cta = need(interpreter.run(0));
  timing::SmLoad load;
  load.ctas = {&cta};
  load.l2_miss = from_dram ? 1 : 0;
  load.active_sms = 1;
  const timing::SmTime time = timing::simulate_sm(machine, kernel.code, load);
  const auto doubts = interpreter.doubts();
  if (time.broken_waits || !doubts.empty())
    fmt::print(stderr, "blackwell: {} broken waits, {} doubts\n", time.broken_waits, doubts.size());
  return time.cycles;
}

uint32_t descriptor_of(int m, int n) {
  return 1u << 4 | static_cast<uint32_t>(n / 8) << 17 | static_cast<uint32_t>(m / 16) << 24;
}

void products(const timing::Machine& machine, const std::string& folder, const std::string& csv) {
  const std::map<std::string, std::string> kinds = {{"BF16", "kind::f16"},
                                                    {"E4M3", "kind::f8f6f4"},
                                                    {"F4", "kind::f8f6f4"},
                                                    {"S8", "kind::i8"},
                                                    {"MXF8", "kind::mxf8f6f4.block_scale.block32"},
                                                    {"MXF4", "kind::mxf4nvf4.block_scale.block16"}};
  fmt::print("format,operands,group,m,n,interval,measured_interval,latency,measured_latency\n");
  for (const Row& row : rows_of(csv)) {
    const std::string &format = row.at("Format"), &operands = row.at("ABLayout");
    const int group = std::stoi(row.at("CTAGroup")), m = std::stoi(row.at("M")), n = std::stoi(row.at("N"));
    const std::string macros =
        fmt::format("#define KIND \"{}\"\n#define PAIR {}\n#define A_IN_TMEM {}\n#define SCALED {}\n", kinds.at(format),
                    group - 1, operands == "TS" ? 1 : 0, format.starts_with("MX") ? 1 : 0);
    const Compiled& kernel = kernel_of(folder + "/products.cu", "products", macros);
    const auto cycles = [&](uint32_t count) {
      Params params;
      params.put(descriptor_of(m, n)), params.put(count);
      return cycles_of(machine, kernel, 32, static_cast<uint32_t>(group), params, 0, false);
    };
    constexpr uint32_t kFew = 64, kMany = 192;
    const double interval = (cycles(kMany) - cycles(kFew)) / (kMany - kFew);
    sass::Sync one;
    one.rows = static_cast<uint16_t>(m), one.columns = static_cast<uint16_t>(n), one.ctas = static_cast<uint8_t>(group);
    one.a_in_tensor_memory = operands == "TS";
    const auto facts = timing::facts_of(machine, kernel.code);
    const auto issued = std::ranges::find(facts, sass::Action::kMatrix, &timing::Facts::action);
    const double latency = timing::matrix_cycles(machine, *issued, one).latency;
    fmt::print("{},{},{},{},{},{:.2f},{},{:.1f},{}\n", format, operands, group, m, n, interval, row.at("a (II)"),
               latency, row.at("Latency"));
  }
}

void loops(const timing::Machine& machine, const std::string& folder, const std::string& csv) {
  constexpr int kDepth = 131072, kBoxBytes = 128;
  fmt::print("format,m,n,k,stages,cycles,measured_ms\n");
  for (const Row& row : rows_of(csv)) {
    const std::string& format = row.at("dtype");
    const int bytes = format == "BF16" ? 2 : 1;
    const int m = std::stoi(row.at("TILE_M")), n = std::stoi(row.at("TILE_N")), k = std::stoi(row.at("TILE_K"));
    int stages = std::stoi(row.at("STAGES"));
    const int stage_bytes = (m + n) * k * bytes, box = std::min(k * bytes, kBoxBytes) / bytes;
    // 0: as many as fit, which CUTLASS limits by the shared memory that its epilogue leaves.
    if (stages == 0) stages = std::clamp(220 * 1024 / stage_bytes, 2, 8);
    const std::string kind = bytes == 2 ? "kind::f16" : "kind::f8f6f4";
    const Compiled& kernel = kernel_of(
        folder + "/loop.cu", "loop",
        fmt::format("#define KIND \"{}\"\n#define BOXES {}\n#define PRODUCTS {}\n", kind, k / box, k * bytes / 32));
    const auto cycles = [&](int count) {
      Params params;
      for (const int tile_rows : {m, n}) {
        sim::TensorView view;
        view.address = uint64_t{1} << (tile_rows == m && params.bytes.empty() ? 33 : 34);
        view.rank = 2, view.element_bytes = static_cast<uint32_t>(bytes);
        view.swizzle_bytes = static_cast<uint32_t>(box * bytes);
        view.dims[0] = kDepth, view.dims[1] = static_cast<uint64_t>(tile_rows);
        view.strides[1] = static_cast<uint64_t>(kDepth) * static_cast<uint64_t>(bytes);
        view.box[0] = static_cast<uint32_t>(box), view.box[1] = static_cast<uint32_t>(tile_rows);
        std::byte map[sim::kTensorMapBytes];
        view.encode(map);
        params.put(map, sizeof map, 64);
      }
      for (const int value : {stages, stage_bytes, m * k * bytes, box, count})
        if (params.bytes.size() == 2 * sim::kTensorMapBytes)
          params.put(descriptor_of(m, n)), params.put(static_cast<uint32_t>(value));
        else
          params.put(static_cast<uint32_t>(value));
      // Data that do not fit in the L2 of one die come from DRAM: each die keeps a copy of its own.
      const bool from_dram = static_cast<double>(m + n) * kDepth * bytes > machine.l2_bytes / 2;
      return cycles_of(machine, kernel, 64, 1, params, static_cast<uint32_t>(stages * stage_bytes), from_dram);
    };
    const int few = 3 * stages, many = few + 4 * stages;
    const double each = (cycles(many) - cycles(few)) / (many - few);
    fmt::print("{},{},{},{},{},{:.0f},{}\n", format, m, n, k, row.at("STAGES"), each * kDepth / k, row.at("time_ms"));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words == std::vector<std::string>{"__compile-worker"}) return compile_worker_main();
  if (words.size() != 3 || (words[1] != "products" && words[1] != "loops")) {
    fmt::print(stderr, "blackwell FOLDER products FIT_RESULTS_CSV | loops RESULTS_CSV\n");
    return 2;
  }
  const Device device = need(load_device(DataFiles{}, "b200"));
  const timing::Machine machine = need(timing::machine_of(device));
  (words[1] == "loops" ? loops : products)(machine, words[0], words[2]);
}

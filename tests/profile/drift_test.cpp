// The time models on recorded machine code of roofgen's own kernels: changes of the decoder, of the interpreter, of the
// models and of the devices show in a diff of drift/numbers.txt. Needs neither NVRTC nor nvdisasm. drift/*.json.gz
// holds each launch with its CUBIN and the text of its instructions.
//
//   cmake --build build --target record_drift_numbers    new numbers, after a deliberate change
//   cmake --build build --target record_drift_sample     new machine code (with NVRTC and nvdisasm), and new numbers
#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <fstream>
#include <span>

#include "base/json.h"
#include "base/paths.h"
#include "generator/ops/op.h"
#include "kernels.h"
#include "runtime/sass/code.h"
#include "tests/profile/generated.h"

namespace roofgen::sass {
ROOFGEN_TO_JSON(Text, predicate, opcode, operands)
ROOFGEN_FROM_JSON(Text, predicate, opcode, operands)
}  // namespace roofgen::sass

namespace roofgen::profile::drift_test {
namespace {

Problem problem(const std::string& op, std::map<std::string, int64_t> dims, std::map<std::string, bool> flags = {},
                std::map<std::string, std::string> texts = {}) {
  Problem p{op, std::move(dims), DType::kBf16, std::move(flags), {}};
  p.texts = std::move(texts);
  return p;
}

struct Sample {
  const char* name;
  const char* device;
  Problem problem;  ///< without defaults
  Pins pins = {};
  const char* variant = "fused";
  size_t stage = 0;
};

const std::vector<Sample>& samples() {
  static const std::map<std::string, std::string> kGelu{{"epilogue", "gelu(acc)"}};
  static const std::vector<Sample> all{
      {"attention_sm90", "h200-sxm", problem("attention", {{"L", 2048}, {"d", 64}, {"batch", 4}, {"heads", 16}})},
      {"attention_causal_sm80",
       "a100-sxm-80",
       problem("attention", {{"L", 1024}, {"d", 64}, {"batch", 4}, {"heads", 16}}, {{"causal", true}}),
       {{"BM", int64_t{64}}, {"swizzle", false}}},
      {"attention_split_sm89",
       "l40s",
       problem("attention", {{"L", 1}, {"kv_len", 4096}, {"d", 64}, {"heads", 32}, {"kv_heads", 8}}),
       {},
       "split17"},
      {"attention_combine_sm90",
       "h100-sxm",
       problem("attention", {{"L", 1}, {"kv_len", 8192}, {"d", 64}, {"heads", 32}, {"kv_heads", 8}}),
       {},
       "split16",
       1},
      {"gemm_sm80", "a100-sxm-80", problem("gemm", {{"M", 2048}, {"N", 2048}, {"K", 1024}}, {}, kGelu)},
      {"gemm_sm86", "rtx-3090", problem("gemm", {{"M", 1000}, {"N", 1500}, {"K", 512}}, {}, kGelu)},
      {"softmax_sm86", "rtx-3090", problem("softmax", {{"rows", 8192}, {"cols", 3000}})},
      {"rmsnorm_sm89", "rtx-4090", problem("rmsnorm", {{"rows", 4096}, {"cols", 4096}}, {{"residual", true}})}};
  return all;
}

std::string file_of(const std::string& name, const char* extension) {
  return fmt::format("{}/{}{}", ROOFGEN_DRIFT, name, extension);
}

Result<std::string> read_packed(const std::string& path) {
  const gzFile file = gzopen(path.c_str(), "rb");
  if (!file) return Error{Exit::kFailed, path + " cannot be read"};
  std::string out;
  char part[1 << 16];
  int got = 0;
  while ((got = gzread(file, part, sizeof part)) > 0) out.append(part, static_cast<size_t>(got));
  const bool good = got == 0 && gzclose(file) == Z_OK;
  if (!good) return Error{Exit::kFailed, path + " is broken"};
  return out;
}

bool write_packed(const std::string& path, const std::string& text) {
  const gzFile file = gzopen(path.c_str(), "wb9");
  if (!file) return false;
  const bool written = gzwrite(file, text.data(), static_cast<unsigned>(text.size())) == static_cast<int>(text.size());
  return gzclose(file) == Z_OK && written;
}

std::string hex(std::string_view bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<uint8_t>(c));
  return out;
}

std::string unhex(const std::string& digits) {
  std::string out;
  for (size_t i = 0; i + 1 < digits.size(); i += 2)
    out += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return out;
}

/// Zeros in the sections for debuggers, which take most of a CUBIN and are not read here.
std::string without_debug(std::string cubin) {
  const auto at = [&](size_t offset, auto& out) { std::memcpy(&out, cubin.data() + offset, sizeof out); };
  Elf64_Ehdr file;
  at(0, file);
  const auto section = [&](size_t i) {
    Elf64_Shdr out;
    at(file.e_shoff + i * sizeof out, out);
    return out;
  };
  const Elf64_Shdr names = section(file.e_shstrndx);
  for (size_t i = 0; i < file.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    const std::string_view name = cubin.data() + names.sh_offset + s.sh_name;
    if (name.find("debug") != name.npos && s.sh_type != SHT_NOBITS)
      std::fill_n(cubin.begin() + static_cast<std::ptrdiff_t>(s.sh_offset), s.sh_size, '\0');
  }
  return cubin;
}

Result<void> record(const Sample& sample) {
  ROOFGEN_TRY(const Op* op, find_op(sample.problem.op));
  ROOFGEN_TRY(Problem whole, op->complete(sample.problem));
  ROOFGEN_TRY(const Compiled made,
              compile({std::move(whole), sample.device, sample.pins, {}, sample.variant, sample.stage}));
  const Binary& b = made.binary;
  const timing::LaunchRequest request = launch_request(made);
  const sass::StreamLaunch& launch = request.launch;
  ROOFGEN_TRY(const sass::Cubin cubin, sass::read_cubin(b.cubin));
  std::string_view code;
  for (const sass::CubinKernel& k : cubin.kernels)
    if (k.name == b.entry) code = k.code;
  ROOFGEN_TRY(const auto texts, sass::disassemble(b.arch, {code}));
  const std::string params(reinterpret_cast<const char*>(launch.params.data()), launch.params.size());
  const Json document{{"schedule", to_string(made.program.schedule)},
                      {"device", made.device.name},
                      {"arch", b.arch},
                      {"kernel", b.entry},
                      {"grid", {launch.grid.x, launch.grid.y, launch.grid.z}},
                      {"block", {launch.block.x, launch.block.y, launch.block.z}},
                      {"dynamic_smem", launch.dynamic_smem},
                      {"smem_bytes", request.smem_bytes},
                      {"registers", request.registers},
                      {"params", hex(params)},
                      {"cubin", hex(without_debug(b.cubin))},
                      {"instructions", texts[0]}};
  const std::string path = file_of(sample.name, ".json.gz");
  if (!write_packed(path, json_line(document))) return Error{Exit::kFailed, path + " cannot be written"};
  return {};
}

Dim3 dim3_of(const Json& json) { return {json[0].get<uint32_t>(), json[1].get<uint32_t>(), json[2].get<uint32_t>()}; }

/// Names and values, in their order.
using Numbers = std::vector<std::pair<std::string, std::string>>;

/// With few enough digits to be the same on all machines.
Result<Numbers> numbers(const Json& json) {
  const auto text = [&](const char* name) { return json.at(name).get<std::string>(); };
  ROOFGEN_TRY(const Device device, load_device(data_files(), text("device")));
  ROOFGEN_TRY(const timing::Machine machine, timing::machine_of(device));
  const std::string cubin = unhex(text("cubin"));
  ROOFGEN_TRY(const sass::Code code, sass::read_code({cubin, text("kernel"), text("arch")},
                                                     json.at("instructions").get<std::vector<sass::Text>>()));
  timing::LaunchRequest request;
  request.code = &code;
  request.launch.grid = dim3_of(json.at("grid"));
  request.launch.block = dim3_of(json.at("block"));
  json.at("dynamic_smem").get_to(request.launch.dynamic_smem);
  for (const char c : unhex(text("params"))) request.launch.params.push_back(static_cast<std::byte>(c));
  json.at("registers").get_to(request.registers);
  json.at("smem_bytes").get_to(request.smem_bytes);
  ROOFGEN_TRY(const timing::LaunchTime time, timing::launch_time(device, machine, std::move(request)));

  Numbers out;
  const auto add = [&](const std::string& name, const auto& value) {
    out.emplace_back(name, fmt::format("{}", value));
  };
  const auto number = [&](const std::string& name, double value) { add(name, fmt::format("{:.6g}", value)); };
  add("schedule", text("schedule"));
  add("device", device.name);
  number("event us", 1e6 * time.event_s);
  number("interval us", 1e6 * time.interval_s);
  number("roofline us", 1e6 * time.roofline_s);
  add("roof", time.roof);
  add("CTAs on an SM", time.occupancy.ctas_per_sm);
  add("simulated CTAs", time.simulated_ctas);
  number("cycles", time.cycles);
  add("instructions of the code", code.instructions.size());
  add("unknown mnemonics", code.unknown.size());
  add("doubts", time.doubts.size());
  const timing::StreamCounts& c = time.counts;
  number("warp instructions", c.warp_instructions);
  number("thread instructions", c.thread_instructions);
  number("tensor FLOP", time.tensor_flops);
  number("shared load wavefronts", c.shared_load_wavefronts);
  number("shared store wavefronts", c.shared_store_wavefronts);
  number("load sectors", c.global_load_sectors);
  number("L2 read sectors", c.l2_read_sectors);
  number("L2 write sectors", c.l2_write_sectors);
  number("DRAM read sectors", c.dram_read_bytes / 32);
  number("DRAM write sectors", c.dram_write_bytes / 32);
  for (size_t p = 0; p < time.sm.pipe_cycles.size(); ++p)
    if (const double cycles = time.sm.pipe_cycles[p]; cycles > 0)
      add(fmt::format("busy {}", to_string(static_cast<sass::Pipe>(p))),
          fmt::format("{:.4f}", cycles / (machine.schedulers * time.sm.cycles)));
  for (size_t s = 0; s < time.sm.stalls.size(); ++s)
    if (const double cycles = time.sm.stalls[s]; cycles > 0)
      add(fmt::format("stall {}", to_string(static_cast<timing::Stall>(s))),
          fmt::format("{:.4f}", cycles / time.sm.warp_cycles));
  return out;
}

/// The parts of a line between two or more blanks.
std::vector<std::string> cells(const std::string& line) {
  std::vector<std::string> out;
  for (size_t at = line.find_first_not_of(' '); at < line.size();) {
    const size_t gap = std::min(line.find("  ", at), line.size());
    out.push_back(line.substr(at, gap - at));
    at = std::min(line.find_first_not_of(' ', gap), line.size());
  }
  return out;
}

/// drift/numbers.txt: a row for each number and a column for each sample, "-" where it has none; above, a line with the
/// schedule of each sample.
std::map<std::string, Numbers> read_table() {
  std::map<std::string, Numbers> out;
  std::vector<std::string> names;
  std::ifstream in(file_of("numbers", ".txt"));
  for (std::string line; std::getline(in, line);) {
    const std::vector<std::string> row = cells(line);
    if (row.at(0) == "number")
      names = row;
    else if (names.empty())
      out[row[0]].emplace_back("schedule", row.at(1));
    for (size_t i = 1; i < std::min(row.size(), names.size()); ++i)
      if (row[i] != "-" && row != names) out[names[i]].emplace_back(row[0], row[i]);
  }
  return out;
}

void write_table(const std::map<std::string, Numbers>& all) {
  std::ofstream out(file_of("numbers", ".txt"));
  std::vector<std::string> rows{"number"};  // each behind the one it follows in a sample
  std::map<std::string, std::map<std::string, std::string>> values;
  for (const auto& [sample, numbers] : all) {
    out << fmt::format("{:24}{}\n", sample, numbers[0].second);
    auto at = rows.begin();
    values["number"][sample] = sample;
    for (const auto& [name, value] : std::span(numbers).subspan(1)) {
      const auto found = std::find(rows.begin(), rows.end(), name);
      at = found != rows.end() ? found : rows.insert(at + 1, name);
      values[name][sample] = value;
    }
  }
  for (const std::string& row : rows) {
    std::string line = fmt::format("{:26}", row);
    for (const auto& [sample, ignored] : all) {
      const auto value = values[row].find(sample);
      line +=
          fmt::format("  {:{}}", value == values[row].end() ? "-" : value->second, std::max<size_t>(15, sample.size()));
    }
    out << line.substr(0, line.find_last_not_of(' ') + 1) << "\n";
  }
}

std::string difference(const Numbers& recorded, const Numbers& now) {
  const std::map<std::string, std::string> was(recorded.begin(), recorded.end()), is(now.begin(), now.end());
  auto names = was;
  names.insert(is.begin(), is.end());
  std::string out;
  for (const auto& [name, ignored] : names) {
    const auto before = was.find(name), after = is.find(name);
    const std::string a = before == was.end() ? "none" : before->second, b = after == is.end() ? "none" : after->second;
    if (a != b) out += fmt::format("  {:28}{:>14} -> {}\n", name, a, b);
  }
  return out;
}

class Drift : public testing::TestWithParam<size_t> {};

TEST_P(Drift, NumbersAreThoseRecorded) {
  const Sample& sample = samples()[GetParam()];
  const std::string recording = environment("ROOFGEN_RECORD_DRIFT");
  if (recording == "sample") {
    ASSERT_EQ(missing_program(), "");
    const Result<void> done = record(sample);
    ASSERT_TRUE(done) << to_string(done.error());
  }
  const Result<std::string> packed = read_packed(file_of(sample.name, ".json.gz"));
  ASSERT_TRUE(packed) << to_string(packed.error());
  const Result<Numbers> now = numbers(parse_json(*packed));
  ASSERT_TRUE(now) << to_string(now.error());
  auto recorded = read_table();
  if (!recording.empty()) {
    recorded[sample.name] = *now;
    return write_table(recorded);
  }
  const std::string changes = difference(recorded[sample.name], *now);
  EXPECT_TRUE(changes.empty())
      << sample.name << ", recorded -> now:\n"
      << changes << "If they are meant to change: cmake --build build --target record_drift_numbers, and commit "
      << "tests/profile/drift/numbers.txt";
}

INSTANTIATE_TEST_SUITE_P(Sample, Drift, testing::Range(size_t{0}, samples().size()),
                         [](const auto& test) { return samples()[test.param].name; });

}  // namespace
}  // namespace roofgen::profile::drift_test

#include "runtime/sass/disassembler.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/paths.h"
#include "base/scratch.h"
#include "base/subprocess.h"
#include "runtime/compile/nvrtc.h"
#include "runtime/sass/cubin.h"

namespace roofgen::sass {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostOutput = size_t{512} << 20;  // 40 bytes an instruction
constexpr double kMostSeconds = 120;
/// Pieces begin at multiples of this many bytes, as the code of a kernel does.
constexpr size_t kPieceAlignment = 128;

std::string find_nvdisasm() {
  const NvrtcSearch search = nvrtc_search_from_environment();
  std::vector<std::string> others;
  fs::path dir = search.executable_dir;
  for (int up = 0; up <= 3 && !dir.empty(); ++up, dir = dir.parent_path())
    others.push_back(dir / "nvdisasm/nvidia/cu13/bin/nvdisasm");
  for (const std::string& root : search.toolkits) others.push_back(root + "/bin/nvdisasm");
  return find_program(environment("ROOFGEN_NVDISASM"), "nvdisasm", others);
}

/// The JSON document that nvdisasm prints about `file`.
Result<Json> run_nvdisasm(std::vector<std::string> options, const std::string& file) {
  if (nvdisasm_path().empty()) return Error{Exit::kUnavailable, kNoNvdisasm};
  ProcessOptions process;
  process.argv = {nvdisasm_path(), "-json"};
  process.argv.insert(process.argv.end(), options.begin(), options.end());
  process.argv.push_back(file);
  process.timeout_s = kMostSeconds;
  process.most_output = kMostOutput;
  ROOFGEN_TRY(const ProcessResult ran, run_process(process));
  if (!ran.ok() || ran.timed_out || ran.flooded)
    return Error{Exit::kFailed,
                 fmt::format("{} failed: {}", nvdisasm_path(),
                             ran.timed_out ? "no result within two minutes" : ran.err.substr(0, ran.err.find('\n')))};
  Json out = parse_json(ran.out);
  // [header, [functions...], ...]
  if (!out.is_array() || out.size() < 2 || !out[1].is_array())
    return Error{Exit::kFailed, fmt::format("{} printed no list of functions", nvdisasm_path())};
  return out;
}

bool write(const std::string& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return !file.fail();
}

std::string text_of(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// Moves an address in the last operand, "R10,0x14f880", by -base.
void move_target(std::string& operands, uint64_t base) {
  const size_t comma = operands.rfind(',');
  const size_t at = comma == std::string::npos ? 0 : comma + 1;
  uint64_t address = 0;
  const char* end = operands.data() + operands.size();
  if (operands.compare(at, 2, "0x") != 0 || std::from_chars(operands.data() + at + 2, end, address, 16).ptr != end)
    return;
  operands.replace(at, std::string::npos, fmt::format("0x{:x}", address - base));
}

}  // namespace

const std::string& nvdisasm_path() {
  static const std::string path = find_nvdisasm();
  return path;
}

Result<std::vector<std::vector<Text>>> disassemble(const std::string& arch, const std::vector<std::string_view>& code) {
  std::string all;
  std::vector<uint64_t> bases;
  for (const std::string_view piece : code) {
    all.resize((all.size() + kPieceAlignment - 1) / kPieceAlignment * kPieceAlignment);
    bases.push_back(all.size());
    all += piece;
  }
  std::vector<std::vector<Text>> out(code.size());
  if (all.empty()) return out;
  const ScratchDirectory scratch("roofgen-sass");
  const std::string file = scratch.path() + "/code";
  if (!write(file, all)) return Error{Exit::kFailed, fmt::format("{} cannot be written", file)};
  std::string architecture = arch;
  architecture.replace(0, 3, "SM");
  ROOFGEN_TRY(const Json document, run_nvdisasm({"-b", architecture, "-ndf"}, file));
  const Json* instructions = nullptr;
  if (!document[1].empty())
    if (const auto it = document[1][0].find("sass-instructions"); it != document[1][0].end()) instructions = &*it;
  if (!instructions || instructions->size() * kInstructionBytes < all.size())
    return Error{Exit::kFailed, fmt::format("{} did not print all instructions", nvdisasm_path())};
  for (size_t i = 0; i < code.size(); ++i)
    for (uint64_t at = 0; at + kInstructionBytes <= code[i].size(); at += kInstructionBytes) {
      const Json& one = (*instructions)[(bases[i] + at) / kInstructionBytes];
      Text& t = out[i].emplace_back(Text{text_of(one, "predicate"), text_of(one, "opcode"), text_of(one, "operands")});
      if (!one.is_object() || t.opcode.empty())
        return Error{Exit::kFailed, fmt::format("{} printed an instruction without a name", nvdisasm_path())};
      const auto attributes = one.find("other-attributes");
      if (attributes != one.end() && attributes->is_object() && attributes->contains("control-flow"))
        move_target(t.operands, bases[i]);
    }
  return out;
}

}  // namespace roofgen::sass

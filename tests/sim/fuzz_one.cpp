#include <algorithm>
#include <filesystem>

#include "fuzz_ptx.h"
#include "runtime/executor.h"
#include "runtime/sim/ptx_parser.h"
#include "support.h"

namespace roofgen::sim_test {

void fuzz_one(std::string_view text) {
  static auto executor = make_sim_executor();
  if (!executor || text.size() > 65536) return;
  Binary binary;
  binary.ptx = std::string(text);
  auto parsed = sim::parse_ptx(binary.ptx, "fuzz.ptx");
  if (!parsed) return;
  Launch launch;
  for (const sim::PtxFunction& f : parsed->functions) {
    if (!f.is_entry || !f.defined) continue;
    binary.entry = std::string(f.name);
    for (const sim::PtxVar& p : f.params) launch.args.push_back({"p", false, 64, static_cast<uint32_t>(p.bytes())});
    break;
  }
  auto module = (*executor)->load(binary);
  if (!module) return;
  std::vector<DevicePtr> buffers;
  for (Arg& a : launch.args) {
    if (a.bytes != 8) continue;
    auto p = (*executor)->allocate(4096, "b");
    if (!p) continue;
    buffers.push_back(*p);
    a.bits = p->address;
    std::vector<std::byte> half(2048, std::byte{1});
    if (!(*executor)->write(*p, half)) return;
  }
  launch.block = {64, 1, 1};
  launch.grid = {2, 1, 1};
  launch.smem_bytes = 4096;
  RunOptions options;
  options.max_warp_instructions = 2000;
  std::string printed;
  options.printed = &printed;
  (void)(*executor)->run(*module, launch, options);
  for (DevicePtr p : buffers) (*executor)->release(p);
  (*executor)->unload(*module);
}

std::vector<std::string> fuzz_corpus() {
  std::vector<std::string> names, texts;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(ROOFGEN_SOURCE_DIR) + "/tests/sim/fixtures/fuzz"))
    names.push_back("fuzz/" + entry.path().filename().string());
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) texts.push_back(fixture(name));
  return texts;
}

}  // namespace roofgen::sim_test

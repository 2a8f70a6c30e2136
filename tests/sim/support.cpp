#include "support.h"

#include <bit>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace roofgen::sim_test {

std::string fixture(const std::string& name) {
  std::ifstream in(std::string(ROOFGEN_SOURCE_DIR) + "/tests/sim/fixtures/" + name);
  std::ostringstream text;
  text << in.rdbuf();
  if (!in || text.str().empty()) {
    std::fprintf(stderr, "fixture %s is missing\n", name.c_str());
    std::abort();
  }
  return text.str();
}

std::string kernel_text(int params, const std::string& body, const std::string& head) {
  std::ostringstream out;
  out << ".version 9.0\n.target sm_90\n.address_size 64\n" << head << "\n.visible .entry k(";
  for (int i = 0; i < params; ++i) out << (i ? ", " : "") << ".param .u64 p" << i;
  out << ")\n{\n.reg .b32 %r<64>;\n.reg .b64 %rd<64>;\n.reg .f32 %f<64>;\n.reg .f64 %fd<32>;\n.reg .b16 "
         "%rs<32>;\n"
      << ".reg .pred %p<32>;\n"
      << body << "\nret;\n}\n";
  return out.str();
}

Bench::Bench() {
  auto made = make_sim_executor();
  if (!made) std::abort();
  executor_ = std::move(*made);
}

std::string Bench::load(const std::string& ptx, const std::string& entry) {
  Binary binary;
  binary.ptx = ptx;
  binary.entry = entry;
  auto module = executor_->load(binary);
  if (!module) return to_string(module.error());
  module_ = *module;
  return "";
}

DevicePtr Bench::poisoned(uint64_t bytes, const std::string& label) {
  auto p = executor_->allocate(bytes, label);
  if (!p) std::abort();
  return *p;
}

Bench& Bench::arg(DevicePtr p) {
  launch_.args.push_back({"b", true, p.address, 8});
  return *this;
}
Bench& Bench::arg64(uint64_t v) {
  launch_.args.push_back({"s", false, v, 8});
  return *this;
}
Bench& Bench::arg32(uint32_t v) {
  launch_.args.push_back({"s", false, v, 4});
  return *this;
}

RunResult Bench::run(Dim3 grid, Dim3 block, uint32_t smem, const RunOptions& options) {
  launch_.grid = grid;
  launch_.block = block;
  launch_.smem_bytes = smem;
  auto result = executor_->run(module_, launch_, options);
  launch_.args.clear();
  if (!result) {
    std::fprintf(stderr, "%s\n", to_string(result.error()).c_str());
    std::abort();
  }
  return *result;
}

std::string Bench::kind(Dim3 grid, Dim3 block, uint32_t smem) {
  RunResult r = run(grid, block, smem);
  return r.findings.empty() ? "" : r.findings[0].kind;
}

uint16_t to_bf16(float x) {
  uint32_t u = std::bit_cast<uint32_t>(x);
  return static_cast<uint16_t>((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
float from_bf16(uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16); }

}  // namespace roofgen::sim_test

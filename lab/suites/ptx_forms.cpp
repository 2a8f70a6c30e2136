// What the simulator does with each instruction of standard input: lines "TARGET<tab>TEXT", where TEXT is PTX with
// registers %h, %r, %l, %f, %d, %p and %q by number. Prints for each line: executed, orders, no effect, refused,
// unknown or error, and the decoder's message. Used by ptx_table.py.
#include <fmt/format.h>

#include <iostream>
#include <string>

#include "runtime/sim/decode.h"
#include "runtime/sim/opcode_table.h"
#include "runtime/sim/ptx_parser.h"

namespace {

using namespace roofgen;
using namespace roofgen::sim;

std::string answer(const std::string& target, const std::string& text) {
  std::string ptx = fmt::format(".version 9.0\n.target {}\n.address_size 64\n.visible .entry k() {{\n", target);
  for (const auto& [name, type] :
       {std::pair{'p', "pred"}, {'h', "b16"}, {'r', "b32"}, {'l', "b64"}, {'f', "f32"}, {'d', "f64"}, {'q', "b128"}})
    ptx += fmt::format(".reg .{} %{}<300>;\n", type, name);
  ptx += text + "\nret;\n}\n";
  const Result<PtxModule> module = parse_ptx(ptx, "form.ptx");
  if (!module) return "error\t" + module.error().message;
  const Result<Kernel> kernel = decode_kernel(
      *module, module->functions[0], OpcodeTable::host(), [](const PtxVar&) -> Result<uint64_t> { return kGlobalBase; },
      "form.ptx", NotModelled::kEndsCta);
  if (!kernel) return "error\t" + kernel.error().message;
  if (!kernel->not_modelled.empty())
    return (kernel->not_modelled[0].starts_with("unknown instruction") ? "unknown\t" : "refused\t") +
           kernel->not_modelled[0];
  bool orders = false;
  for (const Inst& in : kernel->code) {
    if (in.kind != Kind::kNop && in.kind != Kind::kExit) return "executed\t";
    orders |= in.kind == Kind::kNop && in.sub;
  }
  return orders ? "orders\t" : "no effect\t";
}

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const size_t tab = line.find('\t');
    std::cout << answer(line.substr(0, tab), line.substr(tab + 1)) << '\n';
  }
}

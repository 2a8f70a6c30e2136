// Register counts of kernels, from ptxas if a toolkit has it: once per module, on the first query.
#include <fmt/format.h>

#include <cstdlib>

#include "base/subprocess.h"
#include "runtime/shim/state.h"

namespace roofgen::shim {
namespace {

/// $ROOFGEN_PTXAS, else the ptxas of a toolkit, else the one on PATH. Empty: there is none.
std::string find_ptxas() {
  if (const char* own = std::getenv("ROOFGEN_PTXAS")) return find_program(own, "ptxas", {});
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* home = std::getenv(name); home && *home)
      if (std::string found = find_program(home + std::string("/bin/ptxas"), "ptxas", {}); !found.empty()) return found;
  const std::string usual = find_program("/usr/local/cuda/bin/ptxas", "ptxas", {});
  return usual.empty() ? find_program("", "ptxas", {}) : usual;
}

}  // namespace

std::optional<PtxasReport> State::compiled(const Function& function) {
  Module& module = *function.module;
  if (!module.ptxas_log) {
    module.ptxas_log = "";
    const std::string ptxas = find_ptxas();
    if (ptxas.empty()) {
      log("no register counts: no ptxas (ROOFGEN_PTXAS, CUDA_HOME, PATH)");
      return std::nullopt;
    }
    // Code for the device, unless the PTX is of one architecture alone.
    const std::string target(module.ptx.target), last = target.empty() ? "" : target.substr(target.size() - 1);
    std::vector<std::string> arguments = {
        ptxas,
        "-v",
        "-arch=" + (last == "a" || last == "f" ? target : fmt::format("sm_{}", device.integer("arch"))),
        "-o",
        "/dev/null",
        "/dev/stdin"};
    if (module.max_registers > 0) arguments.push_back(fmt::format("-maxrregcount={}", module.max_registers));
    if (const auto run = run_process({.argv = arguments, .input = std::string(module.text)}))
      *module.ptxas_log = run->out + run->err;
    else
      log("no register counts: " + ptxas + " did not run");
  }
  PtxasReport report = parse_ptxas_log(*module.ptxas_log, function.kernel.name);
  if (report.found) return report;
  if (!module.ptxas_log->empty())
    log(fmt::format("registers of {} are not known: ptxas: {}", function.kernel.name,
                    module.ptxas_log->substr(0, 200)));
  return std::nullopt;
}

}  // namespace roofgen::shim

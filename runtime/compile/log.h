// Reading NVRTC's program log: what ptxas says of registers and spills, and what the compiler says
// is wrong, brought back to the template line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/compile/nvrtc.h"

namespace roofgen {

/// ptxas -v for one kernel. Sizes in bytes per thread, shared memory per CTA.
struct PtxasReport {
  bool found = false;  ///< the log had a "Used N registers" line for the kernel
  int registers = 0;
  int64_t spill_bytes = 0;  ///< stores + loads, of the kernel and of functions that were not inlined
  int64_t stack_bytes = 0;
  int64_t static_smem_bytes = 0;
  std::vector<std::string> advisories;  ///< verbatim: coded ones, "(C7508) ...", and warnings
};
PtxasReport parse_ptxas_log(std::string_view log, std::string_view entry);

/// The log without what differs from run to run (ptxas' compile times).
std::string stable_log(std::string_view log);

/// An error of the compiler or of ptxas.
struct Diagnostic {
  std::string file;  ///< "ptx": by ptxas
  int line = 0;
  std::string message;
  std::vector<std::string> excerpt;  ///< source line and caret, as NVRTC prints them: indented by two
};
std::vector<Diagnostic> parse_errors(std::string_view log);

/// Turns a failed compilation into an Error: `where` is the template line (through the program's line
/// map), `message` the first error in the compiler's words, `notes` NVRTC's own line with its caret
/// and the further errors. ptxas errors name a PTX line, which is brought back through `.loc`.
Error compile_error(const CompileReply& reply, const Program& program);

}  // namespace roofgen

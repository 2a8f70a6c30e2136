// Reads NVRTC's program log: registers and spills from ptxas, and compiler errors mapped back to template lines.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "roofgen/pipeline.h"
#include "runtime/compile/nvrtc.h"

namespace roofgen {

/// The ptxas -v report of one kernel. Sizes in bytes per thread, shared memory per CTA.
struct PtxasReport {
  bool found = false;  ///< the log had a "Used N registers" line for the kernel
  int registers = 0;
  int64_t spill_bytes = 0;  ///< stores + loads of the kernel and of functions that were not inlined
  int64_t stack_bytes = 0;
  int64_t static_smem_bytes = 0;
  std::vector<std::string> advisories;  ///< verbatim: messages with a code such as "(C7508) ...", and warnings
};
PtxasReport parse_ptxas_log(std::string_view log, std::string_view entry);

/// Threads of the largest CTA whose threads have so many registers: each of the four schedulers of an SM has 16384
/// registers, and its warps get them in units of 256 (sm_75 and newer).
int most_threads(int registers);

/// The log without parts that vary between runs (ptxas' compile times).
std::string stable_log(std::string_view log);

/// An error of the compiler or of ptxas.
struct Diagnostic {
  std::string file;  ///< "ptx" for errors of ptxas
  int line = 0;
  std::string message;
  std::vector<std::string> excerpt;  ///< source line and caret in NVRTC's form, indented by two
};
std::vector<Diagnostic> parse_errors(std::string_view log);

/// Turns a failed compilation into an Error: `where` is the template line (through the program's line map), `message`
/// the first error in the compiler's words, `notes` NVRTC's source line with its caret and the further errors. The line
/// of a ptxas error is mapped through `.loc`.
Error compile_error(const CompileReply& reply, const Program& program);

}  // namespace roofgen

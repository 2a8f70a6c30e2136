// roofgen check: any kernel, run by the strict simulator. A sanitizer without a GPU: what it reports is
// docs/findings.md, how to use it docs/check.md.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "check/arguments.h"
#include "check/host_code.h"
#include "roofgen/pipeline.h"
#include "runtime/executor.h"

namespace roofgen::check {

struct Request {
  std::string file;  ///< as the user named it; ".ptx" is taken as PTX, all else as CUDA C++
  std::string text;
  std::string kernel;  ///< its name, mangled, plain, or in full as the demangler prints it; empty: the only one
  Dim3 grid, block;
  uint32_t smem_bytes = 0;
  bool cooperative = false;  ///< as by cudaLaunchCooperativeKernel
  std::vector<Argument> args;
  std::string arch = "sm_90";
  std::vector<std::string> include_dirs;    ///< the file's own first
  std::vector<std::string> compiler_flags;  ///< for NVRTC
  uint64_t max_memory_bytes = 0;  ///< of the simulator, for all that the launch touches; 0: a quarter of the machine's
  uint64_t max_instructions = 0;  ///< warp-instructions per CTA; 0: the simulator's default
  int max_findings = 100;
  int jobs = 0;  ///< cores for the CTAs; 0: all. The report is the same
  uint64_t worth_jobs = RunOptions{}.worth_threads;
  bool is_ptx() const { return file.ends_with(".ptx"); }
};

/// Findings of one kind at one line.
struct FindingGroup {
  Finding first;
  uint64_t more = 0;  ///< others like it, in other CTAs
};

/// What the instructions of one source line did together.
struct LineCounts {
  Where source;  ///< of the PTX where it has no line table
  SiteCounts sum;
  uint64_t excess_sectors() const { return sum.sectors - sum.ideal_sectors; }
  uint64_t excess_wavefronts() const { return sum.wavefronts - sum.ideal_wavefronts; }
};

struct BufferReport {
  std::string name;
  uint64_t elements = 0;
  uint64_t unwritten = 0;   ///< elements that hold nothing after the launch
  uint64_t mismatches = 0;  ///< elements that are not as expected, or hold nothing where something was expected
  std::string first;        ///< one line on the first of them
  bool compared = false;
  /// Of the elements that hold something and are not as expected; the relative one of those where something but 0 was
  /// expected.
  double largest_error = 0, largest_relative_error = 0;
};

struct Report {
  std::string file, kernel, arch, compiler;  ///< kernel: demangled; compiler empty for PTX
  Dim3 grid, block;
  uint32_t smem_bytes = 0;
  int registers = 0;  ///< with the next two by ptxas; 0 for PTX
  int64_t spill_bytes = 0, static_smem_bytes = 0;
  std::vector<LeftOut> left_out;   ///< of the source, as it is for the host
  std::vector<std::string> notes;  ///< what looks wrong and may be meant
  std::vector<FindingGroup> findings;
  bool stopped_early = false;  ///< at max_findings: CTAs after that were not run
  Counts counts;
  std::string printed;                ///< by printf, CTA after CTA; no more than kMaxPrintedBytes
  std::vector<LineCounts> lines;      ///< by source line, in the order of file and line
  std::vector<BufferReport> buffers;  ///< those with an expectation or a dump
  bool clean() const;
};

/// Compiles, runs and compares. Errors: Exit::kUsage for a request that does not fit the kernel, kFailed for source or
/// PTX that is wrong, kUnavailable without NVRTC. Dumps are written whole or not at all.
Result<Report> run(const Request& request);

/// One line on a buffer that is not as expected. After a finding nothing that the kernel left behind says much.
std::string mismatch_text(const Report& report, const BufferReport& buffer);
/// For people; `top`: the most lines that are listed for traffic and conflicts.
std::string check_text(const Report& report, size_t top);
/// schema roofgen.check.1
std::string check_json(const Report& report);
/// SARIF 2.1.0, as code review tools read it.
std::string check_sarif(const Report& report);

}  // namespace roofgen::check

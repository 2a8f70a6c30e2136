// roofgen check: runs any kernel in the strict simulator, as a sanitizer without a GPU (docs/use/check.md, findings in
// docs/use/findings.md).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/outputs.h"
#include "check/arguments.h"
#include "check/host_code.h"
#include "roofgen/pipeline.h"
#include "runtime/executor.h"

namespace roofgen::check {

struct Request {
  std::string file;  ///< the user's name; PTX if it ends in ".ptx", otherwise CUDA C++
  std::string text;
  std::string kernel;  ///< mangled name, plain name or full demangled name; empty: the only kernel
  Dim3 grid, block;
  uint32_t smem_bytes = 0;
  bool cooperative = false;  ///< launch like cudaLaunchCooperativeKernel
  std::vector<Argument> args;
  std::string arch = "sm_90";
  std::vector<std::string> include_dirs;    ///< the directory of the file first
  std::vector<std::string> compiler_flags;  ///< for NVRTC
  std::string cache_dir;                    ///< for its results; empty: none are kept
  uint64_t max_memory_bytes = 0;  ///< limit for the memory that the launch touches; 0: a quarter of the machine's
  uint64_t max_instructions = 0;  ///< warp-instructions per CTA; 0: the simulator's default
  int max_findings = 100;
  bool allow_unfenced = false;  ///< leaves out what relies on more order than the memory model promises
  int schedules = 1;            ///< runs; the first in the usual order of CTAs and warps, the others in random orders
  int jobs = 0;                 ///< cores for the CTAs; 0: all. The report does not depend on it
  bool in_double = false;       ///< compute in double too, in the first run, on one core
  Outputs outputs{"", false};   ///< write the dumps
  std::function<void(const std::string&)> progress = {};  ///< receives a line now and then while the kernel runs
  double progress_after_s = 5;
  uint64_t worth_jobs = RunOptions{}.worth_threads;
  bool is_ptx() const { return file.ends_with(".ptx"); }
};

/// Sums over the instructions of one source line.
struct LineCounts {
  Where source;  ///< the PTX line if there is no line table
  SiteCounts sum;
  uint64_t excess_sectors() const { return sum.sectors - sum.ideal_sectors; }
  uint64_t excess_wavefronts() const { return sum.wavefronts - sum.ideal_wavefronts; }
};

struct BufferReport {
  std::string name;
  uint64_t elements = 0;
  uint64_t unwritten = 0;   ///< elements that are uninitialised after the launch
  uint64_t mismatches = 0;  ///< elements with another value than expected, or uninitialised ones
  std::string first;        ///< message about the first mismatch
  bool compared = false;
  /// Over the mismatches that are initialised; the relative error over those with an expected value other than 0.
  double largest_error = 0, largest_relative_error = 0;
  uint64_t ignored = 0;  ///< elements left out of the comparison
};

/// The contents of a buffer after a run.
struct Output {
  std::string name;
  Element type;
  std::vector<std::byte> bytes;
  std::vector<bool> written;
};

/// A buffer that differs between schedules.
struct Difference {
  std::string name;
  int schedules = 0;      ///< that differ from the first
  uint64_t elements = 0;  ///< that differ, in the schedule with the most
  std::string first;
  double largest = 0, relative = 0;  ///< differences; relative to the largest magnitude in the buffer
  bool is_rounding = true;           ///< small differences of floats, as sums in another order have them
};

/// Lines of a file, both included, whose code no thread ran.
struct NotRun {
  std::string file;
  int first = 0, last = 0;
};

enum class Verdict {
  kClean,       ///< everything ran and was decided, and nothing is wrong
  kFindings,    ///< also wrong outputs, and outputs that depend on the schedule
  kIncomplete,  ///< nothing wrong in what ran; what was not decided is in `deciding` and `not_run`, or ended a CTA
};
const char* to_string(Verdict verdict);  ///< "clean", "findings", "incomplete"

/// An instruction whose result departs from its double, or that decides otherwise in double, the first time.
struct DoublePlace {
  Where source, ptx;  ///< as in a Finding
  uint64_t cta = 0;
  uint32_t thread = 0;
  uint64_t count = 0;  ///< over all lanes and CTAs
  std::string why;     ///< it departs by "rounding", "cancellation", "overflow", "nan" or "only-in-double"
  double own = 0, in_double = 0;
  bool compares = false;  ///< it decides about two numbers; the second:
  double own_other = 0, in_double_other = 0;
};
struct ElementInDouble {
  uint64_t element = 0;
  double own = 0, in_double = 0;
};
/// A buffer of floats beside its doubles.
struct BufferInDouble {
  std::string name;
  uint64_t elements = 0;             ///< that are written
  uint64_t rounding = 0, logic = 0;  ///< elements with another value than expected: as expected in double, or not
  uint64_t only_rounded = 0;         ///< as expected, but not in double
  ElementInDouble first_rounding, first_logic, first_only_rounded;
  double largest_error = 0, of_largest = 0;  ///< difference from the double; relative to the largest magnitude
  double of_element = 0;                     ///< relative to an element itself
  ElementInDouble worst;                     ///< of `largest_error`
  /// Where the first element of `rounding`, or `worst`, departed: one of `departures`.
  std::optional<size_t> departs;
};
/// The launch in double (check/in_double.h).
struct InDouble {
  bool floats = false;  ///< the kernel computes with them
  double bound = 0;     ///< relative difference from which an instruction departs
  std::vector<BufferInDouble> buffers;
  std::vector<DoublePlace> departures, decisions;  ///< in the order of their first times
  std::vector<DoublePlace> losses;                 ///< what takes away the double of a value that has departed
};

struct Report {
  std::string file, kernel, arch, compiler;  ///< kernel: demangled; compiler empty for PTX
  Dim3 grid, block;
  uint64_t ctas = 0;  ///< of the launch
  uint32_t smem_bytes = 0;
  int registers = 0;  ///< this and the next two are from ptxas; 0 for PTX
  int64_t spill_bytes = 0, static_smem_bytes = 0;
  std::vector<LeftOut> left_out;   ///< host code removed from the source
  std::vector<std::string> notes;  ///< suspicious but possibly intended
  std::vector<Finding> findings;
  /// Lines at which a value that other threads may change decides a branch: the run stands for one order of warps and
  /// CTAs. None: it stands for all, as far as docs/use/check-limits.md goes.
  std::vector<Where> deciding;
  std::vector<NotRun> not_run;  ///< by file and line
  bool stopped_early = false;   ///< max_findings CTAs ended at a finding: later CTAs did not run
  Counts counts;
  std::string printed;                ///< by printf, CTA after CTA; at most kMaxPrintedBytes
  std::vector<LineCounts> lines;      ///< sorted by file and line
  std::vector<BufferReport> buffers;  ///< buffers with an expectation or a dump
  int schedules = 1;
  std::vector<int> in_schedules;         ///< per finding: the schedules that showed it
  std::vector<Difference> differences;   ///< between schedules without findings
  std::vector<Output> outputs;           ///< kept if there are several schedules
  std::vector<sim::Pauses> lock_cycles;  ///< RunResult::lock_cycles
  std::optional<InDouble> in_double;     ///< if it was asked for
  Verdict verdict() const;
};
/// The CTA ended at a limit of the simulator: an instruction that is not modelled, too many instructions or bytes.
bool is_limit(const Finding& finding);

/// Compiles, runs and compares. Errors: kUsage if the request does not fit the kernel, kFailed for invalid source or
/// PTX, kUnavailable without NVRTC. Dumps are written atomically.
Result<Report> run(const Request& request);

/// Adds the findings of another schedule, and the differences of its outputs.
void add_schedule(Report& report, const Report& other);
/// Adds the findings that only another run of the same schedule has.
void add_run(Report& report, Report other);
/// One line on a buffer that differs between schedules.
std::string difference_text(const Report& report, const Difference& difference);
/// One line on a buffer with mismatches. After a finding they are likely its consequence.
std::string mismatch_text(const Report& report, const BufferReport& buffer);
/// The text report; `top`: limit of lines listed for traffic and for bank conflicts.
std::string check_text(const Report& report, size_t top);
/// schema roofgen.check.1
std::string check_json(const Report& report);
/// SARIF 2.1.0, as code review tools read it.
std::string check_sarif(const Report& report);

}  // namespace roofgen::check

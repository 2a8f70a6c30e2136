// roofgen profile: the time of any kernel without a GPU, from its machine code, and where that time goes
// (docs/use/profile.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "roofline/device.h"
#include "roofline/plot/figure.h"
#include "runtime/executor.h"
#include "tuner/timing/launch_time.h"

namespace roofgen::profile {

struct Options {
  double sm_mhz = 0;       ///< 0: the device's highest clock, or its sustained one where tensor units set the power
  bool by_line = true;     ///< attribute the time to lines of the source, which takes another run of the disassembler
  size_t trace_spans = 0;  ///< of the timeline that are kept at most
};

/// What the warps did and waited for at one line of the source.
struct LineTime {
  Where source;
  uint64_t issues = 0;
  double waiting = 0;  ///< share of all warp-cycles that warps wait for results of this line's instructions
  double busy = 0;     ///< share of the busiest unit's busy cycles
  double stalled = 0;  ///< share of all warp-cycles in which the next instruction is of this line
  timing::Stall cause = timing::Stall::kFixed;  ///< the largest one of `stalled`
};

/// A unit and the share of the time in which it is busy.
struct Utilisation {
  std::string unit;
  double share = 0;
};

struct Report {
  std::string file, kernel, compiler;
  std::string device, arch;
  double sm_mhz = 0;
  Dim3 grid, block;
  uint32_t smem_bytes = 0;
  int registers = 0;
  int64_t spill_bytes = 0, static_smem_bytes = 0;
  size_t code_bytes = 0;
  timing::LaunchTime time;
  std::vector<Utilisation> units;  ///< the busiest first
  timing::StallCycles stalls{};    ///< shares of all warp-cycles
  double issuing = 0;              ///< share of the schedulers' cycles in which they issue
  double achieved_warps = 0;       ///< mean of the resident warps of an SM
  std::string limiter;             ///< "DRAM bandwidth", "latency of shared memory", ...
  std::string next;                ///< the next lever, in a sentence
  std::vector<LineTime> lines;     ///< those with the largest `waiting` and `stalled` first
  std::vector<std::string> unknown_opcodes;
  std::vector<std::string> doubts;  ///< what the model had to guess
  std::string confidence;           ///< "high", "medium" or "low"
  std::vector<std::string> notes;
  std::vector<std::string> spellings;  ///< of the instructions, for the timeline
  std::vector<Where> places;           ///< their lines
};

/// A compiled kernel and one launch of it.
struct Subject {
  std::string file, kernel, compiler;  ///< as the report names them
  const Binary* binary = nullptr;
  sass::StreamLaunch launch;
  std::function<uint64_t(const sass::Variable&)> address_of = {};  ///< of a module variable
  double buffer_bytes = 0;                                         ///< of all buffers; 0: unknown
  std::optional<double> dram_bytes = {};                           ///< of the launch, both directions; else estimated
  std::vector<SiteCounts> sites = {};  ///< of a simulated run, for branches on computed values
  std::function<Where(const std::string& file, int line)> place;  ///< of a line of the compiled source
};
/// What the time models need of a subject. Refers to the code and to what the subject refers to.
timing::LaunchRequest launch_request(const sass::Code& code, Subject subject);
/// Reads the machine code and models the launch. Exit::kUnavailable without nvdisasm, or if the device lacks a number.
Result<Report> profile_launch(const Device& device, Subject subject, const Options& options);
/// A kernel that roofgen generated, with what its search knows of the launch.
struct GeneratedKernel {
  const Program& program;
  const Binary& binary;
  const Launch& launch;
  std::string compiler;
  timing::ReadBuffer read = {};           ///< initial contents of its buffers
  std::optional<double> dram_bytes = {};  ///< of the launch, both directions; else estimated
  std::vector<SiteCounts> sites = {};     ///< of a simulated run, for branches on computed values
};
/// The same of such a kernel; places are lines of its template.
Result<Report> profile_generated(const Device& device, const GeneratedKernel& kernel, const Options& options);

std::string profile_text(const Report& report, size_t top);
/// Figures and tables of where the time of one kernel goes; `of` begins their titles.
std::vector<plot::Block> time_blocks(const Report& report, const std::string& of = "");
/// The report as a page of figures and tables.
plot::Page profile_page(const Report& report, const Device& device);
/// The timeline of the simulated SM as JSON in the Trace Event Format.
std::string profile_trace(const Report& report);
/// schema roofgen.profile.1
std::string profile_json(const Report& report);

}  // namespace roofgen::profile

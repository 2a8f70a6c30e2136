// roofgen profile FILE: the time of any kernel without a GPU, from its machine code.
#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/kernel_flags.h"
#include "profile/compiled.h"
#include "tuner/session/profile_flags.h"

namespace roofgen::cli {
namespace {

constexpr double kMostMhz = 10000;

struct ProfileKernelFlags : KernelFlags {
  std::string device = "h200-sxm";
  ProfileFlags profile;
  double sm_clock = 0;
  uint64_t top = 10, max_instructions = 0;
  std::string html, trace;
  bool json = false;
};

/// Spans of a timeline: 100 bytes each in its file.
constexpr size_t kTraceSpans = 400'000;

Result<Exit> run(const Terminal& terminal, const ProfileKernelFlags& flags) {
  profile::Request r;
  ROOFGEN_TRY(r.kernel, kernel_request(flags, true));
  r.kernel.max_instructions = flags.max_instructions;
  const DataFiles files(terminal.data_dirs);
  ROOFGEN_TRY(r.device, find_device(files, flags.device, flags.profile, warn));
  if (flags.sm_clock < 0 || flags.sm_clock > kMostMhz)
    return Error{Exit::kUsage,
                 fmt::format("--sm-clock is {}; a clock in MHz, at most {}, was expected", flags.sm_clock, kMostMhz)};
  r.options.sm_mhz = flags.sm_clock;
  r.options.by_line = flags.top > 0;
  if (!flags.trace.empty()) {
    ROOFGEN_CHECK(terminal.outputs().check({flags.trace}));
    r.options.trace_spans = kTraceSpans;
    r.options.by_line = true;
  }
  if (!flags.html.empty()) ROOFGEN_CHECK(terminal.outputs().check({flags.html}));
  ROOFGEN_TRY(const profile::Report report, profile::run(r));
  if (!flags.trace.empty()) ROOFGEN_CHECK(terminal.write(flags.trace, profile::profile_trace(report)));
  if (!flags.html.empty())
    ROOFGEN_CHECK(show_page(profile::profile_page(report, r.device), flags.html, files, terminal));
  fmt::print("{}", flags.json ? profile::profile_json(report) : profile::profile_text(report, flags.top));
  return Exit::kOk;
}

}  // namespace

Run declare_profile(FlagSet app) {
  auto flags = std::make_shared<ProfileKernelFlags>();
  flags->declare(app);
  app.add("--device", flags->device, "device of the catalogue whose time is modelled [h200-sxm]");
  flags->profile.declare(app);
  app.add("--sm-clock", flags->sm_clock, "SM clock in MHz [the highest of the device, or its sustained one]");
  app.add("--max-instructions", flags->max_instructions,
          "warp-instructions that a CTA may execute before it counts as endless [50000000]")
      .range(uint64_t{1}, uint64_t{1} << 40);
  app.add("--top", flags->top, "lines of the source to list [10]").range(uint64_t{0}, uint64_t{1} << 30);
  app.add("--html", flags->html, "write the report as a page to this file");
  app.add("--trace", flags->trace, "write the timeline of the SM to this file, for Perfetto");
  app.add_switch("--json", flags->json, "as JSON");
  app.footer(
      "Example: roofgen profile scale.cu --grid 4096 --block 256 --args scale.json --device a100-sxm-80\nThe time is "
      "modelled, never measured. docs/use/profile.md explains each number.");
  return [flags](const Terminal& terminal) { return run(terminal, *flags); };
}

}  // namespace roofgen::cli

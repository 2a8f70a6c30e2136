// roofgen check FILE: any kernel in the strict simulator.
#include "check/check.h"

#include <fmt/format.h>

#include <charconv>
#include <filesystem>

#include "cli/cli.h"
#include "generator/output_file.h"

namespace roofgen::cli {
namespace {

struct Flags {
  std::string file, kernel, grid = "1", block, args, arch = "sm_90", sarif;
  std::vector<std::string> include_dirs, defines;
  int jobs = 0;
  uint64_t smem = 0, max_instructions = 0, max_memory_mib = 0, top = 5;
  bool json = false, fast_math = false, cooperative = false;
};

/// "256", "16,16" or "8,8,4".
Result<Dim3> parse_dims(const std::string& flag, const std::string& text) {
  uint32_t value[3] = {1, 1, 1};
  size_t count = 0, at = 0;
  while (at <= text.size() && count < 3) {
    const size_t end = std::min(text.find(',', at), text.size());
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, value[count]);
    if (error != std::errc() || stop != text.data() + end || value[count] == 0) break;
    ++count;
    at = end + 1;
    if (end == text.size()) return Dim3{value[0], value[1], value[2]};
  }
  return Error{Exit::kUsage, fmt::format("{} is '{}'; one to three numbers of at least 1 were expected, as in 256 or 16,16", flag, text)};
}

/// What no GPU launches (CUDA C++ Programming Guide, technical specifications per compute capability).
Result<void> can_be_launched(const Dim3& grid, const Dim3& block) {
  const auto refuse = [](const char* flag, const Dim3& is, const char* wanted) { return Error{Exit::kUsage, fmt::format("{} is {},{},{}; {}", flag, is.x, is.y, is.z, wanted)}; };
  if (block.count() > 1024 || block.z > 64) return refuse("--block", block, "at most 1024 threads were expected, and at most 64 of them in z");
  if (grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535) return refuse("--grid", grid, "at most 2147483647 CTAs in x and 65535 in y and z were expected");
  return {};
}

/// "sm_90", "sm_90a".
bool names_architecture(const std::string& text) {
  if (!text.starts_with("sm_")) return false;
  const std::string digits = text.substr(3, text.find_first_not_of("0123456789", 3) - 3), rest = text.substr(3 + digits.size());
  return digits.size() >= 2 && digits.size() <= 3 && (rest.empty() || rest == "a" || rest == "f");
}

Result<Exit> run(const Session& session, const Flags& flags) {
  check::Request r;
  if (!names_architecture(flags.arch)) return Error{Exit::kUsage, fmt::format("--arch is '{}'; an architecture was expected, as in sm_90", flags.arch)};
  ROOFGEN_TRY(r.grid, parse_dims("--grid", flags.grid));
  ROOFGEN_TRY(r.block, parse_dims("--block", flags.block));
  ROOFGEN_CHECK(can_be_launched(r.grid, r.block));
  r.file = flags.file;
  ROOFGEN_TRY(r.text, read_input(flags.file));
  if (flags.file == "-") r.file = "standard-input.cu";
  if (r.file.ends_with(".ptx"))
    while (r.text.ends_with('\0')) r.text.pop_back();  // as nvrtcGetPTX ends it
  if (!flags.args.empty()) {
    ROOFGEN_TRY(std::string text, read_input(flags.args));
    ROOFGEN_TRY(r.args, check::parse_arguments(std::move(text), flags.args, std::filesystem::path(flags.args).parent_path().string()));
  }
  if (!flags.sarif.empty()) ROOFGEN_CHECK(can_write(flags.sarif));
  for (const check::Argument* a : check::buffers_of(r.args))
    if (!a->dump.empty()) ROOFGEN_CHECK(can_write(a->dump));
  r.kernel = flags.kernel;
  r.smem_bytes = static_cast<uint32_t>(flags.smem);
  r.arch = flags.arch;
  r.cooperative = flags.cooperative;
  r.max_instructions = flags.max_instructions;
  r.jobs = flags.jobs;
  r.max_memory_bytes = flags.max_memory_mib << 20;
  std::vector<std::string> dirs = flags.include_dirs;
  dirs.insert(dirs.begin(), std::filesystem::path(flags.file).parent_path().string());
  r.include_dirs = std::move(dirs);
  for (const std::string& define : flags.defines) r.compiler_flags.push_back("--define-macro=" + define);
  if (flags.fast_math) r.compiler_flags.push_back("--use_fast_math");
  ROOFGEN_TRY(const check::Report report, check::run(r));
  if (!flags.sarif.empty()) ROOFGEN_CHECK(write_output(flags.sarif, check::check_sarif(report)));
  fmt::print("{}", flags.json ? check::check_json(report) : check::check_text(report, flags.top));
  (void)session;
  return report.clean() ? Exit::kOk : Exit::kFailed;
}

}  // namespace

Run declare_check(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_option("file", flags->file, "CUDA C++ source, or PTX when its name ends in .ptx; - for source from standard input")->required();
  app.add_option("--kernel", flags->kernel, "name of the kernel, of a template's instance as in 'scale<float>', which is made [the only one]");
  app.add_option("--grid", flags->grid, "CTAs: X or X,Y or X,Y,Z [1]");
  app.add_option("--block", flags->block, "threads of a CTA: X or X,Y or X,Y,Z")->required();
  app.add_option("--smem", flags->smem, "bytes of dynamic shared memory [0]")->check(CLI::Range(uint64_t{0}, uint64_t{227} * 1024));
  app.add_flag("--cooperative", flags->cooperative, "launch as cudaLaunchCooperativeKernel does, so that CTAs may wait for each other with grid.sync()");
  app.add_option("--args", flags->args, "JSON file with the arguments in the order of the parameters (docs/check.md)");
  app.add_option("--arch", flags->arch, "architecture to compile for [sm_90]");
  app.add_option("-I,--include", flags->include_dirs, "directory with headers; the file's own comes first");
  app.add_option("-D,--define", flags->defines, "macro, as NAME or NAME=VALUE");
  app.add_flag("--fast-math", flags->fast_math, "compile with --use_fast_math");
  app.add_option("--max-instructions", flags->max_instructions, "warp-instructions that a CTA may execute before it counts as endless [1000000000]")->check(CLI::Range(uint64_t{1}, uint64_t{1} << 50));
  app.add_option("--jobs", flags->jobs, "cores that CTAs are spread over; the report is the same [cores]")->check(CLI::Range(1, 256));
  app.add_option("--max-memory", flags->max_memory_mib, "MiB of device memory that the launch may touch [a quarter of the machine's]")->check(CLI::Range(uint64_t{1}, uint64_t{32} << 10));
  app.add_option("--top", flags->top, "lines to list for traffic and for bank conflicts [5]");
  app.add_flag("--json", flags->json, "as JSON");
  app.add_option("--sarif", flags->sarif, "file for the findings as SARIF 2.1.0");
  app.footer("Example: roofgen check scale.cu --grid 4 --block 256 --args scale.json\nExit code: 0 clean, 1 findings or wrong outputs, 2 the request does not fit the kernel. docs/findings.md says what each finding means.");
  return [flags](const Session& session) { return run(session, *flags); };
}

}  // namespace roofgen::cli

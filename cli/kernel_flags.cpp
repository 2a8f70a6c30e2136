#include "cli/kernel_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "base/paths.h"
#include "base/target.h"
#include "cli/cli.h"
#include "runtime/compiler.h"

namespace roofgen::cli {
namespace {

/// "256", "16,16" or "8,8,4". What no GPU launches is refused: `most` in x, y and z, and of threads `most_in_all` (CUDA
/// C++ Programming Guide, technical specifications per compute capability).
Result<Dim3> parse_dims(const std::string& flag, const std::string& text, const char* what, const Dim3& most,
                        uint64_t most_in_all) {
  const uint32_t limit[3] = {most.x, most.y, most.z};
  uint32_t value[3] = {1, 1, 1};
  size_t count = 0, at = 0;
  bool large = false;
  while (at <= text.size() && count < 3) {
    const size_t end = std::min(text.find(',', at), text.size());
    const auto [stop, error] = std::from_chars(text.data() + at, text.data() + end, value[count]);
    const bool beyond = error == std::errc::result_out_of_range;
    if ((error != std::errc() && !beyond) || stop != text.data() + end || (!beyond && value[count] == 0)) break;
    large |= beyond || value[count] > limit[count];
    ++count;
    at = end + 1;
    if (end < text.size()) continue;
    const Dim3 dims{value[0], value[1], value[2]};
    if (!large && (most_in_all == 0 || dims.count() <= most_in_all)) return dims;
    return Error{Exit::kUsage,
                 fmt::format("{} is {}; at most {} {} in x, {} in y and {} in z were expected{}", flag, text, most.x,
                             what, most.y, most.z, most_in_all ? fmt::format(", {} in all", most_in_all) : "")};
  }
  return Error{
      Exit::kUsage,
      fmt::format("{} is '{}'; one to three numbers of at least 1 were expected, as in 256 or 16,16", flag, text)};
}

/// "49152", "48K" or "48KiB".
Result<uint32_t> parse_smem(const std::string& text) {
  constexpr uint64_t kMost = 227 * 1024;  // of a CTA, on any GPU
  uint64_t bytes = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  const std::string_view unit(stop, static_cast<size_t>(text.data() + text.size() - stop));
  const bool kib = unit == "K" || unit == "k" || unit == "KiB";
  const bool number =
      (error == std::errc() || error == std::errc::result_out_of_range) && (kib || unit.empty() || unit == "B");
  if (number && error == std::errc() && bytes <= kMost / (kib ? 1024 : 1))
    return static_cast<uint32_t>(bytes * (kib ? 1024 : 1));
  return Error{Exit::kUsage, fmt::format("--smem is '{}'; {}", text,
                                         number ? fmt::format("at most {} bytes (227K) were expected", kMost)
                                                : "bytes were expected, as in 49152 or 48K")};
}

/// "sm_90", "sm_90a": a target of the compiler, if there is one, or a newer target: the compiler's own error then says
/// how to get a newer compiler.
Result<void> names_architecture(const std::string& text) {
  const std::optional<Target> target = parse_target(text);
  const std::vector<std::string>& known = nvrtc_info(text).archs;
  constexpr int kOfCuda13_5 = 107;  // newer than sm_121
  const auto is_older = [&](const std::string& arch) { return parse_target(arch)->arch < target->arch; };
  if (target && (target->arch == kOfCuda13_5 || std::ranges::all_of(known, is_older) ||
                 std::ranges::count(known, target->plain()) > 0))
    return {};
  return Error{Exit::kUsage,
               fmt::format("--arch is '{}'; an architecture was expected{}", text,
                           known.empty() ? ", as in sm_90" : fmt::format(": {}", fmt::join(known, ", ")))};
}

/// PTX is not compiled.
Result<void> check_compiler_flags(const KernelFlags& flags) {
  std::string given;
  for (const auto& [name, is] : {std::pair{"-I", !flags.include_dirs.empty()},
                                 {"-D", !flags.defines.empty()},
                                 {"--fast-math", flags.fast_math},
                                 {"--arch", flags.arch != kDefaultArch}})
    if (is) given += (given.empty() ? "" : ", ") + std::string(name);
  if (given.empty()) return {};
  return Error{Exit::kUsage,
               fmt::format("{} is PTX, which is compiled already; {} would do nothing", flags.file, given)};
}

}  // namespace

void KernelFlags::declare(FlagSet app) {
  app.add("file", file, "CUDA C++ source, or PTX when its name ends in .ptx; - for source from standard input")
      .required();
  app.add("--kernel", kernel,
          "name of the kernel, of a template's instance as in 'scale<float>', which is made [the only one]");
  app.add("--grid", grid, "CTAs: X or X,Y or X,Y,Z [1]");
  app.add("--block", block, "threads of a CTA: X or X,Y or X,Y,Z [required]");
  app.add("--smem", smem, "bytes of dynamic shared memory, or KiB as in 48K [0]");
  app.add("--args", args, "JSON file with the arguments in the order of the parameters (docs/use/check.md)");
  app.add("-I,--include", include_dirs, "directory with headers; the file's own comes first").directory();
  app.add("-D,--define", defines, "macro, as NAME or NAME=VALUE");
  app.add_switch("--fast-math", fast_math, "compile with --use_fast_math");
}

Result<check::Request> kernel_request(const KernelFlags& flags, bool launches) {
  check::Request r;
  ROOFGEN_CHECK(flags.file.ends_with(".ptx") ? check_compiler_flags(flags) : names_architecture(flags.arch));
  ROOFGEN_TRY(r.grid, parse_dims("--grid", flags.grid, "CTAs", {0x7fffffff, 65535, 65535}, 0));
  if (launches && flags.block.empty())
    return Error{
        Exit::kUsage,
        fmt::format("--block is required: the threads of a CTA; `roofgen check {} --emit-args FILE.json` prints "
                    "the launch that the source has, and writes its arguments",
                    flags.file)};
  if (!flags.block.empty()) {
    ROOFGEN_TRY(r.block, parse_dims("--block", flags.block, "threads", {1024, 1024, 64}, 1024));
  }
  ROOFGEN_TRY(r.smem_bytes, parse_smem(flags.smem));
  r.file = flags.file;
  ROOFGEN_TRY(r.text, read_input(flags.file));
  if (flags.file == "-") r.file = "standard-input.cu";
  if (r.file.ends_with(".ptx"))
    while (r.text.ends_with('\0')) r.text.pop_back();  // as nvrtcGetPTX ends it
  if (!flags.args.empty()) {
    ROOFGEN_TRY(std::string text, read_input(flags.args));
    ROOFGEN_TRY(r.args, check::parse_arguments(std::move(text), flags.args,
                                               std::filesystem::path(flags.args).parent_path().string()));
  }
  r.kernel = flags.kernel;
  r.arch = flags.arch;
  r.cache_dir = cache_dir();
  r.include_dirs = flags.include_dirs;
  r.include_dirs.insert(r.include_dirs.begin(), std::filesystem::path(flags.file).parent_path().string());
  for (const std::string& define : flags.defines) r.compiler_flags.push_back("--define-macro=" + define);
  if (flags.fast_math) r.compiler_flags.push_back("--use_fast_math");
  return r;
}

}  // namespace roofgen::cli

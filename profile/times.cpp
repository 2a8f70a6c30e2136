#include "profile/times.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "generator/space/json_reader.h"

namespace roofgen::profile {
namespace {

constexpr const char* kSchema = "roofgen.times.1";
constexpr size_t kMostName = 100;
constexpr double kMostUs = 1e9, kMostMhz = 10000;
constexpr uint64_t kMostSmem = 227 * 1024;  // of a CTA, on any GPU

Error usage(Error e) {
  e.exit = Exit::kUsage;
  e.notes.clear();
  return e;
}

class Reader : JsonReader {
 public:
  Reader(const JsonFile& file, const ReadFile& read)
      : JsonReader(file), read_(read), folder_(std::filesystem::path(file.file()).parent_path()) {}

  Result<Times> run() {
    const Json& root = file_.root();
    ROOFGEN_CHECK(only(root, {"schema", "measured", "sm_mhz", "kernels"}));
    ROOFGEN_TRY(const std::string schema, string(root, "schema"));
    if (schema != kSchema)
      return bad_at(root, fmt::format("schema \"{}\"; \"{}\" was expected", schema, kSchema), "schema");
    Times out;
    ROOFGEN_TRY(out.measured, string(root, "measured"));
    ROOFGEN_TRY(const double mhz, sm_mhz(root, 0));
    if (!root.contains("kernels") || !root["kernels"].is_array() || root["kernels"].empty())
      return bad_at(root, "\"kernels\" is a list of one kernel or more", "kernels");
    const Json& kernels = root["kernels"];
    if (kernels.size() > kMaxTimedKernels)
      return bad_at(kernels,
                    fmt::format("{} kernels are too many; at most {} were expected", kernels.size(), kMaxTimedKernels));
    for (const Json& item : kernels) {
      auto kernel = read_kernel(item, mhz);
      if (!kernel) {
        Error e = std::move(kernel).error();
        e.message = fmt::format("kernel {}: {}", out.kernels.size() + 1, e.message);
        return e;
      }
      out.kernels.push_back(std::move(*kernel));
    }
    return out;
  }

 private:
  Result<TimedKernel> read_kernel(const Json& j, double mhz) {
    ROOFGEN_CHECK(only(j, {"family", "file", "kernel", "grid", "block", "smem_bytes", "args", "defines", "include_dirs",
                           "time_us", "sm_mhz"}));
    TimedKernel out;
    out.where = file_.place(j);
    ROOFGEN_TRY(out.family, string(j, "family"));
    if (out.family.empty() || out.family.size() > kMostName)
      return bad_at(j, fmt::format("\"family\" is a name of 1 to {} bytes", kMostName), "family");
    ROOFGEN_TRY(const double us, positive(j, "time_us", "a time in microseconds", kMostUs));
    out.time_s = 1e-6 * us;
    ROOFGEN_TRY(out.sm_mhz, sm_mhz(j, mhz));
    check::Request& r = out.kernel;
    ROOFGEN_TRY(r.grid, dims(j, "grid", {0x7fffffff, 65535, 65535}, 0));
    ROOFGEN_TRY(r.block, dims(j, "block", {1024, 1024, 64}, 1024));
    if (j.contains("smem_bytes")) {
      const Json& bytes = j["smem_bytes"];
      if (!bytes.is_number_unsigned() || bytes.get<uint64_t>() > kMostSmem)
        return bad_at(j, fmt::format("\"smem_bytes\" is a number of bytes up to {}", kMostSmem), "smem_bytes");
      r.smem_bytes = bytes.get<uint32_t>();
    }
    ROOFGEN_TRY(r.kernel, string_or(j, "kernel", ""));
    ROOFGEN_TRY(const std::vector<std::string> defines, strings(j, "defines"));
    for (const std::string& define : defines) r.compiler_flags.push_back("--define-macro=" + define);
    ROOFGEN_TRY(r.include_dirs, strings(j, "include_dirs"));
    for (std::string& folder : r.include_dirs) folder = path(folder);
    ROOFGEN_TRY(r.file, string(j, "file"));
    r.file = path(r.file);
    if (r.is_ptx()) return bad_at(j, "\"file\" is PTX; CUDA C++ was expected: the machine code decides", "file");
    r.include_dirs.insert(r.include_dirs.begin(), std::filesystem::path(r.file).parent_path().string());
    ROOFGEN_TRY(r.text, contents(j, "file", r.file));
    if (!j.contains("args")) return out;
    ROOFGEN_TRY(const std::string name, string(j, "args"));
    const std::string args = path(name);
    ROOFGEN_TRY(std::string text, contents(j, "args", args));
    auto parsed = check::parse_arguments(std::move(text), args, std::filesystem::path(args).parent_path().string());
    if (!parsed) return parsed.error();
    r.args = std::move(*parsed);
    return out;
  }

  Result<double> positive(const Json& j, const char* member, const char* what, double most) const {
    const auto wrong = [&] {
      return bad_at(j, fmt::format("\"{}\" is {} above 0, up to {:g}", member, what, most), member);
    };
    if (!j.contains(member) || !j[member].is_number()) return wrong();
    const double value = j[member].get<double>();
    return value > 0 && value <= most ? Result<double>(value) : wrong();
  }

  Result<double> sm_mhz(const Json& j, double otherwise) const {
    if (!j.contains("sm_mhz")) return otherwise;
    return positive(j, "sm_mhz", "a clock in MHz", kMostMhz);
  }

  /// One to three numbers. `most` in x, y and z, and in all unless that is 0.
  Result<Dim3> dims(const Json& j, const char* member, const Dim3& most, uint64_t most_in_all) const {
    const uint32_t limit[3] = {most.x, most.y, most.z};
    uint32_t value[3] = {1, 1, 1};
    bool good = j.contains(member) && j[member].is_array() && !j[member].empty() && j[member].size() <= 3;
    for (size_t i = 0; good && i < j[member].size(); ++i) {
      const Json& n = j[member][i];
      good = n.is_number_unsigned() && n.get<uint64_t>() >= 1 && n.get<uint64_t>() <= limit[i];
      if (good) value[i] = n.get<uint32_t>();
    }
    const Dim3 out{value[0], value[1], value[2]};
    if (good && (most_in_all == 0 || out.count() <= most_in_all)) return out;
    return bad_at(j,
                  fmt::format("\"{}\" is a list of one to three numbers from 1 to {}, {} and {}{}", member, most.x,
                              most.y, most.z, most_in_all ? fmt::format(", with a product up to {}", most_in_all) : ""),
                  member);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Result<std::string> contents(const Json& j, const char* member, const std::string& path) const {
    auto text = read_(path);
    if (!text) return bad_at(j, fmt::format("{}: {}", path, text.error().message), member);
    return text;
  }

  const ReadFile& read_;
  const std::filesystem::path folder_;
};

}  // namespace

Result<Times> parse_times(std::string text, const std::string& file, const ReadFile& read) {
  auto json = JsonFile::parse(std::move(text), file);
  if (!json) return usage(std::move(json).error());
  auto times = Reader(*json, read).run();
  if (!times) return usage(std::move(times).error());
  return times;
}

}  // namespace roofgen::profile

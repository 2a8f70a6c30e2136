#include "tuner/ceilings/profile.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/json_text.h"

namespace roofgen {
namespace {

/// Profiles have about 20 kB.
constexpr uint64_t kMostBytes = uint64_t{1} << 20;

Result<std::string> read_text(const std::string& path) {
  const auto fail = [&](const char* why) { return Error{Exit::kUsage, why, {path}}; };
  std::error_code none;
  if (!std::filesystem::is_regular_file(path, none)) return fail("no such file");
  std::ifstream in(path, std::ios::binary);
  if (!in) return fail("cannot be read");
  std::string out(kMostBytes + 1, '\0');
  in.read(out.data(), static_cast<std::streamsize>(out.size()));
  out.resize(static_cast<size_t>(in.gcount()));
  if (out.size() > kMostBytes) return fail("over 1 MiB: no profile");
  return out;
}

/// A string member of the provenance; empty: none.
std::string provenance(const Json& root, const char* member) {
  if (!root.is_object() || !root.contains("provenance") || !root["provenance"].is_object()) return "";
  const Json& p = root["provenance"];
  return p.contains(member) && p[member].is_string() ? p[member].get<std::string>() : "";
}

bool is_complete(const std::string& path) {
  auto text = read_text(path);
  if (!text) return false;
  auto file = JsonFile::parse(std::move(*text), path);
  if (!file || !file->root().is_object() || !file->root().contains("provenance")) return false;
  const Json& p = file->root()["provenance"];
  return p.is_object() && p.contains("complete") && p["complete"].is_boolean() && p["complete"].get<bool>();
}

}  // namespace

std::string profile_path(const std::string& data, const std::string& uuid) {
  const bool plain = !uuid.empty() && uuid.size() <= 64 && std::all_of(uuid.begin(), uuid.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '-';
  });
  return data.empty() || !plain ? "" : data + "/profiles/" + uuid + ".json";
}

Result<Kept> keep_profile(const CeilingsReport& report, const std::string& path, const Outputs& outputs) {
  if (report.cells.empty()) return Kept::kNothingMeasured;
  std::error_code failed;
  const bool there = std::filesystem::exists(path, failed);
  if (there && !report.complete() && is_complete(path)) return Kept::kPartialKept;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, failed);
  if (there && std::filesystem::is_regular_file(path, failed)) {
    // A copy, so that the profile exists at every moment.
    ROOFGEN_TRY(const std::string old, read_text(path));
    ROOFGEN_CHECK(outputs.write(path + ".previous", old));
  }
  ROOFGEN_CHECK(outputs.write(path, profile_json(report)));
  return Kept::kWritten;
}

std::optional<std::string> apply_profile(Device& device, const GpuIdentity& gpu, const std::string& path) {
  std::error_code none;
  if (path.empty() || !std::filesystem::exists(path, none)) return std::nullopt;
  const auto ignored = [&](const std::string& why) { return fmt::format("the profile {} is ignored: {}", path, why); };
  auto text = read_text(path);
  if (!text) return ignored(text.error().message);
  auto file = JsonFile::parse(*text, path);
  if (!file) return ignored(file.error().message);
  const std::string uuid = provenance(file->root(), "uuid"), driver = provenance(file->root(), "driver");
  if (uuid != gpu.uuid)
    return ignored(fmt::format("it is of the GPU {}, this one is {}", uuid.empty() ? "(unknown)" : uuid,
                               gpu.uuid.empty() ? "unknown" : gpu.uuid));
  if (auto laid = overlay(device, std::move(*text), path); !laid) return ignored(laid.error().message);
  if (!gpu.driver.empty() && driver != gpu.driver)
    return fmt::format("the profile {} was measured under driver {}, this is {}: roofgen roofline --measure renews it",
                       path, driver.empty() ? "(unknown)" : driver, gpu.driver);
  return std::nullopt;
}

Result<void> apply_profile_file(Device& device, const std::string& path) {
  ROOFGEN_TRY(std::string text, read_text(path));
  auto laid = overlay(device, std::move(text), path);
  if (laid) return {};
  Error error = std::move(laid).error();
  error.exit = Exit::kUsage;
  return error;
}

}  // namespace roofgen

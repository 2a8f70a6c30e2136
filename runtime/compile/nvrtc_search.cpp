// Search order for NVRTC: the user's choice, a private prefix next to the program, CUDA toolkits, the wheels of the
// active Python environment, the dynamic loader. The first usable library is taken; every attempt is recorded.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "base/paths.h"
#include "base/target.h"
#include "runtime/compile/nvrtc.h"

namespace roofgen {
namespace {

namespace fs = std::filesystem;

constexpr const char* kNames[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};

/// NVRTC, and headers for kernels that include them.
constexpr const char* kWheels = "nvidia-cuda-nvrtc nvidia-cuda-runtime nvidia-cuda-crt nvidia-cuda-cccl";

// Layouts below a private prefix: NVIDIA's wheels for CUDA 13 and 12, or flat.
constexpr const char* kPrefixLibs[] = {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib", "lib64", "lib", "."};
#if defined(__aarch64__)
constexpr const char* kToolkitLibs[] = {"lib64", "lib", "targets/sbsa-linux/lib"};
#else
constexpr const char* kToolkitLibs[] = {"lib64", "lib", "targets/x86_64-linux/lib"};
#endif

bool has_directory(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool has_file(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// Compares version numbers numerically, so that cuda-12.10 is newer than cuda-12.9.
bool newer_first(const fs::path& a, const fs::path& b) {
  auto key = [](const fs::path& path) {
    std::string name = path.filename();
    int major = 0, minor = 0;
    std::sscanf(name.c_str(), "cuda-%d.%d", &major, &minor);
    return std::pair(major, minor);
  };
  return key(a) > key(b);
}

/// Candidate files in order. A missing directory is recorded once.
class Candidates {
 public:
  explicit Candidates(std::vector<std::string>* searched) : searched_(searched) {}

  void directory(const fs::path& dir) {
    if (!has_directory(dir)) {
      searched_->push_back(dir.string() + ": no such directory");
      return;
    }
    bool any = false;
    for (const char* name : kNames) {
      if (!has_file(dir / name)) continue;
      files.push_back((dir / name).lexically_normal());
      any = true;
    }
    if (!any) searched_->push_back(dir.string() + ": no libnvrtc.so here");
  }

  std::vector<std::string> files;

 private:
  std::vector<std::string>* searched_;
};

/// Comes last: it serves only targets that no other library has.
fs::path place_of_newer(const NvrtcSearch& search) { return fs::path(search.executable_dir) / "nvrtc-newer"; }

std::vector<std::string> candidates(const NvrtcSearch& search, std::vector<std::string>* searched) {
  Candidates found(searched);
  if (!search.chosen.empty()) {
    // Workers run in another directory, so a relative path becomes absolute; the dynamic loader resolves a bare name.
    std::error_code ignored;
    if (!has_directory(search.chosen))
      return {search.chosen.find('/') == std::string::npos ? search.chosen
                                                           : fs::absolute(search.chosen, ignored).string()};
    for (const char* lib : kPrefixLibs)
      if (fs::path dir = fs::absolute(search.chosen, ignored) / lib; has_directory(dir)) found.directory(dir);
    return found.files;
  }
  fs::path dir = search.executable_dir;
  for (int up = 0; up <= 3 && !dir.empty(); ++up) {
    fs::path prefix = dir / "nvrtc";
    if (has_directory(prefix)) {
      for (const char* lib : kPrefixLibs)
        if (has_directory(prefix / lib)) found.directory(prefix / lib);
    } else {
      searched->push_back(prefix.string() + ": no such directory");
    }
    if (dir == dir.parent_path()) break;
    dir = dir.parent_path();
  }
  for (const std::string& root : search.toolkits) {
    if (!has_directory(root)) {
      searched->push_back(root + ": no such directory");
      continue;
    }
    for (const char* lib : kToolkitLibs)
      if (has_directory(fs::path(root) / lib)) found.directory(fs::path(root) / lib);
  }
  if (search.loader_path) found.files.insert(found.files.end(), std::begin(kNames), std::end(kNames));
  const fs::path newer = place_of_newer(search);
  for (const char* lib : kPrefixLibs)
    if (has_directory(newer / lib)) found.directory(newer / lib);
  return found.files;
}

/// CUDA headers for a library: beside it (`lib/../include`), else from any toolkit.
std::string find_headers(const std::string& library, const NvrtcSearch& search) {
  std::vector<fs::path> roots;
  if (library.find('/') != std::string::npos) roots.push_back(fs::path(library).parent_path().parent_path());
  roots.insert(roots.end(), search.toolkits.begin(), search.toolkits.end());
  for (const fs::path& root : roots)
    if (has_file(root / "include/cuda_fp16.h")) return (root / "include").lexically_normal();
  return "";
}

struct Found {
  NvrtcInfo info;
  Result<Nvrtc> library;
};

const Found& found(const std::string& target) {
  static std::mutex mutex;
  static std::map<std::string, Found> kFound;
  const auto parsed = parse_target(target);
  const std::string plain = parsed ? parsed->plain() : "";
  const std::lock_guard lock(mutex);
  if (const auto at = kFound.find(plain); at != kFound.end()) return at->second;
  NvrtcInfo info;
  Result<Nvrtc> library = find_nvrtc(nvrtc_search_from_environment(), &info, plain);
  return kFound.emplace(plain, Found{std::move(info), std::move(library)}).first->second;
}

/// The location of NVIDIA's CUDA 13 wheels in a Python environment. They have the layout of a toolkit, including
/// headers.
std::vector<std::string> wheels_of(const fs::path& environment_root) {
  std::vector<std::string> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(environment_root / "lib", ignored)) {
    if (entry.path().filename().string().rfind("python3", 0) != 0) continue;
    for (const char* packages : {"site-packages", "dist-packages"})
      if (fs::path wheels = entry.path() / packages / "nvidia/cu13"; has_directory(wheels)) found.push_back(wheels);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

NvrtcSearch nvrtc_search_from_environment() {
  NvrtcSearch search;
  search.chosen = environment("ROOFGEN_NVRTC");
  std::error_code ignored;
  search.executable_dir = fs::path(own_file()).parent_path();
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (std::string root = environment(name); !root.empty()) search.toolkits.push_back(root);
  search.toolkits.push_back("/usr/local/cuda");
  std::vector<fs::path> versions;
  for (const auto& entry : fs::directory_iterator("/usr/local", ignored))
    if (entry.path().filename().string().rfind("cuda-", 0) == 0) versions.push_back(entry.path());
  std::sort(versions.begin(), versions.end(), newer_first);
  search.toolkits.insert(search.toolkits.end(), versions.begin(), versions.end());
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"})
    if (std::string root = environment(name); !root.empty())
      for (std::string& wheels : wheels_of(root)) search.toolkits.push_back(std::move(wheels));
  return search;
}

bool NvrtcInfo::targets(const std::string& target) const {
  const auto parsed = parse_target(target);
  return parsed && std::ranges::find(archs, parsed->plain()) != archs.end();
}

Result<Nvrtc> find_nvrtc(const NvrtcSearch& search, NvrtcInfo* info, const std::string& target) {
  *info = {};
  info->place_of_newer = place_of_newer(search);
  std::optional<Nvrtc> first;
  NvrtcInfo of_first;
  for (const std::string& file : candidates(search, &info->searched)) {
    Result<Nvrtc> library = Nvrtc::open(file);
    if (!library) {
      const std::string& reason = library.error().message;
      // dlerror and roofgen's own messages usually begin with the file name already.
      info->searched.push_back(reason.rfind(file, 0) == 0 ? reason : file + ": " + reason);
      continue;
    }
    info->found = true;
    info->library = library->path();
    info->major = library->major();
    info->minor = library->minor();
    info->archs = library->archs();
    info->include_dir = find_headers(library->path(), search);
    if (target.empty() || info->targets(target)) return library;
    info->searched.push_back(fmt::format("{}: does not compile for {}", file, target));
    if (!first) first = *library, of_first = *info;
  }
  if (first) {
    of_first.searched = info->searched;
    *info = of_first;
    return *first;
  }
  Error error{Exit::kUnavailable,
              fmt::format("NVRTC (libnvrtc.so, CUDA {}.{} or newer) was not found; install a CUDA toolkit, or run "
                          "`python3 -m pip install --target DIR {}` and set ROOFGEN_NVRTC=DIR",
                          kMinNvrtcMajor, kMinNvrtcMinor, kWheels)};
  error.notes = info->searched;
  return error;
}

const Result<Nvrtc>& nvrtc(const std::string& target) { return found(target).library; }
const NvrtcInfo& nvrtc_info(const std::string& target) { return found(target).info; }

}  // namespace roofgen

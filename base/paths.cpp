#include "base/paths.h"

#include <link.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace roofgen {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

namespace {

std::string base_dir(const char* own, const char* xdg, const char* below_home) {
  if (std::string dir = environment(own); !dir.empty()) return dir;
  // By the XDG specification, relative paths are invalid and must be ignored.
  if (std::string dir = environment(xdg); !dir.empty() && dir[0] == '/') return dir + "/roofgen";
  if (std::string home = environment("HOME"); !home.empty() && home[0] == '/') return home + below_home + "/roofgen";
  return "";
}

/// The file of the object that holds this code, as the loader knows it; empty: the program.
std::string loaded_from() {
  std::string name;
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* found) {
        const auto code = reinterpret_cast<uintptr_t>(&loaded_from);
        for (int i = 0; i < object->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = object->dlpi_phdr[i];
          const uintptr_t begin = object->dlpi_addr + segment.p_vaddr;
          if (segment.p_type != PT_LOAD || code < begin || code >= begin + segment.p_memsz) continue;
          *static_cast<std::string*>(found) = object->dlpi_name;
          return 1;
        }
        return 0;
      },
      &name);
  return name;
}

std::string find_own_file() {
  std::error_code ignored;
  const std::string name = loaded_from();
  return name.empty() ? std::filesystem::read_symlink("/proc/self/exe", ignored)
                      : std::filesystem::canonical(name, ignored);
}

}  // namespace

std::string own_file() {
  static const std::string kFile = find_own_file();
  return kFile;
}

std::string worker_program() {
  if (loaded_from().empty()) return "/proc/self/exe";  // the running program, also when its file has been replaced
  std::error_code ignored;
  const std::filesystem::path own = own_file();
  const std::string chosen = environment("ROOFGEN_PROGRAM");
  std::vector<std::filesystem::path> places = {chosen};
  if (chosen.empty()) {
    places.clear();
    if (own.empty()) return "";
    // Libraries are in lib/ or in lib/x86_64-linux-gnu/; in the build tree the program is in cli/.
    for (const char* folder : {".", "../bin", "../../bin", "../cli"})
      places.push_back(own.parent_path() / folder / "roofgen");
  }
  for (const std::filesystem::path& place : places)
    if (std::filesystem::is_regular_file(place, ignored)) return std::filesystem::canonical(place, ignored);
  return "";
}

std::string program_file() {
  if (!loaded_from().empty()) return worker_program();
  std::error_code ignored;  // a file that was replaced is no more there
  return std::filesystem::is_regular_file(own_file(), ignored) ? own_file() : "";
}

std::string cache_dir() { return base_dir("ROOFGEN_CACHE_DIR", "XDG_CACHE_HOME", "/.cache"); }
std::string data_home() { return base_dir("ROOFGEN_DATA_HOME", "XDG_DATA_HOME", "/.local/share"); }

}  // namespace roofgen

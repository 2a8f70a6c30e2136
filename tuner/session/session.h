// A session: where a caller's data files, caches and results are, and whom it tells what happens. The faces of roofgen,
// its command line (cli/), its C API (library/) and by this Python, make one and ask it (tune.h, emit.h, generate.h,
// suite.h); what they ask is a request (request.h).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/outputs.h"
#include "base/paths.h"
#include "roofgen/result.h"

namespace roofgen {

class DataFiles;
namespace plot {
struct Page;
}

using Say = std::function<void(const std::string&)>;
/// Called from any thread.
using ShowPhase = std::function<void(const char* phase, uint64_t done, uint64_t total)>;

struct Session {
  std::vector<std::string> data_dirs;  ///< folders of the caller's templates, spaces, devices, works and models
  std::string cache = cache_dir();     ///< of compiled kernels and winners; empty: none
  std::string home = data_home();      ///< of the store; empty: none
  bool force = false;                  ///< replaces files that roofgen did not write
  std::atomic<bool>* stop = nullptr;   ///< set: searches end with what is done
  Say warn = [](const std::string&) {};
  Say wrote = [](const std::string&) {};  ///< a file that the caller asked for, by its path
  /// Begins to show the phases of work of this kind, as "tune attention", until the result is destroyed.
  std::function<ShowPhase(const std::string& kind)> progress = [](const std::string&) {
    return [](const char*, uint64_t, uint64_t) {};
  };

  Outputs outputs() const { return Outputs(home, force); }
  /// Writes a file that the caller asked for, and says so.
  Result<void> write(const std::string& path, std::string_view text) const;
  Result<void> write_page(const std::string& path, const plot::Page& page, const DataFiles& files) const;
};

const char* version();  ///< "0.1.0"

/// A file's text, or standard input for "-". Exit::kUsage when it cannot be read, or has more than `most` bytes.
Result<std::string> read_input(const std::string& path, size_t most = size_t{64} << 20);

}  // namespace roofgen

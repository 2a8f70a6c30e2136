// The command line: one file per subcommand, one row each in the table in main.cpp.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/outputs.h"
#include "base/paths.h"
#include "cli/flags.h"
#include "generator/generate.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"
#include "roofline/device.h"
#include "roofline/plot/figure.h"

namespace roofgen {
struct TunedKernel;
}

namespace roofgen::cli {

using Say = std::function<void(const std::string&)>;
/// One line on standard error.
void warn(const std::string& line);
void print_out(const std::string& text);
void print_err(const std::string& text);

/// Flags every subcommand understands, and what main() knows. The shared library (library/) runs subcommands, too, with
/// other places for what they print.
struct Session {
  std::vector<std::string> data_dirs;  ///< `--data-dir`
  std::string color = "auto";
  bool force = false;                                  ///< `--force`
  std::atomic<bool>* stop = nullptr;                   ///< set by the first Ctrl-C
  std::vector<std::string> program;                    ///< for `run`, with its arguments
  std::function<std::vector<CommandText>()> commands;  ///< of the command line
  std::string cache = cache_dir();                     ///< of compiled kernels; empty: none
  std::string home = data_home();                      ///< of the store; empty: none
  Say out = print_out;                                 ///< results
  Say err = print_err;                                 ///< lines beside them
  Say warn = cli::warn;                                ///< one line
  /// Instead of the line on the terminal.
  std::function<void(const char* phase, uint64_t done, uint64_t total)> progress = {};
  /// Receives the kernels of a result, in launch order: of tune the best variant's, or those of each row of a family's
  /// table; of generate one, whose binary is empty without --ptx.
  std::function<void(const std::vector<TunedKernel>& kernels)> kernels = {};
  bool use_color(int fd) const;
  Outputs outputs() const { return Outputs(home, force); }
  /// Writes a file that the user asked for, and says so.
  Result<void> write(const std::string& path, std::string_view text) const;
  void say_written(const std::string& path) const;  ///< nothing of a pipe or a device
};

/// Runs after parsing; the Error's exit code becomes the process's.
using Run = std::function<Result<Exit>(const Session&)>;

struct Subcommand {
  const char* name;
  const char* summary;
  /// Declares the flags on `app` and returns what to run.
  Run (*declare)(FlagSet app);
  bool writes = false;  ///< files for the user
};

/// Of the commands that write files for the user.
void declare_force(FlagSet app, bool& force);

Run declare_tune(FlagSet app);
Run declare_generate(FlagSet app);
Run declare_emit(FlagSet app);
Run declare_whatif(FlagSet app);
Run declare_run(FlagSet app);
Run declare_check(FlagSet app);
Run declare_profile(FlagSet app);
Run declare_calibrate(FlagSet app);
Run declare_explain(FlagSet app);
Run declare_lint(FlagSet app);
Run declare_devices(FlagSet app);
Run declare_roofline(FlagSet app);
Run declare_replay(FlagSet app);
Run declare_db(FlagSet app);
Run declare_report(FlagSet app);
Run declare_model(FlagSet app);
Run declare_doctor(FlagSet app);
Run declare_completion(FlagSet app);

const char* version();  ///< "0.1.0"
/// A device of the catalogue by name; "gpu" is the GPU of this machine, matched with the catalogue or composed from
/// its architecture and what its driver says.
Result<Device> find_device(const DataFiles& files, const std::string& name);

/// A file's text, or standard input for "-". Exit::kUsage when it cannot be read, or has more than `most` bytes.
Result<std::string> read_input(const std::string& path, size_t most = size_t{64} << 20);
/// Columns of the terminal; $COLUMNS, else 100, where standard output is none.
int terminal_width();
/// The page as text on standard output, or as HTML in the file `html` when that is not empty.
Result<Exit> show_page(const plot::Page& page, const std::string& html, const DataFiles& files, const Session& session);

}  // namespace roofgen::cli

// The command line: a function for each subcommand, a row each in the table in main.cpp.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "roofgen/result.h"
#include "roofline/device.h"
#include "roofline/plot/figure.h"
#include "tuner/session/flags.h"
#include "tuner/session/session.h"

namespace roofgen::cli {

/// One line on standard error.
void warn(const std::string& line);
void print_out(const std::string& text);
void print_err(const std::string& text);

/// The session of a terminal's user: flags every subcommand understands, and what main() knows.
struct Terminal : Session {
  Terminal();
  Terminal(const Terminal&) = delete;                  ///< `progress` refers to it
  std::string color = "auto";                          ///< `--color`
  std::vector<std::string> program;                    ///< for `run`, with its arguments
  std::function<std::vector<CommandText>()> commands;  ///< of the command line
  bool use_color(int fd) const;
};

/// Runs after parsing; the Error's exit code becomes the process's.
using Run = std::function<Result<Exit>(const Terminal&)>;

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

/// Columns of the terminal; $COLUMNS, else 100, where standard output is none.
int terminal_width();
/// The page as text on standard output, or as HTML in the file `html` when that is not empty.
Result<Exit> show_page(const plot::Page& page, const std::string& html, const DataFiles& files,
                       const Terminal& terminal);

}  // namespace roofgen::cli

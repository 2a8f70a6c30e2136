// The commands that the program of the first questions lacks: `./roofgen COMMAND` builds the whole program for them.
#include <fmt/format.h>

#include "cli/cli.h"

namespace roofgen::cli {
namespace {

Run in_the_whole_program(FlagSet app) {
  app.keep_rest();
  return [app](const Terminal&) -> Result<Exit> {
    return Error{
        Exit::kUnavailable,
        fmt::format("this program was built without {0}: `./roofgen {0}` builds the whole one", app.command())};
  };
}

}  // namespace

Run declare_calibrate(FlagSet app) { return in_the_whole_program(app); }
Run declare_check(FlagSet app) { return in_the_whole_program(app); }
Run declare_completion(FlagSet app) { return in_the_whole_program(app); }
Run declare_db(FlagSet app) { return in_the_whole_program(app); }
Run declare_lint(FlagSet app) { return in_the_whole_program(app); }
Run declare_profile(FlagSet app) { return in_the_whole_program(app); }
Run declare_replay(FlagSet app) { return in_the_whole_program(app); }
Run declare_report(FlagSet app) { return in_the_whole_program(app); }
Run declare_roofline(FlagSet app) { return in_the_whole_program(app); }
Run declare_run(FlagSet app) { return in_the_whole_program(app); }

}  // namespace roofgen::cli

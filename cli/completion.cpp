// roofgen completion SHELL: the script that completes roofgen's command line.
#include <fmt/format.h>

#include "cli/cli.h"
#include "cli/manual.h"
#include "generator/ops/op.h"
#include "roofline/work.h"

namespace roofgen::cli {
namespace {

Result<Exit> run(const Terminal& terminal, const std::string& shell) {
  const DataFiles files(terminal.data_dirs);
  KnownValues values{{"op", {}}, {"explain op", WorkFormula::names(files)}, {"--device", device_names(files)}};
  ROOFGEN_TRY(values["op"], op_names(files));
  ROOFGEN_TRY(const std::string script, completion_script(terminal.commands(), values, shell));
  fmt::print("{}", script);
  return Exit::kOk;
}

}  // namespace

Run declare_completion(FlagSet app) {
  auto shell = std::make_shared<std::string>();
  app.add("SHELL", *shell, "bash, zsh or fish").required();
  app.footer("Example: source <(roofgen completion bash)");
  return [shell](const Terminal& terminal) { return run(terminal, *shell); };
}

}  // namespace roofgen::cli

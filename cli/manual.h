// The flag table as a manual page and as completion scripts for shells.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "tuner/session/flags.h"

namespace roofgen::cli {

/// Values of flags that are not fixed, by the name of the flag or argument: "--device", "op"; "explain op" goes before
/// "op" in that command.
using KnownValues = std::map<std::string, std::vector<std::string>>;

/// roofgen(1), in man(7) macros.
std::string manual_page(const std::vector<CommandText>& commands, const std::string& version);

/// The script that a shell sources. `shell`: bash, zsh or fish, else Exit::kUsage.
Result<std::string> completion_script(const std::vector<CommandText>& commands, const KnownValues& values,
                                      const std::string& shell);

}  // namespace roofgen::cli

// roofgen tune OP with lists of sizes: a family of problems and its dispatch table.
#pragma once

#include "cli/problem_flags.h"

namespace roofgen::cli {

struct FamilyFlags {
  std::string table, within = "2%";
  std::vector<Flag> own;    ///< flags that only a family has
  std::vector<Flag> alien;  ///< flags of tune that a family cannot have
  /// `app`: the other flags of tune, all of which are declared.
  void declare(FlagSet app);
};

/// A usage error where a flag needs a family and there is none.
Result<void> check_no_family(const FamilyFlags& family);
/// `problems`: several.
Result<Exit> tune_family(const Session& session, const ProblemFlags& flags, const RunFlags& run,
                         const FamilyFlags& family, std::vector<Problem> problems, bool json);

}  // namespace roofgen::cli

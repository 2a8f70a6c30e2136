// Requests with lists of sizes: a family of problems and its dispatch table.
#pragma once

#include "tuner/dispatch/family.h"
#include "tuner/session/workbench.h"

namespace roofgen {

struct FamilyFlags {
  std::string table, within = "2%";
  std::vector<Flag> own;    ///< flags that only a family has
  std::vector<Flag> alien;  ///< flags of the command that a family cannot have
  /// `single`: names of declared flags for a single problem.
  void declare(FlagSet app, const std::vector<std::string>& single);
};

/// A usage error where a flag needs a family and there is none.
Result<void> check_no_family(const FamilyFlags& family);
/// A usage error where a flag needs a single problem.
Result<void> check_family(const FamilyFlags& family);

/// Gives the problems their defaults, and returns their op.
Result<const Op*> complete_all(const DataFiles& files, const std::string& op, std::vector<Problem>& problems);

struct FamilyRun {
  Workbench bench;  ///< without its store
  FamilyResult result;
};
/// Tunes several problems, and writes the table to --table. The result is kept in the store, too.
Result<FamilyRun> tune_family(const Session& session, const ProblemFlags& flags, const RunFlags& run,
                              const FamilyFlags& family, std::vector<Problem> problems);
/// What the store has of an earlier tune_family() that would give the same. Writes the table, too.
Result<std::optional<Manifest>> finished_family(const Session& session, const ProblemFlags& flags, const RunFlags& run,
                                                const FamilyFlags& family, std::vector<Problem> problems);

}  // namespace roofgen

// Which flag belongs to which op: the files of the ops, from which flags are declared, checked and put into a Problem.
#pragma once

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "generator/ops/op_file.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"
#include "tuner/session/flags.h"

namespace roofgen {

/// The part of a command line that says what is to be computed.
class OpFlags {
 public:
  void declare(FlagSet app);
  /// What was given. A flag of another op is an error that says which flags `op` has, a list of sizes one that names
  /// the flag.
  Result<Problem> problem(const std::string& op, const std::string& dtype) const;
  /// The same where a size may be a list: a problem for each combination, that of the last flag changing fastest. At
  /// most kMostShapes.
  Result<std::vector<Problem>> problems(const std::string& op, const std::string& dtype) const;
  std::vector<std::string> names() const;  ///< of all flags

 private:
  struct Text;
  struct Given {
    Flag flag;
    std::set<std::string> ops;  ///< those it belongs to
  };
  void declare(FlagSet app, OpFlagKind kind, const Text& text);
  Result<Problem> without_sizes(const std::string& op, const std::string& dtype) const;

  std::vector<Given> given_;
  std::array<std::vector<std::string>, kOpFlagKinds.size()> names_;  ///< in the order of --help
  std::map<std::string, std::string> sizes_;                         ///< as written: one, or several with commas
  std::map<std::string, bool> flags_;
  std::map<std::string, double> reals_;
  std::map<std::string, std::string> texts_, dtypes_;
  std::map<std::string, std::string> help_;                  ///< of texts
  std::map<std::string, std::vector<std::string>> formats_;  ///< the only ones of a tensor's flag
  std::vector<std::string> args_;
};

}  // namespace roofgen

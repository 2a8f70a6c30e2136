// Which flag belongs to which op: one table, from which flags are declared, checked and put into a Problem.
#pragma once

#include <string>
#include <vector>

#include "cli/cli.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen::cli {

/// The part of a command line that says what is to be computed.
class OpFlags {
 public:
  void declare(FlagSet app);
  /// What was given. A flag of another op is an error that says which flags `op` has.
  Result<Problem> problem(const std::string& op, const std::string& dtype) const;

 private:
  struct Given {
    Flag flag;
    std::string ops;  ///< " attention gemm ": those it belongs to
  };
  void own(Flag flag, const char* ops, const char* group);

  std::vector<Given> given_;
  std::map<std::string, int64_t> dims_;
  std::map<std::string, bool> flags_;
  std::map<std::string, double> reals_;
  std::map<std::string, std::string> texts_, dtypes_;
  std::vector<std::string> args_;
};

}  // namespace roofgen::cli

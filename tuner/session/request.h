// What a caller asks for: the flags of a problem, of the device, and of a search.
#pragma once

#include <functional>
#include <memory>

#include "tuner/session/op_flags.h"
#include "tuner/session/profile_flags.h"

namespace roofgen {

class Evaluations;

inline constexpr const char* kDefaultDevice = "h200-sxm";

struct ProblemFlags {
  std::string op;
  OpFlags given;
  std::string dtype = "bf16";
  std::string device;  ///< empty: the default device
  std::string arch;    ///< empty: the device's
  std::vector<std::string> sets;
  ProfileFlags profile;

  void declare(FlagSet app);
  Result<Problem> problem() const { return given.problem(op, dtype); }
  Result<std::vector<Problem>> problems() const { return given.problems(op, dtype); }
  Result<std::map<std::string, ParamValue>> pins() const;
};

/// How a run is bounded and where it may remember things.
struct RunFlags {
  std::vector<std::string> variants;
  std::string strategy = "prior", executor = "auto";
  std::string check = "finalists", protocol = "steady", l2 = "cold", record;  ///< on a GPU
  double timeout_s = 10;
  int gpu = 0;
  std::string effort = "quick";
  bool exhaustive = false, no_store = false, cold = false;
  double until = 0, launches = 0;
  uint64_t evals = 0, seed = 0;
  double time_limit_s = 0;
  int jobs = 0;
  std::vector<Flag> gpu_flags;                               ///< --gpu first; those that need a GPU
  std::function<std::unique_ptr<Evaluations>()> open_store;  ///< instead of the store of this machine
  void declare(FlagSet app);
};

}  // namespace roofgen

// roofgen roofline --measure.
#pragma once

#include "cli/cli.h"

namespace roofgen::cli {

struct MeasureFlags {
  bool measure = false, json = false;
  int gpu = 0;
  std::string protocol = "steady", output;
  std::vector<std::string> only;
  void declare(FlagSet app);
};

/// Measures the ceilings of a GPU, prints them and keeps its profile. No GPU: Exit::kUnavailable, nothing written.
Result<Exit> measure_roofline(const Terminal& terminal, const MeasureFlags& flags);

}  // namespace roofgen::cli

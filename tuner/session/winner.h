// The best kernels that searches of this machine have found for a problem, in files of the cache: roofgen_jit begins
// with them.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tuner/session/workbench.h"

namespace roofgen {

struct KnownWinner {
  struct Stage {
    std::string name;
    std::map<std::string, ParamValue> params;  ///< all of them
    std::string digest;                        ///< of the binary
  };
  std::string variant;
  double seconds = 0;
  bool measured = false;  ///< else a model or the simulated driver gave the time
  std::vector<Stage> stages;
};

/// Keeps the winner of a search that came to its end, if it is better than the known one. Measured times are better
/// than modelled ones. Data files of the user may change, so they exclude it.
void keep_winner(const Session& session, const Workbench& bench, const TuneOptions& options, const TuneReport& report);

/// Removes the known winner: its kernels are others now.
void forget_winner(const Session& session, const Workbench& bench, const TuneOptions& options);

/// The best winner of searches with the same pins, variants, compiler and release, one of which tried as many
/// candidates as `options` ask for. `measured`: only by measured times.
std::optional<KnownWinner> known_winner(const Session& session, const Workbench& bench, const TuneOptions& options,
                                        bool measured);

}  // namespace roofgen

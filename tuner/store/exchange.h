// Trials of the store as recorded spaces of other tools, and back.
#pragma once

#include "tuner/recording/recording.h"
#include "tuner/store/store.h"

namespace roofgen {

/// Rows for import. Their source is the recording's format, so that no search ranks them with its own times.
std::vector<StoredTrial> trials_of(const Recording& recording);

struct Exported {
  Recording recording;
  std::string times;    ///< "event model", "measured", ...
  size_t left_out = 0;  ///< trials with times of another origin or model
};
/// The trials of one space. Of points that were tried again the last result counts. `time_model` chooses the times;
/// empty: those that most trials have. An Error names the spaces where there are several.
Result<Exported> recording_of(const std::vector<StoredTrial>& trials, const std::string& time_model);

}  // namespace roofgen

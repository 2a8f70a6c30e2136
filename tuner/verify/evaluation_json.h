// An Evaluation as the text of a store row, and as a row.
#pragma once

#include <optional>
#include <string>

#include "tuner/search/store.h"
#include "tuner/verify/verify.h"

namespace roofgen {

/// Digest of the sources that a row depends on: simulator, references, verification (tuner/CMakeLists.txt). After a
/// change of any of them, no older row is read.
extern const char* const kEvaluationVersion;

std::string to_payload(const Evaluation& evaluation);
/// nullopt when the text is not a payload of this version.
std::optional<Evaluation> from_payload(const std::string& text);

/// The stored evaluation. nullopt without a store.
std::optional<Evaluation> recall(Store* store, const StoreKey& key);
void remember(Store* store, const StoreKey& key, const Evaluation& evaluation);

}  // namespace roofgen

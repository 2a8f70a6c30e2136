// An Evaluation as the text a store row holds.
#pragma once

#include <optional>
#include <string>

#include "tuner/search/store.h"
#include "tuner/verify/verify.h"

namespace roofgen {

/// Digest of the sources that shape a row: simulator, references, verification, payload
/// (tuner/CMakeLists.txt). A changed checker never trusts an old row.
extern const char* const kEvaluationVersion;

std::string to_payload(const Evaluation& evaluation);
/// nullopt when the text is not a payload of this version: the row is then evaluated again.
std::optional<Evaluation> from_payload(const std::string& text);

/// The stored evaluation. nullopt without a store.
std::optional<Evaluation> recall(Store* store, const StoreKey& key);
void remember(Store* store, const StoreKey& key, const Evaluation& evaluation);

}  // namespace roofgen

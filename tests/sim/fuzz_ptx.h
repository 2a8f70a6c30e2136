// The body of the PTX fuzz target, shared with the smoke test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace roofgen::sim_test {

/// Parses, decodes and runs any kernel in the text, with one small buffer per parameter and a tiny instruction limit.
/// Only a crash or a hang is a failure.
void fuzz_one(std::string_view text);

/// The seeds: tests/sim/fixtures/fuzz/*.ptx, sorted by name.
std::vector<std::string> fuzz_corpus();

}  // namespace roofgen::sim_test

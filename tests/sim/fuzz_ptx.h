// The body of the PTX fuzz target, shared with the smoke test.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace roofgen::sim_test {

/// Parses, decodes and runs whatever kernel the text has, with one small buffer per parameter and a
/// tiny instruction limit. Any outcome is fine but a crash or a hang.
void fuzz_one(std::string_view text);

/// The seeds: tests/sim/fixtures/fuzz/*.ptx, sorted by name.
std::vector<std::string> fuzz_corpus();

}  // namespace roofgen::sim_test

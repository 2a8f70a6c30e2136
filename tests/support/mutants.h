// Mutants: kernels with one planted bug, which a check must catch. Files *.mutants; docs/evidence/mutants.md tells
// their format.
#pragma once

#include <filesystem>
#include <iosfwd>
#include <string>
#include <vector>

#include "roofgen/result.h"

namespace roofgen::test {

/// One change of code. Blanks, line breaks and comments of `from` do not count.
struct Edit {
  std::string file;  ///< "attention/fused.cu.jinja"
  std::string from, to;
};

/// What must become of a mutant: a finding of the simulator, a failed comparison, either of them; a search that
/// verifies no kernel, or without a bug one that verifies a kernel.
enum class Fate { kFinding, kComparison, kEither, kRejected, kVerified };

struct Mutant {
  Where where;          ///< of its first line
  std::string bug;      ///< "stages released too early"
  std::string because;  ///< why that is wrong on a GPU, where it is not plain
  std::string name;     ///< of the file and the bug: "gemm_warpgroup_stages_released_too_early"
  Fate fate = Fate::kEither;
  double margin = 1;  ///< tolerances that the comparison must be off by
  std::string run;    ///< arguments: the problem, a variant, a schedule
  std::vector<Edit> edits;
};
void PrintTo(const Mutant& mutant, std::ostream* out);

/// Errors: a line that is none of the format, with its place.
Result<std::vector<Mutant>> read_mutants(const std::filesystem::path& file);

/// The mutants of all files below a folder of the project. A file with an error has none:
/// expect_mutants_well_formed() reports the error.
std::vector<Mutant> mutants_below(const std::string& folder);
/// Expects files without errors, and names that occur once.
void expect_mutants_well_formed(const std::string& folder);

}  // namespace roofgen::test

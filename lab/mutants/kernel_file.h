// Kernels of files whose first lines state their launch (tests/check/kernel_files.h): `roofgen check` finds nothing in
// them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "check/check.h"
#include "lab/mutants/mutant.h"

namespace roofgen::mutants {

struct KernelFile {
  std::string name, folder;
  check::Request request;  ///< of the PTX
  std::unique_ptr<Code> code;
};

/// Compiles and checks the files of some folders in which `roofgen check` should find nothing. `only`: a part of the
/// name. Those that cannot be checked here are left out.
Result<std::vector<std::unique_ptr<KernelFile>>> kernel_files(const std::vector<std::string>& folders,
                                                              const std::string& only, int threads);
/// All mutants of order.
std::vector<Mutant> file_mutants(const std::vector<std::unique_ptr<KernelFile>>& files, const std::string& rule);
/// Decides the fate by `roofgen check`. `schedules`: runs of each mutant, the first in the usual order. Thread-safe.
void decide_by_check(Mutant& mutant, int schedules);
/// `roofgen check` finds nothing in the kernel of the mutant's file with these edits instead of the mutant's.
bool is_clean(const Mutant& mutant, const Edits& edits);

}  // namespace roofgen::mutants

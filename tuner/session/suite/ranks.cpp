#include "tuner/session/suite/ranks.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "base/paths.h"

namespace roofgen {
namespace {

/// The number of processes that a launcher has started, from the variables of Open MPI, of MPICH and its relatives, and
/// of Slurm's srun.
int launched() {
  int most = 1;
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    most = std::max(most, std::atoi(environment(name).c_str()));
  return most;
}

}  // namespace

Result<std::unique_ptr<Ranks>> join_ranks() {
  const int count = launched();
  if (count <= 1) return std::unique_ptr<Ranks>();
  std::error_code unknown;
  const std::filesystem::path program = own_file();
  std::string why;
  for (const char* place : {".", "../lib/roofgen"}) {
    const std::filesystem::path path = program.parent_path() / place / "libroofgen_mpi.so";
    if (!std::filesystem::exists(path, unknown)) continue;
    // Never closed: MPI leaves threads behind. RTLD_GLOBAL: Open MPI opens plug-ins that need its symbols.
    if (void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
      using Make = Ranks* (*)();
      if (const auto make = reinterpret_cast<Make>(dlsym(library, "roofgen_make_ranks")))
        return std::unique_ptr<Ranks>(make());
    }
    if (const char* error = dlerror()) why = fmt::format(" ({})", error);
  }
  return Error{
      Exit::kUnavailable,
      fmt::format("a launcher started {} processes, and this build has no MPI{}; install the development files "
                  "of an MPI and build again, or use --shard",
                  count, why)};
}

}  // namespace roofgen

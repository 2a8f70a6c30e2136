// Which measurements are laid over a device: the profile of the GPU that is there, one that was asked for, or none.
#pragma once

#include "cli/cli.h"
#include "runtime/executor.h"

namespace roofgen::cli {

/// `--profile FILE` and `--no-profile`.
struct ProfileFlags {
  std::string file;
  bool none = false;
  void declare(FlagSet app);
};

/// The device of a GPU, its own profile laid over it, or the file that was asked for.
Result<Device> gpu_device(const DataFiles& files, const GpuExecutor& gpu, const ProfileFlags& profile = {},
                          const Say& say = warn);
/// A device of the catalogue, or "gpu", with the profile.
Result<Device> find_device(const DataFiles& files, const std::string& name, const ProfileFlags& profile,
                           const Say& say = warn);

// ---- roofgen roofline --measure --------------------------------------------------------------------

struct MeasureFlags {
  bool measure = false, json = false;
  int gpu = 0;
  std::string protocol = "steady", output;
  std::vector<std::string> only;
  void declare(FlagSet app);
};

/// Measures the ceilings of a GPU, prints them and keeps its profile. No GPU: Exit::kUnavailable, nothing written.
Result<Exit> measure_roofline(const Session& session, const MeasureFlags& flags);

}  // namespace roofgen::cli

// Which measurements are laid over a device: the profile of the GPU that is there, one that was asked for, or none.
#pragma once

#include "tuner/session/flags.h"
#include "tuner/session/session.h"

namespace roofgen {

class DataFiles;
class GpuExecutor;
struct Device;

/// `--profile FILE` and `--no-profile`.
struct ProfileFlags {
  std::string file;
  bool none = false;
  void declare(FlagSet app);
};

/// The device of a GPU, its own profile laid over it, or the file that was asked for.
Result<Device> gpu_device(const DataFiles& files, const GpuExecutor& gpu, const ProfileFlags& profile, const Say& say);
/// A device of the catalogue, or "gpu", with the profile.
Result<Device> find_device(const DataFiles& files, const std::string& name, const ProfileFlags& profile,
                           const Say& say);

}  // namespace roofgen

#include "tuner/session/profile_flags.h"

#include <fmt/format.h>

#include "base/paths.h"
#include "roofline/device.h"
#include "tuner/ceilings/profile.h"

namespace roofgen {

void ProfileFlags::declare(FlagSet app) {
  const Flag asked =
      app.add("--profile", file,
              "overlay the ceilings and fitted scalars of this file [for a GPU: its profile from roofline --measure]")
          .group("Device");
  app.add_switch("--no-profile", none, "ignore measured ceilings: use the catalogue's values only")
      .group("Device")
      .excludes(asked);
}

Result<Device> gpu_device(const DataFiles& files, const GpuExecutor& gpu, const ProfileFlags& profile, const Say& say) {
  ROOFGEN_TRY(Device device, match_device(files, gpu.info().driver));
  // What a simulated driver reports is the catalogue again.
  if (gpu.origin() != Origin::kMeasured)
    for (auto& [name, cell] : device.cells)
      if (cell.origin == Origin::kMeasured && cell.source.find("driver") != std::string::npos)
        cell.origin = Origin::kSimulated;
  if (!profile.file.empty()) {
    ROOFGEN_CHECK(apply_profile_file(device, profile.file));
  } else if (!profile.none) {
    const GpuIdentity identity = gpu.identity();
    if (const auto line = apply_profile(device, identity, profile_path(data_home(), identity.uuid))) say(*line);
  }
  return device;
}

Result<Device> find_device(const DataFiles& files, const std::string& name, const ProfileFlags& profile,
                           const Say& say) {
  if (name == "gpu") {
    ROOFGEN_TRY(const auto gpu, make_cuda_executor());
    return gpu_device(files, *gpu, profile, say);
  }
  ROOFGEN_TRY(Device device, load_device(files, name));
  if (!profile.file.empty()) ROOFGEN_CHECK(apply_profile_file(device, profile.file));
  return device;
}

}  // namespace roofgen

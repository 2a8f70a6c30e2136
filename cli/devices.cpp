// roofgen devices [NAME]: the catalogue, and every cell of a device with its source.
#include <fmt/format.h>

#include "cli/cli.h"
#include "roofline/views/views.h"
#include "tuner/session/profile_flags.h"

namespace roofgen::cli {
namespace {

struct DevicesFlags {
  std::string name;
  bool json = false;
  ProfileFlags profile;
};

Result<Exit> run(const Terminal& terminal, const DevicesFlags& flags) {
  const DataFiles files(terminal.data_dirs);
  if (!flags.name.empty()) {
    ROOFGEN_TRY(const Device device, find_device(files, flags.name, flags.profile, warn));
    fmt::print("{}", flags.json ? device_json(device) : device_text(device));
    return Exit::kOk;
  }
  std::vector<Device> devices;
  Exit exit = Exit::kOk;
  for (const std::string& name : device_names(files)) {
    auto device = load_device(files, name);
    if (device)
      devices.push_back(std::move(*device));
    else {
      // One broken file hides no other device.
      fmt::print(stderr, "roofgen: {}\n", to_string(device.error()));
      exit = Exit::kFailed;
    }
  }
  fmt::print("{}", flags.json ? devices_json(devices) : devices_text(devices));
  return exit;
}

}  // namespace

Run declare_devices(FlagSet app) {
  auto flags = std::make_shared<DevicesFlags>();
  app.add("name", flags->name, "a device, or gpu: the one in this machine; without a name, all of the catalogue");
  app.add_switch("--json", flags->json, "as JSON");
  flags->profile.declare(app);
  app.footer("Example: roofgen devices h100-sxm");
  return [flags](const Terminal& terminal) { return run(terminal, *flags); };
}

}  // namespace roofgen::cli

// Models and devices for the tests of roofgen model.
#pragma once

#include <gtest/gtest.h>

#include "roofline/analyses/model.h"

namespace roofgen {

inline Model model_named(const std::string& name) {
  auto model = load_model(DataFiles(), name);
  EXPECT_TRUE(model) << to_string(model.error());
  return model ? *model : Model{};
}

inline Device device_named(const std::string& name) {
  auto device = load_device(DataFiles(), name);
  EXPECT_TRUE(device) << to_string(device.error());
  return device ? *device : Device{};
}

inline ModelRun run_of(const Model& model, const Device& device, const ModelRequest& request) {
  auto run = run_model(model, device, request);
  EXPECT_TRUE(run) << to_string(run.error());
  return run ? *run : ModelRun{};
}

inline const OperatorRun& operator_named(const ModelRun& run, const std::string& name) {
  for (const OperatorRun& o : run.operators)
    if (o.name == name) return o;
  ADD_FAILURE() << "no operator " << name;
  return run.operators.front();
}

}  // namespace roofgen

// A tuning result as a page of figures, from its JSON, for `tune --html` and `report`.
#pragma once

#include "base/json.h"
#include "generator/generate.h"
#include "roofgen/result.h"
#include "roofline/device.h"
#include "roofline/plot/figure.h"

namespace roofgen {

/// `result` is a document of schema roofgen.tune.1; `file` is its name in messages. Exit::kUsage when it is not one, or
/// when its device is not in the catalogue (its roofs are needed).
Result<plot::Page> tune_page(const Json& result, const std::string& file, const DataFiles& files);

/// The device of a result, from its member "device": of the catalogue, or from the cells in a measured result.
Result<Device> result_device(const Json& device, const DataFiles& files);

}  // namespace roofgen

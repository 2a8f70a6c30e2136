// Text and JSON views of the same values; views compute nothing twice.
#pragma once

#include <string>

#include "roofline/analyses/explain.h"
#include "roofline/analyses/model.h"
#include "roofline/plot/figure.h"

namespace roofgen {

inline constexpr const char* kExplainSchema = "roofgen.explain.1";
inline constexpr const char* kModelSchema = "roofgen.model-run.1";
inline constexpr const char* kDevicesSchema = "roofgen.devices.1";

/// `crossing`: the smallest value of the growing dimension that reaches the ridge, if any.
struct ExplainView {
  const Explanation& explanation;
  std::optional<int64_t> crossing;
};
std::string explain_text(const ExplainView& view);
std::string explain_json(const ExplainView& view);

/// The catalogue, one line per device.
std::string devices_text(const std::vector<Device>& devices);
std::string devices_json(const std::vector<Device>& devices);
/// One device: its ceilings, and every cell with unit, origin and source.
std::string device_text(const Device& device);
std::string device_json(const Device& device);

/// One step of a model, or a sweep of every batch at every length.
struct ModelView {
  const Model& model;
  const Device& device;
  std::vector<int64_t> batches, lengths;
  std::vector<ModelRun> runs;  ///< [length][batch]
  double parameters = 0;
  const ModelRun& at(size_t length, size_t batch) const { return runs[length * batches.size() + batch]; }
};
std::string model_text(const ModelView& view);
std::string model_json(const ModelView& view);
/// Operators on the device's roofs and their times (for the last point of a sweep), intensity and throughput against
/// the batch, and the grid of intensities when both batch and length were swept.
plot::Page model_page(const ModelView& view);
/// The available models, one line each.
std::string models_text(const std::vector<Model>& models);

}  // namespace roofgen

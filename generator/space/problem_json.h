// A problem as a JSON object: dims, flags and numbers by name; formats and expressions if present. The parameters of a
// schedule as one.
#pragma once

#include "generator/space/json_reader.h"
#include "roofgen/pipeline.h"

namespace roofgen {

inline constexpr int64_t kMostSize = int64_t{1} << 40;  ///< of a problem, and of what follows from it, that is read

Json problem_json(const Problem& problem);
Json params_json(const std::vector<std::pair<std::string, ParamValue>>& params);
/// The value of a parameter; nothing where `json` is no integer, boolean or string.
std::optional<ParamValue> param_value(const Json& json);

/// Base class of the readers of documents with problems and schedules.
class ProblemReader : public JsonReader {
 public:
  using JsonReader::JsonReader;

 protected:
  /// The inverse of problem_json(): a size is an integer, any other number has a point.
  Result<Problem> problem(const Json& object) const;
  /// The inverse of params_json(), of the member "params".
  Result<std::vector<std::pair<std::string, ParamValue>>> params(const Json& object) const;
};

}  // namespace roofgen

// What many JSON documents hold, in the same form in each.
#pragma once

#include <stdexcept>

#include "base/json.h"
#include "roofline/device.h"

namespace roofgen {

inline void to_json(Json& json, Origin origin) { json = to_string(origin); }
inline void from_json(const Json& json, Origin& origin) {
  for (Origin known :
       {Origin::kDatasheet, Origin::kCompiled, Origin::kModel, Origin::kSimulated, Origin::kMeasured, Origin::kCounter})
    if (json.get_ref<const std::string&>() == to_string(known)) {
      origin = known;
      return;
    }
  throw std::invalid_argument("unknown origin \"" + json.get<std::string>() + "\"");
}

/// 0: unknown.
inline Json known(double value) { return value > 0 ? Json(value) : Json(); }

ROOFGEN_TO_JSON(Cell, value, unit, origin, source)

}  // namespace roofgen

// Parts of results in the form in which the store keeps them: every member, so that they are read back as they were.
#pragma once

#include <limits>

#include "base/json.h"
#include "roofgen/pipeline.h"

namespace roofgen {

inline void to_json(Json& j, const Counts& c) {
#define ROOFGEN_COUNT(field) j[#field] = c.field;
#include "roofgen/counts.def"
#undef ROOFGEN_COUNT
}
inline void from_json(const Json& j, Counts& c) {
#define ROOFGEN_COUNT(field) j.at(#field).get_to(c.field);
#include "roofgen/counts.def"
#undef ROOFGEN_COUNT
}

inline void to_json(Json& j, const Finding& f) {
  j = {{"ptx_line", f.ptx.line}, {"source", f.source.file}, {"line", f.source.line}};
  ROOFGEN_PUT(j, f, kind, message, kernel, cta, thread)
}
inline void from_json(const Json& j, Finding& f) {
  j.at("ptx_line").get_to(f.ptx.line);
  f.source = {j.at("source").get<std::string>(), j.at("line").get<int>(), 0};
  ROOFGEN_GET(j, f, kind, message, kernel, cta, thread)
}

inline void to_json(Json& j, const Verification& v) {
  ROOFGEN_PUT(j, v, passed, ctas_run, ctas_total, rows_checked, error_over_tolerance, findings, failure,
              launch_ctas_run, launch_ctas_total, launch_in_tiles, inputs, grid_ctas, grid, division, not_run)
}
inline void from_json(const Json& j, Verification& v) {
  ROOFGEN_GET(j, v, passed, ctas_run, ctas_total, rows_checked, findings, failure, launch_ctas_run, launch_ctas_total,
              launch_in_tiles, inputs, grid_ctas, grid, division, not_run)
  // JSON has no infinity: null stands for it.
  const Json& error = j.at("error_over_tolerance");
  v.error_over_tolerance = error.is_null() ? std::numeric_limits<double>::infinity() : error.get<double>();
}

}  // namespace roofgen

#include "base/json.h"
#include "tuner/verify/verify.h"

namespace roofgen {
namespace {

/// Calls f(name, field) for every field of Counts.
template <class F>
void for_each_count(Counts& c, F f) {
#define ROOFGEN_COUNT(field) f(#field, c.field);
#include "roofgen/counts.def"
#undef ROOFGEN_COUNT
}

}  // namespace

inline void to_json(Json& j, const Counts& counts) {
  Counts c = counts;
  for_each_count(c, [&](const char* name, uint64_t& v) { j[name] = v; });
}
inline void from_json(const Json& j, Counts& c) {
  for_each_count(c, [&](const char* name, uint64_t& v) { j.at(name).get_to(v); });
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
              launch_ctas_run, launch_ctas_total, launch_in_tiles, inputs, grid_ctas, grid, not_run)
}
inline void from_json(const Json& j, Verification& v) {
  ROOFGEN_GET(j, v, passed, ctas_run, ctas_total, rows_checked, findings, failure, launch_ctas_run, launch_ctas_total,
              launch_in_tiles, inputs, grid_ctas, grid, not_run)
  // JSON has no infinity: null stands for it.
  const Json& error = j.at("error_over_tolerance");
  v.error_over_tolerance = error.is_null() ? std::numeric_limits<double>::infinity() : error.get<double>();
}

// An array for each line: there are hundreds.
inline void to_json(Json& j, const LineRuns& l) { j = Json::array({l.file, l.line, l.least, l.most}); }
inline void from_json(const Json& j, LineRuns& l) {
  j.at(0).get_to(l.file), j.at(1).get_to(l.line), j.at(2).get_to(l.least), j.at(3).get_to(l.most);
}

ROOFGEN_TO_JSON(Evaluation, lines, counts, measured_ns, counted_ctas, scale, exact, unique_bytes, temporary_bytes,
                tensor_bytes, l2_miss_ratio, verification)
ROOFGEN_FROM_JSON(Evaluation, lines, counts, measured_ns, counted_ctas, scale, exact, unique_bytes, temporary_bytes,
                  tensor_bytes, l2_miss_ratio, verification)

const char* const kEvaluationVersion = ROOFGEN_EVALUATION_VERSION;

std::string to_payload(const Evaluation& e) { return json_line(e); }

std::optional<Evaluation> from_payload(const std::string& text) {
  try {
    return parse_json(text).get<Evaluation>();
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::optional<Evaluation> recall(Evaluations* store, const StoreKey& key) {
  const auto payload = store ? store->lookup(key) : std::nullopt;
  return payload ? from_payload(*payload) : std::nullopt;
}

std::unique_ptr<EvaluationClaim> claim(Evaluations* store, const StoreKey& key) {
  return store ? store->claim(key) : std::make_unique<EvaluationClaim>();
}

void remember(Evaluations* store, const StoreKey& key, const Evaluation& evaluation) {
  if (store) store->put(key, to_payload(evaluation));
}

}  // namespace roofgen

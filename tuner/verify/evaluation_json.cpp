#include "tuner/verify/result_json.h"
#include "tuner/verify/verify.h"

namespace roofgen {

// An array for each line: there are hundreds.
inline void to_json(Json& j, const LineRuns& l) { j = Json::array({l.file, l.line, l.least, l.most}); }
inline void from_json(const Json& j, LineRuns& l) {
  j.at(0).get_to(l.file), j.at(1).get_to(l.line), j.at(2).get_to(l.least), j.at(3).get_to(l.most);
}

ROOFGEN_TO_JSON(Evaluation, lines, counts, measured_ns, counted_ctas, scale, exact, unique_bytes, temporary_bytes,
                tensor_bytes, l2_miss_ratio, verification)
ROOFGEN_FROM_JSON(Evaluation, lines, counts, measured_ns, counted_ctas, scale, exact, unique_bytes, temporary_bytes,
                  tensor_bytes, l2_miss_ratio, verification)

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

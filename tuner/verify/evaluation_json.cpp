#include "tuner/verify/evaluation_json.h"

#include "base/json.h"

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

const char* const kEvaluationVersion = ROOFGEN_EVALUATION_VERSION;

std::string to_payload(const Evaluation& e) {
  Json counts = Json::object();
  Counts c = e.counts;
  for_each_count(c, [&](const char* name, uint64_t& v) { counts[name] = v; });
  const Verification& v = e.verification;
  Json findings = Json::array();
  for (const Finding& f : v.findings)
    findings.push_back({{"kind", f.kind},
                        {"message", f.message},
                        {"kernel", f.kernel},
                        {"ptx_line", f.ptx.line},
                        {"source", f.source.file},
                        {"line", f.source.line},
                        {"cta", f.cta},
                        {"thread", f.thread}});
  return json_line({{"counts", counts},
                    {"measured_ns", e.measured_ns ? Json(*e.measured_ns) : Json(nullptr)},
                    {"counted_ctas", e.counted_ctas},
                    {"scale", e.scale},
                    {"exact", e.exact},
                    {"unique_bytes", e.unique_bytes},
                    {"temporary_bytes", e.temporary_bytes},
                    {"tensor_bytes", e.tensor_bytes},
                    {"l2_miss_ratio", e.l2_miss_ratio},
                    {"verification",
                     {{"passed", v.passed},
                      {"ctas_run", v.ctas_run},
                      {"ctas_total", v.ctas_total},
                      {"rows_checked", v.rows_checked},
                      {"error_over_tolerance", v.error_over_tolerance},
                      {"findings", findings},
                      {"failure", v.failure}}}});
}

std::optional<Evaluation> from_payload(const std::string& text) {
  try {
    const Json j = parse_json(text);
    Evaluation e;
    for_each_count(e.counts, [&](const char* name, uint64_t& v) { v = j.at("counts").at(name).get<uint64_t>(); });
    e.counted_ctas = j.at("counted_ctas").get<uint64_t>();
    e.scale = j.at("scale").get<double>();
    e.exact = j.at("exact").get<bool>();
    e.unique_bytes = j.at("unique_bytes").get<double>();
    e.temporary_bytes = j.at("temporary_bytes").get<double>();
    e.tensor_bytes = j.at("tensor_bytes").get<double>();
    if (!j.at("measured_ns").is_null()) e.measured_ns = j.at("measured_ns").get<double>();
    e.l2_miss_ratio = j.at("l2_miss_ratio").get<double>();
    const Json& v = j.at("verification");
    e.verification.passed = v.at("passed").get<bool>();
    e.verification.ctas_run = v.at("ctas_run").get<uint64_t>();
    e.verification.ctas_total = v.at("ctas_total").get<uint64_t>();
    e.verification.rows_checked = v.at("rows_checked").get<uint64_t>();
    // JSON has no infinity: null stands for it.
    const Json& error = v.at("error_over_tolerance");
    e.verification.error_over_tolerance =
        error.is_null() ? std::numeric_limits<double>::infinity() : error.get<double>();
    e.verification.failure = v.at("failure").get<std::string>();
    for (const Json& f : v.at("findings")) {
      Finding finding;
      finding.kind = f.at("kind").get<std::string>();
      finding.message = f.at("message").get<std::string>();
      finding.kernel = f.at("kernel").get<std::string>();
      finding.ptx.line = f.at("ptx_line").get<int>();
      finding.source = {f.at("source").get<std::string>(), f.at("line").get<int>(), 0};
      finding.cta = f.at("cta").get<uint64_t>();
      finding.thread = f.at("thread").get<uint32_t>();
      e.verification.findings.push_back(std::move(finding));
    }
    return e;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::optional<Evaluation> recall(Store* store, const StoreKey& key) {
  const auto payload = store ? store->lookup(key) : std::nullopt;
  return payload ? from_payload(*payload) : std::nullopt;
}

void remember(Store* store, const StoreKey& key, const Evaluation& evaluation) {
  if (store) store->put(key, to_payload(evaluation));
}

}  // namespace roofgen

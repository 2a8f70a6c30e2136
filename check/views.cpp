#include "check/views.h"

#include <fmt/format.h>

#include "base/json.h"
#include "runtime/sim/count_names.h"

namespace roofgen::check {

std::string place(const Where& at) { return at.line > 0 ? fmt::format("{}:{}", at.file, at.line) : at.file; }

std::string plural(uint64_t n, const std::string& what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

std::string finding_text(const Finding& f, const std::string& before, const std::string& after) {
  std::string out = fmt::format("{}: {}: {}\n", f.source.line > 0 ? place(f.source) : place(f.ptx), f.kind, f.message);
  out += fmt::format("  {}CTA {}, thread {}", before, f.cta, f.thread);
  if (f.source.line > 0) out += fmt::format(", {}", place(f.ptx));
  return out + after + "\n";
}

Json where_json(const Where& at) {
  if (at.line <= 0) return nullptr;
  Json j{{"file", at.file}, {"line", at.line}};
  if (at.col > 0) j["column"] = at.col;
  return j;
}

Json finding_json(const Finding& f) {
  return {{"kind", f.kind},           {"message", f.message}, {"source", where_json(f.source)},
          {"ptx", where_json(f.ptx)}, {"cta", f.cta},         {"thread", f.thread}};
}

Json counts_json(const Counts& counts) {
  Json j;
  for (const sim::CountName& c : sim::kCountNames) j[c.name] = counts.*c.member;
  return j;
}

}  // namespace roofgen::check

// The report as JSON and as SARIF.
#include "base/json.h"

#include <fmt/format.h>

#include <map>

#include "check/check.h"
#include "check/in_double.h"
#include "check/views.h"
#include "runtime/sim/count_names.h"

namespace roofgen::check {
namespace {

Json dims_json(const Dim3& d) { return {d.x, d.y, d.z}; }

/// docs/use/findings.md in one sentence per kind.
const std::map<std::string, const char*>& kinds() {
  static const std::map<std::string, const char*> table{
      {"out-of-bounds",
       "An access outside every buffer, the CTA's shared memory, the thread's local memory or the parameters."},
      {"out-of-array", "An access through the address of one shared variable to memory outside of it."},
      {"misaligned", "An address that is not a multiple of the access size."},
      {"uninitialised", "Memory or a register is read before anything wrote it."},
      {"async-pending", "Shared memory is used while an asynchronous copy into it has not been waited for."},
      {"unfenced",
       "Accesses that only a volatile or relaxed read orders, with no fence after it: more than the memory model "
       "promises."},
      {"barrier-order",
       "Which arrivals complete a barrier, or which phase a wait sees, depends on the order of warps."},
      {"race", "Two warps or CTAs touch the same byte, at least one writes, and nothing orders them."},
      {"write-to-input", "A store to a read-only buffer."},
      {"divergent-barrier", "A barrier is reached by a part of a warp."},
      {"partial-warp", "A warp-wide instruction is reached without all lanes that it names."},
      {"bad-member-mask", "The lanes of a .sync instruction do not agree with their member mask."},
      {"bad-barrier", "A barrier is used with a wrong number or with two thread counts."},
      {"bad-branch", "An index past the targets of an indexed branch, or a call through a pointer to no function."},
      {"bad-texture",
       "A texture or surface instruction on an address that is not such an object, or has another shape."},
      {"bad-tensor-map", "A tensor copy by bytes that are not a tensor map, or have another number of dimensions."},
      {"bad-descriptor",
       "A descriptor of wgmma or tcgen05 that no instruction may use, or different ones in a warpgroup."},
      {"bad-tensor-memory",
       "An allocation of tensor memory that is wrong, or an access to lanes or columns that the thread may not use."},
      {"bad-launch-response",
       "A response of clusterlaunchcontrol that is none, or that canceled nothing, used as one that did."},
      {"bad-registers", "setmaxnreg to fewer registers than a warpgroup has where it asks for more, or the reverse."},
      {"bad-copy-size", "An asynchronous copy whose source is larger than the copy."},
      {"deadlock", "Every live warp waits at a barrier that cannot complete, or polls memory that none changes."},
      {"instruction-limit", "A CTA executed more warp-instructions than allowed."},
      {"not-modelled", "A CTA came to an instruction that the simulator does not model, and ended there."},
      {"not-decided", "The run stands for one order of warps and CTAs: a value that other threads may change decides."},
      {"not-run", "No thread ran this code with these arguments."},
      {"trap", "The kernel executed a trap."},
      {"assert", "An assertion of the kernel failed."},
      {"out-of-memory", "The simulator could not hold the memory that the launch touched."},
      {"schedule-dependent", "The contents of a buffer depend on the order of CTAs and warps."},
      {"wrong-output", "The contents of a buffer differ from the expected ones."}};
  return table;
}

Json sarif_result(const std::string& rule, const char* level, std::string message, const Where& at, Json properties) {
  Json j{{"ruleId", rule}, {"level", level}, {"message", {{"text", std::move(message)}}}};
  Json location{{"artifactLocation", {{"uri", at.file}}}};
  if (at.line > 0) {
    location["region"] = {{"startLine", at.line}};
    if (at.col > 0) location["region"]["startColumn"] = at.col;
  }
  j["locations"] = Json::array({{{"physicalLocation", location}}});
  if (!properties.empty()) j["properties"] = std::move(properties);
  return j;
}

}  // namespace

std::string check_json(const Report& r) {
  Json j{{"schema", "roofgen.check.1"},
         {"file", r.file},
         {"kernel", r.kernel},
         {"verdict", to_string(r.verdict())},
         {"clean", r.verdict() == Verdict::kClean},
         {"grid", dims_json(r.grid)},
         {"block", dims_json(r.block)},
         {"dynamic_smem_bytes", r.smem_bytes}};
  if (!r.compiler.empty()) ROOFGEN_PUT(j["compiled"], r, compiler, arch, registers, spill_bytes, static_smem_bytes)
  j["ctas_total"] = r.ctas;
  j["stopped_early"] = r.stopped_early;
  j["all_orders"] = r.deciding.empty();
  j["deciding"] = Json::array();
  for (const Where& at : r.deciding) j["deciding"].push_back(where_json(at));
  j["not_run"] = Json::array();
  for (const NotRun& lines : r.not_run) ROOFGEN_PUT(j["not_run"].emplace_back(), lines, file, first, last)
  j["left_out"] = Json::array();
  for (const LeftOut& l : r.left_out)
    j["left_out"].push_back(
        {{"what", l.what}, {"where", where_json(l.where)}, {"why", l.why.empty() ? "marked __host__" : l.why}});
  j["notes"] = r.notes;
  j["findings"] = Json::array();
  for (const Finding& f : r.findings) {
    Json& finding = j["findings"].emplace_back(finding_json(f));
    finding["count"] = f.count;
    finding["in_other_ctas"] = f.ctas - 1;
    if (r.schedules > 1) finding["in_schedules"] = r.in_schedules[j["findings"].size() - 1];
  }
  if (r.schedules > 1) {
    j["schedules"] = r.schedules;
    j["differences"] = Json::array();
    for (const Difference& d : r.differences)
      ROOFGEN_PUT(j["differences"].emplace_back(), d, name, schedules, elements, first, largest, relative, is_rounding)
  }
  j["outputs"] = Json::array();
  for (const BufferReport& b : r.buffers) {
    Json& o = j["outputs"].emplace_back();
    ROOFGEN_PUT(o, b, name, elements, unwritten, compared)
    if (b.compared) o["mismatches"] = b.mismatches;
    if (b.ignored) o["ignored"] = b.ignored;
    if (!b.mismatches) continue;
    ROOFGEN_PUT(o, b, first, largest_error, largest_relative_error)
    o["likely_consequence"] = !r.findings.empty();
  }
  if (r.in_double) j["fp64"] = in_double_json(*r.in_double);
  j["printed"] = r.printed;
  j["printed_cut"] = r.printed.size() >= kMaxPrintedBytes;
  j["counts"] = counts_json(r.counts);
  j["lines"] = Json::array();
  for (const LineCounts& l : r.lines)
    j["lines"].push_back({{"file", l.source.file},
                          {"line", l.source.line},
                          {"executed", l.sum.executed},
                          {"sectors", l.sum.sectors},
                          {"sectors_needed", l.sum.ideal_sectors},
                          {"wavefronts", l.sum.wavefronts},
                          {"wavefronts_without_conflicts", l.sum.ideal_wavefronts}});
  return json_document(j);
}

std::string check_sarif(const Report& r) {
  Json rules = Json::array(), results = Json::array();
  for (const auto& [kind, sentence] : kinds())
    rules.push_back({{"id", kind}, {"shortDescription", {{"text", sentence}}}});
  for (const Finding& f : r.findings) {
    Json properties{
        {"kernel", r.kernel}, {"cta", f.cta}, {"thread", f.thread}, {"count", f.count}, {"inOtherCtas", f.ctas - 1}};
    if (f.ptx.line > 0) properties["ptxLine"] = f.ptx.line;
    results.push_back(sarif_result(
        f.kind, is_limit(f) ? "none" : "error", fmt::format("{} (CTA {}, thread {})", f.message, f.cta, f.thread),
        f.source.line > 0 ? f.source : Where{r.file, r.compiler.empty() ? f.ptx.line : 0, 0}, std::move(properties)));
    if (is_limit(f)) results.back()["kind"] = "open";
  }
  // SARIF's kind "open": a rule could not be decided at this place.
  const auto open = [&](const char* rule, std::string message, const Where& at) {
    results.push_back(sarif_result(rule, "none", std::move(message), at, {{"kernel", r.kernel}}));
    results.back()["kind"] = "open";
  };
  for (const Where& at : r.deciding)
    open("not-decided", "a value that other threads may change decides here; other orders of threads were not run", at);
  for (const NotRun& lines : r.not_run)
    open("not-run", fmt::format("no thread ran {} with these arguments", range_text(lines)),
         {lines.file, lines.first, 0});
  for (const BufferReport& b : r.buffers)
    if (b.mismatches)
      results.push_back(sarif_result("wrong-output", r.findings.empty() ? "error" : "warning", mismatch_text(r, b),
                                     {r.file, 0, 0}, {{"kernel", r.kernel}}));
  for (const Difference& d : r.differences)
    results.push_back(sarif_result("schedule-dependent", d.is_rounding ? "note" : "error", difference_text(r, d),
                                   {r.file, 0, 0}, {{"kernel", r.kernel}}));
  const Json run{{"tool", {{"driver", {{"name", "roofgen check"}, {"rules", std::move(rules)}}}}},
                 {"results", std::move(results)}};
  return json_document({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                        {"version", "2.1.0"},
                        {"runs", Json::array({run})}});
}

std::string place(const Where& at) { return at.line > 0 ? fmt::format("{}:{}", at.file, at.line) : at.file; }

std::string plural(uint64_t n, const std::string& what) { return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s"); }

std::string finding_text(const Finding& f, const std::string& before, const std::string& after) {
  if (f.ptx.file.empty()) return fmt::format("{}: {}\n", f.kind, f.message);  // of whole launches
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

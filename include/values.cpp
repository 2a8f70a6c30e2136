#include <sstream>

#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

std::string to_string(const Error& error) {
  std::ostringstream out;
  const Where& at = error.where;
  if (!at.file.empty()) {
    out << at.file << ':';
    if (at.line) out << at.line << ':';
    if (at.col) out << at.col << ':';
    out << ' ';
  }
  out << "error: " << error.message;
  for (const std::string& note : error.notes) out << '\n' << note;
  return out.str();
}

const char* to_string(Origin origin) {
  switch (origin) {
    case Origin::kDatasheet: return "datasheet";
    case Origin::kCompiled: return "compiled";
    case Origin::kModel: return "model";
    case Origin::kSimulated: return "simulated";
    case Origin::kMeasured: return "measured";
    case Origin::kCounter: return "counter";
  }
  return "?";
}

const char* to_string(DType dtype) {
  switch (dtype) {
    case DType::kBf16: return "bf16";
    case DType::kFp16: return "fp16";
    case DType::kFp32: return "fp32";
  }
  return "?";
}

int size_of(DType dtype) { return dtype == DType::kFp32 ? 4 : 2; }

std::string to_string(const ParamValue& value) {
  if (auto i = std::get_if<int64_t>(&value)) return std::to_string(*i);
  if (auto b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  return std::get<std::string>(value);
}

std::string to_string(const Schedule& schedule) {
  std::string out = schedule.variant;
  if (!schedule.stage.empty() && schedule.stage != schedule.variant) out += "." + schedule.stage;
  for (const auto& [name, value] : schedule.params) out += " " + name + "=" + to_string(value);
  return out;
}

Counts& Counts::operator+=(const Counts& o) {
#define ROOFGEN_ADD(f) f += o.f
  ROOFGEN_ADD(ctas); ROOFGEN_ADD(warp_instructions); ROOFGEN_ADD(mma); ROOFGEN_ADD(mma_flops);
  ROOFGEN_ADD(int_alu); ROOFGEN_ADD(fp32); ROOFGEN_ADD(half); ROOFGEN_ADD(fp64); ROOFGEN_ADD(convert);
  ROOFGEN_ADD(move); ROOFGEN_ADD(control); ROOFGEN_ADD(predicate); ROOFGEN_ADD(mufu); ROOFGEN_ADD(exps);
  ROOFGEN_ADD(shuffle); ROOFGEN_ADD(ldmatrix); ROOFGEN_ADD(cp_async); ROOFGEN_ADD(barriers); ROOFGEN_ADD(async_waits); ROOFGEN_ADD(async_distance);
  ROOFGEN_ADD(global_load); ROOFGEN_ADD(global_store); ROOFGEN_ADD(shared_load); ROOFGEN_ADD(shared_store);
  ROOFGEN_ADD(local); ROOFGEN_ADD(atomics); ROOFGEN_ADD(bulk_load_16); ROOFGEN_ADD(narrow_load);
  ROOFGEN_ADD(l2_read_sectors); ROOFGEN_ADD(l2_write_sectors); ROOFGEN_ADD(smem_wavefronts);
  ROOFGEN_ADD(smem_ideal_wavefronts); ROOFGEN_ADD(unique_read_sectors); ROOFGEN_ADD(unique_write_sectors);
#undef ROOFGEN_ADD
  return *this;
}

}  // namespace roofgen

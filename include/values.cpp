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

constexpr size_t kCountFields = 0
#define ROOFGEN_COUNT(field) +1
#include "roofgen/counts.def"
#undef ROOFGEN_COUNT
    ;
static_assert(sizeof(Counts) == kCountFields * sizeof(uint64_t), "counts.def misses a field of Counts");

Counts& Counts::operator+=(const Counts& o) {
#define ROOFGEN_COUNT(field) field += o.field;
#include "roofgen/counts.def"
#undef ROOFGEN_COUNT
  return *this;
}

}  // namespace roofgen

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
    case DType::kTf32: return "tf32";
    case DType::kFp8: return "fp8";
    case DType::kInt8: return "int8";
    case DType::kInt32: return "int32";
  }
  return "?";
}

std::optional<DType> parse_dtype(const std::string& name) {
  for (DType dtype : {DType::kBf16, DType::kFp16, DType::kFp32, DType::kTf32, DType::kFp8, DType::kInt8, DType::kInt32})
    if (name == to_string(dtype)) return dtype;
  return std::nullopt;
}

int size_of(DType dtype) {
  switch (dtype) {
    case DType::kFp8:
    case DType::kInt8: return 1;
    case DType::kBf16:
    case DType::kFp16: return 2;
    default: return 4;
  }
}

std::string to_string(const TensorArg& arg) {
  std::string out = arg.name + ":" + to_string(arg.dtype);
  for (size_t i = 0; i < arg.indices.size(); ++i) out += (i ? "," : "[") + arg.indices[i];
  return arg.indices.empty() ? out : out + "]";
}

std::string to_string(const Problem& p) {
  std::ostringstream out;
  out.precision(17);
  out << p.op << ' ' << to_string(p.dtype);
  for (const auto& [name, v] : p.dims) out << ' ' << name << '=' << v;
  for (const auto& [name, v] : p.flags) out << ' ' << name << '=' << v;
  for (const auto& [name, v] : p.reals) out << ' ' << name << '=' << v;
  for (const auto& [name, v] : p.dtypes) out << ' ' << name << '=' << to_string(v);
  for (const auto& [name, v] : p.texts) out << ' ' << name << "='" << v << '\'';
  for (const TensorArg& arg : p.args) out << ' ' << to_string(arg);
  return out.str();
}

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

void Verification::add_checks(const Verification& other) {
  rows_checked += other.rows_checked;
  error_over_tolerance = std::max(error_over_tolerance, other.error_over_tolerance);
}

std::string fault_in(const TensorMap& map, uint64_t address) {
  const auto text = [](auto... parts) {
    std::ostringstream out;
    (out << ... << parts);
    return out.str();
  };
  const size_t rank = map.dims.size();
  if (rank < 1 || rank > 5) return text(rank, " dimensions; 1 to 5 are possible");
  if (map.box.size() != rank || map.stride_bytes.size() != rank - 1)
    return text(rank, " dimensions with ", map.box.size(), " sides of a box and ", map.stride_bytes.size(), " strides");
  if (address == 0) return "the problem has no such buffer";
  if (address % 16 != 0) return text("address 0x", std::hex, address, " is not a multiple of 16");
  for (size_t i = 0; i < rank; ++i) {
    if (map.dims[i] == 0 || map.dims[i] > uint64_t{1} << 32) return text("dimension ", i, " is ", map.dims[i]);
    if (map.box[i] == 0 || map.box[i] > 256)
      return text("side ", i, " of the box is ", map.box[i], "; 1 to 256 are possible");
  }
  for (const uint64_t stride : map.stride_bytes)
    if (stride % 16 != 0 || stride >= uint64_t{1} << 40)
      return text("a stride of ", stride, " bytes is not a multiple of 16 below 2^40");
  const uint64_t inner = uint64_t{map.box[0]} * static_cast<uint64_t>(size_of(map.dtype));
  const int swizzle = map.swizzle_bytes, promotion = map.l2_promotion_bytes;
  if (inner % 16 != 0) return text("a box ", inner, " bytes wide is not a multiple of 16");
  if (swizzle != 0 && swizzle != 32 && swizzle != 64 && swizzle != 128)
    return text("there is no swizzle of ", swizzle, " bytes; 0, 32, 64 or 128 was expected");
  if (swizzle != 0 && inner > static_cast<uint64_t>(swizzle))
    return text("a box ", inner, " bytes wide does not fit a swizzle of ", swizzle);
  if (promotion != 0 && promotion != 64 && promotion != 128 && promotion != 256)
    return text("there is no L2 promotion of ", promotion, " bytes; 0, 64, 128 or 256 was expected");
  if (map.nan_fill && (map.dtype == DType::kFp8 || map.dtype == DType::kInt8 || map.dtype == DType::kInt32))
    return text("elements of ", to_string(map.dtype), " cannot be filled with NaN");
  return "";
}

}  // namespace roofgen

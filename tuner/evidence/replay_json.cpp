// Writing and parsing replay.json. The file is untrusted: every member is checked, sizes are bounded.
#include <fmt/format.h>

#include "base/json.h"
#include "tuner/evidence/replay.h"

namespace roofgen {
namespace {

constexpr size_t kMostKernels = 64, kMostBuffers = 256, kMostArgs = 256;
constexpr uint64_t kMostBytes = uint64_t{1} << 42;

template <class E>
struct Name {
  const char* text;
  E value;
};
constexpr Name<InputPattern> kPatterns[] = {
    {"normal", InputPattern::kNormal},   {"zero-query", InputPattern::kZeroQuery},
    {"one-hot", InputPattern::kOneHot},  {"integers", InputPattern::kIntegers},
    {"special", InputPattern::kSpecial}, {"extremes", InputPattern::kExtremes},
    {"growing", InputPattern::kGrowing}, {"extreme-rows", InputPattern::kExtremeRows}};
constexpr Name<Buffer::Role> kRoles[] = {{"input", Buffer::Role::kInput},
                                         {"temporary", Buffer::Role::kTemporary},
                                         {"output", Buffer::Role::kOutput},
                                         {"updated", Buffer::Role::kUpdated}};
constexpr Name<DType> kDTypes[] = {{"bf16", DType::kBf16},  {"fp16", DType::kFp16}, {"fp32", DType::kFp32},
                                   {"tf32", DType::kTf32},  {"fp8", DType::kFp8},   {"int8", DType::kInt8},
                                   {"int32", DType::kInt32}};

template <class E, size_t N>
const char* text_of(const Name<E> (&names)[N], E value) {
  for (const Name<E>& n : names)
    if (n.value == value) return n.text;
  return "";
}

/// An invalid member. parse_replay catches it and returns an Error.
struct Bad {
  std::string message;
};

const Json& member(const Json& object, const char* key) {
  if (!object.is_object()) throw Bad{fmt::format("an object with \"{}\" was expected", key)};
  const auto it = object.find(key);
  if (it == object.end()) throw Bad{fmt::format("\"{}\" is missing", key)};
  return *it;
}

std::string string_of(const Json& object, const char* key) {
  const Json& v = member(object, key);
  if (!v.is_string() || v.get_ref<const std::string&>().size() > 4096)
    throw Bad{fmt::format("\"{}\": a short text was expected", key)};
  return v.get<std::string>();
}

uint64_t integer_of(const Json& v, const char* key, uint64_t most) {
  if (!v.is_number_unsigned() || v.get<uint64_t>() > most)
    throw Bad{fmt::format("\"{}\": a whole number up to {} was expected", key, most)};
  return v.get<uint64_t>();
}
uint64_t integer(const Json& object, const char* key, uint64_t most) {
  return integer_of(member(object, key), key, most);
}

bool boolean(const Json& object, const char* key) {
  const Json& v = member(object, key);
  if (!v.is_boolean()) throw Bad{fmt::format("\"{}\": true or false was expected", key)};
  return v.get<bool>();
}

template <class E, size_t N>
E choice(const Json& object, const char* key, const Name<E> (&names)[N]) {
  const std::string text = string_of(object, key);
  for (const Name<E>& n : names)
    if (text == n.text) return n.value;
  throw Bad{fmt::format("\"{}\": \"{}\" is not known", key, text)};
}

const Json& array(const Json& object, const char* key, size_t most) {
  const Json& v = member(object, key);
  if (!v.is_array() || v.size() > most) throw Bad{fmt::format("\"{}\": a list of at most {} was expected", key, most)};
  return v;
}

template <class T>
std::vector<T> integers(const Json& object, const char* key, size_t count_most, uint64_t most) {
  std::vector<T> out;
  for (const Json& v : array(object, key, count_most)) out.push_back(static_cast<T>(integer_of(v, key, most)));
  return out;
}

Json dim3_json(const Dim3& d) { return Json::array({d.x, d.y, d.z}); }
Dim3 dim3_of(const Json& object, const char* key) {
  const auto v = integers<uint32_t>(object, key, 3, 0x7fffffff);
  if (v.size() != 3 || v[0] == 0 || v[1] == 0 || v[2] == 0)
    throw Bad{fmt::format("\"{}\": three numbers from 1 were expected", key)};
  return {v[0], v[1], v[2]};
}

Json map_json(const TensorMap& m) {
  return Json{{"dtype", to_string(m.dtype)},
              {"dims", m.dims},
              {"stride_bytes", m.stride_bytes},
              {"box", m.box},
              {"swizzle_bytes", m.swizzle_bytes},
              {"nan_fill", m.nan_fill},
              {"l2_promotion_bytes", m.l2_promotion_bytes}};
}

TensorMap map_of(const Json& j) {
  TensorMap m;
  m.dtype = choice(j, "dtype", kDTypes);
  m.dims = integers<uint64_t>(j, "dims", 5, kMostBytes);
  m.stride_bytes = integers<uint64_t>(j, "stride_bytes", 4, kMostBytes);
  m.box = integers<uint32_t>(j, "box", 5, 256);
  m.swizzle_bytes = static_cast<int>(integer(j, "swizzle_bytes", 128));
  m.nan_fill = boolean(j, "nan_fill");
  m.l2_promotion_bytes = static_cast<int>(integer(j, "l2_promotion_bytes", 256));
  if (m.dims.empty() || m.box.size() != m.dims.size() || m.stride_bytes.size() + 1 != m.dims.size())
    throw Bad{"\"map\": dims, box and stride_bytes do not fit together"};
  return m;
}

/// The bytes of a struct, two hexadecimal digits each.
std::string hex_of(const std::vector<std::byte>& data) {
  std::string out;
  for (const std::byte b : data) out += fmt::format("{:02x}", static_cast<int>(b));
  return out;
}

std::vector<std::byte> bytes_of(const Json& object, const char* key) {
  const std::string text = string_of(object, key);
  if (text.empty() || text.size() % 2 != 0 || text.find_first_not_of("0123456789abcdef") != std::string::npos)
    throw Bad{fmt::format("\"{}\": bytes as hexadecimal digits were expected", key)};
  std::vector<std::byte> out;
  for (size_t i = 0; i < text.size(); i += 2)
    out.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  return out;
}

Json launch_json(const Launch& l) {
  Json args = Json::array();
  for (const Arg& a : l.args) {
    Json arg{{"name", a.name}};
    if (a.is_buffer)
      arg["buffer"] = true;
    else if (!a.data.empty())
      arg["data"] = hex_of(a.data);
    else
      arg["bits"] = a.bits;
    arg["bytes"] = a.bytes;
    if (a.map) arg["map"] = map_json(*a.map);
    args.push_back(std::move(arg));
  }
  Json j{{"grid", dim3_json(l.grid)},  {"block", dim3_json(l.block)}, {"cluster", dim3_json(l.cluster)},
         {"smem_bytes", l.smem_bytes}, {"overlap", l.overlap},        {"args", std::move(args)}};
  return j;
}

Launch launch_of(const Json& j) {
  Launch l;
  l.grid = dim3_of(j, "grid");
  l.block = dim3_of(j, "block");
  l.cluster = dim3_of(j, "cluster");
  l.smem_bytes = static_cast<uint32_t>(integer(j, "smem_bytes", 1 << 24));
  l.overlap = boolean(j, "overlap");
  for (const Json& a : array(j, "args", kMostArgs)) {
    Arg arg;
    arg.name = string_of(a, "name");
    arg.is_buffer = a.contains("buffer") && boolean(a, "buffer");
    if (a.contains("data")) {
      arg.data = bytes_of(a, "data");
      arg.bytes = static_cast<uint32_t>(arg.data.size());
      l.args.push_back(std::move(arg));
      continue;
    }
    arg.bytes = static_cast<uint32_t>(integer(a, "bytes", 8));
    if (arg.bytes != 4 && arg.bytes != 8) throw Bad{"\"bytes\": 4 or 8 was expected"};
    if (arg.is_buffer && arg.bytes != 8) throw Bad{"\"bytes\": a buffer's argument has 8"};
    if (!arg.is_buffer) arg.bits = integer(a, "bits", UINT64_MAX);
    if (a.contains("map")) arg.map = std::make_shared<const TensorMap>(map_of(a["map"]));
    l.args.push_back(std::move(arg));
  }
  return l;
}

/// The name of a file in the folder of replay.json, without any path.
std::string file_of(const Json& object, const char* key) {
  const std::string name = string_of(object, key);
  if (name.empty() || name[0] == '.' || name.find_first_of("/\\") != std::string::npos ||
      name.find('\0') != std::string::npos)
    throw Bad{fmt::format("\"{}\": the name of a file in the same folder was expected", key)};
  return name;
}

Problem problem_of(const Json& j) {
  Problem p;
  p.op = string_of(j, "op");
  p.dtype = choice(j, "dtype", kDTypes);
  for (const auto& [name, v] : member(j, "dims").items()) {
    if (!v.is_number_integer()) throw Bad{fmt::format("\"{}\": a whole number was expected", name)};
    p.dims[name] = v.get<int64_t>();
  }
  for (const auto& [name, v] : member(j, "flags").items()) {
    if (!v.is_boolean()) throw Bad{fmt::format("\"{}\": true or false was expected", name)};
    p.flags[name] = v.get<bool>();
  }
  for (const auto& [name, v] : member(j, "reals").items()) {
    if (!v.is_number()) throw Bad{fmt::format("\"{}\": a number was expected", name)};
    p.reals[name] = v.get<double>();
  }
  if (j.contains("texts"))
    for (const auto& [name, v] : member(j, "texts").items()) {
      if (!v.is_string()) throw Bad{fmt::format("\"{}\": a text was expected", name)};
      p.texts[name] = v.get<std::string>();
    }
  if (j.contains("dtypes"))
    for (const auto& [name, v] : member(j, "dtypes").items())
      p.dtypes[name] = choice(j["dtypes"], name.c_str(), kDTypes);
  if (j.contains("args"))
    for (const Json& a : member(j, "args")) {
      TensorArg arg{string_of(a, "name"), choice(a, "dtype", kDTypes), {}};
      for (const Json& index : member(a, "indices")) {
        if (!index.is_string()) throw Bad{"\"indices\": names were expected"};
        arg.indices.push_back(index.get<std::string>());
      }
      p.args.push_back(std::move(arg));
    }
  return p;
}

}  // namespace

std::string replay_json(const Replay& replay) {
  const Problem& p = replay.problem;
  Json problem{{"op", p.op},
               {"dtype", to_string(p.dtype)},
               {"dims", Json::object()},
               {"flags", Json::object()},
               {"reals", Json::object()}};
  for (const auto& [name, v] : p.dims) problem["dims"][name] = v;
  for (const auto& [name, v] : p.flags) problem["flags"][name] = v;
  for (const auto& [name, v] : p.reals) problem["reals"][name] = v;
  for (const auto& [name, v] : p.texts) problem["texts"][name] = v;
  for (const auto& [name, v] : p.dtypes) problem["dtypes"][name] = to_string(v);
  for (const TensorArg& arg : p.args)
    problem["args"].push_back({{"name", arg.name}, {"dtype", to_string(arg.dtype)}, {"indices", arg.indices}});
  Json j{{"schema", kReplaySchema},
         {"problem", std::move(problem)},
         {"pattern", text_of(kPatterns, replay.pattern)},
         {"variant", replay.variant}};
  j["buffers"] = Json::array();
  for (const Buffer& b : replay.buffers) {
    Json buffer{{"name", b.name}, {"dtype", to_string(b.dtype)}, {"bytes", b.bytes}, {"role", text_of(kRoles, b.role)}};
    if (b.zeroed) buffer["zeroed"] = true;
    j["buffers"].push_back(std::move(buffer));
  }
  j["kernels"] = Json::array();
  for (size_t i = 0; i < replay.kernels.size(); ++i) {
    const ReplayKernel& k = replay.kernels[i];
    j["kernels"].push_back({{"stage", k.stage},
                            {"entry", k.binary.entry},
                            {"arch", k.binary.arch},
                            {"digest", k.binary.digest},
                            {"registers", k.binary.registers},
                            {"cubin", fmt::format("k{}.cubin", i)},
                            {"ptx", fmt::format("k{}.ptx", i)},
                            {"launch", launch_json(k.launch)}});
  }
  return json_document(j);
}

Result<Replay> parse_replay(const std::string& text, const std::string& name,
                            const std::function<Result<std::string>(const std::string& file)>& load) {
  const Json j = parse_json(text);
  const auto bad = [&](std::string message) { return Error{Exit::kUsage, std::move(message), {name, 0, 0}}; };
  if (j.is_discarded()) return bad("no JSON");
  try {
    if (string_of(j, "schema") != kReplaySchema)
      return bad(fmt::format("\"schema\": \"{}\" was expected", kReplaySchema));
    Replay out;
    out.problem = problem_of(member(j, "problem"));
    out.pattern = choice(j, "pattern", kPatterns);
    out.variant = string_of(j, "variant");
    for (const Json& b : array(j, "buffers", kMostBuffers))
      out.buffers.push_back({string_of(b, "name"), choice(b, "dtype", kDTypes), integer(b, "bytes", kMostBytes),
                             choice(b, "role", kRoles), b.contains("zeroed") && boolean(b, "zeroed")});
    for (const Json& k : array(j, "kernels", kMostKernels)) {
      ReplayKernel kernel;
      kernel.stage = string_of(k, "stage");
      kernel.binary.entry = string_of(k, "entry");
      kernel.binary.arch = string_of(k, "arch");
      kernel.binary.digest = string_of(k, "digest");
      kernel.binary.registers = static_cast<int>(integer(k, "registers", 1 << 16));
      ROOFGEN_TRY(kernel.binary.cubin, load(file_of(k, "cubin")));
      ROOFGEN_TRY(kernel.binary.ptx, load(file_of(k, "ptx")));
      kernel.launch = launch_of(member(k, "launch"));
      out.kernels.push_back(std::move(kernel));
    }
    if (out.kernels.empty()) return bad("\"kernels\": at least one was expected");
    return out;
  } catch (const Bad& e) {
    return bad(e.message);
  } catch (const Json::exception& e) {
    return bad(e.what());
  }
}

}  // namespace roofgen

#include "check/arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <set>
#include <utility>

#include "base/json.h"
#include "base/suggest.h"
#include "generator/ops/counter_random.h"
#include "generator/space/json_reader.h"

namespace roofgen::check {
namespace {

class Reader : JsonReader {
 public:
  Reader(const JsonFile& file, std::string directory) : JsonReader(file), directory_(std::move(directory)) {}

  Result<std::vector<Argument>> run() {
    const Json& all = file_.root();
    if (!all.is_array()) return usage(all, "a list of arguments was expected, in the order of the kernel's parameters");
    if (all.size() > kMaxArguments)
      return usage(all[kMaxArguments],
                   fmt::format("{} arguments are too many; at most {} were expected", all.size(), kMaxArguments));
    std::vector<Argument> out;
    earlier_ = &out;
    std::set<std::pair<bool, std::string>> names;  // of arguments and of variables
    uint64_t bytes = 0;
    for (const Json& item : all) {
      prefix_ = fmt::format("argument {}", out.size() + 1);
      auto argument = read(item);
      // JsonReader's errors are for roofgen's data files; this file is the user's.
      if (!argument) {
        Error e = std::move(argument).error();
        e.exit = Exit::kUsage;
        if (!e.message.starts_with("argument ")) e.message = prefix_ + ": " + e.message;
        e.notes = file_.excerpt(e.where);
        return e;
      }
      if (!names.insert({argument->symbol.empty(), argument->name}).second)
        return usage(item, fmt::format("{}: another one has the name \"{}\" already", prefix_, argument->name),
                     item.contains("name") ? "name" : "symbol");
      bytes += bytes_below(*argument);
      if (bytes > kMaxBytes)
        return usage(item, fmt::format("{}: the buffers have more than {} GiB together", prefix_, kMaxBytes >> 30),
                     "size");
      out.push_back(std::move(*argument));
    }
    const std::vector<Where> places = file_.places();
    for (size_t i = 0; i < out.size() && i < places.size(); ++i) out[i].where = places[i];
    return out;
  }

 private:
  static uint64_t bytes_below(const Argument& a) {
    uint64_t sum = a.bytes();
    for (const Argument& f : a.fields) sum += bytes_below(f);
    return sum;
  }

  /// A usage error at the member of `j`, or at `j` itself.
  Error usage(const Json& j, std::string message, const std::string& member = "") const {
    Error e = bad_at(j, std::move(message), member);
    e.exit = Exit::kUsage;
    e.notes = file_.excerpt(e.where);
    return e;
  }

  /// The same about the current argument.
  template <class... Args>
  Error wrong(const Json& j, const std::string& member, fmt::format_string<Args...> format, Args&&... args) const {
    return usage(j, prefix_ + ": " + fmt::format(format, std::forward<Args>(args)...), member);
  }

  /// Accepts 1e3 and 1000.0 as integers. Above 2^53 a double may have lost digits, and stays as it is.
  static Json whole(const Json& j) {
    constexpr double kExact = 0x1p53;
    if (!j.is_number_float()) return j;
    const double x = j.get<double>();
    if (std::fabs(x) > kExact || x != std::trunc(x)) return j;
    return x < 0 ? Json(static_cast<int64_t>(x)) : Json(static_cast<uint64_t>(x));
  }

  /// An integer from `least` to `most`; `what` describes it in the message.
  Result<uint64_t> count(const Json& j, const char* member, const char* what, uint64_t least, uint64_t most) const {
    const Json n = whole(j[member]);
    if (n.is_number_unsigned() && n.get<uint64_t>() >= least && n.get<uint64_t>() <= most) return n.get<uint64_t>();
    return wrong(j[member], "", "\"{}\" is {}; {} from {} to {} was expected", member, shown(j[member]), what, least,
                 most);
  }

  /// A value in a message.
  static std::string shown(const Json& j) {
    constexpr size_t kMost = 40;
    std::string text = json_line(j);
    if (text.size() > kMost) text = text.substr(0, kMost) + "...";
    return text;
  }

  Result<Argument> read(const Json& j, int depth = 0) {
    ROOFGEN_CHECK(only(
        j, {"name",   "type", "size",  "value",   "buffer", "offset",    "fields", "align",     "symbol",
            "fill",   "seed", "range", "file",    "values", "read_only", "expect", "tolerance", "relative_tolerance",
            "ignore", "dump", "map",   "texture", "surface"}));
    Argument a;
    ROOFGEN_TRY(a.symbol, string_or(j, "symbol", ""));
    ROOFGEN_TRY(a.name, string_or(j, "name", a.symbol.empty() ? prefix_ : a.symbol));
    ROOFGEN_TRY(a.type_name, string(j, "type"));
    if (!a.symbol.empty() && depth) return wrong(j, "symbol", "a variable is not a field of a struct");
    if (a.type_name == "null") {
      ROOFGEN_CHECK(takes(j, {}, "a null pointer"));
      a.null = true;
      return a;
    }
    if (a.type_name == "struct") return structure(j, std::move(a), depth);
    if (a.type_name == "bytes") return bytes(j, std::move(a));
    uint64_t lanes = 1;
    std::string base = a.type_name;
    if (const size_t x = base.size() - 2;
        base.size() > 3 && base[x] == 'x' && base[x + 1] >= '2' && base[x + 1] <= '4') {
      lanes = static_cast<uint64_t>(base[x + 1] - '0');
      base.resize(x);
    }
    const auto element = parse_element(base);
    if (!element) return wrong(j["type"], "", "unknown type \"{}\"{}", a.type_name, suggestion(a.type_name));
    a.type = *element;
    if (j.contains("buffer")) return shared(j, std::move(a), lanes);
    if (j.contains("value") == j.contains("size"))
      return wrong(j, j.contains("value") ? "value" : "",
                   "either \"size\" (a buffer) or \"value\" (a scalar) was expected");
    if (j.contains("offset")) return wrong(j, "offset", "\"offset\" goes with \"buffer\": \"NAME\"");
    if (j.contains("fields")) return wrong(j, "fields", "\"fields\" is for structs");
    if (j.contains("value")) {
      if (!a.symbol.empty())
        return wrong(j, "symbol",
                     "the contents of the variable were expected: \"size\" with \"fill\", \"values\" or \"file\"");
      ROOFGEN_CHECK(takes(j, {"value", "align"}, "this is a scalar"));
      return scalar(j, std::move(a), lanes);
    }
    if (j.contains("align")) return wrong(j, "align", "\"align\" is for values; buffers are 256-byte aligned");
    if (lanes > 1)
      return wrong(j["type"], "", "a buffer of {} is one of {} with {} times the size", a.type_name, base, lanes);
    ROOFGEN_TRY(a.size, count(j, "size", "a number of elements", 1, kMaxBytes));
    // Checked before memory of that size is allocated.
    if (a.bytes() > kMaxBytes) return wrong(j, "size", "the buffers have more than {} GiB together", kMaxBytes >> 30);
    ROOFGEN_CHECK(read_map(j, a));
    ROOFGEN_CHECK(read_image(j, a, a.bytes()));
    ROOFGEN_TRY(a.fill, contents_of(j, a));
    if (j.contains("read_only")) {
      if (!j["read_only"].is_boolean())
        return wrong(j["read_only"], "", "\"read_only\" is {}; true or false was expected", shown(j["read_only"]));
      a.read_only = j["read_only"].get<bool>();
      if (a.read_only && !a.symbol.empty())
        return wrong(j, "read_only", "\"read_only\" is for arguments; the declaration of a variable decides");
      if (a.read_only && std::holds_alternative<Nothing>(a.fill))
        return wrong(j, "read_only",
                     "a read-only buffer without contents; \"fill\", \"values\" or \"file\" was expected");
    }
    ROOFGEN_CHECK(read_expectation(j, a));
    ROOFGEN_TRY(a.dump, string_or(j, "dump", ""));
    if (!a.dump.empty()) a.dump = path(a.dump);
    return a;
  }

  /// Refuses members other than "name", "type" and `own`.
  Result<void> takes(const Json& j, std::initializer_list<std::string_view> own, const char* what) const {
    for (const auto& [key, value] : j.items())
      if (key != "name" && key != "type" && std::find(own.begin(), own.end(), key) == own.end())
        return usage(j,
                     std::string_view(what) == "a null pointer"
                         ? prefix_ + ": a null pointer takes no other member"
                         : fmt::format("{}: \"{}\" is for {}, {}", prefix_, key,
                                       key == "fields"                      ? "structs"
                                       : key == "value"                     ? "scalars"
                                       : key == "symbol"                    ? "variables"
                                       : key == "buffer" || key == "offset" ? "pointers"
                                                                            : "buffers",
                                       what),
                     key);
    return {};
  }

  /// A pointer into the buffer of an earlier argument.
  Result<Argument> shared(const Json& j, Argument a, uint64_t lanes) {
    if (!a.symbol.empty()) return wrong(j, "symbol", "a variable has a buffer of its own");
    ROOFGEN_CHECK(
        takes(j, {"buffer", "offset", "map", "texture", "surface"}, "this points into the buffer of another argument"));
    ROOFGEN_TRY(a.buffer, string(j, "buffer"));
    std::vector<std::string> names;
    const Argument* to = nullptr;
    for (const Argument& earlier : *earlier_)
      if (earlier.size && earlier.symbol.empty()) {
        names.push_back(earlier.name);
        if (earlier.name == a.buffer) to = &earlier;
      }
    if (!to)
      return wrong(j["buffer"], "", "no earlier argument with \"size\" has the name \"{}\"{}", a.buffer,
                   names.empty() ? "" : did_you_mean(a.buffer, names));
    if (j.contains("offset")) {
      const uint64_t bytes = lanes * bytes_of(a.type);
      ROOFGEN_TRY(
          const uint64_t offset,
          count(j, "offset", fmt::format("a number of elements of {}", a.type_name).c_str(), 0, to->bytes() / bytes));
      a.begin = offset * bytes;
    }
    ROOFGEN_CHECK(read_map(j, a));
    ROOFGEN_CHECK(read_image(j, a, to->bytes() - a.begin));
    return a;
  }

  /// "map": {"dims": [64, 128], "box": [64, 32], "strides": [128], "swizzle": 128}: the arguments of
  /// cuTensorMapEncodeTiled. Without "strides" the tensor is contiguous.
  Result<void> read_map(const Json& j, Argument& a) const {
    if (!j.contains("map")) return {};
    const Json& m = j["map"];
    if (!a.symbol.empty()) return wrong(j, "symbol", "\"map\" is for arguments");
    if (!m.is_object() || !m.contains("dims") || !m.contains("box"))
      return wrong(j, "map", "\"map\" is {}; {{\"dims\": [...], \"box\": [...]}} was expected", shown(m));
    ROOFGEN_CHECK(only(m, {"dims", "strides", "box", "swizzle", "nan_fill", "l2_promotion"}));
    const auto type = map_type(a.type);
    if (!type) return wrong(j, "map", "a tensor map of {} is not supported", to_string(a.type));
    TensorMap map;
    map.dtype = *type;
    ROOFGEN_TRY(map.dims, counts(m, "dims", uint64_t{1} << 32));
    ROOFGEN_TRY(const std::vector<uint64_t> box, counts(m, "box", 256));
    map.box.assign(box.begin(), box.end());
    if (m.contains("strides")) {
      ROOFGEN_TRY(map.stride_bytes, counts(m, "strides", uint64_t{1} << 40));
    } else {
      uint64_t stride = bytes_of(a.type);
      for (size_t i = 0; i + 1 < map.dims.size(); ++i) {
        constexpr uint64_t kRefused = uint64_t{1} << 40;  // by fault_in(), as any larger stride
        stride = stride > kRefused / map.dims[i] ? kRefused : stride * map.dims[i];
        map.stride_bytes.push_back(stride);
      }
    }
    for (auto [key, to] :
         {std::pair{"swizzle", &map.swizzle_bytes}, std::pair{"l2_promotion", &map.l2_promotion_bytes}})
      if (m.contains(key)) {
        ROOFGEN_TRY(const uint64_t bytes, count(m, key, "a number of bytes", 0, 256));
        *to = static_cast<int>(bytes);
      }
    if (m.contains("nan_fill")) {
      if (!m["nan_fill"].is_boolean())
        return wrong(m["nan_fill"], "", "\"nan_fill\" is {}; true or false was expected", shown(m["nan_fill"]));
      map.nan_fill = m["nan_fill"].get<bool>();
    }
    // Buffers are 256-byte aligned; `begin` is the offset in one.
    if (const std::string why = fault_in(map, 256 + a.begin); !why.empty()) return wrong(j, "map", "\"map\": {}", why);
    a.map = std::make_shared<const TensorMap>(std::move(map));
    a.align = Argument::kMapAlign;
    return {};
  }

  /// "texture": {"dims": [64, 32], "channels": 4, "filter_mode": "linear"}, or "surface": an object of `available`
  /// bytes of the buffer. A texture without "dims" is plain memory in one dimension.
  Result<void> read_image(const Json& j, Argument& a, uint64_t available) const {
    const bool is_surface = j.contains("surface");
    if (!is_surface && !j.contains("texture")) return {};
    const char* const member = is_surface ? "surface" : "texture";
    const Json& m = j[member];
    if (!a.symbol.empty()) return wrong(j, "symbol", "\"{}\" is for arguments", member);
    if (a.map || (is_surface && j.contains("texture")))
      return wrong(j, member, "one of \"map\", \"texture\" and \"surface\" was expected");
    if (!m.is_object() || (is_surface && !m.contains("dims")))
      return wrong(j, member, "\"{}\" is {}; {{\"dims\": [...]}} was expected", member, shown(m));
    if (is_surface) {
      ROOFGEN_CHECK(only(m, {"dims", "layers", "channels", "pitch"}));
    } else {
      ROOFGEN_CHECK(only(
          m, {"dims", "layers", "channels", "pitch", "address_mode", "filter_mode", "normalized_coords", "read_mode"}));
    }
    const auto format = texel_format(a.type);
    if (!format) return wrong(j, member, "a {} of {} is not supported", member, to_string(a.type));
    sim::Image image;
    image.format = *format;
    image.is_surface = is_surface;
    ROOFGEN_CHECK(read_shape(m, available, image));
    ROOFGEN_CHECK(read_sampling(m, image));
    if (const std::string why = image.fault(); !why.empty()) return wrong(j, member, "\"{}\": {}", member, why);
    a.image = std::make_shared<const sim::Image>(image);
    return {};
  }

  /// The dimensions of an image, which its bytes must hold.
  Result<void> read_shape(const Json& m, uint64_t available, sim::Image& image) const {
    constexpr uint64_t kMostTexels = 1 << 27;  // cudaDeviceProp::maxTexture1DLinear; arrays have fewer
    if (m.contains("channels")) {
      ROOFGEN_TRY(const uint64_t channels, count(m, "channels", "a number of channels", 1, 4));
      image.channels = static_cast<uint32_t>(channels);
      if (channels == 3) return wrong(m, "channels", "\"channels\" is 3; 1, 2 or 4 was expected");
    }
    const uint64_t texel = image.texel_bytes();
    std::vector<uint64_t> dims{std::min(available / texel, kMostTexels)};
    image.is_memory = !m.contains("dims");
    if (!image.is_memory) {
      ROOFGEN_TRY(dims, counts(m, "dims", kMostTexels));
    }
    if (dims.size() > 3 || dims[0] == 0)
      return wrong(m, dims[0] ? "dims" : "", "an image has 1 to 3 dimensions, of at least one texel");
    image.rank = static_cast<uint32_t>(dims.size());
    std::copy(dims.begin(), dims.end(), image.dims);
    if (m.contains("layers")) {
      ROOFGEN_TRY(const uint64_t layers, count(m, "layers", "a number of layers", 1, 2048));
      image.layers = static_cast<uint32_t>(layers);
    }
    image.pitch = dims[0] * texel;
    if (m.contains("pitch")) {
      const uint64_t least = image.pitch;
      ROOFGEN_TRY(image.pitch, count(m, "pitch", "a number of bytes", least, kMaxBytes));
    }
    const uint64_t rows = image.dims[1], slices = std::max(image.dims[2], image.layers);
    image.slice = image.pitch * rows;
    const bool too_large = image.pitch > kMaxBytes / rows || image.slice > kMaxBytes / slices;
    if (too_large || image.slice * slices > available)
      return wrong(m, "dims", "the image has {}, the buffer {} bytes",
                   too_large ? "over 4 GiB" : fmt::format("{} bytes", image.slice * slices), available);
    return {};
  }

  /// One of some words; `at`: which.
  template <size_t n>
  Result<void> word(const Json& item, const char* member, const char* const (&words)[n], size_t* at) const {
    for (*at = 0; *at < n; ++*at)
      if (item == words[*at]) return {};
    return wrong(item, "", "\"{}\" is {}; one of {} was expected", member, shown(item),
                 fmt::join(words, words + n, ", "));
  }

  Result<void> read_sampling(const Json& m, sim::Image& image) const {
    static constexpr const char* kModes[] = {"wrap", "clamp", "mirror", "border"};  // by AddressMode
    static constexpr const char* kFilters[] = {"point", "linear"};
    static constexpr const char* kReads[] = {"element", "normalized_float"};
    size_t at = 0;
    if (m.contains("address_mode")) {
      const Json& given = m["address_mode"];
      if (given.is_array() && given.size() != image.rank)
        return wrong(given, "", "\"address_mode\" has {} entries for {} dimensions", given.size(), image.rank);
      for (uint32_t axis = 0; axis < image.rank; ++axis) {
        ROOFGEN_CHECK(word(given.is_array() ? given[axis] : given, "address_mode", kModes, &at));
        image.mode[axis] = static_cast<sim::AddressMode>(at);
      }
    }
    if (m.contains("filter_mode")) {
      ROOFGEN_CHECK(word(m["filter_mode"], "filter_mode", kFilters, &at));
      image.linear = at == 1;
    }
    if (m.contains("read_mode")) {
      ROOFGEN_CHECK(word(m["read_mode"], "read_mode", kReads, &at));
      image.unit_values = at == 1;
    }
    if (m.contains("normalized_coords")) {
      const Json& given = m["normalized_coords"];
      if (!given.is_boolean())
        return wrong(given, "", "\"normalized_coords\" is {}; true or false was expected", shown(given));
      image.unit_coordinates = given.get<bool>();
    }
    return {};
  }

  static std::optional<sim::TexelFormat> texel_format(Element type) {
    switch (type) {
      case Element::kI8: return sim::TexelFormat::kS8;
      case Element::kU8: return sim::TexelFormat::kU8;
      case Element::kI16: return sim::TexelFormat::kS16;
      case Element::kU16: return sim::TexelFormat::kU16;
      case Element::kI32: return sim::TexelFormat::kS32;
      case Element::kU32: return sim::TexelFormat::kU32;
      case Element::kF16: return sim::TexelFormat::kF16;
      case Element::kF32: return sim::TexelFormat::kF32;
      default: return std::nullopt;
    }
  }

  /// A list of 1 to 5 integers from 1 to `most`.
  Result<std::vector<uint64_t>> counts(const Json& j, const char* member, uint64_t most) const {
    const Json& list = j[member];
    const size_t least = std::string_view(member) == "strides" ? 0 : 1;
    if (!list.is_array() || list.size() < least || list.size() > 5)
      return wrong(list, "", "\"{}\" is {}; a list of {} to 5 numbers was expected", member, shown(list), least);
    std::vector<uint64_t> out;
    for (const Json& item : list) {
      const Json n = whole(item);
      if (!n.is_number_unsigned() || n.get<uint64_t>() < 1 || n.get<uint64_t>() > most)
        return wrong(item, "", "\"{}\" holds {}; numbers from 1 to {} were expected", member, shown(item), most);
      out.push_back(n.get<uint64_t>());
    }
    return out;
  }

  /// A format of the same width: the copy engine moves bits, and cp.reduce.async.bulk.tensor is not simulated.
  static std::optional<DType> map_type(Element type) {
    switch (type) {
      case Element::kI8:
      case Element::kU8: return DType::kInt8;
      case Element::kF16: return DType::kFp16;
      case Element::kBf16: return DType::kBf16;
      case Element::kI32:
      case Element::kU32: return DType::kInt32;
      case Element::kF32: return DType::kFp32;
      default: return std::nullopt;
    }
  }

  /// A number, the lanes of a vector type, or a list of numbers as an array.
  Result<Argument> scalar(const Json& j, Argument a, uint64_t lanes) {
    const Json& value = j["value"];
    if (lanes > 1 && (!value.is_array() || value.size() != lanes))
      return wrong(j, "value", "\"value\" of {} is a list of {} numbers{}", a.type_name, lanes,
                   value.is_array() ? fmt::format(", {} were given", value.size()) : "");
    const size_t n = value.is_array() ? value.size() : 1;
    const uint32_t size = bytes_of(a.type);
    if (n == 0 || n > kMaxPassedBytes / size)
      return wrong(j, "value", "\"value\" is a number or a list of 1 to {} of them", kMaxPassedBytes / size);
    for (size_t i = 0; i < n; ++i) {
      ROOFGEN_TRY(const uint64_t bits, number(value.is_array() ? value[i] : value, a.type, "value"));
      const auto* from = reinterpret_cast<const std::byte*>(&bits);
      a.value.insert(a.value.end(), from, from + size);
    }
    // CUDA aligns vector types with two and four lanes to their size, up to 16 bytes.
    a.align = lanes == 1 || lanes == 3 ? size : std::min<uint64_t>(lanes * size, 16);
    ROOFGEN_CHECK(read_alignment(j, a));
    return a;
  }

  /// The layout of C++: each field at the next multiple of its alignment, the size a multiple of the largest one.
  Result<Argument> structure(const Json& j, Argument a, int depth) {
    ROOFGEN_CHECK(takes(j, {"fields", "align"}, "this is a struct"));
    if (depth >= kMaxDepth) return wrong(j, "", "structs are nested deeper than {}", kMaxDepth);
    if (!j.contains("fields") || !j["fields"].is_array() || j["fields"].empty() || j["fields"].size() > kMaxArguments)
      return wrong(j, "fields", "\"fields\" is a list of 1 to {} fields in the order of their declaration",
                   kMaxArguments);
    a.align = 1;
    const std::string outer = prefix_;
    uint64_t end = 0;
    for (const Json& item : j["fields"]) {
      prefix_ = fmt::format("{}, field {}", outer, a.fields.size() + 1);
      ROOFGEN_TRY(Argument field, read(item, depth + 1));
      field.offset = (end + field.align - 1) / field.align * field.align;
      end = field.offset + field.passed_bytes();
      if (end > kMaxPassedBytes) return wrong(j, "", "parameters have at most {} bytes", kMaxPassedBytes);
      a.align = std::max(a.align, field.align);
      a.fields.push_back(std::move(field));
    }
    prefix_ = outer;
    ROOFGEN_CHECK(read_alignment(j, a));
    a.value.resize((end + a.align - 1) / a.align * a.align);
    for (const Argument& f : a.fields)
      std::copy(f.value.begin(), f.value.end(), a.value.begin() + static_cast<ptrdiff_t>(f.offset));
    return a;
  }

  /// {"type": "bytes", "value": "00 ff ..."} or {"type": "bytes", "file": name}: raw bytes of any type.
  Result<Argument> bytes(const Json& j, Argument a) {
    ROOFGEN_CHECK(takes(j, {"value", "file", "align"}, "these are bytes passed by value"));
    if (j.contains("value") == j.contains("file"))
      return wrong(j, "", "either \"value\" (hexadecimal digits) or \"file\" was expected");
    if (j.contains("file")) {
      ROOFGEN_TRY(Raw raw, raw_file(j["file"], "file"));
      a.value = std::move(raw.bytes);
    } else if (j["value"].is_string()) {
      int high = -1;
      for (const char c : j["value"].get<std::string>()) {
        if (c == ' ') continue;
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return wrong(j, "value", "'{}' is not a hexadecimal digit", c);
        if (high < 0)
          high = digit;
        else
          a.value.push_back(static_cast<std::byte>(std::exchange(high, -1) * 16 + digit));
      }
      if (high >= 0)
        return wrong(j, "value", "{} hexadecimal digits and one more; two for each byte were expected",
                     2 * a.value.size());
    } else {
      return wrong(j, "value", "\"value\" is a string of hexadecimal digits, two for each byte");
    }
    if (a.value.empty() || a.value.size() > kMaxPassedBytes)
      return wrong(j, j.contains("value") ? "value" : "file", "{} bytes; 1 to {} were expected", a.value.size(),
                   kMaxPassedBytes);
    a.align = 1;
    ROOFGEN_CHECK(read_alignment(j, a));
    return a;
  }

  /// "align" stands for alignas; it is at least the natural alignment.
  Result<void> read_alignment(const Json& j, Argument& a) const {
    if (!j.contains("align")) return {};
    const Json given = whole(j["align"]);
    const uint64_t align = given.is_number_unsigned() ? given.get<uint64_t>() : 0;
    if (align < a.align || align > 256 || (align & (align - 1)))
      return wrong(j["align"], "", "\"align\" is {}; a power of two from {} to 256 was expected", shown(given),
                   a.align);
    a.align = align;
    return {};
  }

  /// Suggests our name for a C++ type, else the nearest name.
  static std::string suggestion(const std::string& name) {
    static const std::vector<std::pair<const char*, std::vector<std::string_view>>> known{
        {"f32", {"float"}},
        {"f64", {"double"}},
        {"f16", {"half", "__half"}},
        {"bf16", {"__nv_bfloat16"}},
        {"u8", {"bool", "unsigned char", "uchar", "uint8_t"}},
        {"i8", {"char", "int8_t"}},
        {"i16", {"short", "int16_t"}},
        {"u16", {"unsigned short", "ushort", "uint16_t"}},
        {"i32", {"int", "int32_t"}},
        {"u32", {"unsigned", "unsigned int", "uint", "uint32_t"}},
        {"i64", {"long", "long long", "int64_t"}},
        {"u64", {"unsigned long", "unsigned long long", "size_t", "uint64_t"}},
        {"f32x2", {"float2"}},
        {"f32x3", {"float3"}},
        {"f32x4", {"float4"}},
        {"f64x2", {"double2"}},
        {"i32x2", {"int2"}},
        {"i32x3", {"int3"}},
        {"i32x4", {"int4"}},
        {"u32x2", {"uint2"}},
        {"u32x3", {"uint3", "dim3"}},
        {"u32x4", {"uint4"}},
        {"null", {"pointer", "nullptr"}},
    };
    for (const auto& [ours, theirs] : known)
      if (std::find(theirs.begin(), theirs.end(), name) != theirs.end())
        return fmt::format("; did you mean \"{}\"?", ours);
    std::vector<std::string> names = element_names();
    for (const char* other : {"struct", "bytes", "null"}) names.emplace_back(other);
    return did_you_mean(name, names);
  }

  Result<Contents> contents_of(const Json& j, const Argument& a) {
    if (j.contains("fill") + j.contains("values") + j.contains("file") > 1)
      return wrong(j, j.contains("fill") && j.contains("values") ? "values" : "file",
                   "one of \"fill\", \"values\" and \"file\" was expected");
    for (const char* key : {"seed", "range"})
      if (j.contains(key) && (!j.contains("fill") || j["fill"] != "random"))
        return wrong(j, key, "\"{}\" goes with \"fill\": \"random\"", key);
    if (j.contains("values")) return values(j["values"], a, "values");
    if (j.contains("file")) return raw(j["file"], a, "file");
    if (!j.contains("fill")) return Contents{Nothing{}};
    return fill_of(j["fill"], j, a, "fill");
  }

  Result<Contents> fill_of(const Json& fill, const Json& j, const Argument& a, const char* key) {
    if (fill.is_number()) {
      ROOFGEN_TRY(const uint64_t bits, number(fill, a.type, key));
      return Contents{Constant{bits}};
    }
    const std::string name = fill.is_string() ? fill.get<std::string>() : "";
    if (name == "iota") return Contents{Iota{}};
    if (name == "random") {
      uint64_t seed = 0;
      if (j.contains("seed")) {
        ROOFGEN_TRY(seed, count(j, "seed", "a whole number", 0, std::numeric_limits<uint64_t>::max()));
      }
      Random random{seed};
      random.span = ~uint64_t{0};
      if (j.contains("range")) ROOFGEN_CHECK(read_range(j["range"], a.type, random));
      return Contents{random};
    }
    const std::string near = name.empty() ? "" : nearest(name, {"iota", "random"});
    return wrong(fill, "", "\"{}\" is {}; a number, \"iota\" or \"random\" was expected{}", key, shown(fill),
                 near.empty() ? "" : fmt::format("; did you mean \"{}\"?", near));
  }

  /// [least, most] of random contents.
  Result<void> read_range(const Json& range, Element type, Random& random) {
    if (!range.is_array() || range.size() != 2)
      return wrong(range, "", "\"range\" is {}; the least and the largest value were expected, as in [0, 99]",
                   shown(range));
    ROOFGEN_TRY(const uint64_t least, number(range[0], type, "range"));
    ROOFGEN_TRY(const uint64_t most, number(range[1], type, "range"));
    if (is_integer(type)) {
      // By the sign of the numbers, since 64 bits have two meanings.
      const bool negative = whole(range[0]).is_number_integer() && !whole(range[0]).is_number_unsigned();
      const bool most_negative = whole(range[1]).is_number_integer() && !whole(range[1]).is_number_unsigned();
      if (negative == most_negative ? least > most : most_negative)
        return wrong(range, "", "\"range\" is {}; the lower value comes first", shown(range));
      random.first = least;
      random.span = most - least;
      return {};
    }
    random.least = range[0].is_number() ? range[0].get<double>() : NAN;
    random.most = range[1].is_number() ? range[1].get<double>() : NAN;
    if (!(random.least <= random.most) || !std::isfinite(random.most - random.least))
      return wrong(range, "", "\"range\" is {}; two finite numbers were expected, the lower one first", shown(range));
    return {};
  }

  /// [3, [10, 20]]: element 3, and elements 10 to 19.
  Result<void> read_ignored(const Json& ignore, const Argument& a, Expectation& e) {
    const char* const form = "\"ignore\" is a list of elements and [begin, end), as in [3, [10, 20]]";
    if (!ignore.is_array()) return wrong(ignore, "", "{}", form);
    for (const Json& item : ignore) {
      const bool range = item.is_array();
      if (range && item.size() != 2) return wrong(item, "", "{}", form);
      uint64_t bounds[2] = {};
      for (size_t i = 0; i < 2; ++i) {
        const Json n = whole(range ? item[i] : item);
        if (!n.is_number_unsigned() || n.get<uint64_t>() > *a.size - (range ? 0 : 1))
          return wrong(range ? item[i] : item, "", "{}; {} is no {} of {} elements", form, shown(n),
                       range ? "bound" : "number", *a.size);
        bounds[i] = n.get<uint64_t>() + (range ? 0 : i);
      }
      if (bounds[0] >= bounds[1]) return wrong(item, "", "{}; {} has no elements", form, shown(item));
      e.ignored.emplace_back(bounds[0], bounds[1]);
    }
    return {};
  }

  Result<void> read_expectation(const Json& j, Argument& a) {
    if (!j.contains("expect")) {
      for (const char* key : {"tolerance", "relative_tolerance", "ignore"})
        if (j.contains(key)) return wrong(j, key, "\"{}\" goes with \"expect\"", key);
      return {};
    }
    Expectation e;
    const Json& expect = j["expect"];
    if (expect.is_array()) {
      ROOFGEN_TRY(e.contents, values(expect, a, "expect", &e.ignored));
    } else if (expect.is_object()) {
      ROOFGEN_CHECK(only(expect, {"file"}));
      if (!expect.contains("file")) return wrong(expect, "", "{{\"file\": name}} was expected");
      ROOFGEN_TRY(e.contents, raw(expect["file"], a, "expect"));
    } else {
      ROOFGEN_TRY(e.contents, fill_of(expect, j, a, "expect"));
    }
    for (auto [key, to] : {std::pair{"tolerance", &e.absolute}, std::pair{"relative_tolerance", &e.relative}}) {
      if (!j.contains(key)) continue;
      if (!j[key].is_number() || !(j[key].get<double>() >= 0) || std::isinf(j[key].get<double>()))
        return wrong(j[key], "", "\"{}\" is {}; a number of at least 0 was expected", key, shown(j[key]));
      *to = j[key].get<double>();
    }
    if (j.contains("ignore")) ROOFGEN_CHECK(read_ignored(j["ignore"], a, e));
    std::sort(e.ignored.begin(), e.ignored.end());
    a.expect = std::move(e);
    return {};
  }

  /// The bits of an element; "nan", "inf" and "-inf" stand for values that JSON numbers do not have.
  Result<uint64_t> number(const Json& j, Element type, const char* key) {
    if (j.is_string() && !is_integer(type)) {
      const std::string name = j.get<std::string>();
      if (name == "nan") return encode(type, std::nan(""));
      if (name == "inf") return encode(type, HUGE_VAL);
      if (name == "-inf") return encode(type, -HUGE_VAL);
    }
    if (!is_integer(type)) {
      if (j.is_number()) return encode(type, j.get<double>());
      return wrong(j, "", "\"{}\" holds {}; a number was expected, or \"nan\", \"inf\" or \"-inf\"", key, shown(j));
    }
    const auto [least, most] = range_of(type);
    const Json n = whole(j);
    const bool fits = n.is_number_unsigned()
                          ? n.get<uint64_t>() <= most
                          : n.is_number_integer() && n.get<int64_t>() >= least &&
                                (n.get<int64_t>() < 0 || static_cast<uint64_t>(n.get<int64_t>()) <= most);
    if (!fits)
      return wrong(
          j, "", "{} is no {}; a whole number from {} to {} was expected{}", shown(n), to_string(type), least, most,
          n.is_number_float() && n.get<double>() == std::trunc(n.get<double>()) ? ", beyond 2^53 with all its digits"
                                                                                : "");
    return n.is_number_unsigned() ? n.get<uint64_t>() : encode_integer(type, n.get<int64_t>());
  }

  /// With `nulls`, null stands for an element whose value is not known.
  Result<Contents> values(const Json& j, const Argument& a, const char* key,
                          std::vector<std::pair<uint64_t, uint64_t>>* nulls = nullptr) {
    if (!j.is_array() || j.size() != *a.size)
      return wrong(j, "", "\"{}\" is a list of {} numbers{}", key, *a.size,
                   j.is_array() ? fmt::format(", {} were given", j.size()) : "");
    Values out;
    for (const Json& item : j) {
      uint64_t bits = 0;
      if (nulls && item.is_null()) {
        nulls->emplace_back(out.bits.size(), out.bits.size() + 1);
      } else {
        ROOFGEN_TRY(bits, number(item, a.type, key));
      }
      out.bits.push_back(bits);
    }
    return Contents{std::move(out)};
  }

  std::string path(const std::string& name) const { return (std::filesystem::path(directory_) / name).string(); }

  Result<Raw> raw_file(const Json& j, const char* key) {
    if (!j.is_string()) return wrong(j, "", "\"{}\" is {}; the name of a file was expected", key, shown(j));
    Raw out{path(j.get<std::string>()), {}};
    std::ifstream in(out.file, std::ios::binary);
    std::error_code ignored;
    const uint64_t size =
        in && std::filesystem::is_regular_file(out.file, ignored) ? std::filesystem::file_size(out.file, ignored) : 0;
    if (!in || ignored || !std::filesystem::is_regular_file(out.file, ignored))
      return wrong(j, "", "{} cannot be read", out.file);
    if (size > kMaxBytes) return wrong(j, "", "{} has {} bytes; at most {} were expected", out.file, size, kMaxBytes);
    out.bytes.resize(size);
    in.read(reinterpret_cast<char*>(out.bytes.data()), static_cast<std::streamsize>(size));
    if (!in) return wrong(j, "", "{} cannot be read", out.file);
    return out;
  }

  Result<Contents> raw(const Json& j, const Argument& a, const char* key) {
    ROOFGEN_TRY(Raw out, raw_file(j, key));
    if (out.bytes.size() != a.bytes())
      return wrong(j, "", "{} has {} bytes; {} x {} of {} were expected", out.file, out.bytes.size(), *a.size,
                   bytes_of(a.type), to_string(a.type));
    return Contents{std::move(out)};
  }

  static constexpr int kMaxDepth = 16;
  std::string directory_, prefix_;
  const std::vector<Argument>* earlier_ = nullptr;
};

uint64_t element_bits(const Contents& contents, Element type, uint64_t index) {
  if (const auto* c = std::get_if<Constant>(&contents)) return c->bits;
  if (std::get_if<Iota>(&contents)) return is_integer(type) ? index : encode(type, static_cast<double>(index));
  if (const auto* v = std::get_if<Values>(&contents)) return v->bits[index];
  const Random& random = std::get<Random>(contents);
  const uint64_t bits = mix(mix(random.seed) ^ index);
  if (is_integer(type)) return random.span == ~uint64_t{0} ? bits : random.first + bits % (random.span + 1);
  // 53 random bits as a number in [0, 1).
  return encode(type, random.least + static_cast<double>(bits >> 11) * 0x1p-53 * (random.most - random.least));
}

void add_buffers(const std::vector<Argument>& from, std::vector<const Argument*>& to) {
  for (const Argument& a : from) {
    if (a.size) to.push_back(&a);
    add_buffers(a.fields, to);
  }
}

}  // namespace

std::vector<const Argument*> buffers_of(const std::vector<Argument>& arguments) {
  std::vector<const Argument*> out;
  add_buffers(arguments, out);
  return out;
}

Result<std::vector<Argument>> parse_arguments(std::string text, const std::string& file, const std::string& directory) {
  auto json = JsonFile::parse(std::move(text), file);
  if (!json) {
    Error e = std::move(json).error();
    e.exit = Exit::kUsage;
    return e;
  }
  return Reader(*json, directory).run();
}

void fill(const Contents& contents, Element type, uint64_t offset, std::span<std::byte> out) {
  if (const auto* raw = std::get_if<Raw>(&contents)) {
    std::memcpy(out.data(), raw->bytes.data() + offset, out.size());
    return;
  }
  const uint64_t size = bytes_of(type);
  for (size_t i = 0; i < out.size();) {
    const uint64_t at = offset + i, bits = element_bits(contents, type, at / size), skip = at % size;
    const size_t n = std::min<size_t>(size - skip, out.size() - i);
    std::memcpy(out.data() + i, reinterpret_cast<const std::byte*>(&bits) + skip, n);
    i += n;
  }
}

bool agrees(double got, double expected, const Expectation& e) {
  if (std::isnan(expected) || std::isnan(got)) return std::isnan(expected) && std::isnan(got);
  if (got == expected) return true;
  return std::fabs(got - expected) <= e.absolute + e.relative * std::fabs(expected);
}

}  // namespace roofgen::check

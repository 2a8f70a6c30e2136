#include "check/arguments.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "generator/json_reader.h"
#include "generator/ops/counter_random.h"
#include "generator/suggest.h"

namespace roofgen::check {
namespace {

class Reader : JsonReader {
 public:
  Reader(const JsonFile& file, std::string directory) : JsonReader(file), directory_(std::move(directory)) {}

  Result<std::vector<Argument>> run() {
    if (!file_.root().is_array()) return usage("a list of arguments was expected, in the order of the kernel's parameters");
    if (file_.root().size() > kMaxArguments) return usage(fmt::format("{} arguments are too many; at most {} were expected", file_.root().size(), kMaxArguments));
    std::vector<Argument> out;
    uint64_t bytes = 0;
    for (const Json& item : file_.root()) {
      prefix_ = fmt::format("argument {}", out.size() + 1);
      auto argument = read(item);
      // The reader's own errors are about a data file; here the file is the user's.
      if (!argument) {
        Error e = std::move(argument).error();
        e.exit = Exit::kUsage;
        if (!e.message.starts_with("argument ")) e.message = prefix_ + ": " + e.message;
        return e;
      }
      bytes += argument->bytes();
      if (bytes > kMaxBytes) return usage(fmt::format("{}: the buffers have more than {} GiB together", prefix_, kMaxBytes >> 30), "size");
      out.push_back(std::move(*argument));
    }
    return out;
  }

 private:
  Error usage(std::string message, const std::string& near = "") const {
    Error e = bad(std::move(message), near);
    e.exit = Exit::kUsage;
    return e;
  }

  Result<Argument> read(const Json& j) {
    ROOFGEN_CHECK(only(j, {"name", "type", "size", "value", "fill", "seed", "file", "values", "read_only", "expect", "tolerance", "relative_tolerance", "dump"}));
    Argument a;
    ROOFGEN_TRY(a.name, string_or(j, "name", prefix_));
    ROOFGEN_TRY(const std::string type, string(j, "type"));
    if (type == "null") {
      if (j.size() > 1 + j.count("name")) return usage(prefix_ + ": a null pointer takes nothing else");
      a.null = true;
      return a;
    }
    const auto element = parse_element(type);
    if (!element) return usage(fmt::format("{}: unknown type \"{}\"{}", prefix_, type, did_you_mean(type, element_names())), type);
    a.type = *element;
    if (j.contains("value") == j.contains("size")) return usage(prefix_ + ": either \"size\" (a buffer) or \"value\" (a scalar) was expected");
    if (j.contains("value")) {
      for (const char* key : {"fill", "seed", "file", "values", "read_only", "expect", "tolerance", "relative_tolerance", "dump"})
        if (j.contains(key)) return usage(fmt::format("{}: \"{}\" is for buffers, this is a scalar", prefix_, key), key);
      ROOFGEN_TRY(a.bits, number(j["value"], a.type, "value"));
      return a;
    }
    if (!j["size"].is_number_unsigned() || j["size"].get<uint64_t>() == 0 || j["size"].get<uint64_t>() > kMaxBytes)
      return usage(fmt::format("{}: \"size\" is a number of elements from 1 to {}", prefix_, kMaxBytes), "size");
    a.size = j["size"].get<uint64_t>();
    ROOFGEN_TRY(a.fill, contents_of(j, a));
    if (j.contains("read_only")) {
      if (!j["read_only"].is_boolean()) return usage(prefix_ + ": \"read_only\" is true or false", "read_only");
      a.read_only = j["read_only"].get<bool>();
      if (a.read_only && std::holds_alternative<Nothing>(a.fill)) return usage(prefix_ + ": a read-only buffer that holds nothing; \"fill\", \"values\" or \"file\" was expected");
    }
    ROOFGEN_CHECK(read_expectation(j, a));
    ROOFGEN_TRY(a.dump, string_or(j, "dump", ""));
    if (!a.dump.empty()) a.dump = path(a.dump);
    return a;
  }

  Result<Contents> contents_of(const Json& j, const Argument& a) {
    if (j.contains("fill") + j.contains("values") + j.contains("file") > 1) return usage(prefix_ + ": one of \"fill\", \"values\" and \"file\" was expected", "fill");
    if (j.contains("seed") && (!j.contains("fill") || j["fill"] != "random")) return usage(prefix_ + ": \"seed\" goes with \"fill\": \"random\"", "seed");
    if (j.contains("values")) return values(j["values"], a, "values");
    if (j.contains("file")) return raw(j["file"], a, "file");
    if (!j.contains("fill")) return Contents{Nothing{}};
    return fill_of(j["fill"], j, a, "fill");
  }

  Result<Contents> fill_of(const Json& fill, const Json& j, const Argument& a, const char* key) {
    if (!fill.is_string()) {
      ROOFGEN_TRY(const uint64_t bits, number(fill, a.type, key));
      return Contents{Constant{bits}};
    }
    const std::string name = fill.get<std::string>();
    if (name == "iota") return Contents{Iota{}};
    if (name == "random") {
      if (j.contains("seed") && !j["seed"].is_number_unsigned()) return usage(prefix_ + ": \"seed\" is a whole number", "seed");
      return Contents{Random{j.contains("seed") ? j["seed"].get<uint64_t>() : 0}};
    }
    return usage(fmt::format("{}: \"{}\" is \"{}\"; a number, \"iota\" or \"random\" was expected{}", prefix_, key, name, did_you_mean(name, {"iota", "random"})), name);
  }

  Result<void> read_expectation(const Json& j, Argument& a) {
    if (!j.contains("expect")) {
      for (const char* key : {"tolerance", "relative_tolerance"})
        if (j.contains(key)) return usage(fmt::format("{}: \"{}\" goes with \"expect\"", prefix_, key), key);
      return {};
    }
    Expectation e;
    const Json& expect = j["expect"];
    if (expect.is_array()) {
      ROOFGEN_TRY(e.contents, values(expect, a, "expect"));
    } else if (expect.is_object()) {
      ROOFGEN_CHECK(only(expect, {"file"}));
      if (!expect.contains("file")) return usage(prefix_ + ": {\"file\": name} was expected", "expect");
      ROOFGEN_TRY(e.contents, raw(expect["file"], a, "expect"));
    } else {
      ROOFGEN_TRY(e.contents, fill_of(expect, j, a, "expect"));
    }
    for (auto [key, to] : {std::pair{"tolerance", &e.absolute}, std::pair{"relative_tolerance", &e.relative}}) {
      if (!j.contains(key)) continue;
      if (!j[key].is_number() || !(j[key].get<double>() >= 0) || std::isinf(j[key].get<double>())) return usage(fmt::format("{}: \"{}\" is a number of at least 0", prefix_, key), key);
      *to = j[key].get<double>();
    }
    a.expect = std::move(e);
    return {};
  }

  /// A JSON number as the bits of an element; "nan", "inf" and "-inf" stand for what JSON cannot write.
  Result<uint64_t> number(const Json& j, Element type, const char* key) {
    if (j.is_string() && !is_integer(type)) {
      const std::string name = j.get<std::string>();
      if (name == "nan") return encode(type, std::nan(""));
      if (name == "inf") return encode(type, HUGE_VAL);
      if (name == "-inf") return encode(type, -HUGE_VAL);
    }
    if (!j.is_number()) return usage(fmt::format("{}: \"{}\" holds {}; a number was expected", prefix_, key, j.dump()), key);
    if (!is_integer(type)) return encode(type, j.get<double>());
    const auto [least, most] = range_of(type);
    const bool fits = j.is_number_unsigned() ? j.get<uint64_t>() <= most : j.is_number_integer() && j.get<int64_t>() >= least && (j.get<int64_t>() < 0 || static_cast<uint64_t>(j.get<int64_t>()) <= most);
    if (!fits) return usage(fmt::format("{}: {} is no {}; a whole number from {} to {} was expected", prefix_, j.dump(), to_string(type), least, most), key);
    return j.is_number_unsigned() ? j.get<uint64_t>() : encode_integer(type, j.get<int64_t>());
  }

  Result<Contents> values(const Json& j, const Argument& a, const char* key) {
    if (!j.is_array() || j.size() != *a.size)
      return usage(fmt::format("{}: \"{}\" is a list of {} numbers{}", prefix_, key, *a.size, j.is_array() ? fmt::format(", {} were given", j.size()) : ""), key);
    Values out;
    for (const Json& item : j) {
      ROOFGEN_TRY(const uint64_t bits, number(item, a.type, key));
      out.bits.push_back(bits);
    }
    return Contents{std::move(out)};
  }

  std::string path(const std::string& name) const { return (std::filesystem::path(directory_) / name).string(); }

  Result<Contents> raw(const Json& j, const Argument& a, const char* key) {
    if (!j.is_string()) return usage(fmt::format("{}: \"{}\" is the name of a file", prefix_, key), key);
    Raw out{path(j.get<std::string>()), {}};
    std::ifstream in(out.file, std::ios::binary);
    std::error_code ignored;
    const uint64_t size = in ? std::filesystem::file_size(out.file, ignored) : 0;
    if (!in || ignored) return usage(fmt::format("{}: {} cannot be read", prefix_, out.file), j.get<std::string>());
    if (size != a.bytes()) return usage(fmt::format("{}: {} has {} bytes; {} x {} of {} were expected", prefix_, out.file, size, *a.size, bytes_of(a.type), to_string(a.type)), j.get<std::string>());
    out.bytes.resize(size);
    in.read(reinterpret_cast<char*>(out.bytes.data()), static_cast<std::streamsize>(size));
    if (!in) return usage(fmt::format("{}: {} cannot be read", prefix_, out.file), j.get<std::string>());
    return Contents{std::move(out)};
  }

  std::string directory_, prefix_;
};

uint64_t element_bits(const Contents& contents, Element type, uint64_t index) {
  if (const auto* c = std::get_if<Constant>(&contents)) return c->bits;
  if (std::get_if<Iota>(&contents)) return is_integer(type) ? index : encode(type, static_cast<double>(index));
  if (const auto* v = std::get_if<Values>(&contents)) return v->bits[index];
  const uint64_t bits = mix(mix(std::get<Random>(contents).seed) ^ index);
  // 53 random bits as a number of [-1, 1).
  return is_integer(type) ? bits : encode(type, static_cast<double>(bits >> 11) * 0x1p-52 - 1);
}

}  // namespace

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

}  // namespace roofgen::check

#include "generator/ops/op_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/json_text.h"
#include "base/suggest.h"
#include "generator/ops/op.h"
#include "generator/space/json_reader.h"

namespace roofgen {
namespace {

constexpr const char* kSchema = "roofgen.op.1";
constexpr const char* kFolder = "search_spaces/ops/";
constexpr std::array kKindMembers{"dims", "flags", "reals", "texts", "dtypes"};

class OpFileReader : private JsonReader {
 public:
  using JsonReader::JsonReader;

  Result<OpFile> read() const {
    OpFile out;
    const Json& root = file_.root();
    ROOFGEN_CHECK(only(root, {"schema", "op",     "words", "flops_per_exp", "group",   "dims",  "flags",   "reals",
                              "texts",  "dtypes", "args",  "sizes",         "empty",   "fixed", "bounded", "aliases",
                              "notes",  "axes",   "rules", "presets",       "tensors", "tests"},
                       {"let", "requires", "formats", "mma_flops"}));
    ROOFGEN_TRY(const std::string schema, string(root, "schema"));
    if (schema != kSchema) return bad_at(root, fmt::format("schema must be \"{}\"", kSchema), "schema");
    ROOFGEN_TRY(out.op, string(root, "op"));
    const std::string stem = file_.file().substr(file_.file().rfind('/') + 1);
    if (stem != out.op + ".json") return bad_at(root, fmt::format("\"{}\" is not the name of the file", out.op), "op");
    ROOFGEN_TRY(out.group, string_or(root, "group", ""));
    ROOFGEN_TRY(out.formulas, has_formulas(root));
    for (const OpFlagKind kind : kOpFlagKinds) {
      const auto at = static_cast<size_t>(kind);
      ROOFGEN_TRY(out.flags[at], flags(root, kKindMembers[at]));
    }
    if (root.contains("args")) {
      ROOFGEN_TRY(out.args, boolean(root, "args"));
    }
    ROOFGEN_TRY(out.sizes, strings(root, "sizes"));
    ROOFGEN_CHECK(read_words(root, out));
    if (root.contains("flops_per_exp")) {
      const Json& j = root["flops_per_exp"];
      ROOFGEN_CHECK(only(j, {"size", "flops"}));
      ROOFGEN_TRY(std::string size, string(j, "size"));
      ROOFGEN_TRY(expr::Expr flops, expression(j, "flops"));
      out.flops_per_exp = {std::move(size), std::move(flops)};
    }
    return out;
  }

 private:
  Result<std::vector<OpFlag>> flags(const Json& root, const char* key) const {
    std::vector<OpFlag> out;
    if (!root.contains(key)) return out;
    ROOFGEN_TRY(const Json* list, member(root, key, &Json::is_array, "a list"));
    for (const Json& j : *list) {
      OpFlag flag;
      if (j.is_string()) {
        flag.name = j.get<std::string>();
      } else {
        ROOFGEN_CHECK(only(j, {"name", "help", "formats", "default"}));
        ROOFGEN_TRY(flag.name, string(j, "name"));
        ROOFGEN_TRY(flag.help, string(j, "help"));
        ROOFGEN_TRY(flag.formats, strings(j, "formats"));
      }
      const std::string letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
      if (flag.name.empty() || flag.name.find_first_not_of(letters) != std::string::npos)
        return bad_at(j, fmt::format("\"{}\" is no name: letters, digits and _ were expected", flag.name), "name");
      if (std::ranges::count(out, flag.name, &OpFlag::name) > 0)
        return bad_at(j, fmt::format("\"{}\" is in \"{}\" twice", flag.name, key), "name");
      out.push_back(std::move(flag));
    }
    return out;
  }

  /// Without formulas nothing reads what belongs to them.
  Result<bool> has_formulas(const Json& root) const {
    if (root.contains("tensors")) {
      ROOFGEN_TRY(const Json* tensors, member(root, "tensors", &Json::is_object, "an object of tensors"));
      for (const auto& [name, tensor] : tensors->items())
        if (tensor.is_object() && tensor.contains("is")) return true;
    }
    for (const char* key : {"let", "requires", "formats", "mma_flops"})
      if (root.contains(key))
        return bad_at(root, fmt::format("\"{}\" belongs to formulas; no tensor has \"is\"", key), key);
    return false;
  }

  Result<void> read_words(const Json& root, OpFile& out) const {
    OpWords& words = out.words;
    words.title = out.op;
    words.dims = out.sizes;
    for (const OpFlag& dim : out.of(OpFlagKind::kSize))
      if (std::ranges::count(words.dims, dim.name) == 0) words.dims.push_back(dim.name);
    if (!root.contains("words")) return {};
    const Json& j = root["words"];
    ROOFGEN_CHECK(only(j, {"title", "reduced", "parts", "flops"}));
    ROOFGEN_TRY(words.title, string_or(j, "title", words.title));
    ROOFGEN_TRY(words.reduced, string_or(j, "reduced", words.reduced));
    ROOFGEN_TRY(words.parts, string_or(j, "parts", words.parts));
    ROOFGEN_TRY(words.flops, string_or(j, "flops", words.flops));
    return {};
  }
};

/// A flag that is only named must be explained by another op.
Result<void> check_named(const std::vector<OpFile>& all) {
  for (const OpFlagKind kind : kOpFlagKinds) {
    std::set<std::string> explained;
    for (const OpFile& file : all)
      for (const OpFlag& flag : file.of(kind))
        if (!flag.help.empty()) explained.insert(flag.name);
    for (const OpFile& file : all)
      for (const OpFlag& flag : file.of(kind))
        if (!explained.count(flag.name))
          return with_excerpt(*file.json, {Exit::kFailed,
                                           fmt::format("no op explains \"{}\" of \"{}\"{}", flag.name,
                                                       kKindMembers[static_cast<size_t>(kind)],
                                                       did_you_mean(flag.name, {explained.begin(), explained.end()})),
                                           file.json->find(flag.name)});
  }
  return {};
}

}  // namespace

Error with_excerpt(const JsonFile& file, Error error) {
  if (error.notes.empty()) error.notes = file.excerpt(error.where);
  return error;
}

Result<OpFile> OpFile::parse(std::string text, std::string file) {
  ROOFGEN_TRY(JsonFile json, JsonFile::parse(without_comments(std::move(text)), std::move(file)));
  const auto shared = std::make_shared<const JsonFile>(std::move(json));
  auto out = OpFileReader(*shared).read();
  if (!out) return with_excerpt(*shared, std::move(out).error());
  out->json = shared;
  return out;
}

Result<OpFile> OpFile::load(const DataFiles& files, const std::string& op) {
  ROOFGEN_TRY(std::string text, files.load(path(op)));
  return parse(std::move(text), files.origin(path(op)));
}

Result<std::vector<OpFile>> OpFile::load_all(const DataFiles& files) {
  std::vector<std::string> names;
  for (const Op* op : ops()) names.push_back(op->name());
  for (const std::string& name : json_names(files, kFolder))
    if (std::ranges::count(names, name) == 0) names.push_back(name);
  std::vector<OpFile> out;
  for (const std::string& name : names) {
    ROOFGEN_TRY(out.emplace_back(), load(files, name));
  }
  ROOFGEN_CHECK(check_named(out));
  return out;
}

Result<OpWords> op_words(const DataFiles& files, const std::string& op) {
  if (!files.read(OpFile::path(op))) return OpWords{.title = op};
  ROOFGEN_TRY(OpFile file, OpFile::load(files, op));
  return std::move(file.words);
}

}  // namespace roofgen

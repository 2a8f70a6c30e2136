#include "tuner/session/op_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <type_traits>

#include "base/suggest.h"
#include "generator/pointwise/formula.h"
#include "tuner/dispatch/dispatch.h"

namespace roofgen {
namespace {

/// "kv_heads": --kv-heads; of a format --kv-dtype.
std::string flag_name(OpFlagKind kind, std::string name) {
  std::ranges::replace(name, '_', '-');
  return "--" + name + (kind == OpFlagKind::kFormat ? "-dtype" : "");
}

Result<std::vector<int64_t>> parse_sizes(const std::string& flag, const std::string& text) {
  std::vector<int64_t> out;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    int64_t size = 0;
    const auto [rest, bad] = std::from_chars(text.data() + begin, text.data() + end, size);
    if (begin == end || bad != std::errc() || rest != text.data() + end) {
      if (text.find(',') == std::string::npos)
        return Error{Exit::kUsage, fmt::format("Could not convert: {} = {}; a number was expected", flag, text)};
      return Error{Exit::kUsage,
                   fmt::format("{} {}: \"{}\" is not a size; numbers with commas were expected, as in 512,1024", flag,
                               text, text.substr(begin, end - begin))};
    }
    if (std::ranges::count(out, size) > 0)
      return Error{Exit::kUsage, fmt::format("{} {}: {} occurs twice", flag, text, size)};
    out.push_back(size);
    begin = end + 1;
  }
  return out;
}

}  // namespace

/// One flag of the command line may belong to several ops: help of the first that explains it, then what others say.
struct OpFlags::Text {
  std::string name = {}, help = {};
  std::vector<std::string> formats = {};
  std::set<std::string> ops = {}, groups = {};

  void add(const OpFile& file) {
    ops.insert(file.op);
    if (!file.group.empty()) groups.insert(file.group);
  }
  void add(const OpFile& file, const OpFlag& flag) {
    add(file);
    if (!flag.help.empty()) help += help.empty() ? flag.help : fmt::format("; {}: {}", file.op, flag.help);
    if (formats.empty()) formats = flag.formats;
  }
  std::string heading() const { return groups.size() == 1 ? *groups.begin() : "Problem"; }
};

void OpFlags::declare(FlagSet app) {
  const std::vector<OpFile>& files = app.ops();
  for (const OpFlagKind kind : kOpFlagKinds) {
    std::vector<Text> texts;
    for (const OpFile& file : files)
      for (const OpFlag& flag : file.of(kind)) {
        auto at = std::ranges::find(texts, flag.name, &Text::name);
        if (at == texts.end()) at = texts.insert(at, Text{.name = flag.name});
        at->add(file, flag);
      }
    for (const Text& text : texts) declare(app, kind, text);
  }
  Text args;
  for (const OpFile& file : files)
    if (file.args) args.add(file);
  // One --arg each; its commas are its own.
  const Flag arg =
      app.add("--arg", args_, "a tensor that an expression reads: name:dtype[indices], like slope:fp32[h]").repeated();
  given_.push_back({arg.group(args.heading()), args.ops});
}

void OpFlags::declare(FlagSet app, OpFlagKind kind, const Text& text) {
  const std::string flag = flag_name(kind, text.name);
  const auto keep = [&](auto& values) {
    using Value = typename std::remove_reference_t<decltype(values)>::mapped_type;
    return [&values, name = text.name](const Value& v) { values[name] = v; };
  };
  const Flag declared = kind == OpFlagKind::kSize ? app.add_each<std::string>(flag, keep(sizes_), text.help)
                        : kind == OpFlagKind::kSwitch
                            ? app.add_switch(
                                  flag, [this, name = text.name] { flags_[name] = true; }, text.help)
                        : kind == OpFlagKind::kNumber ? app.add_each<double>(flag, keep(reals_), text.help)
                        : kind == OpFlagKind::kText   ? app.add_each<std::string>(flag, keep(texts_), text.help)
                                                      : app.add_each<std::string>(flag, keep(dtypes_), text.help);
  given_.push_back({declared.group(text.heading()), text.ops});
  names_[static_cast<size_t>(kind)].push_back(text.name);
  if (kind == OpFlagKind::kFormat) formats_[text.name] = text.formats;
  if (kind == OpFlagKind::kText) help_[text.name] = text.help;
}

std::vector<std::string> OpFlags::names() const {
  std::vector<std::string> out;
  for (const Given& g : given_) out.push_back(g.flag.name());
  return out;
}

Result<Problem> OpFlags::problem(const std::string& op, const std::string& dtype) const {
  ROOFGEN_TRY(std::vector<Problem> all, problems(op, dtype));
  if (all.size() == 1) return std::move(all.front());
  for (const std::string& name : names_[static_cast<size_t>(OpFlagKind::kSize)])
    if (const auto size = sizes_.find(name); size != sizes_.end() && size->second.find(',') != std::string::npos)
      return Error{Exit::kUsage,
                   fmt::format("{} {}: one size was expected; only `roofgen tune OP` takes a list of sizes",
                               flag_name(OpFlagKind::kSize, name), size->second)};
  return Error{Exit::kUsage, "one problem was expected"};
}

Result<std::vector<Problem>> OpFlags::problems(const std::string& op, const std::string& dtype) const {
  ROOFGEN_TRY(Problem first, without_sizes(op, dtype));
  std::vector<Problem> out{std::move(first)};
  std::string lists;
  size_t shapes = 1;
  for (const std::string& name : names_[static_cast<size_t>(OpFlagKind::kSize)]) {
    const auto text = sizes_.find(name);
    if (text == sizes_.end()) continue;
    const std::string flag = flag_name(OpFlagKind::kSize, name);
    ROOFGEN_TRY(const std::vector<int64_t> sizes, parse_sizes(flag, text->second));
    if (sizes.size() > 1) lists += fmt::format("{}{} {}", lists.empty() ? "" : " ", flag, text->second);
    shapes *= sizes.size();
    if (shapes > kMostShapes)
      return Error{Exit::kUsage, fmt::format("{}: {} shapes; {} at most were expected", lists, shapes, kMostShapes)};
    std::vector<Problem> product;
    for (const Problem& p : out)
      for (const int64_t size : sizes) product.emplace_back(p).dims[name] = size;
    out = std::move(product);
  }
  return out;
}

Result<Problem> OpFlags::without_sizes(const std::string& op, const std::string& dtype) const {
  std::vector<std::string> has;
  for (const Given& g : given_)
    if (g.ops.count(op)) has.push_back(g.flag.name());
  for (const Given& g : given_)
    if (g.flag.given() && !g.ops.count(op))
      return Error{Exit::kUsage, fmt::format("{} has no {}; it has {}", op, g.flag.name(), fmt::join(has, ", "))};
  // A shell variable that is not set gives an empty text.
  for (const auto& [name, text] : texts_)
    if (text.empty())
      return Error{Exit::kUsage,
                   fmt::format("{} is empty; expected: {}", flag_name(OpFlagKind::kText, name), help_.at(name))};
  Problem p;
  p.op = op;
  const auto format = [](const std::string& flag, const std::string& name) -> Result<DType> {
    if (const std::optional<DType> d = parse_dtype(name)) return *d;
    return Error{Exit::kUsage,
                 fmt::format("unknown {} \"{}\"{}", flag, name,
                             did_you_mean(name, {"bf16", "fp16", "fp32", "tf32", "fp8", "int8", "int32"}))};
  };
  ROOFGEN_TRY(p.dtype, format("dtype", dtype));
  p.flags = flags_;
  p.reals = reals_;
  p.texts = texts_;
  for (const auto& [role, name] : dtypes_) {
    const std::string flag = flag_name(OpFlagKind::kFormat, role);
    if (const auto& only = formats_.at(role); !only.empty() && !parse_dtype(name))
      return Error{Exit::kUsage,
                   fmt::format("unknown {} \"{}\"; {} was expected", flag, name, fmt::join(only, " or "))};
    ROOFGEN_TRY(p.dtypes[role], format(flag, name));
  }
  for (const std::string& text : args_) {
    ROOFGEN_TRY(TensorArg arg, pointwise::parse_tensor_arg(text));
    for (const TensorArg& other : p.args)
      if (other.name == arg.name)
        return Error{Exit::kUsage, fmt::format("--arg {}: {} is declared twice", text, arg.name)};
    p.args.push_back(std::move(arg));
  }
  return p;
}

}  // namespace roofgen

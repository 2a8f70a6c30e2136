#include "generator/interface.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <iterator>
#include <sstream>
#include <tuple>

#include "generator/launch_checks.h"
#include "generator/ops/op_file.h"
#include "generator/space/json_reader.h"

namespace roofgen {
namespace {

/// Words of C23 and C++26, alternative spellings of operators included.
constexpr const char* kKeywords =
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t char32_t char8_t class "
    "co_await co_return co_yield compl concept const const_cast consteval constexpr constinit continue contract_assert "
    "decltype default delete do double dynamic_cast else enum explicit export extern false float for friend goto if "
    "inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public "
    "register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast struct "
    "switch template this thread_local throw true try typedef typeid typename typeof typeof_unqual union unsigned "
    "using "
    "virtual void volatile wchar_t while xor xor_eq";
/// Names used by the C functions themselves.
constexpr const char* kOwnNames =
    "handle stream arguments grid workspace workspace_bytes temporary status maps a int32_t int64_t";

std::set<std::string> words_of(const char* list) {
  std::istringstream in(list);
  return {std::istream_iterator<std::string>(in), {}};
}

const std::set<std::string>& keywords() {
  static const std::set<std::string> kWords = words_of(kKeywords);
  return kWords;
}

/// The part of an op's file that says how calls differ.
class Reader : public JsonReader {
 public:
  using JsonReader::expression;
  using JsonReader::expressions;
  using JsonReader::JsonReader;
  using JsonReader::list;
  using JsonReader::only;
  using JsonReader::parse;
  using JsonReader::string_or;
  using JsonReader::strings;
};

}  // namespace

bool is_c_keyword(const std::string& name) { return keywords().count(name) > 0; }

Result<Interface> Interface::load(const DataFiles& files, const Problem& problem, expr::Map scope,
                                  const std::set<std::string>& carried) {
  Interface out;
  out.problem_ = &problem;
  out.scope_ = std::move(scope);
  out.taken_ = keywords();
  out.taken_.merge(words_of(kOwnNames));
  ROOFGEN_CHECK(out.read(files));
  for (const std::string& name : carried) out.varying_.insert(out.key_of(name));
  for (const std::string& size : out.sizes_)
    if (out.scope_.count(size)) out.varying_.insert(size);
  for (const std::string& size : out.fixed_) out.varying_.erase(size);
  return out;
}

Result<void> Interface::read(const DataFiles& files) {
  ROOFGEN_TRY(const OpFile file, OpFile::load(files, problem_->op));
  const Reader reader(*file.json);
  const Json& root = file.json->root();
  sizes_ = file.sizes;
  for (const auto& [member, names] : {std::pair{"empty", &empty_}, {"bounded", &bounded_}}) {
    ROOFGEN_TRY(const std::vector<std::string> words, reader.strings(root, member));
    names->insert(words.begin(), words.end());
  }
  for (const auto& [member, words] : {std::pair{"aliases", &aliases_}, {"notes", &notes_}, {"axes", &axis_sizes_}}) {
    const Json object = root.value(member, Json::object());
    for (const auto& [key, value] : object.items()) (*words)[key] = json_words(value);
  }
  for (const char* member : {"fixed", "rules"}) {
    const Json object = root.value(member, Json::object());
    for (const auto& [key, when] : object.items()) {
      ROOFGEN_TRY(const expr::Expr condition, reader.parse(json_words(when)));
      ROOFGEN_TRY(const bool holds, condition.check(scope_));
      if (!holds) continue;
      if (member == std::string("fixed")) {
        fixed_.insert(key);
      } else {
        ROOFGEN_TRY(rules_.emplace_back(), reader.parse(key));
      }
    }
  }
  const Json presets = root.value("presets", Json::object());
  for (const auto& [key, value] : presets.items()) {
    ROOFGEN_TRY(expr::Expr preset, reader.expression(value));
    presets_.emplace_back(key, std::move(preset));
  }
  // Strides follow from sizes.
  std::ranges::stable_partition(presets_, [](const auto& preset) { return !preset.first.ends_with("_stride"); });
  const Json tensors = root.value("tensors", Json::object());
  for (const auto& [key, t] : tensors.items()) {
    ROOFGEN_CHECK(reader.only(
        t, {"when", "shape", "strides", "aligned_strides", "whole_shape", "whole_strides", "axes", "dtype", "is"}));
    Tensor tensor;
    ROOFGEN_TRY(tensor.whole_shape, reader.expressions(t, "whole_shape"));
    ROOFGEN_TRY(tensor.whole_strides, reader.expressions(t, "whole_strides"));
    ROOFGEN_TRY(tensor.strides, reader.expressions(t, "strides"));
    ROOFGEN_TRY(const std::string when, reader.string_or(t, "when", "true"));
    ROOFGEN_TRY(const expr::Expr condition, reader.parse(when));
    ROOFGEN_TRY(const bool known, condition.check(scope_));
    if (known) {
      ROOFGEN_TRY(tensor.shape, reader.expressions(t, "shape"));
      ROOFGEN_TRY(const std::vector<std::string> axes, reader.strings(t, "axes"));
      for (const std::string& axis : axes) {
        ROOFGEN_TRY(tensor.shape.emplace_back(), reader.parse(axis_sizes_[axis]));
      }
      if (t.contains("axes") && axes.empty()) {
        ROOFGEN_TRY(tensor.shape.emplace_back(), reader.parse("1"));
      }
    }
    for (const expr::Expr& e : tensor.strides) stride_order_.push_back(e.text());
    tensor.aligned_strides = t.value("aligned_strides", false);
    tensors_[key] = std::move(tensor);
  }
  // The tensors of the formulas have their indices in the scope.
  const auto formulas = scope_.find("formulas");
  if (formulas == scope_.end() || !formulas->second.map()) return {};
  for (const auto& [ignored, formula] : *formulas->second.map()) {
    const expr::Map& map = *formula.map();
    if (map.count("outputs"))
      for (const expr::Value& output : *map.at("outputs").list())
        indices_[output.map()->at("buffer").str()] =
            output.map()->at("per_row").truthy() ? std::vector<std::string>{"m"} : std::vector<std::string>{"m", "n"};
    for (const expr::Value& t : *map.at("tensors").list()) {
      if (!t.map()->count("indices")) continue;  // the offsets of packed sequences
      std::vector<std::string>& indices = indices_[t.map()->at("name").str()];
      indices.clear();
      for (const expr::Value& index : *t.map()->at("indices").list()) indices.push_back(index.str());
    }
  }
  return {};
}

const std::string& Interface::key_of(const std::string& name) const {
  const auto at = aliases_.find(name);
  return at == aliases_.end() ? name : at->second;
}

std::string Interface::add(Parameter::Kind kind, const std::string& key) {
  for (const Parameter& p : parameters_)
    if (p.key == key && (p.kind == Parameter::Kind::kTensor) == (kind == Parameter::Kind::kTensor)) return p.name;
  // A size keeps its name; a tensor of the user may have the same.
  std::string name = key;
  const bool number = kind != Parameter::Kind::kTensor;
  while ((!number && varying_.count(name)) || !taken_.insert(name).second) name += "_";
  parameters_.push_back({kind, name, key});
  return name;
}

bool Interface::has_tensor(const std::string& buffer) const {
  return std::any_of(parameters_.begin(), parameters_.end(),
                     [&](const Parameter& p) { return p.kind == Parameter::Kind::kTensor && p.key == buffer; });
}

bool Interface::is_free(const std::string& name) const {
  return !taken_.count(name) && !varying_.count(name) && !scope_.count(name);
}

std::vector<std::string> Interface::variables_in(const std::string& code) const {
  std::vector<std::string> out;
  for (const Parameter& p : parameters_)
    if (p.kind != Parameter::Kind::kTensor && has_word(code, p.name)) out.push_back(p.name);
  return out;
}

std::string Interface::variable(const std::string& name) {
  if (problem_->reals.count(name)) return add(Parameter::Kind::kReal, name);
  if (fixed_.count(name)) return "";
  if (name.ends_with("_stride") && scope_.count(name)) return add(Parameter::Kind::kStride, name);
  return varies(name) ? add(Parameter::Kind::kSize, key_of(name)) : "";
}

Result<std::string> Interface::translate(const expr::Expr& e) {
  ROOFGEN_TRY(const expr::CCode code,
              expr::to_c(e, scope_, [&](const std::string& name) -> Result<std::string> { return variable(name); }));
  return code.text;
}

Result<void> Interface::add_sizes(const std::vector<std::map<std::string, int64_t>>& shapes) {
  for (const auto& shape : shapes)
    for (const auto& [name, size] : shape)
      if (size != shapes.front().at(name) && variable(name).empty())
        return Error{
            Exit::kUsage,
            fmt::format("a list of {}: kernels of a bundle have one {}; emit one bundle for each", name, name)};
  return {};
}

Result<Interface::Layout> Interface::layout(const Buffer& buffer) {
  Layout out;
  if (const auto at = tensors_.find(buffer.name); at != tensors_.end()) {
    out.aligned_strides = at->second.aligned_strides;
    for (const expr::Expr& e : at->second.shape) {
      ROOFGEN_TRY(out.shape.emplace_back(), translate(e));
    }
    for (const expr::Expr& e : at->second.strides) {
      ROOFGEN_TRY(out.strides.emplace_back(), translate(e));
    }
  } else if (const auto indices = indices_.find(buffer.name); indices != indices_.end()) {
    for (const std::string& index : indices->second) {
      const auto size = axis_sizes_.find(index);
      if (size == axis_sizes_.end()) return Layout{};
      ROOFGEN_TRY(const expr::Expr e, expr::Expr::parse(size->second));
      ROOFGEN_TRY(out.shape.emplace_back(), translate(e));
    }
    if (indices->second.empty()) out.shape.emplace_back("1");
  }
  // Without strides of its own a tensor is contiguous.
  std::string pitch = "1";
  std::vector<std::string> contiguous;
  for (size_t i = out.shape.size(); i-- > 0;) {
    contiguous.insert(contiguous.begin(), pitch);
    const std::string side = out.shape[i].find(' ') == std::string::npos ? out.shape[i] : "(" + out.shape[i] + ")";
    pitch = pitch == "1" ? side : side + " * " + pitch;
  }
  if (out.strides.empty()) out.strides = contiguous;
  return out;
}

Result<Interface::Extent> Interface::extent(const Buffer& buffer, const expr::Map& scope) const {
  Extent out;
  if (const auto at = tensors_.find(buffer.name); at != tensors_.end()) {
    out.aligned_strides = at->second.aligned_strides;
    for (const auto& [from, to] : {std::pair{&at->second.shape, &out.shape}, {&at->second.strides, &out.strides}})
      for (const expr::Expr& e : *from) {
        ROOFGEN_TRY(to->emplace_back(), e.eval_int(scope));
      }
  } else if (const auto indices = indices_.find(buffer.name); indices != indices_.end()) {
    for (const std::string& index : indices->second) {
      const auto size = axis_sizes_.find(index);
      if (size == axis_sizes_.end()) return Extent{};
      ROOFGEN_TRY(const expr::Expr e, expr::Expr::parse(size->second));
      ROOFGEN_TRY(out.shape.emplace_back(), e.eval_int(scope));
    }
    if (indices->second.empty()) out.shape.push_back(1);
  }
  if (!out.strides.empty()) return out;
  // Without strides of its own a tensor is contiguous.
  int64_t pitch = 1;
  for (size_t i = out.shape.size(); i-- > 0; pitch *= out.shape[i]) out.strides.insert(out.strides.begin(), pitch);
  return out;
}

Result<Interface::Placed> Interface::placed(const Buffer& buffer, expr::Map scope) const {
  const int64_t elements = static_cast<int64_t>(buffer.bytes) / size_of(buffer.dtype);
  ROOFGEN_TRY(Extent extent, this->extent(buffer, scope));
  Placed out{std::move(extent.shape), std::move(extent.strides), {}};
  const auto at = tensors_.find(buffer.name);
  const std::vector<expr::Expr>* strides = at == tensors_.end() ? nullptr : &at->second.strides;
  if (out.shape.empty() && strides && !at->second.whole_shape.empty()) {
    out.strides.clear();
    scope["elements"] = elements;
    strides = &at->second.whole_strides;
    for (const auto& [from, to] : {std::pair{&at->second.whole_shape, &out.shape}, {strides, &out.strides}})
      for (const expr::Expr& e : *from) {
        ROOFGEN_TRY(to->emplace_back(), e.eval_int(scope));
      }
  }
  if (out.shape.empty()) return Placed{{elements}, {1}, {""}};
  for (size_t i = 0; i < out.shape.size(); ++i) {
    const std::string name = strides && i < strides->size() ? (*strides)[i].text() : "";
    const bool given = std::ranges::any_of(
        parameters_, [&](const Parameter& p) { return p.kind == Parameter::Kind::kStride && p.key == name; });
    out.names.push_back(given ? name : "");
  }
  return out;
}

Result<std::vector<Interface::Rule>> Interface::rules() {
  std::vector<Rule> out;
  for (const expr::Expr& e : rules_) {
    ROOFGEN_TRY(const std::string code, translate(e));
    const auto is_number = [&](const std::string& name) {
      return std::ranges::any_of(parameters_,
                                 [&](const Parameter& p) { return p.kind == Parameter::Kind::kReal && p.key == name; });
    };
    if (code != "1") out.push_back({code, e.text(), std::ranges::any_of(e.names(), is_number)});
  }
  return out;
}

bool Interface::is_empty(const expr::Map& scope) const {
  return std::ranges::any_of(parameters_, [&](const Parameter& p) {
    return p.kind == Parameter::Kind::kSize && empty_.count(p.key) && *scope.at(p.key).as<int64_t>() == 0;
  });
}

Result<expr::Map> Interface::scope_of(const expr::Map& given) const {
  expr::Map scope = scope_;
  for (const auto& [key, value] : given) scope[key] = value;
  if (const auto scalars = scope.find("scalars"); scalars != scope.end()) {
    expr::Map values = *scalars->second.map();
    for (auto& [name, value] : values)
      if (const auto own = given.find(name); own != given.end()) value = own->second;
    scalars->second = std::move(values);
  }
  for (const auto& [key, preset] : presets_)
    if (!given.count(key) && scope.count(key)) {
      ROOFGEN_TRY(scope[key], preset.eval(scope));
    }
  for (const auto& [alias, size] : aliases_)
    if (scope.count(alias)) scope[alias] = scope.at(size);
  ROOFGEN_CHECK(check(scope));
  return scope;
}

Result<void> Interface::check(const expr::Map& scope) const {
  const auto refused = [](std::string why) { return Error{Exit::kUsage, std::move(why)}; };
  const bool empty = is_empty(scope);
  std::vector<launch_number> numbers;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const auto& [kind, name, key] = parameters_[i];
    const bool stride = kind == Parameter::Kind::kStride;
    if (!stride && kind != Parameter::Kind::kSize) continue;
    numbers.push_back({static_cast<int>(i + 1), *scope.at(key).as<int64_t>(),
                       stride || empty || may_be_empty(key) ? 0 : 1, stride ? kMostStride : kMostSize,
                       !stride && !is_bounded(key)});
  }
  if (const int fault = launch_check_numbers(numbers.data(), static_cast<int>(numbers.size())); fault != LAUNCH_OK) {
    const auto n = std::ranges::find(numbers, LAUNCH_DETAIL(fault), &launch_number::parameter);
    if (n == numbers.end()) return refused("the sizes are too large together");
    const std::string& key = parameters_[static_cast<size_t>(n->parameter - 1)].key;
    return refused(n->most == kMostStride
                       ? fmt::format("{} is {}; 0 to 2^40 elements were expected", key, n->value)
                       : fmt::format("{} is {}; {} to {} was expected", key, n->value, n->least, n->most));
  }
  if (empty) return {};
  for (const expr::Expr& rule : rules_) {
    ROOFGEN_TRY(const bool holds, rule.check(scope));
    if (holds) continue;
    std::string values;
    for (const std::string& name : rule.names()) values += fmt::format("; {} is {}", name, scope.at(name).str());
    return refused(requirement(rule.text()) + values);
  }
  return {};
}

std::string Interface::note(const std::string& key) const {
  const auto at = notes_.find(key);
  return at == notes_.end() ? "" : at->second;
}

std::vector<Parameter> Interface::parameters(const std::vector<Buffer>& buffers) const {
  const auto rank = [&](const Parameter& p) {
    if (p.kind == Parameter::Kind::kReal) return 10;
    if (p.kind == Parameter::Kind::kStride)
      return 1000 +
             static_cast<int>(std::find(stride_order_.begin(), stride_order_.end(), p.key) - stride_order_.begin());
    if (p.kind == Parameter::Kind::kSize)
      return 20 + static_cast<int>(std::find(sizes_.begin(), sizes_.end(), p.key) - sizes_.begin());
    const auto b = std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& x) { return x.name == p.key; });
    return b->role == Buffer::Role::kOutput ? 2 : b->role == Buffer::Role::kUpdated ? 1 : 0;
  };
  std::vector<Parameter> out = parameters_;
  std::stable_sort(out.begin(), out.end(), [&](const Parameter& a, const Parameter& b) { return rank(a) < rank(b); });
  return out;
}

Result<std::vector<std::string>> run_time_sizes(const DataFiles& files, const std::string& op) {
  if (!files.read(OpFile::path(op))) return std::vector<std::string>();
  ROOFGEN_TRY(OpFile file, OpFile::load(files, op));
  return std::move(file.sizes);
}

std::string requirement(const std::string& condition) {
  const auto made_of = [](std::string_view text, std::string_view more) {
    return !text.empty() && std::ranges::all_of(text, [&](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || more.find(c) != std::string_view::npos;
    });
  };
  std::string multiple = condition;  // (L % 64) == 0
  std::erase_if(multiple, [](char c) { return c == '(' || c == ')'; });
  multiple = multiple.ends_with(" == 0") ? multiple.substr(0, multiple.size() - 5) : "";
  for (const auto& [text, sign, right, words] : {std::tuple{multiple, " % ", "", "a multiple of "},
                                                 {condition, " <= ", " *", "at most "},
                                                 {condition, " == ", " *", ""}}) {
    const size_t at = text.find(sign);
    if (at == std::string::npos) continue;
    const std::string left = text.substr(0, at), value = text.substr(at + std::strlen(sign));
    if (made_of(left, "") && made_of(value, right)) return fmt::format("{} must be {}{}", left, words, value);
  }
  return condition + " must hold";
}

}  // namespace roofgen

#include "generator/launch_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>

#include "generator/expr/c_code.h"

namespace roofgen {
namespace {

/// Names used by the C function itself, and keywords of C and C++.
const std::set<std::string>& reserved() {
  static const std::set<std::string> kWords = {
      "function",  "stream",   "arguments", "grid_x", "grid_y",   "grid_z",    "alignas", "alignof", "and",
      "asm",       "auto",     "bool",      "break",  "case",     "catch",     "char",    "class",   "const",
      "constexpr", "continue", "default",   "delete", "do",       "double",    "else",    "enum",    "explicit",
      "export",    "extern",   "false",     "float",  "for",      "friend",    "goto",    "if",      "inline",
      "int",       "int32_t",  "int64_t",   "long",   "mutable",  "namespace", "new",     "not",     "operator",
      "or",        "private",  "protected", "public", "register", "restrict",  "return",  "short",   "signed",
      "sizeof",    "static",   "struct",    "switch", "template", "this",      "throw",   "true",    "try",
      "typedef",   "typeid",   "typename",  "union",  "unsigned", "using",     "virtual", "void",    "volatile",
      "while"};
  return kWords;
}

/// The name in the scope that is the argument's whole expression; "" for any other expression.
std::string passed_on(const Stage::ArgSpec& arg) {
  if (!arg.value) return "";
  const std::vector<std::string> names = arg.value->names();
  return names.size() == 1 && names[0] == arg.value->text() ? names[0] : "";
}

/// Whether this argument makes the name a parameter of the C function.
bool carries(const Stage::ArgSpec& arg, const std::string& name) { return arg.type != "f32" && passed_on(arg) == name; }

class Writer {
 public:
  Writer(const EmitRequest& request, const EmittedKernel& kernel)
      : request_(request), k_(kernel), scope_(kernel.scope), taken_(reserved()) {
    for (const auto* list : {&k_.stage->problem, &k_.stage->derived})
      for (const auto& [name, e] : *list) definitions_.push_back({name, &e, std::nullopt});
    for (const auto& [name, size] : request.problem->dims) taken_.insert(name);
    scope_["tuned"] = kernel.scope;
  }

  Result<LaunchCode> write() {
    out_.name = request_.name + (k_.stage->name == request_.problem->op ? "" : "_" + k_.stage->name);
    ROOFGEN_CHECK(arguments());
    for (size_t i = 0; i < out_.arguments.size(); ++i) {
      KernelArgument& a = out_.arguments[i];
      ROOFGEN_CHECK(compute(a));
      for (KernelArgument& field : a.fields) ROOFGEN_CHECK(compute(field));
      if (a.map) ROOFGEN_CHECK(compute_map(*specs_[i]->map, a));
    }
    for (const Stage::AxisSpec& axis : k_.stage->axes) {
      ROOFGEN_TRY(const std::string code, translate(axis.extent, definitions_.size()));
      std::string& grid = out_.grid[axis.dim];
      if (code != "1")
        grid += (grid.empty() ? "" : " * ") +
                (code.find(' ') == std::string::npos || code.ends_with(')') ? code : "(" + code + ")");
    }
    for (std::string& grid : out_.grid)
      if (grid.empty()) grid = "1";
    for (const auto* of_tiles : {&k_.stage->ctas, &k_.stage->persistent}) {
      if (!*of_tiles) continue;
      ROOFGEN_TRY(const std::string ctas, translate(**of_tiles, definitions_.size()));
      if (ctas != "0") out_.grid[0] = ctas;
    }
    for (const expr::Expr& e : k_.stage->assumes) {
      ROOFGEN_TRY(const bool holds, e.check(scope_));
      if (!holds) continue;
      ROOFGEN_TRY(const std::string code, translate(e, definitions_.size()));
      if (code != "1") out_.conditions.push_back(code);
    }
    for (const std::string& size : sizes_) out_.parameters.push_back({"int64_t", size, tuned_size(size)});
    for (const std::string& stride : strides_)
      out_.parameters.push_back({"int64_t", stride, scope_.at(stride).str() + " when tuned"});
    drop_unused();
    out_.positive.assign(used_.begin(), used_.end());
    return std::move(out_);
  }

 private:
  struct Definition {
    std::string name;
    const expr::Expr* value;
    std::optional<std::string> code;  ///< its name in C, once used; "" for a constant
  };

  Result<void> compute(KernelArgument& a) {
    if (!a.value) return {};
    ROOFGEN_TRY(a.code, translate(*a.value, definitions_.size()));
    return {};
  }

  Result<void> compute_map(const Stage::MapSpec& spec, KernelArgument& a) {
    for (const expr::Expr& e : spec.dims) {
      ROOFGEN_TRY(a.dims.emplace_back(), translate(e, definitions_.size()));
    }
    for (const expr::Expr& e : spec.strides) {
      ROOFGEN_TRY(const std::string code, translate(e, definitions_.size()));
      a.stride_bytes.push_back(fmt::format("({}) * {}", code, size_of(a.map->dtype)));
    }
    return {};
  }

  /// One entry for each argument of the launch; `each` of the stage stands for several.
  Result<void> arguments() {
    size_t next = 0;  // of the launch
    for (const Stage::ArgSpec& spec : k_.stage->args) {
      size_t count = 1;
      if (spec.when) {
        ROOFGEN_TRY(count, spec.when->check(scope_));
      }
      if (spec.type == "each" && count > 0) {
        const auto formula = k_.scope.find("formula");
        const expr::Map* map = formula == k_.scope.end() ? nullptr : formula->second.map();
        count = map && map->count(spec.name) ? map->at(spec.name).list()->size() : 0;
      }
      for (; count > 0; --count, ++next) {
        if (next >= k_.launch->args.size())
          return Error{Exit::kFailed, fmt::format("{}: the launch has fewer arguments than the stage", k_.stage->name)};
        out_.arguments.push_back(argument(spec, k_.launch->args[next]));
        specs_.push_back(&spec);
      }
    }
    return {};
  }

  KernelArgument argument(const Stage::ArgSpec& spec, const Arg& arg) {
    if (arg.map)
      return {unique(spec.type == "each" ? arg.name + "_map" : spec.name),
              "tensor_map",
              pointer(arg).code,
              nullptr,
              {},
              arg.map};
    if (arg.is_buffer) return pointer(arg);
    if (!spec.fields.empty()) return structure(spec, arg);
    return scalar(spec, arg);
  }

  /// A buffer with a tensor map is one parameter, even if several arguments of the kernel refer to it.
  KernelArgument pointer(const Arg& arg) {
    const bool mapped = std::any_of(k_.launch->args.begin(), k_.launch->args.end(),
                                    [&](const Arg& a) { return a.map && a.name == arg.name; });
    if (const auto at = pointers_.find(arg.name); mapped && at != pointers_.end())
      return {at->second, "ptr", at->second};
    const auto b = std::find_if(request_.buffers.begin(), request_.buffers.end(),
                                [&](const Buffer& x) { return x.name == arg.name; });
    static constexpr const char* kRoles[] = {"input", "temporary", "output", "updated"};
    const std::string note =
        b == request_.buffers.end()
            ? "not used: 0"
            : fmt::format("{}, {}{}, {} bytes for the tuned problem{}", kRoles[static_cast<int>(b->role)],
                          to_string(b->dtype), indices(arg.name), b->bytes, b->zeroed ? ", zero before and after" : "");
    KernelArgument out = pass("CUdeviceptr", "ptr", unique(arg.name), note);
    pointers_[arg.name] = out.name;
    return out;
  }

  KernelArgument structure(const Stage::ArgSpec& spec, const Arg& arg) {
    KernelArgument out{unique(spec.name), "struct", ""};
    const std::vector<size_t> offsets = field_offsets(spec.fields);
    for (size_t i = 0; i < spec.fields.size(); ++i) {
      Arg field{spec.fields[i].name, false, 0, spec.fields[i].type == "i64" ? 8u : 4u};
      std::memcpy(&field.bits, arg.data.data() + offsets[i], field.bytes);
      out.fields.push_back(scalar(spec.fields[i], field));
    }
    return out;
  }

  KernelArgument scalar(const Stage::ArgSpec& spec, const Arg& arg) {
    const std::string name = passed_on(spec);
    const bool of_stage =
        std::any_of(definitions_.begin(), definitions_.end(), [&](const Definition& d) { return d.name == name; }) ||
        of_schedule(name);
    if (spec.type == "f32" || spec.type == "each") {
      float tuned;
      std::memcpy(&tuned, &arg.bits, sizeof tuned);
      // Numbers from the user become parameters, even if the kernel takes a multiple of them.
      const std::vector<std::string> names = spec.value ? spec.value->names() : std::vector<std::string>{};
      const bool of_user = spec.type == "each" || std::any_of(names.begin(), names.end(), [&](const std::string& n) {
                             return request_.problem->reals.count(n);
                           });
      if (of_user) return pass("float", "f32", unique(arg.name), fmt::format("{} when tuned", tuned));
    } else if (!name.empty() && !of_stage) {
      const bool own = arg.name == name && request_.problem->dims.count(name);  // a size
      const std::string c_name = own ? name : unique(arg.name);
      carriers_[name] = c_name;
      return pass("int64_t", spec.type, c_name,
                  fmt::format("{} when tuned", static_cast<int64_t>(arg.bytes == 4 ? static_cast<int32_t>(arg.bits)
                                                                                   : static_cast<int64_t>(arg.bits))));
    }
    return {spec.name, spec.type, "", &*spec.value};
  }

  /// The indices of a formula's tensor: "[m,n]".
  std::string indices(const std::string& tensor) const {
    const auto formula = k_.scope.find("formula");
    const expr::Map* map = formula == k_.scope.end() ? nullptr : formula->second.map();
    const expr::List* tensors = map && map->count("tensors") ? map->at("tensors").list() : nullptr;
    if (!tensors) return "";
    for (const expr::Value& t : *tensors) {
      if (t.map()->at("name").str() != tensor) continue;
      std::string out;
      for (const expr::Value& index : *t.map()->at("indices").list()) out += (out.empty() ? "[" : ",") + index.str();
      return out.empty() ? " (one value)" : out + "]";
    }
    return "";
  }

  KernelArgument pass(const std::string& c_type, const std::string& type, const std::string& name,
                      const std::string& note) {
    out_.parameters.push_back({c_type, name, note});
    return {name, type, name};
  }

  bool of_schedule(const std::string& name) const {
    return std::any_of(k_.stage->params.begin(), k_.stage->params.end(),
                       [&](const Param& p) { return p.name == name; });
  }

  std::string unique(std::string name) {
    while (!taken_.insert(name).second) name += "_";
    return name;
  }

  std::string tuned_size(const std::string& size) const {
    return fmt::format("{} when tuned", request_.problem->dims.at(size));
  }

  Result<std::string> translate(const expr::Expr& e, size_t position) {
    ROOFGEN_TRY(const expr::CCode code,
                expr::to_c(e, scope_, [&](const std::string& name) { return c_name(name, position); }));
    return code.text;
  }

  /// The C name of `name` in the definition at `position`: the last definition before it, or a size of the problem.
  Result<std::string> c_name(const std::string& name, size_t position) {
    for (size_t i = position; i-- > 0;)
      if (definitions_[i].name == name) return define(i);
    if (of_schedule(name)) return std::string();
    if (const auto carrier = carriers_.find(name); carrier != carriers_.end())
      return *used_.insert(carrier->second).first;
    // The caller's tensors, of which a tensor map needs the strides, may lie in memory otherwise than the tuned ones.
    if (name.ends_with("_stride") && scope_.count(name)) return *strides_.insert(name).first;
    if (!request_.problem->dims.count(name)) return std::string();
    sizes_.insert(name);
    return *used_.insert(name).first;
  }

  Result<std::string> define(size_t i) {
    Definition& d = definitions_[i];
    if (d.code) return *d.code;
    ROOFGEN_TRY(const expr::CCode code,
                expr::to_c(*d.value, scope_, [&](const std::string& name) { return c_name(name, i); }));
    if (code.constant) return d.code.emplace();
    const std::string name = taken_.count(d.name) ? unique(k_.stage->name + "_" + d.name) : unique(d.name);
    out_.definitions.emplace_back(name, code.text);
    return d.code.emplace(name);
  }

  /// Removes definitions whose only users turned out to be constant.
  void drop_unused() {
    std::string code = out_.grid[0] + " " + out_.grid[1] + " " + out_.grid[2];
    for (const KernelArgument& a : out_.arguments) {
      code += " " + a.code;
      for (const KernelArgument& field : a.fields) code += " " + field.code;
      for (const std::vector<std::string>* list : {&a.dims, &a.stride_bytes})
        for (const std::string& part : *list) code += " " + part;
    }
    for (const std::string& c : out_.conditions) code += " " + c;
    for (size_t i = out_.definitions.size(); i-- > 0;) {
      if (has_word(code, out_.definitions[i].first))
        code += " " + out_.definitions[i].second;
      else
        out_.definitions.erase(out_.definitions.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  static bool has_word(const std::string& text, const std::string& word) {
    const auto of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
    for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      if ((at == 0 || !of_name(text[at - 1])) && (at + word.size() == text.size() || !of_name(text[at + word.size()])))
        return true;
    return false;
  }

  const EmitRequest& request_;
  const EmittedKernel& k_;
  expr::Map scope_;
  std::vector<Definition> definitions_;
  std::map<std::string, std::string> carriers_;  ///< name in the problem's scope -> parameter with its value
  std::set<std::string> sizes_;                  ///< sizes that no argument has
  std::set<std::string> strides_;                ///< strides that no argument has
  std::set<std::string> used_;                   ///< parameters that other values depend on
  std::set<std::string> taken_;
  std::map<std::string, std::string> pointers_;  ///< buffer -> its parameter
  std::vector<const Stage::ArgSpec*> specs_;     ///< of out_.arguments
  LaunchCode out_;
};

}  // namespace

Result<LaunchCode> launch_code(const EmitRequest& request, const EmittedKernel& kernel) {
  return Writer(request, kernel).write();
}

Result<BytesCode> bytes_code(const EmitRequest& request, const Variant::Temporary& temporary) {
  BytesCode out;
  std::set<std::string> sizes;
  expr::Map scope = request.scope;
  const auto& constants = request.variant->constants;
  for (const auto& [name, value] : constants) scope[name] = value;
  const auto varies = [&](const std::string& name) {
    if (request.problem->dims.count(name)) return true;
    if (std::any_of(constants.begin(), constants.end(), [&](const auto& c) { return c.first == name; })) return false;
    for (const EmittedKernel& k : request.kernels)
      for (const Stage::ArgSpec& a : k.stage->args)
        if (carries(a, name) ||
            std::any_of(a.fields.begin(), a.fields.end(), [&](const auto& f) { return carries(f, name); }))
          return true;
    return false;
  };
  ROOFGEN_TRY(const expr::CCode code,
              expr::to_c(temporary.bytes, scope, [&](const std::string& name) -> Result<std::string> {
                if (!varies(name)) return std::string();
                sizes.insert(name);
                return name;
              }));
  return BytesCode{{sizes.begin(), sizes.end()}, code.text};
}

}  // namespace roofgen

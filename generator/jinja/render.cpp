// Runs a parsed template.
#include <fmt/format.h>

#include <algorithm>

#include "generator/expr/eval.h"
#include "generator/expr/operators.h"
#include "generator/jinja/jinja.h"
#include "generator/jinja/output.h"
#include "generator/jinja/parser.h"

namespace roofgen::jinja {
namespace {

using expr::Evaluator;
using expr::Node;
using expr::Site;
using expr::Value;

struct Frame;

struct MacroRef {
  const Template* where;
  const Macro* macro;
  const Frame* home;  ///< the top level of its template, visible to its body
};

/// The variables of one scope: a template's top level, one iteration of a loop, or one macro call.
struct Frame {
  const Frame* parent = nullptr;
  bool include_border = false;  ///< an included template sees everything but the includer's `loop`
  expr::Map vars = {};
  std::map<std::string, MacroRef> macros = {};                 ///< at a top level only
  std::map<std::string, std::shared_ptr<Frame>> imports = {};  ///< likewise
};

/// The template and scope of a statement.
struct Place {
  const Template& tmpl;
  Frame& frame;
};

class Renderer {
 public:
  Renderer(const Loader& loader, const expr::Map& context, const Limits& limits)
      : loader_(loader), context_(context), limits_(limits), budget_{limits.steps, 1000} {}

  Rendered run(std::string_view name) {
    const Template* tmpl = load(std::string(name));
    if (!tmpl) throw Failure{Error{Exit::kFailed, fmt::format("no template \"{}\"", name)}};
    Frame outside{.vars = context_}, top{.parent = &outside};
    OutputText out(true);
    run({*tmpl, top}, tmpl->body, out);
    LineMap map = out.line_map();
    return {out.take(), std::move(map)};
  }

 private:
  class TemplateScope;

  Site site(const Place& place, Span at) { return {place.tmpl.source, at, budget_}; }

  /// nullptr if there is no such template; each is parsed once.
  const Template* load(const std::string& name) {
    if (auto it = templates_.find(name); it != templates_.end()) return it->second.get();
    const std::optional<std::string> text = loader_(name);
    if (!text) return nullptr;
    if (text->size() > limits_.template_bytes)
      throw Failure{Error{Exit::kFailed,
                          fmt::format("a template of {} bytes; the limit is {}", text->size(), limits_.template_bytes),
                          {name}}};
    return (templates_[name] = parse(name, *text)).get();
  }

  /// Runs `job`; errors get a note with the call or include at `at`.
  template <class Job>
  void nested(const Site& at, std::string_view how, Job job) {
    if (++calls_ > limits_.calls)
      at.fail(fmt::format("includes and macro calls nest too deeply; the limit is {}", limits_.calls));
    try {
      job();
    } catch (Failure& failure) {
      const Where w = locate(at.source, at.at.begin);
      add_note(failure.error, fmt::format("{} {}:{}:{}", how, w.file, w.line, w.col));
      throw;
    }
    --calls_;
  }

  void run(const Place& place, const Block& block, OutputText& out) {
    for (const Statement& s : block) {
      const Site here = site(place, s.at);
      here.charge(1);
      std::visit([&](const auto& statement) { run(place, s, statement, out); }, s.as);
      if (out.size() > limits_.output_bytes)
        here.fail(fmt::format("the output is longer than {} bytes", limits_.output_bytes));
    }
  }

  void run(const Place& place, const Statement& s, const Text& text, OutputText& out) {
    site(place, s.at).charge(text.text.size() / 16);
    out.append_text(text.text, place.tmpl.source.origin.file, s.line);
  }

  void run(const Place&, const Statement&, const Output&, OutputText&);
  void run(const Place&, const Statement&, const If&, OutputText&);
  void run(const Place&, const Statement&, const For&, OutputText&);
  void run(const Place&, const Statement&, const Set&, OutputText&);
  void run(const Place&, const Statement&, const Macro&, OutputText&);
  void run(const Place&, const Statement&, const Include&, OutputText&);
  void run(const Place&, const Statement&, const Import&, OutputText&);
  void run(const Place&, const Statement&, const Assert&, OutputText&);

  void assign_items(const Place& place, const For& loop, const Value& item, Frame& frame);
  const Template& load_from(const Place& place, const Node& name, std::string_view how);
  std::optional<MacroRef> find_macro(const Frame& frame, const Node& callee) const;
  void call_macro(const MacroRef& ref, const Node& call, Evaluator& caller, const Site& at, OutputText& out);

  const Loader& loader_;
  const expr::Map& context_;
  const Limits& limits_;
  expr::Budget budget_;
  int calls_ = 0;
  std::map<std::string, std::unique_ptr<Template>> templates_;
};

/// The names visible to expressions of a template.
class Renderer::TemplateScope final : public expr::Scope {
 public:
  TemplateScope(Renderer& renderer, const Frame& frame) : renderer_(renderer), frame_(frame) {}

  const Value* find(const std::string& name) const override {
    for (const Frame* f = &frame_; f; f = f->parent) {
      if (auto it = f->vars.find(name); it != f->vars.end()) return &it->second;
      if (f->include_border && name == "loop") return nullptr;
    }
    return nullptr;
  }

  std::vector<std::string> names() const override {
    std::vector<std::string> out;
    for (const Frame* f = &frame_; f; f = f->parent) {
      for (const auto& [name, value] : f->vars) out.push_back(name);
      for (const auto& [name, value] : f->macros) out.push_back(name);
      for (const auto& [name, value] : f->imports) out.push_back(name);
    }
    return out;
  }

  bool is_macro(const std::string& name) const override {
    for (const Frame* f = &frame_; f; f = f->parent)
      if (f->macros.count(name) || f->imports.count(name)) return true;
    return false;
  }

  static const Frame* find_import(const Frame& frame, const std::string& name) {
    for (const Frame* f = &frame; f; f = f->parent)
      if (auto it = f->imports.find(name); it != f->imports.end()) return it->second.get();
    return nullptr;
  }

  const Value* member(const Node& node, const Site& at) const override {
    const Frame* module = find_import(frame_, node.args[0].name);
    if (!module) return nullptr;
    auto it = module->vars.find(node.name);
    if (it == module->vars.end() || node.name[0] == '_')
      at.fail(fmt::format("the imported template \"{}\" sets no variable \"{}\"", node.args[0].name, node.name));
    return &it->second;
  }

  std::optional<Value> call(const Node& node, Evaluator& caller, const Site& at) const override {
    const std::optional<MacroRef> ref = macro(node, at);
    if (!ref) return std::nullopt;
    OutputText out(false);
    renderer_.call_macro(*ref, node, caller, at, out);
    return expr::make_string(out.take(), at);
  }

  /// The called macro; nullopt for a function.
  std::optional<MacroRef> macro(const Node& node, const Site& at) const {
    const Node& callee = node.args[0];
    if (callee.kind == expr::Kind::kName && find(callee.name))
      at.fail(fmt::format("\"{}\" is a variable, it cannot be called", callee.name));
    auto ref = renderer_.find_macro(frame_, callee);
    if (!ref && callee.kind == expr::Kind::kAttr) {
      const std::string& module = callee.args[0].name;
      if (find(module) || !find_import(frame_, module))
        at.fail(fmt::format("\"{}\" is not an imported template", module));
      at.fail(fmt::format("the imported template \"{}\" has no macro \"{}\"", module, node.name));
    }
    return ref;
  }

 private:
  Renderer& renderer_;
  const Frame& frame_;
};

std::optional<MacroRef> Renderer::find_macro(const Frame& frame, const Node& callee) const {
  const auto in = [](const Frame& f, const std::string& name) -> std::optional<MacroRef> {
    auto it = f.macros.find(name);
    return it == f.macros.end() ? std::nullopt : std::optional(it->second);
  };
  if (callee.kind == expr::Kind::kAttr) {
    const Frame* module = TemplateScope::find_import(frame, callee.args[0].name);
    return module && callee.name[0] != '_' ? in(*module, callee.name) : std::nullopt;
  }
  for (const Frame* f = &frame; f; f = f->parent)
    if (auto ref = in(*f, callee.name)) return ref;
  return std::nullopt;
}

void Renderer::run(const Place& place, const Statement& s, const Output& output, OutputText& out) {
  const TemplateScope scope(*this, place.frame);
  Evaluator evaluator(place.tmpl.source, scope, budget_);
  const Site here = site(place, output.value.at);
  if (output.value.kind == expr::Kind::kCall) {
    // A macro writes directly into the output, so that its lines keep their origin.
    if (const auto ref = scope.macro(output.value, here)) return call_macro(*ref, output.value, evaluator, here, out);
  }
  out.append_value(expr::make_text(evaluator.eval(output.value), here), place.tmpl.source.origin.file, s.line);
}

void Renderer::run(const Place& place, const Statement& s, const If& branches, OutputText& out) {
  const expr::Depth depth(site(place, s.at));
  const TemplateScope scope(*this, place.frame);
  Evaluator evaluator(place.tmpl.source, scope, budget_);
  for (const If::Branch& branch : branches.branches)
    if (!branch.test || evaluator.truth(*branch.test)) return run(place, branch.body, out);
}

void Renderer::assign_items(const Place& place, const For& loop, const Value& item, Frame& frame) {
  if (loop.targets.size() == 1) {
    frame.vars[loop.targets[0]] = item;
    return;
  }
  const expr::List* parts = item.list();
  if (!parts || parts->size() != loop.targets.size())
    site(place, loop.items.at).fail(fmt::format("each item must be a list of {}", loop.targets.size()));
  for (size_t i = 0; i < parts->size(); ++i) frame.vars[loop.targets[i]] = (*parts)[i];
}

void Renderer::run(const Place& place, const Statement& s, const For& loop, OutputText& out) {
  const expr::Depth depth(site(place, s.at));
  const TemplateScope scope(*this, place.frame);
  const Value items = Evaluator(place.tmpl.source, scope, budget_).eval(loop.items);
  expr::List keys;
  if (const expr::Map* map = items.map())
    for (const auto& [key, value] : *map) keys.emplace_back(key);
  else if (!items.list())
    site(place, loop.items.at).fail(fmt::format("a loop runs over a list or a map, not {}", items.type_name()));
  const expr::List& list = items.list() ? *items.list() : keys;
  const auto length = static_cast<int64_t>(list.size());
  for (int64_t i = 0; i < length; ++i) {
    Frame frame{.parent = &place.frame};
    assign_items(place, loop, list[static_cast<size_t>(i)], frame);
    if (loop.uses_loop)
      frame.vars["loop"] =
          expr::Map{{"index", i + 1}, {"index0", i}, {"first", i == 0}, {"last", i + 1 == length}, {"length", length}};
    site(place, s.at).charge(1);
    run({place.tmpl, frame}, loop.body, out);
  }
}

void Renderer::run(const Place& place, const Statement& s, const Set& set, OutputText&) {
  const TemplateScope scope(*this, place.frame);
  if (scope.is_macro(set.name))
    site(place, s.at).fail(fmt::format("\"{}\" is a macro or an imported template", set.name));
  Value value = Evaluator(place.tmpl.source, scope, budget_).eval(set.value);
  place.frame.vars[set.name] = std::move(value);
}

void Renderer::run(const Place& place, const Statement& s, const Macro& macro, OutputText&) {
  const TemplateScope scope(*this, place.frame);
  if (scope.find(macro.name)) site(place, s.at).fail(fmt::format("\"{}\" is already a variable", macro.name));
  if (place.frame.imports.count(macro.name))
    site(place, s.at).fail(fmt::format("\"{}\" is already an imported template", macro.name));
  place.frame.macros.insert_or_assign(macro.name, MacroRef{&place.tmpl, &macro, &place.frame});
}

const Template& Renderer::load_from(const Place& place, const Node& name, std::string_view how) {
  const TemplateScope scope(*this, place.frame);
  const Value value = Evaluator(place.tmpl.source, scope, budget_).eval(name);
  const Site at = site(place, name.at);
  const auto* text = value.as<std::string>();
  if (!text) at.fail(fmt::format("the name of a template is a string, not {}", value.type_name()));
  const Template* tmpl = nullptr;
  nested(at, how, [&] { tmpl = load(*text); });
  if (!tmpl) at.fail(fmt::format("no template \"{}\"", *text));
  return *tmpl;
}

void Renderer::run(const Place& place, const Statement&, const Include& include, OutputText& out) {
  const Site at = site(place, include.name.at);
  const expr::Depth depth(at);
  const Template& tmpl = load_from(place, include.name, "included from");
  Frame top{.parent = &place.frame, .include_border = true};
  nested(at, "included from", [&] { run({tmpl, top}, tmpl.body, out); });
}

void Renderer::run(const Place& place, const Statement& s, const Import& import, OutputText&) {
  const TemplateScope scope(*this, place.frame);
  if (scope.find(import.as)) site(place, s.at).fail(fmt::format("\"{}\" is already a variable", import.as));
  if (place.frame.macros.count(import.as)) site(place, s.at).fail(fmt::format("\"{}\" is already a macro", import.as));
  const Site at = site(place, import.name.at);
  const expr::Depth depth(at);
  const Template& tmpl = load_from(place, import.name, "imported from");
  auto module = std::make_shared<Frame>();
  OutputText unused(false);
  nested(at, "imported from", [&] { run({tmpl, *module}, tmpl.body, unused); });
  place.frame.imports[import.as] = std::move(module);
}

void Renderer::run(const Place& place, const Statement& s, const Assert& assertion, OutputText&) {
  const TemplateScope scope(*this, place.frame);
  Evaluator evaluator(place.tmpl.source, scope, budget_);
  if (evaluator.truth(assertion.test)) return;
  const std::string why = evaluator.explain(assertion.test);
  const Site at = site(place, assertion.test.span);
  at.fail(fmt::format("{}: {}", expr::make_text(evaluator.eval(assertion.message), at), why));
}

void Renderer::call_macro(const MacroRef& ref, const Node& call, Evaluator& caller, const Site& at, OutputText& out) {
  const expr::Depth depth(at);
  const Macro& macro = *ref.macro;
  Frame frame{.parent = ref.home};
  const size_t given = call.args.size() - 1, positional = given - call.keywords.size();
  if (positional > macro.params.size())
    at.fail(fmt::format("macro {} takes {} argument{}, not {}", macro.name, macro.params.size(),
                        macro.params.size() == 1 ? "" : "s", positional));
  for (size_t i = 0; i < given; ++i) {
    const std::string& name = i < positional ? macro.params[i].name : call.keywords[i - positional];
    const bool known = std::any_of(macro.params.begin(), macro.params.end(), [&](auto& p) { return p.name == name; });
    if (!known) at.fail(fmt::format("macro {} has no parameter \"{}\"", macro.name, name));
    if (!frame.vars.emplace(name, caller.eval(call.args[i + 1])).second)
      at.fail(fmt::format("argument \"{}\" of macro {} is given twice", name, macro.name));
  }
  const Place inside{*ref.where, frame};
  nested(at, fmt::format("in macro \"{}\", called from", macro.name), [&] {
    const TemplateScope scope(*this, frame);
    Evaluator evaluator(ref.where->source, scope, budget_);
    for (const Macro::Param& p : macro.params) {
      if (frame.vars.count(p.name)) continue;
      if (!p.preset) at.fail(fmt::format("argument \"{}\" of macro {} is missing", p.name, macro.name));
      frame.vars[p.name] = evaluator.eval(*p.preset);
    }
    run(inside, macro.body, out);
  });
}

}  // namespace

Result<Rendered> render(const Loader& loader, std::string_view name, const expr::Map& context, const Limits& limits) {
  try {
    return Renderer(loader, context, limits).run(name);
  } catch (Failure& failure) {
    return std::move(failure.error);
  }
}

}  // namespace roofgen::jinja

#include "generator/jinja/names.h"

namespace roofgen::jinja {

void Names::read(const expr::Node& node) {
  std::set<std::string> names;
  expr::collect_names(node, names);
  for (const std::string& name : names)
    if (!scopes_.back().bound.count(name)) scopes_.back().read.insert(name);
}

bool Names::was_read(const std::string& name) const { return scopes_.back().read.count(name) > 0; }

const char* Names::set(const std::string& name, const expr::Node& value) {
  State& scope = scopes_.back();
  const bool known = scope.bound.count(name) > 0;
  if (!known && scope.read.count(name))
    return "is set after this scope has read it; set it before, or use another name";
  std::set<std::string> names;
  expr::collect_names(value, names);
  if (!known && scope.ifs > 0 && names.count(name))
    return "is set from its own outer value inside an if; set it before the if, or use another name";
  scope.bound.insert(name);
  names.erase(name);
  for (const std::string& other : names)
    if (!scope.bound.count(other)) scope.read.insert(other);
  return nullptr;
}

Names::Scope::Scope(Names& names, const std::vector<std::string>& bound) : names_(names) {
  names_.scopes_.emplace_back();
  names_.scopes_.back().bound.insert(bound.begin(), bound.end());
}

Names::Scope::~Scope() {
  const State inner = std::move(names_.scopes_.back());
  names_.scopes_.pop_back();
  State& outer = names_.scopes_.back();
  for (const std::string& name : inner.read)
    if (!outer.bound.count(name)) outer.read.insert(name);
}

Names::Branches::Branches(Names& names) : names_(names), before_(names.scopes_.back().bound), after_(before_) {
  ++names_.scopes_.back().ifs;
}

void Names::Branches::next() {
  std::set<std::string>& bound = names_.scopes_.back().bound;
  after_.insert(bound.begin(), bound.end());
  bound = before_;
}

Names::Branches::~Branches() {
  std::set<std::string>& bound = names_.scopes_.back().bound;
  bound.insert(after_.begin(), after_.end());
  --names_.scopes_.back().ifs;
}

}  // namespace roofgen::jinja

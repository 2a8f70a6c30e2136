// The names that a scope of a template has read and set, up to the current position in the text.
//
// Jinja2 assigns each name of a scope to a frame before the scope runs. A name that is read first and set later in the
// same scope may then be the outer variable or undefined, depending on branches and nested scopes. Such templates are
// refused, so that accepted templates mean the same in both engines.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "generator/expr/ast.h"

namespace roofgen::jinja {

class Names {
 public:
  Names() : scopes_(1) {}

  void read(const expr::Node& node);             ///< every name the expression reads
  bool was_read(const std::string& name) const;  ///< in the innermost scope, before it was bound
  void bind(const std::string& name) { scopes_.back().bound.insert(name); }
  /// `set name = value`; nullptr, or the reason for a refusal.
  const char* set(const std::string& name, const expr::Node& value);

  /// A loop body or a macro.
  class Scope {
   public:
    Scope(Names& names, const std::vector<std::string>& bound);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Names& names_;
  };

  /// The branches of an `if`: each starts with the names set before it.
  class Branches {
   public:
    explicit Branches(Names& names);
    ~Branches();
    void next();  ///< a branch begins
    Branches(const Branches&) = delete;
    Branches& operator=(const Branches&) = delete;

   private:
    Names& names_;
    std::set<std::string> before_, after_;
  };

 private:
  struct State {
    std::set<std::string> bound;  ///< set here, or a loop variable or parameter
    std::set<std::string> read;   ///< read here or in a nested scope, and not bound here
    int ifs = 0;
  };
  std::vector<State> scopes_;
};

}  // namespace roofgen::jinja

// The precompiled header of all targets but the hot ones, to which JSON would be a cost without a use.
#pragma once

// nlohmann's literal operator instantiates the parser in each file: 0.9 s, used or not. With this macro the operator is
// declared alone, and its body is that of a template which nobody instantiates.
#define JSON_USE_GLOBAL_UDLS 0
#define _json                      \
  _json(const char*, std::size_t); \
  template <class>                 \
  inline nlohmann::json no_literal
#include <nlohmann/json.hpp>
#undef _json

#include "base/precompiled.h"

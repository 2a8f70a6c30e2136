// The precompiled header of all targets but the hot ones: JSON costs each file that has it half a second, used or not,
// for nlohmann's literal operator instantiates the parser.
#pragma once

#include <nlohmann/json.hpp>

#include "base/precompiled.h"

// The shared variable that each address derives from, as far as the code shows it. An access that leaves one variable
// for another stays inside shared memory: only the variable that was meant shows that it is wrong.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/sim/code.h"

namespace roofgen::sim {

/// How the result of an instruction derives from addresses among its sources.
enum class Derives : uint8_t {
  kOther,       ///< if a source is an address, the result is anything
  kCopy,        ///< one of the sources
  kSum,         ///< an address moved by a number
  kDifference,  ///< the same, by subtraction
  kProductSum,  ///< a number plus the third source
};
Derives derivation(std::string_view opcode);

/// Fills Kernel::variable_at from Kernel::operands. `derives` is by instruction, and may end before the last;
/// `of_constant`: constants that are addresses of a variable, by virtual register.
void find_shared_variables(Kernel& kernel, const std::vector<Derives>& derives,
                           const std::unordered_map<uint32_t, uint32_t>& of_constant);

}  // namespace roofgen::sim

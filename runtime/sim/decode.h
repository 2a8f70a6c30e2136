// PtxFunction to Kernel: names resolved, opcodes looked up, operands checked against the
// instruction's shape, registers mapped to rows. Unknown instructions and operands are an Error with their line; where
// the caller asks for it, an instruction of the PTX ISA that is not modelled becomes a trap of its own.
#pragma once

#include <functional>

#include "runtime/executor.h"
#include "runtime/sim/code.h"
#include "runtime/sim/opcode_table.h"
#include "runtime/sim/ptx_ast.h"

namespace roofgen::sim {

inline constexpr uint32_t kMaxRows = 1u << 16;
inline constexpr size_t kMaxInstructions = size_t{1} << 22;

/// Device address of a module-scope .global or .const variable, allocated on first use.
using GlobalAddress = std::function<Result<uint64_t>(const PtxVar&)>;

Result<Kernel> decode_kernel(const PtxModule& module, const PtxFunction& function, const OpcodeTable& opcodes,
                             const GlobalAddress& global_address, const std::string& file,
                             NotModelled not_modelled = NotModelled::kRefused);

}  // namespace roofgen::sim

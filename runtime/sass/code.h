// The machine code of compiled kernels: CUBINs to instructions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofgen/result.h"
#include "runtime/sass/cubin.h"
#include "runtime/sass/instruction.h"

namespace roofgen::sass {

/// One kernel. `cubin` holds its constants and variables.
struct Code {
  std::string kernel;
  std::string arch;  ///< "sm_90"
  Cubin cubin;
  uint32_t first_param = 0, param_bytes = 0;
  std::vector<uint32_t> param_offsets;  ///< of each parameter, from first_param on
  std::vector<Instruction> instructions;
  std::vector<std::string> unknown;  ///< mnemonics that are not in the opcode table, each once
  size_t bytes() const { return instructions.size() * 16; }
};

/// A CUBIN and the kernel that is wanted of it.
struct CodeRequest {
  std::string_view cubin;
  std::string kernel;
  std::string arch;
};

/// Reads the code of several kernels with one run of the disassembler for each architecture. The CUBINs must outlive
/// the result. An Error in place of a kernel concerns that one only; Exit::kUnavailable: no disassembler.
std::vector<Result<Code>> read_code(const std::vector<CodeRequest>& requests);
/// The same without a disassembler: from what `disassemble` gave for the code of the kernel before.
Result<Code> read_code(const CodeRequest& request, const std::vector<Text>& texts);

}  // namespace roofgen::sass

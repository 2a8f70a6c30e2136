// Machine code to the text of its instructions, by NVIDIA's nvdisasm (in CUDA toolkits, and the PyPI package
// nvidia-cuda-nvdisasm).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "roofgen/result.h"

namespace roofgen::sass {

/// One instruction as nvdisasm prints it. Branch targets are addresses.
struct Text {
  std::string predicate;  ///< "@!P0", or empty
  std::string opcode;     ///< "LDG.E.128.CONSTANT"
  std::string operands;   ///< "R5,[R2.64+0x10]"
};

/// Where nvdisasm comes from.
inline constexpr const char* kNoNvdisasm =
    "nvdisasm was not found; install a CUDA toolkit, or run `python3 -m pip install --target DIR nvidia-cuda-nvdisasm` "
    "and set ROOFGEN_NVDISASM=DIR/nvidia/cu13/bin/nvdisasm";
/// Path of nvdisasm: ROOFGEN_NVDISASM, PATH, a private prefix beside the program, CUDA toolkits. Empty: none was found.
const std::string& nvdisasm_path();

/// Disassembles several pieces of code of one architecture ("sm_90") in one process, whose start takes 0.3 s. The
/// addresses of each piece begin at 0. Errors: Exit::kUnavailable without nvdisasm.
Result<std::vector<std::vector<Text>>> disassemble(const std::string& arch, const std::vector<std::string_view>& code);

}  // namespace roofgen::sass

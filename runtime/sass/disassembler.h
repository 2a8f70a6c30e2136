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

/// A place in a source, by nvdisasm's line table.
struct TextLine {
  std::string file;
  int line = 0;  ///< 0: unknown
};

/// Path of nvdisasm: ROOFGEN_NVDISASM, PATH, a private prefix beside the program, CUDA toolkits. Empty: none was found.
const std::string& nvdisasm_path();

/// Disassembles several pieces of code of one architecture ("sm_90") in one process, whose start takes 0.3 s. The
/// addresses of each piece begin at 0. Errors: Exit::kUnavailable without nvdisasm.
Result<std::vector<std::vector<Text>>> disassemble(const std::string& arch, const std::vector<std::string_view>& code);

/// The source line of each instruction of a kernel, for CUBINs compiled with line numbers; an empty list without.
Result<std::vector<TextLine>> line_table(std::string_view cubin, const std::string& kernel);

}  // namespace roofgen::sass

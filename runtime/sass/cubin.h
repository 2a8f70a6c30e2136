// The parts of a CUBIN that its machine code refers to. A CUBIN is an ELF file of the machine EM_CUDA.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "roofgen/result.h"

namespace roofgen::sass {

inline constexpr uint64_t kInstructionBytes = 16;

/// A place that holds an address of a variable or a kernel: a word of constant bank 4, or of the line programs.
struct AddressSlot {
  uint32_t offset = 0;  ///< in the bank
  std::string variable;
  uint64_t addend = 0;
};

/// Where a variable of the module lies, and its initial bytes (empty: zeros).
struct Variable {
  std::string name;
  uint64_t bytes = 0;
  std::string initial;
  bool constant = false;  ///< in constant bank 3
  uint32_t offset = 0;    ///< of a constant variable, in its bank
};

struct CubinKernel {
  std::string name;
  std::string_view code;     ///< a view of the CUBIN
  uint32_t first_param = 0;  ///< byte of constant bank 0 where the parameters begin
  uint32_t param_bytes = 0;
  std::vector<uint32_t> param_offsets;    ///< of each parameter, from first_param on
  std::map<int, std::string> banks = {};  ///< constants of this kernel, by bank
};

struct Cubin {
  int sm = 0;  ///< 90
  std::vector<CubinKernel> kernels;
  std::map<int, std::string> banks;  ///< constants of the whole module, by bank
  std::vector<AddressSlot> addresses;
  std::vector<Variable> variables;
  std::string_view line_programs;           ///< a view of the CUBIN
  std::vector<AddressSlot> line_addresses;  ///< kernels, by the place of their address in the line programs
};

/// Reads the bytes of a CUBIN, which must outlive the result. Errors: Exit::kFailed, naming the broken part.
Result<Cubin> read_cubin(std::string_view bytes);

}  // namespace roofgen::sass

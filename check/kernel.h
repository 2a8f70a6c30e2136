// Selects the kernel of the PTX and checks the arguments against its parameters.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "check/check.h"

namespace roofgen::check {

struct Entry {
  std::string mangled;
  std::string full;  ///< demangled, with its parameters: "void scale<float>(float*, int)"
  std::string name;  ///< "scale<float>"
  std::vector<uint64_t> param_bytes;
  std::vector<std::string> param_types;  ///< demangled; empty if the name does not contain them
};

std::string demangled(const std::string& name);
Result<std::vector<Entry>> entries_of(const std::string& ptx, const std::string& file);
/// `templates`: names of the kernel templates in the source, for the message.
Result<Entry> find_kernel(const std::vector<Entry>& entries, const Request& request,
                          const std::vector<std::string>& templates);
/// Compares sizes, and types if the mangled name contains them. `notes` gets suspicious but possible type pairs.
Result<void> check_arguments(const Entry& entry, const std::vector<Argument>& args, std::vector<std::string>& notes);

}  // namespace roofgen::check

// Which kernel of the PTX is meant, and whether the arguments fit it.
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
  std::vector<std::string> param_types;  ///< as the demangler prints them; empty where the name does not tell
};

std::string demangled(const std::string& name);
Result<std::vector<Entry>> entries_of(const std::string& ptx, const std::string& file);
/// `templates`: those of kernels in the source, for the message.
Result<Entry> find_kernel(const std::vector<Entry>& entries, const Request& request,
                          const std::vector<std::string>& templates);
/// The arguments against the parameters' sizes, and against their types where the mangled name has them. `notes`: what
/// looks wrong and may be meant.
Result<void> check_arguments(const Entry& entry, const std::vector<Argument>& args, std::vector<std::string>& notes);

}  // namespace roofgen::check

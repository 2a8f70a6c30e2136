// Selects the kernel of the PTX and checks the arguments against its parameters.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "check/check.h"
#include "check/host_code.h"

namespace roofgen::check {

struct Entry {
  std::string mangled;
  std::string full;  ///< demangled, with its parameters: "void scale<float>(float*, int)"
  std::string name;  ///< "scale<float>"
  std::vector<uint64_t> param_bytes;
  Dim3 cluster;                          ///< that the kernel requires
  bool counts_clusters = false;          ///< the grid of a launch, not CTAs (.blocksareclusters)
  std::vector<std::string> param_types;  ///< demangled; empty if the name does not contain them
  /// The CTAs of a launch.
  Dim3 ctas_of(const Dim3& grid) const;
};

/// The demangled type of a CUtensorMap.
inline constexpr std::string_view kTensorMapType = "CUtensorMap_st";

/// The demangled name of a function without its return type and parameters.
std::string function_of(const std::string& mangled);
Result<std::vector<Entry>> entries_of(const std::string& ptx, const std::string& file);
/// `templates`: names of the kernel templates in the source, for the message.
Result<Entry> find_kernel(const std::vector<Entry>& entries, const Request& request,
                          const std::vector<std::string>& templates);
/// Compares sizes, and types if the mangled name contains them. `notes` gets suspicious but possible type pairs.
Result<void> check_arguments(const Entry& entry, const std::vector<Argument>& args, std::vector<std::string>& notes);

struct Compiled {
  Binary binary;
  std::string compiler;                ///< empty for PTX
  std::string instance;                ///< mangled name of the instance that --kernel asks for; or empty
  std::optional<Error> asked_error;    ///< why there is no instance
  std::vector<std::string> templates;  ///< names of the kernel templates in the source
  std::vector<LeftOut> left_out;
  /// The user's name for a file of the line table.
  std::function<std::string(const std::string&)> own_name;
};

/// The kernel that a request names, of the PTX or of the compiled source.
struct Chosen {
  Compiled compiled;
  Entry entry;
};
Result<Chosen> choose_kernel(const Request& request);

}  // namespace roofgen::check

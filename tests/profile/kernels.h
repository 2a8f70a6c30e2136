// The kernels of this folder as requests to roofgen profile.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <sstream>
#include <string>

#include "../check/kernel_files.h"
#include "profile/compiled.h"
#include "runtime/compiler.h"
#include "runtime/sass/disassembler.h"

namespace roofgen::profile {

inline std::vector<check::Kernel> kernels() { return check::kernels_in(ROOFGEN_PROFILE_KERNELS); }

inline check::Kernel kernel(const std::string& name) {
  for (check::Kernel& k : kernels())
    if (k.name == name) return k;
  ADD_FAILURE() << "no kernel " << name;
  return {};
}

/// Why no kernel can be profiled here; empty: they can.
inline std::string missing_program() {
  if (!nvrtc_info().found) return "no NVRTC on this machine";
  if (sass::nvdisasm_path().empty()) return "no nvdisasm on this machine";
  return {};
}

inline const DataFiles& data_files() {
  static const DataFiles files;
  return files;
}

/// 1-based numbers of the lines that have "<- here".
inline std::set<int> marked_lines(const std::string& text) {
  std::set<int> out;
  std::istringstream lines(text);
  int number = 1;
  for (std::string line; std::getline(lines, line); ++number)
    if (line.find("<- here") != std::string::npos) out.insert(number);
  return out;
}

inline Result<Request> profile_request_of(const check::Kernel& k) {
  Request r;
  ROOFGEN_TRY(r.kernel, check::request_of(k));
  ROOFGEN_TRY(r.device, load_device(data_files(), k.says.at("device")));
  return r;
}

}  // namespace roofgen::profile

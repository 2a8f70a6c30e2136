// A kernel of a file, compiled, with one launch of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "profile/arguments.h"
#include "profile/profile.h"

namespace roofgen::profile {

class CompiledKernel {
 public:
  /// Compiles for the architecture of the device and checks the arguments. Errors as check::run.
  static Result<std::unique_ptr<CompiledKernel>> make(check::Request request, const Device& device);
  CompiledKernel(const CompiledKernel&) = delete;

  const Binary& binary() const { return chosen_.compiled.binary; }
  const std::vector<std::string>& notes() const { return notes_; }
  /// Refers to this object.
  Subject subject();

 private:
  CompiledKernel(check::Request request, check::Chosen chosen, std::vector<std::string> notes);

  check::Request request_;
  check::Chosen chosen_;
  std::vector<std::string> notes_;
  Memory memory_;
};

struct Request {
  check::Request kernel;  ///< `arch` is replaced by that of the device
  Device device;
  Options options = {};
};
/// Compiles, reads the machine code and models one launch. Errors as check::run; Exit::kUnavailable without nvdisasm.
Result<Report> run(const Request& request);

}  // namespace roofgen::profile

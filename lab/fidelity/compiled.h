// Kernels of files, compiled and read, for the programs that model them. An error ends the program.
#pragma once

#include <fmt/format.h>

#include "runtime/compiler.h"
#include "runtime/sass/stream.h"

namespace roofgen {

template <class T>
T need(Result<T> r) {
  if (r) return std::move(*r);
  fmt::print(stderr, "{}\n", to_string(r.error()));
  std::exit(1);
}

struct Compiled {
  Binary binary;
  sass::Code code;
};

inline Compiled compiled(const std::string& source, const char* entry, const char* arch) {
  CompileOptions options;
  options.arch = arch;
  options.jobs = 1;
  const std::unique_ptr<Compiler> nvrtc = need(make_nvrtc_compiler(options, "", [](const std::string&) {}));
  Program program;
  program.entry = entry;
  program.target = options.arch;
  program.source = source;
  Compiled out;
  nvrtc->compile_all({&program}, [&](CompileOutcome outcome) {
    out.binary = need(std::move(outcome.binary));
    return true;
  });
  out.code = need(std::move(sass::read_code({{out.binary.cubin, out.binary.entry, out.binary.arch}}).at(0)));
  return out;
}

}  // namespace roofgen

// Small programs for the compile tests.
#pragma once

#include <string>

#include "roofgen/pipeline.h"

namespace roofgen::testing {

/// Line i of the source is mapped to line 100 + i of `demo.cu.jinja`.
inline Program program(std::string source, std::string entry = "kern") {
  Program out;
  out.schedule.variant = "demo";
  out.entry = std::move(entry);
  out.source = std::move(source);
  int line = 1;
  for (char c : out.source)
    if (c == '\n') out.line_map.lines.push_back({"demo.cu.jinja", 100 + line++, 0});
  return out;
}

/// A valid kernel; every `tag` gives a different source.
inline Program scale_program(int tag) {
  return program(
      "extern \"C\" __global__ void kern(float* x, int n) {\n"
      "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
      "  if (i < n) x[i] *= " +
      std::to_string(tag) +
      ".5f;\n"
      "}\n");
}

/// 4^12 statements from a dozen macros: the compiler takes minutes and ever more memory.
inline Program endless_program() {
  std::string source;
  for (char c = 'A'; c < 'L'; ++c) {
    std::string next = std::string(1, ' ') + static_cast<char>(c + 1);
    source += std::string("#define ") + c + next + next + next + next + "\n";
  }
  source += "#define L x[0] += 1.0f; x[1] += 1.0f; x[2] += 1.0f; x[3] += 1.0f;\n";
  source += "extern \"C\" __global__ void kern(float* x) { A }\n";
  return program(source);
}

}  // namespace roofgen::testing

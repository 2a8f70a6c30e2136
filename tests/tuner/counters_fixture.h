// Stand-ins for NVIDIA's tools: shell scripts that print realistic output, and a bundle that runs on the fake driver.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <string>

#include "tests/runtime/process.h"
#include "tuner/evidence/counters.h"

namespace roofgen::testing {

/// An executable shell script.
inline std::string script(const std::string& path, const std::string& body) {
  write_text(path, "#!/bin/sh\n" + body);
  chmod(path.c_str(), 0755);
  return path;
}

/// Two kernels of the fake driver; both fill the output.
inline Replay replay_of_two() {
  Replay r;
  r.problem.op = "attention";
  r.problem.dims = {{"L", 64}, {"kv_len", 64}, {"d", 64}, {"batch", 1}, {"heads", 1}, {"kv_heads", 1}};
  r.problem.flags = {{"causal", false}, {"lse", false}};
  const Op* op = *find_op("attention");
  r.problem = *op->complete(r.problem);
  r.buffers = op->buffers(r.problem);
  r.buffers.push_back({"scores", DType::kFp32, 4096, Buffer::Role::kTemporary});
  r.variant = "unfused";
  for (const char* stage : {"qk", "pv"}) {
    ReplayKernel k;
    k.stage = stage;
    k.binary.digest = std::string("digest of ") + stage;
    k.binary.arch = "sm_90";
    k.binary.entry = "fill";
    k.binary.cubin = std::string(
        "\x7f"
        "ELF\0cubin",
        10);
    k.binary.ptx = ".version 8.0";
    k.binary.registers = 168;
    k.launch.grid = {4, 2, 1};
    k.launch.block = {128, 1, 1};
    k.launch.smem_bytes = 1024;
    k.launch.args = {{"scores", true, 0, 8}, {"value", false, 7, 4}, {"bytes", false, 4096, 8}};
    r.kernels.push_back(k);
  }
  return r;
}

class Tools : public ::testing::Test {
 protected:
  void SetUp() override { setenv("ROOFGEN_LIBCUDA", ROOFGEN_FAKE_CUDA, 1); }
  TempDir dir_;
};

}  // namespace roofgen::testing

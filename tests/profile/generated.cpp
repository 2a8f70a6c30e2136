#include "tests/profile/generated.h"

#include <algorithm>

#include "generator/ops/op.h"
#include "runtime/compiler.h"
#include "tests/support/compile_cache.h"

namespace roofgen::profile {
namespace {

Result<Binary> compile(const Program& program, const std::string& arch) {
  CompileOptions options;
  options.arch = arch;
  options.jobs = 1;
  ROOFGEN_TRY(const std::unique_ptr<Compiler> nvrtc,
              make_nvrtc_compiler(options, test::shared_compile_cache(), [](const std::string&) {}));
  Result<Binary> out = Error{Exit::kFailed, "not compiled"};
  nvrtc->compile_all({&program}, [&](CompileOutcome outcome) {
    out = std::move(outcome.binary);
    return true;
  });
  return out;
}

}  // namespace

Result<Compiled> compile(const Generated& kernel) {
  const DataFiles files;
  Compiled out;
  ROOFGEN_TRY(out.device, load_device(files, kernel.device));
  ROOFGEN_TRY(const Op* op, find_op(kernel.problem.op));
  ROOFGEN_TRY(const ProblemVariants at, variants_of(files, *op, limits(out.device), kernel.problem));
  const Variant* const variant = at.find(kernel.variant);
  if (!variant) return Error{Exit::kFailed, "no variant " + kernel.variant};
  const Stage& stage = variant->stages.at(kernel.stage);
  ROOFGEN_TRY(const Legal legal, test::legal_schedule(*variant, stage, at.scope, kernel.pins));
  ROOFGEN_TRY(out.program, generate(files, stage, legal));
  for (const test::Edit& edit : kernel.edits) {
    ROOFGEN_TRY(const bool done, test::apply(edit, out.program));
    if (!done) return Error{Exit::kFailed, edit.file + " gives no such code: " + edit.from};
  }
  ROOFGEN_TRY(out.launch, make_launch(stage, legal));
  ROOFGEN_TRY(out.binary, compile(out.program, out.device.arch));
  return out;
}

timing::LaunchRequest launch_request(const Compiled& compiled) {
  timing::LaunchRequest out;
  out.launch = timing::stream_launch(compiled.launch);
  out.registers = compiled.binary.registers;
  out.smem_bytes = compiled.binary.static_smem_bytes + compiled.launch.smem_bytes;
  return out;
}

}  // namespace roofgen::profile

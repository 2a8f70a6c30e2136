#include "tests/kernels/run_kernel.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "generator/ops/elements.h"
#include "generator/ops/op.h"
#include "runtime/sim/prerequisites.h"
#include "tests/support/compile_cache.h"

namespace roofgen::test {
namespace {

/// Limits of sm_90 and sm_89 (CUDA C++ Programming Guide, "Compute Capabilities").
expr::Map device_of(int64_t arch) {
  const bool ada = arch == 89;
  return {{"smem_per_block", int64_t{ada ? 101376 : 232448}},
          {"smem_per_sm", int64_t{ada ? 102400 : 233472}},
          {"regs_per_sm", 65536},
          {"sms", 132},
          {"max_threads_per_sm", int64_t{ada ? 1536 : 2048}},
          {"arch", arch}};
}

Result<Compiler*> compiler() {
  static const auto made = make_nvrtc_compiler({}, shared_compile_cache(), [](const std::string&) {});
  if (!made) return made.error();
  return made->get();
}

/// Without machine code, which takes ptxas longer than all the rest, a program is compiled for the virtual
/// architecture.
Result<std::vector<Binary>> compile(std::vector<Program> programs, bool machine_code) {
  ROOFGEN_TRY(Compiler * nvrtc, compiler());
  std::vector<const Program*> asked;
  std::vector<std::string> entries;
  for (Program& p : programs) {
    entries.push_back(p.entry);
    if (!machine_code) {
      p.target = "compute_" + (p.target.empty() ? "90" : p.target.substr(3));
      p.entry.clear();  // ptxas alone names kernels
    }
    asked.push_back(&p);
  }
  std::vector<Binary> binaries(programs.size());
  std::optional<Error> failed;
  nvrtc->compile_all(asked, [&](CompileOutcome outcome) {
    if (outcome.binary)
      binaries[outcome.index] = std::move(*outcome.binary);
    else
      failed = outcome.binary.error();
    return true;
  });
  if (failed) return *failed;
  for (size_t i = 0; i < binaries.size(); ++i) binaries[i].entry = entries[i];
  return binaries;
}

/// Makes the number in `name`, "split7", the only one of its variant, whatever the problem.
Result<void> allow_instance(Variant& variant, const std::string& name) {
  if (!variant.instances || !name.starts_with(variant.name)) return {};
  ROOFGEN_TRY(expr::Expr number, expr::Expr::parse(name.substr(variant.name.size())));
  variant.instances->values.assign(1, std::move(number));
  ROOFGEN_TRY(variant.instances->when, expr::Expr::parse("true"));
  return {};
}

/// Reads device memory as numbers.
ElementReader reader(Executor& executor, const std::vector<Buffer>& buffers,
                     const std::map<std::string, DevicePtr>& at) {
  return [&executor, &buffers, &at](const std::string& name, uint64_t first, std::span<double> out,
                                    std::vector<bool>* valid) -> Result<void> {
    DType dtype = DType::kFp32;
    for (const Buffer& b : buffers)
      if (b.name == name) dtype = b.dtype;
    const size_t size = static_cast<size_t>(size_of(dtype));
    std::vector<std::byte> bytes(out.size() * size);
    std::vector<bool> written(bytes.size());
    ROOFGEN_CHECK(executor.read({at.at(name).address + first * size}, bytes, &written));
    for (size_t i = 0; i < out.size(); ++i) {
      out[i] = load_element(bytes.data(), i, dtype);
      for (size_t b = 0; valid && b < size; ++b)
        if (!written[i * size + b]) (*valid)[i] = false;
    }
    return {};
  };
}

/// Whether a launch of the stage writes all of a buffer that it reads or writes.
bool is_written(const Buffer& buffer, const Stage& stage, size_t stages) {
  if (buffer.role == Buffer::Role::kOutput || stages == 1) return buffer.role != Buffer::Role::kInput && !buffer.zeroed;
  return buffer.name == stage.output;
}

/// What is not zero in a buffer that each launch must leave zero; empty: nothing.
Result<std::string> left_in_zeroed(Executor& executor, const std::vector<Buffer>& buffers,
                                   const std::map<std::string, DevicePtr>& at) {
  for (const Buffer& b : buffers) {
    if (!b.zeroed) continue;
    std::vector<std::byte> bytes(b.bytes);
    ROOFGEN_CHECK(executor.read(at.at(b.name), bytes));
    if (std::string found = what_is_not_zero(b, bytes); !found.empty()) return found;
  }
  return std::string();
}

Result<const Op*> op_of(const Request& request) {
  if (request.op) return request.op;
  return find_op(request.problem.op);
}

Result<expr::Map> scope_of(const Op& op, const Request& request) {
  expr::Map device = device_of(request.arch);
  device["sms"] = request.sms;
  return problem_scope(op, request.problem, device);
}

/// A request's variant, with a schedule and the machine code for each stage.
struct Prepared {
  const Op* op;
  expr::Map scope;
  Variant variant;
  std::vector<Legal> legal;
  std::vector<Binary> binaries;
};

Result<Prepared> prepare(const Request& request) {
  const DataFiles files;
  ROOFGEN_TRY(const Op* op, op_of(request));
  ROOFGEN_TRY(expr::Map scope, scope_of(*op, request));
  ROOFGEN_TRY(Variant variant, variant_of(request));
  std::vector<Legal> legal;
  std::vector<Program> programs;
  std::vector<bool> applied(request.edits.size());
  for (const Stage& stage : variant.stages) {
    const bool first = &stage == &variant.stages[0];
    const auto pinned = request.pins.find(first && request.pins.count("") ? "" : stage.name);
    Pins pins = pinned == request.pins.end() ? Pins{} : pinned->second;
    if (request.dependent && !first) pins["dependent"] = true;
    ROOFGEN_TRY(Legal one, legal_schedule(variant, stage, scope, pins));
    legal.push_back(std::move(one));
    ROOFGEN_TRY(Program program, generate(files, stage, legal.back()));
    for (size_t i = 0; i < request.edits.size(); ++i) {
      ROOFGEN_TRY(const bool done, apply(request.edits[i], program));
      if (done) applied[i] = true;
    }
    if (request.arch != 90) program.target = fmt::format("sm_{}", request.arch);
    programs.push_back(std::move(program));
  }
  for (size_t i = 0; i < applied.size(); ++i)
    if (!applied[i])
      return Error{Exit::kFailed, request.edits[i].file + " gives no such code: " + request.edits[i].from};
  // Kernels with planted faults are executed, and nobody asks for their machine code.
  ROOFGEN_TRY(std::vector<Binary> binaries, compile(std::move(programs), request.edits.empty()));
  return Prepared{op, std::move(scope), std::move(variant), std::move(legal), std::move(binaries)};
}

}  // namespace

Result<Variant> variant_of(const Request& request) {
  const DataFiles files;
  ROOFGEN_TRY(const Op* op, op_of(request));
  ROOFGEN_TRY(const expr::Map scope, scope_of(*op, request));
  ROOFGEN_TRY(std::vector<Variant> variants, op->variants(files, request.problem));
  for (Variant& v : variants) ROOFGEN_CHECK(allow_instance(v, request.variant));
  ROOFGEN_TRY(variants, expand(std::move(variants), scope));
  for (Variant& v : variants)
    if (v.name == request.variant) return std::move(v);
  return Error{Exit::kFailed, "no variant " + request.variant};
}

bool have_nvrtc() { return nvrtc_info().found; }

Problem attention(std::map<std::string, int64_t> dims, std::map<std::string, bool> flags, DType dtype) {
  return *(*find_op("attention"))->complete({"attention", std::move(dims), dtype, std::move(flags), {}});
}

Result<std::vector<Compiled>> compile(const Request& request) {
  ROOFGEN_TRY(Prepared made, prepare(request));
  std::vector<Compiled> out;
  for (size_t i = 0; i < made.legal.size(); ++i) out.push_back({std::move(made.legal[i]), std::move(made.binaries[i])});
  return out;
}

Result<std::vector<StageRun>> run(const Request& request) {
  ROOFGEN_TRY(const Prepared made, prepare(request));
  const Op* const op = made.op;
  const Variant& variant = made.variant;
  const std::vector<Legal>& legal = made.legal;
  const std::vector<Binary>& binaries = made.binaries;

  ROOFGEN_TRY(std::unique_ptr<Executor> executor, make_sim_executor());
  std::vector<Buffer> buffers = op->buffers(request.problem);
  ROOFGEN_TRY(std::vector<Buffer> temporary, temporaries(variant, made.scope));
  buffers.insert(buffers.end(), temporary.begin(), temporary.end());
  std::map<std::string, DevicePtr> at;
  for (const Buffer& b : buffers) {
    Fill fill;
    if (b.has_contents())
      fill = [op, &request, name = b.name](uint64_t offset, std::span<std::byte> out) {
        op->fill(request.problem, request.pattern, name, offset, out);
      };
    ROOFGEN_TRY(at[b.name], executor->allocate(b.bytes, b.name, fill));
    if (b.role == Buffer::Role::kUpdated) ROOFGEN_CHECK(executor->allow_writes(at[b.name]));
    if (b.zeroed) ROOFGEN_CHECK(executor->write(at[b.name], std::vector<std::byte>(b.bytes)));
  }
  const ElementReader read = reader(*executor, buffers, at);

  std::vector<StageRun> out;
  sim::Prerequisites prerequisites;
  for (size_t i = 0; i < variant.stages.size(); ++i) {
    const Stage& stage = variant.stages[i];
    ROOFGEN_TRY(Launch launch, make_launch(stage, legal[i]));
    for (Arg& arg : launch.args)
      if (arg.is_buffer) arg.bits = at.count(arg.name) ? at[arg.name].address : 0;
    ROOFGEN_TRY(ModuleId module, executor->load(binaries[i]));
    RunOptions options;
    options.schedule = request.order;
    options.prerequisites = &prerequisites;
    RunResult result;
    std::string not_zero;
    for (int n = 0; n < request.launches && result.findings.empty() && not_zero.empty(); ++n) {
      if (n > 0)
        for (const Arg& arg : launch.args)
          for (const Buffer& b : buffers)
            if (b.name == arg.name && is_written(b, stage, variant.stages.size()))
              ROOFGEN_CHECK(executor->poison(at[b.name]));
      ROOFGEN_TRY(result, executor->run(module, launch, options));
      ROOFGEN_TRY(not_zero, left_in_zeroed(*executor, buffers, at));
    }
    StageRun stage_run{
        stage.name, legal[i].schedule, binaries[i], result.counts.value_or(Counts{}), result.findings, {}, {}};
    stage_run.comparison.failure = not_zero;
    if (result.findings.empty()) {
      const Extent extent = op->extent(request.problem);
      for (int64_t b = 0; b < extent.batch; ++b)
        for (int64_t h = 0; h < extent.heads; ++h) {
          ROOFGEN_TRY(Comparison c, op->compare(request.problem, request.pattern, variant.name, stage.name,
                                                {b, h, 0, extent.rows}, read));
          stage_run.comparison.rows += c.rows;
          stage_run.comparison.worst = std::max(stage_run.comparison.worst, c.worst);
          if (stage_run.comparison.failure.empty()) stage_run.comparison.failure = c.failure;
        }
    }
    if (request.keep_bytes)
      for (const Buffer& b : buffers)
        if (b.role == Buffer::Role::kOutput || b.role == Buffer::Role::kUpdated) {
          std::vector<std::byte> bytes(b.bytes);
          std::vector<bool> written;
          ROOFGEN_CHECK(executor->read(at[b.name], bytes, &written));
          stage_run.bytes[b.name] = std::move(bytes);
        }
    out.push_back(std::move(stage_run));
    if (!out.back().findings.empty()) break;
  }
  return out;
}

std::string what_is_wrong(const std::vector<StageRun>& runs) {
  for (const StageRun& r : runs) {
    if (!r.findings.empty())
      return fmt::format("{}: {}: {} (ptx line {}, {}:{})", to_string(r.schedule), r.findings[0].kind,
                         r.findings[0].message, r.findings[0].ptx.line, r.findings[0].source.file,
                         r.findings[0].source.line);
    if (!r.comparison.failure.empty()) return fmt::format("{}: {}", to_string(r.schedule), r.comparison.failure);
  }
  return "";
}

void expect_right(const Request& request) {
  if (!have_nvrtc()) GTEST_SKIP() << "no NVRTC on this machine";
  SCOPED_TRACE(request.variant);
  const auto runs = run(request);
  ASSERT_TRUE(runs) << to_string(runs.error());
  EXPECT_EQ(what_is_wrong(*runs), "");
  for (const StageRun& r : *runs) {
    EXPECT_EQ(r.binary.spill_bytes, 0) << to_string(r.schedule);
    EXPECT_GT(r.comparison.rows, 0u);
    EXPECT_GT(r.counts.warp_instructions, 0u);
    testing::Test::RecordProperty(r.stage + " error/tolerance", std::to_string(r.comparison.worst));
  }
}

}  // namespace roofgen::test

#include "tuner/bundle/bundle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "base/sha256.h"
#include "base/suggest.h"
#include "base/target.h"

namespace roofgen {
namespace {

/// "NVRTC 13.0 at /usr/..." without the place.
std::string version_of(const std::string& compiler) { return compiler.substr(0, compiler.find(" at ")); }

/// Compiles the programs for their architectures, and hands over each result. A program without one is left out.
Result<void> compile(const std::vector<const Program*>& programs, const std::vector<std::string>& archs, bool line_info,
                     const MakeCompiler& make, const std::function<void(size_t, Result<Binary>)>& done) {
  std::map<std::string, std::vector<size_t>> by_arch;
  for (size_t i = 0; i < programs.size(); ++i)
    if (programs[i]) by_arch[archs[i]].push_back(i);
  for (const auto& [arch, indices] : by_arch) {
    ROOFGEN_TRY(const auto compiler, make(arch, line_info));
    std::vector<const Program*> of_arch;
    for (const size_t i : indices) of_arch.push_back(programs[i]);
    compiler->compile_all(of_arch, [&, &indices = indices](CompileOutcome outcome) {
      done(indices[outcome.index], std::move(outcome.binary));
      return true;
    });
  }
  return {};
}

/// The binaries of the winner without line numbers, which are most of their bytes. They are those that were verified:
/// the PTX is the same.
Result<std::vector<Binary>> without_lines(const std::vector<TunedKernel>& kernels, const MakeCompiler& make) {
  std::vector<const Program*> programs;
  std::vector<std::string> archs;
  std::vector<Binary> out;
  for (const TunedKernel& k : kernels) {
    programs.push_back(&k.program);
    archs.push_back(k.binary.arch);
    out.push_back(k.binary);
  }
  ROOFGEN_CHECK(compile(programs, archs, false, make, [&](size_t k, Result<Binary> binary) {
    if (!binary || bare_ptx(binary->ptx) != bare_ptx(out[k].ptx)) return;
    binary->digest = out[k].digest;
    out[k] = std::move(*binary);
  }));
  return out;
}

/// Of a pipeline with its kernels and binaries. `scopes`: of the kernels' schedules.
Result<void> describe(BundlePipeline& pipeline, const Variant& variant, std::vector<expr::Map> scopes,
                      std::string arch) {
  const expr::Map& scope = pipeline.tuned_for.scope;
  ROOFGEN_TRY(std::vector<Buffer> own, temporaries(variant, scope));
  pipeline.emitted = {std::move(arch), &variant, std::move(own), scope, {}, ""};
  for (size_t i = 0; i < variant.stages.size(); ++i) {
    const TunedKernel& k = pipeline.kernels[i];
    pipeline.emitted.kernels.push_back(
        {&variant.stages[i], &k.program, &pipeline.binaries[i], &k.launch, std::move(scopes[i])});
  }
  return {};
}

/// The parameters of a stage, each with a value of its kind.
Result<void> check_params(const Stage& stage, const ManifestKernel& kernel) {
  const auto no = [&](const std::string& why) { return Error{Exit::kFailed, why, kernel.where}; };
  std::vector<std::string> names, given;
  for (const Param& p : stage.params) names.push_back(p.name);
  for (const auto& [name, value] : kernel.params) given.push_back(name);
  if (names != given)
    return no(fmt::format("{} has the parameters {}; {} was expected", stage.name, fmt::join(given, ", "),
                          fmt::join(names, ", ")));
  for (size_t i = 0; i < names.size(); ++i) {
    const std::vector<ParamValue>& values = stage.params[i].values;
    const ParamValue& value = kernel.params[i].second;
    const bool text = std::holds_alternative<std::string>(value);
    if (value.index() == values.front().index() && (!text || std::ranges::count(values, value) > 0)) continue;
    std::vector<std::string> known;
    for (const ParamValue& v : values) known.push_back(to_string(v));
    return no(fmt::format("{}={}: no such value{}", names[i], to_string(value), did_you_mean(to_string(value), known)));
  }
  return {};
}

/// Makes one pipeline of a manifest again.
class Rebuilder {
 public:
  /// `compiler`: its version.
  Rebuilder(const DataFiles& files, const Manifest& manifest, const MakeCompiler& make, const std::string& compiler,
            const std::function<void(const std::string&)>& warn)
      : files_(files),
        manifest_(manifest),
        make_(make),
        by_(compiler == manifest.compiler ? "another build of " + compiler
                                          : fmt::format("{} instead of {}", compiler, manifest.compiler)),
        warn_(warn) {}

  Result<std::unique_ptr<BundlePipeline>> pipeline(size_t index) const {
    const ManifestPipeline& recorded = manifest_.pipelines[index];
    ROOFGEN_TRY(const Op* op, find_op(files_, manifest_.problem.op));
    auto out = std::make_unique<BundlePipeline>();
    auto variants = variants_of(files_, *op, recorded.limits, manifest_.tuned_for(index));
    if (!variants) return at(recorded.where, variants.error());
    out->tuned_for = std::move(*variants);
    const Variant* variant = out->tuned_for.find(recorded.variant);
    if (!variant)
      return Error{Exit::kFailed,
                   fmt::format("{} has no variant \"{}\" here{}", op->name(), recorded.variant,
                               did_you_mean(recorded.variant, names_of(out->tuned_for.variants))),
                   recorded.where};
    if (!std::ranges::equal(variant->stages, recorded.kernels, {}, &Stage::name, &ManifestKernel::name)) {
      std::vector<std::string> names;
      for (const Stage& s : variant->stages) names.push_back(s.name);
      return Error{Exit::kFailed, fmt::format("{} has the kernels {}", variant->name, fmt::join(names, ", ")),
                   recorded.where};
    }
    std::vector<expr::Map> scopes;
    for (size_t k = 0; k < recorded.kernels.size(); ++k) {
      ROOFGEN_TRY(scopes.emplace_back(), generate_kernel(*out, *variant, k, recorded.kernels[k]));
    }
    ROOFGEN_CHECK(compile_kernels(*out, recorded));
    ROOFGEN_CHECK(describe(*out, *variant, std::move(scopes), recorded.arch));
    out->emitted.evidence = recorded.result;
    return out;
  }

 private:
  static Error at(const Where& where, const Error& error) { return Error{Exit::kFailed, error.message, where}; }

  /// Program and launch. Returns the scope of the schedule.
  Result<expr::Map> generate_kernel(BundlePipeline& out, const Variant& variant, size_t k,
                                    const ManifestKernel& recorded) const {
    const Stage& stage = variant.stages[k];
    ROOFGEN_CHECK(check_params(stage, recorded));
    const std::string name = variant.stages.size() == 1 ? "" : stage.name;
    auto checked = check_schedule(variant, stage, {variant.name, name, recorded.params}, out.tuned_for.scope, false);
    if (const auto* error = std::get_if<Error>(&checked)) return at(recorded.where, *error);
    if (const auto* rejected = std::get_if<Rejected>(&checked))
      return Error{Exit::kFailed, fmt::format("{} is illegal: {}", to_string(rejected->schedule), rejected->reason),
                   recorded.where};
    Legal& legal = std::get<Legal>(checked);
    TunedKernel& kernel = out.kernels.emplace_back();
    ROOFGEN_TRY(kernel.program, generate(files_, stage, legal));
    ROOFGEN_TRY(kernel.launch, make_launch(stage, legal));
    return std::move(legal.scope);
  }

  /// As emit() did: without line numbers, and with them where that gave the verified PTX alone.
  Result<void> compile_kernels(BundlePipeline& out, const ManifestPipeline& recorded) const {
    const size_t number = recorded.kernels.size();
    std::vector<const Program*> programs;
    std::vector<std::string> archs;
    for (size_t k = 0; k < number; ++k) {
      programs.push_back(&out.kernels[k].program);
      archs.push_back(recorded.kernels[k].arch);
    }
    std::vector<std::optional<Binary>> binaries(number);
    std::optional<Error> failed;
    for (const bool line_info : {false, true}) {
      ROOFGEN_CHECK(compile(programs, archs, line_info, make_, [&](size_t k, Result<Binary> binary) {
        if (!binary) {
          failed = at(recorded.kernels[k].where, binary.error());
          return;
        }
        const bool same = sha256(bare_ptx(binary->ptx)) == recorded.kernels[k].ptx_sha256;
        if (same) programs[k] = nullptr;
        if (same || !binaries[k]) binaries[k] = std::move(*binary);
      }));
      if (failed) return std::move(*failed);
    }
    for (size_t k = 0; k < number; ++k) {
      const ManifestKernel& kernel = recorded.kernels[k];
      if (!binaries[k]) return Error{Exit::kFailed, "the compiler gave no answer", kernel.where};
      if (programs[k]) return changed(kernel, out.kernels[k].program, *binaries[k]);
      if (sha256(binaries[k]->cubin) != kernel.cubin_sha256)
        warn_(fmt::format("{}: {} has other machine code, by {}; its PTX is the verified kernel's", manifest_.file,
                          kernel.name, by_));
      binaries[k]->digest = kernel.digest;
      out.binaries.push_back(std::move(*binaries[k]));
    }
    return {};
  }

  Error changed(const ManifestKernel& kernel, const Program& program, const Binary& binary) const {
    const std::string source = sha256(program.source);
    const std::string what =
        source == kernel.source_sha256
            ? fmt::format("by {}; its source is the same", by_)
            : fmt::format("its source is {:.12} instead of {:.12}: this roofgen has other templates", source,
                          kernel.source_sha256);
    return Error{Exit::kFailed,
                 fmt::format("{} is not the kernel that was verified: the SHA-256 of its PTX is {:.12} instead of "
                             "{:.12}, {}; tune it again",
                             kernel.name, sha256(bare_ptx(binary.ptx)), kernel.ptx_sha256, what),
                 kernel.where};
  }

  const DataFiles& files_;
  const Manifest& manifest_;
  const MakeCompiler& make_;
  const std::string by_;
  const std::function<void(const std::string&)>& warn_;
};

}  // namespace

Result<std::unique_ptr<BundlePipeline>> bundle_pipeline(const DataFiles& files, const Device& device,
                                                        const Problem& problem, const std::string& variant,
                                                        std::vector<TunedKernel> kernels, const MakeCompiler& make) {
  ROOFGEN_TRY(const Op* op, find_op(files, problem.op));
  auto out = std::make_unique<BundlePipeline>();
  ROOFGEN_TRY(out->tuned_for, variants_of(files, *op, limits(device), problem));
  ROOFGEN_TRY(out->binaries, without_lines(kernels, make));
  out->kernels = std::move(kernels);
  const Variant& v = *out->tuned_for.find(variant);
  std::string arch = device.arch;
  std::vector<expr::Map> scopes;
  for (size_t k = 0; k < v.stages.size(); ++k) {
    auto checked = check_schedule(v, v.stages[k], out->kernels[k].program.schedule, out->tuned_for.scope);
    scopes.push_back(std::move(std::get<Legal>(checked).scope));
    if (is_specific(out->kernels[k].binary.arch)) arch = out->kernels[k].binary.arch;
  }
  ROOFGEN_CHECK(describe(*out, v, std::move(scopes), std::move(arch)));
  return out;
}

Result<Bundle> bundle_of(const DataFiles& files, const Manifest& manifest, const MakeCompiler& make,
                         const std::function<void(const std::string&)>& warn) {
  Bundle out;
  out.name = manifest.name;
  out.problem = manifest.problem;
  out.table = manifest.table_text;
  ROOFGEN_TRY(const auto compiler, make(manifest.pipelines.front().kernels.front().arch, false));
  out.compiler = compiler->description();
  const Rebuilder rebuilder(files, manifest, make, version_of(out.compiler), warn);
  for (size_t p = 0; p < manifest.pipelines.size(); ++p) {
    ROOFGEN_TRY(out.pipelines.emplace_back(), rebuilder.pipeline(p));
    if (!manifest.table) out.shapes.push_back({manifest.problem.dims, p});
  }
  if (manifest.table)
    for (const DispatchShape& s : manifest.table->shapes) out.shapes.push_back({s.problem.dims, s.kernel});
  return out;
}

Result<std::map<std::string, std::string>> bundle_files(const DataFiles& files, const Bundle& bundle) {
  ROOFGEN_TRY(const Op* op, find_op(files, bundle.problem.op));
  EmitRequest request;
  request.name = bundle.name;
  request.files = &files;
  request.problem = &bundle.problem;
  request.buffers = op->buffers(bundle.problem);
  request.compiler = version_of(bundle.compiler);
  request.table = bundle.table;
  request.shapes = bundle.shapes;
  request.test_shapes = bundle.test_shapes;
  for (const auto& p : bundle.pipelines) request.pipelines.push_back(p->emitted);
  return emit(request);
}

}  // namespace roofgen

#include "tuner/session/emit.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>

#include "base/json.h"
#include "base/output_file.h"
#include "base/paths.h"
#include "base/target.h"
#include "base/units.h"
#include "generator/interface.h"
#include "tuner/bundle/finished.h"
#include "tuner/evidence/counters.h"

namespace roofgen {
namespace {

/// The best kernels on one device.
struct Tuned {
  Workbench bench;
  TuneResult result;    ///< of a single problem, from a search
  DispatchTable table;  ///< of several problems
  Bundle bundle;        ///< for this device alone
  std::string arch() const { return bundle.pipelines.front()->emitted.arch; }
};

/// The bundle of all devices, and the results that it was made of.
struct TunedBundle {
  Bundle bundle;
  std::vector<std::unique_ptr<Tuned>> tuned;
};

/// The flags of a run for "90a" or "90" of --archs: on the chosen device if that is one of the architecture, else on
/// the first of the catalogue.
Result<ProblemFlags> on_arch(const DataFiles& files, ProblemFlags flags, const std::string& asked) {
  const std::optional<Target> target = parse_target(asked.starts_with("sm_") ? asked : "sm_" + asked);
  if (!target)
    return Error{Exit::kUsage, fmt::format("--archs: unknown arch \"{}\"; 80, 90, 90a, 100f, ... was expected", asked)};
  const std::string arch = target->plain();
  std::vector<std::string> names = json_names(files, "devices/");
  names.insert(names.begin(), flags.device.empty() || flags.device == "gpu" ? kDefaultDevice : flags.device);
  std::vector<std::string> known;
  for (const std::string& name : names) {
    const auto device = load_device(files, name);
    if (!device || !tunable(*device)) continue;
    if (device->arch == arch) {
      if (flags.device != "gpu" || name != kDefaultDevice) flags.device = name;
      flags.arch = target->features == Target::Features::kOwn ? "" : asked.starts_with("sm_") ? asked : "sm_" + asked;
      return flags;
    }
    known.push_back(device->arch.substr(3));
  }
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  return Error{Exit::kUsage,
               fmt::format("--archs: no device of the catalogue is {}; {} was expected", arch, fmt::join(known, ", "))};
}

MakeCompiler compilers_of(const Session& session) {
  return [&session](const std::string& arch, bool line_info) {
    CompileOptions options;
    options.arch = arch;
    options.line_info = line_info;
    return make_nvrtc_compiler(options, session.cache, session.warn);
  };
}

/// The bundle of a result in the store; an absent one where the kernels are others now.
std::optional<Bundle> recalled(const Session& session, const std::optional<Manifest>& finished) {
  if (!finished) return std::nullopt;
  Result<Bundle> bundle =
      bundle_of(DataFiles(session.data_dirs), *finished, compilers_of(session), [](const std::string&) {});
  return bundle ? std::optional(std::move(*bundle)) : std::nullopt;
}

/// Those of --variant that the device has a kernel for: the architectures of one bundle have different ones. All of
/// them where it has none, and unknown ones: the search names what there is.
Result<std::vector<std::string>> variants_here(const Workbench& bench, const std::vector<std::string>& wanted) {
  ROOFGEN_TRY(const ProblemVariants at, variants_of(*bench.files, *bench.op, limits(bench.device), bench.problem));
  std::vector<std::string> here;
  std::ranges::copy_if(wanted, std::back_inserter(here),
                       [&](const std::string& name) { return !at.conditions.contains(name) || at.find(name); });
  return here.empty() ? wanted : here;
}

/// Null: interrupted.
Result<std::unique_ptr<Tuned>> tuned(const Session& session, const BundleRequest& request,
                                     const ProblemFlags& problem) {
  auto out = std::make_unique<Tuned>();
  ROOFGEN_TRY(out->bench, make_workbench(session, problem, request.run));
  Workbench& bench = out->bench;
  RunFlags run = request.run;
  if (request.archs.size() > 1) {
    ROOFGEN_TRY(run.variants, variants_here(bench, request.run.variants));
  }
  // The launch in replay/ comes from the search.
  if (!request.replay) {
    ROOFGEN_TRY(const std::optional<Manifest> finished, finished_search(session, bench, problem, run));
    if (auto bundle = recalled(session, finished)) {
      out->bundle = std::move(*bundle);
      return out;
    }
  }
  ROOFGEN_TRY(out->result, run_search(session, bench, problem, run));
  const TuneReport& report = out->result.report;
  if (report.interrupted) return std::unique_ptr<Tuned>();
  if (report.best_variant.empty()) return Error{Exit::kFailed, "nothing to emit: " + report.verdict.reason};
  out->bundle.problem = bench.problem;
  out->bundle.compiler = bench.compiler->description();
  out->bundle.shapes.push_back({bench.problem.dims, 0});
  ROOFGEN_TRY(out->bundle.pipelines.emplace_back(),
              bundle_pipeline(*bench.files, bench.device, bench.problem, report.best_variant,
                              out->result.winners[report.best_variant], compilers_of(session)));
  out->bundle.pipelines.front()->emitted.evidence = json_line(evidence(report));
  return out;
}

/// The kernels of a dispatch table. They are for devices that run all of them.
Result<std::unique_ptr<Tuned>> tuned_family(const Session& session, const BundleRequest& request,
                                            std::vector<Problem> problems) {
  const DataFiles files(session.data_dirs);
  ROOFGEN_TRY(const Op* op, complete_all(files, request.problem.op, problems));
  std::vector<std::map<std::string, int64_t>> sizes;
  for (const Problem& p : problems) sizes.push_back(p.dims);
  ROOFGEN_TRY(expr::Map scope, problem_scope(*op, problems.front(), {}));
  ROOFGEN_TRY(Interface interface, Interface::load(files, problems.front(), std::move(scope), {}));
  ROOFGEN_CHECK(interface.add_sizes(sizes));
  auto out = std::make_unique<Tuned>();
  ROOFGEN_TRY(const std::optional<Manifest> finished,
              finished_family(session, request.problem, request.run, request.family, problems));
  if (auto bundle = recalled(session, finished)) {
    out->bundle = std::move(*bundle);
    out->table = *finished->table;
    return out;
  }
  ROOFGEN_TRY(FamilyRun family,
              tune_family(session, request.problem, request.run, request.family, std::move(problems)));
  out->bench = std::move(family.bench);
  out->table = std::move(family.result.table);
  Bundle& bundle = out->bundle;
  bundle.problem = out->table.shapes.front().problem;
  bundle.compiler = out->bench.compiler->description();
  bundle.table = json_document(dispatch_json(out->table));
  std::string arch = out->bench.device.arch;
  for (size_t k = 0; k < out->table.kernels.size(); ++k) {
    const DispatchKernel& kernel = out->table.kernels[k];
    ROOFGEN_TRY(bundle.pipelines.emplace_back(),
                bundle_pipeline(files, out->bench.device, out->table.shapes[kernel.tuned_for].problem, kernel.variant,
                                std::move(family.result.kernels[k]), compilers_of(session)));
    if (is_specific(bundle.pipelines.back()->emitted.arch)) arch = bundle.pipelines.back()->emitted.arch;
  }
  for (const auto& p : bundle.pipelines) p->emitted.arch = arch;
  for (const DispatchShape& s : out->table.shapes) bundle.shapes.push_back({s.problem.dims, s.kernel});
  return out;
}

/// With the files of the bundle that the folder has: a bundle may come from another machine.
Outputs outputs_of(const Session& session, const BundleRequest& request) {
  Outputs out = session.outputs();
  if (const auto manifest = read_input(request.directory + "/" + kManifestFile))
    out.add_own(written_digests(*manifest));
  return out;
}

/// The bundle of the best kernels.
Result<TunedBundle> tuned_bundle(const Session& session, const BundleRequest& request) {
  const DataFiles files(session.data_dirs);
  if (const auto op = find_op(files, request.problem.op); !op) return op.error();
  ROOFGEN_TRY(std::vector<Problem> problems, request.problem.problems());
  const bool single = problems.size() == 1;
  ROOFGEN_CHECK(single ? check_no_family(request.family) : check_family(request.family));
  std::vector<ProblemFlags> runs;
  for (const std::string& arch : request.archs) {
    ROOFGEN_TRY(runs.emplace_back(), on_arch(files, request.problem, arch));
  }
  if (runs.empty()) runs.push_back(request.problem);
  // The directory is checked before minutes are spent.
  ROOFGEN_CHECK(make_directory(request.directory));
  std::vector<std::string> places;
  for (const std::string& file : bundle_file_names(request.name.empty() ? request.problem.op : request.name))
    places.push_back(request.directory + "/" + file);
  ROOFGEN_CHECK(outputs_of(session, request).check(places));
  TunedBundle out;
  auto& all = out.tuned;
  for (const ProblemFlags& problem : runs) {
    ROOFGEN_TRY(std::unique_ptr<Tuned> one,
                single ? tuned(session, request, problem) : tuned_family(session, request, std::move(problems)));
    if (!one) return Error{Exit::kInterrupted, ""};
    if (std::ranges::none_of(all, [&](const auto& t) { return t->arch() == one->arch(); }))
      all.push_back(std::move(one));
  }
  Bundle& bundle = out.bundle;
  const Bundle& first = all.front()->bundle;
  bundle.name = request.name.empty() ? first.problem.op : request.name;
  bundle.problem = first.problem;
  bundle.compiler = first.compiler;
  bundle.table = first.table;
  // The newest architecture first; before code for all of its devices, code for this one alone.
  std::vector<Tuned*> newest;
  for (const auto& t : all) newest.push_back(t.get());
  std::ranges::sort(newest, std::greater(), [](const Tuned* t) {
    const std::string arch = t->arch();
    return std::pair(std::atoi(arch.c_str() + 3), arch.size());
  });
  for (Tuned* t : newest) {
    for (const EmittedShape& s : t->bundle.shapes)
      bundle.shapes.push_back({s.sizes, bundle.pipelines.size() + s.pipeline});
    std::ranges::move(t->bundle.pipelines, std::back_inserter(bundle.pipelines));
  }
  return out;
}

/// The bundle of --manifest. The problem's flags and --archs are conditions here.
Result<Bundle> rebuilt_bundle(const Session& session, const BundleRequest& request) {
  std::vector<std::string> own = request.problem.given.names();
  own.insert(own.end(), {"--dtype", "--archs"});
  const std::vector<std::string> other{"--manifest", "--output", "--name",      "--data-dir",
                                       "--color",    "--force",  "--test-shape"};
  for (const auto& [name, values] : request.given())
    if (std::ranges::count(own, name) + std::ranges::count(other, name) == 0)
      return Error{Exit::kUsage, fmt::format("{} is for a search, and --manifest has none; leave it out", name)};
  ROOFGEN_TRY(std::string text, read_input(request.manifest));
  const DataFiles files(session.data_dirs);
  ROOFGEN_TRY(const Manifest manifest, read_manifest(std::move(text), request.manifest, files));
  if (request.problem.op.empty()) {
    for (const auto& [name, values] : request.given())
      if (std::ranges::count(own, name) > 0)
        return Error{Exit::kUsage,
                     fmt::format("{} needs the op, as in `roofgen emit {} {} ...`", name, manifest.problem.op, name)};
  } else {
    ROOFGEN_TRY(std::vector<Problem> problems, request.problem.problems());
    ROOFGEN_CHECK(complete_all(files, request.problem.op, problems));
    std::vector<std::string> archs;
    for (const std::string& arch : request.archs) archs.push_back(arch.starts_with("sm_") ? arch.substr(3) : arch);
    ROOFGEN_CHECK(check_fits(manifest, problems, archs));
  }
  ROOFGEN_TRY(Bundle bundle, bundle_of(files, manifest, compilers_of(session), session.warn));
  if (!request.name.empty()) bundle.name = request.name;
  return bundle;
}

/// "L=333,batch=2" of --test-shape.
Result<Json> test_shape(const std::string& text) {
  Json out = Json::object();
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const size_t equals = std::min(part.find('='), part.size());
    const std::string name = part.substr(0, equals), size = part.substr(std::min(equals + 1, part.size()));
    const bool whole = !size.empty() && size.size() <= 10 && size[0] != '0' &&
                       size.find_first_not_of("0123456789") == std::string::npos;
    if (!is_c_name(name) || !whole)
      return Error{Exit::kUsage, fmt::format("--test-shape {}: \"{}\"; a size such as L=333 was expected", text, part)};
    out[name] = size;
  }
  return out;
}

/// Writes the bundle's files, and where asked for the launch in replay/.
Result<void> write_bundle(const Session& session, const BundleRequest& request, const Tuned* first, Emitted& emitted) {
  const DataFiles files(session.data_dirs);
  ROOFGEN_TRY(const auto texts, bundle_files(files, emitted.bundle));
  std::map<std::string, std::string> written;
  for (const auto& [name, text] : texts) {
    written[request.directory + "/" + name] = text;
    emitted.files.emplace_back(name, text.size());
  }
  if (request.replay) {
    ROOFGEN_TRY(const CounterRequest replay,
                counter_request(files, *first->bench.op, first->result, first->result.report.best_variant));
    for (const auto& [name, text] : replay_files(replay.replay)) written[request.directory + "/replay/" + name] = text;
  }
  ROOFGEN_CHECK(make_directory(request.directory + (request.replay ? "/replay" : "")));
  return outputs_of(session, request).write_all(written);
}

}  // namespace

void BundleRequest::declare(FlagSet app) {
  problem.declare(app);
  run.declare(app);
  app.add("-o,--output", directory, "directory to write to").required();
  app.add("--name", name, "prefix of the files and C functions [the op's name]");
  app.add("--archs", archs, "kernels for these architectures, each tuned on a device of it: 80,90a [the device's]")
      .split(',');
  app.add(
      "--manifest", manifest,
      "make the bundle of this manifest.json again, without a search; the problem's flags and --archs must be its own");
  given = [app] { return app.given(); };
  app.add_switch("--replay", replay, "also write replay/, the launch of the tuned problem for profilers");
  app.add("--test-shape", test_shapes, "sizes that the self test tries, too: L=333,batch=2; may be repeated")
      .repeated();
  family.declare(app, {"--archs", "--replay"});
}

Result<Emitted> emit(const Session& session, const BundleRequest& request) {
  if (!request.name.empty() && !is_c_name(request.name))
    return Error{
        Exit::kUsage,
        fmt::format("--name: {} is no C name: letters, digits and _ were expected, not beginning with a digit, "
                    "and no keyword of C or C++",
                    request.name)};
  std::vector<std::pair<std::string, Json>> test_shapes;
  for (const std::string& text : request.test_shapes) {
    ROOFGEN_TRY(Json sizes, test_shape(text));
    test_shapes.emplace_back(text, std::move(sizes));
  }
  Emitted out;
  const Tuned* first = nullptr;
  TunedBundle tuned;
  if (request.manifest.empty()) {
    ROOFGEN_TRY(tuned, tuned_bundle(session, request));
    out.bundle = std::move(tuned.bundle);
    first = tuned.tuned.front().get();
    if (!out.bundle.table.empty()) out.table = std::move(tuned.tuned.front()->table);
  } else {
    ROOFGEN_TRY(out.bundle, rebuilt_bundle(session, request));
  }
  out.bundle.test_shapes = std::move(test_shapes);
  ROOFGEN_CHECK(write_bundle(session, request, first, out));
  return out;
}

std::string emitted_text(const Emitted& emitted, const BundleRequest& request) {
  std::string out;
  if (emitted.table) out += dispatch_text(*emitted.table) + "\n";
  for (const auto& p : emitted.bundle.pipelines) {
    if (!request.manifest.empty() || p->emitted.evidence.empty()) continue;
    const Json result = parse_json(p->emitted.evidence), &variant = result["variant"];
    out += fmt::format("{} {} for {} ({} on {}, score {:.2f})\n", p->emitted.variant->name, emitted.bundle.problem.op,
                       p->emitted.arch, time_text(1e-6 * variant["time_us"].get<double>()),
                       result["device"]["name"].get<std::string>(), result["score"].get<double>());
  }
  out += fmt::format("written to {}:\n", request.directory);
  for (const auto& [name, bytes] : emitted.files)
    out += fmt::format("  {:<28} {}\n", name, bytes_text(static_cast<double>(bytes)));
  if (request.replay)
    out += fmt::format("  {:<28} {}\n", "replay/", "the launch of this problem, docs/use/counters.md");
  return out;
}

}  // namespace roofgen

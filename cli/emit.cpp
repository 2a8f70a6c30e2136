// roofgen emit OP -o DIR: tune, then write the winner as a library to build in.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <regex>
#include <sstream>

#include "base/json.h"
#include "base/output_file.h"
#include "base/paths.h"
#include "base/units.h"
#include "cli/family.h"
#include "generator/interface.h"
#include "tuner/bundle/bundle.h"
#include "tuner/bundle/finished.h"
#include "tuner/evidence/counters.h"

namespace roofgen::cli {
namespace {

struct EmitFlags {
  ProblemFlags problem;
  RunFlags run;
  FamilyFlags family;
  std::string directory, name, manifest;
  std::vector<std::string> archs, test_shapes;
  bool replay = false;
  std::function<std::vector<std::pair<std::string, std::vector<std::string>>>()> given;  ///< on the command line
};

/// The best kernels on one device.
struct Tuned {
  Workbench bench;
  TuneResult result;    ///< of a single problem, from a search
  DispatchTable table;  ///< of several problems
  Bundle bundle;        ///< for this device alone
  std::string arch() const { return bundle.pipelines.front()->emitted.arch; }
};

/// What was emitted, and of which results.
struct Emitted {
  Bundle bundle;
  std::vector<std::unique_ptr<Tuned>> tuned;  ///< none: from a manifest
};

/// The flags of a run for "90a" or "90" of --archs: on the chosen device if that is one of the architecture, else on
/// the first of the catalogue.
Result<ProblemFlags> on_arch(const DataFiles& files, ProblemFlags flags, const std::string& asked) {
  const std::string digits = asked.starts_with("sm_") ? asked.substr(3) : asked;
  const bool specific = digits.ends_with('a');
  const std::string number = specific ? digits.substr(0, digits.size() - 1) : digits;
  if (number.size() < 2 || number.size() > 3 || number.find_first_not_of("0123456789") != std::string::npos)
    return Error{Exit::kUsage, fmt::format("--archs: unknown arch \"{}\"; 80, 90, 90a, ... was expected", asked)};
  const std::string arch = "sm_" + number;
  std::vector<std::string> names = json_names(files, "devices/");
  names.insert(names.begin(), flags.device.empty() || flags.device == "gpu" ? kDefaultDevice : flags.device);
  std::vector<std::string> known;
  for (const std::string& name : names) {
    const auto device = find_device(files, name, ProfileFlags{});
    if (!device || !tunable(*device)) continue;
    if (device->arch == arch) {
      if (flags.device != "gpu" || name != kDefaultDevice) flags.device = name;
      flags.arch = specific ? "" : arch;
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
  ROOFGEN_TRY(std::vector<Variant> variants, bench.op->variants(*bench.files, bench.problem));
  const auto known = conditions_of(variants);
  ROOFGEN_TRY(const expr::Map scope, problem_scope(*bench.op, bench.problem, limits(bench.device)));
  ROOFGEN_TRY(variants, expand(std::move(variants), scope));
  const std::vector<std::string> names = names_of(variants);
  std::vector<std::string> here;
  std::ranges::copy_if(wanted, std::back_inserter(here), [&](const std::string& name) {
    return !known.contains(name) || std::ranges::find(names, name) != names.end();
  });
  return here.empty() ? wanted : here;
}

/// Null: interrupted.
Result<std::unique_ptr<Tuned>> tuned(const Session& session, const EmitFlags& flags, const ProblemFlags& problem) {
  auto out = std::make_unique<Tuned>();
  ROOFGEN_TRY(out->bench, make_workbench(session, problem, flags.run));
  Workbench& bench = out->bench;
  RunFlags run = flags.run;
  if (flags.archs.size() > 1) {
    ROOFGEN_TRY(run.variants, variants_here(bench, flags.run.variants));
  }
  // The launch in replay/ comes from the search.
  if (!flags.replay) {
    ROOFGEN_TRY(const std::optional<Manifest> finished, finished_tune(session, bench, problem, run));
    if (auto bundle = recalled(session, finished)) {
      out->bundle = std::move(*bundle);
      return out;
    }
  }
  ROOFGEN_TRY(out->result, run_tune(session, bench, problem, run));
  const TuneReport& report = out->result.report;
  if (report.interrupted) return std::unique_ptr<Tuned>();
  if (report.best_variant.empty()) return Error{Exit::kFailed, "nothing to emit: " + report.verdict.reason};
  out->bundle.problem = bench.problem;
  out->bundle.compiler = bench.compiler->description();
  out->bundle.shapes.push_back({bench.problem.dims, 0});
  ROOFGEN_TRY(out->bundle.pipelines.emplace_back(),
              bundle_pipeline(*bench.files, bench.device, bench.problem, report.best_variant,
                              out->result.winners[report.best_variant], compilers_of(session)));
  out->bundle.pipelines.front()->emitted.evidence = evidence(report);
  return out;
}

/// The kernels of a dispatch table. They are for devices that run all of them.
Result<std::unique_ptr<Tuned>> tuned_family(const Session& session, const EmitFlags& flags,
                                            std::vector<Problem> problems) {
  const DataFiles files(session.data_dirs);
  ROOFGEN_TRY(const Op* op, complete_all(flags.problem.op, problems));
  std::vector<std::map<std::string, int64_t>> sizes;
  for (const Problem& p : problems) sizes.push_back(p.dims);
  ROOFGEN_TRY(expr::Map scope, problem_scope(*op, problems.front(), {}));
  ROOFGEN_TRY(Interface interface, Interface::load(files, problems.front(), std::move(scope), {}));
  ROOFGEN_CHECK(interface.add_sizes(sizes));
  auto out = std::make_unique<Tuned>();
  ROOFGEN_TRY(const std::optional<Manifest> finished,
              finished_family(session, flags.problem, flags.run, flags.family, problems));
  if (auto bundle = recalled(session, finished)) {
    out->bundle = std::move(*bundle);
    out->table = *finished->table;
    return out;
  }
  ROOFGEN_TRY(FamilyRun family, tune_family(session, flags.problem, flags.run, flags.family, std::move(problems)));
  out->bench = std::move(family.bench);
  out->table = std::move(family.result.table);
  Bundle& bundle = out->bundle;
  bundle.problem = out->table.shapes.front().problem;
  bundle.compiler = out->bench.compiler->description();
  bundle.table = dispatch_json(out->table);
  std::string arch = out->bench.device.arch;
  for (size_t k = 0; k < out->table.kernels.size(); ++k) {
    const DispatchKernel& kernel = out->table.kernels[k];
    ROOFGEN_TRY(bundle.pipelines.emplace_back(),
                bundle_pipeline(files, out->bench.device, out->table.shapes[kernel.tuned_for].problem, kernel.variant,
                                std::move(family.result.kernels[k]), compilers_of(session)));
    if (bundle.pipelines.back()->emitted.arch.ends_with('a')) arch = bundle.pipelines.back()->emitted.arch;
  }
  for (const auto& p : bundle.pipelines) p->emitted.arch = arch;
  for (const DispatchShape& s : out->table.shapes) bundle.shapes.push_back({s.problem.dims, s.kernel});
  return out;
}

/// With the files of the bundle that the folder has: a bundle may come from another machine.
Outputs outputs_of(const Session& session, const EmitFlags& flags) {
  Outputs out = session.outputs();
  if (const auto manifest = read_input(flags.directory + "/" + kManifestFile)) out.add_own(written_digests(*manifest));
  return out;
}

/// The bundle of the best kernels. Nothing: interrupted.
Result<std::optional<Emitted>> tuned_bundle(const Session& session, const EmitFlags& flags) {
  if (const auto op = find_op(flags.problem.op); !op) return op.error();
  ROOFGEN_TRY(std::vector<Problem> problems, flags.problem.problems());
  const bool single = problems.size() == 1;
  ROOFGEN_CHECK(single ? check_no_family(flags.family) : check_family(flags.family));
  const DataFiles files(session.data_dirs);
  std::vector<ProblemFlags> runs;
  for (const std::string& arch : flags.archs) {
    ROOFGEN_TRY(runs.emplace_back(), on_arch(files, flags.problem, arch));
  }
  if (runs.empty()) runs.push_back(flags.problem);
  // The directory is checked before minutes are spent.
  ROOFGEN_CHECK(make_directory(flags.directory));
  std::vector<std::string> places;
  for (const std::string& file : bundle_file_names(flags.name.empty() ? flags.problem.op : flags.name))
    places.push_back(flags.directory + "/" + file);
  ROOFGEN_CHECK(outputs_of(session, flags).check(places));
  std::optional<Emitted> out(std::in_place);
  auto& all = out->tuned;
  for (const ProblemFlags& problem : runs) {
    ROOFGEN_TRY(std::unique_ptr<Tuned> one,
                single ? tuned(session, flags, problem) : tuned_family(session, flags, std::move(problems)));
    if (!one) return std::optional<Emitted>();
    if (std::ranges::none_of(all, [&](const auto& t) { return t->arch() == one->arch(); }))
      all.push_back(std::move(one));
  }
  Bundle& bundle = out->bundle;
  const Bundle& first = all.front()->bundle;
  bundle.name = flags.name.empty() ? first.problem.op : flags.name;
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
Result<Bundle> rebuilt_bundle(const Session& session, const EmitFlags& flags) {
  std::vector<std::string> own = flags.problem.given.names();
  own.insert(own.end(), {"--dtype", "--archs"});
  const std::vector<std::string> other{"--manifest", "--output", "--name",      "--data-dir",
                                       "--color",    "--force",  "--test-shape"};
  for (const auto& [name, values] : flags.given())
    if (std::ranges::count(own, name) + std::ranges::count(other, name) == 0)
      return Error{Exit::kUsage, fmt::format("{} is for a search, and --manifest has none; leave it out", name)};
  ROOFGEN_TRY(std::string text, read_input(flags.manifest));
  ROOFGEN_TRY(const Manifest manifest, read_manifest(std::move(text), flags.manifest));
  if (flags.problem.op.empty()) {
    for (const auto& [name, values] : flags.given())
      if (std::ranges::count(own, name) > 0)
        return Error{Exit::kUsage,
                     fmt::format("{} needs the op, as in `roofgen emit {} {} ...`", name, manifest.problem.op, name)};
  } else {
    ROOFGEN_TRY(std::vector<Problem> problems, flags.problem.problems());
    ROOFGEN_CHECK(complete_all(flags.problem.op, problems));
    std::vector<std::string> archs;
    for (const std::string& arch : flags.archs) archs.push_back(arch.starts_with("sm_") ? arch.substr(3) : arch);
    ROOFGEN_CHECK(check_fits(manifest, problems, archs));
  }
  ROOFGEN_TRY(Bundle bundle, bundle_of(DataFiles(session.data_dirs), manifest, compilers_of(session), session.warn));
  if (!flags.name.empty()) bundle.name = flags.name;
  return bundle;
}

/// "L=333,batch=2" of --test-shape.
Result<Json> test_shape(const std::string& text) {
  static const std::regex kSize(R"((\w+)=([1-9][0-9]{0,9}))");
  Json out = Json::object();
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    std::smatch match;
    if (!std::regex_match(part, match, kSize))
      return Error{Exit::kUsage, fmt::format("--test-shape {}: \"{}\"; a size such as L=333 was expected", text, part)};
    out[match[1].str()] = match[2].str();
  }
  return out;
}

void print_results(const Session& session, const Emitted& emitted) {
  if (emitted.tuned.empty()) return;
  if (!emitted.bundle.table.empty()) session.out(dispatch_text(emitted.tuned.front()->table) + "\n");
  for (const auto& p : emitted.bundle.pipelines) {
    if (p->emitted.evidence.empty()) continue;
    const Json result = parse_json(p->emitted.evidence), &variant = result["variant"];
    session.out(fmt::format("{} {} for {} ({} on {}, score {:.2f})\n", p->emitted.variant->name,
                            emitted.bundle.problem.op, p->emitted.arch,
                            time_text(1e-6 * variant["time_us"].get<double>()),
                            result["device"]["name"].get<std::string>(), result["score"].get<double>()));
  }
}

Result<Exit> run(const Session& session, const EmitFlags& flags) {
  if (!flags.name.empty() && !is_c_name(flags.name))
    return Error{
        Exit::kUsage,
        fmt::format("--name: {} is no C name: letters, digits and _ were expected, not beginning with a digit, "
                    "and no keyword of C or C++",
                    flags.name)};
  Emitted emitted;
  if (flags.manifest.empty()) {
    ROOFGEN_TRY(std::optional<Emitted> tuned, tuned_bundle(session, flags));
    if (!tuned) return Exit::kInterrupted;
    emitted = std::move(*tuned);
  } else {
    ROOFGEN_TRY(emitted.bundle, rebuilt_bundle(session, flags));
  }
  for (const std::string& text : flags.test_shapes) {
    ROOFGEN_TRY(Json sizes, test_shape(text));
    emitted.bundle.test_shapes.emplace_back(text, std::move(sizes));
  }
  const DataFiles files(session.data_dirs);
  ROOFGEN_TRY(const auto texts, bundle_files(files, emitted.bundle));
  std::map<std::string, std::string> written;
  for (const auto& [name, text] : texts) written[flags.directory + "/" + name] = text;
  if (flags.replay) {
    const Tuned& first = *emitted.tuned.front();
    ROOFGEN_TRY(const CounterRequest replay,
                counter_request(files, *first.bench.op, first.result, first.result.report.best_variant));
    for (const auto& [name, text] : replay_files(replay.replay)) written[flags.directory + "/replay/" + name] = text;
  }
  ROOFGEN_CHECK(make_directory(flags.directory + (flags.replay ? "/replay" : "")));
  ROOFGEN_CHECK(outputs_of(session, flags).write_all(written));
  print_results(session, emitted);
  session.out(fmt::format("written to {}:\n", flags.directory));
  for (const auto& [name, text] : texts)
    session.out(fmt::format("  {:<28} {}\n", name, bytes_text(static_cast<double>(text.size()))));
  if (flags.replay)
    session.out(fmt::format("  {:<28} {}\n", "replay/", "the launch of this problem, docs/use/counters.md"));
  return Exit::kOk;
}

}  // namespace

Run declare_emit(FlagSet app) {
  auto flags = std::make_shared<EmitFlags>();
  flags->problem.declare(app);
  flags->run.declare(app);
  app.add("-o,--output", flags->directory, "directory to write to").required();
  app.add("--name", flags->name, "prefix of the files and C functions [the op's name]");
  app.add("--archs", flags->archs,
          "kernels for these architectures, each tuned on a device of it: 80,90a [the device's]")
      .split(',');
  app.add(
      "--manifest", flags->manifest,
      "make the bundle of this manifest.json again, without a search; the problem's flags and --archs must be its own");
  app.add("--test-shape", flags->test_shapes, "sizes that the self test tries, too: L=333,batch=2; may be repeated");
  flags->given = [app] { return app.given(); };
  app.add_switch("--replay", flags->replay, "also write replay/, the launch of the tuned problem for profilers");
  flags->family.declare(app, {"--archs", "--replay"});
  app.footer("Example: roofgen emit attention --L 2048 --d 64 -o third_party/attn");
  return [flags](const Session& session) { return run(session, *flags); };
}

}  // namespace roofgen::cli

// roofgen model NAME: a whole transformer, by operator and in all, over batches and lengths.
#include "roofline/analyses/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/cli.h"
#include "roofline/views/views.h"
#include "tuner/session/profile_flags.h"
#include "tuner/session/request.h"
#include "tuner/session/work_flags.h"

namespace roofgen::cli {
namespace {

struct ModelFlags {
  std::string model, phase, device = kDefaultDevice, weights, ceilings = "datasheet", launches = "graph";
  std::string batch = "1", kv, seq, html;
  int64_t tp = 1;
  ProfileFlags profile;
  ModelRequest preset;
  bool json = false;
};

/// "1,2,4k": whole numbers, at least one.
Result<std::vector<int64_t>> counts(const std::string& flag, const std::string& text) {
  std::vector<int64_t> out;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    if (comma == begin)
      return Error{Exit::kUsage,
                   fmt::format("--{} \"{}\": a number is missing; a list like 1,2,4 was expected", flag, text)};
    ROOFGEN_TRY(const int64_t value, parse_count(flag, text.substr(begin, comma - begin)));
    if (value < 1) return Error{Exit::kUsage, fmt::format("--{} {}: 1 or more was expected", flag, text)};
    out.push_back(value);
    begin = comma + 1;
  }
  return out;
}

/// The list that the phase's length comes from; the other one is refused.
Result<std::vector<int64_t>> lengths(const ModelFlags& flags, const Model& model) {
  const auto phase = flags.phase.empty() ? model.phases.begin()
                                         : std::find_if(model.phases.begin(), model.phases.end(),
                                                        [&](const ModelPhase& p) { return p.name == flags.phase; });
  if (phase == model.phases.end()) return std::vector<int64_t>{0};  // run_model says so
  const bool by_kv = phase->length == "kv";
  if (const std::string& other = by_kv ? flags.seq : flags.kv; !other.empty())
    return Error{Exit::kUsage, fmt::format("--{}: the phase {} of {} takes --{}", by_kv ? "seq" : "kv", phase->name,
                                           model.name, phase->length)};
  const std::string& given = by_kv ? flags.kv : flags.seq;
  if (given.empty()) return std::vector<int64_t>{phase->preset};
  return counts(phase->length, given);
}

Result<Exit> list_models(const DataFiles& files) {
  std::vector<Model> models;
  for (const std::string& name : model_names(files)) {
    ROOFGEN_TRY(Model m, load_model(files, name));
    models.push_back(std::move(m));
  }
  fmt::print("{}", models_text(models));
  return Exit::kOk;
}

Result<Exit> run(const Terminal& terminal, const ModelFlags& flags) {
  const DataFiles files(terminal.data_dirs);
  if (flags.model.empty() || flags.model == "list") return list_models(files);
  ROOFGEN_TRY(const Model model, load_model(files, flags.model));
  ROOFGEN_TRY(const Device device, find_device(files, flags.device, flags.profile, warn));
  ModelRequest request = flags.preset;
  request.phase = flags.phase;
  request.dtypes = flags.weights;
  request.tp = flags.tp;
  request.launches = flags.launches == "graph" ? Launches::kGraph : Launches::kSeparate;
  ROOFGEN_TRY(request.roofs, parse_roof_set(flags.ceilings));
  ROOFGEN_TRY(std::vector<int64_t> batches, counts("batch", flags.batch));
  ROOFGEN_TRY(std::vector<int64_t> sizes, lengths(flags, model));
  ModelView view{model, device, std::move(batches), std::move(sizes), {}, 0};
  ROOFGEN_TRY(view.parameters, parameter_count(model));
  ROOFGEN_TRY(view.runs, sweep_model(model, device, request, view.batches, view.lengths));
  if (flags.json || flags.html.empty()) fmt::print("{}", flags.json ? model_json(view) : model_text(view));
  if (!flags.html.empty()) return show_page(model_page(view), flags.html, files, terminal);
  return Exit::kOk;
}

}  // namespace

Run declare_model(FlagSet app) {
  auto flags = std::make_shared<ModelFlags>();
  ModelRequest& preset = flags->preset;
  app.add("model", flags->model, "model of the catalogue; without a name: lists the models");
  app.add("--phase", flags->phase, "decode, prefill, ... [the model's first]");
  app.add("--batch", flags->batch, "sequences in a step; a list sweeps: 1,2,4 [1]");
  app.add("--kv", flags->kv, "length of each sequence's cache, in decode; may be a list");
  app.add("--seq", flags->seq, "length of each prompt or image, in prefill and forward; may be a list");
  app.add("--device", flags->device,
          fmt::format("device of the catalogue, or gpu: the one in this machine [{}]", kDefaultDevice));
  flags->profile.declare(app);
  app.add("--weights", flags->weights, "how the model is stored: one of its alternatives [the first]");
  app.add("--tp", flags->tp, "GPUs of a tensor-parallel group [1]");
  app.add("--mem-eff", preset.bandwidth_efficiency, "share of each bandwidth that is reached [0.8]");
  app.add("--compute-eff", preset.compute_efficiency, "share of each arithmetic rate that is reached [0.7]");
  app.add("--launches", flags->launches, "graph (no gaps) or separate [graph]").one_of({"graph", "separate"});
  app.add("--softmax-flops", preset.softmax_flops, "FLOPs counted per softmax element, in addition to MMA FLOPs [0]");
  app.add("--ceilings", flags->ceilings, "datasheet or sustained [datasheet]");
  app.add_switch("--json", flags->json, "as JSON (docs/use/models.md)");
  app.add("--html", flags->html, "write a self-contained page of figures here");
  app.footer("Example: roofgen model generic-7b --phase decode --kv 2048 --batch 1,8,64 --device h100-sxm");
  return [flags](const Terminal& terminal) { return run(terminal, *flags); };
}

}  // namespace roofgen::cli

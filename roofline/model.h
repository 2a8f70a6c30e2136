// A whole transformer as data: models/<name>.json lists its operators, each a work formula at dimensions that follow
// from the model's numbers, the batch and the cache (docs/models.md). Evaluated for one step of one phase.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roofline/explain.h"

namespace roofgen {

/// What a step is: one new token for each sequence, a prompt, a forward pass.
struct ModelPhase {
  std::string name, help;
  std::string length;  ///< what its length is called: "kv" (one query against a cache) or "seq" (queries and keys)
  int64_t preset = 0;  ///< default of that length
  expr::Expr yields;   ///< how many `unit`s a step gives
  std::string unit;    ///< "tokens", "images"
};

/// One way to store a model. The roles are the file's own: "weights", "inputs", "activations", "kv", ...
struct ModelDtypes {
  std::string name, help;
  std::map<std::string, const NumberFormat*> roles;
};

/// Elements that stay in memory. `dtype` is a role or a format.
struct ModelStorage {
  expr::Expr elements;
  std::string dtype;
  bool sharded = false;  ///< divided by the GPUs of the group; else every GPU holds all of it
};

struct ModelOperator {
  std::string name;
  std::shared_ptr<const WorkFormula> formula;
  expr::Expr count;                ///< times per step
  std::optional<expr::Expr> when;  ///< absent: in every phase
  std::vector<std::pair<std::string, expr::Expr>> dims, flags;
  std::map<std::string, std::string> dtypes;  ///< the formula's role -> the model's role, or a format
  std::vector<std::string> sharded;     ///< dimensions divided by the GPUs of the group; none: each GPU does it all
  std::optional<ModelStorage> weights;  ///< of one of `count`

  /// What the group exchanges after it, when it is more than one GPU.
  struct Collective {
    std::shared_ptr<const WorkFormula> formula;
    expr::Expr elements;
    std::string dtype;
  };
  std::optional<Collective> after;
};

struct Model {
  std::string name, title, source, file;
  std::map<std::string, int64_t> params;
  std::vector<std::pair<std::string, expr::Expr>> let;
  std::vector<ModelPhase> phases;   ///< the first is the default
  std::vector<ModelDtypes> dtypes;  ///< the first is the default
  std::vector<ModelOperator> operators;
  std::vector<ModelStorage> kv_cache;     ///< of all sequences
  std::vector<ModelStorage> activations;  ///< alive at once at the widest place of the step
  std::vector<std::string> notes;         ///< what it leaves out or assumes
  double published_parameters = 0;        ///< 0: not stated
  std::string published_source;
};

std::vector<std::string> model_names(const DataFiles& files);
/// Unknown name: Exit::kUsage with the nearest one. A fault in the file: its place.
Result<Model> load_model(const DataFiles& files, const std::string& name);

/// How launches enter the time.
enum class Launches { kGraph, kSeparate };  ///< no gaps between kernels; or launch_us before each

struct ModelRequest {
  std::string phase;  ///< empty: the model's first
  int64_t batch = 1;
  int64_t length = 0;  ///< cache or prompt length, whichever the phase has; 0: the phase's default
  std::string dtypes;  ///< name of one of Model::dtypes; empty: the first
  int64_t tp = 1;      ///< GPUs of a tensor-parallel group
  RoofSet roofs = RoofSet::kDatasheet;
  double bandwidth_efficiency = 0.8;  ///< share of each bandwidth that is reached
  double compute_efficiency = 0.7;    ///< share of each arithmetic rate that is reached
  Launches launches = Launches::kGraph;
  double softmax_flops = 0;  ///< counted per softmax element, 0 to 1000
};

/// One operator in a step, `count` times, on one GPU.
struct OperatorRun {
  std::string name;
  int64_t count = 0;
  Explanation explanation;  ///< of one of them
  double flops = 0;         ///< by its own convention (OpWork::flops), all of them
  double dram_bytes = 0, link_bytes = 0, seconds = 0, share = 0;
  Regime regime = Regime::kMemory;
  bool sharded = false;     ///< divided by the group
  bool collective = false;  ///< exchange between GPUs
};

/// What one GPU must hold.
struct ModelMemory {
  double weights = 0, kv_cache = 0, activations = 0, capacity = 0;  ///< bytes
  double total() const { return weights + kv_cache + activations; }
  bool fits() const { return total() <= capacity; }
};

/// What dividing the work over GPUs gives.
struct ModelParallel {
  double collective_seconds = 0, link_bytes = 0;
  double unsharded_share = 0;  ///< of the time on one GPU
  double amdahl_bound = 1;     ///< speed-up if exchanging cost nothing
  double speedup = 1;          ///< over one GPU
};

/// One step. Work and bytes are those of one GPU; tokens are the group's.
struct ModelRun {
  ModelRequest request;                ///< with the defaults filled in
  int64_t kv = 0, seq = 0;             ///< keys, and queries, of each sequence
  std::vector<OperatorRun> operators;  ///< in the order of the model; without those that do nothing in this phase
  double flops = 0;                    ///< of matrix work (and softmax, where the convention counts it)
  double vector_flops = 0;             ///< of operators without matrix work
  double dram_bytes = 0, seconds = 0, units = 0;
  std::string unit;
  Roof compute;  ///< the ceiling of the largest part of `flops`
  double ridge = 0;
  Regime regime = Regime::kMemory;          ///< of the largest part of the time
  std::optional<double> ai_limit;           ///< arithmetic intensity as the batch grows
  std::optional<double> units_per_s_limit;  ///< and throughput
  std::optional<double> kv_units_per_s;     ///< what reading the cache alone would allow
  ModelMemory memory;
  int64_t largest_batch = 0;  ///< that fits; 0: not even one sequence
  ModelParallel parallel;
  std::vector<std::string> notes;  ///< arithmetic that the device has no units for, each once
  std::vector<Warning> warnings;

  double arithmetic_intensity() const { return dram_bytes > 0 ? flops / dram_bytes : 0; }
  double units_per_s() const { return units / seconds; }
  bool below_ridge() const { return arithmetic_intensity() < ridge; }
  /// The ridge of the rates that are assumed to be reached: regimes are told by this one.
  double assumed_ridge() const { return ridge * request.compute_efficiency / request.bandwidth_efficiency; }
  double ms_per_request() const { return 1e3 * seconds / static_cast<double>(request.batch); }
};

/// Exit::kUsage: an unknown phase or dtype, a number out of its range, a group that does not divide the model, a
/// device without NVLink for more than one GPU.
Result<ModelRun> run_model(const Model& model, const Device& device, const ModelRequest& request);

/// A run for each length and batch, lengths outermost; 1 to 4096 of them (else Exit::kUsage).
Result<std::vector<ModelRun>> sweep_model(const Model& model, const Device& device, ModelRequest request,
                                          const std::vector<int64_t>& batches, const std::vector<int64_t>& lengths);

/// Parameters of the model, embeddings included.
Result<double> parameter_count(const Model& model);

/// Speed-up when `share` of the time becomes `factor` times faster; infinity is a legal factor.
double amdahl_bound(double share, double factor);

}  // namespace roofgen

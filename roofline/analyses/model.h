// A whole transformer as data. models/<name>.json lists its operators; each is a work formula whose dimensions follow
// from the model's parameters, the batch and the cache (docs/use/models.md). A run evaluates one step of one phase.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "roofline/analyses/explain.h"

namespace roofgen {

/// The kind of a step: one new token per sequence, a prompt, or a forward pass.
struct ModelPhase {
  std::string name, help;
  std::string length;  ///< name of its length: "kv" (one query against a cache) or "seq" (queries and keys)
  int64_t preset = 0;  ///< default of that length
  expr::Expr yields;   ///< number of `unit`s that a step produces
  std::string unit;    ///< "tokens", "images"
};

/// A set of storage formats for a model. The file defines the roles: "weights", "inputs", "activations", "kv", ...
struct ModelDtypes {
  std::string name, help;
  std::map<std::string, const NumberFormat*> roles;
};

/// Elements kept in device memory. `dtype` is a role or a format.
struct ModelStorage {
  expr::Expr elements;
  std::string dtype;
  bool sharded = false;  ///< divided among the GPUs of the group; otherwise every GPU holds a full copy
};

struct ModelOperator {
  std::string name;
  std::shared_ptr<const WorkFormula> formula;
  expr::Expr count;                ///< times per step
  std::optional<expr::Expr> when;  ///< absent: active in every phase
  std::vector<std::pair<std::string, expr::Expr>> dims, flags;
  std::map<std::string, std::string> dtypes;  ///< the formula's role -> the model's role, or a format
  std::vector<std::string> sharded;  ///< dimensions divided among the GPUs of the group; empty: each GPU does all of it
  std::optional<ModelStorage> weights;  ///< of one of the `count` instances

  /// The exchange within a group of several GPUs after the operator.
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
  std::vector<ModelStorage> activations;  ///< live at the same time at the step's peak
  std::vector<std::string> notes;         ///< omissions and assumptions
  double published_parameters = 0;        ///< 0: not stated
  std::string published_source;
};

std::vector<std::string> model_names(const DataFiles& files);
/// Unknown name: Exit::kUsage with the nearest name. Errors in the file carry their position.
Result<Model> load_model(const DataFiles& files, const std::string& name);

/// How kernel launches contribute to the time.
enum class Launches { kGraph, kSeparate };  ///< no gaps between kernels; or launch_us before each kernel

struct ModelRequest {
  std::string phase;  ///< empty: the model's first phase
  int64_t batch = 1;
  int64_t length = 0;  ///< cache or prompt length, depending on the phase; 0: the phase's default
  std::string dtypes;  ///< a name in Model::dtypes; empty: the first
  int64_t tp = 1;      ///< GPUs of a tensor-parallel group
  RoofSet roofs = RoofSet::kDatasheet;
  double bandwidth_efficiency = 0.8;  ///< reached fraction of each bandwidth
  double compute_efficiency = 0.7;    ///< reached fraction of each arithmetic rate
  Launches launches = Launches::kGraph;
  double softmax_flops = 0;  ///< counted per softmax element, 0 to 1000
};

/// One operator of a step, executed `count` times, on one GPU.
struct OperatorRun {
  std::string name;
  int64_t count = 0;
  Explanation explanation;  ///< of a single execution
  double flops = 0;         ///< of all executions, by the operator's convention (OpWork::flops)
  double dram_bytes = 0, link_bytes = 0, seconds = 0, share = 0;
  Regime regime = Regime::kMemory;
  bool sharded = false;     ///< divided among the group
  bool collective = false;  ///< exchange between GPUs
};

/// The memory of one GPU.
struct ModelMemory {
  double weights = 0, kv_cache = 0, activations = 0, capacity = 0;  ///< bytes
  double total() const { return weights + kv_cache + activations; }
  bool fits() const { return total() <= capacity; }
};

/// The effect of dividing the work over GPUs.
struct ModelParallel {
  double collective_seconds = 0, link_bytes = 0;
  double unsharded_share = 0;  ///< fraction of the time on one GPU
  double amdahl_bound = 1;     ///< speed-up with a free exchange
  double speedup = 1;          ///< relative to one GPU
};

/// One step. Work and bytes are per GPU; units (tokens) are for the whole group.
struct ModelRun {
  ModelRequest request;                ///< with the defaults filled in
  int64_t kv = 0, seq = 0;             ///< keys and queries of each sequence
  std::vector<OperatorRun> operators;  ///< in the model's order; without operators that are inactive in this phase
  double flops = 0;                    ///< of matrix work (and of softmax, if the convention counts it)
  double vector_flops = 0;             ///< of operators without matrix work
  double dram_bytes = 0, seconds = 0, units = 0;
  std::string unit;
  Roof compute;  ///< the ceiling of the largest part of `flops`
  double ridge = 0;
  Regime regime = Regime::kMemory;          ///< of the largest part of the time
  std::optional<double> ai_limit;           ///< limit of the arithmetic intensity as the batch grows
  std::optional<double> units_per_s_limit;  ///< limit of the throughput as the batch grows
  std::optional<double> kv_units_per_s;     ///< limit set by reading the cache alone
  ModelMemory memory;
  int64_t largest_batch = 0;  ///< that fits in memory; 0: not even one sequence fits
  ModelParallel parallel;
  std::vector<std::string> notes;  ///< arithmetic without native units on the device, each once
  std::vector<Warning> warnings;

  double arithmetic_intensity() const { return dram_bytes > 0 ? flops / dram_bytes : 0; }
  double units_per_s() const { return units / seconds; }
  bool below_ridge() const { return arithmetic_intensity() < ridge; }
  /// The ridge under the assumed efficiencies. Regimes use this ridge.
  double assumed_ridge() const { return ridge * request.compute_efficiency / request.bandwidth_efficiency; }
  double ms_per_request() const { return 1e3 * seconds / static_cast<double>(request.batch); }
};

/// Exit::kUsage: an unknown phase or dtype, a number out of range, a group size that does not divide the model, several
/// GPUs of a device without NVLink.
Result<ModelRun> run_model(const Model& model, const Device& device, const ModelRequest& request);

/// One run per length and batch, with lengths as the outer loop; 1 to 4096 runs (else Exit::kUsage).
Result<std::vector<ModelRun>> sweep_model(const Model& model, const Device& device, ModelRequest request,
                                          const std::vector<int64_t>& batches, const std::vector<int64_t>& lengths);

/// Parameters of the model, embeddings included.
Result<double> parameter_count(const Model& model);

/// Speed-up when a fraction `share` of the time becomes `factor` times faster; `factor` may be infinite.
double amdahl_bound(double share, double factor);

}  // namespace roofgen

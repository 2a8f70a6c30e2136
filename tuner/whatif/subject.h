// The subject of a what-if: a chain of steps, or attention. It gives the partitions, the problem of each part, and the
// values between kernels.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generator/ops/chain.h"
#include "generator/ops/op.h"
#include "tuner/whatif/report.h"
#include "tuner/whatif/whatif.h"

namespace roofgen {

/// The problem that the kernels of a plan solve.
struct PlanProblem {
  std::unique_ptr<Op> op;
  Problem problem;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::vector<std::string> steps() const = 0;
  virtual std::string name(Part part) const = 0;  ///< "gemm+bias"
  virtual Result<std::vector<Partition>> partitions(const DataFiles& files, const Device& device) const = 0;
  virtual DType dtype() const = 0;
  virtual bool matrix_flops() const { return true; }  ///< MMA FLOPs are counted, else operations of the FP32 pipe
  virtual Result<RequiredWork> required(const DataFiles& files) const = 0;  ///< of all steps together

  virtual Result<PlanProblem> make(const std::vector<Part>& plan) const = 0;
  /// The part with whose best schedules the search of this part begins; itself: there is none.
  virtual Part leader(Part part) const = 0;
  /// Candidates of a part; `asked` 0: the default.
  virtual uint64_t evals(Part part, uint64_t asked) const = 0;

  /// The operator whose variants are partitions too, Partition::variant.
  virtual const Op* whole() const { return nullptr; }

  /// Values of earlier steps that a part reads, besides that of the step before it.
  virtual std::vector<size_t> added(Part) const { return {}; }
  /// Bytes of a step's value that `kernel` writes or reads.
  virtual double value_bytes(size_t step, Part kernel) const = 0;
};

/// `problem`: of the whole chain, completed.
class ChainSubject final : public Subject {
 public:
  ChainSubject(const Chain& chain, const Problem& problem) : chain_(chain), problem_(problem) {}
  std::vector<std::string> steps() const override;
  std::string name(Part part) const override { return chain_.name(part); }
  Result<std::vector<Partition>> partitions(const DataFiles& files, const Device& device) const override;
  DType dtype() const override { return chain_.dtype(); }
  bool matrix_flops() const override { return chain_.has_gemm(); }
  Result<RequiredWork> required(const DataFiles& files) const override;
  Result<PlanProblem> make(const std::vector<Part>& plan) const override;
  Part leader(Part part) const override;
  uint64_t evals(Part part, uint64_t asked) const override;
  std::vector<size_t> added(Part part) const override { return chain_.added(part); }
  double value_bytes(size_t step, Part kernel) const override;

 private:
  const Chain& chain_;
  const Problem& problem_;
};

/// `problem`: of attention, completed.
class AttentionSubject final : public Subject {
 public:
  explicit AttentionSubject(const Problem& problem);
  std::vector<std::string> steps() const override { return steps_; }
  std::string name(Part part) const override;
  Result<std::vector<Partition>> partitions(const DataFiles& files, const Device& device) const override;
  DType dtype() const override { return problem_.dtype; }
  Result<RequiredWork> required(const DataFiles& files) const override;
  Result<PlanProblem> make(const std::vector<Part>& plan) const override;
  Part leader(Part part) const override;
  uint64_t evals(Part part, uint64_t asked) const override;
  const Op* whole() const override;
  double value_bytes(size_t step, Part kernel) const override;

 private:
  size_t softmax() const { return steps_.size() - 2; }
  bool is_whole(Part part) const { return part.size() == steps_.size(); }
  const Problem& problem_;
  std::vector<std::string> steps_;
};

/// An op whose variants are the partitions: the kernels of one with a kernel for each step are the steps. `variants`:
/// of the problem.
class VariantsSubject final : public Subject {
 public:
  static Result<VariantsSubject> make(const Op& op, const Problem& problem, const DataFiles& files,
                                      const Device& device);
  std::vector<std::string> steps() const override { return steps_; }
  std::string name(Part part) const override;
  Result<std::vector<Partition>> partitions(const DataFiles& files, const Device& device) const override;
  DType dtype() const override { return problem_->dtype; }
  bool matrix_flops() const override { return false; }
  Result<RequiredWork> required(const DataFiles& files) const override;
  Result<PlanProblem> make(const std::vector<Part>& plan) const override;
  Part leader(Part part) const override { return part; }
  uint64_t evals(Part, uint64_t asked) const override { return asked > 0 ? asked : op_->default_evals(); }
  const Op* whole() const override { return op_; }
  double value_bytes(size_t, Part) const override { return 0; }
  /// Of variants that cut otherwise.
  const std::vector<std::string>& others() const { return others_; }

 private:
  VariantsSubject(const Op& op, const Problem& problem) : op_(&op), problem_(&problem) {}
  const Op* op_;
  const Problem* problem_;
  std::vector<std::string> steps_, others_;
  std::vector<Partition> partitions_;
};

/// `plan`: the name of a partition to compare with the best; may be empty. `title` and `problem` are for the report.
Result<WhatIfReport> search(const TuneResources& context, const Subject& subject, const std::string& title,
                            const Problem& problem, const std::string& plan, const TuneOptions& options);

// ---- Partitions made of kernels that were tuned alone ----------------------------------------------

/// A part of a chain, tuned as its own problem: inputs come from DRAM, outputs go to DRAM.
struct TunedPart {
  Part part;
  std::string failed;  ///< why there is no kernel
  KernelReport kernel;
};

/// The time of a tuned part's machine code with other DRAM traffic; nullopt: the machine code gives none.
using Retime = std::function<std::optional<CodeTime>(Part part, double dram_bytes)>;

/// Without matrix work operations of the FP32 pipe are counted: else the arithmetic intensity would be 0.
void count_flops(const Subject& subject, KernelReport& kernel);

/// The times and the traffic of one partition, given the intermediates that stay in L2 between its kernels. A value
/// stays if it and all traffic until it is read fit the usable L2. `floor_seconds`: T_problem of all steps.
PartitionReport compose(const Subject& subject, const Device& device, double floor_seconds, const Partition& partition,
                        const std::vector<TunedPart>& tuned, const Retime& retime);

/// A partition that is a variant of tune(). `tuned`: nullptr if `failed` says why there is none.
PartitionReport compose(double floor_seconds, const Partition& partition, const VariantReport* tuned,
                        const std::string& failed);

}  // namespace roofgen

// What a what-if cuts: a chain of steps, or attention. From it come the partitions, the problem of each part, and what
// passes between kernels.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "generator/ops/chain.h"
#include "generator/ops/op.h"

namespace roofgen {

/// The kernels of a plan as a problem of their own.
struct PlanProblem {
  std::unique_ptr<Op> op;
  Problem problem;
};

class Subject {
 public:
  /// A schedule's parameters, as Stage::points has them.
  using Point = std::vector<std::pair<std::string, ParamValue>>;

  virtual ~Subject() = default;
  virtual std::vector<std::string> steps() const = 0;
  virtual std::string name(Part part) const = 0;  ///< "gemm+bias"
  virtual Result<std::vector<Partition>> partitions(const DataFiles& files) const = 0;
  virtual DType dtype() const = 0;
  virtual bool matrix_flops() const { return true; }  ///< else operations of the FP32 pipe are what is counted
  virtual Result<RequiredWork> required(const DataFiles& files) const = 0;  ///< of all steps together

  /// `points`: only these schedules are tried; empty: all.
  virtual Result<PlanProblem> make(const std::vector<Part>& plan, const std::vector<Point>& points) const = 0;
  /// The part whose search finds the schedules that this one tries; itself: it is searched.
  virtual Part leader(Part part) const = 0;
  /// Candidates of a part; `asked` 0: the default.
  virtual uint64_t evals(Part part, uint64_t asked) const = 0;

  /// Earlier values that a part reads beside the one before it.
  virtual std::vector<size_t> added(Part) const { return {}; }
  /// Bytes of a step's value, as far as a kernel that writes or reads it touches them.
  virtual double value_bytes(size_t step, Part kernel) const = 0;
};

/// `problem`: of the whole chain, completed.
class ChainSubject final : public Subject {
 public:
  ChainSubject(const Chain& chain, const Problem& problem) : chain_(chain), problem_(problem) {}
  std::vector<std::string> steps() const override;
  std::string name(Part part) const override { return chain_.name(part); }
  Result<std::vector<Partition>> partitions(const DataFiles& files) const override;
  DType dtype() const override { return chain_.dtype(); }
  bool matrix_flops() const override { return chain_.has_gemm(); }
  Result<RequiredWork> required(const DataFiles& files) const override;
  Result<PlanProblem> make(const std::vector<Part>& plan, const std::vector<Point>& points) const override;
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
  Result<std::vector<Partition>> partitions(const DataFiles& files) const override;
  DType dtype() const override { return problem_.dtype; }
  Result<RequiredWork> required(const DataFiles& files) const override;
  Result<PlanProblem> make(const std::vector<Part>& plan, const std::vector<Point>& points) const override;
  Part leader(Part part) const override;
  uint64_t evals(Part part, uint64_t asked) const override;
  double value_bytes(size_t step, Part kernel) const override;

 private:
  size_t softmax() const { return steps_.size() - 2; }
  bool is_whole(Part part) const { return part.size() == steps_.size(); }
  const Problem& problem_;
  std::vector<std::string> steps_;
};

}  // namespace roofgen

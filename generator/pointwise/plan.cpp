// Divides a formula into phases, one for each reduction, and selects the value that x carries from phase to phase.
#include <fmt/format.h>

#include <algorithm>

#include "generator/pointwise/body.h"
#include "generator/pointwise/functions.h"

namespace roofgen::pointwise {
namespace {

constexpr auto kNoLeaf = [](int) { return false; };

class Planner {
 public:
  explicit Planner(Body& body) : body_(body) {
    std::vector<int> roots;
    for (const PlannedOutput& o : body_.planned) roots.push_back(o.value);
    used_ = body_.below(roots, kNoLeaf);
  }

  Result<void> run(const std::string& argument) {
    for (int i : used_)
      if (body_[i].code == Code::kReduce) body_.phases.push_back({.reduce = i, .derived = {}, .tensors = {}});
    if (body_.phases.size() > kMaxPhases)
      return Error{
          Exit::kUsage,
          fmt::format("{} different reductions over the row; the limit is {}", body_.phases.size(), kMaxPhases),
          {argument, 0, 0}};
    describe();
    for (size_t i = 0; i < body_.outputs.size(); ++i) {
      PlannedOutput& o = body_.planned[i];
      o.after_phase = body_[o.value].level;
      if (body_.outputs[i].per_row && body_[o.value].along_row)
        return Error{Exit::kUsage,
                     fmt::format("{} must be one value for each row, but {} differs along the row",
                                 body_.outputs[i].buffer, body_.outputs[i].value),
                     {argument, 0, 0}};
    }
    carry();
    for (size_t p = 0; p + 1 < body_.phases.size(); ++p)
      body_.phases[p].online = is_online(body_.phases[p], body_.phases[p + 1]);
    collect();
    count();
    return {};
  }

 private:
  void describe() {
    const Vocabulary& v = body_.vocabulary;
    int phase = 0;
    for (int i = 0; i < body_.graph.size(); ++i) {
      Operation& op = body_.graph[i];
      for (int a : op.args) {
        if (a < 0) continue;
        op.along_row |= body_[a].along_row;
        op.needs_tensor |= body_[a].needs_tensor;
        op.level = std::max(op.level, body_[a].level);
      }
      if (op.code == Code::kSource) op.along_row = true;
      if (op.code == Code::kIndex) op.along_row = op.which + 1 == static_cast<int>(v.indices.size());
      if (op.code == Code::kTensor) {
        const std::vector<std::string>& indices = v.tensors[static_cast<size_t>(op.which)].indices;
        op.along_row = std::find(indices.begin(), indices.end(), v.indices.back()) != indices.end();
        op.needs_tensor = true;
      }
      if (op.code == Code::kReduce) {
        op.along_row = op.needs_tensor = false;
        if (used_.count(i)) op.level = phase++;
      }
    }
    for (size_t i = 0; i < body_.outputs.size(); ++i)
      if (is_exact(body_.outputs[i].dtype))
        for (int j : body_.below({body_.planned[i].value}, kNoLeaf)) body_.graph[j].exact = true;
  }

  /// Depends on totals, scalars and the row alone: computed once per row, not per element.
  bool once_a_row(int i) const {
    const Operation& op = body_[i];
    return op.type == Type::kFloat && op.level >= 0 && op.code != Code::kReduce && !op.along_row && !op.needs_tensor;
  }
  /// The operations below `roots` for one element, when x holds the value of operation `x`.
  std::set<int> element(const std::vector<int>& roots, int x) const {
    return body_.below(roots, [&](int i) { return i == x || body_[i].code == Code::kReduce || once_a_row(i); });
  }
  std::set<int> tensors_in(const std::set<int>& operations) const {
    std::set<int> out;
    for (int i : operations)
      if (body_[i].code == Code::kTensor) out.insert(body_[i].which);
    return out;
  }

  /// The largest operation that all later uses of x depend on. The phase can compute it, because earlier totals and the
  /// tensors of the phase's own term are available.
  int carried(size_t phase, int x, const std::vector<int>& later) const {
    const std::set<int> tensors = tensors_in(element({body_.term(body_.phases[phase])}, x));
    const std::set<int> needed = element(later, x);
    if (!needed.count(x)) return x;
    for (auto at = needed.rbegin(); at != needed.rend(); ++at) {
      const int c = *at;
      const Operation& op = body_[c];
      if (c == x || op.type != Type::kFloat || op.level >= static_cast<int>(phase) || !op.along_row) continue;
      const std::set<int> own = tensors_in(element({c}, x));
      if (!std::includes(tensors.begin(), tensors.end(), own.begin(), own.end())) continue;
      const std::set<int> around = body_.below(
          later, [&](int i) { return i == x || i == c || body_[i].code == Code::kReduce || once_a_row(i); });
      if (!around.count(x)) return c;
    }
    return x;
  }

  void carry() {
    int x = 0;
    while (body_[x].code != Code::kSource) ++x;
    for (PlannedOutput& o : body_.planned)
      if (o.after_phase < 0) o.x = x;
    for (size_t p = 0; p < body_.phases.size(); ++p) {
      const int index = static_cast<int>(p);
      std::vector<int> later;
      for (size_t k = p + 1; k < body_.phases.size(); ++k) later.push_back(body_.term(body_.phases[k]));
      for (const PlannedOutput& o : body_.planned)
        if (o.after_phase >= index) later.push_back(o.value);
      body_.phases[p].before = x;
      x = body_.phases[p].after = carried(p, x, later);
      for (PlannedOutput& o : body_.planned)
        if (o.after_phase == index) o.x = x;
    }
  }

  bool is_online(const Phase& first, const Phase& second) const {
    if (static_cast<Reduce>(body_[first.reduce].which) != Reduce::kMax ||
        static_cast<Reduce>(body_[second.reduce].which) != Reduce::kSum)
      return false;
    const Operation& term = body_[body_.term(second)];
    if (term.code != Code::kCall || term.which != find_function("exp")) return false;
    const Operation& difference = body_[term.args[0]];
    return difference.code == Code::kSub && difference.args[0] == body_.term(first) &&
           difference.args[1] == first.reduce;
  }

  void collect() {
    std::set<int> derived;
    const auto visit = [&](const std::vector<int>& roots, int x) {
      const std::set<int> operations = element(roots, x);
      for (int i : operations)
        if (i != x && once_a_row(i)) derived.insert(i);
      return tensors_in(operations);
    };
    for (Phase& p : body_.phases) p.tensors = visit({body_.term(p), p.after}, p.before);
    for (PlannedOutput& o : body_.planned) o.tensors = visit({o.value}, o.x);
    for (int i : derived) {
      body_.graph[i].derived = body_.derived++;
      body_.phases[static_cast<size_t>(body_[i].level)].derived.push_back(i);
    }
    for (int i : used_) {
      if (body_[i].code == Code::kTensor)
        body_.tensors.push_back(body_.vocabulary.tensors[static_cast<size_t>(body_[i].which)]);
      if (body_[i].code == Code::kScalar) body_.scalars.push_back(body_[i].which);
    }
    std::sort(body_.scalars.begin(), body_.scalars.end());
  }

  void count() {
    std::map<int, int> uses;
    for (int i : used_)
      for (int a : body_[i].args)
        if (a >= 0) ++uses[a];
    Cost& cost = body_.cost;
    cost.reductions = static_cast<int>(body_.phases.size());
    for (int i : used_) {
      const Operation& op = body_[i];
      if (op.code == Code::kReduce) (static_cast<Reduce>(op.which) == Reduce::kSum ? cost.fp32 : cost.alu) += 1;
      if (!op.along_row && !op.needs_tensor) continue;
      switch (op.code) {
        case Code::kAdd:
        case Code::kSub: {
          (op.type == Type::kFloat ? cost.fp32 : cost.alu) += 1;
          const auto fuses = [&](int a) {
            return op.type == Type::kFloat && body_[a].code == Code::kMul && uses[a] == 1;
          };
          if (fuses(op.args[0]) || fuses(op.args[1])) cost.fp32 -= 1;  // one of the two products is part of an FMA
          break;
        }
        case Code::kMul: (op.type == Type::kFloat ? cost.fp32 : cost.alu) += 1; break;
        case Code::kFloorDiv:
        case Code::kMod: cost.alu += 2; break;
        case Code::kConvert:
        case Code::kSelect:
        case Code::kLess:
        case Code::kLessEqual:
        case Code::kEqual:
        case Code::kNotEqual:
        case Code::kMin:
        case Code::kMax: cost.alu += 1; break;
        case Code::kCast: cost.alu += static_cast<DType>(op.which) == DType::kFp8 ? 7 : 3; break;
        case Code::kCall: {
          const Function& f = functions()[static_cast<size_t>(op.which)];
          const Work& work = op.exact ? f.exact : f.fast;
          cost.fp32 += work.fp32, cost.alu += work.alu, cost.mufu += work.mufu, cost.exps += work.exps;
          break;
        }
        default: break;
      }
    }
  }

  Body& body_;
  std::set<int> used_;
};

}  // namespace

Result<void> plan(Body& body, const std::string& argument) { return Planner(body).run(argument); }

}  // namespace roofgen::pointwise

#include "generator/ops/chain.h"

#include <fmt/format.h>

#include <algorithm>

namespace roofgen {
namespace {

std::string value_name(size_t before_step) { return fmt::format("v{}", before_step); }

}  // namespace

std::string Chain::name(Part part) const {
  std::string out;
  for (size_t i = part.first; i < part.last; ++i) out += (out.empty() ? "" : "+") + steps_[i].label;
  return out;
}

std::string Chain::buffer_before(size_t step) const {
  return step == 0 ? "x" : step == steps_.size() ? "y" : fmt::format("t{}", step);
}

std::vector<size_t> Chain::kept(Part part) const {
  std::vector<size_t> out;
  for (size_t i = part.first; i + 1 < part.last; ++i)
    if (std::any_of(steps_.begin() + static_cast<std::ptrdiff_t>(part.last), steps_.end(),
                    [&](const ChainStep& s) { return s.adds == i; }))
      out.push_back(i);
  return out;
}

std::vector<size_t> Chain::added(Part part) const {
  std::vector<size_t> out;
  for (size_t i = part.first; i < part.last; ++i)
    // The value before the part is its source.
    if (const auto a = steps_[i].adds; a && *a + 1 < part.first && std::find(out.begin(), out.end(), *a) == out.end())
      out.push_back(*a);
  return out;
}

std::vector<pointwise::Output> Chain::outputs(Part part) const {
  std::vector<pointwise::Output> out;
  for (size_t i : kept(part)) out.push_back({value_name(i + 1), buffer_before(i + 1), steps_[i].dtype});
  for (size_t i = part.first; i < part.last; ++i)
    if (!steps_[i].row_scale.empty()) out.push_back({steps_[i].row_scale, "row_scale", DType::kFp32, true});
  out.push_back({value_name(part.last), buffer_before(part.last), steps_[part.last - 1].dtype});
  return out;
}

Result<pointwise::Formula> Chain::formula(Part part, std::vector<pointwise::Output> outputs) const {
  const bool gemm = steps_[part.first].kind == ChainStep::Kind::kGemm;
  pointwise::Vocabulary vocabulary;
  // A gemm's accumulators are its value.
  vocabulary.source = value_name(part.first + (gemm ? 1 : 0));
  vocabulary.source_dtype = gemm ? DType::kFp32 : dtype_before(part.first);
  vocabulary.tensors = declared_;
  vocabulary.scalars = scalars_;
  for (size_t i : added(part)) vocabulary.tensors.push_back({buffer_before(i + 1), steps_[i].dtype, {"m", "n"}});
  std::vector<pointwise::Definition> definitions;
  for (size_t i = part.first; i < part.last; ++i) {
    const ChainStep& s = steps_[i];
    vocabulary.tensors.insert(vocabulary.tensors.end(), s.tensors.begin(), s.tensors.end());
    definitions.insert(definitions.end(), s.definitions.begin(), s.definitions.end());
    if (!s.adds) continue;
    const bool here = *s.adds + 1 >= part.first;
    definitions.push_back({value_name(i + 1),
                           here ? fmt::format("{} + {}", value_name(i), value_name(*s.adds + 1))
                                : fmt::format("{} + {}[m,n]", value_name(i), buffer_before(*s.adds + 1)),
                           "--chain"});
  }
  return pointwise::Formula::parse(std::move(definitions), std::move(outputs), std::move(vocabulary));
}

bool Partition::cut(size_t edge) const {
  return std::any_of(parts.begin(), parts.end(), [&](const Part& p) { return p.last == edge + 1; });
}

std::string illegal_because(const Chain& chain, Part part, int64_t columns, int64_t widest_tile) {
  if (chain.steps()[part.first].kind != ChainStep::Kind::kGemm || columns <= widest_tile) return "";
  for (size_t i = part.first + 1; i < part.last; ++i)
    if (const ChainStep& s = chain.steps()[i]; s.kind == ChainStep::Kind::kRow)
      return fmt::format("a row reduction across CTAs: {} needs all {} columns of a row, a CTA of {} holds at most {}",
                         s.label, columns, chain.steps()[part.first].label, widest_tile);
  return "";
}

std::vector<Partition> partitions(const Chain& chain, int64_t columns, int64_t widest_tile) {
  std::vector<Partition> out;
  const size_t edges = chain.size() - 1;
  for (uint32_t cuts = 0; cuts < (uint32_t{1} << edges); ++cuts) {
    Partition p;
    for (size_t first = 0, i = 0; i <= edges; ++i) {
      if (i < edges && !(cuts >> i & 1)) continue;
      const Part part{first, i + 1};
      p.parts.push_back(part);
      p.name += (p.name.empty() ? "" : " | ") + chain.name(part);
      if (p.illegal.empty()) p.illegal = illegal_because(chain, part, columns, widest_tile);
      first = i + 1;
    }
    out.push_back(std::move(p));
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const Partition& a, const Partition& b) { return a.parts.size() < b.parts.size(); });
  return out;
}

}  // namespace roofgen

// Rules about ceilings: the product and the arithmetic that a stated peak belongs to.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "roofline/lint/rules.h"

namespace roofgen::lint_rules {
namespace {

/// Published peaks are rounded to two or three digits ("1979" for 1978.9, "327" for a ridge of 327.8).
constexpr double kSamePeak = 0.01;
/// Peaks that differ by more than this are of different products; rounding explains smaller differences.
constexpr double kOtherPeak = 0.03;

/// The dense ceilings a row in this arithmetic may be held against; all when it is unknown.
std::vector<Roof> roofs_for(const Device& device, const std::string& math) {
  std::vector<Roof> out;
  for (Roof& r : compute_roofs(device, RoofSet::kDatasheet))
    if (math.empty() || r.math == math) out.push_back(std::move(r));
  return out;
}

const Roof* find(const std::vector<Roof>& roofs, double tflops, double tolerance) {
  for (const Roof& r : roofs)
    if (near(tflops, r.rate / 1e12, tolerance)) return &r;
  return nullptr;
}

std::string tflops_text(const Roof& r) { return number_text(r.rate / 1e12); }

/// Both ceilings of a product with slower matrix units when they accumulate in FP32.
struct TwoRates {
  Roof fp32, fp16;
};
std::optional<TwoRates> two_rates(const Device& device, const std::string& math) {
  std::optional<Roof> fp32, fp16;
  for (const Roof& r : roofs_for(device, math)) {
    if (r.resource != Resource::kTensor) continue;
    if (r.accumulate == "fp32") fp32 = r;
    if (r.accumulate == "fp16") fp16 = r;
  }
  if (!fp32 || !fp16 || near(fp16->rate, fp32->rate, kOtherPeak)) return {};
  return TwoRates{*fp32, *fp16};
}

/// The candidates with their bandwidths: "a100-sxm-40 (1555 GB/s), ...".
std::string candidates_text(const Claim& c) {
  std::vector<std::string> out;
  for (const Device* d : c.candidates)
    out.push_back(fmt::format("{} ({} GB/s)", d->name, number_text(d->at("dram_gb_s"))));
  return fmt::format("{}", fmt::join(out, ", "));
}

/// How near a product is to another, to name the likeliest first: same architecture.
const Device* other_product_with_peak(const Claim& c, const std::string& math, double tflops, Roof* roof) {
  const Device* found = nullptr;
  for (const Device& d : *c.catalogue) {
    if (d.name == c.device->name || (found && found->arch == c.device->arch)) continue;
    const auto roofs = roofs_for(d, math);
    if (const Roof* r = find(roofs, tflops, 0.005)) {
      if (found && d.arch != c.device->arch) continue;
      found = &d;
      *roof = *r;
    }
  }
  return found;
}

}  // namespace

void sparse_peak(const Claim& c, Findings& out) {
  const std::vector<ClaimedPeak> peaks = claimed_peaks(c);
  if (!c.device || peaks.empty()) return;
  const std::vector<Roof> roofs = roofs_for(*c.device, c.matrix_work == false ? "" : math_of(c));
  for (const ClaimedPeak& p : peaks) {
    if (find(roofs, p.tflops, kSamePeak)) continue;
    for (const Roof& r : roofs)
      if (r.resource == Resource::kTensor && near(p.tflops, 2 * r.rate / 1e12, kSamePeak)) {
        out.add(p.field, fmt::format("{} is {}'s {} with 2:4 sparsity; dense it is {} TFLOPS, and the ridge {}", p.text,
                                     c.device->name, r.name, tflops_text(r),
                                     number_text(ridge(*c.device, r, RoofSet::kDatasheet))));
        break;
      }
  }
}

void accumulator_unstated(const Claim& c, Findings& out) {
  const std::vector<ClaimedPeak> peaks = claimed_peaks(c);
  if (!c.device || peaks.empty() || c.matrix_work == false || c.accumulate == "fp16") return;
  const std::string math = math_of(c);
  for (const std::string& m : math.empty() ? std::vector<std::string>{"fp16", "fp8"}
                                           : std::vector<std::string>{math == "bf16" ? "fp16" : math}) {
    const auto rates = two_rates(*c.device, m);
    if (!rates) continue;
    for (const ClaimedPeak& p : peaks) {
      if (!near(p.tflops, rates->fp16.rate / 1e12, kSamePeak)) continue;
      out.add(p.field,
              fmt::format("{} is {}'s rate with FP16 accumulation{}; with FP32 accumulation, as "
                          "kernels for models have it, it is {} TFLOPS, and the ridge {}",
                          p.text, c.device->name,
                          c.accumulate.empty() ? ", and the row does not state its accumulator" : "",
                          tflops_text(rates->fp32), number_text(ridge(*c.device, rates->fp32, RoofSet::kDatasheet))));
      return;
    }
  }
}

void dtype_of_ceiling(const Claim& c, Findings& out) {
  if (c.dtype.empty()) return;
  const auto data = find_number_format(c.dtype);
  // An AI that is off by exactly 2 belongs to operands of twice or half the width.
  if (c.work && c.ai && c.work->uses_matrix_units()) {
    const double right = c.work->arithmetic_intensity();
    for (double factor : {0.5, 2.0})
      if (near(*c.ai, factor * right, 0.02) && !near(*c.ai, right, 0.25) && data) {
        out.add("ai", fmt::format("AI {} is that of operands of {} bytes; with {} ({} bytes) it is {}",
                                  number_text(*c.ai), number_text((*data)->bytes / factor), c.dtype,
                                  number_text((*data)->bytes), number_text(right)));
        return;
      }
  }
  if (!data || c.matrix_work == false) return;
  if (!c.ceiling_dtype.empty()) {
    const auto ceiling = find_number_format(c.ceiling_dtype);
    const bool as_tf32 =
        std::string_view((*data)->name) == "fp32" && ceiling && std::string_view((*ceiling)->math) == "tf32";
    if (ceiling && (*data)->rank > (*ceiling)->rank && !as_tf32)
      out.add("ceiling_dtype", fmt::format("the bytes are those of {}, the ceiling is that of {}: an "
                                           "intensity and its ceiling must be of the same dtype",
                                           c.dtype, c.ceiling_dtype));
    return;
  }
  // The table states no dtype for the ceiling, but its height may identify the format.
  if (!c.device || c.work) return;
  for (const ClaimedPeak& p : claimed_peaks(c)) {
    const auto right = roofs_for(*c.device, (*data)->math), all = roofs_for(*c.device, "");
    const auto tf32 = roofs_for(*c.device, "tf32");
    if (find(right, p.tflops, kOtherPeak) ||
        (std::string_view((*data)->name) == "fp32" && find(tf32, p.tflops, kOtherPeak)))
      continue;
    const Roof* of = find(all, p.tflops, kSamePeak);
    const auto format = of ? find_number_format(of->math) : Result<const NumberFormat*>(Error{});
    if (!of || !format || (*format)->rank >= (*data)->rank) continue;
    out.add(p.field,
            fmt::format("{} is {}'s {}, but the row counts {} bytes: {} TFLOPS is its ceiling", p.text, c.device->name,
                        of->name, c.dtype, right.empty() ? "none" : tflops_text(right.front())));
    return;
  }
}

void matrix_ridge_for_vector_work(const Claim& c, Findings& out) {
  if (!c.device || c.matrix_work != false) return;
  const double fastest = fastest_vector_roof(*c.device);
  const Roof fp32 = vector_roof(*c.device, RoofSet::kDatasheet);
  const double right = ridge(*c.device, fp32, RoofSet::kDatasheet),
               vector_ridge = fastest / (1e9 * c.device->at("dram_gb_s"));
  const std::string text =
      fmt::format("this work does not run on the matrix units: its ceiling is {} TFLOPS ({}), its ridge {}",
                  tflops_text(fp32), fp32.name, number_text(right));
  if (c.ridge && *c.ridge > 1.1 * vector_ridge)
    out.add("ridge", fmt::format("ridge {}: {}", number_text(*c.ridge), text));
  else if (c.peak_tflops && 1e12 * *c.peak_tflops > 1.1 * fastest)
    out.add("peak", fmt::format("{} TFLOPS: {}", number_text(*c.peak_tflops), text));
}

void wrong_product(const Claim& c, Findings& out) {
  if (c.candidates.size() > 1) {
    const std::string stated =
        c.bandwidth_gb_s ? fmt::format("; none has {} GB/s", number_text(*c.bandwidth_gb_s)) : "";
    out.add("device",
            fmt::format("\"{}\" may mean several products: {}{}; name one", c.device_text, candidates_text(c), stated));
    return;
  }
  if (!c.device || !c.catalogue) return;
  const std::string math = c.matrix_work == false ? "" : math_of(c);
  const std::vector<Roof> own = roofs_for(*c.device, math);
  for (const ClaimedPeak& p : claimed_peaks(c)) {
    if (find(own, p.tflops, kOtherPeak)) continue;
    Roof theirs;
    const Device* other = other_product_with_peak(c, math, p.tflops, &theirs);
    if (!other) continue;
    const auto mine = std::find_if(own.begin(), own.end(), [&](const Roof& r) { return r.name == theirs.name; });
    out.add(p.field, fmt::format("{} is {}'s {}; {}", p.text, other->name, theirs.name,
                                 mine != own.end() ? fmt::format("{}'s is {}", c.device->name, tflops_text(*mine))
                                                   : fmt::format("{} has none", c.device->name)));
  }
  if (c.bandwidth_gb_s && c.origin != "measured" && !near(*c.bandwidth_gb_s, c.device->at("dram_gb_s"), kOtherPeak)) {
    const auto other = std::find_if(c.catalogue->begin(), c.catalogue->end(),
                                    [&](const Device& d) { return near(*c.bandwidth_gb_s, d.at("dram_gb_s"), 0.005); });
    if (other != c.catalogue->end())
      out.add("bandwidth", fmt::format("{} GB/s is {}'s bandwidth; {}'s is {}", number_text(*c.bandwidth_gb_s),
                                       other->name, c.device->name, number_text(c.device->at("dram_gb_s"))));
  }
}

namespace {

/// A row's name without its dtypes: "gemm_fp8" and "gemm_fp16" are the same work.
std::string without_dtypes(const std::string& name) {
  std::string out, word;
  const auto flush = [&] {
    const bool dtype = std::any_of(number_formats().begin(), number_formats().end(),
                                   [&](const NumberFormat& f) { return word == f.name; });
    if (!word.empty() && !dtype) out += word + " ";
    word.clear();
  };
  for (char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)))
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else
      flush();
  }
  flush();
  return out;
}

/// AI / ridge. The ridge is the device's for the row's dtype, or the stated one when the device is unknown.
std::optional<double> right_of_ridge(const Claim& c) {
  const auto ai = ai_of(c);
  if (!ai) return {};
  if (const auto roof = ceiling_of(c)) return *ai / ridge(*c.device, *roof, RoofSet::kDatasheet);
  if (c.ridge && *c.ridge > 0) return *ai / *c.ridge;
  return {};
}

bool decided(const Claim& c) { return c.bound == "memory" || c.bound == "compute"; }

}  // namespace

void precision_and_regime(const std::vector<Claim>& claims, TableFindings& out) {
  using Key = std::tuple<std::string, const Device*, std::map<std::string, int64_t>>;
  /// Rows of one width and regime, by AI / ridge.
  using Rows = std::multimap<double, size_t>;
  std::map<Key, std::map<std::pair<int, std::string>, Rows>> groups;
  for (size_t i = 0; i < claims.size(); ++i) {
    const Claim& c = claims[i];
    const auto format = find_number_format(c.dtype);
    const auto position = right_of_ridge(c);
    if (format && position && decided(c))
      groups[{without_dtypes(c.name), c.device, c.dims}][{(*format)->rank, c.bound}].emplace(*position, i);
  }
  /// A row of wider operands in the other regime with an AI / ridge within 10 % of `position`.
  const auto wide_row = [](const auto& group, const std::pair<int, std::string>& narrow, double position) {
    for (const auto& [wide, rows] : group) {
      if (wide.first <= narrow.first || wide.second == narrow.second) continue;
      const auto found = rows.lower_bound(position / 1.1);
      if (found != rows.end() && near(position, found->first, 0.1)) return std::optional(found->second);
    }
    return std::optional<size_t>();
  };
  for (const auto& [key, group] : groups)
    for (const auto& [narrow, rows] : group)
      for (const auto& [position, i] : rows) {
        const auto wide = wide_row(group, narrow, position);
        if (!wide) continue;
        const Claim &a = claims[i], &b = claims[*wide];
        out.add(i, "bound",
                fmt::format("{} in {}, {} in {}: narrower operands raise the intensity and the ridge alike; "
                            "both rows lie at {} of their ridge",
                            a.bound + "-bound", a.dtype, b.bound + "-bound", b.dtype, number_text(position)));
      }
}

}  // namespace roofgen::lint_rules

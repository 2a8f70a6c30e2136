#include <fmt/format.h>

#include <algorithm>

#include "tuner/verify/l2_model.h"
#include "tuner/whatif/subject.h"

namespace roofgen {
namespace {

/// A value in memory, and the kernels that write and read it.
struct Passed {
  Intermediate value;
  size_t writer = 0;
  std::vector<size_t> readers;
};

std::vector<Passed> passed_values(const Subject& subject, const std::vector<Part>& parts) {
  std::vector<Passed> out;
  const auto add = [&](size_t step, size_t writer, size_t reader) {
    const auto known = std::find_if(out.begin(), out.end(), [&](const Passed& p) { return p.value.after == step; });
    if (known != out.end()) {
      known->readers.push_back(reader);
      return;
    }
    out.push_back({{step, subject.value_bytes(step, parts[writer])}, writer, {reader}});
  };
  const auto kernel_of = [&](size_t step) {
    return static_cast<size_t>(std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return step < p.last; }) -
                               parts.begin());
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) add(parts[i].first - 1, i - 1, i);
    for (size_t step : subject.added(parts[i])) add(step, kernel_of(step), i);
  }
  return out;
}

/// The sums over the kernels of a partition.
void add_up(PartitionReport& out, double floor_seconds) {
  double work_seconds = 0, kernel_seconds = 0;
  for (const KernelReport& k : out.kernels) {
    out.seconds += k.seconds;
    out.dram_bytes += k.work.dram_bytes;
    out.l2_bytes += k.work.l2_bytes;
    out.flops += k.flops;
    work_seconds += k.time.work_seconds;
    kernel_seconds += k.time.kernel_seconds;
  }
  if (work_seconds > 0 && kernel_seconds > 0) {
    out.waste = work_seconds / floor_seconds;
    out.idle = kernel_seconds / work_seconds;
    out.stall = out.seconds / kernel_seconds;
  }
}

std::vector<size_t> cuts_of(const Partition& partition) {
  std::vector<size_t> out;
  for (const Part& p : partition.parts)
    if (&p != &partition.parts.back()) out.push_back(p.last - 1);
  return out;
}

}  // namespace

void count_flops(const Subject& subject, KernelReport& k) {
  if (!subject.matrix_flops()) k.flops = k.work.fp32_ops;
  k.arithmetic_intensity = k.work.dram_bytes > 0 ? k.flops / k.work.dram_bytes : 0;
}

PartitionReport compose(const Subject& subject, const Device& device, double floor_seconds, const Partition& partition,
                        const std::vector<TunedPart>& tuned, const Retime& retime) {
  PartitionReport out;
  out.name = partition.name;
  out.cuts = cuts_of(partition);
  out.illegal = partition.illegal;
  if (!out.illegal.empty()) return out;
  for (const Part& part : partition.parts) {
    const auto found = std::find_if(tuned.begin(), tuned.end(), [&](const TunedPart& t) { return t.part == part; });
    if (found == tuned.end() || !found->failed.empty()) {
      out.failed = found == tuned.end() ? fmt::format("{} was not tuned", subject.name(part)) : found->failed;
      out.kernels.clear();
      return out;
    }
    out.kernels.push_back(found->kernel);
    KernelReport& k = out.kernels.back();
    k.stage = subject.name(part);
    // Kernels are measured alone, and not known to gain everywhere.
    k.work.dependent = out.kernels.size() > 1 && !k.measurement && device.has(kDependentSaving);
    if (k.work.dependent) k.schedule.params.emplace_back("dependent", true);
  }

  std::vector<double> alone;  // DRAM bytes of each kernel by itself
  for (const KernelReport& k : out.kernels) alone.push_back(k.work.dram_bytes);
  // Kernels are measured alone: their times do not include hits on values that other kernels left in L2.
  const bool measured = std::any_of(out.kernels.begin(), out.kernels.end(),
                                    [](const KernelReport& k) { return k.measurement.has_value(); });
  for (Passed& p : measured ? std::vector<Passed>{} : passed_values(subject, partition.parts)) {
    Intermediate& value = p.value;
    const size_t last = *std::max_element(p.readers.begin(), p.readers.end());
    // LRU: a line is written at share s of the writer and read at share s of the reader. Between the two lie the rest
    // of the writer's traffic and the first part of the reader's: at most the larger of both.
    const auto touched = [&](size_t kernel) { return subject.value_bytes(value.after, partition.parts[kernel]); };
    const auto others = [&](size_t kernel) { return std::max(0.0, alone[kernel] - touched(kernel)); };
    value.distance = value.bytes + std::max(others(p.writer), others(last));
    for (size_t i = p.writer + 1; i < last; ++i) value.distance += alone[i];
    value.in_l2 = value.distance <= kL2Usable * device.at("l2_bytes");
    if (value.in_l2) {
      p.readers.push_back(p.writer);
      for (size_t i : p.readers) {
        KernelReport& k = out.kernels[i];
        k.work.dram_bytes = std::max(0.0, k.work.dram_bytes - touched(i));
        k.intermediate_in_l2 = true;
      }
    }
    out.intermediates.push_back(value);
  }

  for (size_t i = 0; i < out.kernels.size(); ++i) {
    KernelReport& k = out.kernels[i];
    if (k.code && k.work.dram_bytes != alone[i]) k.code = retime(partition.parts[i], k.work.dram_bytes);
    estimate_time(k, device, floor_seconds);
    count_flops(subject, k);
  }
  add_up(out, floor_seconds);
  return out;
}

PartitionReport compose(double floor_seconds, const Partition& partition, const VariantReport* tuned,
                        const std::string& failed) {
  PartitionReport out;
  out.name = partition.name;
  out.variant = partition.variant->name;
  out.cuts = cuts_of(partition);
  const double bytes = partition.variant->passed_bytes;
  out.splits = bytes > 0;
  if (!tuned || !tuned->verified) {
    out.failed = failed;
    const std::string because = !tuned             ? "not tried"
                                : tuned->available ? "not verified"
                                                   : "cannot run: " + tuned->rejected_because;
    out.untried.push_back({out.variant, true, partition.variant->default_ctas, because});
    return out;
  }
  out.kernels = tuned->kernels;
  out.together = tuned->verification;
  const bool in_l2 = std::all_of(out.kernels.begin(), out.kernels.end(),
                                 [](const KernelReport& k) { return k.intermediate_in_l2 && !k.measurement; });
  if (out.splits) out.intermediates.push_back({SIZE_MAX, bytes, bytes, in_l2, "parts"});
  add_up(out, floor_seconds);
  return out;
}

}  // namespace roofgen

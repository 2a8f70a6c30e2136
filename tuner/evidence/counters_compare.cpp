// Compares counters with expected work and gives likely causes of differences.
#include <fmt/format.h>

#include <cmath>

#include "tuner/evidence/counters.h"

namespace roofgen {
namespace {

/// Tolerance of counts of events, which must be equal.
constexpr double kEqual = 1e-9;

class Differences {
 public:
  void add(const std::string& stage, const char* quantity, const char* against, const std::optional<double>& counted,
           double expected, double tolerance, const char* more, const char* fewer) {
    if (!counted || !(expected > 0)) return;
    CountedDifference d{stage, quantity, against, *counted, expected, *counted / expected - 1, false, ""};
    d.flagged = std::fabs(d.relative) > tolerance;
    if (d.flagged) d.reason = d.relative > 0 ? more : fewer;
    out.push_back(std::move(d));
  }
  std::vector<CountedDifference> out;
};

}  // namespace

std::vector<CountedDifference> compare_counted(const std::vector<CountedWork>& counted,
                                               const std::vector<ExpectedWork>& expected,
                                               const std::optional<RequiredWork>& required) {
  Differences d;
  if (expected.size() == counted.size())
    for (size_t i = 0; i < counted.size(); ++i) {
      const CountedWork& c = counted[i];
      const ExpectedWork& e = expected[i];
      const char* origin = e.exact ? "simulated" : "extrapolated";
      const double flops_tolerance = e.exact ? kEqual : kCounterTolerance;
      d.add(c.stage, "tensor FLOPs", origin, c.tensor_flops, e.work.mma_flops, flops_tolerance,
            e.exact ? "the GPU ran more matrix work than the simulator: FLOPs must be equal, so one of the two is wrong"
                    : "the simulator's slices do less than an average part of the launch",
            e.exact ? "the GPU ran less matrix work than the simulator: FLOPs must be equal, so one of the two is wrong"
                    : "the simulator's slices do more than an average part of the launch");
      d.add(c.stage, "DRAM bytes", "model", c.dram_bytes(), e.work.dram_bytes, kCounterTolerance,
            "the L2 model keeps more than the real L2 does: data are fetched again after they were evicted, or written "
            "out early",
            "the real L2 keeps more than the model: results still in it at the end of the kernel are not written to "
            "DRAM yet");
      // The simulator counts only requests of the SMs. Traffic at the tags includes that between the L2's two halves.
      const bool requests = c.l2_request_bytes.has_value();
      d.add(c.stage, requests ? "L2 request bytes" : "L2 bytes", origin, requests ? c.l2_request_bytes : c.l2_bytes,
            e.work.l2_bytes, kCounterTolerance,
            requests
                ? "requests that the simulator does not model: instruction fetches, descriptors, whole-sector fills"
                : "traffic between the halves of L2 is in this counter, and not in the simulator's",
            "L1 served a part: the simulator sends every sector a warp asks for to L2");
      d.add(c.stage, "registers", "compiled", c.registers, e.registers, kEqual,
            "the driver compiled the kernel again, from its PTX", "the driver compiled the kernel again, from its PTX");
    }
  if (!required || counted.empty()) return d.out;
  std::optional<double> flops = 0, dram = 0;
  for (const CountedWork& c : counted) {
    flops = flops && c.tensor_flops ? std::optional(*flops + *c.tensor_flops) : std::nullopt;
    dram = dram && c.dram_bytes() ? std::optional(*dram + *c.dram_bytes()) : std::nullopt;
  }
  d.add("total", "tensor FLOPs", "formula", flops, required->mma_flops, kCounterTolerance,
        "extra work: masked parts of diagonal tiles, and padding",
        "less matrix work than the problem needs: a part of it was not done, or not by the matrix units");
  d.add("total", "DRAM bytes", "formula", dram, required->dram_bytes, kCounterTolerance,
        "intermediates and repeated reads of inputs, beyond the compulsory traffic",
        "a part of the tensors was in L2 before the kernel, or still is after it");
  return d.out;
}

}  // namespace roofgen

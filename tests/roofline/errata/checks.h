// Recomputes the numbers of docs/evidence/errata.md with the library. Each source document has a file with its values;
// the test has one case per artifact.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "roofline/analyses/explain.h"
#include "roofline/analyses/model.h"

namespace roofgen::errata {

/// `got`, printed with as many decimals as `expected`, must equal `expected`.
struct Check {
  int artifact = 0;
  std::string what, got, expected;
};

class Checks {
 public:
  void operator()(int artifact, const std::string& what, double got, const std::string& expected);
  void holds(int artifact, const std::string& what, bool got);
  const std::vector<Check>& list() const { return list_; }

 private:
  std::vector<Check> list_;
};

/// An operator on one line: `gemm M=128 N=24576 K=1536 b:fp4 math:fp4 unfused`. NAME=N is a dimension (or
/// softmax_flops=N), role:FORMAT an operand's dtype (dtype: all operands, math: and acc: the arithmetic), NAME a flag.
/// For an elementwise chain, the second word is the expression. A mistake ends the test.
OpWork work(const std::string& line);
double ai(const std::string& line);
double megabytes(const std::string& line);
double gigaflops(const std::string& line);

Device device(const std::string& name);
double cell(const std::string& device_name, const std::string& name);
/// TFLOP/s of a dense peak; accumulate "" selects the CUDA cores.
double peak(const std::string& device_name, const std::string& math, const std::string& accumulate);
/// Ridge of a matrix format with FP32 accumulation.
double ridge_of(const std::string& device_name, const std::string& math);
double vector_ridge(const std::string& device_name);

Explanation on(const std::string& device_name, const std::string& line, RoofSet set = RoofSet::kDatasheet);
double attainable_tflops(const std::string& device_name, const std::string& line);
/// Over all kernels; 0 when no kernel has work for that roof.
double seconds_under(const Explanation& e, const std::string& roof);
bool warns(const Explanation& e, const std::string& rule);
/// The value of the growing dimension at the ridge; -1 when there is none. `dram_gb_s` replaces the device's bandwidth
/// when given.
double crossing(const std::string& device_name, const std::string& line, double dram_gb_s = 0);

/// One decode step of a catalogue model at 80 % of the bandwidth and 70 % of each arithmetic rate.
ModelRun decode_step(const std::string& model, const std::string& device_name, int64_t batch, int64_t kv,
                     int64_t gpus = 1);
/// Whether a table row breaks a rule; `state` sets the row's claims.
bool breaks(const std::string& rule, const std::string& device_name, const std::function<void(Claim&)>& state);

void bandwidth_article(Checks& check);
void gpu_lesson(Checks& check);
void kernel_table(Checks& check);
void intensity_notebook(Checks& check);
void transformer_notes(Checks& check);

}  // namespace roofgen::errata

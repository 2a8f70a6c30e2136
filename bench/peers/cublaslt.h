// cuBLASLt through dlopen: the program starts without CUDA.
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>
#include <vector>

#include "bench/peers/gemm_case.h"
#include "roofgen/result.h"

namespace roofgen::peers {

#define ROOFGEN_CUBLASLT_ENTRY_POINTS(X)  \
  X(cublasLtCreate)                       \
  X(cublasLtGetVersion)                   \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)

struct CublasLt {
#define ROOFGEN_DECLARE(name) decltype(&::name) name = nullptr;
  ROOFGEN_CUBLASLT_ENTRY_POINTS(ROOFGEN_DECLARE)
#undef ROOFGEN_DECLARE
  cublasLtHandle_t handle = nullptr;
  std::string library;

  /// $ROOFGEN_CUBLASLT, else libcublasLt.so.13 and .12. Needs a current context. Exit::kUnavailable when there is none.
  static Result<std::unique_ptr<CublasLt>> open();
  std::string version() const;  ///< "13.1.0"
};

/// The algorithms that cuBLASLt proposes for a case, in the order of its heuristic.
class Plan {
 public:
  /// Exit::kUnavailable when cuBLASLt has no algorithm for the case (fp8 on sm_80).
  static Result<std::unique_ptr<Plan>> make(const CublasLt& lt, const GemmCase& c, uint64_t bias,
                                            size_t workspace_bytes, int most_algorithms);
  ~Plan();
  Plan(const Plan&) = delete;
  size_t algorithms() const { return found_.size(); }
  /// Queues the products of all outer calls.
  Result<void> run(size_t algorithm, uint64_t a, uint64_t b, uint64_t d, uint64_t workspace, void* stream) const;

 private:
  Plan(const CublasLt& lt, const GemmCase& c) : lt_(lt), case_(c) {}
  const CublasLt& lt_;
  GemmCase case_;
  cublasLtMatmulDesc_t desc_ = nullptr;
  cublasLtMatrixLayout_t a_ = nullptr, b_ = nullptr, d_ = nullptr;
  cublasLtMatmulPreference_t preference_ = nullptr;
  std::vector<cublasLtMatmulHeuristicResult_t> found_;
};

}  // namespace roofgen::peers

#include "bench/peers/cublaslt.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <cstring>

namespace roofgen::peers {
namespace {

Result<void> check(cublasStatus_t status, const char* doing) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return Error{status == CUBLAS_STATUS_NOT_SUPPORTED ? Exit::kUnavailable : Exit::kFailed,
               fmt::format("cuBLASLt, {}: status {}", doing, static_cast<int>(status))};
}

// In the order of the enums.
cudaDataType_t type_of(Format format) {
  constexpr cudaDataType_t kTypes[] = {CUDA_R_16BF, CUDA_R_16F, CUDA_R_8F_E4M3};
  return kTypes[static_cast<size_t>(format)];
}
cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  constexpr cublasLtEpilogue_t kEpilogues[] = {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_BIAS,
                                               CUBLASLT_EPILOGUE_RELU, CUBLASLT_EPILOGUE_GELU_BIAS};
  return kEpilogues[static_cast<size_t>(epilogue)];
}

}  // namespace

Result<std::unique_ptr<CublasLt>> CublasLt::open() {
  const char* chosen = std::getenv("ROOFGEN_CUBLASLT");
  std::vector<std::string> names = {"libcublasLt.so.13", "libcublasLt.so.12"};
  if (chosen && *chosen) names = {chosen};
  void* library = nullptr;
  std::string why;
  auto out = std::make_unique<CublasLt>();
  for (const std::string& name : names) {
    library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    out->library = name;
    if (library) break;
    const char* reason = dlerror();
    if (why.empty()) why = reason ? reason : name;
  }
  if (!library) return Error{Exit::kUnavailable, fmt::format("no cuBLASLt: {}; ROOFGEN_CUBLASLT can name it", why)};
#define ROOFGEN_BIND(name)                                                                                             \
  {                                                                                                                    \
    void* address = dlsym(library, #name);                                                                             \
    if (!address) return Error{Exit::kUnavailable, fmt::format("{} is not cuBLASLt: it has no " #name, out->library)}; \
    std::memcpy(&out->name, &address, sizeof address);                                                                 \
  }
  ROOFGEN_CUBLASLT_ENTRY_POINTS(ROOFGEN_BIND)
#undef ROOFGEN_BIND
  ROOFGEN_CHECK(check(out->cublasLtCreate(&out->handle), "starting"));
  return out;
}

std::string CublasLt::version() const {
  // cublas_api.h: CUBLAS_VERSION.
  const size_t v = cublasLtGetVersion();
  return fmt::format("{}.{}.{}", v / 10000, v / 100 % 100, v % 100);
}

Result<std::unique_ptr<Plan>> Plan::make(const CublasLt& lt, const GemmCase& c, uint64_t bias, size_t workspace_bytes,
                                         int most_algorithms) {
  auto out = std::unique_ptr<Plan>(new Plan(lt, c));
  // cuBLASLt is column-major: D^T [n, m] = op(B) [n, k] x A^T [k, m]. Its A is our B, and its rows are our columns.
  ROOFGEN_CHECK(
      check(lt.cublasLtMatmulDescCreate(&out->desc_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "describing the product"));
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    return check(lt.cublasLtMatmulDescSetAttribute(out->desc_, attribute, &value, sizeof value),
                 "describing the product");
  };
  const int32_t transposed = c.b_is_kn ? CUBLAS_OP_N : CUBLAS_OP_T, plain = CUBLAS_OP_N;
  ROOFGEN_CHECK(set(CUBLASLT_MATMUL_DESC_TRANSA, transposed));
  ROOFGEN_CHECK(set(CUBLASLT_MATMUL_DESC_TRANSB, plain));
  const auto epilogue = static_cast<uint32_t>(epilogue_of(c.epilogue));
  ROOFGEN_CHECK(set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue));
  if (c.epilogue == Epilogue::kBias || c.epilogue == Epilogue::kGeluBias) {
    ROOFGEN_CHECK(set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias));
    const auto bias_type = static_cast<int32_t>(type_of(result_format(c.format)));
    ROOFGEN_CHECK(set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, bias_type));
  }
  const auto layout = [&](cublasLtMatrixLayout_t* at, Format format, int64_t rows, int64_t columns, int64_t pitch,
                          int64_t stride) -> Result<void> {
    ROOFGEN_CHECK(check(lt.cublasLtMatrixLayoutCreate(at, type_of(format), static_cast<uint64_t>(rows),
                                                      static_cast<uint64_t>(columns), pitch),
                        "describing a matrix"));
    const auto count = static_cast<int32_t>(c.batch);
    ROOFGEN_CHECK(
        check(lt.cublasLtMatrixLayoutSetAttribute(*at, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count),
              "describing a batch"));
    return check(
        lt.cublasLtMatrixLayoutSetAttribute(*at, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride, sizeof stride),
        "describing a batch");
  };
  ROOFGEN_CHECK(layout(&out->b_, c.format, c.b_is_kn ? c.n : c.k, c.b_is_kn ? c.k : c.n, c.b_pitch, c.b_stride));
  ROOFGEN_CHECK(layout(&out->a_, c.format, c.k, c.m, c.a_pitch, c.a_stride));
  ROOFGEN_CHECK(layout(&out->d_, result_format(c.format), c.n, c.m, c.d_pitch, c.d_stride));
  ROOFGEN_CHECK(check(lt.cublasLtMatmulPreferenceCreate(&out->preference_), "asking for algorithms"));
  const uint64_t most = workspace_bytes;
  ROOFGEN_CHECK(check(lt.cublasLtMatmulPreferenceSetAttribute(
                          out->preference_, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most, sizeof most),
                      "asking for algorithms"));
  out->found_.resize(static_cast<size_t>(most_algorithms));
  int count = 0;
  const cublasStatus_t status =
      lt.cublasLtMatmulAlgoGetHeuristic(lt.handle, out->desc_, out->b_, out->a_, out->d_, out->d_, out->preference_,
                                        most_algorithms, out->found_.data(), &count);
  out->found_.resize(static_cast<size_t>(std::max(count, 0)));
  std::erase_if(out->found_, [](const auto& f) { return f.state != CUBLAS_STATUS_SUCCESS; });
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || (status == CUBLAS_STATUS_SUCCESS && out->found_.empty()))
    return Error{Exit::kUnavailable, "cuBLASLt has no algorithm for it on this GPU"};
  ROOFGEN_CHECK(check(status, "asking for algorithms"));
  return out;
}

Plan::~Plan() {
  if (preference_) lt_.cublasLtMatmulPreferenceDestroy(preference_);
  for (cublasLtMatrixLayout_t layout : {a_, b_, d_})
    if (layout) lt_.cublasLtMatrixLayoutDestroy(layout);
  if (desc_) lt_.cublasLtMatmulDescDestroy(desc_);
}

Result<void> Plan::run(size_t algorithm, uint64_t a, uint64_t b, uint64_t d, uint64_t workspace, void* stream) const {
  const cublasLtMatmulHeuristicResult_t& chosen = found_[algorithm];
  const float beta = 0;
  const auto in = static_cast<int64_t>(element_bytes(case_.format));
  const auto pointer = [](uint64_t address, int64_t bytes = 0) {
    return reinterpret_cast<void*>(address + static_cast<uint64_t>(bytes));
  };
  for (int64_t o = 0; o < case_.outer; ++o) {
    void *at_a = pointer(a, o * case_.a_outer * in), *at_b = pointer(b, o * case_.b_outer * in);
    void* at_d = pointer(d, o * case_.d_outer * 2);
    ROOFGEN_CHECK(check(
        lt_.cublasLtMatmul(lt_.handle, desc_, &case_.scale, at_b, b_, at_a, a_, &beta, at_d, d_, at_d, d_, &chosen.algo,
                           pointer(workspace), chosen.workspaceSize, static_cast<cudaStream_t>(stream)),
        "multiplying"));
  }
  return {};
}

}  // namespace roofgen::peers

// A fake cuBLASLt on a simulated driver, ROOFGEN_LIBCUDA: bf16 products on the host, column-major as the header defines
// them. ROOFGEN_FAKE_CUBLASLT=wrong omits the last eight of the depth, =nothing proposes no algorithm.
#include <cublasLt.h>
#include <dlfcn.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

struct Layout {
  uint64_t rows, columns;
  int64_t pitch;
  size_t size() const { return columns * static_cast<uint64_t>(pitch); }
};
struct Desc {
  uint64_t attributes[64];
};

float from_bf16(uint16_t bits) {
  const uint32_t word = uint32_t{bits} << 16;
  float out;
  std::memcpy(&out, &word, 4);
  return out;
}
uint16_t to_bf16(float x) {
  uint32_t word;
  std::memcpy(&word, &x, 4);
  return static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
}
bool scripted(const char* what) {
  const char* script = std::getenv("ROOFGEN_FAKE_CUBLASLT");
  return script && std::string(script) == what;
}
template <class Function>
Function driver(const char* name) {
  return reinterpret_cast<Function>(dlsym(dlopen(std::getenv("ROOFGEN_LIBCUDA"), RTLD_NOW), name));
}
std::vector<uint16_t> from_gpu(uint64_t address, size_t count) {
  std::vector<uint16_t> out(count);
  driver<int (*)(void*, uint64_t, size_t)>("cuMemcpyDtoH_v2")(out.data(), address, 2 * count);
  return out;
}
uint64_t number(const void* pointer) { return reinterpret_cast<uint64_t>(pointer); }
template <class T>
cublasStatus_t make(T* to, void* what) {
  *to = static_cast<T>(what);
  return CUBLAS_STATUS_SUCCESS;
}

}  // namespace

extern "C" {

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) { return make(handle, std::malloc(1)); }
size_t cublasLtGetVersion(void) { return 130102; }
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* desc, cublasComputeType_t compute, cudaDataType_t scale) {
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_INVALID_VALUE;
  return make(desc, std::calloc(1, sizeof(Desc)));
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void* value, size_t size) {
  std::memcpy(&reinterpret_cast<Desc*>(desc)->attributes[attribute], value, size);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t pitch) {
  if (static_cast<int64_t>(rows) > pitch) return CUBLAS_STATUS_INVALID_VALUE;
  return make(layout, new Layout{rows, columns, pitch});
}
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  return make(preference, std::malloc(1));
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t,
                                                    const void*, size_t) {
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatmulPreference_t, int most,
                                              cublasLtMatmulHeuristicResult_t found[], int* count) {
  if (scripted("nothing")) return *count = 0, CUBLAS_STATUS_NOT_SUPPORTED;
  *count = std::min(most, 2);
  for (int i = 0; i < *count; ++i) found[i] = {};
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t desc, const void* alpha, const void* a,
                              cublasLtMatrixLayout_t a_layout, const void* b, cublasLtMatrixLayout_t b_layout,
                              const void*, const void*, cublasLtMatrixLayout_t, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*, size_t,
                              cudaStream_t) {
  const Layout &al = *reinterpret_cast<Layout*>(a_layout), &bl = *reinterpret_cast<Layout*>(b_layout),
               &dl = *reinterpret_cast<Layout*>(d_layout);
  const uint64_t* attributes = reinterpret_cast<Desc*>(desc)->attributes;
  const bool transposed = static_cast<int32_t>(attributes[CUBLASLT_MATMUL_DESC_TRANSA]) == CUBLAS_OP_T;
  const auto epilogue = static_cast<uint32_t>(attributes[CUBLASLT_MATMUL_DESC_EPILOGUE]);
  uint64_t depth = transposed ? al.rows : al.columns;
  if (depth != bl.rows || dl.columns != bl.columns || dl.rows != (transposed ? al.columns : al.rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  if (scripted("wrong")) depth -= 8;
  const std::vector<uint16_t> pa = from_gpu(number(a), al.size()), pb = from_gpu(number(b), bl.size()),
                              bias = epilogue & CUBLASLT_EPILOGUE_BIAS
                                         ? from_gpu(attributes[CUBLASLT_MATMUL_DESC_BIAS_POINTER], dl.rows)
                                         : std::vector<uint16_t>();
  std::vector<uint16_t> pd(dl.size());
  for (uint64_t column = 0; column < dl.columns; ++column)
    for (uint64_t row = 0; row < dl.rows; ++row) {
      float sum = 0;
      for (uint64_t k = 0; k < depth; ++k)
        sum += from_bf16(pa[transposed ? row * static_cast<uint64_t>(al.pitch) + k
                                       : k * static_cast<uint64_t>(al.pitch) + row]) *
               from_bf16(pb[column * static_cast<uint64_t>(bl.pitch) + k]);
      sum *= *static_cast<const float*>(alpha);
      if (!bias.empty()) sum += from_bf16(bias[row]);
      if (epilogue & CUBLASLT_EPILOGUE_RELU) sum = std::max(sum, 0.0f);
      if (epilogue & CUBLASLT_EPILOGUE_GELU)
        sum = 0.5f * sum * (1 + std::tanh(0.7978845608f * (sum + 0.044715f * sum * sum * sum)));
      pd[column * static_cast<uint64_t>(dl.pitch) + row] = to_bf16(sum);
    }
  driver<int (*)(uint64_t, const void*, size_t)>("cuMemcpyHtoD_v2")(number(d), pd.data(), 2 * pd.size());
  return CUBLAS_STATUS_SUCCESS;
}

}  // extern "C"

// CUresult in words.
#include "runtime/shim/state.h"

namespace roofgen::shim {
namespace {

struct Row {
  Status status;
  const char *name, *text;
};
constexpr Row kRows[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "an argument is not valid"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "cuInit was not called"},
    {4, "CUDA_ERROR_DEINITIALIZED", "the driver is shutting down"},
    {100, "CUDA_ERROR_NO_DEVICE", "there is no device"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "no such device"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "the image is no kernel image"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "no valid context is current"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "the image has no code for this device"},
    {218, "CUDA_ERROR_INVALID_PTX", "the PTX cannot be compiled"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX is too new"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", "no such file"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "a call to the operating system failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "no such object"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "not possible in this state"},
    {500, "CUDA_ERROR_NOT_FOUND", "no such symbol"},
    {600, "CUDA_ERROR_NOT_READY", "not finished yet"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel accessed memory that is not its own"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "a launch asks for more than the kernel may have"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel did not end"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context is gone"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel met an illegal instruction"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel accessed a misaligned address"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "the simulated driver does not do this"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not possible while a stream is captured"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture failed earlier"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

const Row* row(Status status) {
  for (const Row& r : kRows)
    if (r.status == status) return &r;
  return nullptr;
}

}  // namespace

const char* error_name(Status status) { return row(status) ? row(status)->name : nullptr; }
const char* error_text(Status status) { return row(status) ? row(status)->text : nullptr; }

}  // namespace roofgen::shim

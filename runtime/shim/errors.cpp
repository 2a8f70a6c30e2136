// Names and descriptions of CUresult: all of CUDA 13.0 (tests/shim/entries_test.cpp compares the names with cuda.h).
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
    {5, "CUDA_ERROR_PROFILER_DISABLED", "the profiler is switched off"},
    {6, "CUDA_ERROR_PROFILER_NOT_INITIALIZED", "the profiler was not set up"},
    {7, "CUDA_ERROR_PROFILER_ALREADY_STARTED", "the profiler runs already"},
    {8, "CUDA_ERROR_PROFILER_ALREADY_STOPPED", "the profiler does not run"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "this library only stands in for the driver at link time"},
    {36, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER", "only a newer driver has this call"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "another process has the device to itself"},
    {100, "CUDA_ERROR_NO_DEVICE", "there is no device"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "no such device"},
    {102, "CUDA_ERROR_DEVICE_NOT_LICENSED", "the device has no licence"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "the image is not a kernel image"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "no valid context is current"},
    {202, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT", "the context is current already"},
    {205, "CUDA_ERROR_MAP_FAILED", "mapping failed"},
    {206, "CUDA_ERROR_UNMAP_FAILED", "unmapping failed"},
    {207, "CUDA_ERROR_ARRAY_IS_MAPPED", "the array is mapped"},
    {208, "CUDA_ERROR_ALREADY_MAPPED", "it is mapped already"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "the image has no code for this device"},
    {210, "CUDA_ERROR_ALREADY_ACQUIRED", "it is taken already"},
    {211, "CUDA_ERROR_NOT_MAPPED", "it is not mapped"},
    {212, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY", "it is not mapped as an array"},
    {213, "CUDA_ERROR_NOT_MAPPED_AS_POINTER", "it is not mapped as memory"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "memory has an error that ECC cannot correct"},
    {215, "CUDA_ERROR_UNSUPPORTED_LIMIT", "the device has no such limit"},
    {216, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE", "the context is current on another thread"},
    {217, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "the devices cannot see each other's memory"},
    {218, "CUDA_ERROR_INVALID_PTX", "the PTX cannot be compiled"},
    {219, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT", "the graphics context is not valid"},
    {220, "CUDA_ERROR_NVLINK_UNCORRECTABLE", "NVLink has an error that cannot be corrected"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "the compiler of PTX was not found"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX is too new"},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "compiling PTX is switched off"},
    {224, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY", "the device has no such affinity"},
    {225, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC",
     "the PTX waits for its own child kernels, which is not supported any more"},
    {226, "CUDA_ERROR_CONTAINED", "memory failed, and only this context is lost"},
    {300, "CUDA_ERROR_INVALID_SOURCE", "the source cannot be compiled"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", "no such file"},
    {302, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND", "a shared library lacks a symbol"},
    {303, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED", "a shared library could not be loaded"},
    {304, "CUDA_ERROR_OPERATING_SYSTEM", "a call to the operating system failed"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "no such object"},
    {401, "CUDA_ERROR_ILLEGAL_STATE", "not possible in this state"},
    {402, "CUDA_ERROR_LOSSY_QUERY", "the result loses information"},
    {500, "CUDA_ERROR_NOT_FOUND", "no such symbol"},
    {600, "CUDA_ERROR_NOT_READY", "not finished yet"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "a kernel accessed memory that is not its own"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "a launch asks for more than the kernel may have"},
    {702, "CUDA_ERROR_LAUNCH_TIMEOUT", "a kernel did not end"},
    {703, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING", "a launch mixes two ways of using textures"},
    {704, "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "the devices see each other's memory already"},
    {705, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "the devices do not see each other's memory"},
    {708, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE", "the primary context is in use"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "the context is gone"},
    {710, "CUDA_ERROR_ASSERT", "an assertion of a kernel failed"},
    {711, "CUDA_ERROR_TOO_MANY_PEERS", "no more devices can see each other's memory"},
    {712, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED", "the host memory is registered already"},
    {713, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "the host memory is not registered"},
    {714, "CUDA_ERROR_HARDWARE_STACK_ERROR", "a kernel's stack overflowed or is broken"},
    {715, "CUDA_ERROR_ILLEGAL_INSTRUCTION", "a kernel met an illegal instruction"},
    {716, "CUDA_ERROR_MISALIGNED_ADDRESS", "a kernel accessed a misaligned address"},
    {717, "CUDA_ERROR_INVALID_ADDRESS_SPACE", "a kernel used an address of the wrong memory"},
    {718, "CUDA_ERROR_INVALID_PC", "a kernel jumped to an invalid program counter"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "a kernel failed"},
    {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE", "the CTAs of a cooperative launch do not fit the device at once"},
    {721, "CUDA_ERROR_TENSOR_MEMORY_LEAK", "a kernel ended without freeing its tensor memory"},
    {800, "CUDA_ERROR_NOT_PERMITTED", "this is not permitted"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "the simulated driver does not do this"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "the system is not ready yet"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH", "the driver of the kernel and the library are of different versions"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE", "the device cannot be used with a newer library"},
    {805, "CUDA_ERROR_MPS_CONNECTION_FAILED", "no connection to the MPS server"},
    {806, "CUDA_ERROR_MPS_RPC_FAILURE", "a call of the MPS server failed"},
    {807, "CUDA_ERROR_MPS_SERVER_NOT_READY", "the MPS server is not ready"},
    {808, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", "the MPS server takes no more clients"},
    {809, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", "the MPS server takes no more connections"},
    {810, "CUDA_ERROR_MPS_CLIENT_TERMINATED", "the MPS server ended this client"},
    {811, "CUDA_ERROR_CDP_NOT_SUPPORTED", "kernels cannot launch kernels here"},
    {812, "CUDA_ERROR_CDP_VERSION_MISMATCH", "two versions of kernels that launch kernels do not go together"},
    {900, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "not possible while a stream is captured"},
    {901, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "the capture failed earlier"},
    {902, "CUDA_ERROR_STREAM_CAPTURE_MERGE", "two captures would become one"},
    {903, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED", "the capture did not begin on this stream"},
    {904, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED", "the capture has a branch that never came back to its stream"},
    {905, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION", "the captured work would wait for work outside"},
    {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT", "the captured work would wait for the default stream"},
    {907, "CUDA_ERROR_CAPTURED_EVENT", "the event was recorded in a capture"},
    {908, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD", "the capture began on another thread"},
    {909, "CUDA_ERROR_TIMEOUT", "it took too long"},
    {910, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE", "the graph is too different to update the other"},
    {911, "CUDA_ERROR_EXTERNAL_DEVICE", "a device outside CUDA failed"},
    {912, "CUDA_ERROR_INVALID_CLUSTER_SIZE", "a cluster of this size is not possible"},
    {913, "CUDA_ERROR_FUNCTION_NOT_LOADED", "the function is not loaded yet"},
    {914, "CUDA_ERROR_INVALID_RESOURCE_TYPE", "not this type of resource"},
    {915, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION", "the resources do not go together"},
    {916, "CUDA_ERROR_KEY_ROTATION", "the device's encryption keys are being changed"},
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

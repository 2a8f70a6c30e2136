// The runtime API: names and descriptions of cudaError_t. A null text is that of the driver's error.
#include <utility>

#include "runtime/shim/cudart/runtime.h"

using namespace roofgen::shim::cudart;

namespace {

const struct ErrorRow {
  Error error;
  const char *name, *text;
} kErrors[] = {
    {0, "cudaSuccess", nullptr},
    {1, "cudaErrorInvalidValue", nullptr},
    {2, "cudaErrorMemoryAllocation", nullptr},
    {3, "cudaErrorInitializationError", nullptr},
    {4, "cudaErrorCudartUnloading", nullptr},
    {5, "cudaErrorProfilerDisabled", nullptr},
    {6, "cudaErrorProfilerNotInitialized", nullptr},
    {7, "cudaErrorProfilerAlreadyStarted", nullptr},
    {8, "cudaErrorProfilerAlreadyStopped", nullptr},
    {9, "cudaErrorInvalidConfiguration", "the grid or the block cannot be launched"},
    {12, "cudaErrorInvalidPitchValue", "the pitch is not valid"},
    {13, "cudaErrorInvalidSymbol", "the program registered no such symbol"},
    {16, "cudaErrorInvalidHostPointer", "not a host address"},
    {17, "cudaErrorInvalidDevicePointer", "not a device address"},
    {18, "cudaErrorInvalidTexture", "the texture is not valid"},
    {19, "cudaErrorInvalidTextureBinding", "the texture is not bound"},
    {20, "cudaErrorInvalidChannelDescriptor", "the channel format is not valid"},
    {21, "cudaErrorInvalidMemcpyDirection", "the direction of the copy does not fit"},
    {22, "cudaErrorAddressOfConstant", "the address of constant memory was taken"},
    {23, "cudaErrorTextureFetchFailed", "reading a texture failed"},
    {24, "cudaErrorTextureNotBound", "the texture is not bound"},
    {25, "cudaErrorSynchronizationError", "waiting failed"},
    {26, "cudaErrorInvalidFilterSetting", "the filter is not valid"},
    {27, "cudaErrorInvalidNormSetting", "the coordinates are not valid"},
    {28, "cudaErrorMixedDeviceExecution", "device and emulation are mixed"},
    {31, "cudaErrorNotYetImplemented", "not implemented yet"},
    {32, "cudaErrorMemoryValueTooLarge", "the memory is too large"},
    {34, "cudaErrorStubLibrary", nullptr},
    {35, "cudaErrorInsufficientDriver", "the driver is older than the runtime"},
    {36, "cudaErrorCallRequiresNewerDriver", nullptr},
    {37, "cudaErrorInvalidSurface", "the surface is not valid"},
    {43, "cudaErrorDuplicateVariableName", "two variables have one name"},
    {44, "cudaErrorDuplicateTextureName", "two textures have one name"},
    {45, "cudaErrorDuplicateSurfaceName", "two surfaces have one name"},
    {46, "cudaErrorDevicesUnavailable", nullptr},
    {49, "cudaErrorIncompatibleDriverContext", "the context does not fit the runtime"},
    {52, "cudaErrorMissingConfiguration", "a launch without its configuration"},
    {53, "cudaErrorPriorLaunchFailure", "an earlier launch failed"},
    {65, "cudaErrorLaunchMaxDepthExceeded", "kernels launch kernels too deep"},
    {66, "cudaErrorLaunchFileScopedTex", "a child kernel uses a texture of the file"},
    {67, "cudaErrorLaunchFileScopedSurf", "a child kernel uses a surface of the file"},
    {68, "cudaErrorSyncDepthExceeded", "kernels wait for kernels too deep"},
    {69, "cudaErrorLaunchPendingCountExceeded", "too many child kernels are pending"},
    {98, "cudaErrorInvalidDeviceFunction", "the program registered no such kernel"},
    {100, "cudaErrorNoDevice", nullptr},
    {101, "cudaErrorInvalidDevice", nullptr},
    {102, "cudaErrorDeviceNotLicensed", nullptr},
    {103, "cudaErrorSoftwareValidityNotEstablished", "the validity of the software is unknown"},
    {127, "cudaErrorStartupFailure", "the runtime could not start"},
    {200, "cudaErrorInvalidKernelImage", nullptr},
    {201, "cudaErrorDeviceUninitialized", nullptr},
    {205, "cudaErrorMapBufferObjectFailed", nullptr},
    {206, "cudaErrorUnmapBufferObjectFailed", nullptr},
    {207, "cudaErrorArrayIsMapped", nullptr},
    {208, "cudaErrorAlreadyMapped", nullptr},
    {209, "cudaErrorNoKernelImageForDevice", nullptr},
    {210, "cudaErrorAlreadyAcquired", nullptr},
    {211, "cudaErrorNotMapped", nullptr},
    {212, "cudaErrorNotMappedAsArray", nullptr},
    {213, "cudaErrorNotMappedAsPointer", nullptr},
    {214, "cudaErrorECCUncorrectable", nullptr},
    {215, "cudaErrorUnsupportedLimit", nullptr},
    {216, "cudaErrorDeviceAlreadyInUse", nullptr},
    {217, "cudaErrorPeerAccessUnsupported", nullptr},
    {218, "cudaErrorInvalidPtx", nullptr},
    {219, "cudaErrorInvalidGraphicsContext", nullptr},
    {220, "cudaErrorNvlinkUncorrectable", nullptr},
    {221, "cudaErrorJitCompilerNotFound", nullptr},
    {222, "cudaErrorUnsupportedPtxVersion", nullptr},
    {223, "cudaErrorJitCompilationDisabled", nullptr},
    {224, "cudaErrorUnsupportedExecAffinity", nullptr},
    {225, "cudaErrorUnsupportedDevSideSync", nullptr},
    {226, "cudaErrorContained", nullptr},
    {300, "cudaErrorInvalidSource", nullptr},
    {301, "cudaErrorFileNotFound", nullptr},
    {302, "cudaErrorSharedObjectSymbolNotFound", nullptr},
    {303, "cudaErrorSharedObjectInitFailed", nullptr},
    {304, "cudaErrorOperatingSystem", nullptr},
    {400, "cudaErrorInvalidResourceHandle", nullptr},
    {401, "cudaErrorIllegalState", nullptr},
    {402, "cudaErrorLossyQuery", nullptr},
    {500, "cudaErrorSymbolNotFound", nullptr},
    {600, "cudaErrorNotReady", nullptr},
    {700, "cudaErrorIllegalAddress", nullptr},
    {701, "cudaErrorLaunchOutOfResources", nullptr},
    {702, "cudaErrorLaunchTimeout", nullptr},
    {703, "cudaErrorLaunchIncompatibleTexturing", nullptr},
    {704, "cudaErrorPeerAccessAlreadyEnabled", nullptr},
    {705, "cudaErrorPeerAccessNotEnabled", nullptr},
    {708, "cudaErrorSetOnActiveProcess", nullptr},
    {709, "cudaErrorContextIsDestroyed", nullptr},
    {710, "cudaErrorAssert", nullptr},
    {711, "cudaErrorTooManyPeers", nullptr},
    {712, "cudaErrorHostMemoryAlreadyRegistered", nullptr},
    {713, "cudaErrorHostMemoryNotRegistered", nullptr},
    {714, "cudaErrorHardwareStackError", nullptr},
    {715, "cudaErrorIllegalInstruction", nullptr},
    {716, "cudaErrorMisalignedAddress", nullptr},
    {717, "cudaErrorInvalidAddressSpace", nullptr},
    {718, "cudaErrorInvalidPc", nullptr},
    {719, "cudaErrorLaunchFailure", nullptr},
    {720, "cudaErrorCooperativeLaunchTooLarge", nullptr},
    {721, "cudaErrorTensorMemoryLeak", nullptr},
    {800, "cudaErrorNotPermitted", nullptr},
    {801, "cudaErrorNotSupported", nullptr},
    {802, "cudaErrorSystemNotReady", nullptr},
    {803, "cudaErrorSystemDriverMismatch", nullptr},
    {804, "cudaErrorCompatNotSupportedOnDevice", nullptr},
    {805, "cudaErrorMpsConnectionFailed", nullptr},
    {806, "cudaErrorMpsRpcFailure", nullptr},
    {807, "cudaErrorMpsServerNotReady", nullptr},
    {808, "cudaErrorMpsMaxClientsReached", nullptr},
    {809, "cudaErrorMpsMaxConnectionsReached", nullptr},
    {810, "cudaErrorMpsClientTerminated", nullptr},
    {811, "cudaErrorCdpNotSupported", nullptr},
    {812, "cudaErrorCdpVersionMismatch", nullptr},
    {900, "cudaErrorStreamCaptureUnsupported", nullptr},
    {901, "cudaErrorStreamCaptureInvalidated", nullptr},
    {902, "cudaErrorStreamCaptureMerge", nullptr},
    {903, "cudaErrorStreamCaptureUnmatched", nullptr},
    {904, "cudaErrorStreamCaptureUnjoined", nullptr},
    {905, "cudaErrorStreamCaptureIsolation", nullptr},
    {906, "cudaErrorStreamCaptureImplicit", nullptr},
    {907, "cudaErrorCapturedEvent", nullptr},
    {908, "cudaErrorStreamCaptureWrongThread", nullptr},
    {909, "cudaErrorTimeout", nullptr},
    {910, "cudaErrorGraphExecUpdateFailure", nullptr},
    {911, "cudaErrorExternalDevice", nullptr},
    {912, "cudaErrorInvalidClusterSize", nullptr},
    {913, "cudaErrorFunctionNotLoaded", nullptr},
    {914, "cudaErrorInvalidResourceType", nullptr},
    {915, "cudaErrorInvalidResourceConfiguration", nullptr},
    {999, "cudaErrorUnknown", nullptr},
    {10000, "cudaErrorApiFailureBase", "an error of the runtime"},
};

const ErrorRow* row(Error error) {
  for (const ErrorRow& r : kErrors)
    if (r.error == error) return &r;
  return nullptr;
}

}  // namespace

Error roofgen::shim::cudart::refuse(const char* call, Error error, const std::string& why) {
  return roofgen_simulated_refuse(call, error, row(error) ? row(error)->name : "cudaError", why.c_str());
}

#define EXPORT_CALL extern "C" __attribute__((visibility("default")))

EXPORT_CALL const char* cudaGetErrorName(Error error) {
  const ErrorRow* r = row(error);
  return r ? r->name : "unrecognized error code";
}
EXPORT_CALL const char* cudaGetErrorString(Error error) {
  const ErrorRow* r = row(error);
  const char* text = r ? r->text : "unrecognized error code";
  if (!text) cuGetErrorString(error, &text);
  return text;
}
EXPORT_CALL Error cudaPeekAtLastError() { return last_error; }
EXPORT_CALL Error cudaGetLastError() { return std::exchange(last_error, kSuccess); }

// Compiled for each of the libraries, with the version of its API.
namespace roofgen::shim::cudart {
extern const int kRuntimeVersion;
const int kRuntimeVersion = ROOFGEN_CUDART_VERSION;
}  // namespace roofgen::shim::cudart

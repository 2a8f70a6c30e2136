/* An NVRTC that compiles for sm_990 alone, and nothing. */
#include <stddef.h>
int nvrtcVersion(int* major, int* minor) { return *major = 14, *minor = 0, 0; }
const char* nvrtcGetErrorString(int result) { return result ? "stand-in" : ""; }
int nvrtcGetNumSupportedArchs(int* count) { return *count = 1, 0; }
int nvrtcGetSupportedArchs(int* archs) { return *archs = 990, 0; }
int nvrtcCreateProgram(void** p, const char* s, const char* n, int c, const char* const* t, const char* const* i) {
  return (void)p, (void)s, (void)n, (void)c, (void)t, (void)i, 1;
}
int nvrtcDestroyProgram(void** p) { return (void)p, 1; }
int nvrtcCompileProgram(void* p, int n, const char* const* f) { return (void)p, (void)n, (void)f, 1; }
int nvrtcGetProgramLogSize(void* p, size_t* n) { return (void)p, *n = 0, 1; }
int nvrtcGetProgramLog(void* p, char* t) { return (void)p, (void)t, 1; }
int nvrtcGetPTXSize(void* p, size_t* n) { return (void)p, *n = 0, 1; }
int nvrtcGetPTX(void* p, char* t) { return (void)p, (void)t, 1; }
int nvrtcGetCUBINSize(void* p, size_t* n) { return (void)p, *n = 0, 1; }
int nvrtcGetCUBIN(void* p, char* t) { return (void)p, (void)t, 1; }

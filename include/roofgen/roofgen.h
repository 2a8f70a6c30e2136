/* roofgen as a library: tunes, generates, compiles and launches CUDA kernels from other programs (docs/use/library.md).
 * C11 and C++; it includes no header of CUDA. include/roofgen/roofgen.hpp is the C++20 interface over it.
 *
 * A request is a JSON object with the flags of `roofgen COMMAND OP` without their hyphens, as in a suite
 * (docs/use/suite.md):
 *   {"op": "attention", "L": 2048, "d": 64, "causal": true, "evals": 24}
 *
 * Calls return ROOFGEN_OK or another status. After one that failed, roofgen_error() is its reason. No call prints, ends
 * the process or lets an exception out. Calls on one session may run at once in several threads; closing must wait for
 * them. Strings that are passed in are zero-terminated UTF-8; those that come out belong to the object they are of. */
#ifndef ROOFGEN_H
#define ROOFGEN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define ROOFGEN_API __attribute__((visibility("default")))
#else
#define ROOFGEN_API
#endif

/* Raised when functions or members are added; nothing is removed or changed while the library is libroofgen.so.1. */
#define ROOFGEN_ABI_VERSION 1

/* The exit codes of the program. */
enum {
  ROOFGEN_OK = 0,
  ROOFGEN_FAILED = 1,      /* the job ran and failed: nothing was verified, a file cannot be written */
  ROOFGEN_USAGE = 2,       /* the request or an argument asks for something that does not exist */
  ROOFGEN_UNAVAILABLE = 3, /* nothing legal to run, or a component (NVRTC, driver, GPU) is missing */
  ROOFGEN_BELOW_SCORE = 4, /* the score is below "min-score"; there is a result */
  ROOFGEN_INTERRUPTED = 130
};

typedef struct roofgen_session roofgen_session;
typedef struct roofgen_result roofgen_result;

/* "0.1.0" */
ROOFGEN_API const char* roofgen_version(void);
/* ROOFGEN_ABI_VERSION of the loaded library. */
ROOFGEN_API int roofgen_abi_version(void);

/* Why the last failed call of this thread failed, in one line; never null, valid until the thread's next call. */
ROOFGEN_API const char* roofgen_error(void);
/* Its place in the JSON text of the request, from 1; 0: it has none. */
ROOFGEN_API int roofgen_error_line(void);
ROOFGEN_API int roofgen_error_column(void);

/* ---- Sessions ---- */

/* `options` is null or a JSON object:
 *   "data_dirs": ["DIR"]  folders with templates/, search_spaces/, ... that come before the built-in ones
 *   "cache_dir": "DIR"    compiled kernels [as the program: $ROOFGEN_CACHE_DIR, ~/.cache/roofgen]; "": none
 *   "data_home": "DIR"    the store of evaluations [$ROOFGEN_DATA_HOME, ~/.local/share/roofgen]; "": none
 */
ROOFGEN_API int roofgen_open(roofgen_session** session, const char* options);
/* Waits for no call: none may run. Null is allowed. */
ROOFGEN_API void roofgen_close(roofgen_session* session);
/* `warning` receives one line at a time, in any thread, of calls that begin later; null: warnings are dropped. */
ROOFGEN_API int roofgen_on_warning(roofgen_session* session, void (*warning)(void* user, const char* line), void* user);
/* Receives the phase of a search and its steps, in the thread of the call; null: none. */
ROOFGEN_API int roofgen_on_progress(roofgen_session* session,
                                    void (*progress)(void* user, const char* phase, uint64_t done, uint64_t total),
                                    void* user);
/* The calls of the session that run end soon with ROOFGEN_INTERRUPTED; from any thread. What is done stays stored. */
ROOFGEN_API int roofgen_cancel(roofgen_session* session);

/* ---- Calls ----
 * `*result` is null where there is nothing to show. It is to be freed, whatever the status. */

/* Tunes, or takes the result from the store. Text: the report (docs/tune-schema.json); of several sizes the dispatch
 * table (docs/use/dispatch.md). Kernels: those of the best variant in launch order, or of each row of the table. */
ROOFGEN_API int roofgen_tune(roofgen_session* session, const char* request, roofgen_result** result);
/* One kernel without tuning: of "variant" and "stage" at "set", or at the default schedule. Text: its source. */
ROOFGEN_API int roofgen_generate(roofgen_session* session, const char* request, roofgen_result** result);
/* The same compiled. Text: the PTX. */
ROOFGEN_API int roofgen_compile(roofgen_session* session, const char* request, roofgen_result** result);
/* Tunes and writes a bundle into the folder (docs/use/emit.md). Text: what was written. */
ROOFGEN_API int roofgen_emit(roofgen_session* session, const char* request, const char* directory,
                             roofgen_result** result);
/* Work, roofs and regime of an operator by formula. Text: JSON (docs/use/explain.md). */
ROOFGEN_API int roofgen_explain(roofgen_session* session, const char* request, roofgen_result** result);

ROOFGEN_API const char* roofgen_result_text(const roofgen_result* result);
/* Of roofgen_tune, for a single problem: "FUSE: warpgroup is 3.66x as fast ..."; "" otherwise. */
ROOFGEN_API const char* roofgen_result_verdict(const roofgen_result* result);
ROOFGEN_API size_t roofgen_result_kernels(const roofgen_result* result);
ROOFGEN_API void roofgen_result_free(roofgen_result* result);

typedef struct {
  size_t struct_bytes;  /* set by the caller: sizeof(roofgen_kernel) */
  const char* schedule; /* "fused BM=128 BN=64 stages=2" */
  const char* entry;    /* name of the kernel in source, PTX and CUBIN */
  const char* source;   /* CUDA C++ */
  const char* ptx;      /* of roofgen_generate "", as the next ones */
  const void* cubin;
  size_t cubin_bytes;
  const char* arch;   /* "sm_90a" */
  const char* digest; /* SHA-256 of all inputs of the compilation */
  int32_t registers;  /* per thread */
  int64_t spill_bytes;
  uint32_t grid[3], block[3], cluster[3];
  uint32_t shared_bytes; /* dynamic */
} roofgen_kernel;

/* Fills the first `struct_bytes` of `kernel`: later releases add members at its end. */
ROOFGEN_API int roofgen_result_kernel(const roofgen_result* result, size_t index, roofgen_kernel* kernel);

/* ---- Launches in this process ----
 * The kernels of a request in the CUDA context that is current at roofgen_jit; libcuda is opened at the first one. */

typedef struct roofgen_pipeline roofgen_pipeline;

/* Takes the winner of the request from the cache, else from the store, else tunes; loads its kernels. Without "device"
 * the kernels are for the device of the context. */
ROOFGEN_API int roofgen_jit(roofgen_session* session, const char* request, roofgen_pipeline** pipeline);
/* Its context must still exist. Null is allowed. */
ROOFGEN_API void roofgen_pipeline_free(roofgen_pipeline* pipeline);
/* JSON, roofgen.pipeline.1: variant, time of the tuned problem (modelled unless "measured"), kernels, parameters with
 * their defaults. */
ROOFGEN_API const char* roofgen_pipeline_text(const roofgen_pipeline* pipeline);

enum { ROOFGEN_POINTER = 0, ROOFGEN_INTEGER = 1, ROOFGEN_REAL = 2 };

/* A parameter by its name in roofgen_pipeline_text: tensors by device pointer, sizes and strides (in elements) as
 * integers, numbers such as "scale" as reals. Tensors are needed; a size that is not given is that of the request, a
 * stride that of contiguous tensors. */
typedef struct {
  const char* name;
  int32_t kind;
  union {
    uint64_t pointer;
    int64_t integer;
    double real;
  } value;
} roofgen_argument;

/* Bytes of the workspace of a launch with these arguments, of which pointers may be missing; often 0. */
ROOFGEN_API int roofgen_workspace_bytes(roofgen_pipeline* pipeline, const roofgen_argument* arguments, size_t count,
                                        uint64_t* bytes);
/* Queues the kernels on a stream (CUstream; null: the default stream of the context), and does not wait. All is checked
 * first: ROOFGEN_USAGE names an argument that is wrong, ROOFGEN_UNAVAILABLE a condition of the kernels that these sizes
 * or strides break; another roofgen_jit may have kernels for them. Threads may share a pipeline, but two launches at a
 * time no workspace. */
ROOFGEN_API int roofgen_launch(roofgen_pipeline* pipeline, void* stream, const roofgen_argument* arguments,
                               size_t count, uint64_t workspace, uint64_t workspace_bytes);

#ifdef __cplusplus
}
#endif

#endif

/* A bundle of `emit gemm`: its launch in a graph, which runs twice, and launches of several threads at once on one
 * handle. */
#include <pthread.h>

#include "host.h"

typedef struct CUgraph_st* CUgraph;
typedef struct CUgraphExec_st* CUgraphExec;
CUresult cuStreamCreate(CUstream*, unsigned);
CUresult cuStreamSynchronize(CUstream);
CUresult cuStreamBeginCapture_v2(CUstream, int);
CUresult cuStreamEndCapture(CUstream, CUgraph*);
CUresult cuGraphInstantiateWithFlags(CUgraphExec*, CUgraph, unsigned long long);
CUresult cuGraphLaunch(CUgraphExec, CUstream);

static gemm_t* bundle;
static const int64_t M = 128, N = 128, K = 512;

typedef struct {
  Tensor a, b, c;
  CUdeviceptr memory;
  size_t bytes;
  CUstream stream;
} Call;

#define ARG_A call->a.device
#define ARG_B call->b.device
#define ARG_C call->c.device
#define ARG_M M
#define ARG_N N
#define ARG_K K
#define ARG_a_stride K
#define ARG_b_stride K

static Call call_of(unsigned seed) {
  Call out = {input(seed, M * K, 2), input(seed + 1, N * K, 2), output(M * N, 2), 0, 0, NULL};
  out.bytes = gemm_workspace_bytes(bundle, WORKSPACE_SIZES);
  must(cuMemAlloc(&out.memory, out.bytes + 1), "the workspace");
  must(cuStreamCreate(&out.stream, 1), "cuStreamCreate");
  return out;
}

static int launch(const Call* call) {
  return gemm_launch(bundle, call->stream, ARGUMENTS, (void*)(uintptr_t)call->memory, call->bytes);
}

static int check(const Call* call, const char* what) {
  must(cuStreamSynchronize(call->stream), "the kernels");
  float* got = read_back(call->c);
  for (int64_t i = 0; i < M * N; ++i) {
    double sum = 0;
    for (int64_t k = 0; k < K; ++k) sum += (double)call->a.host[i / N * K + k] * call->b.host[i % N * K + k];
    compare(got[i], sum);
  }
  free(got);
  must(cuMemsetD8(call->c.device, 0xff, (size_t)(M * N * 2)), "cuMemsetD8"); /* NaN */
  return report(what);
}

static int in_a_graph(void) {
  const Call call = call_of(1);
  CUgraph graph;
  CUgraphExec run;
  must(cuMemsetD8(call.c.device, 0xff, (size_t)(M * N * 2)), "cuMemsetD8");
  must(cuStreamBeginCapture_v2(call.stream, 0), "cuStreamBeginCapture");
  launched(launch(&call), "gemm_launch in a capture");
  must(cuStreamEndCapture(call.stream, &graph), "cuStreamEndCapture");
  must(cuGraphInstantiateWithFlags(&run, graph, 0), "cuGraphInstantiate");
  must(cuGraphLaunch(run, call.stream), "cuGraphLaunch");
  int failed = check(&call, "the graph");
  must(cuGraphLaunch(run, call.stream), "cuGraphLaunch");
  return failed | check(&call, "the graph again");
}

static void* launches(void* of) {
  for (int i = 0; i < 3; ++i) launched(launch(of), "gemm_launch in a thread");
  return NULL;
}

static int from_threads(void) {
  enum { kThreads = 4 };
  Call calls[kThreads];
  pthread_t threads[kThreads];
  int failed = 0;
  for (unsigned i = 0; i < kThreads; ++i) calls[i] = call_of(10 * i + 10);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, launches, &calls[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < kThreads; ++i) failed |= check(&calls[i], "a thread");
  return failed;
}

int main(void) {
  start();
  launched(gemm_create(&bundle, NULL), "gemm_create");
  const int failed = in_a_graph() | from_threads();
  gemm_destroy(bundle);
  return failed;
}

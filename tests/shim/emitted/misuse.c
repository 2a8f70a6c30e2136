/* Calls of a bundle of `emit attention --variant unfused --lse` with one argument wrong each: an error that names it.
 */
#include "host.h"

static attention_t* bundle;
static int failed;

typedef struct {
  attention_t* handle;
  CUdeviceptr Q, K, V, O, LSE, workspace;
  float scale;
  int64_t batch, heads, kv_heads, L, kv_len;
  int64_t q_batch_stride, q_row_stride, q_head_stride, k_batch_stride, k_row_stride, k_head_stride;
  int64_t v_batch_stride, v_row_stride, v_head_stride, o_batch_stride, o_row_stride, o_head_stride;
  size_t workspace_bytes;
} Call;

static int launch(const Call* x) {
#define ARG_Q x->Q
#define ARG_K x->K
#define ARG_V x->V
#define ARG_O x->O
#define ARG_LSE x->LSE
#define ARG_scale x->scale
#define ARG_batch x->batch
#define ARG_heads x->heads
#define ARG_kv_heads x->kv_heads
#define ARG_L x->L
#define ARG_kv_len x->kv_len
#define ARG_q_batch_stride x->q_batch_stride
#define ARG_q_row_stride x->q_row_stride
#define ARG_q_head_stride x->q_head_stride
#define ARG_k_batch_stride x->k_batch_stride
#define ARG_k_row_stride x->k_row_stride
#define ARG_k_head_stride x->k_head_stride
#define ARG_v_batch_stride x->v_batch_stride
#define ARG_v_row_stride x->v_row_stride
#define ARG_v_head_stride x->v_head_stride
#define ARG_o_batch_stride x->o_batch_stride
#define ARG_o_row_stride x->o_row_stride
#define ARG_o_head_stride x->o_head_stride
  return attention_launch(x->handle, 0, ARGUMENTS, (void*)(uintptr_t)x->workspace, x->workspace_bytes);
}

/* `names`: the argument, at the beginning of the text or anywhere in it. */
static void expect(const char* what, int error, int kind, const char* names) {
  const char* text = attention_error_string(error);
  const int good = error % 16 == kind && strstr(text, names);
  printf("%s %s: %s\n", good ? "ok" : "FAILED", what, text);
  failed |= !good;
}

int main(void) {
  attention_t* none = (attention_t*)8;
  CUdevice device;
  must(cuInit(0), "cuInit");
  must(cuDeviceGet(&device, 0), "cuDeviceGet");
  expect("create without a context", attention_create(&none, NULL), ATTENTION_NULL, "context");
  if (none) failed = 1;
  start();
  expect("create without a place", attention_create(NULL, NULL), ATTENTION_NULL, "out");
  launched(attention_create(&bundle, NULL), "attention_create");
  const int64_t B = 2, H = 4, G = 2, L = 64, D = 64;
  Call good = {bundle,
               output(B * L * H * D, 2).device,
               output(B * L * G * D, 2).device,
               output(B * L * G * D, 2).device,
               output(B * L * H * D, 2).device,
               output(B * H * L, 4).device,
               0,
               0.125f,
               B,
               H,
               G,
               L,
               L,
               L * H * D,
               H * D,
               D,
               L * G * D,
               G * D,
               D,
               L * G * D,
               G * D,
               D,
               L * H * D,
               H * D,
               D,
               attention_workspace_bytes(bundle, B, H, G, L, L)};
  const CUdeviceptr inputs[] = {good.Q, good.K, good.V};
  for (int i = 0; i < 3; ++i) must(cuMemsetD8(inputs[i], 0, (size_t)(B * L * G * D * 2)), "cuMemsetD8");
  must(cuMemsetD8(good.Q, 0, (size_t)(B * L * H * D * 2)), "cuMemsetD8");
  must(cuMemAlloc(&good.workspace, good.workspace_bytes), "cuMemAlloc");
  launched(launch(&good), "the good call");
  must(cuCtxSynchronize(), "the good call");
  const struct {
    const char* what;
    size_t at, bytes; /* of the member */
    int64_t value;
    int kind;
    const char* names;
  } misuses[] = {
#define MEMBER(name) #name, offsetof(Call, name), sizeof(good.name)
      {MEMBER(handle), 0, ATTENTION_NULL, "handle"},
      {MEMBER(Q), 0, ATTENTION_NULL, "Q "},
      {MEMBER(K), 0, ATTENTION_NULL, "K "},
      {MEMBER(V), 0, ATTENTION_NULL, "V "},
      {MEMBER(O), 0, ATTENTION_NULL, "O "},
      {MEMBER(LSE), 0, ATTENTION_NULL, "LSE "},
      {MEMBER(workspace), 0, ATTENTION_NULL, "workspace "},
      {MEMBER(Q), (int64_t)good.Q + 2, ATTENTION_MISALIGNED, "Q "},
      {MEMBER(K), (int64_t)good.K + 8, ATTENTION_MISALIGNED, "K "},
      {MEMBER(V), (int64_t)good.V + 1, ATTENTION_MISALIGNED, "V "},
      {MEMBER(O), (int64_t)good.O + 14, ATTENTION_MISALIGNED, "O "},
      {MEMBER(LSE), (int64_t)good.LSE + 4, ATTENTION_MISALIGNED, "LSE "},
      {MEMBER(workspace), (int64_t)good.workspace + 16, ATTENTION_MISALIGNED, "workspace "},
      {MEMBER(q_row_stride), good.q_row_stride + 1, ATTENTION_MISALIGNED, "q_row_stride "},
      {MEMBER(q_head_stride), 12, ATTENTION_MISALIGNED, "q_head_stride "},
      {MEMBER(k_row_stride), good.k_row_stride + 4, ATTENTION_MISALIGNED, "k_row_stride "},
      {MEMBER(k_batch_stride), good.k_batch_stride + 2, ATTENTION_MISALIGNED, "k_batch_stride "},
      {MEMBER(v_head_stride), 65, ATTENTION_MISALIGNED, "v_head_stride "},
      {MEMBER(o_row_stride), good.o_row_stride + 3, ATTENTION_MISALIGNED, "o_row_stride "},
      {MEMBER(O), (int64_t)good.Q, ATTENTION_OVERLAP, "Q "},
      {MEMBER(O), (int64_t)good.K, ATTENTION_OVERLAP, "K "},
      {MEMBER(O), (int64_t)good.V - 16, ATTENTION_OVERLAP, "V "},
      {MEMBER(O), (int64_t)good.LSE, ATTENTION_OVERLAP, "O "},
      {MEMBER(LSE), (int64_t)good.O + 16, ATTENTION_OVERLAP, "O "},
      {MEMBER(workspace), (int64_t)good.V, ATTENTION_OVERLAP, "workspace "},
      {MEMBER(workspace), (int64_t)good.O, ATTENTION_OVERLAP, "workspace "},
      {MEMBER(workspace_bytes), 0, ATTENTION_WORKSPACE, "workspace_bytes "},
      {MEMBER(workspace_bytes), (int64_t)good.workspace_bytes - 1, ATTENTION_WORKSPACE, "workspace_bytes "},
      {MEMBER(batch), 0, ATTENTION_OK, "no error"},
      {MEMBER(batch), -1, ATTENTION_RANGE, "batch "},
      {MEMBER(heads), INT64_MIN, ATTENTION_RANGE, "heads "},
      {MEMBER(kv_heads), 0, ATTENTION_RANGE, "kv_heads "},
      {MEMBER(L), INT64_MAX, ATTENTION_RANGE, "L "},
      {MEMBER(kv_len), INT64_C(1) << 31, ATTENTION_RANGE, "kv_len "},
      {MEMBER(q_batch_stride), -64, ATTENTION_RANGE, "q_batch_stride "},
      {MEMBER(k_head_stride), INT64_MIN, ATTENTION_RANGE, "k_head_stride "},
      {MEMBER(v_row_stride), INT64_MAX, ATTENTION_RANGE, "v_row_stride "},
      {MEMBER(o_head_stride), (INT64_C(1) << 40) + 8, ATTENTION_RANGE, "o_head_stride "},
      {MEMBER(batch), 70000, ATTENTION_WORKSPACE, "workspace_bytes "},
      {MEMBER(heads), 3, ATTENTION_UNSUPPORTED, "heads must be a multiple of kv_heads"},
      {MEMBER(kv_heads), 8, ATTENTION_UNSUPPORTED, "heads must be a multiple of kv_heads"},
      {MEMBER(kv_len), INT32_MAX, ATTENTION_WORKSPACE, "workspace_bytes "},
  };
  for (size_t i = 0; i < sizeof misuses / sizeof *misuses; ++i) {
    Call call = good;
    memcpy((char*)&call + misuses[i].at, &misuses[i].value, misuses[i].bytes);
    expect(misuses[i].what, launch(&call), misuses[i].kind, misuses[i].names);
  }
  static Call nothing;
  nothing.handle = bundle;
  expect("no tensor and no size", launch(&nothing), ATTENTION_OK, "no error");
  Call huge = good;
  huge.batch = huge.L = huge.kv_len = INT32_MAX;
  expect("sizes together", launch(&huge), ATTENTION_RANGE, "too large");
  if (attention_workspace_bytes(bundle, -1, 1, 1, 1, 1) || attention_workspace_bytes(NULL, 1, 1, 1, 1, 1)) failed = 1;
  expect("an error of no function", 0x7fffff0, ATTENTION_OK, "no error of this library");
  must(cuCtxSynchronize(), "nothing ran");
  attention_destroy(bundle);
  attention_destroy(NULL);
  return failed;
}

/* A bundle of `emit attention` for few queries: d is 64. -DPAGE: caches in pages, with a length for each sequence. */
#include "host.h"

enum { kD = 64 };
static const float kScale = 0.125f;
static attention_t* bundle;

#ifdef PAGE
static CUdeviceptr upload(const void* data, size_t bytes) {
  CUdeviceptr to;
  must(cuMemAlloc(&to, bytes), "cuMemAlloc");
  must(cuMemcpyHtoD(to, data, bytes), "cuMemcpyHtoD");
  return to;
}
#endif

typedef struct {
  int64_t batch, q_len, kv_len, heads, kv_heads;
} Sizes;

typedef struct {
  Tensor q, k, v, o;
  CUdeviceptr lse, lengths, table;
  int64_t pages_per_sequence;
} Tensors;

static int launch(const Sizes* s, const Tensors* t) {
  const int64_t batch = s->batch, heads = s->heads, kv_heads = s->kv_heads, L = s->q_len, kv_len = s->kv_len;
  const int64_t q_row = heads * kD, kv_row = kv_heads * kD;
#define ARG_Q t->q.device
#define ARG_K t->k.device
#define ARG_V t->v.device
#define ARG_O t->o.device
#define ARG_LSE t->lse
#define ARG_kv_lengths t->lengths
#define ARG_block_table t->table
#define ARG_scale kScale
#define ARG_batch batch
#define ARG_heads heads
#define ARG_kv_heads kv_heads
#define ARG_L L
#define ARG_kv_len kv_len
#define ARG_pages_per_sequence t->pages_per_sequence
#define ARG_q_batch_stride L* q_row
#define ARG_q_row_stride q_row
#define ARG_q_head_stride kD
#define ARG_o_batch_stride L* q_row
#define ARG_o_row_stride q_row
#define ARG_o_head_stride kD
#ifdef PAGE
#define ARG_k_batch_stride 0
#define ARG_v_batch_stride 0
#define ARG_k_page_stride PAGE* kv_row
#define ARG_v_page_stride PAGE* kv_row
#else
#define ARG_k_batch_stride kv_len* kv_row
#define ARG_v_batch_stride kv_len* kv_row
#endif
#define ARG_k_row_stride kv_row
#define ARG_v_row_stride kv_row
#define ARG_k_head_stride kD
#define ARG_v_head_stride kD
  const size_t bytes = attention_workspace_bytes(bundle, WORKSPACE_SIZES);
  CUdeviceptr memory;
  must(cuMemAlloc(&memory, bytes + 1), "the workspace"); /* with contents of no use */
  return attention_launch(bundle, 0, ARGUMENTS, (void*)(uintptr_t)memory, bytes);
}

/* Compares O of every row with sums in fp64. Without a cache in pages, all lengths are kv_len. */
static int run(Sizes s, const int32_t* lengths) {
  Tensors t;
  int64_t rows = s.batch * s.kv_len; /* of K and V, each of all heads */
  t.pages_per_sequence = 0;
#ifdef PAGE
  t.pages_per_sequence = (s.kv_len + PAGE - 1) / PAGE;
  int64_t pages = s.batch * t.pages_per_sequence + 1;
  if (pages % 7 == 0) ++pages;
  rows = pages * PAGE;
  int32_t* table = malloc((size_t)(s.batch * t.pages_per_sequence) * sizeof *table);
  for (int64_t i = 0; i < s.batch * t.pages_per_sequence; ++i) {
    const int64_t used = (lengths[i / t.pages_per_sequence] + PAGE - 1) / PAGE;
    table[i] = i % t.pages_per_sequence < used ? (int32_t)((7 * i + 3) % pages) : 0x7fffffff;
  }
  t.table = upload(table, (size_t)(s.batch * t.pages_per_sequence) * sizeof *table);
  t.lengths = upload(lengths, (size_t)s.batch * sizeof *lengths);
#endif
  t.q = input(1, s.batch * s.q_len * s.heads * kD, 2);
  t.k = input(2, rows * s.kv_heads * kD, 2);
  t.v = input(3, rows * s.kv_heads * kD, 2);
  t.o = output(t.q.count, 2);
  t.lse = output(s.batch * s.heads * s.q_len, 4).device; /* written with --lse only */
  char what[96];
  snprintf(what, sizeof what, "batch %d, L %d, kv_len %d, heads %d/%d", (int)s.batch, (int)s.q_len, (int)s.kv_len,
           (int)s.heads, (int)s.kv_heads);
  launched(launch(&s, &t), what);
  float* got = read_back(t.o);
  double* p = malloc((size_t)s.kv_len * sizeof *p);
  int64_t* at = malloc((size_t)s.kv_len * sizeof *at);
  for (int64_t row = 0; row < s.batch * s.q_len * s.heads; ++row) {
    const int64_t b = row / (s.q_len * s.heads), head = row % s.heads, keys = lengths[b];
    const float* q = t.q.host + row * kD;
    double top = -INFINITY, sum = 0;
    for (int64_t k = 0; k < keys; ++k) {
      int64_t place = b * s.kv_len + k;
#ifdef PAGE
      place = (int64_t)table[b * t.pages_per_sequence + k / PAGE] * PAGE + k % PAGE;
#endif
      at[k] = (place * s.kv_heads + head / (s.heads / s.kv_heads)) * kD;
      p[k] = 0;
      for (int c = 0; c < kD; ++c) p[k] += q[c] * t.k.host[at[k] + c] * kScale;
      top = fmax(top, p[k]);
    }
    for (int64_t k = 0; k < keys; ++k) sum += p[k] = exp(p[k] - top);
    for (int c = 0; c < kD; ++c) {
      double o = 0;
      for (int64_t k = 0; k < keys; ++k) o += p[k] / sum * t.v.host[at[k] + c];
      compare(got[row * kD + c], o);
    }
  }
  return report(what);
}

int main(void) {
  start();
  launched(attention_create(&bundle, NULL), "attention_create");
  int failed = 0;
#ifdef PAGE
  failed |= run((Sizes){2, 1, 512, 8, 2}, (const int32_t[]){100, 512});
  failed |= run((Sizes){3, 1, 333, 8, 2}, (const int32_t[]){333, 1, 65});
  failed |= run((Sizes){1, 1, 1200, 6, 2}, (const int32_t[]){1111});
#else
  failed |= run((Sizes){2, 1, 512, 8, 2}, (const int32_t[]){512, 512});
  failed |= run((Sizes){3, 1, 333, 8, 2}, (const int32_t[]){333, 333, 333});
  failed |= run((Sizes){1, 2, 61, 15, 3}, (const int32_t[]){61});
#endif
  attention_destroy(bundle);
  return failed;
}

/* attention.h of `emit attention` for few queries: d is 64. -DSPLIT: the keys are split, and a second kernel merges the
 * parts. -DMERGED: the last CTA of each tile merges them. -DUNFUSED: scores, softmax and pv. -DPAGE: caches in pages,
 * with a length for each sequence. -DAPPEND, with pages: --append --rotary half, the last q_len keys of each sequence
 * are new; -DPROLOGUE: by a kernel of its own. -DFP8, with pages: K and V are e4m3, with a scale for each head. */
#include "out/attention.h"

#include "host.h"

enum { kD = 64, kCounterBytes = 4096 };
#ifdef UNFUSED
static const float kScale = 0.0078125f; /* S is bf16: an error of 2^-9 of a score is one of its exponential */
#else
static const float kScale = 0.125f;
#endif

static CUdeviceptr upload(const void* data, size_t bytes) {
  CUdeviceptr to;
  must(cuMemAlloc(&to, bytes), "cuMemAlloc");
  must(cuMemcpyHtoD(to, data, bytes), "cuMemcpyHtoD");
  return to;
}

typedef struct {
  int64_t batch, q_len, kv_len, heads, kv_heads;
} Sizes;

typedef struct {
  Tensor q, k, v, o;
  CUdeviceptr lse, lengths, table, k_new, v_new, k_scale, v_scale;
  int64_t pages_per_sequence;
} Tensors;

static CUresult launch(const Sizes* s, const Tensors* t) {
  const int64_t q_row = s->heads * kD, kv_row = s->kv_heads * kD;
#ifdef PAGE
#ifdef APPEND
#define NEW_STRIDES s->q_len *kv_row, kv_row, kD
#define NEW , t->k_new, t->v_new, NEW_STRIDES, NEW_STRIDES
#else
#define NEW
#endif
#ifdef FP8
#define SCALES , t->k_scale, t->v_scale
#else
#define SCALES
#endif
#define PAGES t->lengths, t->table, t->pages_per_sequence, PAGE *kv_row, PAGE *kv_row
#define CACHE , PAGES NEW SCALES
  const int64_t kv_batch = 0;
#else
#define CACHE
  const int64_t kv_batch = s->kv_len * kv_row;
#endif
#define INPUTS s->q_len, s->kv_len, s->q_len *q_row, q_row, kD, kv_batch, kv_row, kD, kv_batch, kv_row, kD
#define OUTPUT s->q_len *q_row, q_row, kD
  const float scale_log2 = kScale * 1.44269504f;
#ifdef SPLIT
  const CUfunction partial = load("out/attention_partial.ptx", ATTENTION_PARTIAL_ENTRY),
                   combine = load("out/attention_combine.ptx", ATTENTION_COMBINE_ENTRY);
  CUdeviceptr parts, logs;
  must(cuMemAlloc(&parts, (size_t)attention_partial_O_bytes(s->q_len, s->batch, kD, s->heads)), "partial_O");
  must(cuMemAlloc(&logs, (size_t)attention_partial_LSE_bytes(s->q_len, s->batch, s->heads)), "partial_LSE");
  must(attention_partial_prepare(partial), "attention_partial_prepare");
  must(attention_combine_prepare(combine), "attention_combine_prepare");
  const CUresult result = attention_partial_launch(partial, 0, t->q.device, t->k.device, t->v.device, parts, logs,
                                                   INPUTS, scale_log2 CACHE, s->batch, s->heads, s->kv_heads);
  if (result != CUDA_SUCCESS) return result;
  return attention_combine_launch(combine, 0, parts, logs, t->o.device, t->lse, s->q_len, s->heads, OUTPUT, s->batch);
#elif defined MERGED
  /* One counter memory for all launches, zeroed once, as long as the largest needs. */
  static const char zeros[kCounterBytes];
  static CUdeviceptr counters;
  if (!counters) counters = upload(zeros, sizeof zeros);
  if (attention_arrivals_bytes(s->q_len, s->batch, s->heads) > kCounterBytes) exit(2);
  const CUfunction function = load("out/attention.ptx", ATTENTION_ENTRY);
  must(attention_prepare(function), "attention_prepare");
  CUdeviceptr parts, logs;
  must(cuMemAlloc(&parts, (size_t)attention_partial_O_bytes(s->q_len, s->batch, kD, s->heads)), "partial_O");
  must(cuMemAlloc(&logs, (size_t)attention_partial_LSE_bytes(s->q_len, s->batch, s->heads)), "partial_LSE");
  return attention_launch(function, 0, t->q.device, t->k.device, t->v.device, t->o.device, t->lse, parts, logs,
                          counters, INPUTS, OUTPUT, scale_log2 CACHE, s->batch, s->heads, s->kv_heads);
#elif defined UNFUSED
#define BUFFER(name) \
  CUdeviceptr name;  \
  must(cuMemAlloc(&name, (size_t)attention_##name##_bytes(s->q_len, s->batch, s->heads, s->kv_len)), #name)
#define STAGE(name, ENTRY)                                                                \
  const CUfunction name = load("out/attention_" #name ".ptx", ATTENTION_##ENTRY##_ENTRY); \
  must(attention_##name##_prepare(name), #name)
  BUFFER(S);
  BUFFER(P);
  STAGE(scores, SCORES);
  STAGE(softmax, SOFTMAX);
  STAGE(pv, PV);
  const int64_t kv[] = {kv_batch, kv_row, kD};
  (void)scale_log2;
  CUresult result =
      attention_scores_launch(scores, 0, t->q.device, t->k.device, S, s->q_len, s->kv_len, s->q_len * q_row, q_row, kD,
                              kv[0], kv[1], kv[2], kScale, s->batch, s->heads, s->kv_heads);
  if (result == CUDA_SUCCESS)
    result = attention_softmax_launch(softmax, 0, S, P, t->lse, s->q_len, s->kv_len, s->batch, s->heads);
  if (result != CUDA_SUCCESS) return result;
  return attention_pv_launch(pv, 0, P, t->v.device, t->o.device, s->q_len, s->kv_len, kv[0], kv[1], kv[2], OUTPUT,
                             s->batch, s->heads, s->kv_heads);
#elif defined PROLOGUE
  const CUfunction prologue = load("out/attention_prologue.ptx", ATTENTION_PROLOGUE_ENTRY),
                   function = load("out/attention.ptx", ATTENTION_ENTRY);
  CUdeviceptr q_plain;
  must(cuMemAlloc(&q_plain, (size_t)attention_Q_plain_bytes(s->q_len, s->batch, kD, s->heads)), "Q_plain");
  must(attention_prologue_prepare(prologue), "attention_prologue_prepare");
  must(attention_prepare(function), "attention_prepare");
  const CUresult result =
      attention_prologue_launch(prologue, 0, t->q.device, q_plain, t->k.device, t->v.device, INPUTS, t->k_new, t->v_new,
                                NEW_STRIDES, NEW_STRIDES, PAGES, s->batch, s->heads, s->kv_heads);
  if (result != CUDA_SUCCESS) return result;
  return attention_launch(function, 0, q_plain, t->k.device, t->v.device, t->o.device, t->lse, s->q_len, s->kv_len, kD,
                          kv_batch, kv_row, kD, kv_batch, kv_row, kD, OUTPUT, scale_log2, PAGES, s->batch, s->heads,
                          s->kv_heads);
#else
  const CUfunction function = load("out/attention.ptx", ATTENTION_ENTRY);
  must(attention_prepare(function), "attention_prepare");
  return attention_launch(function, 0, t->q.device, t->k.device, t->v.device, t->o.device, t->lse, INPUTS, OUTPUT,
                          scale_log2 CACHE, s->batch, s->heads, s->kv_heads);
#endif
}

#ifdef APPEND
/* Pairs of columns i and i + kD / 2; base 10000. */
static void rotate(float* row, int64_t position) {
  for (int i = 0; i < kD / 2; ++i) {
    const double angle = (double)position * pow(10000, -2.0 * i / kD), x = row[i], y = row[i + kD / 2];
    row[i] = (float)(x * cos(angle) - y * sin(angle));
    row[i + kD / 2] = (float)(x * sin(angle) + y * cos(angle));
  }
}
#endif

#ifdef FP8
/* Multiplies a tensor [token, head, kD] by scales of its heads, and returns these on the device. */
static CUdeviceptr scaled(Tensor t, int64_t heads, float step) {
  float* scales = malloc((size_t)heads * sizeof(float));
  for (int64_t head = 0; head < heads; ++head) scales[head] = 0.3f + step * (float)head;
  for (int64_t i = 0; i < t.count; ++i) t.host[i] *= scales[i / kD % heads];
  return upload(scales, (size_t)heads * sizeof(float));
}
enum { kCacheBytes = 1 };
#else
enum { kCacheBytes = 2 };
#endif

/* Compares O of every row with sums in fp64. Without a cache in pages, all lengths are kv_len. */
static int run(Sizes s, const int32_t* lengths) {
  Tensors t;
  int64_t rows = s.batch * s.kv_len; /* of K and V, each of all heads */
  t.pages_per_sequence = 0;
#ifdef PAGE
  t.pages_per_sequence = roofgen_ceil_div(s.kv_len, PAGE);
  int64_t pages = s.batch * t.pages_per_sequence + 1;
  if (pages % 7 == 0) ++pages;
  rows = pages * PAGE;
  int32_t* table = malloc((size_t)(s.batch * t.pages_per_sequence) * sizeof *table);
  for (int64_t i = 0; i < s.batch * t.pages_per_sequence; ++i) {
    const int64_t used = roofgen_ceil_div(lengths[i / t.pages_per_sequence], PAGE);
    table[i] = i % t.pages_per_sequence < used ? (int32_t)((7 * i + 3) % pages) : 0x7fffffff;
  }
  t.table = upload(table, (size_t)(s.batch * t.pages_per_sequence) * sizeof *table);
  t.lengths = upload(lengths, (size_t)s.batch * sizeof *lengths);
#endif
  t.q = input(1, s.batch * s.q_len * s.heads * kD, 2);
  t.k = input(2, rows * s.kv_heads * kD, kCacheBytes);
  t.v = input(3, rows * s.kv_heads * kD, kCacheBytes);
#ifdef FP8
  t.k_scale = scaled(t.k, s.kv_heads, 0.2f);
  t.v_scale = scaled(t.v, s.kv_heads, 0.7f);
#endif
  t.o = output(t.q.count, 2);
#ifdef APPEND
  Tensor k_new = input(4, s.batch * s.q_len * s.kv_heads * kD, 2), v_new = input(5, k_new.count, 2);
  t.k_new = k_new.device, t.v_new = v_new.device;
#endif
  t.lse = output(s.batch * s.heads * s.q_len, 4).device; /* written with --lse only */
  char what[96];
  snprintf(what, sizeof what, "batch %d, L %d, kv_len %d, heads %d/%d", (int)s.batch, (int)s.q_len, (int)s.kv_len,
           (int)s.heads, (int)s.kv_heads);
  must(launch(&s, &t), what);
  float* got = read_back(t.o);
#ifdef APPEND
  /* From here on the host's cache has the new keys, and Q is rotated. */
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t i = 0; i < s.q_len; ++i) {
      const int64_t key = lengths[b] - s.q_len + i;
      for (int64_t head = 0; head < s.heads; ++head) rotate(t.q.host + ((b * s.q_len + i) * s.heads + head) * kD, key);
      const int64_t place = (int64_t)table[b * t.pages_per_sequence + key / PAGE] * PAGE + key % PAGE;
      for (int64_t head = 0; head < s.kv_heads; ++head) {
        const int64_t from = ((b * s.q_len + i) * s.kv_heads + head) * kD, to = (place * s.kv_heads + head) * kD;
        rotate(k_new.host + from, key);
        memcpy(t.k.host + to, k_new.host + from, kD * sizeof(float));
        memcpy(t.v.host + to, v_new.host + from, kD * sizeof(float));
      }
    }
  float *cached_k = read_back(t.k), *cached_v = read_back(t.v);
  for (int64_t i = 0; i < t.k.count; ++i) compare(cached_k[i], t.k.host[i]), compare(cached_v[i], t.v.host[i]);
#endif
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
  int failed = 0;
#ifdef PAGE
  failed |= run((Sizes){2, 1, 512, 8, 2}, (const int32_t[]){100, 512});
  failed |= run((Sizes){3, 1, 333, 8, 2}, (const int32_t[]){333, 1, 65});
  failed |= run((Sizes){1, 1, 1200, 6, 2}, (const int32_t[]){1111});
#ifdef APPEND
  failed |= run((Sizes){2, 2, 300, 8, 2}, (const int32_t[]){300, 17});
#endif
#else
  failed |= run((Sizes){2, 1, 512, 8, 2}, (const int32_t[]){512, 512});
  failed |= run((Sizes){3, 1, 333, 8, 2}, (const int32_t[]){333, 333, 333});
  failed |= run((Sizes){1, 2, 61, 15, 3}, (const int32_t[]){61});
#endif
  /* A tile of 16 rows holds no group of 32 heads. */
  const Sizes wide = {1, 1, 64, 64, 2};
  const int32_t length = 64;
  const Tensors none = {.lengths = upload(&length, sizeof length)};
  failed |= refused(launch(&wide, &none), "a group of 32");
  return failed;
}

/* The checks of a launch's arguments: numbers, tensors, workspace. Bundles have this text in their C file, roofgen's
 * library is compiled with it (generator/launch_checks.h). C11 and C++20. */

/* ---- Errors: the kind + 16 times a parameter's number, a condition's number or a CUresult ---- */
enum { LAUNCH_OK = 0, LAUNCH_NULL = 1, LAUNCH_MISALIGNED = 2, LAUNCH_OVERLAP = 3, LAUNCH_RANGE = 4 };
#define LAUNCH_ERROR(kind, detail) ((kind) + 16 * (int)(detail))
#define LAUNCH_KIND(error) ((error) % 16)
#define LAUNCH_DETAIL(error) ((error) / 16)

/* ---- Numbers ---- */
typedef struct {
  int parameter;
  int64_t value, least, most;
  int factor; /* of the product that must not overflow 64 bits */
} launch_number;

static inline int launch_check_numbers(const launch_number* numbers, int count) {
  double product = 1;
  for (int i = 0; i < count; ++i) {
    const launch_number* n = &numbers[i];
    if (n->value < n->least || n->value > n->most) return LAUNCH_ERROR(LAUNCH_RANGE, n->parameter);
    if (n->factor) product *= (double)n->value;
  }
  return product > 0x1p56 ? LAUNCH_ERROR(LAUNCH_RANGE, 0) : LAUNCH_OK;
}

/* ---- Tensors ---- */
typedef struct {
  int parameter, writes, bytes; /* bytes of an element */
  uint64_t at;
  int rank; /* 0: its size is unknown */
  int64_t shape[5], stride[5];
  int aligned[5]; /* parameter: this stride must be a multiple of 16 bytes */
} launch_tensor;

/* The first byte after a tensor; 0: too far. */
static inline uint64_t launch_end_of(const launch_tensor* t) {
  double elements = 1;
  uint64_t last = 0;
  for (int i = 0; i < t->rank; ++i) elements += (double)(t->shape[i] - 1) * (double)t->stride[i];
  if (elements > 0x1p52) return 0;
  for (int i = 0; i < t->rank; ++i) last += (uint64_t)(t->shape[i] - 1) * (uint64_t)t->stride[i];
  const uint64_t end = t->at + (last + 1) * (uint64_t)t->bytes;
  return end < t->at ? 0 : end;
}

/* Whether two elements may share their place: from the least stride up, each must reach beyond the ones before. */
static inline int launch_overlaps_itself(const launch_tensor* t) {
  int64_t last = 0;
  int taken[5] = {0};
  for (;;) {
    int next = -1;
    for (int i = 0; i < t->rank; ++i)
      if (!taken[i] && t->shape[i] > 1 && (next < 0 || t->stride[i] < t->stride[next])) next = i;
    if (next < 0) return 0;
    if (t->stride[next] <= last) return 1;
    last += t->stride[next] * (t->shape[next] - 1);
    taken[next] = 1;
  }
}

/* Whether tensors a and b, of which a is written, have a byte in common. */
static inline int launch_share(const launch_tensor* a, const launch_tensor* b) {
  return a != b && a->writes && a->at < launch_end_of(b) && b->at < launch_end_of(a);
}

/* The workspace counts as a tensor with a parameter of its own. */
static inline int launch_check_tensors(const launch_tensor* tensors, int count, const launch_tensor* workspace) {
  for (int i = 0; i < count; ++i) {
    const launch_tensor* t = &tensors[i];
    if (!t->at) return LAUNCH_ERROR(LAUNCH_NULL, t->parameter);
    if (t->at % 16) return LAUNCH_ERROR(LAUNCH_MISALIGNED, t->parameter);
    for (int d = 0; d < t->rank; ++d)
      if (t->aligned[d] && t->stride[d] * t->bytes % 16) return LAUNCH_ERROR(LAUNCH_MISALIGNED, t->aligned[d]);
    if (!launch_end_of(t)) return LAUNCH_ERROR(LAUNCH_RANGE, t->parameter);
    if (t->writes && launch_overlaps_itself(t)) return LAUNCH_ERROR(LAUNCH_OVERLAP, t->parameter);
    if (workspace && launch_share(workspace, t)) return LAUNCH_ERROR(LAUNCH_OVERLAP, workspace->parameter);
  }
  for (int i = 0; i < count; ++i)
    for (int j = 0; j < count; ++j)
      if (launch_share(&tensors[i], &tensors[j])) return LAUNCH_ERROR(LAUNCH_OVERLAP, tensors[j].parameter);
  return LAUNCH_OK;
}

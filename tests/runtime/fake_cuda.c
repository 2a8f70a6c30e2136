/* A fake driver library for the tests of the CUDA executor. Device memory is host memory, the kernels are the few
   functions below, time is counted, and a script makes calls fail like real drivers do. The library checks contexts,
   streams, shared memory opt-in and arguments, as a driver would.

   The script is a list of clauses separated by "; ", from fake_cuda_script() or else from $ROOFGEN_FAKE_CUDA_SCRIPT.
   A log records every call that queues work. */
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
  OK = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  STUB = 34,
  NO_DEVICE = 100,
  INVALID_IMAGE = 200,
  INVALID_CONTEXT = 201,
  NO_BINARY = 209,
  INVALID_PTX = 218,
  UNSUPPORTED_PTX = 222,
  NOT_FOUND = 500,
  NOT_READY = 600,
  ILLEGAL_ADDRESS = 700,
  NOT_SUPPORTED = 801,
  MISMATCH = 803,
  UNKNOWN = 999
};

/* ---- Script, log, state ---------------------------------------------------------------------- */

static char script[512];
static int scripted;
static char notes[1 << 16];
static int context_token, current_context, retained, faulted, capturing, hung, crashing;
static int live_modules, live_allocations, live_streams, live_events, live_graphs;
static int launches, late;
static uint64_t now_ns = 1000000, idle_ns;

void fake_cuda_script(const char* what) {
  snprintf(script, sizeof script, "%s", what);
  scripted = 1;
  current_context = faulted = capturing = hung = crashing = launches = 0;
  late = -1;
  notes[0] = 0;
}
int fake_cuda_live(void) {
  return live_modules + live_allocations + live_streams + live_events + live_graphs + retained;
}
const char* fake_cuda_log(void) { return notes; }
void fake_cuda_clear_log(void) { notes[0] = 0; }

/* The rest of the clause that begins with `start`; NULL without such a clause. */
static const char* clause(const char* start) {
  static char rest[256];
  size_t length = strlen(start);
  if (!scripted) {
    const char* from = getenv("ROOFGEN_FAKE_CUDA_SCRIPT");
    snprintf(script, sizeof script, "%s", from ? from : "");
    late = -1;
    scripted = 1;
  }
  for (const char* at = script; *at;) {
    const char* end = strstr(at, "; ");
    size_t size = end ? (size_t)(end - at) : strlen(at);
    if (size >= length && strncmp(at, start, length) == 0) {
      snprintf(rest, sizeof rest, "%.*s", (int)(size - length), at + length);
      return rest;
    }
    at += size + (end ? 2 : 0);
  }
  return NULL;
}
static int is(const char* what) {
  const char* rest = clause(what);
  return rest && !*rest;
}
/* `verb` with this kernel's name: "fault in fill". */
static int named(const char* verb, const char* kernel) {
  char whole[96];
  snprintf(whole, sizeof whole, "%s in %s", verb, kernel);
  return is(whole);
}
static void note(const char* format, ...) {
  size_t used = strlen(notes);
  va_list list;
  va_start(list, format);
  vsnprintf(notes + used, sizeof notes - used, format, list);
  va_end(list);
}
static int ready(void) { return faulted ? faulted : current_context ? OK : INVALID_CONTEXT; }

/* ---- Start, errors, devices ------------------------------------------------------------------- */

int cuInit(unsigned flags) {
  if (is("no device")) return NO_DEVICE;
  if (is("stub")) return STUB;
  if (is("mismatch")) return MISMATCH;
  if (is("init fails")) return UNKNOWN;
  const char* once = clause("one process, marked by ");
  if (once) {
    if (access(once, F_OK) == 0) return NO_DEVICE;
    FILE* mark = fopen(once, "w");
    if (mark) fclose(mark);
  }
  return flags == 0 ? OK : INVALID_VALUE;
}
int cuDriverGetVersion(int* version) {
  *version = is("old") ? 11040 : 12080;
  return OK;
}
static const struct {
  int status;
  const char *name, *text;
} errors[] = {
    {INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NO_BINARY, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {UNSUPPORTED_PTX, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {214, "CUDA_ERROR_ECC_UNCORRECTABLE", "uncorrectable ECC error encountered"},
};
int cuGetErrorName(int status, const char** name) {
  *name = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (errors[i].status == status) *name = errors[i].name;
  return *name ? OK : INVALID_VALUE;
}
int cuGetErrorString(int status, const char** text) {
  *text = NULL;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; ++i)
    if (errors[i].status == status) *text = errors[i].text;
  return *text ? OK : INVALID_VALUE;
}
int cuDeviceGetCount(int* count) {
  *count = is("none") ? 0 : 2;
  return OK;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = 40 + ordinal;
  return OK;
}
int cuDeviceGetName(char* name, int size, int device) {
  snprintf(name, (size_t)size, "Fake GPU %d", device - 40);
  return OK;
}
int cuDeviceGetAttribute(int* value, int attribute, int device) {
  int ampere = is("sm_80");
  if (device < 40) return INVALID_VALUE;
  switch (attribute) {
    case 75: *value = ampere ? 8 : 9; return OK;
    case 76: *value = 0; return OK;
    case 97: *value = 232448; return OK;
    case 16: *value = 64; return OK;
    case 13: *value = 1500000; return OK;
    case 36: *value = 2000000; return OK;
    case 37: *value = 4096; return OK;
    case 38:
      if (is("no L2 size")) return INVALID_VALUE;
      *value = 1 << 20;
      return OK;
    case 108: *value = is("no persisting L2") ? 0 : 1 << 19; return OK;
    case 120:
    case 127: *value = !ampere; return OK;
    default: return INVALID_VALUE;
  }
}
int cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = (size_t)32 << 30;
  return device >= 40 ? OK : INVALID_VALUE;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = (unsigned char)(16 * (device - 40) + i);
  return OK;
}
int cuDeviceGetPCIBusId(char* id, int size, int device) {
  snprintf(id, (size_t)size, "0000:%02x:00.0", 0x3b + device - 40);
  return OK;
}
int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  int failed = ready();
  *free_bytes = (size_t)1 << 30;
  *total = (size_t)32 << 30;
  return failed;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  if (is("context fails")) return OUT_OF_MEMORY;
  ++retained;
  *context = &context_token;
  return device >= 40 ? OK : INVALID_VALUE;
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  --retained;
  return device >= 40 ? OK : INVALID_VALUE;
}
int cuCtxSetCurrent(void* context) {
  current_context = context == &context_token;
  return faulted ? faulted : OK;
}
int cuCtxResetPersistingL2Cache(void) {
  note("reset_l2\n");
  return is("no persisting reset") ? NOT_SUPPORTED : is("persisting reset fails") ? INVALID_VALUE : ready();
}

/* ---- Modules ---------------------------------------------------------------------------------- */

struct kernel {
  const char* name;
  int arguments;
  int sizes[3];
};
static const struct kernel kernels[] = {
    {"fill", 3, {8, 4, 8}},         {"other", 3, {8, 4, 8}},  {"fault", 0, {0}},
    {"mapped", 1, {128}},           {"roofgen_gate", 1, {8}}, {"roofgen_stamp", 2, {8, 4}},
    {"roofgen_sweep", 3, {8, 8, 4}}};
enum { KERNELS = sizeof kernels / sizeof *kernels };
static int max_smem[KERNELS], big_clusters[KERNELS];

int cuModuleLoadDataEx(void** module, const void* image, unsigned count, int* options, void** values) {
  int failed = ready();
  int elf = memcmp(image,
                   "\x7f"
                   "ELF",
                   4) == 0;
  if (failed) return failed;
  if (elf && is("wants ptx")) return NO_BINARY;
  if (elf && is("old ELF")) return INVALID_IMAGE;
  if (!elf && is("old PTX")) return UNSUPPORTED_PTX;
  if (strstr(image, "broken")) {
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5) strcpy(values[i], "ptxas says no");
    return INVALID_PTX;
  }
  ++live_modules;
  *module = (void*)"module";
  return OK;
}
int cuModuleUnload(void* module) {
  --live_modules;
  return module ? OK : INVALID_VALUE;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  int failed = ready();
  if (failed) return failed;
  if (!module) return INVALID_VALUE;
  for (int i = 0; i < KERNELS; ++i)
    if (strcmp(kernels[i].name, name) == 0) {
      max_smem[i] = 48 << 10;
      big_clusters[i] = 0;
      *function = (void*)&kernels[i];
      return OK;
    }
  return NOT_FOUND;
}
int cuFuncLoad(void* function) { return function ? ready() : INVALID_VALUE; }
int cuFuncSetAttribute(void* function, int attribute, int value) {
  if (!function) return INVALID_VALUE;
  int i = (int)((const struct kernel*)function - kernels);
  if (attribute == 8) {
    if (value > 232448) return INVALID_VALUE;
    max_smem[i] = value > (48 << 10) ? value : 48 << 10;
    return OK;
  }
  if (attribute == 14) {
    big_clusters[i] = value;
    return OK;
  }
  return INVALID_VALUE;
}

/* ---- Streams, launches, graphs ------------------------------------------------------------------ */

static int stream_token;
int cuStreamCreate(void** stream, unsigned flags) {
  if (flags != 1) return INVALID_VALUE;
  ++live_streams;
  *stream = &stream_token;
  return ready();
}
int cuStreamDestroy_v2(void* stream) {
  --live_streams;
  return stream == &stream_token ? OK : INVALID_VALUE;
}
int cuStreamSynchronize(void* stream) {
  if (stream != &stream_token || capturing) return INVALID_VALUE;
  note("synchronize\n");
  if (crashing) {
    fprintf(stderr, "the driver is not well\n");
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
  }
  while (hung) pause();
  return ready();
}

struct work {
  const struct kernel* kernel;
  unsigned ctas;
  unsigned char arguments[3][128];
};
static struct work captured[512];
static int captured_count;

static void execute(const struct work* work) {
  const struct kernel* kernel = work->kernel;
  uint64_t a = 0, c = 0;
  int32_t b = 0;
  memcpy(&a, work->arguments[0], 8);
  const char* status = clause("status ");
  if (faulted) return;
  if (strcmp(kernel->name, "fault") == 0 || named("fault", kernel->name)) faulted = ILLEGAL_ADDRESS;
  if (status && kernel->name[0] != 'r') faulted = atoi(status);
  if (named("hang", kernel->name)) hung = 1;
  if (named("crash", kernel->name)) crashing = 1;
  if (faulted || hung || crashing) return;
  if (strcmp(kernel->name, "roofgen_gate") == 0) {
    now_ns += a;
    idle_ns += a;
  } else if (strcmp(kernel->name, "roofgen_stamp") == 0) {
    uint64_t mhz = is("slow clock") ? 700 : 1500;
    memcpy(&b, work->arguments[1], 4);
    now_ns += 1000;
    for (unsigned sm = 0; sm < work->ctas && sm < (unsigned)b; ++sm) {
      /* An idle GPU may stop its clock. */
      uint64_t stamp[2] = {(now_ns - (is("idle clock stands") ? idle_ns : 0)) * mhz / 1000, now_ns};
      memcpy((void*)(uintptr_t)(a + 16 * sm), stamp, 16);
    }
  } else if (strcmp(kernel->name, "roofgen_sweep") == 0) {
    now_ns += 50000;
  } else if (kernel->arguments == 3) {
    memcpy(&b, work->arguments[1], 4);
    memcpy(&c, work->arguments[2], 8);
    memset((void*)(uintptr_t)a, b, c);
    now_ns += 3000 * (uint64_t)work->ctas;
  }
}

static int launch(const struct kernel* kernel, const unsigned* size, unsigned smem, void* stream, void** arguments,
                  const char* attributes) {
  int failed = ready();
  int i = (int)(kernel - kernels);
  const char* limit = clause("lost after ");
  struct work work = {kernel, size[0] * size[1] * size[2], {{0}}};
  if (failed) return failed;
  if ((int)smem > max_smem[i] || stream != &stream_token || work.ctas == 0 || size[3] * size[4] * size[5] > 1024)
    return INVALID_VALUE;
  if (limit && kernel->name[0] != 'r' && ++launches > atoi(limit)) return faulted = UNKNOWN;
  for (int n = 0; n < kernel->arguments; ++n) memcpy(work.arguments[n], arguments[n], (size_t)kernel->sizes[n]);
  note("%s %s%s", capturing ? "capture" : "launch", kernel->name, attributes);
  if (strcmp(kernel->name, "roofgen_sweep") == 0) note(" %s", work.arguments[2][0] ? "write" : "read");
  note("\n");
  if (capturing) {
    if (captured_count == 512) return INVALID_VALUE;
    captured[captured_count++] = work;
  } else {
    execute(&work);
  }
  return OK;
}
int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                   unsigned smem, void* stream, void** arguments, void** extra) {
  const unsigned size[6] = {gx, gy, gz, bx, by, bz};
  if (extra) return INVALID_VALUE;
  return launch(function, size, smem, stream, arguments, "");
}
struct config {
  unsigned size[6], smem;
  void* stream;
  struct {
    int id;
    char pad[4];
    union {
      char bytes[64];
      unsigned cluster[3];
      int overlap;
    } value;
  } * attributes;
  unsigned count;
};
int cuLaunchKernelEx(const struct config* config, void* function, void** arguments, void** extra) {
  char text[96] = "";
  if (extra) return INVALID_VALUE;
  for (unsigned i = 0; i < config->count; ++i) {
    size_t used = strlen(text);
    if (config->attributes[i].id == 4) {
      const unsigned* c = config->attributes[i].value.cluster;
      if (c[0] * c[1] * c[2] > 8 && !big_clusters[(const struct kernel*)function - kernels]) return 912;
      snprintf(text + used, sizeof text - used, " cluster=%ux%ux%u", c[0], c[1], c[2]);
    } else if (config->attributes[i].id == 6) {
      snprintf(text + used, sizeof text - used, " overlap=%d", config->attributes[i].value.overlap);
    } else {
      return INVALID_VALUE;
    }
  }
  return launch(function, config->size, config->smem, config->stream, arguments, text);
}

struct graph {
  int count;
  struct work work[512];
};
int cuStreamBeginCapture_v2(void* stream, int mode) {
  if (stream != &stream_token || mode != 1 || capturing) return INVALID_VALUE;
  capturing = 1;
  captured_count = 0;
  note("begin_capture\n");
  return ready();
}
int cuStreamEndCapture(void* stream, void** graph) {
  struct graph* made = calloc(1, sizeof *made);
  if (stream != &stream_token || !capturing || !made) {
    free(made);
    return INVALID_VALUE;
  }
  capturing = 0;
  made->count = captured_count;
  memcpy(made->work, captured, (size_t)captured_count * sizeof *captured);
  ++live_graphs;
  *graph = made;
  note("end_capture\n");
  return ready();
}
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long flags) {
  if (!graph || flags) return INVALID_VALUE;
  *exec = malloc(sizeof(struct graph));
  memcpy(*exec, graph, sizeof(struct graph));
  ++live_graphs;
  note("instantiate %d\n", ((struct graph*)graph)->count);
  return ready();
}
int cuGraphUpload(void* exec, void* stream) {
  note("upload\n");
  return exec && stream == &stream_token ? ready() : INVALID_VALUE;
}
int cuGraphLaunch(void* exec, void* stream) {
  if (!exec || stream != &stream_token) return INVALID_VALUE;
  note("launch_graph\n");
  for (int i = 0; i < ((struct graph*)exec)->count; ++i) execute(&((struct graph*)exec)->work[i]);
  return OK;
}
int cuGraphDestroy(void* graph) {
  --live_graphs;
  free(graph);
  return OK;
}
int cuGraphExecDestroy(void* exec) {
  --live_graphs;
  free(exec);
  return OK;
}

int cuTensorMapEncodeTiled(void* map, int type, uint32_t rank, void* address, const uint64_t* dims,
                           const uint64_t* strides, const uint32_t* box, const uint32_t* steps, int interleave,
                           int swizzle, int promotion, int fill) {
  if ((uintptr_t)map % 64 || !address || rank < 1 || rank > 5) return INVALID_VALUE;
  note("tensor_map type=%d rank=%u", type, rank);
  for (uint32_t i = 0; i < rank; ++i) note(" %llu/%u/%u", (unsigned long long)dims[i], box[i], steps[i]);
  for (uint32_t i = 0; i + 1 < rank; ++i) note(" stride=%llu", (unsigned long long)strides[i]);
  note(" interleave=%d swizzle=%d promotion=%d fill=%d\n", interleave, swizzle, promotion, fill);
  memset(map, 0, 128);
  memcpy(map, &address, sizeof address);
  return OK;
}

/* ---- Memory, events ------------------------------------------------------------------------------ */

int cuMemAlloc_v2(uint64_t* address, size_t bytes) {
  int failed = ready();
  const char* limit = clause("out of memory above ");
  if (failed) return failed;
  if (bytes > (limit ? strtoull(limit, NULL, 10) : (size_t)1 << 30)) return OUT_OF_MEMORY;
  void* memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory) return OUT_OF_MEMORY;
  *address = (uint64_t)(uintptr_t)memory;
  ++live_allocations;
  return OK;
}
int cuMemFree_v2(uint64_t address) {
  free((void*)(uintptr_t)address);
  --live_allocations;
  return OK;
}
int cuMemcpyHtoDAsync_v2(uint64_t to, const void* from, size_t bytes, void* stream) {
  int failed = stream == &stream_token ? ready() : INVALID_VALUE;
  if (!failed) memcpy((void*)(uintptr_t)to, from, bytes);
  return failed;
}
int cuMemcpyDtoHAsync_v2(void* to, uint64_t from, size_t bytes, void* stream) {
  int failed = stream == &stream_token ? ready() : INVALID_VALUE;
  if (!failed) memcpy(to, (void*)(uintptr_t)from, bytes);
  return failed;
}
int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void* stream) {
  int failed = stream == &stream_token ? ready() : INVALID_VALUE;
  note("memset\n");
  if (!failed) memset((void*)(uintptr_t)to, value, bytes);
  return failed;
}
int cuEventCreate(void** event, unsigned flags) {
  *event = calloc(1, sizeof(uint64_t));
  ++live_events;
  return flags == 0 ? ready() : INVALID_VALUE;
}
int cuEventDestroy_v2(void* event) {
  --live_events;
  free(event);
  return OK;
}
int cuEventRecord(void* event, void* stream) {
  if (stream != &stream_token) return INVALID_VALUE;
  memcpy(event, &now_ns, sizeof now_ns);
  note("record\n");
  return ready();
}
int cuEventQuery(void* event) {
  const char* count = clause("late host ");
  if (late < 0) late = count ? atoi(count) : 0;
  if (late > 0) {
    --late;
    return OK;
  }
  return event ? NOT_READY : INVALID_VALUE;
}
int cuEventElapsedTime(float* ms, void* start, void* stop) {
  uint64_t from, to;
  if (start == stop) return INVALID_VALUE;
  memcpy(&from, start, sizeof from);
  memcpy(&to, stop, sizeof to);
  *ms = (float)((double)(to - from) / 1e6);
  return OK;
}

/* The C API from C11: results, a table of misuses, warnings, what comes out of a session: api_test FOLDER */
#include <roofgen/roofgen.h>

#include "check.h"

static const struct {
  const char* command;
  const char* request;
  int status, line, column; /* of the place */
  const char* part;         /* of the error */
} kMisuses[] = {
    {"tune", "", ROOFGEN_USAGE, 1, 1, "request:1:1: "},
    {"tune", "{\"op\": \"rmsnorm\",\n \"rows\": }", ROOFGEN_USAGE, 2, 10, "request:2:10: "},
    {"tune", "[]", ROOFGEN_USAGE, 1, 1, "a problem such as"},
    {"tune", "{\"rows\": 64}", ROOFGEN_USAGE, 1, 1, "a problem such as"},
    {"tune", "{\"op\": \"rmsnrom\", \"rows\": 64, \"cols\": 256}", ROOFGEN_USAGE, 0, 0, "rmsnorm"},
    {"tune", "\n  {\"op\": \"rmsnorm\", \"rows\": 64, \"col\": 256}", ROOFGEN_USAGE, 2, 3,
     "unknown option --col; did you mean --cols?"},
    {"tune", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"L\": 4}", ROOFGEN_USAGE, 0, 0, "rmsnorm has no --L"},
    {"tune", "{\"op\": \"rmsnorm\", \"rows\": \"many\", \"cols\": 256}", ROOFGEN_USAGE, 0, 0, "--rows"},
    {"tune", "{\"op\": \"rmsnorm\", \"rows\": 64}", ROOFGEN_USAGE, 0, 0, "cols"},
    {"tune", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"dtype\": \"bf61\"}", ROOFGEN_USAGE, 0, 0, "bf16"},
    {"tune", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"evals\": {}}", ROOFGEN_USAGE, 1, 45,
     "a value of a flag"},
    {"tune", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"evals\": -1}", ROOFGEN_USAGE, 1, 1, "of at least 1"},
    {"tune", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"device\": \"h201\"}", ROOFGEN_USAGE, 0, 0, "h20"},
    {"tune", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"help\": true}", ROOFGEN_USAGE, 1, 1, "--help"},
    {"tune", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"help\": \"true\"}", ROOFGEN_USAGE, 1, 1, "--help"},
    {"tune", "{\"op\": \"-h\"}", ROOFGEN_USAGE, 1, 1, "--help"},
    {"tune", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"suite\": \"s.json\"}", ROOFGEN_USAGE, 1, 1, "suite"},
    {"generate", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"set\": [\"threadz=128\"]}", ROOFGEN_USAGE, 0, 0,
     "no such parameter"},
    {"generate", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"variant\": \"fusde\"}", ROOFGEN_USAGE, 0, 0,
     "fused"},
    {"compile", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"arch\": \"sm_70\"}", ROOFGEN_UNAVAILABLE, 0, 0,
     "sm_70"},
    {"explain", "{\"op\": \"gemm\", \"M\": 128, \"Q\": 3}", ROOFGEN_USAGE, 0, 0, "gemm has no flag --Q"},
    {"explain", "{\"op\": \"nothing\", \"M\": 128}", ROOFGEN_USAGE, 0, 0, "nothing"},
    {"emit", "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"name\": \"1x\"}", ROOFGEN_USAGE, 0, 0, "no C name"},
};

static const char* folder;

static int call(const char* command, roofgen_session* session, const char* request, roofgen_result** result) {
  if (!strcmp(command, "tune")) return roofgen_tune(session, request, result);
  if (!strcmp(command, "generate")) return roofgen_generate(session, request, result);
  if (!strcmp(command, "compile")) return roofgen_compile(session, request, result);
  if (!strcmp(command, "explain")) return roofgen_explain(session, request, result);
  return roofgen_emit(session, request, folder, result);
}

static void misuses(roofgen_session* session) {
  for (size_t i = 0; i < sizeof kMisuses / sizeof *kMisuses; ++i) {
    roofgen_result* result = (roofgen_result*)&folder;
    const int status = call(kMisuses[i].command, session, kMisuses[i].request, &result);
    if (status != kMisuses[i].status || result || roofgen_error_line() != kMisuses[i].line ||
        roofgen_error_column() != kMisuses[i].column || !strstr(roofgen_error(), kMisuses[i].part) ||
        strchr(roofgen_error(), '\n')) {
      ++failures;
      fprintf(stderr, "%s %s: %d at %d:%d: %s\n", kMisuses[i].command, kMisuses[i].request, status,
              roofgen_error_line(), roofgen_error_column(), roofgen_error());
    }
  }
  roofgen_session* other = NULL;
  roofgen_result* result = NULL;
  roofgen_kernel kernel = {.struct_bytes = sizeof kernel};
  const char* request = "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256}";
  CHECK(roofgen_open(NULL, NULL) == ROOFGEN_USAGE && !strcmp(roofgen_error(), "session is null"));
  CHECK(roofgen_open(&other, "{\"cache\": \"x\"}") == ROOFGEN_USAGE && !other && strstr(roofgen_error(), "options:1:"));
  CHECK(roofgen_open(&other, "{") == ROOFGEN_USAGE && !other && roofgen_error_line() == 1);
  CHECK(roofgen_tune(NULL, request, &result) == ROOFGEN_USAGE && !strcmp(roofgen_error(), "session is null"));
  CHECK(roofgen_tune(session, NULL, &result) == ROOFGEN_USAGE && !strcmp(roofgen_error(), "request is null"));
  CHECK(roofgen_tune(session, request, NULL) == ROOFGEN_USAGE && !strcmp(roofgen_error(), "result is null"));
  CHECK(roofgen_emit(session, request, NULL, &result) == ROOFGEN_USAGE &&
        !strcmp(roofgen_error(), "directory is null"));
  CHECK(roofgen_cancel(NULL) == ROOFGEN_USAGE);
  CHECK(roofgen_on_warning(NULL, NULL, NULL) == ROOFGEN_USAGE);
  CHECK(roofgen_on_progress(NULL, NULL, NULL) == ROOFGEN_USAGE);
  CHECK(roofgen_result_kernel(NULL, 0, &kernel) == ROOFGEN_USAGE);
  CHECK(roofgen_result_kernels(NULL) == 0 && !*roofgen_result_text(NULL) && !*roofgen_result_verdict(NULL));
  roofgen_result_free(NULL);
  roofgen_close(NULL);
}

static void keep_line(void* user, const char* line) { snprintf(user, 256, "%s", line); }
static void count(void* user, const char* phase, uint64_t done, uint64_t total) {
  (void)phase, (void)done, (void)total;
  ++*(int*)user;
}

static int uses(roofgen_session* session) {
  char warning[256] = "";
  int steps = 0;
  CHECK(roofgen_on_warning(session, keep_line, warning) == ROOFGEN_OK);
  CHECK(roofgen_on_progress(session, count, &steps) == ROOFGEN_OK);
  roofgen_result* result = NULL;
  roofgen_kernel kernel = {.struct_bytes = sizeof kernel};

  CHECK(roofgen_explain(session, "{\"op\": \"gemm\", \"M\": 128, \"N\": 4096, \"K\": 4096}", &result) == ROOFGEN_OK);
  CHECK(strstr(roofgen_result_text(result), "\"roofgen.explain") != NULL && roofgen_result_kernels(result) == 0);
  roofgen_result_free(result);

  CHECK(roofgen_generate(session, "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256}", &result) == ROOFGEN_OK);
  CHECK(roofgen_result_kernels(result) == 1 && roofgen_result_kernel(result, 0, &kernel) == ROOFGEN_OK);
  CHECK(!strcmp(kernel.source, roofgen_result_text(result)) && strstr(kernel.source, kernel.entry));
  CHECK(!*kernel.ptx && kernel.cubin_bytes == 0);
  CHECK(roofgen_result_kernel(result, 1, &kernel) == ROOFGEN_USAGE && !strcmp(roofgen_error(), "kernel 1 of 1"));
  /* An older caller knows fewer members. */
  roofgen_kernel old = {.struct_bytes = offsetof(roofgen_kernel, source)};
  CHECK(roofgen_result_kernel(result, 0, &old) == ROOFGEN_OK && old.entry && !old.source && !old.block[0]);
  roofgen_result_free(result);

  const char* flags =
      "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"executor\": \"sim\", \"evals\": 2, \"gpu\": 0}";
  const int status = roofgen_compile(session, "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256}", &result);
  if (status == ROOFGEN_UNAVAILABLE) {
    fprintf(stderr, "skipped: %s\n", roofgen_error());
    return kSkipped;
  }
  CHECK(status == ROOFGEN_OK && roofgen_result_kernel(result, 0, &kernel) == ROOFGEN_OK);
  CHECK(strstr(kernel.ptx, kernel.entry) && kernel.cubin_bytes > 1000 && kernel.registers > 0);
  CHECK(!memcmp(kernel.cubin, "\177ELF", 4) && strlen(kernel.digest) == 64 && !strncmp(kernel.arch, "sm_90", 5));
  roofgen_result_free(result);

  CHECK(roofgen_tune(session, flags, &result) == ROOFGEN_OK);
  CHECK(strstr(roofgen_result_text(result), "\"schema\"") && strstr(roofgen_result_verdict(result), "fused only: "));
  CHECK(roofgen_result_kernels(result) >= 1 && roofgen_result_kernel(result, 0, &kernel) == ROOFGEN_OK);
  CHECK(kernel.cubin_bytes > 1000 && kernel.grid[0] >= 1 && kernel.block[0] >= 32 && kernel.cluster[0] == 1);
  CHECK(steps > 0 && !strcmp(warning, "--gpu has no effect: no GPU is used"));
  roofgen_result_free(result);

  /* A result with another status. */
  result = NULL;
  CHECK(roofgen_tune(session,
                     "{\"op\": \"rmsnorm\", \"rows\": 64, \"cols\": 256, \"executor\": \"sim\", \"evals\": 2, "
                     "\"min-score\": 1}",
                     &result) == ROOFGEN_BELOW_SCORE);
  CHECK(result && strstr(roofgen_error(), "below --min-score 1") && roofgen_result_kernels(result) >= 1);
  roofgen_result_free(result);

  /* A family of shapes. */
  CHECK(roofgen_tune(session,
                     "{\"op\": \"rmsnorm\", \"rows\": [64, 96], \"cols\": 256, \"executor\": \"sim\", \"evals\": 2}",
                     &result) == ROOFGEN_OK);
  CHECK(strstr(roofgen_result_text(result), "\"roofgen.dispatch.1\"") && roofgen_result_kernels(result) >= 1);
  CHECK(!*roofgen_result_verdict(result));
  roofgen_result_free(result);

  char bundle[4096], file[4200];
  snprintf(bundle, sizeof bundle, "%s/bundle", folder);
  snprintf(file, sizeof file, "%s/rmsnorm.h", bundle);
  CHECK(roofgen_emit(session, flags, bundle, &result) == ROOFGEN_OK);
  CHECK(strstr(roofgen_result_text(result), "written to ") != NULL);
  FILE* header = fopen(file, "r");
  CHECK(header != NULL);
  if (header) fclose(header);
  roofgen_result_free(result);
  return 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  folder = argv[1];
  started(folder);
  CHECK(roofgen_abi_version() == ROOFGEN_ABI_VERSION && strchr(roofgen_version(), '.'));
  roofgen_session* session = NULL;
  CHECK(roofgen_open(&session, options_below(folder)) == ROOFGEN_OK);
  if (!session) return 1;
  misuses(session);
  const int skipped = uses(session);
  roofgen_close(session);
  CHECK(starts(folder) == 1);
  return failures ? 1 : skipped;
}

/* Checks of the programs that use roofgen as others do, without a test framework. */
#ifndef ROOFGEN_TESTS_CHECK_H
#define ROOFGEN_TESTS_CHECK_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int failures = 0;

#define CHECK(condition)                                                                                            \
  do {                                                                                                              \
    if (!(condition)) {                                                                                             \
      ++failures;                                                                                                   \
      fprintf(stderr, "%s:%d: %s is false; the last error: %s\n", __FILE__, __LINE__, #condition, roofgen_error()); \
    }                                                                                                               \
  } while (0)

/* The exit code by which ctest knows that a test did not run. */
enum { kSkipped = 77 };

/* Workers are processes of roofgen, never of this program: it would start itself again. */
static inline void started(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/started", folder);
  FILE* file = fopen(path, "a");
  if (file && fputs("x", file) >= 0) fclose(file);
}
static inline long starts(const char* folder) {
  char path[4096];
  snprintf(path, sizeof path, "%s/started", folder);
  FILE* file = fopen(path, "r");
  if (!file) return -1;
  fseek(file, 0, SEEK_END);
  const long size = ftell(file);
  fclose(file);
  return size;
}

/* Options of a session with caches of its own below `folder`. */
static inline const char* options_below(const char* folder) {
  static char text[4096];
  snprintf(text, sizeof text, "{\"cache_dir\": \"%s/cache\", \"data_home\": \"%s/data\"}", folder, folder);
  return text;
}
#endif

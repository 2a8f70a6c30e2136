/* glibc has arc4random() since 2.36, and libraries built on newer systems reference it. Linking this definition into
   the portable program removes the dependency on a newer glibc. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t value;
  /* glibc has getentropy since 2.25; it fails only on kernels older than 3.17. */
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}

/* glibc has arc4random() since 2.36, and libraries built on newer systems ask for it. Linked into the portable program
   so that it does not ask the C library of an older system. */
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void) {
  uint32_t value;
  /* getentropy is in glibc since 2.25; it fails only where the kernel is older than 3.17. */
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}

/* The driver of tests/runtime, marked as simulated. */
#include "tests/runtime/fake_cuda.c"
int roofgen_simulated_driver = 1;

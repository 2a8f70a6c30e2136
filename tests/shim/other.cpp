// A library that a test loads as a libcuda.so.1 other than the simulated driver.
extern "C" int cuInit(unsigned) { return 100; }

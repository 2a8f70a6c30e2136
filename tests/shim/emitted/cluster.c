/* rmsnorm.h of a variant with tensor maps, clusters, overlap and a struct (tests/support/hopper). */
#include "host.h"
#include "out/rmsnorm.h"

static int run(CUfunction norm, int64_t rows, int64_t cols) {
  Tensor x = input(1, rows * cols, 2), weight = input(2, cols, 2), y = output(rows * cols, 2);
  char what[64];
  snprintf(what, sizeof what, "%d x %d", (int)rows, (int)cols);
  must(rmsnorm_launch(norm, 0, x.device, weight.device, y.device, rows, 1e-6f, cols), what);
  float* got = read_back(y);
  for (int64_t m = 0; m < rows; ++m) {
    double squares = 0;
    for (int64_t n = 0; n < cols; ++n) squares += (double)x.host[m * cols + n] * x.host[m * cols + n];
    for (int64_t n = 0; n < cols; ++n)
      compare(got[m * cols + n], x.host[m * cols + n] / sqrt(squares / (double)cols + 1e-6) * weight.host[n]);
  }
  return report(what);
}

int main(void) {
  start();
  CUfunction norm = load("out/rmsnorm.ptx", RMSNORM_ENTRY);
  must(rmsnorm_prepare(norm), "rmsnorm_prepare");
  int failed = run(norm, TUNED);
  failed |= run(norm, OTHER);
  CUdeviceptr p = output(1 << 20, 2).device;
  failed |= refused(rmsnorm_launch(norm, 0, p, p, p, 8, 1e-6f, 128), "a row of another length");
  failed |= refused(rmsnorm_launch(norm, 0, p + 2, p, p, 8, 1e-6f, 512), "a misaligned tensor");
  return failed;
}

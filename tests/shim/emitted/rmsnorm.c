/* rmsnorm.h of `emit rmsnorm --residual --variant unfused`: two kernels; the second reads the first one's output. */
#include "out/rmsnorm.h"

#include "host.h"

static int run(CUfunction add, CUfunction norm, int64_t rows, int64_t cols) {
  Tensor x = input(1, rows * cols, 2), residual = input(2, rows * cols, 2), weight = input(3, cols, 2);
  Tensor sum = output(rows * cols, 2), y = output(rows * cols, 2);
  char what[64];
  snprintf(what, sizeof what, "%d x %d", (int)rows, (int)cols);
  must(rmsnorm_add_launch(add, 0, x.device, residual.device, sum.device, rows, cols), what);
  must(rmsnorm_norm_launch(norm, 0, sum.device, weight.device, y.device, 1e-6f, rows, cols), what);
  float *s = read_back(sum), *got = read_back(y);
  for (int64_t m = 0; m < rows; ++m) {
    double squares = 0;
    for (int64_t n = 0; n < cols; ++n) {
      const double v = x.host[m * cols + n] + residual.host[m * cols + n];
      compare(s[m * cols + n], v);
      squares += v * v;
    }
    for (int64_t n = 0; n < cols; ++n)
      compare(got[m * cols + n], (x.host[m * cols + n] + residual.host[m * cols + n]) /
                                     sqrt(squares / (double)cols + 1e-6) * weight.host[n]);
  }
  return report(what);
}

int main(void) {
  start();
  CUfunction add = load("out/rmsnorm_add.ptx", RMSNORM_ADD_ENTRY),
             norm = load("out/rmsnorm_norm.ptx", RMSNORM_NORM_ENTRY);
  must(rmsnorm_add_prepare(add), "rmsnorm_add_prepare");
  must(rmsnorm_norm_prepare(norm), "rmsnorm_norm_prepare");
  int failed = run(add, norm, 5, 1003);
  failed |= run(add, norm, 33, 517);
  CUdeviceptr p = output(1 << 20, 2).device;
  failed |= refused(rmsnorm_norm_launch(norm, 0, p, p, p, 1e-6f, 5, 400000), "a row longer than the registers hold");
  return failed;
}

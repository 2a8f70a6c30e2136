/* softmax.h of `emit softmax --variant split`: three kernels and four temporaries. */
#include "out/softmax.h"

#include "host.h"

static int run(int64_t rows, int64_t cols) {
  CUfunction partial = load("out/softmax_partial.ptx", SOFTMAX_PARTIAL_ENTRY),
             combine = load("out/softmax_combine.ptx", SOFTMAX_COMBINE_ENTRY);
  CUfunction normalise = load("out/softmax_normalise.ptx", SOFTMAX_NORMALISE_ENTRY);
  Tensor x = input(1, rows * cols, 2), y = output(rows * cols, 2);
  CUdeviceptr partial_top, partial_total, top, total;
  must(cuMemAlloc(&partial_top, (size_t)softmax_partial_top_bytes(rows, cols)), "partial_top");
  must(cuMemAlloc(&partial_total, (size_t)softmax_partial_total_bytes(rows, cols)), "partial_total");
  must(cuMemAlloc(&top, (size_t)softmax_top_bytes(rows)), "top");
  must(cuMemAlloc(&total, (size_t)softmax_total_bytes(rows)), "total");
  char what[64];
  snprintf(what, sizeof what, "%d x %d", (int)rows, (int)cols);
  must(softmax_partial_prepare(partial), "softmax_partial_prepare");
  must(softmax_partial_launch(partial, 0, x.device, partial_top, partial_total, rows, cols), what);
  must(softmax_combine_launch(combine, 0, partial_top, partial_total, top, total, rows, cols), what);
  must(softmax_normalise_launch(normalise, 0, x.device, top, total, y.device, rows, cols), what);
  float* got = read_back(y);
  for (int64_t m = 0; m < rows; ++m) {
    double sum = 0;
    for (int64_t n = 0; n < cols; ++n) sum += exp(x.host[m * cols + n]);
    /* Scaled, so that the comparison detects relative errors of the quotient. */
    for (int64_t n = 0; n < cols; ++n)
      compare(got[m * cols + n] * (float)cols, exp(x.host[m * cols + n]) / sum * (double)cols);
  }
  return report(what);
}

int main(void) {
  start();
  int failed = run(2, 20003);
  failed |= run(5, 17009);
  return failed;
}

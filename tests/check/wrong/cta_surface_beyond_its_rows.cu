// grid: 1  block: 64
// args: [{"type": "f32", "size": 64, "fill": 0, "surface": {"dims": [16, 4]}}]
// finds: out-of-bounds at 7
// The first coordinate of a surface counts bytes; the rows are one too many.
__global__ void ramp(cudaSurfaceObject_t image) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16 + 1;
  surf2Dwrite(static_cast<float>(x), image, 4 * x, y);
}

// grid: 1  block: 64
// args: [{"type": "f32", "size": 64, "fill": 0, "surface": {"dims": [16, 4]}}]
// finds: misaligned at 7
// The first coordinate of a surface counts bytes, not elements.
__global__ void ramp(cudaSurfaceObject_t image) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  surf2Dwrite(static_cast<float>(x), image, x, y);
}

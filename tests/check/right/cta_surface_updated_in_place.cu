// grid: 1  block: 64
// args: [{"type": "u8", "size": 256, "fill": "iota", "surface": {"dims": [16, 4], "channels": 4}}]
// Each thread reads and writes its own texel; what lies outside is left out.
__global__ void invert(cudaSurfaceObject_t image) {
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  uchar4 colour;
  surf2Dread(&colour, image, 4 * x, y);
  surf2Dwrite(make_uchar4(255 - colour.x, 255 - colour.y, 255 - colour.z, colour.w), image, 4 * x, y);
  surf2Dwrite(colour, image, 4 * x, y + 4, cudaBoundaryModeZero);
}

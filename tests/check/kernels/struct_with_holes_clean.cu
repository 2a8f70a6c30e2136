// grid: 1  block: 64
// args: [{"name": "y", "type": "i32", "size": 128}]
// conflicts at: 11,8,9
// uncoalesced at: 11
struct Holed { int a; char b; };
__global__ void shift(Holed* y) {
  __shared__ Holed box[64];
  box[threadIdx.x].a = threadIdx.x;
  box[threadIdx.x].b = 'x';
  __syncthreads();
  y[threadIdx.x] = box[63 - threadIdx.x];
}

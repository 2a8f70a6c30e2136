// libcu++: atomics, barriers, pipelines, latches, semaphores, in the way of its documentation.
#include <cooperative_groups.h>

#include <cstdio>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/latch>
#include <cuda/pipeline>
#include <cuda/semaphore>

namespace cg = cooperative_groups;

__global__ void message(int* data, int* flag, int* out) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x + 1;
    __syncthreads();
    if (threadIdx.x == 0) ready.store(1, cuda::memory_order_release);
  } else {
    if (threadIdx.x == 0) {
      while (ready.load(cuda::memory_order_acquire) == 0) {
      }
    }
    __syncthreads();
    out[threadIdx.x] = data[threadIdx.x];
  }
}

__global__ void wait_notify(int* data, cuda::atomic<int, cuda::thread_scope_device>* flag, int* out) {
  if (blockIdx.x == 0) {
    *data = 7;
    flag->store(1);
    flag->notify_all();
  } else {
    flag->wait(0);
    *out = *data;
  }
}

struct Lock {
  cuda::atomic<int, cuda::thread_scope_device> taken;
  __device__ void lock() {
    while (taken.exchange(1, cuda::memory_order_acquire)) {
    }
  }
  __device__ void unlock() { taken.store(0, cuda::memory_order_release); }
};

__global__ void locks(Lock* lock, int* counter) {
  if (threadIdx.x % 32 == 0) {
    lock->lock();
    *counter += 1;
    lock->unlock();
  }
}

__global__ void seqlock(cuda::atomic<int, cuda::thread_scope_device>* version, int* data, int* out) {
  if (blockIdx.x == 0) {
    for (int i = 1; i <= 10; ++i) {
      int v = version->load(cuda::memory_order_relaxed);
      version->store(v + 1, cuda::memory_order_relaxed);
      cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
      for (int k = 0; k < 2; ++k) {
        cuda::atomic_ref<int, cuda::thread_scope_device>(data[k]).store(i, cuda::memory_order_relaxed);
      }
      version->store(v + 2, cuda::memory_order_release);
    }
  } else {
    int before, after, a, b;
    do {
      before = version->load(cuda::memory_order_acquire);
      a = cuda::atomic_ref<int, cuda::thread_scope_device>(data[0]).load(cuda::memory_order_relaxed);
      b = cuda::atomic_ref<int, cuda::thread_scope_device>(data[1]).load(cuda::memory_order_relaxed);
      cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
      after = version->load(cuda::memory_order_relaxed);
    } while (before % 2 || before != after);
    *out = a == b;
  }
}

__global__ void last_block(const int* in, int* parts, unsigned* ticket, int* out) {
  __shared__ bool last;
  __shared__ int sums[128];
  sums[threadIdx.x] = in[blockIdx.x * 128 + threadIdx.x];
  __syncthreads();
  for (int half = 64; half; half /= 2) {
    if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    __syncthreads();
  }
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = sums[0];
    cuda::atomic_ref<unsigned, cuda::thread_scope_device> tickets(*ticket);
    last = tickets.fetch_add(1, cuda::memory_order_acq_rel) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 0) {
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += parts[i];
    *out = sum;
  }
}

__global__ void barriers(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> full, empty;
  __shared__ int slot[64];
  if (threadIdx.x == 0) init(&full, blockDim.x), init(&empty, blockDim.x);
  __syncthreads();
  if (threadIdx.x < 64) {
    for (int i = 0; i < 5; ++i) {
      empty.arrive_and_wait();
      slot[threadIdx.x] = i;
      (void)full.arrive();
    }
  } else {
    (void)empty.arrive();
    int sum = 0;
    for (int i = 0; i < 5; ++i) {
      full.arrive_and_wait();
      sum += slot[threadIdx.x - 64];
      if (i < 4) (void)empty.arrive();
    }
    out[threadIdx.x - 64] = sum;
  }
}

__global__ void pipeline(const int* in, int* out, int n) {
  constexpr int STAGES = 3;
  __shared__ int buffer[STAGES][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  for (int compute = 0, fetch = 0; compute < n; ++compute) {
    for (; fetch < n && fetch < compute + STAGES; ++fetch) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, buffer[fetch % STAGES], in + fetch * 128, cuda::aligned_size_t<16>(512), pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    out[compute * 128 + threadIdx.x] = buffer[compute % STAGES][127 - threadIdx.x];
    pipe.consumer_release();
  }
}

__global__ void roles(const int* in, int* out, int n) {
  constexpr int STAGES = 2;
  __shared__ int buffer[STAGES][96];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, STAGES> state;
  auto block = cg::this_thread_block();
  auto role = threadIdx.x < 32 ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer;
  auto pipe = cuda::make_pipeline(block, &state, role);
  for (int i = 0; i < n; ++i) {
    if (role == cuda::pipeline_role::producer) {
      pipe.producer_acquire();
      auto warp = cg::tiled_partition<32>(block);
      cuda::memcpy_async(warp, buffer[i % STAGES], in + i * 96, sizeof(int) * 96, pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      out[i * 96 + threadIdx.x - 32] = buffer[i % STAGES][127 - threadIdx.x];
      pipe.consumer_release();
    }
  }
}

__global__ void bulk(const int* in, int* out) {
  __shared__ alignas(128) int tile[256];
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  cuda::barrier<cuda::thread_scope_block>::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(tile, in, cuda::aligned_size_t<16>(sizeof tile), bar);
    token = cuda::device::barrier_arrive_tx(bar, 1, sizeof tile);
  } else {
    token = bar.arrive();
  }
  bar.wait(std::move(token));
  for (int i = threadIdx.x; i < 256; i += blockDim.x) tile[i] += 1;
  cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, out, tile, sizeof tile);
    cuda::ptx::cp_async_bulk_commit_group();
    cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<0>());
  }
}

__global__ void latches(cuda::latch<cuda::thread_scope_device>* latch, int* data, int* out) {
  data[blockIdx.x] = blockIdx.x;
  latch->arrive_and_wait();
  out[blockIdx.x] = data[(blockIdx.x + 1) % gridDim.x];
}

__global__ void semaphores(cuda::binary_semaphore<cuda::thread_scope_device>* semaphore, int* counter) {
  semaphore->acquire();
  *counter += 1;
  semaphore->release();
}

template <class T, class... A>
__global__ void make(T* at, A... from) {
  new (at) T(from...);
}

int main() {
  constexpr int N = 2048;
  static int host[N], result[N];
  int *in, *out, *more, bad = 0;
  void* place;
  cudaMalloc(&in, sizeof host), cudaMalloc(&out, sizeof host), cudaMalloc(&more, sizeof host), cudaMalloc(&place, 256);
  for (int i = 0; i < N; ++i) host[i] = i % 100 + 1;
  auto begin = [&] {
    cudaMemcpy(in, host, sizeof host, cudaMemcpyHostToDevice);
    cudaMemset(out, 0, sizeof host), cudaMemset(more, 0, sizeof host), cudaMemset(place, 0, 256);
  };
  auto done = [&](const char* name, int at, int expected) {
    cudaError_t error = cudaDeviceSynchronize();
    cudaMemcpy(result, out, sizeof result, cudaMemcpyDeviceToHost);
    bool right = error == cudaSuccess && result[at] == expected;
    printf("%s: %s %d %d\n", name, right ? "right" : "WRONG", result[at], expected);
    bad += !right;
    begin();
  };
  using Atomic = cuda::atomic<int, cuda::thread_scope_device>;
  begin();
  message<<<2, 128>>>(in, more, out), done("message", 127, 128);
  make<<<1, 1>>>((Atomic*)place, 0), wait_notify<<<2, 1>>>(in, (Atomic*)place, out), done("wait", 0, 7);
  locks<<<8, 128>>>((Lock*)place, out), done("locks", 0, 32);
  seqlock<<<2, 1>>>((Atomic*)place, more, out), done("seqlock", 0, 1);
  int total = 0;
  for (int i = 0; i < 1024; ++i) total += host[i];
  last_block<<<8, 128>>>(in, more, (unsigned*)place, out), done("last block", 0, total);
  barriers<<<1, 128>>>(out), done("barriers", 3, 10);
  pipeline<<<1, 128>>>(in, out, 8), done("pipeline", 0, host[127]);
  roles<<<1, 128>>>(in, out, 8), done("roles", 0, host[95]);
  bulk<<<1, 128>>>(in, out), done("bulk", 0, host[0] + 1);
  using Latch = cuda::latch<cuda::thread_scope_device>;
  make<<<1, 1>>>((Latch*)place, 8), latches<<<8, 1>>>((Latch*)place, in, out), done("latch", 3, 4);
  using Semaphore = cuda::binary_semaphore<cuda::thread_scope_device>;
  make<<<1, 1>>>((Semaphore*)place, 1), semaphores<<<8, 1>>>((Semaphore*)place, out), done("semaphore", 0, 8);
  return bad;
}

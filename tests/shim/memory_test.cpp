// Limits and stream-ordered memory: pools, queued frees, rejected calls.
#include "tests/shim/calls.h"

namespace roofgen::test::memory_test {
namespace {

constexpr int kPinned = 1;

TEST_F(Calls, LimitsAreKept) {
  size_t value = 0;
  for (const auto& [limit, begins] : {std::pair{0, size_t{1024}}, {1, size_t{1} << 20}, {2, size_t{8} << 20}}) {
    EXPECT_EQ(cu("cuCtxGetLimit", &value, limit), 0);
    EXPECT_EQ(value, begins);
    EXPECT_EQ(cu("cuCtxSetLimit", limit, begins * 4), 0);
    EXPECT_EQ(cu("cuCtxGetLimit", &value, limit), 0);
    EXPECT_EQ(value, begins * 4);
  }
  // Another context has limits of its own.
  Handle other = nullptr;
  ASSERT_EQ(cu("cuCtxCreate_v2", &other, 0u, 0), 0);
  EXPECT_EQ(cu("cuCtxGetLimit", &value, 0), 0);
  EXPECT_EQ(value, 1024u);
  EXPECT_EQ(cu("cuCtxDestroy_v2", other), 0);
  ASSERT_EQ(cu("cuCtxSetCurrent", context_), 0);
  EXPECT_EQ(cu("cuCtxSetLimit", 3, size_t{2}), 215) << "kernels that launch kernels";
  EXPECT_EQ(cu("cuCtxGetLimit", &value, 6), 215);
  EXPECT_EQ(cu("cuCtxGetLimit", &value, 10), 1);
  EXPECT_EQ(cu("cuCtxSetLimit", -1, size_t{2}), 1);
}

TEST_F(Calls, AnAllocationGoesWhenTheStreamComesToItsFree) {
  int pools = 0;
  EXPECT_EQ(cu("cuDeviceGetAttribute", &pools, 115, 0), 0);
  EXPECT_EQ(pools, 1);
  Handle stream = nullptr;
  ASSERT_EQ(cu("cuStreamCreate", &stream, 1u), 0);
  Address y = 0;
  ASSERT_EQ(cu("cuMemAllocAsync", &y, size_t{64}, stream), 0);
  ASSERT_EQ(cu("cuMemsetD32Async", y, 5u, size_t{16}, stream), 0);
  unsigned n = 16, two = 2, three = 3;
  KernelNodeParams p = step_params(y, n, two, three);
  ASSERT_EQ(cu("cuLaunchKernel", step_, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, p.args, static_cast<void**>(nullptr)), 0);
  const Address kept = allocate(64);
  ASSERT_EQ(cu("cuMemcpyDtoDAsync_v2", kept, y, size_t{64}, stream), 0);
  size_t before = 0, after = 0, total = 0;
  ASSERT_EQ(cu("cuMemGetInfo_v2", &before, &total), 0);
  ASSERT_EQ(cu("cuMemFreeAsync", y, stream), 0);
  EXPECT_EQ(cu("cuMemFreeAsync", y, stream), 1) << "twice";
  EXPECT_EQ(cu("cuMemFree_v2", y), 1) << "twice";
  ASSERT_EQ(cu("cuStreamSynchronize", stream), 0);
  EXPECT_EQ(read(kept, 16), std::vector<unsigned>(16, 13)) << "what was queued before the free had its memory";
  ASSERT_EQ(cu("cuMemGetInfo_v2", &after, &total), 0);
  EXPECT_EQ(after, before + 64);
  // Either call frees either kind of memory.
  ASSERT_EQ(cu("cuMemFreeAsync", kept, stream), 0);
  ASSERT_EQ(cu("cuMemAllocAsync", &y, size_t{64}, stream), 0);
  EXPECT_EQ(cu("cuMemFree_v2", y), 0);
  EXPECT_EQ(cu("cuMemFreeAsync", Address{64}, stream), 1);
  EXPECT_EQ(cu("cuMemAllocAsync", &y, size_t{0}, stream), 1);
  EXPECT_EQ(cu("cuMemAllocAsync", &y, total + 1, stream), 2);
  // In a captured graph, the allocation would be a memory node.
  ASSERT_EQ(cu("cuStreamBeginCapture_v2", stream, 1), 0);
  EXPECT_EQ(cu("cuMemAllocAsync", &y, size_t{64}, stream), 801);
}

TEST_F(Calls, AKernelAfterTheFreeIsFound) {
  Address y = 0;
  ASSERT_EQ(cu("cuMemAllocAsync", &y, size_t{64}, Handle{}), 0);
  ASSERT_EQ(cu("cuMemsetD32Async", y, 5u, size_t{16}, Handle{}), 0);
  ASSERT_EQ(cu("cuMemFreeAsync", y, Handle{}), 0);
  unsigned n = 16, one = 1;
  KernelNodeParams p = step_params(y, n, one, one);
  ASSERT_EQ(cu("cuLaunchKernel", step_, 1u, 1u, 1u, 32u, 1u, 1u, 0u, Handle{}, p.args, static_cast<void**>(nullptr)),
            0);
  EXPECT_EQ(cu("cuCtxSynchronize"), 700);
  EXPECT_NE(home_.read("log").find("finding out-of-bounds: kernel step"), std::string::npos) << home_.read("log");
}

TEST_F(Calls, PoolsCountUsedBytes) {
  Handle pool = nullptr, same = nullptr, mine = nullptr;
  ASSERT_EQ(cu("cuDeviceGetDefaultMemPool", &pool, 0), 0);
  EXPECT_EQ(cu("cuDeviceGetMemPool", &same, 0), 0);
  EXPECT_EQ(pool, same);
  EXPECT_EQ(cu("cuDeviceGetMemPool", &same, 1), 101);
  Location here = {kOnDevice, 0}, host = {2, 0};
  EXPECT_EQ(cu("cuMemGetDefaultMemPool", &same, &here, kPinned), 0);
  EXPECT_EQ(pool, same);
  EXPECT_EQ(cu("cuMemGetDefaultMemPool", &same, &host, kPinned), 801);

  uint64_t number = 1 << 20;
  int reuse = -1;
  EXPECT_EQ(cu("cuMemPoolSetAttribute", pool, 4, static_cast<void*>(&number)), 0);
  number = 0;
  EXPECT_EQ(cu("cuMemPoolGetAttribute", pool, 4, static_cast<void*>(&number)), 0);
  EXPECT_EQ(number, 1u << 20);
  EXPECT_EQ(cu("cuMemPoolGetAttribute", pool, 2, static_cast<void*>(&reuse)), 0);
  EXPECT_EQ(reuse, 1);

  PoolProps props;
  props.allocation_type = kPinned;
  props.location = here;
  props.most_bytes = 4096;
  ASSERT_EQ(cu("cuMemPoolCreate", &mine, static_cast<const PoolProps*>(&props)), 0);
  Address a = 0, b = 0, c = 0;
  ASSERT_EQ(cu("cuMemAllocFromPoolAsync", &a, size_t{3000}, mine, Handle{}), 0);
  EXPECT_EQ(cu("cuMemAllocFromPoolAsync", &b, size_t{3000}, mine, Handle{}), 2);
  Handle of = nullptr;
  EXPECT_EQ(cu("cuPointerGetAttribute", static_cast<void*>(&of), 17, a + 8), 0);
  EXPECT_EQ(of, mine);
  EXPECT_EQ(cu("cuDeviceSetMemPool", 0, mine), 0);
  ASSERT_EQ(cu("cuMemAllocAsync", &c, size_t{500}, Handle{}), 0);
  const auto used = [&](int attribute) {
    EXPECT_EQ(cu("cuMemPoolGetAttribute", mine, attribute, static_cast<void*>(&number)), 0);
    return number;
  };
  EXPECT_EQ(used(7), 3500u);
  ASSERT_EQ(cu("cuMemFreeAsync", a, Handle{}), 0);
  ASSERT_EQ(cu("cuCtxSynchronize"), 0);
  EXPECT_EQ(used(7), 500u);
  EXPECT_EQ(used(8), 3500u);
  ASSERT_EQ(cu("cuMemAllocFromPoolAsync", &a, size_t{3500}, mine, Handle{}), 0);
  ASSERT_EQ(cu("cuMemFreeAsync", a, Handle{}), 0);
  ASSERT_EQ(cu("cuMemAllocFromPoolAsync", &a, size_t{3500}, mine, Handle{}), 0)
      << "once what is queued before it is done";
  ASSERT_EQ(cu("cuMemFreeAsync", a, Handle{}), 0);
  ASSERT_EQ(cu("cuCtxSynchronize"), 0);
  number = 7;
  EXPECT_EQ(cu("cuMemPoolSetAttribute", mine, 8, static_cast<void*>(&number)), 1) << "only to 0";
  EXPECT_EQ(cu("cuMemPoolSetAttribute", mine, 7, static_cast<void*>(&number)), 1) << "cannot be set";
  number = 0;
  EXPECT_EQ(cu("cuMemPoolSetAttribute", mine, 8, static_cast<void*>(&number)), 0);
  EXPECT_EQ(used(8), 500u) << "the highest since now";
  EXPECT_EQ(cu("cuMemPoolTrimTo", mine, size_t{0}), 0);
  int flags = 0;
  EXPECT_EQ(cu("cuMemPoolGetAccess", &flags, mine, &here), 0);
  EXPECT_EQ(flags, 3);

  EXPECT_EQ(cu("cuMemPoolDestroy", pool), 1) << "the default one";
  ASSERT_EQ(cu("cuMemPoolDestroy", mine), 0);
  EXPECT_EQ(cu("cuDeviceGetMemPool", &same, 0), 0);
  EXPECT_EQ(same, pool);
  EXPECT_EQ(cu("cuMemPoolTrimTo", mine, size_t{0}), 1) << "a pool that is gone";
  EXPECT_EQ(cu("cuMemFreeAsync", c, Handle{}), 0) << "what it gave stays until it is freed";
  EXPECT_EQ(cu("cuCtxSynchronize"), 0);
}

/// Where a call expects the host's memory, addresses of the device are taken as such, and stale ones are refused.
TEST_F(Calls, AddressesAreUnified) {
  const Address x = allocate(64), y = allocate(64);
  void* const as_host = reinterpret_cast<void*>(x);
  ASSERT_EQ(cu("cuMemsetD32_v2", x, 9u, size_t{16}), 0);
  ASSERT_EQ(cu("cuMemcpyHtoD_v2", y, static_cast<const void*>(as_host), size_t{64}), 0);
  EXPECT_EQ(read(y, 16), std::vector<unsigned>(16, 9));
  ASSERT_EQ(cu("cuMemFree_v2", x), 0);
  EXPECT_EQ(cu("cuMemcpyHtoD_v2", y, static_cast<const void*>(as_host), size_t{64}), 1);
  EXPECT_EQ(cu("cuMemcpyDtoH_v2", as_host, y, size_t{64}), 1);
  EXPECT_EQ(cu("cuMemcpy", x, y, size_t{64}), 1);
}

/// Managed, mapped and page-locked memory: the host and kernels use one address.
TEST_F(Calls, IsSharedWithTheHost) {
  Address y = 0;
  void *mapped = nullptr, *pinned = nullptr;
  EXPECT_EQ(cu("cuMemAllocManaged", &y, size_t{64}, 0u), 1) << "flags";
  ASSERT_EQ(cu("cuMemAllocManaged", &y, size_t{64}, 1u), 0);
  ASSERT_EQ(cu("cuMemHostAlloc", &mapped, size_t{100000}, 2u), 0);
  ASSERT_EQ(cu("cuMemHostAlloc", &pinned, size_t{64}, 0u), 0);
  const auto words = [](Address at) { return reinterpret_cast<unsigned*>(at); };
  Address same = 0;
  EXPECT_EQ(cu("cuMemHostGetDevicePointer_v2", &same, static_cast<void*>(static_cast<char*>(mapped) + 8), 0u), 0);
  EXPECT_EQ(same, reinterpret_cast<uintptr_t>(mapped) + 8);
  EXPECT_EQ(cu("cuMemHostGetDevicePointer_v2", &same, pinned, 0u), 0);
  EXPECT_EQ(same, reinterpret_cast<uintptr_t>(pinned));
  std::memset(pinned, 0, 64);
  int is_managed = 0;
  EXPECT_EQ(cu("cuPointerGetAttribute", static_cast<void*>(&is_managed), 8, y), 0);
  EXPECT_EQ(is_managed, 1);
  for (const Address at :
       {y, Address{reinterpret_cast<uintptr_t>(mapped)}, Address{reinterpret_cast<uintptr_t>(pinned)}}) {
    EXPECT_EQ(words(at)[15], 0u);
    for (unsigned round : {1u, 2u}) {
      std::fill_n(words(at), 16, round);
      Address to = at;
      unsigned n = 16, two = 2, three = 3;
      KernelNodeParams p = step_params(to, n, two, three);
      ASSERT_EQ(
          cu("cuLaunchKernel", step_, 1u, 1u, 1u, 32u, 1u, 1u, 0u, Handle{}, p.args, static_cast<void**>(nullptr)), 0);
      EXPECT_EQ(words(at)[0], round) << "the launch is queued";
      ASSERT_EQ(cu("cuCtxSynchronize"), 0);
      EXPECT_EQ(words(at)[15], 2 * round + 3);
    }
    words(at)[3] = 77;
    EXPECT_EQ(read(at, 4)[3], 77u) << "a copy without queued work sees the host's values";
  }
  // A host function is between the kernels of its stream.
  ASSERT_EQ(cu("cuMemsetD32Async", y, 5u, size_t{16}, Handle{}), 0);
  ASSERT_EQ(cu(
                "cuLaunchHostFunc", Handle{}, +[](void* at) { *static_cast<unsigned*>(at) += 1; },
                static_cast<void*>(words(y))),
            0);
  EXPECT_EQ(read(y, 2), (std::vector<unsigned>{6, 5}));
  // A variable of a module.
  std::string ptx = kStepPtx;
  ptx.insert(ptx.find(".visible"),
             ".visible .global .attribute(.managed) .align 4 .u32 shared[2] = {7, 8};\n"
             ".visible .global .align 8 .u64 place = generic(shared)+4;\n"
             ".visible .global .align 8 .u64 even = generic(odd);\n"
             ".visible .global .align 8 .u64 odd = generic(even);\n");
  Handle module = nullptr;
  size_t bytes = 0;
  ASSERT_EQ(cu("cuModuleLoadData", &module, static_cast<const void*>(ptx.c_str())), 0);
  ASSERT_EQ(cu("cuModuleGetGlobal_v2", &same, &bytes, module, "shared"), 0);
  EXPECT_EQ(bytes, 8u);
  EXPECT_EQ(words(same)[1], 8u);
  Address place = 0;
  ASSERT_EQ(cu("cuModuleGetGlobal_v2", &place, &bytes, module, "place"), 0);
  EXPECT_EQ(read(place, 2),
            (std::vector<unsigned>{static_cast<unsigned>(same + 4), static_cast<unsigned>((same + 4) >> 32)}));
  Address even = 0, odd = 0;
  ASSERT_EQ(cu("cuModuleGetGlobal_v2", &even, &bytes, module, "even"), 0);
  ASSERT_EQ(cu("cuModuleGetGlobal_v2", &odd, &bytes, module, "odd"), 0);
  EXPECT_EQ(read(even, 1)[0], static_cast<unsigned>(odd)) << "two variables hold each other's address";
  EXPECT_EQ(read(odd, 1)[0], static_cast<unsigned>(even));
  words(same)[0] = 70;
  EXPECT_EQ(read(same, 2), (std::vector<unsigned>{70, 8}));
  EXPECT_EQ(cu("cuModuleUnload", module), 0);
  EXPECT_EQ(cu("cuMemFree_v2", same), 1) << "freed with its module";
  EXPECT_EQ(cu("cuMemFree_v2", y), 0);
  EXPECT_EQ(cu("cuMemFreeHost", mapped), 0);
  EXPECT_EQ(cu("cuMemFreeHost", mapped), 1);
  EXPECT_EQ(cu("cuMemFreeHost", pinned), 0);
}

}  // namespace
}  // namespace roofgen::test::memory_test

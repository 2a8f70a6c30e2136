// The effects of calls to the simulated driver: copies, graphs, registers, host functions.
#include "tests/shim/calls.h"

#include <fstream>

namespace roofgen::test::calls_test {
namespace {

TEST_F(Calls, ABoxIsCopiedBetweenPitches) {
  Address at = 0;
  size_t pitch = 0;
  ASSERT_EQ(cu("cuMemAllocPitch_v2", &at, &pitch, size_t{20}, size_t{4}, 4u), 0);
  EXPECT_GE(pitch, 20u);
  ASSERT_EQ(cu("cuMemsetD2D8_v2", at, pitch, static_cast<unsigned char>(7), size_t{20}, size_t{4}), 0);
  unsigned char in[3][10], out[4][20];
  for (int i = 0; i < 30; ++i) in[i / 10][i % 10] = static_cast<unsigned char>(100 + i);
  Copy2d c;  // 2 rows of 5 bytes, from (3, 1) of `in` to (4, 2) on the device
  c.from = {3, 1, kHostMemory, in, 0, nullptr, 10};
  c.to = {4, 2, kDeviceMemory, nullptr, at, nullptr, pitch};
  c.width = 5;
  c.height = 2;
  ASSERT_EQ(cu("cuMemcpy2D_v2", ref(c)), 0);
  Copy2d back;
  back.from = {0, 0, kUnifiedMemory, nullptr, at, nullptr, pitch};
  back.to = {0, 0, kHostMemory, out, 0, nullptr, 20};
  back.width = 20;
  back.height = 4;
  ASSERT_EQ(cu("cuMemcpy2DAsync_v2", ref(back), Handle{}), 0);
  for (int y = 0; y < 4; ++y)
    for (int x = 0; x < 20; ++x)
      EXPECT_EQ(out[y][x], y >= 2 && x >= 4 && x < 9 ? in[y - 1][x - 1] : 7) << y << " " << x;
  c.to.pitch = 8;  // rows of 4 + 5 bytes do not fit
  EXPECT_EQ(cu("cuMemcpy2D_v2", ref(c)), 1);
  c.to.pitch = pitch;
  c.height = 3;  // past both ends
  c.to.y = 2;
  EXPECT_EQ(cu("cuMemcpy2D_v2", ref(c)), 1);
  c.to.type = 3;  // an array, which is none
  EXPECT_EQ(cu("cuMemcpy2D_v2", ref(c)), 400);
  c.to.type = 5;
  EXPECT_EQ(cu("cuMemcpy2D_v2", ref(c)), 801);
}

Copy3d to_host(Address from, std::vector<unsigned>& to) {
  Copy3d c;
  c.from.type = kDeviceMemory;
  c.from.device = from;
  c.to.type = kHostMemory;
  c.to.host = to.data();
  c.width = 4 * to.size();
  c.height = c.depth = 1;
  return c;
}

TEST_F(Calls, AGraphByHandRunsInTheOrderOfItsEdges) {
  Address y = allocate(64);
  unsigned n = 16, two = 2, three = 3, zero = 0, one = 1;
  Handle graph = nullptr, clear = nullptr, first = nullptr, second = nullptr, out = nullptr, host = nullptr;
  ASSERT_EQ(cu("cuGraphCreate", &graph, 0u), 0);
  // Nodes are added in the reverse of their execution order: out <- second <- first <- clear.
  std::vector<unsigned> result(16);
  const Copy3d c = to_host(y, result);
  ASSERT_EQ(cu("cuGraphAddMemcpyNode", &out, graph, kNone, size_t{0}, ref(c), context_), 0);
  KernelNodeParams p = step_params(y, n, two, three);
  ASSERT_EQ(cu("cuGraphAddKernelNode_v2", &second, graph, kNone, size_t{0}, ref(p)), 0);
  p = step_params(y, n, one, one);
  ASSERT_EQ(cu("cuGraphAddKernelNode_v2", &first, graph, kNone, size_t{0}, ref(p)), 0);
  const MemsetNodeParams m = {y, 0, 5, 4, 16, 1};
  ASSERT_EQ(cu("cuGraphAddMemsetNode", &clear, graph, kNone, size_t{0}, &m, context_), 0);
  const Handle from[] = {clear, first, second}, to[] = {first, second, out};
  ASSERT_EQ(cu("cuGraphAddDependencies_v2", graph, &from[0], &to[0], static_cast<const void*>(nullptr), size_t{3}), 0);
  static int calls;
  calls = 0;
  const HostNodeParams h = {[](void* data) { calls += static_cast<std::vector<unsigned>*>(data)->at(0) == 15; },
                            &result};
  ASSERT_EQ(cu("cuGraphAddHostNode", &host, graph, ref(out), size_t{1}, &h), 0);
  size_t count = 0;
  EXPECT_EQ(cu("cuGraphGetNodes", graph, static_cast<Handle*>(nullptr), &count), 0);
  EXPECT_EQ(count, 5u);
  EXPECT_EQ(cu("cuGraphGetRootNodes", graph, static_cast<Handle*>(nullptr), &count), 0);
  EXPECT_EQ(count, 1u);
  int type = -1;
  EXPECT_EQ(cu("cuGraphNodeGetType", out, &type), 0);
  EXPECT_EQ(type, 1);

  Handle exec = nullptr;
  InstantiateParams how;
  ASSERT_EQ(cu("cuGraphInstantiateWithParams", &exec, graph, &how), 0);
  ASSERT_EQ(cu("cuGraphLaunch", exec, Handle{}), 0);
  ASSERT_EQ(cu("cuCtxSynchronize"), 0);
  EXPECT_EQ(result, std::vector<unsigned>(16, (5 + 1) * 2 + 3));
  EXPECT_EQ(calls, 1) << "the host function sees what was copied before it";
  // New arguments for one kernel of the executable graph; the graph itself does not change.
  p = step_params(y, n, zero, two);
  ASSERT_EQ(cu("cuGraphExecKernelNodeSetParams_v2", exec, second, ref(p)), 0);
  ASSERT_EQ(cu("cuGraphLaunch", exec, Handle{}), 0);
  ASSERT_EQ(cu("cuCtxSynchronize"), 0);
  EXPECT_EQ(result, std::vector<unsigned>(16, 2));
  KernelNodeParams same;
  ASSERT_EQ(cu("cuGraphKernelNodeGetParams_v2", second, &same), 0);
  EXPECT_EQ(*static_cast<unsigned*>(same.args[2]), 2u);

  // Its copy inside another graph, twice; then a cycle.
  Handle outer = nullptr, child = nullptr, again = nullptr;
  ASSERT_EQ(cu("cuGraphCreate", &outer, 0u), 0);
  ASSERT_EQ(cu("cuGraphAddChildGraphNode", &child, outer, kNone, size_t{0}, graph), 0);
  ASSERT_EQ(cu("cuGraphAddChildGraphNode", &again, outer, ref(child), size_t{1}, graph), 0);
  ASSERT_EQ(cu("cuGraphDestroy", graph), 0);
  Handle both = nullptr;
  ASSERT_EQ(cu("cuGraphInstantiateWithFlags", &both, outer, 0ull), 0);
  ASSERT_EQ(cu("cuGraphLaunch", both, Handle{}), 0);
  ASSERT_EQ(cu("cuCtxSynchronize"), 0);
  EXPECT_EQ(result, std::vector<unsigned>(16, 15));
  EXPECT_EQ(calls, 3);
  ASSERT_EQ(
      cu("cuGraphAddDependencies_v2", outer, ref(again), ref(child), static_cast<const void*>(nullptr), size_t{1}), 0);
  EXPECT_EQ(cu("cuGraphInstantiateWithFlags", &both, outer, 0ull), 1);
  EXPECT_EQ(cu("cuGraphLaunch", graph, Handle{}), 400) << "a graph that is gone";
  EXPECT_EQ(cu("cuGraphNodeGetType", second, &type), 400) << "a node that is gone";
}

TEST_F(Calls, OlderFormsOfAGraphAndOtherWorkForItsNodes) {
  Address y = allocate(64);
  unsigned n = 16, one = 1, two = 2, three = 3;
  std::vector<unsigned> result(16), elsewhere(16);
  Handle graph = nullptr, clear = nullptr, step = nullptr, out = nullptr, host = nullptr, exec = nullptr, wrong = &n;
  static int calls;
  calls = 0;
  MemsetNodeParams m = {y, 0, 5, 4, 16, 1};
  Copy3d c = to_host(y, result);
  HostNodeParams h = {[](void*) { calls += 1; }, nullptr};
  KernelNodeParams p = step_params(y, n, two, three);
  p.kernel = p.context = &n;  // beyond the end of the older struct: not read
  ASSERT_EQ(cu("cuGraphCreate", &graph, 0u), 0);
  ASSERT_EQ(cu("cuGraphAddMemsetNode", &clear, graph, kNone, size_t{0}, ref(m), context_), 0);
  ASSERT_EQ(cu("cuGraphAddKernelNode", &step, graph, ref(clear), size_t{1}, static_cast<const void*>(&p)), 0);
  ASSERT_EQ(cu("cuGraphAddMemcpyNode", &out, graph, ref(step), size_t{1}, ref(c), context_), 0);
  ASSERT_EQ(cu("cuGraphAddHostNode", &host, graph, ref(out), size_t{1}, ref(h)), 0);
  char words[4] = "abc";
  ASSERT_EQ(cu("cuGraphInstantiate_v2", &exec, graph, &wrong, &words[0], sizeof words), 0);
  EXPECT_EQ(wrong, nullptr);
  EXPECT_STREQ(words, "");
  const auto run = [&] {
    EXPECT_EQ(cu("cuGraphLaunch", exec, Handle{}), 0);
    EXPECT_EQ(cu("cuCtxSynchronize"), 0);
  };
  run();
  EXPECT_EQ(result, std::vector<unsigned>(16, 13));
  EXPECT_EQ(calls, 1);

  m.value = 7;
  c.to.host = elsewhere.data();
  h.function = [](void*) { calls += 10; };
  p = step_params(y, n, one, three);
  ASSERT_EQ(cu("cuGraphExecMemsetNodeSetParams", exec, clear, ref(m), context_), 0);
  ASSERT_EQ(cu("cuGraphExecKernelNodeSetParams", exec, step, static_cast<const void*>(&p)), 0);
  ASSERT_EQ(cu("cuGraphExecMemcpyNodeSetParams", exec, out, ref(c), context_), 0);
  ASSERT_EQ(cu("cuGraphExecHostNodeSetParams", exec, host, ref(h)), 0);
  EXPECT_EQ(cu("cuGraphExecMemsetNodeSetParams", exec, step, ref(m), context_), 1) << "a node of another type";
  run();
  EXPECT_EQ(elsewhere, std::vector<unsigned>(16, 10));
  EXPECT_EQ(result, std::vector<unsigned>(16, 13)) << "as it was";
  EXPECT_EQ(calls, 11);
  // The original graph does not change.
  KernelNodeParams same;
  same.kernel = &n;
  ASSERT_EQ(cu("cuGraphKernelNodeGetParams", step, static_cast<void*>(&same)), 0);
  EXPECT_EQ(*static_cast<unsigned*>(same.args[2]), 2u);
  EXPECT_EQ(same.kernel, &n) << "not written";
  ASSERT_EQ(cu("cuGraphKernelNodeSetParams", step, static_cast<const void*>(&p)), 0);
  ASSERT_EQ(
      cu("cuGraphInstantiate", &exec, graph, static_cast<Handle*>(nullptr), static_cast<char*>(nullptr), size_t{0}), 0);
  run();
  EXPECT_EQ(result, std::vector<unsigned>(16, 8));
}

TEST_F(Calls, ACapturedCopyReadsTheHostWhenItIsLaunched) {
  Address y = allocate(64);
  Handle stream = nullptr, graph = nullptr, exec = nullptr;
  ASSERT_EQ(cu("cuStreamCreate", &stream, 1u), 0);
  std::vector<unsigned> in(16, 1), out(16);
  ASSERT_EQ(cu("cuStreamBeginCapture_v2", stream, 1), 0);
  ASSERT_EQ(cu("cuMemcpyHtoDAsync_v2", y, static_cast<const void*>(in.data()), size_t{64}, stream), 0);
  unsigned n = 16, two = 2, three = 3;
  KernelNodeParams p = step_params(y, n, two, three);
  ASSERT_EQ(cu("cuLaunchKernel", step_, 1u, 1u, 1u, 32u, 1u, 1u, 0u, stream, p.args, static_cast<void**>(nullptr)), 0);
  ASSERT_EQ(cu("cuMemcpyDtoHAsync_v2", static_cast<void*>(out.data()), y, size_t{64}, stream), 0);
  ASSERT_EQ(cu("cuStreamEndCapture", stream, &graph), 0);
  ASSERT_EQ(cu("cuGraphInstantiateWithFlags", &exec, graph, 0ull), 0);
  EXPECT_EQ(out[0], 0u) << "nothing ran yet";
  for (unsigned value : {1u, 10u}) {
    in.assign(16, value);
    ASSERT_EQ(cu("cuGraphLaunch", exec, stream), 0);
    ASSERT_EQ(cu("cuStreamSynchronize", stream), 0);
    EXPECT_EQ(out, std::vector<unsigned>(16, 2 * value + 3));
  }
}

TEST_F(Calls, CallbacksOfTheLogAreAccepted) {
  using Callback = void (*)(void*, int, char*, size_t);
  const Callback callback = [](void*, int, char*, size_t) {};
  Handle first = nullptr, second = nullptr;
  EXPECT_EQ(cu("cuLogsRegisterCallback", callback, static_cast<void*>(nullptr), &first), 0);
  EXPECT_EQ(cu("cuLogsRegisterCallback", callback, static_cast<void*>(nullptr), static_cast<Handle*>(nullptr)), 0);
  EXPECT_EQ(cu("cuLogsRegisterCallback", callback, static_cast<void*>(nullptr), &second), 0);
  EXPECT_NE(first, second);
  EXPECT_EQ(cu("cuLogsUnregisterCallback", first), 0);
  EXPECT_EQ(cu("cuLogsUnregisterCallback", static_cast<Handle>(nullptr)), 400);
  EXPECT_EQ(cu("cuLogsRegisterCallback", static_cast<Callback>(nullptr), static_cast<void*>(nullptr), &first), 1);
}

TEST_F(Calls, EachCaptureHasItsId) {
  Handle stream = nullptr, graph = nullptr;
  const Handle* after = nullptr;
  ASSERT_EQ(cu("cuStreamCreate", &stream, 1u), 0);
  int status = 7;
  unsigned long long id = 0, first = 0;
  Handle* const no_graph = nullptr;
  const Handle** const no_nodes = nullptr;
  const void** const no_edges = nullptr;
  size_t* const no_count = nullptr;
  ASSERT_EQ(cu("cuStreamGetCaptureInfo_v3", stream, &status, &id, &graph, &after, no_edges, no_count), 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(id, 0u) << "unchanged without a capture";
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(cu("cuStreamBeginCapture_v2", stream, 1), 0);
    ASSERT_EQ(cu("cuStreamGetCaptureInfo", stream, &status, &id), 0);
    EXPECT_EQ(status, 1);
    EXPECT_NE(id, first);
    first = id;
    ASSERT_EQ(cu("cuStreamGetCaptureInfo_v2", stream, &status, &id, no_graph, no_nodes, no_count), 0);
    EXPECT_EQ(id, first);
    EXPECT_EQ(cu("cuStreamGetCaptureInfo_v2", stream, &status, &id, &graph, no_nodes, no_count), 801);
    ASSERT_EQ(cu("cuStreamEndCapture", stream, &graph), 0);
  }
  EXPECT_EQ(cu("cuStreamGetCaptureInfo", stream, static_cast<int*>(nullptr), &id), 1);
}

TEST_F(Calls, AHostFunctionRunsAfterEarlierWork) {
  Address y = allocate(64);
  ASSERT_EQ(cu("cuMemsetD32Async", y, 9u, size_t{16}, Handle{}), 0);
  unsigned n = 16, one = 1;
  KernelNodeParams p = step_params(y, n, one, one);
  ASSERT_EQ(cu("cuLaunchKernel", step_, 1u, 1u, 1u, 32u, 1u, 1u, 0u, Handle{}, p.args, static_cast<void**>(nullptr)),
            0);
  int seen = 0;
  ASSERT_EQ(
      cu(
          "cuLaunchHostFunc", Handle{}, +[](void* data) { ++*static_cast<int*>(data); }, static_cast<void*>(&seen)),
      0);
  EXPECT_EQ(seen, 1) << "a program may wait for it without asking the driver";
  EXPECT_EQ(read(y, 16), std::vector<unsigned>(16, 10));
}

TEST_F(Calls, PointersReportTheirMemoryType) {
  const Address y = allocate(64);
  unsigned type = 0;
  ASSERT_EQ(cu("cuPointerGetAttribute", static_cast<void*>(&type), 2, y + 8), 0);
  EXPECT_EQ(type, kDeviceMemory);
  Address base = 0;
  ASSERT_EQ(cu("cuPointerGetAttribute", static_cast<void*>(&base), 11, y + 8), 0);
  EXPECT_EQ(base, y);
  int on_stack = 0;
  const auto mine = static_cast<Address>(reinterpret_cast<uintptr_t>(&on_stack));
  EXPECT_EQ(cu("cuPointerGetAttribute", static_cast<void*>(&type), 2, mine), 1);
  ASSERT_EQ(cu("cuMemHostRegister_v2", static_cast<void*>(&on_stack), sizeof on_stack, 0u), 0);
  ASSERT_EQ(cu("cuPointerGetAttribute", static_cast<void*>(&type), 2, mine), 0);
  EXPECT_EQ(type, kHostMemory);
  EXPECT_EQ(cu("cuMemFreeHost", static_cast<void*>(&on_stack)), 1) << "not made by the driver";
  EXPECT_EQ(cu("cuMemHostUnregister", static_cast<void*>(&on_stack)), 0);
  EXPECT_EQ(cu("cuMemHostUnregister", static_cast<void*>(&on_stack)), 713);
  int attributes[] = {2, 9};
  unsigned types = 7, ordinals = 7;
  void* out[] = {&types, &ordinals};
  EXPECT_EQ(cu("cuPointerGetAttributes", 2u, &attributes[0], &out[0], mine), 0);
  EXPECT_EQ(types, 0u) << "unknown, and no error";
}

/// A script stands in for ptxas, so that the test needs no toolkit and knows the register count.
void use_ptxas(const Home& home, const std::string& last_line) {
  home.write("ptxas",
             "#!/bin/sh\necho \"$@\" >> " + (home.dir() / "asked").string() +
                 "\necho \"ptxas info    : Compiling entry function 'step' for 'sm_90'\" >&2\n"
                 "echo 'ptxas         .     48 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' >&2\n"
                 "echo \"" +
                 last_line + "\" >&2\n");
  fs::permissions(home.dir() / "ptxas", fs::perms::owner_all);
  setenv("ROOFGEN_PTXAS", (home.dir() / "ptxas").c_str(), 1);
}

TEST_F(Calls, RegistersComeFromPtxas) {
  use_ptxas(home_, "ptxas info    : Used 64 registers, used 0 barriers");
  int registers = 0, local = 0, ctas = 0;
  EXPECT_EQ(cu("cuFuncGetAttribute", &registers, 4, step_), 0);
  EXPECT_EQ(registers, 64);
  EXPECT_EQ(cu("cuFuncGetAttribute", &local, 3, step_), 0);
  EXPECT_EQ(local, 48);
  // 65536 registers, 64 x 256 per CTA: 4 CTAs, where the threads alone would allow 8.
  EXPECT_EQ(cu("cuOccupancyMaxActiveBlocksPerMultiprocessor", &ctas, step_, 256, size_t{0}), 0);
  EXPECT_EQ(ctas, 4);
  int grid = 0, block = 0;
  EXPECT_EQ(
      cu("cuOccupancyMaxPotentialBlockSize", &grid, &block, step_, static_cast<size_t (*)(int)>(nullptr), size_t{0}, 0),
      0);
  EXPECT_EQ(block, 1024);
  EXPECT_EQ(grid, 132);
  size_t smem = 0;  // 228 KiB for 4 CTAs, minus 1 KiB each
  EXPECT_EQ(cu("cuOccupancyAvailableDynamicSMemPerBlock", &smem, step_, 4, 256), 0);
  EXPECT_EQ(smem, 56u * 1024);
  EXPECT_EQ(cu("cuOccupancyAvailableDynamicSMemPerBlock", &smem, step_, 5, 256), 1);
  const std::string asked = home_.read("asked");
  EXPECT_NE(asked.find("-v -arch=sm_90 -o /dev/null "), std::string::npos) << asked;
  EXPECT_EQ(std::count(asked.begin(), asked.end(), '\n'), 1) << "once for a module";
  unsetenv("ROOFGEN_PTXAS");
}

TEST_F(Calls, WithoutPtxasRegistersAreNotKnown) {
  setenv("ROOFGEN_PTXAS", "/nowhere/ptxas", 1);
  int registers = 0, ctas = 0;
  EXPECT_EQ(cu("cuFuncGetAttribute", &registers, 4, step_), 801);
  EXPECT_NE(home_.read("log").find("no register counts"), std::string::npos);
  EXPECT_EQ(cu("cuOccupancyMaxActiveBlocksPerMultiprocessor", &ctas, step_, 256, size_t{0}), 0);
  EXPECT_EQ(ctas, 8);
  unsetenv("ROOFGEN_PTXAS");
}

/// The registers of a CTA must fit the SM: whole warps on each of its four schedulers.
TEST_F(Calls, ALaunchThatNeedsTooManyRegistersIsRefused) {
  const Address y = allocate(4096);
  unsigned n = 0, one = 1;
  const auto launch = [&](Handle step, unsigned threads) {
    Address at = y;
    KernelNodeParams p = step_params(at, n, one, one);
    return cu("cuLaunchKernel", step, 1u, 1u, 1u, threads, 1u, 1u, 0u, Handle{}, p.args, static_cast<void**>(nullptr));
  };
  struct Case {
    int registers, threads;
  };
  for (const auto& [registers, threads] : {Case{255, 256}, Case{168, 384}, Case{80, 768}, Case{64, 1024}}) {
    use_ptxas(home_, "ptxas info    : Used " + std::to_string(registers) + " registers, used 0 barriers");
    Handle module = nullptr, step = nullptr;
    ASSERT_EQ(cu("cuModuleLoadData", &module, static_cast<const void*>(kStepPtx)), 0);
    ASSERT_EQ(cu("cuModuleGetFunction", &step, module, "step"), 0);
    int most = 0, ctas = 9;
    EXPECT_EQ(cu("cuFuncGetAttribute", &most, 0, step), 0);
    EXPECT_EQ(most, threads) << registers;
    EXPECT_EQ(launch(step, static_cast<unsigned>(threads)), 0) << registers;
    if (threads == 1024) continue;
    EXPECT_EQ(launch(step, static_cast<unsigned>(threads) + 32), 701) << registers;
    EXPECT_EQ(cu("cuOccupancyMaxActiveBlocksPerMultiprocessor", &ctas, step, threads + 32, size_t{0}), 0);
    EXPECT_EQ(ctas, 0) << registers;
  }
  EXPECT_NE(home_.read("log").find("(701): step: 288 threads of 255 registers; the registers suffice for 256 threads"),
            std::string::npos)
      << home_.read("log");
  unsetenv("ROOFGEN_PTXAS");
}

/// With and without ptxas: PTX that a GPU's driver cannot compile fails in the call that loads it.
TEST_F(Calls, InvalidPtxIsRefusedWhenItIsLoaded) {
  const auto load = [&](const std::string& ptx, std::string* log = nullptr) {
    char text[300] = "";
    int options[] = {5, 6};  // CU_JIT_ERROR_LOG_BUFFER and its size
    void* values[] = {text, reinterpret_cast<void*>(sizeof text)};
    Handle module = nullptr;
    const int status = cu("cuModuleLoadDataEx", &module, static_cast<const void*>(ptx.c_str()), 2u, &options[0],
                          static_cast<void**>(values));
    if (log) *log = text;
    return status;
  };
  const auto with = [](const std::string& before, const std::string& line) {
    std::string ptx = kStepPtx;
    return ptx.replace(ptx.find(before), before.size(), line);
  };
  const std::string mad = "mad.lo.s32 %r9, %r8, %r2, %r3;";
  setenv("ROOFGEN_PTXAS", "/nowhere/ptxas", 1);
  std::string log;
  EXPECT_EQ(load(with("mad.lo.s32 %r9", "frob.lo.s32 %r9"), &log), 218);
  EXPECT_EQ(log, "module.ptx:23: unknown instruction 'frob.lo.s32'");
  EXPECT_EQ(load(with(mad, ".shared .b8 big[49156]; mov.u32 %r9, big;"), &log), 218);
  EXPECT_EQ(log, "step: 49156 bytes of static shared memory; a kernel can have 49152");
  EXPECT_EQ(load(with(mad, ".shared .b8 big[49152]; mov.u32 %r9, big;")), 0);
  // An instruction that only the simulator refuses.
  const std::string video = with(mad, "vadd4.s32.s32.s32 %r9, %r8, %r2, %r3;");
  EXPECT_EQ(load(video), 0);
  use_ptxas(home_, "ptxas info    : Used 64 registers, used 0 barriers");
  EXPECT_EQ(load(video), 0);
  Handle module = nullptr, step = nullptr;
  ASSERT_EQ(cu("cuModuleLoadData", &module, static_cast<const void*>(video.c_str())), 0);
  EXPECT_EQ(cu("cuModuleGetFunction", &step, module, "step"), 801);
  use_ptxas(home_, "ptxas /dev/stdin, line 22; error   : Unknown modifier '.s33'");
  EXPECT_EQ(load(with(mad, "add.s33 %r9, %r8, %r2;"), &log), 218);
  EXPECT_EQ(log, "module.ptx:22: ptxas: Unknown modifier '.s33'");
  unsetenv("ROOFGEN_PTXAS");
}

}  // namespace
}  // namespace roofgen::test::calls_test

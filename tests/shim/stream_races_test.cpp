// Races between streams: each case has a half that nothing orders and a half that something does.
#include <algorithm>

#include "tests/shim/calls.h"

namespace roofgen::test::stream_races_test {
namespace {

/// A kernel of arrays x and y: %rd1 and %rd2 are their addresses, %rd3 and %rd4 those of the element of thread %r1.
std::string kernel(const std::string& name, const std::string& body) {
  return ".visible .entry " + name + R"((.param .u64 p_x, .param .u64 p_y)
{
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p_x];
  ld.param.u64 %rd2, [p_y];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd5, %r1, 4;
  add.s64 %rd3, %rd1, %rd5;
  add.s64 %rd4, %rd2, %rd5;
)" + body +
         "$done:\n  ret;\n}\n";
}

/// 64 threads. fill: y[i] = i. copy: y[i] = x[i]. count: an atomic sum in y[0]. signal: x[i] = i, and then y[0] = 1
/// with a release; take: waits for y[0], and reads x[i]. lock: x[0] is changed while y[0] is held.
const std::string kKernels = ".version 8.0\n.target sm_80\n.address_size 64\n" +
                             kernel("fill", "  st.global.u32 [%rd4], %r1;\n") +
                             kernel("copy", "  ld.global.u32 %r2, [%rd3];\n  st.global.u32 [%rd4], %r2;\n") +
                             kernel("count", "  red.global.add.u32 [%rd2], 1;\n") + kernel("signal", R"(
  st.global.u32 [%rd3], %r1;
  bar.sync 0;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $done;
  fence.acq_rel.gpu;
  mov.u32 %r2, 1;
  st.release.gpu.global.u32 [%rd2], %r2;
)") + kernel("take", R"($again:
  ld.acquire.gpu.global.u32 %r2, [%rd2];
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra $again;
  ld.global.u32 %r2, [%rd3];
)") + kernel("lock", R"(
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra $done;
$again:
  atom.acquire.gpu.global.cas.b32 %r2, [%rd2], 0, 1;
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra $again;
  ld.global.u32 %r3, [%rd1];
  add.u32 %r3, %r3, 1;
  st.global.u32 [%rd1], %r3;
  atom.release.gpu.global.exch.b32 %r2, [%rd2], 0;
)");

constexpr size_t kBytes = 256;
constexpr unsigned kNonBlocking = 1;
const Handle kLegacy = nullptr;

class StreamRaces : public Calls {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(Calls::SetUp());
    ASSERT_EQ(cu("cuModuleLoadData", &kernels_, static_cast<const void*>(kKernels.c_str())), 0);
    ASSERT_EQ(cu("cuEventCreate", &event_, 0u), 0);
    x_ = allocate(kBytes), y_ = allocate(kBytes), z_ = allocate(kBytes);
    for (const Address at : {x_, y_, z_}) ASSERT_EQ(cu("cuMemsetD32_v2", at, 0u, kBytes / 4), 0);
    wait();
    a_ = stream(kNonBlocking), b_ = stream(kNonBlocking);
  }
  Handle stream(unsigned flags) {
    Handle made = nullptr;
    EXPECT_EQ(cu("cuStreamCreate", &made, flags), 0);
    return made;
  }
  void launch(const char* kernel, Handle stream, Address x, Address y) {
    Handle function = nullptr;
    EXPECT_EQ(cu("cuModuleGetFunction", &function, kernels_, kernel), 0);
    void* args[] = {&x, &y};
    EXPECT_EQ(cu("cuLaunchKernel", function, 1u, 1u, 1u, 64u, 1u, 1u, 0u, stream, static_cast<void**>(args),
                 static_cast<void**>(nullptr)),
              0);
  }
  void fill(Handle stream, Address y) { launch("fill", stream, y, y); }
  void copy(Handle stream, Address x, Address y) { launch("copy", stream, x, y); }
  void record(Handle stream) { EXPECT_EQ(cu("cuEventRecord", event_, stream), 0); }
  void wait_event(Handle stream) { EXPECT_EQ(cu("cuStreamWaitEvent", stream, event_, 0u), 0); }
  void wait() { EXPECT_EQ(cu("cuCtxSynchronize"), 0); }
  /// What was found since the last time, and forgets it: a reset would forget the handles too.
  std::vector<std::string> found() {
    wait();
    std::vector<std::string> out;
    std::istringstream log(home_.read("log"));
    size_t number = 0;
    for (std::string line; std::getline(log, line);)
      if (const size_t at = line.find("finding "); at != line.npos && ++number > seen_) out.push_back(line.substr(at));
    seen_ += out.size();
    return out;
  }
  void expect_race(const std::string& text) {
    const auto all = found();
    ASSERT_EQ(all.size(), 1u) << text << testing::PrintToString(all);
    EXPECT_EQ(all[0], "finding race: " + text + ": no event or synchronisation orders them");
  }
  void expect_none() { EXPECT_EQ(found(), std::vector<std::string>()); }

  Handle kernels_ = nullptr, event_ = nullptr, a_ = nullptr, b_ = nullptr;
  Address x_ = 0, y_ = 0, z_ = 0;
  size_t seen_ = 0;
};

const std::string kByte = "byte 0 of an allocation of 256 bytes";

TEST_F(StreamRaces, AreFoundOnceForEachPairOfKernels) {
  for (int i = 0; i < 3; ++i) fill(a_, x_), copy(b_, x_, y_);
  const auto all = found();
  ASSERT_EQ(all.size(), 2u) << testing::PrintToString(all);
  EXPECT_EQ(all[0], "finding race: copy in stream 2 reads " + kByte +
                        ", which fill in stream 1 writes: no event or synchronisation orders them");
  EXPECT_EQ(all[1], "finding race: fill in stream 1 writes " + kByte +
                        ", which copy in stream 2 reads: no event or synchronisation orders them");
  fill(a_, x_), copy(b_, x_, y_);
  expect_none();
}

TEST_F(StreamRaces, ReadersAndOtherBytesAreNone) {
  copy(a_, x_, y_), copy(b_, x_, z_), copy(stream(0), x_, allocate(kBytes));
  expect_none();
  const Address both = allocate(2 * kBytes);
  fill(a_, both), fill(b_, both + kBytes);
  expect_none();
  fill(a_, both), fill(b_, both + kBytes - 4);
  expect_race("fill in stream 2 writes byte 252 of an allocation of 512 bytes, which fill in stream 1 writes");
}

TEST_F(StreamRaces, AnEventOrders) {
  fill(a_, x_), record(a_), wait_event(b_), copy(b_, x_, y_);
  expect_none();
  // What the stream does behind the record is not ordered, nor is a wait in another stream.
  record(a_), fill(a_, x_), wait_event(b_), copy(b_, x_, y_);
  expect_race("copy in stream 2 reads " + kByte + ", which fill in stream 1 writes");
}

TEST_F(StreamRaces, AnotherEventOrdersNothing) {
  Handle other = nullptr;
  ASSERT_EQ(cu("cuEventCreate", &other, 0u), 0);
  fill(a_, x_), record(a_);
  EXPECT_EQ(cu("cuEventRecord", other, b_), 0);
  EXPECT_EQ(cu("cuStreamWaitEvent", b_, other, 0u), 0);
  copy(b_, x_, y_);
  expect_race("copy in stream 2 reads " + kByte + ", which fill in stream 1 writes");
}

TEST_F(StreamRaces, AnEventOrdersThroughAThirdStream) {
  const Handle c = stream(kNonBlocking);
  fill(a_, x_), record(a_), wait_event(c), record(c), wait_event(b_), copy(b_, x_, y_);
  expect_none();
}

TEST_F(StreamRaces, TheDefaultStreamOrdersBlockingStreams) {
  const Handle c = stream(0), d = stream(0);
  fill(kLegacy, x_), copy(c, x_, y_), copy(kLegacy, y_, z_);
  fill(c, x_), copy(kLegacy, y_, z_), copy(d, x_, y_);
  expect_none();
  fill(kLegacy, x_), copy(b_, x_, y_);
  expect_race("copy in stream 2 reads " + kByte + ", which fill in the default stream writes");
  const Handle per_thread = reinterpret_cast<Handle>(uintptr_t{2});
  fill(kLegacy, x_), copy(per_thread, x_, y_);
  expect_none();
}

TEST_F(StreamRaces, BlockingStreamsDoNotOrderEachOther) {
  const Handle per_thread = reinterpret_cast<Handle>(uintptr_t{2});
  fill(stream(0), x_), copy(per_thread, x_, y_);
  expect_race("copy in a default stream of a thread reads " + kByte + ", which fill in stream 3 writes");
}

TEST_F(StreamRaces, CopiesAndMemsetsAreWork) {
  fill(a_, x_);
  ASSERT_EQ(cu("cuMemcpyDtoDAsync_v2", y_, x_, kBytes, b_), 0);
  expect_race("a copy in stream 2 reads " + kByte + ", which fill in stream 1 writes");
  ASSERT_EQ(cu("cuMemsetD8Async", x_ + 64, static_cast<unsigned char>(1), size_t{4}, a_), 0);
  copy(b_, x_, y_);
  expect_race("copy in stream 2 reads byte 64 of an allocation of 256 bytes, which a memset in stream 1 writes");
  // A memset without a stream does not wait; neither does a stream that is not blocking for it.
  ASSERT_EQ(cu("cuMemsetD32_v2", z_, 0u, kBytes / 4), 0);
  fill(a_, z_);
  expect_race("fill in stream 1 writes " + kByte + ", which a memset in the default stream writes");
  ASSERT_EQ(cu("cuMemsetD32_v2", z_, 0u, kBytes / 4), 0);
  fill(stream(0), z_);
  expect_none();
}

TEST_F(StreamRaces, ACopyBetweenHostAndDeviceWaitsForItsStreamOnly) {
  std::vector<unsigned> host(kBytes / 4, 3);
  void* const to = host.data();
  const void* const from = host.data();
  ASSERT_EQ(cu("cuMemcpyHtoD_v2", x_, from, kBytes), 0);
  copy(a_, x_, y_);
  expect_none();
  fill(a_, x_);
  ASSERT_EQ(cu("cuMemcpyDtoH_v2", to, x_, kBytes), 0);
  expect_race("a copy in the default stream reads " + kByte + ", which fill in stream 1 writes");
  fill(a_, x_);
  ASSERT_EQ(cu("cuStreamSynchronize", a_), 0);
  ASSERT_EQ(cu("cuMemcpyDtoH_v2", to, x_, kBytes), 0);
  expect_none();
  ASSERT_EQ(cu("cuMemcpyHtoDAsync_v2", x_, from, kBytes, a_), 0);
  copy(b_, x_, y_);
  expect_race("copy in stream 2 reads " + kByte + ", which a copy in stream 1 writes");
  // The host knows the end of a copy to pageable memory, not of one to page-locked memory.
  copy(a_, y_, z_);
  ASSERT_EQ(cu("cuMemcpyDtoHAsync_v2", to, z_, kBytes, a_), 0);
  fill(b_, z_);
  expect_none();
  void* locked = nullptr;
  ASSERT_EQ(cu("cuMemHostAlloc", &locked, kBytes, 0u), 0);
  copy(a_, y_, z_);
  ASSERT_EQ(cu("cuMemcpyDtoHAsync_v2", locked, z_, kBytes, a_), 0);
  fill(b_, z_);
  const auto all = found();
  ASSERT_EQ(all.size(), 2u) << testing::PrintToString(all);
  EXPECT_EQ(cu("cuMemFreeHost", locked), 0);
}

TEST_F(StreamRaces, TheHostOrders) {
  fill(a_, x_);
  ASSERT_EQ(cu("cuStreamSynchronize", a_), 0);
  copy(b_, x_, y_), wait();
  fill(a_, x_), record(a_);
  ASSERT_EQ(cu("cuEventSynchronize", event_), 0);
  copy(b_, x_, y_), wait();
  fill(a_, x_), record(a_);
  while (cu("cuEventQuery", event_) == 600) continue;
  copy(b_, x_, y_), wait();
  fill(a_, x_);
  while (cu("cuStreamQuery", a_) == 600) continue;
  copy(b_, x_, y_), wait();
  fill(a_, x_), wait(), copy(b_, x_, y_), wait();
  int called = 0;
  fill(a_, x_);
  ASSERT_EQ(cu(
                "cuLaunchHostFunc", a_, +[](void* n) { ++*static_cast<int*>(n); }, static_cast<void*>(&called)),
            0);
  EXPECT_EQ(called, 1) << "the program may have waited for it";
  copy(b_, x_, y_);
  expect_none();
  fill(a_, x_);
  ASSERT_EQ(cu("cuStreamSynchronize", b_), 0);
  copy(b_, x_, y_);
  expect_race("copy in stream 2 reads " + kByte + ", which fill in stream 1 writes");
}

TEST_F(StreamRaces, AllocationsAndFreesAreWork) {
  Address p = 0;
  ASSERT_EQ(cu("cuMemAllocAsync", &p, kBytes, a_), 0);
  record(a_), wait_event(b_), fill(b_, p), record(b_), wait_event(a_);
  ASSERT_EQ(cu("cuMemFreeAsync", p, a_), 0);
  expect_none();
  ASSERT_EQ(cu("cuMemAllocAsync", &p, kBytes, a_), 0);
  fill(b_, p);
  ASSERT_EQ(cu("cuMemFreeAsync", p, a_), 0);
  const auto all = found();
  ASSERT_EQ(all.size(), 2u) << testing::PrintToString(all);
  EXPECT_NE(all[0].find("fill in stream 2 writes " + kByte + ", which cuMemAllocAsync in stream 1 allocates: "),
            std::string::npos)
      << all[0];
  EXPECT_NE(all[1].find("cuMemFreeAsync in stream 1 frees " + kByte + ", which fill in stream 2 writes: "),
            std::string::npos)
      << all[1];
  const Address q = allocate(kBytes);
  fill(a_, q);
  ASSERT_EQ(cu("cuMemFree_v2", q), 0);
  copy(b_, x_, y_);
  expect_none();
}

TEST_F(StreamRaces, AtomicsAndLocksAndFlagsOrder) {
  launch("count", a_, x_, x_), launch("count", b_, x_, x_);
  expect_none();
  launch("count", a_, x_, x_), copy(b_, x_, y_);
  expect_race("copy in stream 2 reads " + kByte + ", which count in stream 1 writes");
  launch("signal", a_, y_, z_), launch("take", b_, y_, z_);
  expect_none();
  ASSERT_EQ(cu("cuMemsetD32_v2", z_, 0u, kBytes / 4), 0);
  wait();
  launch("lock", a_, x_, z_), launch("lock", b_, x_, z_);
  expect_none();
}

TEST_F(StreamRaces, GraphsAreOrderedByTheirEdges) {
  const auto launch_graph = [&](bool edge, Handle stream) {
    Handle graph = nullptr, exec = nullptr, first = nullptr, second = nullptr, function = nullptr;
    EXPECT_EQ(cu("cuGraphCreate", &graph, 0u), 0);
    void* args[] = {&x_, &y_};
    void* fill_args[] = {&y_, &x_};
    KernelNodeParams p{nullptr, 1, 1, 1, 64, 1, 1, 0, fill_args, nullptr, nullptr, nullptr};
    EXPECT_EQ(cu("cuModuleGetFunction", &function, kernels_, "fill"), 0);
    p.function = function;
    EXPECT_EQ(cu("cuGraphAddKernelNode_v2", &first, graph, kNone, size_t{0}, ref(p)), 0);
    EXPECT_EQ(cu("cuModuleGetFunction", &function, kernels_, "copy"), 0);
    p.function = function, p.args = args;
    EXPECT_EQ(cu("cuGraphAddKernelNode_v2", &second, graph, ref(first), size_t{edge ? 1u : 0u}, ref(p)), 0);
    EXPECT_EQ(cu("cuGraphInstantiateWithFlags", &exec, graph, 0ull), 0);
    EXPECT_EQ(cu("cuGraphLaunch", exec, stream), 0);
  };
  launch_graph(true, a_);
  expect_none();
  launch_graph(false, a_);
  expect_race("copy in a graph in stream 1 reads " + kByte + ", which fill in a graph in stream 1 writes");
  // Towards other work it is one piece.
  launch_graph(true, a_), copy(a_, y_, z_), record(a_), wait_event(b_), fill(b_, y_);
  expect_none();
  ASSERT_EQ(cu("cuMemsetD8Async", y_, static_cast<unsigned char>(1), size_t{4}, b_), 0);
  launch_graph(true, a_);
  expect_race("copy in stream 1 writes " + kByte + ", which a memset in stream 2 writes");
}

TEST_F(StreamRaces, ChildGraphsAreBehindWhatTheyFollow) {
  // A memset of x in a child graph, and one of x beside or behind it.
  for (const bool edge : {true, false}) {
    Handle inner = nullptr, graph = nullptr, exec = nullptr, node = nullptr, child = nullptr;
    ASSERT_EQ(cu("cuGraphCreate", &inner, 0u), 0);
    ASSERT_EQ(cu("cuGraphCreate", &graph, 0u), 0);
    const MemsetNodeParams p = {x_, kBytes, 1, 4, kBytes / 4, 1};
    const auto add = [&](Handle to, Handle* after, size_t count) {
      EXPECT_EQ(cu("cuGraphAddMemsetNode", &node, to, static_cast<const Handle*>(after), count, ref(p), context_), 0);
    };
    add(inner, nullptr, 0);
    ASSERT_EQ(cu("cuGraphAddChildGraphNode", &child, graph, kNone, size_t{0}, inner), 0);
    add(graph, &child, edge);
    ASSERT_EQ(cu("cuGraphInstantiateWithFlags", &exec, graph, 0ull), 0);
    ASSERT_EQ(cu("cuGraphLaunch", exec, a_), 0);
    if (edge)
      expect_none();
    else
      expect_race("a memset in a graph in stream 1 writes " + kByte + ", which a memset in a graph in stream 1 writes");
  }
}

TEST_F(StreamRaces, WorkWithoutAWaitOfTheHostIsBounded) {
  for (int i = 0; i < 600; ++i) fill(a_, x_), record(a_), wait_event(b_), copy(b_, x_, y_), record(b_), wait_event(a_);
  fill(a_, x_), copy(b_, x_, y_);
  expect_race("copy in stream 2 reads " + kByte + ", which fill in stream 1 writes");
  EXPECT_NE(home_.read("log").find("races between streams: "), std::string::npos);
}

}  // namespace
}  // namespace roofgen::test::stream_races_test

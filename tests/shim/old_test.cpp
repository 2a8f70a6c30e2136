// Calls of older programs: contexts by attach and detach, launches whose arguments belong to the function, and graph
// nodes that get their grid later.
#include "tests/shim/calls.h"

namespace roofgen::test::old_test {
namespace {

class Old : public Calls {
 protected:
  void set(int offset, const void* from, unsigned bytes) {
    EXPECT_EQ(cu("cuParamSetv", step_, offset, const_cast<void*>(from), bytes), 0);
  }
};

TEST_F(Old, AFunctionKeepsTheArgumentsOfItsNextLaunch) {
  const Address y = allocate(256);
  ASSERT_EQ(cu("cuMemsetD32_v2", y, 5u, size_t{64}), 0);
  EXPECT_EQ(cu("cuLaunch", step_), 1) << "no arguments yet";
  set(0, &y, 8);
  ASSERT_EQ(cu("cuParamSeti", step_, 8, 64u), 0);
  ASSERT_EQ(cu("cuParamSeti", step_, 12, 2u), 0);
  ASSERT_EQ(cu("cuParamSetf", step_, 16, 0.0f), 0);
  ASSERT_EQ(cu("cuParamSetSize", step_, 20u), 0);
  ASSERT_EQ(cu("cuFuncSetBlockShape", step_, 8, 1, 1), 0);
  ASSERT_EQ(cu("cuLaunch", step_), 0);
  std::vector<unsigned> wanted(64, 5);
  std::fill_n(wanted.begin(), 8, 10u);
  EXPECT_EQ(read(y, 64), wanted) << "one CTA";
  ASSERT_EQ(cu("cuLaunchGrid", step_, 2, 1), 0);
  ASSERT_EQ(cu("cuLaunchGridAsync", step_, 3, 1, Handle{}), 0);
  std::fill_n(wanted.begin(), 8, 40u);
  std::fill_n(wanted.begin() + 8, 8, 20u);
  std::fill_n(wanted.begin() + 16, 8, 10u);
  EXPECT_EQ(read(y, 64), wanted);
  EXPECT_EQ(cu("cuFuncSetSharedSize", step_, 49153u), 0);
  EXPECT_EQ(cu("cuLaunch", step_), 1) << "over 48 KiB";
  EXPECT_EQ(cu("cuLaunchGrid", step_, 0, 1), 1);
  EXPECT_EQ(cu("cuFuncSetBlockShape", step_, 0, 1, 1), 1);
}

TEST_F(Old, ContextsAreCounted) {
  Handle context = nullptr, same = nullptr, now = nullptr;
  struct {
    const void* affinity;
    int count;
    const void* graphics;
  } params = {nullptr, 0, nullptr};
  ASSERT_EQ(cu("cuCtxCreate_v4", &context, static_cast<const void*>(&params), 0u, 0), 0);
  ASSERT_EQ(cu("cuCtxAttach", &same, 0u), 0);
  EXPECT_EQ(same, context);
  EXPECT_EQ(cu("cuCtxDetach", context), 0);
  EXPECT_EQ(cu("cuCtxGetCurrent", &now), 0);
  EXPECT_EQ(now, context) << "still in use";
  EXPECT_EQ(cu("cuCtxDetach", context_), 201) << "not current";
  EXPECT_EQ(cu("cuCtxDetach", context), 0);
  EXPECT_EQ(cu("cuCtxGetCurrent", &now), 0);
  EXPECT_EQ(now, context_);
  EXPECT_EQ(cu("cuCtxDetach", context_), 201) << "the primary one was not attached";
  params.count = 1;
  EXPECT_EQ(cu("cuCtxCreate_v4", &context, static_cast<const void*>(&params), 0u, 0), 801);
}

TEST_F(Old, AGraphNodeGetsItsGridLater) {
  Address y = allocate(64);
  ASSERT_EQ(cu("cuMemsetD32_v2", y, 5u, size_t{16}), 0);
  unsigned n = 16, two = 2, three = 3;
  KernelNodeParams p = step_params(y, n, two, three);
  p.grid_x = 0;
  Handle graph = nullptr, node = nullptr, exec = nullptr;
  ASSERT_EQ(cu("cuGraphCreate", &graph, 0u), 0);
  ASSERT_EQ(cu("cuGraphAddKernelNode_v2", &node, graph, kNone, size_t{0}, ref(p)), 0);
  ASSERT_EQ(cu("cuGraphInstantiateWithFlags", &exec, graph, 0ull), 0);
  EXPECT_EQ(cu("cuGraphLaunch", exec, Handle{}), 1) << "still empty";
  p.grid_x = 1;
  ASSERT_EQ(cu("cuGraphExecKernelNodeSetParams_v2", exec, node, ref(p)), 0);
  ASSERT_EQ(cu("cuGraphLaunch", exec, Handle{}), 0);
  EXPECT_EQ(read(y, 16), std::vector<unsigned>(16, 13));
  p.grid_x = 0;
  EXPECT_EQ(cu("cuLaunchKernel", step_, 0u, 1u, 1u, 32u, 1u, 1u, 0u, Handle{}, p.args, static_cast<void**>(nullptr)),
            1);
}

}  // namespace
}  // namespace roofgen::test::old_test

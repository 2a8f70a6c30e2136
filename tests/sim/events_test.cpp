// A listener of its own, as a model of time would be: it records one warp's instructions with their class, their lanes
// and the instructions that they depend on, and what they do to memory and barriers.
#include "runtime/sim/events.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support.h"

namespace roofgen::sim_test::events_test {
namespace {

class Recorder final : public sim::Listener {
 public:
  Recorder(uint32_t warp, DevicePtr base) : warp_(warp), base_(base.address) {}
  const std::string& text() const { return text_; }

  using sim::Listener::on;
  void on(const sim::CtaBegin& e) override {
    kernel_ = &e.kernel;
    line("CTA {}: {} warps, {} bytes of shared memory", e.cta, e.warps, e.shared_bytes);
  }
  void on(const sim::CtaEnd& e) override { line("CTA {} ends", e.ordinal); }
  void on(const sim::Issue& e) override {
    if (e.site.warp != warp_) return;
    std::set<int> needs;
    const auto each = [&](bool defs, auto f) {
      for (uint32_t i = kernel_->operand_begin[e.site.pc]; i < kernel_->operand_begin[e.site.pc + 1]; ++i)
        if (const sim::Operand& o = kernel_->operands[i]; o.is_def == defs) f(std::pair(o.is_pred, o.reg));
    };
    each(false, [&](auto reg) {
      if (written_by_.count(reg)) needs.insert(written_by_[reg]);
    });
    each(true, [&](auto reg) { written_by_[reg] = issued_; });
    std::string after;
    for (int n : needs) after += fmt::format(" {}", n);
    line("{}: class {}, lanes {:08x}{}{}", issued_++, static_cast<int>(e.site.inst.cls), e.mask,
         after.empty() ? "" : ", after", after);
  }
  void on(const sim::SharedAccess& e) override {
    if (e.site.warp == warp_ && e.is_request) request("shared", e, e.offset[first(e)], e.offset[last(e)]);
  }
  void on(const sim::DeviceAccess& e) override {
    if (e.site.warp == warp_ && e.is_request)
      request("device", e, e.address_of(first(e)) - base_, e.address_of(last(e)) - base_);
  }
  void on(const sim::AsyncCommit& e) override {
    if (e.site.warp == warp_) line("  commit");
  }
  void on(const sim::AsyncLand& e) override {
    if (e.warp == warp_) line("  {} pieces of {} bytes land from {}", e.offsets.size(), e.bytes, e.offsets[0]);
  }
  void on(const sim::AsyncWait& e) override {
    if (e.site.warp == warp_) line("  wait, {} instructions after the copy", e.distance);
  }
  void on(const sim::BarrierArrive& e) override { line("  warp {} arrives at barrier {}", e.site.warp, e.id); }
  void on(const sim::BarrierRelease& e) override { line("  barrier {} releases warps {:x}", e.id, e.warps); }
  void on(const sim::Fence& e) override {
    if (e.site.warp == warp_) line("  fence");
  }
  void on(const sim::PhaseArrive& e) override { line("  warp {} arrives at the mbarrier at {}", e.warp, e.barrier); }
  void on(const sim::PhaseComplete& e) override { line("  a phase of the mbarrier at {} completes", e.barrier); }
  void on(const sim::PhasePass& e) override { line("  warp {} passes the mbarrier at {}", e.site.warp, e.barrier); }
  void on(const sim::Exponentials& e) override {
    if (e.site.warp == warp_) line("  ex2 in {:08x}", e.mask);
  }
  void on(const sim::LanesExit& e) override {
    if (e.site.warp == warp_) line("  lanes {:08x} exit", e.mask);
  }

 private:
  static uint32_t first(const sim::Access& e) { return sim::first_lane(e.mask); }
  static uint32_t last(const sim::Access& e) { return 31 - static_cast<uint32_t>(__builtin_clz(e.mask)); }
  void request(const char* memory, const sim::Access& e, uint64_t from, uint64_t to) {
    constexpr const char* kNames[] = {"read", "write", "atomic", "copy"};
    line("  {} {}: {} bytes a lane, {} to {}", memory, kNames[static_cast<int>(e.op)], e.bytes, from, to);
  }
  template <class... T>
  void line(fmt::format_string<T...> format, T&&... values) {
    text_ += fmt::format(format, std::forward<T>(values)...) + "\n";
  }

  uint32_t warp_;
  uint64_t base_;
  const sim::Kernel* kernel_ = nullptr;
  int issued_ = 0;
  std::map<std::pair<bool, uint32_t>, int> written_by_;
  std::string text_;
};

TEST(Events, AListenerHearsAWarp) {
  Bench bench;
  ASSERT_EQ(bench.load(kernel_text(1, R"(
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 16;
    add.s64 %rd3, %rd1, %rd2;
    shl.b32 %r2, %r1, 4;
    mov.u32 %r3, smem;
    add.s32 %r4, %r3, %r2;
    cp.async.cg.shared.global [%r4+64], [%rd3], 16;
    cp.async.commit_group;
    cp.async.wait_group 0;
    setp.eq.u32 %p1, %r1, 32;
    @%p1 mbarrier.init.shared.b64 [%r3], 1;
    bar.sync 0;
    ld.shared.f32 %f1, [%r4+64];
    ex2.approx.ftz.f32 %f2, %f1;
    st.global.f32 [%rd3], %f2;
    membar.cta;
    @%p1 mbarrier.arrive.shared.b64 %rd4, [%r3];
    @%p1 mbarrier.try_wait.parity.shared.b64 %p2, [%r3], 0;
    @%p1 atom.shared.add.u32 %r5, [%r4+64], 0;
)",
                                   ".extern .shared .align 128 .b8 smem[];\n")),
            "");
  const DevicePtr data = bench.buffer(std::vector<float>(256, 1));
  Recorder recorder(1, data);
  RunOptions options;
  options.listener = &recorder;
  options.threads = 4;  // a listener hears one CTA after the other
  options.worth_threads = 0;
  const RunResult r = bench.arg(data).run({1, 1, 1}, {64, 1, 1}, 2048, options);
  EXPECT_EQ(recorder.text(), R"(CTA 0: 2 warps, 2048 bytes of shared memory
  warp 0 arrives at barrier 0
0: class 5, lanes ffffffff
1: class 5, lanes ffffffff
2: class 0, lanes ffffffff, after 1
3: class 0, lanes ffffffff, after 0 2
4: class 0, lanes ffffffff, after 1
5: class 5, lanes ffffffff
6: class 0, lanes ffffffff, after 4 5
7: class 13, lanes ffffffff, after 3 6
  shared copy: 16 bytes a lane, 576 to 1072
  device read: 16 bytes a lane, 512 to 1008
8: class 13, lanes ffffffff
  commit
9: class 13, lanes ffffffff
  32 pieces of 16 bytes land from 576
  wait, 2 instructions after the copy
10: class 7, lanes ffffffff, after 1
11: class 14, lanes 00000001, after 5 10
12: class 14, lanes ffffffff
  warp 1 arrives at barrier 0
  barrier 0 releases warps 3
13: class 17, lanes ffffffff, after 6
  shared read: 4 bytes a lane, 576 to 1072
14: class 9, lanes ffffffff, after 13
  ex2 in ffffffff
15: class 16, lanes ffffffff, after 3 14
  device write: 4 bytes a lane, 512 to 1008
16: class 6, lanes ffffffff
  fence
17: class 14, lanes 00000001, after 5 10
  warp 1 arrives at the mbarrier at 0
  a phase of the mbarrier at 0 completes
18: class 14, lanes 00000001, after 5 10
  warp 1 passes the mbarrier at 0
19: class 20, lanes 00000001, after 6 10
  shared atomic: 4 bytes a lane, 576 to 576
20: class 6, lanes ffffffff
  lanes ffffffff exit
CTA 0 ends
)");
  EXPECT_TRUE(r.findings.empty());
}

}  // namespace
}  // namespace roofgen::sim_test::events_test

// A listener of its own, as a model of time would be: it records one warp's instructions with their class, their lanes
// and the instructions that they depend on, and what they do to memory and barriers.
#include "runtime/sim/events.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "support.h"

namespace roofgen::sim_test {
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
    if (e.site.warp == warp_ && e.is_request)
      line("  shared {}: {} bytes a lane at {}, {}, ...", name(e.op), e.bytes, e.offset[0], e.offset[1]);
  }
  void on(const sim::DeviceAccess& e) override {
    if (e.site.warp == warp_ && e.is_request)
      line("  device {}: {} bytes a lane at {}, {}, ...", name(e.op), e.bytes, e.address_of(0) - base_,
           e.address_of(1) - base_);
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
  void on(const sim::PhasePass& e) override { line("  warp {} passes the mbarrier at {}", e.warp, e.barrier); }
  void on(const sim::Exponentials& e) override {
    if (e.site.warp == warp_) line("  ex2 in {:08x}", e.mask);
  }
  void on(const sim::LanesExit& e) override {
    if (e.site.warp == warp_) line("  lanes {:08x} exit", e.mask);
  }

 private:
  static const char* name(sim::Op op) {
    constexpr const char* kNames[] = {"read", "write", "atomic", "copy"};
    return kNames[static_cast<int>(op)];
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
    @%p1 atom.shared.add.u32 %r5, [%r3+32], 0;
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
  EXPECT_EQ(recorder.text(), R"()");
  EXPECT_EQ(r.findings.size(), 1u);
}

}  // namespace
}  // namespace roofgen::sim_test

#include "runtime/cuda/helpers.h"

namespace roofgen::cuda {

const char* const kHelperPtx = R"(.version 7.0
.target sm_80
.address_size 64

.visible .entry roofgen_gate(.param .u64 gate_ns)
{
  .reg .pred %p<2>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [gate_ns];
  mov.u64 %rd2, %globaltimer;
GATE_WAIT:
  mov.u64 %rd3, %globaltimer;
  sub.s64 %rd4, %rd3, %rd2;
  setp.lt.u64 %p1, %rd4, %rd1;
  @%p1 bra GATE_WAIT;
  ret;
}

.visible .entry roofgen_stamp(.param .u64 stamp_to, .param .u32 stamp_capacity)
{
  .reg .pred %p<5>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<7>;
  ld.param.u64 %rd1, [stamp_to];
  ld.param.u32 %r1, [stamp_capacity];
  mov.u32 %r2, %smid;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra STAMP_END;
  mov.u32 %r3, 0;
  mov.u64 %rd2, %globaltimer;
STAMP_WAIT:
  mov.u64 %rd3, %globaltimer;
  mov.u64 %rd4, %clock64;
  add.s32 %r3, %r3, 1;
  setp.eq.s64 %p2, %rd3, %rd2;
  setp.lt.u32 %p3, %r3, 16384;
  and.pred %p4, %p2, %p3;
  @%p4 bra STAMP_WAIT;
  mul.wide.u32 %rd5, %r2, 16;
  add.s64 %rd6, %rd1, %rd5;
  st.global.u64 [%rd6], %rd4;
  st.global.u64 [%rd6+8], %rd3;
STAMP_END:
  ret;
}

.visible .entry roofgen_sweep(.param .u64 sweep_base, .param .u64 sweep_lines, .param .u32 sweep_write)
{
  .reg .pred %p<5>;
  .reg .b32 %r<16>;
  .reg .b64 %rd<9>;
  ld.param.u64 %rd1, [sweep_base];
  ld.param.u64 %rd2, [sweep_lines];
  ld.param.u32 %r1, [sweep_write];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, %nctaid.x;
  mul.wide.u32 %rd3, %r2, %r3;
  cvt.u64.u32 %rd4, %r4;
  add.s64 %rd3, %rd3, %rd4;
  mul.wide.u32 %rd5, %r5, %r3;
  setp.ne.u32 %p1, %r1, 0;
  mov.u32 %r14, 0;
  mov.u64 %rd7, %rd1;
  setp.ge.u64 %p2, %rd3, %rd2;
  @%p2 bra SWEEP_END;
SWEEP_NEXT:
  shl.b64 %rd6, %rd3, 4;
  add.s64 %rd7, %rd1, %rd6;
  ld.global.v4.u32 {%r6, %r7, %r8, %r9}, [%rd7];
  @!%p1 bra SWEEP_READ;
  add.s32 %r10, %r6, 1;
  st.global.v4.u32 [%rd7], {%r10, %r7, %r8, %r9};
  bra SWEEP_STEP;
SWEEP_READ:
  or.b32 %r11, %r6, %r7;
  or.b32 %r12, %r8, %r9;
  or.b32 %r13, %r11, %r12;
  or.b32 %r14, %r14, %r13;
SWEEP_STEP:
  add.s64 %rd3, %rd3, %rd5;
  setp.lt.u64 %p2, %rd3, %rd2;
  @%p2 bra SWEEP_NEXT;
  setp.ne.u32 %p3, %r14, -1;
  @%p3 bra SWEEP_END;
  st.global.u32 [%rd7], %r14;
SWEEP_END:
  ret;
}
)";

}  // namespace roofgen::cuda

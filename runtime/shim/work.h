// Work of the simulated driver, checked when it is asked for and done when its turn comes: on a stream, or in a graph.
#pragma once

#include "runtime/shim/layouts.h"
#include "runtime/shim/state.h"

namespace roofgen::shim {

/// Why PTX was refused, into the log buffer among the caller's options (CUjit_option), cut to its size; nothing: it was
/// not.
void fill_log(const std::string& why, unsigned count, const int* options, void** values);

struct LaunchShape {
  Dim3 grid, block;
  Dim3 cluster = {0, 0, 0};  ///< 0 x 0 x 0: as the function has it
  unsigned smem_bytes = 0;
  bool cooperative = false;
};
/// A launch with its arguments, out of `args` or `extra` as cuLaunchKernel has them.
Status make_launch(State& s, const char* call, Handle function, const LaunchShape& shape, void** args, void** extra,
                   Work* out);

/// CTAs of a kernel that one SM holds at once. Where registers are not known it is what threads and shared memory
/// allow: at least the true figure.
int resident(State& s, const char* call, const Function& f, int threads, int64_t smem);

/// The same number of bytes, rows and slices at two places.
struct Box {
  struct Place {
    bool on_device = false;
    std::byte* host = nullptr;
    Address device = 0;
    size_t pitch = 0, slice = 0;  ///< bytes from a row to the next, and from a slice to the next
  };
  Place from, to;
  size_t width = 0, height = 0, depth = 0;
  bool empty() const { return width == 0 || height == 0 || depth == 0; }
};
Status make_box(State& s, const char* call, const Copy3d& copy, Box* out);
/// Moves the bytes, now.
Status move(State& s, const Box& box);
/// The work of a graph's node: it reads and writes the host when it runs.
Work move_later(State& s, const Box& box);

Status make_memset(State& s, const char* call, const MemsetNodeParams& params, Work* out);
/// The moment on the device's timeline, into an event.
Work make_record(State& s, Handle event);
Work make_host_call(HostFunction function, void* data);

}  // namespace roofgen::shim

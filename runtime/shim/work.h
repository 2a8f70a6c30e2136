// Work items of streams and graphs: arguments are checked in the call, and the work runs later.
#pragma once

#include "runtime/shim/layouts.h"
#include "runtime/shim/state.h"

namespace roofgen::shim {

/// Writes the reason for refusing PTX ("": none) to the log buffer in the caller's options (CUjit_option), truncated.
void fill_log(const std::string& why, unsigned count, const int* options, void** values);

struct LaunchShape {
  Dim3 grid, block;
  Dim3 cluster = {0, 0, 0};  ///< 0 x 0 x 0: the function's
  unsigned smem_bytes = 0;
  bool cooperative = false;
  bool overlap = false;       ///< a dependent launch
  bool may_be_empty = false;  ///< a graph node: its grid may come later
};
/// A launch with its arguments from `args` or `extra`, as in cuLaunchKernel.
Status make_launch(State& s, const char* call, Handle function, const LaunchShape& shape, void** args, void** extra,
                   Work* out);

/// Resident CTAs per SM. Without register counts an upper bound from threads and shared memory.
int resident(State& s, const char* call, const Function& f, int threads, int64_t smem);

/// A copy of `depth` slices of `height` rows of `width` bytes.
struct Box {
  struct Place {
    bool on_device = false;
    std::byte* host = nullptr;
    Address device = 0;
    size_t pitch = 0, slice = 0;  ///< bytes between rows and between slices
  };
  Place from, to;
  size_t width = 0, height = 0, depth = 0;
  bool empty() const { return width == 0 || height == 0 || depth == 0; }
};
Status make_box(State& s, const char* call, const Copy3d& copy, Box* out);
/// The device memory that it accesses.
std::vector<Area> areas_of(const Box& box);
/// Executes the copy.
Status move(State& s, const Box& box);
/// The copy as a work item, for graph nodes: it accesses host memory when it runs.
Work move_later(State& s, const Box& box);

Status make_memset(State& s, const char* call, const MemsetNodeParams& params, Work* out);
/// Records the time of the device's timeline in an event.
Work make_record(State& s, Handle event);
Work make_host_call(HostFunction function, void* data);

}  // namespace roofgen::shim

// A dispatch table: few kernels for a family of problems that differ in their sizes, such that each problem has one
// close to its own best (docs/use/dispatch.md). Nothing here runs a kernel; tuner/dispatch/family.h makes a table.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json_text.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

inline constexpr const char* kDispatchSchema = "roofgen.dispatch.1";
/// Shapes of a family at most: condense() keeps a set of them in 64 bits.
inline constexpr size_t kMostShapes = 64;

/// The sizes of a problem by name, all of them: Problem::dims.
using Sizes = std::map<std::string, int64_t>;
/// The product of the ratios of the sizes, the larger to the smaller; the C code of bundles computes the same
/// (templates/bundle/bundle.c.jinja). Infinite where a name or a sign differs.
double distance(const Sizes& a, const Sizes& b);

// ---- Condensing ----------------------------------------------------------------------------------

/// Seconds by kernel and shape; absent where the kernel cannot run.
using TimeMatrix = std::vector<std::vector<std::optional<double>>>;

struct Cover {
  std::vector<size_t> kernels;  ///< ascending
  std::vector<size_t> chosen;   ///< by shape: the fastest of `kernels` there
  bool exact = true;            ///< proven: no smaller set, and none as small with a lower sum of times
};

/// The smallest set of kernels such that each shape has one of at most (1 + within) times its least time; of equally
/// small sets that with the least sum of times. By branch and bound; where that would take too long, the best set found
/// until then, which is at least as good as the greedy one. Each shape must have a time; at most kMostShapes.
Cover condense(const TimeMatrix& seconds, double within);

// ---- The table -----------------------------------------------------------------------------------

/// An implementation of the op: one kernel, or several in launch order.
struct DispatchKernel {
  struct Stage {
    std::string name;
    std::vector<std::pair<std::string, ParamValue>> params;
    std::string digest;                     ///< of the binary
    std::vector<std::string> requirements;  ///< on the sizes, in C: where they hold the compiled code is correct
    int registers = 0;
    int64_t smem_bytes = 0;
  };
  std::string variant;
  size_t tuned_for = 0;  ///< the shape for whose sizes it was compiled
  std::vector<Stage> stages;
  size_t requirements() const;  ///< of all stages
};

struct DispatchShape {
  Problem problem;          ///< as Op::complete() leaves it
  double best_seconds = 0;  ///< the least of all kernels that were timed at this shape
  size_t kernel = 0;        ///< the chosen one, of the table
  double seconds = 0;       ///< of the chosen kernel
  double ratio() const { return seconds / best_seconds; }
};

struct DispatchTable {
  std::string device, executor, arch, compiler, release;
  Origin origin = Origin::kModel;  ///< of all times: a table never mixes origins or models
  std::string time_model;          ///< "event model", "closed form"; empty: measured
  double within = 0;
  bool exact = true;  ///< as in Cover
  std::vector<DispatchKernel> kernels;
  std::vector<DispatchShape> shapes;  ///< equal but for sizes and the numbers that follow from them
  /// The names of the sizes in which shapes differ; of a single shape all.
  std::vector<std::string> varied() const;
};

struct Selection {
  size_t shape = 0, kernel = 0;  ///< the kernel of this shape
};

/// The kernel for any sizes: that of the nearest shape by distance() whose kernel serves them; of equally near shapes
/// the first. `serves`: whether a kernel of the table gives correct results for the sizes. Exit::kUsage where the names
/// of the sizes are not those of the table, Exit::kFailed if no kernel serves them.
Result<Selection> select(const DispatchTable& table, const Sizes& sizes,
                         const std::function<Result<bool>(size_t kernel)>& serves);

std::string dispatch_text(const DispatchTable& table);
Json dispatch_json(const DispatchTable& table);
/// Reads dispatch_json(), a file or a part of one. Errors: file:line:col.
Result<DispatchTable> read_dispatch(const JsonFile& file, const Json& table);
Result<DispatchTable> read_dispatch(std::string text, std::string file);

}  // namespace roofgen

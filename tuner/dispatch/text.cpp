#include <fmt/format.h>

#include "base/text_table.h"
#include "base/units.h"
#include "tuner/dispatch/dispatch.h"

namespace roofgen {

std::string dispatch_text(const DispatchTable& table) {
  const std::vector<std::string> names = table.varied();
  std::vector<std::string> head = names;
  head.insert(head.end(), {"own best", "kernel", "time", "ratio"});
  TextTable rows(head);
  for (const DispatchShape& s : table.shapes) {
    std::vector<std::string> cells;
    for (const std::string& name : names) cells.push_back(std::to_string(s.problem.dims.at(name)));
    cells.insert(cells.end(), {time_text(s.best_seconds), std::to_string(s.kernel), time_text(s.seconds),
                               fmt::format("{:.3f}", s.ratio())});
    rows.row(std::move(cells));
  }
  std::string out = fmt::format("device    {}, {}\n\n{}\n", table.executor, table.arch, rows.str());
  for (size_t k = 0; k < table.kernels.size(); ++k) {
    const DispatchKernel& kernel = table.kernels[k];
    std::string tuned_for;
    for (const std::string& name : names)
      tuned_for += fmt::format(" {}={}", name, table.shapes[kernel.tuned_for].problem.dims.at(name));
    out += fmt::format("kernel {}  {}, tuned for{}\n", k, kernel.variant, tuned_for);
    for (const DispatchKernel::Stage& s : kernel.stages) {
      out += fmt::format("          {}:", s.name);
      for (const auto& [name, value] : s.params) out += fmt::format(" {}={}", name, to_string(value));
      out += fmt::format("\n          {}: {} registers, {} of shared memory", s.name, s.registers,
                         bytes_text(static_cast<double>(s.smem_bytes)));
      for (size_t i = 0; i < s.requirements.size(); ++i) out += (i == 0 ? "; requires " : ", ") + s.requirements[i];
      out += "\n";
    }
  }
  out += fmt::format("\ncondensed {} of {} shapes {} within {:g} % of their own best{}\n",
                     counted(static_cast<double>(table.kernels.size()), "kernel"), table.shapes.size(),
                     table.kernels.size() == 1 ? "is" : "are", 100 * table.within,
                     table.exact ? "" : "; a smaller set may exist: the search was cut off");
  out += fmt::format("origins   time: {}\n",
                     table.time_model.empty() ? to_string(table.origin) : table.time_model + ", nothing was measured");
  return wrapped(out, 10);
}

}  // namespace roofgen

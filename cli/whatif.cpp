// roofgen whatif: every way to cut a chain into kernels, and what each cut costs.
#include "tuner/whatif/whatif.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/json.h"
#include "cli/cli.h"
#include "generator/ops/attention.h"
#include "generator/ops/chain_op.h"
#include "tuner/session/workbench.h"

namespace roofgen::cli {
namespace {

constexpr size_t kMostSizes = 32;

struct WhatIfFlags {
  ProblemFlags problem;
  RunFlags run;
  std::string chain, plan, sweep, html;
  bool json = false;
};

/// `--sweep M=256,512,1024`.
struct Sizes {
  std::string dim;
  std::vector<int64_t> values;
};

Result<Sizes> parse_sweep(const std::string& text) {
  Sizes out;
  const auto bad = [&](const std::string& why) {
    return Error{Exit::kUsage, fmt::format("--sweep {}: {}; M=256,512,1024 is one", text, why)};
  };
  const size_t eq = text.find('=');
  if (eq == std::string::npos || eq == 0) return bad("a size and its values were expected");
  out.dim = text.substr(0, eq);
  for (size_t begin = eq + 1; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    const std::string number = text.substr(begin, end - begin);
    char* rest = nullptr;
    const int64_t value = std::strtoll(number.c_str(), &rest, 10);
    if (number.empty() || *rest != 0 || value < 1) return bad(fmt::format("\"{}\" is not a size", number));
    out.values.push_back(value);
    begin = end + 1;
  }
  std::sort(out.values.begin(), out.values.end());
  out.values.erase(std::unique(out.values.begin(), out.values.end()), out.values.end());
  if (out.values.size() > kMostSizes) return bad(fmt::format("at most {} values", kMostSizes));
  return out;
}

/// What is asked for, checked before anything is opened: the runs, each a completed problem.
struct Request {
  std::optional<Chain> chain;
  const Op* op = nullptr;  ///< without a chain
  std::vector<Part> plan;
  std::vector<Problem> problems;
  std::string dim;  ///< of a sweep; empty: a single run
};

Result<Request> request_of(const DataFiles& files, const WhatIfFlags& flags) {
  Request out;
  if (flags.chain.empty() == flags.problem.op.empty())
    return Error{Exit::kUsage, flags.chain.empty()
                                   ? "a chain or an operator was expected: --chain 'gemm > bias > gelu', or attention"
                                   : fmt::format("--chain and {} ask for two things", flags.problem.op)};
  if (!flags.problem.sets.empty())
    return Error{Exit::kUsage, "--set pins parameters of one kernel; whatif tunes several kernels"};
  if (!flags.run.variants.empty())
    return Error{Exit::kUsage, "--variant does not apply to whatif; select a partition with --plan"};
  ROOFGEN_TRY(Problem problem,
              flags.problem.given.problem(flags.chain.empty() ? flags.problem.op : kChain, flags.problem.dtype));
  if (!flags.chain.empty()) {
    const auto scale = problem.reals.find("scale");
    ROOFGEN_TRY(out.chain, Chain::parse(flags.chain, problem.dtype, problem.args,
                                        scale == problem.reals.end() ? 1.0 : scale->second));
    problem.texts = {{kChain, flags.chain}};
    if (!flags.plan.empty()) {
      ROOFGEN_TRY(out.plan, parse_plan(*out.chain, flags.plan));
    }
  } else {
    ROOFGEN_TRY(out.op, find_op(files, flags.problem.op));
    if (out.op != &attention_op() && std::ranges::count(ops(), out.op) > 0)
      return Error{Exit::kUsage, fmt::format("a what-if of \"{}\": {} was expected, or --chain '{} > ...'",
                                             flags.problem.op, attention_op().name(), flags.problem.op)};
  }
  const auto add = [&](Problem p) -> Result<void> {
    ROOFGEN_TRY(Problem completed,
                out.chain ? ChainOp::complete_chain(*out.chain, std::move(p)) : out.op->complete(std::move(p)));
    out.problems.push_back(std::move(completed));
    return {};
  };
  if (flags.sweep.empty()) {
    ROOFGEN_CHECK(add(problem));
    return out;
  }
  ROOFGEN_TRY(const Sizes sizes, parse_sweep(flags.sweep));
  out.dim = sizes.dim;
  for (int64_t size : sizes.values) {
    problem.dims[sizes.dim] = size;
    ROOFGEN_CHECK(add(problem));
    if (!out.problems.back().dims.count(sizes.dim))
      return Error{Exit::kUsage, fmt::format("--sweep {}: no such size", sizes.dim)};
  }
  return out;
}

Result<std::vector<WhatIfReport>> run_all(const Terminal& terminal, const WhatIfFlags& flags, const Request& request,
                                          const Workbench& bench) {
  ROOFGEN_TRY(TuneOptions options, tune_options(terminal, bench, flags.problem, flags.run));
  options.progress = terminal.progress("whatif");
  std::vector<WhatIfReport> runs;
  for (const Problem& problem : request.problems) {
    ROOFGEN_TRY(WhatIfReport report,
                request.chain ? whatif_chain(bench.resources(), *request.chain, problem, request.plan, options)
                : request.op == &attention_op()
                    ? whatif_attention(bench.resources(), problem, flags.plan, options)
                    : whatif_variants(bench.resources(), *request.op, problem, flags.plan, options));
    runs.push_back(std::move(report));
    if (runs.back().interrupted) break;
  }
  return runs;
}

Result<Exit> run(const Terminal& terminal, const WhatIfFlags& flags) {
  ROOFGEN_TRY(const Request request, request_of(DataFiles(terminal.data_dirs), flags));
  if (!flags.html.empty()) ROOFGEN_CHECK(terminal.outputs().check({flags.html}));
  ROOFGEN_TRY(Workbench bench, open_workbench(terminal, flags.problem, flags.run));
  ROOFGEN_TRY(std::vector<WhatIfReport> runs, run_all(terminal, flags, request, bench));
  const bool interrupted = runs.back().interrupted, found = runs.back().best() != nullptr;
  Json json;
  std::string text;
  if (request.dim.empty()) {
    json = whatif_json(runs[0]);
    text = whatif_text(runs[0], terminal.use_color(1));
  } else {
    const Sweep sweep = make_sweep(request.dim, std::move(runs));
    json = sweep_json(sweep);
    text = sweep_text(sweep, terminal.use_color(1));
  }
  print_out(flags.json ? json_document(json) : text);
  if (!flags.html.empty() && found) {
    ROOFGEN_TRY(const plot::Page page, whatif_page(json, "result", *bench.files));
    ROOFGEN_CHECK(terminal.write_page(flags.html, page, *bench.files));
  }
  if (interrupted) return Exit::kInterrupted;
  return found ? Exit::kOk : Exit::kFailed;
}

}  // namespace

Run declare_whatif(FlagSet app) {
  auto flags = std::make_shared<WhatIfFlags>();
  flags->problem.declare(app);
  app.find("op").help("attention, or an operator of your own, where there is no --chain");
  flags->run.declare(app);
  app.add("--chain", flags->chain,
          "the steps, in order: 'gemm > bias > gelu > residual > rmsnorm' (docs/use/whatif.md)")
      .group("Problem");
  app.add("--plan", flags->plan, "compare this partition with the fastest: 'gemm+bias+gelu | residual+rmsnorm'")
      .group("Search");
  app.add("--sweep", flags->sweep, "repeat for each of these sizes and report the crossover: M=256,512,1024")
      .group("Search");
  app.add_switch("--json", flags->json, "one JSON document (docs/whatif-schema.json)").group("Output");
  app.add("--html", flags->html, "also write a self-contained page here: the ladder of partitions, the roofline")
      .group("Output");
  app.footer("Example: roofgen whatif --chain 'gemm > bias > gelu > residual > rmsnorm' --M 8192 --N 4096 --K 4096");
  return [flags](const Terminal& terminal) { return run(terminal, *flags); };
}

}  // namespace roofgen::cli

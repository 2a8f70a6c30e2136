// roofgen roofline: the ceilings of a device, with operators placed on them.
#include <fmt/format.h>

#include <cmath>
#include <sstream>

#include "base/csv.h"
#include "base/json_text.h"
#include "base/number.h"
#include "base/suggest.h"
#include "cli/ceilings.h"
#include "cli/cli.h"
#include "roofline/analyses/figures.h"
#include "roofline/plot/plot.h"
#include "tuner/session/profile_flags.h"
#include "tuner/session/request.h"
#include "tuner/session/work_flags.h"
#include "tuner/views/page.h"

namespace roofgen::cli {
namespace {

struct RooflineFlags {
  std::string device = kDefaultDevice, html, svg, png;
  std::vector<std::string> points;
  bool all = false, levels = false, json = false, bare = false;
  ProfileFlags profile;
  MeasureFlags measure;
};

constexpr const char* kColumns[] = {"name", "op", "flags", "from", "ai", "tflops", "time_us", "origin"};

/// A row of a points table: an operator by formula, or a dot by its numbers.
class PointRows {
 public:
  PointRows(const DataFiles& files, const Device& device, bool levels, const std::string& file)
      : files_(files), device_(device), levels_(levels), file_(file) {}

  Result<void> read(const CellTable& table, plot::Roofline& out) {
    if (!table.errors.empty()) return table.errors.front();
    std::vector<std::string> known(std::begin(kColumns), std::end(kColumns));
    std::map<std::string, size_t> column;
    for (size_t i = 0; i < table.header.size(); ++i) {
      const TableCell& cell = table.header[i];
      if (std::find(known.begin(), known.end(), cell.text) == known.end())
        return bad(cell, fmt::format("unknown column \"{}\"{}", cell.text, did_you_mean(cell.text, known)));
      column[cell.text] = i;
    }
    if (!column.count("name") || (!column.count("op") && !(column.count("ai") && column.count("tflops"))))
      return Error{
          Exit::kUsage, "a points table needs the columns name, and op with flags or ai with tflops", {file_, 1, 1}};
    for (const TableRow& row : table.rows) {
      const auto cell = [&](const char* name) {
        return column.count(name) ? row[column[name]] : TableCell{"", row[0].line, row[0].col};
      };
      ROOFGEN_CHECK(read_row(cell, out));
    }
    return {};
  }

 private:
  Error bad(const TableCell& cell, std::string message) const { return cell_error(cell, file_, std::move(message)); }

  Result<double> number(const TableCell& cell, const char* what) const {
    const auto v = parse_number(cell.text);
    if (!v || !(*v >= 1e-12 && *v <= 1e12))
      return bad(cell, fmt::format("{} is \"{}\"; a number from 1e-12 to 1e12 was expected", what, cell.text));
    return *v;
  }

  template <class Cell>
  Result<void> read_row(const Cell& cell, plot::Roofline& out) {
    const TableCell name = cell("name"), op = cell("op"), origin = cell("origin");
    if (name.text.empty()) return bad(name, "a point without a name");
    std::vector<plot::Point> points;
    if (!op.text.empty()) {
      ROOFGEN_TRY(points, operator_row(op, cell("flags"), name.text));
    } else {
      plot::Point p;
      p.name = name.text;
      ROOFGEN_TRY(p.ai, number(cell("ai"), "ai"));
      ROOFGEN_TRY(p.tflops, number(cell("tflops"), "tflops"));
      // A dot says nothing of its arithmetic: the slope and the highest ceiling bound it.
      const double slope = p.ai * device_.at("dram_gb_s") / 1000,
                   top = compute_roofs(device_, RoofSet::kDatasheet).front().rate / 1e12;
      p.roof_tflops = std::min(slope, top);
      p.bound_by = slope < top ? "DRAM" : compute_roofs(device_, RoofSet::kDatasheet).front().name;
      points.push_back(std::move(p));
    }
    if (!op.text.empty() && !cell("tflops").text.empty()) {
      ROOFGEN_TRY(const double tflops, number(cell("tflops"), "tflops"));
      for (plot::Point& p : points) p.tflops = tflops;
    }
    if (!cell("time_us").text.empty()) {
      ROOFGEN_TRY(const double time_us, number(cell("time_us"), "time_us"));
      // FLOPs over the time that was seen, where the formula knows the FLOPs.
      for (plot::Point& p : points) {
        if (!op.text.empty() && cell("tflops").text.empty()) p.tflops *= p.time_us / time_us;
        p.time_us = time_us;
      }
    }
    if (!origin.text.empty()) {
      ROOFGEN_TRY(const Origin o, parse_origin(origin));
      for (plot::Point& p : points) p.origin = o;
    }
    const std::string from = cell("from").text;
    if (!from.empty()) {
      size_t i = 0;
      while (i < out.points.size() && out.points[i].name != from) ++i;
      if (i == out.points.size()) return bad(cell("from"), fmt::format("no point above is named \"{}\"", from));
      const double before = out.points[i].time_us, after = points.front().time_us;
      out.arrows.push_back(
          {i, out.points.size(), before > 0 && after > 0 ? fmt::format("{:.2f}x in time", before / after) : ""});
    }
    for (plot::Point& p : points) out.points.push_back(std::move(p));
    return {};
  }

  Result<Origin> parse_origin(const TableCell& cell) const {
    std::vector<std::string> known;
    for (Origin o : {Origin::kModel, Origin::kSimulated, Origin::kMeasured, Origin::kCounter}) {
      if (cell.text == to_string(o)) return o;
      known.emplace_back(to_string(o));
    }
    return bad(cell, fmt::format("unknown origin \"{}\"{}", cell.text, did_you_mean(cell.text, known)));
  }

  Result<std::vector<plot::Point>> operator_row(const TableCell& op, const TableCell& flags, const std::string& name) {
    const auto at = [&](const TableCell& cell, Error error) {
      if (error.where.file.empty()) error.where = {file_, cell.line, cell.col};
      return error;
    };
    auto formula = WorkFormula::load(files_, op.text);
    if (!formula) return at(op, formula.error());
    std::vector<std::string> words;
    std::string common;
    std::istringstream in(flags.text);
    for (std::string word; in >> word;) {
      if (word == "--dtype")
        in >> common;
      else
        words.push_back(word);
    }
    auto request = parse_work_flags(*formula, words);
    if (!request) return at(flags, request.error());
    if (!common.empty()) request->dtypes[""] = common;
    auto work = formula->evaluate(*request);
    if (!work) return at(flags, work.error());
    auto e = explain(device_, std::move(*work));
    if (!e) return at(op, e.error());
    if (!(e->flops > 0) || !(e->dram_bytes > 0))
      return bad(op, fmt::format("{} has no FLOPs: it has no place on a roofline", op.text));
    return operator_points(name, *e, levels_);
  }

  const DataFiles& files_;
  const Device& device_;
  const bool levels_;
  const std::string file_;
};

Result<void> add_points(const DataFiles& files, const Device& device, const RooflineFlags& flags,
                        const std::string& path, std::string text, plot::Roofline& out) {
  if (path.ends_with(".json")) {
    auto parsed = JsonFile::parse(std::move(text), path);
    if (!parsed) return Error{Exit::kUsage, parsed.error().message, parsed.error().where, parsed.error().notes};
    const JsonFile file = std::move(*parsed);
    ROOFGEN_TRY(const plot::Page page, tune_page(file.root(), path, files));
    for (const plot::Block& block : page.blocks)
      if (const auto* r = std::get_if<plot::Roofline>(&block)) {
        for (plot::Arrow arrow : r->arrows)
          out.arrows.push_back({arrow.from + out.points.size(), arrow.to + out.points.size(), arrow.label});
        out.points.insert(out.points.end(), r->points.begin(), r->points.end());
      }
    return {};
  }
  ROOFGEN_TRY(const std::vector<CellTable> tables, read_tables(text, path));
  for (const CellTable& table : tables) ROOFGEN_CHECK(PointRows(files, device, flags.levels, path).read(table, out));
  return {};
}

Result<Exit> run(const Terminal& terminal, const RooflineFlags& flags) {
  const DataFiles files(terminal.data_dirs);
  ROOFGEN_TRY(const Device device, find_device(files, flags.device, flags.profile, warn));
  plot::Roofline roofline = device_roofline(device, flags.all);
  for (const std::string& path : flags.points) {
    ROOFGEN_TRY(std::string text, read_input(path));
    ROOFGEN_CHECK(add_points(files, device, flags, path, std::move(text), roofline));
  }
  if (flags.points.empty() && !flags.bare) {
    ROOFGEN_TRY(std::string text, files.load("work/points.csv"));
    ROOFGEN_CHECK(add_points(files, device, flags, files.origin("work/points.csv"), std::move(text), roofline));
  }
  plot::Page page;
  for (const plot::Point& p : roofline.points)
    if (p.level == "DRAM" && p.roof_tflops > 0 && p.tflops > 1.02 * p.roof_tflops)
      page.warnings.push_back(fmt::format(
          "R12 {}: {:.4g} TFLOP/s is above the roof of {:.4g} ({}): the bytes, the FLOPs or the time are wrong", p.name,
          p.tflops, p.roof_tflops, p.bound_by));
  for (const std::string& w : page.warnings) fmt::print(stderr, "roofgen: warning: {}\n", w);
  page.title = roofline.title;
  page.facts = {
      {"device", fmt::format("{} ({})", device.name, device.arch)},
      {"FLOPs", "MMA FLOPs only; per-element operations where there are none"},
      {"points", "model: FLOPs over modelled time, launches and waves included, unless a point says otherwise"}};
  page.blocks.emplace_back(roofline);
  if (flags.json) {
    fmt::print("{}", plot::page_json(page));
    fmt::print("\n");
  } else if (flags.html.empty() && flags.svg.empty() && flags.png.empty()) {
    fmt::print("{}", plot::terminal_text(roofline, terminal_width(), terminal.use_color(1)));
  }
  const auto write = [&](const std::string& path, const Result<std::string>& image) -> Result<void> {
    if (!image) return image.error();
    ROOFGEN_CHECK(terminal.outputs().write(path, *image));
    terminal.wrote(path);
    return {};
  };
  const std::string svg = flags.svg.empty() && flags.png.empty() ? "" : plot::svg(roofline, plot::Place::kFile);
  if (!flags.svg.empty()) ROOFGEN_CHECK(write(flags.svg, svg));
  if (!flags.png.empty()) ROOFGEN_CHECK(write(flags.png, plot::png(svg)));
  if (!flags.html.empty()) return show_page(page, flags.html, files, terminal);
  return Exit::kOk;
}

}  // namespace

Run declare_roofline(FlagSet app) {
  auto flags = std::make_shared<RooflineFlags>();
  const Flag device =
      app.add("--device", flags->device,
              fmt::format("device of the catalogue, or gpu: the one in this machine [{}]", kDefaultDevice));
  app.add("--points", flags->points,
          "operators or dots to place: a table (docs/use/plots.md) or a result of tune --json; may be repeated "
          "[seven common operators]");
  app.add_switch("--no-points", flags->bare, "the ceilings alone");
  app.add_switch("--levels", flags->levels, "also the operators' intensity at L2 and shared memory");
  app.add_switch("--all-ceilings", flags->all, "also FP16 accumulation, INT4, and half precision on CUDA cores");
  app.add("--html", flags->html, "write a self-contained interactive page here");
  app.add("--svg", flags->svg, "write an SVG here");
  app.add("--png", flags->png, "write a PNG here (by rsvg-convert)");
  app.add_switch("--json", flags->json, "the figure's values as JSON, to draw it elsewhere");
  app.footer("Example: roofgen roofline --device a100-sxm-80 --html roofline.html");
  flags->profile.declare(app);
  flags->measure.declare(app);
  return [flags, device](const Terminal& terminal) -> Result<Exit> {
    flags->measure.json = flags->json;
    if (flags->measure.measure &&
        (!flags->points.empty() || !flags->html.empty() || !flags->svg.empty() || !flags->png.empty()))
      return Error{Exit::kUsage,
                   "--measure draws no plot; run `roofgen roofline --device gpu` afterwards for --points, --html, "
                   "--svg and --png"};
    if (flags->measure.measure && flags->device != "gpu" && device.given())
      return Error{Exit::kUsage,
                   fmt::format("--measure measures the GPU of this machine; it cannot measure {}", flags->device)};
    return flags->measure.measure ? measure_roofline(terminal, flags->measure) : run(terminal, *flags);
  };
}

}  // namespace roofgen::cli

#include "roofline/lint/file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/csv.h"
#include "base/suggest.h"
#include "roofline/lint/columns.h"
#include "roofline/lint/shape.h"

namespace roofgen {
namespace {

/// A numeric column and the member of Claim that receives its value.
struct Field {
  const char* key;
  std::optional<double> Claim::*member;
};
constexpr Field kFields[] = {
    {"flops", &Claim::flops},
    {"bytes", &Claim::bytes},
    {"ai", &Claim::ai},
    {"ridge", &Claim::ridge},
    {"peak", &Claim::peak_tflops},
    {"bandwidth", &Claim::bandwidth_gb_s},
    {"attainable", &Claim::attainable_tflops},
    {"achieved", &Claim::achieved_tflops},
    {"time", &Claim::time_us},
    {"launches", &Claim::launches},
    {"ctas", &Claim::ctas},
    {"memory", &Claim::memory_bytes},
    {"rank", &Claim::rank},
    {"hidden", &Claim::hidden},
    {"layers", &Claim::layers},
    {"weights", &Claim::weight_bytes},
    {"kv_cache", &Claim::kv_bytes},
};

/// A table needs one of these columns, or both FLOPs and bytes; otherwise there is nothing to check.
constexpr const char* kNumbers[] = {"ai", "attainable", "achieved", "peak", "ridge"};

/// Reads the rows of one table.
class RowReader {
 public:
  RowReader(const CellTable& table, const std::string& file, const LintKnowledge& knowledge)
      : table_(table), file_(file), knowledge_(knowledge) {}

  /// Reads the header. An error means that the table is not a roofline table.
  Result<void> header(std::vector<Error>& ignored) {
    std::set<std::string> seen;
    for (const TableCell& cell : table_.header) {
      ROOFGEN_TRY(Column column, read_column(cell, file_, knowledge_.dims, knowledge_.flags));
      const std::string identity = column.key == "dim" || column.key == "flag" || column.key == "operand_dtype"
                                       ? column.key + " " + column.detail
                                       : column.key;
      if (column.key.empty()) {
        if (const std::string near = nearest(lower(cell.text), column_names()); !near.empty())
          ignored.push_back(
              cell_error(cell, file_, fmt::format("column \"{}\" is not used; did you mean \"{}\"?", cell.text, near)));
      } else if (!seen.insert(identity).second) {
        return cell_error(
            cell, file_,
            fmt::format("column \"{}\" repeats another column; at most one column of each kind was expected",
                        cell.text));
      }
      columns_.push_back(std::move(column));
    }
    const bool named = seen.count("name") || seen.count("op") || seen.count("device");
    const bool numbers =
        (seen.count("flops") && seen.count("bytes")) ||
        std::any_of(std::begin(kNumbers), std::end(kNumbers), [&](const char* k) { return seen.count(k) != 0; });
    if (!named)
      return cell_error(table_.header.front(), file_,
                        "no column names the rows; \"kernel\", \"name\", \"op\" or \"device\" was expected");
    if (!numbers)
      return cell_error(table_.header.front(), file_,
                        "no column to check; one of \"ai\", \"attainable\", \"achieved\", \"peak\", \"ridge\", or "
                        "\"flops\" with \"bytes\" was expected");
    return {};
  }

  Result<LintRow> row(const TableRow& cells, const std::vector<const Device*>& fallback,
                      const std::string& fallback_text) {
    cells_ = &cells;
    LintRow out;
    ROOFGEN_CHECK(texts(out));
    ROOFGEN_CHECK(numbers(out));
    ROOFGEN_CHECK(device(out, fallback, fallback_text));
    ROOFGEN_CHECK(work(out));
    return out;
  }

 private:
  /// The cell of a column; null when the table lacks the column or the cell states nothing.
  const TableCell* find(const std::string& key) const {
    for (size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].key == key) return not_stated((*cells_)[i].text) ? nullptr : &(*cells_)[i];
    return nullptr;
  }
  std::string text(const std::string& key) const {
    const TableCell* cell = find(key);
    return cell ? cell->text : "";
  }
  Where where(const TableCell& cell) const { return {file_, cell.line, cell.col}; }

  Result<std::string> dtype(const TableCell& cell) const {
    const auto format = find_number_format(lower(cell.text));
    if (!format) return cell_error(cell, file_, format.error().message);
    return std::string((*format)->name);
  }

  Result<void> texts(LintRow& out) {
    Claim& c = out.claim;
    const TableCell* kernel = find("name");
    const TableCell* op = find("op");
    c.op = lower(text("op"));
    const bool known = knowledge_.formulas.count(c.op) != 0;
    if (!known) c.op.clear();
    // An unknown operator in column "op" names the row instead: many operators call the same kernel.
    const TableCell* name = op && (!kernel || !known) ? op : kernel;
    if (!name) name = kernel ? kernel : find("device");
    if (!name) return cell_error(cells_->front(), file_, "this row has no name");
    c.name = name == op && kernel ? fmt::format("{} ({})", op->text, kernel->text) : name->text;
    c.where = out.cells[""] = where(*name);
    for (size_t i = 0; i < columns_.size(); ++i)
      if (!columns_[i].key.empty())
        out.cells.emplace(columns_[i].key == "dim" ? columns_[i].detail : columns_[i].key, where((*cells_)[i]));

    for (const auto& [key, member] : {std::pair{"dtype", &Claim::dtype},
                                      {"ceiling_dtype", &Claim::ceiling_dtype},
                                      {"accumulate", &Claim::accumulate}})
      if (const TableCell* cell = find(key)) {
        ROOFGEN_TRY(c.*member, dtype(*cell));
      }
    for (const Column& column : columns_)
      if (column.key == "peak" && c.ceiling_dtype.empty()) c.ceiling_dtype = column.detail;
    if (c.dtype.empty()) {
      for (const std::string& source : {c.name, text("notes")})
        if (c.dtype.empty()) c.dtype = infer_dtype(source);
    }
    c.bound = regime(lower(text("bound")));
    c.inputs = lower(text("inputs"));
    c.cache = lower(text("cache"));
    c.phase = lower(text("phase"));
    if (const TableCell* cell = find("origin")) {
      c.origin = lower(cell->text);
      const std::vector<std::string> known_origins = {"datasheet", "compiled", "model",
                                                      "simulated", "measured", "counter"};
      if (std::find(known_origins.begin(), known_origins.end(), c.origin) == known_origins.end())
        return cell_error(*cell, file_,
                          fmt::format("unknown origin \"{}\"{}", cell->text, did_you_mean(c.origin, known_origins)));
    }
    if (const TableCell* cell = find("fused")) {
      ROOFGEN_TRY(c.fused, yes(*cell));
    }
    return {};
  }

  /// The regime named first in a text: "memory-bound, far from compute" is memory; "" for other words.
  static std::string regime(const std::string& text) {
    const size_t compute = text.find("compute"), memory = std::min(text.find("memory"), text.find("bandwidth"));
    return compute < memory ? "compute" : memory < compute ? "memory" : "";
  }

  Result<bool> yes(const TableCell& cell) const {
    const std::string s = lower(cell.text);
    for (const char* word : {"yes", "true", "1", "y", "fused"})
      if (s == word) return true;
    for (const char* word : {"no", "false", "0", "n", "unfused"})
      if (s == word) return false;
    return cell_error(cell, file_, fmt::format("\"{}\"; yes or no was expected", cell.text));
  }

  Result<void> numbers(LintRow& out) {
    Claim& c = out.claim;
    for (size_t i = 0; i < columns_.size(); ++i) {
      const Column& column = columns_[i];
      const TableCell& cell = (*cells_)[i];
      if (column.key == "dim") {
        ROOFGEN_CHECK(dimension(c, column, cell));
        continue;
      }
      const auto field =
          std::find_if(std::begin(kFields), std::end(kFields), [&](const Field& f) { return f.key == column.key; });
      if (field == std::end(kFields)) continue;
      ROOFGEN_TRY(const std::optional<StatedNumber> number, read_number(cell, file_, column));
      if (!number) continue;
      c.*(field->member) = number->value;
      if (column.key == "bytes" && number->unit) c.bytes_unit = number->unit->scale;
      if (column.quantity == Quantity::kBytes || column.quantity == Quantity::kBandwidth)
        ROOFGEN_CHECK(one_kind_of_prefix(i, cell, *number));
      if (number->restated) c.restated.push_back({column.key, cell.text, column.unit->shown});
    }
    return {};
  }

  /// After a decimal and a binary prefix in one column, the unit of the other cells would be ambiguous.
  Result<void> one_kind_of_prefix(size_t i, const TableCell& cell, const StatedNumber& number) {
    const auto bare = [](const Unit& u) { return std::string_view(u.shown) == "B"; };
    const auto binary = [](const Unit& u) { return std::string_view(u.shown).find('i') != std::string_view::npos; };
    const Unit first = prefix_.emplace(i, *columns_[i].unit).first->second;
    if (bare(first))
      prefix_.insert_or_assign(i, *number.unit);
    else if (!bare(*number.unit) && binary(first) != binary(*number.unit))
      return cell_error(
          cell, file_,
          fmt::format("{} and {} in one column; one kind of unit was expected: {} is a power of {}", first.shown,
                      number.unit->shown, number.unit->shown, binary(*number.unit) ? "1024" : "1000"));
    return {};
  }

  Result<void> dimension(Claim& c, const Column& column, const TableCell& cell) const {
    // A single letter, as in "B", leaves the dimension open: it grows with the batch.
    const bool word = !cell.text.empty() && std::all_of(cell.text.begin(), cell.text.end(),
                                                        [](unsigned char x) { return std::isalpha(x) != 0; });
    if (not_stated(cell.text) || (word && cell.text.size() == 1)) return {};
    ROOFGEN_TRY(const std::optional<StatedNumber> number, read_number(cell, file_, column));
    if (number->value != std::floor(number->value) || number->value > 0x1p40)
      return cell_error(cell, file_, fmt::format("\"{}\"; a whole number up to 2^40 was expected", cell.text));
    c.dims[column.detail] = static_cast<int64_t>(number->value);
    if (lower(column.detail) == "batch") c.batch = number->value;
    if (lower(column.detail) == "kv_len") c.kv_len = number->value;
    return {};
  }

  Result<void> device(LintRow& out, const std::vector<const Device*>& fallback,
                      const std::string& fallback_text) const {
    Claim& c = out.claim;
    std::vector<const Device*> named = fallback;
    c.device_text = fallback_text;
    c.catalogue = &knowledge_.devices;
    if (const TableCell* cell = find("device")) {
      c.device_text = cell->text;
      named = devices_named(knowledge_.devices, cell->text);
      if (named.empty()) {
        std::vector<std::string> names;
        for (const Device& d : knowledge_.devices) names.push_back(d.name);
        return cell_error(*cell, file_,
                          fmt::format("unknown device \"{}\"{}", cell->text, did_you_mean(lower(cell->text), names)));
      }
    }
    if (named.empty()) return {};
    // The row's bandwidth may identify one of several products with the same name.
    const double tell = c.bandwidth_gb_s.value_or(0);
    std::vector<const Device*> fit;
    for (const Device* d : named)
      if (std::fabs(d->at("dram_gb_s") - tell) <= 0.01 * tell) fit.push_back(d);
    const bool told = !fit.empty() && std::all_of(fit.begin(), fit.end(), [&](const Device* d) {
      return d->at("dram_gb_s") == fit.front()->at("dram_gb_s");
    });
    if (told) named = fit;
    c.device = *std::min_element(named.begin(), named.end(), [&](const Device* a, const Device* b) {
      return std::fabs(a->at("dram_gb_s") - tell) < std::fabs(b->at("dram_gb_s") - tell);
    });
    if (named.size() > 1 && !told) c.candidates = named;
    return {};
  }

  /// The number for a letter of a shape: from the column with that name, or from the batch for "B".
  static std::optional<int64_t> bound_letter(const Claim& c, const std::string& dim, const std::string& letter) {
    for (const auto& [name, value] : c.dims)
      if (name == dim || lower(name) == lower(letter) || (name == "batch" && lower(letter) == "b")) return value;
    return {};
  }

  Result<void> work(LintRow& out) const {
    Claim& c = out.claim;
    if (c.op.empty())
      for (const std::string& source : {text("name"), text("op")})
        if (const auto inferred = infer_op(source, knowledge_.formulas); inferred && c.op.empty() && !c.matrix_work) {
          c.op = inferred->op;
          c.matrix_work = inferred->matrix_work;
        }
    const auto formula = knowledge_.formulas.find(c.op);
    if (formula == knowledge_.formulas.end()) return {};
    const WorkFormula& f = formula->second;
    c.matrix_work = f.uses_matrix_units();
    c.own_cache = f.tables().cache;
    WorkRequest request;
    bool open = false;
    std::map<std::string, int64_t> stated = c.dims;
    const bool product = f.tables().product;
    if (const TableCell* cell = find("shape"); product && cell && !find_shape(cell->text))
      return cell_error(*cell, file_,
                        fmt::format("\"{}\" is not the shape of a matrix product; [M, K] -> [M, N] or [M, K] x [K, N] "
                                    "was expected, with a leading batch in each or in none",
                                    cell->text));
    for (const char* key : {"shape", "notes"})
      if (const auto shape = product ? find_shape(text(key)) : std::nullopt) {
        std::map<std::string, int64_t> dims = shape->dims;
        for (const auto& [dim, letter] : shape->open) {
          if (const auto value = bound_letter(c, dim, letter))
            dims[dim] = *value;
          else
            open = true;
          // A batch column sets the open M of a single product; it does not count products.
          if (dim == "M" && !shape->dims.count("batch")) stated.erase("batch");
        }
        stated.erase("M");
        for (const auto& [dim, value] : dims) stated[dim] = value;
        break;
      }
    for (const WorkDim& d : f.dims()) {
      auto given = stated.find(d.name);
      if (given == stated.end())
        given =
            std::find_if(stated.begin(), stated.end(), [&](const auto& x) { return lower(x.first) == lower(d.name); });
      if (given != stated.end())
        request.dims[d.name] = given->second;
      else if (!d.preset && open && f.grows() == std::vector<std::string>{d.name})
        request.dims[d.name] = 1;
      else if (!d.preset)
        return {};
      else
        c.traffic_open |= preset_decides(f, d.name, request);
    }
    for (const auto& [dim, size] : f.tables().dims) request.dims.emplace(dim, size);
    for (const auto& [part, dims] : f.tables().named)
      if (lower(c.name).find(part) != std::string::npos)
        for (const auto& [dim, size] : dims) request.dims.emplace(dim, size);
    ROOFGEN_CHECK(flags(f, c, request));
    // An epilogue without a statement on fusion: it may run in the GEMM's kernel or in its own.
    const bool may_be_unfused =
        std::any_of(f.flags().begin(), f.flags().end(), [](const WorkDim& flag) { return flag.name == "unfused"; });
    if (may_be_unfused && !request.flags.count("unfused"))
      for (const auto& [flag, on] : request.flags) c.traffic_open |= on;
    ROOFGEN_CHECK(dtypes(f, c, request));
    auto evaluated = f.evaluate(request);
    if (!evaluated) return Error{Exit::kUsage, evaluated.error().message, c.where};
    if (open) {
      c.ai_limit = evaluated->ai_limit;
      c.ai_limit_of = evaluated->ai_limit_of;
      return {};
    }
    out.work = std::make_shared<const OpWork>(std::move(*evaluated));
    c.work = out.work.get();
    return {};
  }

  /// Whether the preset of `dim` changes the bytes per FLOP or the total bytes. The presets of tiles, kv_heads (equal
  /// to the query heads), kv_len (equal to L, except for L = 1) and the batch of a product do not.
  static bool preset_decides(const WorkFormula& f, const std::string& dim, const WorkRequest& request) {
    const auto queries = request.dims.find("L");
    if (dim == "kv_len") return queries == request.dims.end() || queries->second == 1;
    return f.grows().empty() && dim != "kv_heads" && dim != "d_v";
  }

  Result<void> flags(const WorkFormula& f, const Claim& c, WorkRequest& request) const {
    for (const WorkDim& flag : f.flags()) {
      if (flag.name == "unfused" && c.fused) request.flags["unfused"] = !*c.fused;
      for (size_t i = 0; i < columns_.size(); ++i)
        if (columns_[i].key == "flag" && columns_[i].detail == flag.name && !not_stated((*cells_)[i].text)) {
          ROOFGEN_TRY(request.flags[flag.name], yes((*cells_)[i]));
        }
    }
    return {};
  }

  Result<void> dtypes(const WorkFormula& f, const Claim& c, WorkRequest& request) const {
    request.accumulate = c.accumulate;
    const auto format = find_number_format(c.dtype.empty() ? "bf16" : c.dtype);
    const auto has = [&](const char* role) {
      return std::any_of(f.dtypes().begin(), f.dtypes().end(), [&](const WorkDim& d) { return d.name == role; });
    };
    // "FP4 GEMM" means 4-bit weights: activations and results stay in bf16 unless the table says otherwise.
    const bool weights_only = format && (*format)->rank == 1 && has("b");
    request.dtypes[""] = weights_only ? "bf16" : (*format)->name;
    if (weights_only)
      request.dtypes["b"] = (*format)->name;
    else if (has("b") && has("out") && std::string_view((*format)->name) == "fp8")
      request.dtypes["out"] = "fp8";
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (columns_[i].key != "operand_dtype" || not_stated((*cells_)[i].text) || !has(columns_[i].detail.c_str()))
        continue;
      ROOFGEN_TRY(request.dtypes[columns_[i].detail], dtype((*cells_)[i]));
    }
    return {};
  }

  const CellTable& table_;
  const std::string& file_;
  const LintKnowledge& knowledge_;
  std::vector<Column> columns_;
  std::map<size_t, Unit> prefix_;
  const TableRow* cells_ = nullptr;
};

bool before(const Where& a, const Where& b) { return std::tie(a.line, a.col) < std::tie(b.line, b.col); }

Result<void> read_table(const CellTable& table, const std::string& file, const LintKnowledge& knowledge,
                        const std::vector<const Device*>& device, const LintOptions& options, LintReport& out) {
  RowReader reader(table, file, knowledge);
  ROOFGEN_CHECK(reader.header(out.ignored));
  out.errors.insert(out.errors.end(), table.errors.begin(), table.errors.end());
  for (const TableRow& cells : table.rows) {
    auto row = reader.row(cells, device, options.device);
    if (row)
      out.rows.push_back(std::move(*row));
    else
      out.errors.push_back(std::move(row).error());
  }
  return {};
}

}  // namespace

Result<LintKnowledge> LintKnowledge::load(const DataFiles& files) {
  LintKnowledge out;
  for (const std::string& name : device_names(files)) {
    ROOFGEN_TRY(Device device, load_device(files, name));
    out.devices.push_back(std::move(device));
  }
  std::set<std::string> dims, flags;
  for (const std::string& op : WorkFormula::names(files)) {
    ROOFGEN_TRY(WorkFormula formula, WorkFormula::load(files, op));
    for (const WorkDim& d : formula.dims()) dims.insert(d.name);
    for (const WorkDim& d : formula.flags()) flags.insert(d.name);
    out.formulas.emplace(op, std::move(formula));
  }
  out.dims.assign(dims.begin(), dims.end());
  out.flags.assign(flags.begin(), flags.end());
  return out;
}

Result<LintReport> lint_file(std::string_view text, const std::string& file, const LintKnowledge& knowledge,
                             const LintOptions& options) {
  std::vector<const Device*> device;
  if (!options.device.empty()) {
    device = devices_named(knowledge.devices, options.device);
    if (device.empty()) {
      std::vector<std::string> names;
      for (const Device& d : knowledge.devices) names.push_back(d.name);
      return Error{Exit::kUsage,
                   fmt::format("unknown device \"{}\"{}", options.device, did_you_mean(options.device, names))};
    }
  }
  ROOFGEN_TRY(const std::vector<CellTable> tables, read_tables(text, file));
  LintReport out;
  out.file = file;
  // Tables of other subjects in a document are skipped; if no table can be read, the first error is returned.
  std::optional<Error> first;
  bool any = false;
  for (const CellTable& table : tables) {
    auto read = read_table(table, file, knowledge, device, options, out);
    any |= static_cast<bool>(read);
    if (!read && !first) first = std::move(read).error();
  }
  if (!any) return *first;

  std::vector<Claim> claims;
  for (const LintRow& row : out.rows) claims.push_back(row.claim);
  const std::vector<std::vector<Warning>> warnings = lint_table(claims);
  for (size_t i = 0; i < warnings.size(); ++i)
    for (const Warning& w : warnings[i]) {
      const auto cell = out.rows[i].cells.find(w.field);
      out.findings.push_back({w.rule, w.text, out.rows[i].claim.name,
                              cell != out.rows[i].cells.end() ? cell->second : out.rows[i].claim.where, i});
    }
  std::stable_sort(out.findings.begin(), out.findings.end(),
                   [](const auto& a, const auto& b) { return before(a.where, b.where); });
  std::stable_sort(out.errors.begin(), out.errors.end(),
                   [](const auto& a, const auto& b) { return before(a.where, b.where); });
  return out;
}

}  // namespace roofgen

#include "roofline/work.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/suggest.h"
#include "generator/space/json_reader.h"

namespace roofgen {
namespace {

/// The amounts a kernel may state besides its operands.
constexpr const char* kAmounts[] = {"mma_flops", "vector_flops", "softmax_elements", "exps",      "ctas",
                                    "l2_bytes",  "smem_a",       "smem_b",           "link_bytes"};

/// Where a growing dimension stands in for infinity: its terms then exceed all others by 2^20 and more.
constexpr int64_t kUnbounded = int64_t{1} << 44;

constexpr int64_t kMaxDim = int64_t{1} << 40;

std::vector<std::string> dim_names(const std::vector<WorkDim>& dims) {
  std::vector<std::string> out;
  for (const WorkDim& d : dims) out.push_back(d.name);
  return out;
}

Result<void> known(const std::string& name, const std::vector<WorkDim>& dims, const char* kind, const std::string& op) {
  const std::vector<std::string> names = dim_names(dims);
  if (std::find(names.begin(), names.end(), name) != names.end()) return {};
  return Error{Exit::kUsage, fmt::format("{} has no {} \"{}\"{}", op, kind, name, did_you_mean(name, names))};
}

double sum(const std::vector<KernelWork>& kernels, double KernelWork::*member) {
  double out = 0;
  for (const KernelWork& k : kernels) out += k.*member;
  return out;
}

}  // namespace

class WorkReader : private JsonReader {
 public:
  using JsonReader::JsonReader;

  Result<WorkFormula> read() {
    WorkFormula f;
    const Json& root = file_.root();
    f.file_ = file_.file();
    ROOFGEN_CHECK(
        only(root, {"schema", "op", "title", "dims", "flags", "dtypes", "math", "grows", "let", "requires", "forms"},
             {"tables"}));
    ROOFGEN_TRY(std::string schema, string(root, "schema"));
    if (schema != "roofgen.work/1") return bad("schema must be \"roofgen.work/1\"", schema);
    ROOFGEN_TRY(f.op_, string(root, "op"));
    ROOFGEN_TRY(f.title_, string(root, "title"));
    ROOFGEN_TRY(f.dims_, names(root, "dims"));
    ROOFGEN_TRY(f.flags_, names(root, "flags"));
    ROOFGEN_TRY(f.dtypes_, names(root, "dtypes"));
    ROOFGEN_TRY(f.math_roles_, strings(root, "math"));
    ROOFGEN_TRY(f.grows_, strings(root, "grows"));
    for (const std::string& role : f.math_roles_) ROOFGEN_CHECK(role_exists(f, role));
    for (const std::string& dim : f.grows_)
      if (!known(dim, f.dims_, "dimension", f.op_))
        return bad(fmt::format("\"grows\" names no dimension: \"{}\"", dim), dim);
    ROOFGEN_TRY(const Json let, list(root, "let"));
    ROOFGEN_TRY(f.let_, pairs(let, "let"));
    ROOFGEN_TRY(const std::vector<std::string> conditions, strings(root, "requires"));
    for (const std::string& text : conditions) {
      ROOFGEN_TRY(expr::Expr e, parse(text));
      f.requires_.push_back(std::move(e));
    }
    ROOFGEN_TRY(const Json forms, list(root, "forms"));
    for (const Json& j : forms) {
      ROOFGEN_TRY(WorkFormula::Form form, read_form(f, j));
      f.forms_.push_back(std::move(form));
    }
    if (f.forms_.empty()) return bad("\"forms\" must be a list of at least one form", "forms");
    if (root.contains("tables")) {
      ROOFGEN_TRY(f.tables_, read_tables(root["tables"]));
    }
    return f;
  }

 private:
  Result<void> role_exists(const WorkFormula& f, const std::string& role) const {
    const std::vector<std::string> roles = dim_names(f.dtypes_);
    if (std::find(roles.begin(), roles.end(), role) != roles.end()) return {};
    return bad(fmt::format("\"{}\" is none of the dtypes{}", role, did_you_mean(role, roles)), role);
  }

  Result<std::vector<WorkDim>> names(const Json& root, const char* key) const {
    std::vector<WorkDim> out;
    ROOFGEN_TRY(const Json items, list(root, key));
    for (const Json& j : items) {
      WorkDim d;
      ROOFGEN_CHECK(only(j, {"name", "help", "default"}));
      ROOFGEN_TRY(d.name, string(j, "name"));
      ROOFGEN_TRY(d.help, string(j, "help"));
      if (j.contains("default")) {
        ROOFGEN_TRY(d.preset, expression(j, "default"));
      }
      out.push_back(std::move(d));
    }
    return out;
  }

  Result<TableWords> read_tables(const Json& j) const {
    TableWords out;
    ROOFGEN_CHECK(only(j, {"names", "order", "product", "dims", "named", "cache"}));
    ROOFGEN_TRY(out.names, strings(j, "names"));
    ROOFGEN_TRY(out.order, integer(j, "order", 1000));
    for (const auto& [key, to] : {std::pair{"product", &out.product}, {"cache", &out.cache}})
      if (j.contains(key)) {
        ROOFGEN_TRY(*to, boolean(j, key));
      }
    const auto sizes = [&](const Json& object, const char* key) -> Result<std::map<std::string, int64_t>> {
      std::map<std::string, int64_t> values;
      ROOFGEN_TRY(const Json* all, member(object, key, &Json::is_object, "an object of sizes"));
      for (const auto& [name, value] : all->items()) {
        ROOFGEN_TRY(values[name], integer(*all, name.c_str(), kMaxDim));
      }
      return values;
    };
    if (j.contains("dims")) {
      ROOFGEN_TRY(out.dims, sizes(j, "dims"));
    }
    if (j.contains("named")) {
      ROOFGEN_TRY(const Json* named, member(j, "named", &Json::is_object, "an object of names"));
      for (const auto& [name, ignored] : named->items()) {
        ROOFGEN_TRY(out.named[name], sizes(*named, name.c_str()));
      }
    }
    return out;
  }

  Result<WorkFormula::Form> read_form(const WorkFormula& f, const Json& j) const {
    WorkFormula::Form form;
    ROOFGEN_CHECK(only(j, {"name", "when", "kernels", "lever", "cache"}));
    ROOFGEN_TRY(form.lever, string_or(j, "lever", ""));
    ROOFGEN_TRY(form.cache, strings(j, "cache"));
    ROOFGEN_TRY(form.name, string(j, "name"));
    ROOFGEN_TRY(form.when, j.contains("when") ? expression(j, "when") : expr::Expr::parse("true"));
    ROOFGEN_TRY(const Json kernels, list(j, "kernels"));
    for (const Json& k : kernels) {
      ROOFGEN_TRY(WorkFormula::Kernel kernel, read_kernel(f, k));
      form.kernels.push_back(std::move(kernel));
    }
    if (form.kernels.empty()) return bad(fmt::format("form \"{}\" has no kernels", form.name), form.name);
    return form;
  }

  Result<WorkFormula::Kernel> read_kernel(const WorkFormula& f, const Json& j) const {
    WorkFormula::Kernel kernel;
    ROOFGEN_CHECK(only(j, {"name", "when", "operands", "mma_flops", "vector_flops", "softmax_elements", "exps", "ctas",
                           "l2_bytes", "smem_a", "smem_b", "link_bytes"}));
    ROOFGEN_TRY(kernel.name, string(j, "name"));
    if (j.contains("when")) {
      ROOFGEN_TRY(kernel.when, expression(j, "when"));
    }
    ROOFGEN_TRY(const Json operands, list(j, "operands"));
    for (const Json& o : operands) {
      WorkFormula::Operand operand;
      ROOFGEN_CHECK(only(o, {"read", "write", "dtype", "elements", "when"}));
      operand.write = o.contains("write");
      if (operand.write == o.contains("read"))
        return bad(fmt::format("an operand of {} needs either \"read\" or \"write\"", kernel.name), kernel.name);
      ROOFGEN_TRY(operand.name, string(o, operand.write ? "write" : "read"));
      ROOFGEN_TRY(operand.role, string(o, "dtype"));
      // A role, or a format by name where the formula fixes it ("fp32" statistics).
      if (!find_number_format(operand.role)) ROOFGEN_CHECK(role_exists(f, operand.role));
      ROOFGEN_TRY(operand.elements, expression(o, "elements"));
      if (o.contains("when")) {
        ROOFGEN_TRY(operand.when, expression(o, "when"));
      }
      kernel.operands.push_back(std::move(operand));
    }
    for (const char* amount : kAmounts)
      if (j.contains(amount)) {
        ROOFGEN_TRY(expr::Expr e, expression(j, amount));
        kernel.amounts.emplace(amount, std::move(e));
      }
    return kernel;
  }
};

std::vector<std::string> WorkFormula::names(const DataFiles& files) { return json_names(files, "work/"); }

Result<WorkFormula> WorkFormula::load(const DataFiles& files, const std::string& op) {
  const std::vector<std::string> all = names(files);
  if (std::find(all.begin(), all.end(), op) == all.end())
    return Error{Exit::kUsage, fmt::format("unknown operator \"{}\"{}", op, did_you_mean(op, all))};
  const std::string path = "work/" + op + ".json";
  ROOFGEN_TRY(std::string text, files.load(path));
  return parse(std::move(text), files.origin(path));
}

Result<WorkFormula> WorkFormula::parse(std::string text, std::string name) {
  ROOFGEN_TRY(const JsonFile file, JsonFile::parse(std::move(text), std::move(name)));
  return WorkReader(file).read();
}

Result<expr::Map> WorkFormula::scope(const WorkRequest& request, int64_t largest, OpWork& out) const {
  expr::Map scope;
  for (const auto& [name, value] : request.dims) ROOFGEN_CHECK(known(name, dims_, "dimension", op_));
  for (const auto& [name, value] : request.flags) ROOFGEN_CHECK(known(name, flags_, "flag", op_));
  for (const auto& [role, name] : request.dtypes)
    if (!role.empty()) ROOFGEN_CHECK(known(role, dtypes_, "operand dtype", op_));
  for (const WorkDim& d : dims_) {
    const auto given = request.dims.find(d.name);
    int64_t value = 0;
    if (given != request.dims.end())
      value = given->second;
    else if (!d.preset)
      return Error{Exit::kUsage, fmt::format("{} needs --{}: {}", op_, d.name, d.help)};
    else {
      ROOFGEN_TRY(value, d.preset->eval_int(scope));
    }
    if (value < 0 || value > largest)
      return Error{Exit::kUsage, fmt::format("{} is {}; 0 to 2^40 was expected", d.name, value)};
    scope[d.name] = out.dims[d.name] = value;
  }
  for (const WorkDim& flag : flags_) {
    const auto given = request.flags.find(flag.name);
    bool value = given != request.flags.end() && given->second;
    if (given == request.flags.end() && flag.preset) {
      ROOFGEN_TRY(value, flag.preset->check(scope));
    }
    scope[flag.name] = out.flags[flag.name] = value;
  }
  const auto common = request.dtypes.find("");
  for (const WorkDim& role : dtypes_) {
    std::string name;
    if (const auto given = request.dtypes.find(role.name); given != request.dtypes.end()) {
      name = given->second;
    } else if (role.preset) {
      expr::Map names = scope;
      const std::string shared = common != request.dtypes.end() ? common->second : "bf16";
      ROOFGEN_TRY(const NumberFormat* shared_format, find_number_format(shared));
      names["dtype"] = shared;
      names["dtype_result"] = shared_format->result;
      for (const auto& [done, format] : out.dtypes) {
        names[done] = format->name;
        names[done + "_result"] = format->result;
      }
      ROOFGEN_TRY(const expr::Value value, role.preset->eval(names));
      name = value.str();
    } else {
      name = common != request.dtypes.end() ? common->second : "bf16";
    }
    ROOFGEN_TRY(out.dtypes[role.name], find_number_format(name));
  }
  for (const auto& [role, format] : out.dtypes) scope[role + "_bytes"] = format->bytes;
  // Before `let`, which may divide by what must not be 0.
  std::string why;
  for (const expr::Expr& e : requires_) {
    ROOFGEN_TRY(const bool holds, e.check(scope, &why));
    if (!holds) return Error{Exit::kUsage, fmt::format("{}: this does not hold: {}", op_, why)};
  }
  for (const auto& [name, e] : let_) {
    ROOFGEN_TRY(scope[name], e.eval(scope));
  }
  return scope;
}

Result<const WorkFormula::Form*> WorkFormula::choose(const expr::Map& scope) const {
  for (const Form& form : forms_) {
    ROOFGEN_TRY(const bool chosen, form.when.check(scope));
    if (chosen) return &form;
  }
  std::vector<std::string> conditions;
  for (const Form& form : forms_) conditions.push_back(fmt::format("{} ({})", form.name, form.when.text()));
  return Error{Exit::kUsage, fmt::format("{} has no such form; known: {}", op_, fmt::join(conditions, ", "))};
}

Result<void> WorkFormula::kernels(const Form& form, const expr::Map& scope, Part part, OpWork& out) const {
  for (const Kernel& k : form.kernels) {
    if (k.when) {
      ROOFGEN_TRY(const bool runs, k.when->check(scope));
      if (!runs) continue;
    }
    KernelWork work;
    work.name = k.name;
    for (const Operand& o : k.operands) {
      if (o.when) {
        ROOFGEN_TRY(const bool there, o.when->check(scope));
        if (!there) continue;
      }
      OperandWork operand{o.name, o.write, 0, nullptr};
      ROOFGEN_TRY(operand.elements, o.elements.eval_number(scope));
      if (!(operand.elements >= 0))
        return Error{
            Exit::kFailed, fmt::format("{}: {} of {} has {} elements", op_, o.name, k.name, operand.elements), {file_}};
      const auto role = out.dtypes.find(o.role);
      ROOFGEN_TRY(operand.format,
                  role != out.dtypes.end() ? Result<const NumberFormat*>(role->second) : find_number_format(o.role));
      work.operands.push_back(std::move(operand));
    }
    const auto amount = [&](const char* name) -> Result<double> {
      const auto found = k.amounts.find(name);
      if (found == k.amounts.end()) return 0.0;
      ROOFGEN_TRY(const double value, found->second.eval_number(scope));
      if (!(value >= 0))
        return Error{Exit::kFailed,
                     fmt::format("{}: {} of {} is {}; 0 or more was expected", op_, name, k.name, value),
                     {file_}};
      return value;
    };
    ROOFGEN_TRY(work.mma_flops, amount("mma_flops"));
    ROOFGEN_TRY(work.vector_flops, amount("vector_flops"));
    ROOFGEN_TRY(work.softmax_elements, amount("softmax_elements"));
    if (part == Part::kIntensity) {
      out.kernels.push_back(std::move(work));
      continue;
    }
    ROOFGEN_TRY(work.exps, amount("exps"));
    ROOFGEN_TRY(work.ctas, amount("ctas"));
    ROOFGEN_TRY(work.l2_bytes, amount("l2_bytes"));
    ROOFGEN_TRY(work.smem_a, amount("smem_a"));
    ROOFGEN_TRY(work.smem_b, amount("smem_b"));
    ROOFGEN_TRY(work.link_bytes, amount("link_bytes"));
    // What comes from DRAM passes the L2; formulas state what passes it more than once.
    work.l2_bytes = std::max(work.l2_bytes, work.dram_bytes());
    out.kernels.push_back(std::move(work));
  }
  return {};
}

Result<OpWork> WorkFormula::evaluate(const WorkRequest& request) const {
  OpWork out;
  out.op = op_;
  out.title = title_;
  out.softmax_flops = request.softmax_flops;
  ROOFGEN_TRY(const expr::Map names, scope(request, kMaxDim, out));
  ROOFGEN_TRY(const Form* form, choose(names));
  out.form = form->name;
  out.lever = form->lever;
  out.cache = form->cache;
  if (auto done = kernels(*form, names, Part::kAll, out); !done) {
    // The formulas are checked when they are read; what fails now is the numbers they were given.
    Error error = std::move(done).error();
    error.exit = Exit::kUsage;
    return error;
  }

  // Matrix work runs at the rate of its widest operand: a narrower one is widened on the way in.
  const NumberFormat* widest = nullptr;
  for (const std::string& role : math_roles_)
    if (const NumberFormat* f = out.dtypes.at(role); !widest || f->rank > widest->rank) widest = f;
  if (!request.math_dtype.empty()) {
    ROOFGEN_TRY(widest, find_number_format(request.math_dtype));
  }
  out.math = widest ? widest->math : "fp32";
  out.accumulate = !request.accumulate.empty()                ? request.accumulate
                   : out.math == "int8" || out.math == "int4" ? "int32"
                   : out.math == "fp64"                       ? "fp64"
                                                              : "fp32";
  ROOFGEN_CHECK(find_number_format(out.accumulate));

  if (!grows_.empty()) {
    WorkRequest unbounded = request;
    for (const std::string& dim : grows_) unbounded.dims[dim] = kUnbounded;
    OpWork limit;
    limit.softmax_flops = request.softmax_flops;
    if (auto limit_scope = scope(unbounded, std::numeric_limits<int64_t>::max(), limit)) {
      if (auto limit_form = choose(*limit_scope);
          limit_form && kernels(**limit_form, *limit_scope, Part::kIntensity, limit)) {
        out.ai_limit = limit.arithmetic_intensity();
        out.ai_limit_of = fmt::format("{}", fmt::join(grows_, ", "));
      }
    }
  }
  return out;
}

double KernelWork::dram_bytes() const {
  double out = 0;
  for (const OperandWork& o : operands) out += o.bytes();
  return out;
}

double OpWork::mma_flops() const { return sum(kernels, &KernelWork::mma_flops); }
double OpWork::exps() const { return sum(kernels, &KernelWork::exps); }

double OpWork::flops(const KernelWork& k) const {
  return uses_matrix_units() ? k.mma_flops + softmax_flops * k.softmax_elements : k.vector_flops;
}

double OpWork::flops() const {
  double out = 0;
  for (const KernelWork& k : kernels) out += flops(k);
  return out;
}

double OpWork::dram_bytes() const {
  double out = 0;
  for (const KernelWork& k : kernels) out += k.dram_bytes();
  return out;
}

double OpWork::arithmetic_intensity() const {
  const double bytes = dram_bytes();
  return bytes > 0 ? flops() / bytes : 0;
}

std::string OpWork::flop_convention() const {
  if (!uses_matrix_units()) return "per-element operations count one FLOP each (a multiply-add two, an exp one)";
  std::string out = "MMA FLOPs only, 2 per multiply-add";
  if (softmax_flops > 0) out += fmt::format(", and {:g} per softmax element", softmax_flops);
  const auto causal = flags.find("causal");
  if (causal != flags.end() && causal->second) out += "; only the allowed half of a causal mask";
  return out;
}

// Block scales: OCP Microscaling Formats 1.0 (mx*: one 8-bit exponent per 32 elements); NVIDIA's NVFP4 has one FP8
// scale per 16 elements. TF32 is an arithmetic, not a storage format: in memory it is fp32.
const std::vector<NumberFormat>& number_formats() {
  static const std::vector<NumberFormat> table = {
      {"fp4", 0.5, "fp4", 1, "bf16", "without its scales"},
      {"nvfp4", 0.5 + 1.0 / 16, "fp4", 1, "bf16", "one FP8 scale per 16 elements"},
      {"mxfp4", 0.5 + 1.0 / 32, "fp4", 1, "bf16", "one 8-bit scale per 32 elements"},
      {"int4", 0.5, "int4", 1, "int32", ""},
      {"fp6", 0.75, "fp6", 1, "bf16", "e2m3 or e3m2, without its scales"},
      {"mxfp6", 0.75 + 1.0 / 32, "mxfp8", 1, "bf16", "one 8-bit scale per 32 elements, multiplied as MXFP8"},
      {"fp8", 1, "fp8", 2, "bf16", "e4m3 or e5m2"},
      {"mxfp8", 1 + 1.0 / 32, "mxfp8", 2, "bf16", "one 8-bit scale per 32 elements"},
      {"int8", 1, "int8", 2, "int32", ""},
      {"bf16", 2, "bf16", 3, "bf16", ""},
      {"fp16", 2, "fp16", 3, "fp16", ""},
      {"tf32", 4, "tf32", 4, "fp32", "multiplied as TF32, stored as fp32"},
      {"fp32", 4, "fp32", 5, "fp32", ""},
      {"int32", 4, "int32", 5, "int32", ""},
      {"fp64", 8, "fp64", 6, "fp64", ""},
  };
  return table;
}

Result<const NumberFormat*> find_number_format(const std::string& name) {
  std::vector<std::string> known;
  for (const NumberFormat& f : number_formats()) {
    if (name == f.name) return &f;
    known.emplace_back(f.name);
  }
  return Error{Exit::kUsage, fmt::format("unknown dtype \"{}\"{}", name, did_you_mean(name, known))};
}

}  // namespace roofgen

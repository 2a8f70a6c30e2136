#include "generator/emit_cases.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <optional>
#include <set>

#include "base/mix.h"
#include "generator/ops/elements.h"
#include "generator/ops/expected.h"
#include "generator/ops/op_file.h"
#include "generator/space/json_reader.h"

namespace roofgen {
namespace {

using Conditions = std::vector<std::vector<std::vector<LaunchCode::Condition>>>;

/// Problems that differ from the tuned one: of so many the results are compared, unless the op says how many; and calls
/// that are refused, up to so many.
constexpr size_t kEnough = 9, kMostRefused = 64;
/// Elements of an output that are compared, at least one of each row of up to kMostRows.
constexpr int64_t kSamples = 300, kMostRows = 1000;
/// Up to so many operations the whole reference is computed, a tenth of a second.
constexpr double kWholeWork = 2.5e8;
/// Numbers that a file lists: of a larger index the problem is left out.
constexpr uint64_t kMostListed = 2000;
/// Elements of an input whose bits are compared with the bits that the op gives.
constexpr uint64_t kDigested = 1024;
constexpr int64_t kFarStride = int64_t{1} << 31;
constexpr size_t kRank = 4, kMostSelections = 400;

class TestsReader : public JsonReader {
 public:
  using JsonReader::JsonReader;
  using JsonReader::parse;
};

/// A table in C, in lines.
template <class T>
std::string braced(const std::vector<T>& items) {
  std::string out = "{", line;
  for (const T& item : items) {
    const std::string text = fmt::format("{},", item);
    if (line.size() + text.size() > 114) out += std::exchange(line, "") + "\n  ";
    line += text;
  }
  return out + (items.empty() ? "0" : line) + "}";
}

std::string real(double x) {
  const std::string digits = fmt::format("{}", x);
  return digits.find_first_of(".en") == std::string::npos ? digits + ".0" : digits;
}

/// The order of the bits of a format as numbers: neighbours differ by 1, and both zeros are one.
uint32_t code_of(double value, DType dtype) {
  std::byte raw[4] = {};
  store_element(raw, 0, dtype, value);
  uint32_t bits = 0;
  std::memcpy(&bits, raw, sizeof bits);
  const uint32_t sign = 1u << (8 * size_of(dtype) - 1);
  if (is_integer(dtype)) return bits ^ sign;
  return bits & sign ? sign - (bits & (sign - 1)) : sign + bits;
}

/// The least and the most code of a right result. Nothing: any result is right, or none.
std::optional<std::pair<uint32_t, uint32_t>> codes_of(const ExpectedElement& e, DType dtype) {
  if (std::isnan(e.value)) return std::nullopt;
  const double low = e.value - e.tolerance, high = e.value + e.tolerance;
  if (std::isinf(e.value)) return std::pair{code_of(e.value, dtype), code_of(e.value, dtype)};
  uint32_t least = code_of(low, dtype), most = code_of(high, dtype);
  if (round_to_dtype(low, dtype) < low) ++least;
  if (round_to_dtype(high, dtype) > high) --most;
  return least <= most ? std::optional(std::pair{least, most}) : std::nullopt;
}

/// A tensor of a problem: its place in calls, and what the self test knows of it.
struct Tensor {
  const Buffer* buffer = nullptr;
  size_t parameter = 0;
  std::vector<int64_t> shape, number;  ///< of kRank dimensions; `number` gives the number of an element
  std::vector<std::string> names;      ///< of strides that are parameters

  int64_t elements() const { return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies()); }
  /// The place of an element in the order of its indices, from its number.
  int64_t place(uint64_t at) const {
    std::array<size_t, kRank> order{0, 1, 2, 3};
    std::ranges::stable_sort(order, std::greater(), [&](size_t i) { return number[i]; });
    std::array<int64_t, kRank> index{};
    auto left = static_cast<int64_t>(at);
    for (const size_t i : order)
      if (shape[i] > 1) index[i] = left / number[i], left %= number[i];
    return std::inner_product(index.begin(), index.end(), pitches().begin(), int64_t{0});
  }
  uint64_t number_of(int64_t place) const {
    const auto steps = pitches();
    int64_t out = 0;
    for (size_t i = 0; i < kRank; ++i) out += place / steps[i] % shape[i] * number[i];
    return static_cast<uint64_t>(out);
  }
  std::array<int64_t, kRank> pitches() const {
    std::array<int64_t, kRank> out{1, 1, 1, 1};
    for (size_t i = kRank - 1; i-- > 0;) out[i] = out[i + 1] * shape[i + 1];
    return out;
  }
};

/// As many dimensions as kRank; those of size 1 come first.
void widen(std::vector<int64_t>& list, int64_t filler) { list.insert(list.begin(), kRank - list.size(), filler); }

class Cases {
 public:
  Cases(const EmitRequest& request, const Interface& interface, const Conditions& conditions,
        const std::vector<std::string>& sizes, const Op& op)
      : request_(request),
        interface_(interface),
        conditions_(conditions),
        sizes_(sizes),
        op_(op),
        problem_(*request.problem),
        scope_(request.pipelines[0].scope),
        parameters_(interface.parameters(request.buffers)) {
    for (const EmittedPipeline& p : request.pipelines)
      if (!variant_ || (variant_->fused && !p.variant->fused)) variant_ = p.variant;
  }

  Result<std::string> write() {
    ROOFGEN_TRY(const OpFile file, OpFile::load(*request_.files, problem_.op));
    const TestsReader reader(*file.json);
    reader_ = &reader;
    tests_ = file.json->root().value("tests", Json::object());
    ROOFGEN_CHECK(add_shapes());
    ROOFGEN_CHECK(add_listed());
    ROOFGEN_CHECK(add_asked());
    only_refused_ = false;
    ROOFGEN_TRY(const bool tuned, add(with_floats(problem_), {Strides::kPlain}));
    if (!tuned && problems_ == 0) return Error{Exit::kFailed, "no case of the self test is served by the kernels"};
    ROOFGEN_CHECK(add_selections());
    return text_ + tables();
  }

 private:
  enum class Strides { kPlain, kPadded, kFar, kShifted };
  struct Call {
    std::string problem;  ///< its number, or "-1": refused
    bool may_be_refused = false;
    int pipeline = -1;
    expr::Map given;
    std::string strides;
  };

  /// Whether calls differ in their pipeline.
  bool selects() const { return !request_.table.empty() && request_.pipelines.size() > 1; }

  /// A member of the op's tests; an absent one is empty.
  const Json& part(const char* name) const {
    static const Json none = Json::array();
    const auto at = tests_.find(name);
    return at == tests_.end() ? none : *at;
  }

  // ---- Problems ----

  Result<expr::Value> evaluated(const Json& text, const expr::Map& scope) const {
    ROOFGEN_TRY(const expr::Expr e, reader_->parse(text.get<std::string>()));
    return e.eval(scope);
  }

  /// A call has floats.
  Problem with_floats(Problem problem) const {
    for (const Parameter& p : parameters_)
      if (p.kind == Parameter::Kind::kReal)
        problem.reals.at(p.key) = static_cast<double>(static_cast<float>(problem.reals.at(p.key)));
    return problem;
  }

  /// The tuned problem with other sizes: of case `number`. Nothing: the op has no such problem.
  Result<std::optional<Problem>> problem_at(const Json& sizes, size_t number) const {
    Problem out = problem_;
    expr::Map scope = scope_;
    for (const auto& [name, text] : sizes.items()) {
      ROOFGEN_TRY(const expr::Value value, evaluated(text, scope_));
      if (!out.dims.count(name)) continue;
      out.dims[name] = *value.as<int64_t>();
      scope[name] = value;
    }
    if (number % 2 == 0) {
      out = op_.with_other_scalars(std::move(out));
      for (const auto& [name, text] : part("numbers").items()) {
        ROOFGEN_TRY(const expr::Value value, evaluated(text, scope_));
        if (out.reals.count(name)) out.reals[name] = *value.as<double>();
      }
    }
    out = with_floats(std::move(out));
    std::vector<Problem> tried{out};
    for (const auto& [name, list] : part("lists").items()) {
      if (!out.texts.count(name) || out.texts[name].empty()) continue;
      tried.clear();
      const Json& choices = list["items"];
      for (size_t i = 0; i < choices.size(); ++i) {
        Problem& p = tried.emplace_back(out);
        std::vector<std::string> items;
        for (const Json& text : choices[(number + i) % choices.size()]) {
          ROOFGEN_TRY(const expr::Value value, evaluated(text, scope));
          items.push_back(value.str());
        }
        p.texts[name] = fmt::format("{}", fmt::join(items, ","));
        for (const Json& dim : list["implies"]) p.dims.erase(dim.get<std::string>());
      }
    }
    for (Problem& p : tried)
      if (auto complete = op_.complete(std::move(p))) return std::optional(std::move(*complete));
    return std::optional<Problem>();
  }

  Result<expr::Map> scope_of(const Problem& problem) const {
    return problem_scope(op_, problem, *scope_.at("device").map());
  }
  expr::Map given_of(const Problem& problem, const expr::Map& scope) const {
    expr::Map out;
    for (const Parameter& p : parameters_) {
      if (p.kind == Parameter::Kind::kTensor) continue;
      out[p.key] = p.kind == Parameter::Kind::kReal ? expr::Value(problem.reals.at(p.key)) : scope.at(p.key);
    }
    return out;
  }

  // ---- Which pipeline a call takes ----

  enum class Fit { kServed, kRefused, kUnknown };
  Result<Fit> fit(size_t pipeline, const expr::Map& call) const {
    const EmittedPipeline& p = request_.pipelines[pipeline];
    expr::Map scope = call;
    scope["device"] = p.scope.at("device");
    for (size_t k = 0; k < p.kernels.size(); ++k) {
      const EmittedKernel& kernel = p.kernels[k];
      auto points = StagePoints::of(*p.variant, *kernel.stage, scope);
      if (!points || points->move_to(kernel.program->schedule)) return Fit::kUnknown;
      const expr::Names here = points->point();
      for (const LaunchCode::Condition& c : conditions_[pipeline][k]) {
        const auto holds = here.with_tuned(kernel.scope).check(c.condition);
        if (!holds) return Fit::kUnknown;
        if (!*holds) return Fit::kRefused;
      }
      const auto fault = launch_fault(*kernel.stage, here);
      if (!fault) return Fit::kUnknown;
      if (!fault->empty()) return Fit::kRefused;
    }
    return Fit::kServed;
  }

  /// Of each architecture, the pipeline of the nearest shape that serves the call; -1: none. Nothing: unknown.
  Result<std::optional<std::vector<int>>> taken(const expr::Map& call) const {
    std::vector<int> out;
    for (size_t first = 0; first < request_.shapes.size();) {
      size_t end = first;
      const auto arch = [&](size_t shape) { return request_.pipelines[request_.shapes[shape].pipeline].arch; };
      while (end < request_.shapes.size() && arch(end) == arch(first)) ++end;
      std::vector<std::pair<double, size_t>> order;
      for (size_t i = first; i < end; ++i) {
        double far = 1;
        for (const std::string& size : sizes_) {
          const double here = static_cast<double>(*call.at(size).as<int64_t>()),
                       there = static_cast<double>(request_.shapes[i].sizes.at(size));
          far *= std::max(here, there) / std::min(here, there);
        }
        order.emplace_back(far, request_.shapes[i].pipeline);
      }
      std::ranges::stable_sort(order, {}, &std::pair<double, size_t>::first);
      int found = -1;
      for (const auto& [far, pipeline] : order) {
        ROOFGEN_TRY(const Fit fits, fit(pipeline, call));
        if (fits == Fit::kUnknown) return std::optional<std::vector<int>>();
        if (fits == Fit::kServed) {
          found = static_cast<int>(pipeline);
          break;
        }
      }
      out.push_back(found);
      first = end;
    }
    return std::optional(std::move(out));
  }

  // ---- Cases ----

  /// A problem with calls of these strides. False: no call of it is served.
  Result<bool> add(const Problem& problem, const std::vector<Strides>& kinds) {
    const std::vector<Buffer> buffers = op_.buffers(problem);
    ROOFGEN_TRY(const expr::Map scope, scope_of(problem));
    const expr::Map plain = given_of(problem, scope);
    const auto in_call = interface_.scope_of(plain);
    if (!in_call) return false;
    std::vector<Tensor> tensors;
    for (size_t i = 0; i < parameters_.size(); ++i) {
      if (parameters_[i].kind != Parameter::Kind::kTensor) continue;
      const auto buffer = std::ranges::find(buffers, parameters_[i].key, &Buffer::name);
      if (buffer == buffers.end()) return false;
      ROOFGEN_TRY(Interface::Placed placed, interface_.placed(*buffer, *in_call));
      widen(placed.shape, 1);
      widen(placed.strides, 0);
      placed.names.insert(placed.names.begin(), kRank - placed.names.size(), "");
      tensors.push_back({&*buffer, i, std::move(placed.shape), std::move(placed.strides), std::move(placed.names)});
    }
    std::string number;
    bool served = false;
    for (const Strides kind : kinds) {
      ROOFGEN_TRY(const std::vector<expr::Map> calls, calls_of(kind, plain, tensors));
      for (const expr::Map& given : calls) {
        ROOFGEN_TRY(const bool one, add_call(problem, tensors, given, number));
        served |= one;
      }
    }
    return served;
  }

  /// The numbers of calls that differ in their strides.
  Result<std::vector<expr::Map>> calls_of(Strides kind, const expr::Map& plain, const std::vector<Tensor>& tensors) {
    if (kind == Strides::kPlain) return std::vector{plain};
    ROOFGEN_TRY(const expr::Map padded, padded_strides(plain, tensors));
    if (kind == Strides::kPadded) return std::vector{padded};
    std::vector<expr::Map> out;
    if (kind == Strides::kFar) {
      expr::Map far = padded;
      for (const Json& name : part("far"))
        if (far.count(name.get<std::string>())) far[name.get<std::string>()] = kFarStride;
      if (far.size() == padded.size() && !part("far").empty() && has_all(far)) out.push_back(std::move(far));
      return out;
    }
    // Each stride once aligned to 8 bytes, once to an element.
    for (const Tensor& t : tensors)
      for (const std::string& name : t.names)
        for (const int64_t more : {8 / size_of(t.buffer->dtype), 1})
          if (!name.empty() && more * size_of(t.buffer->dtype) % 16 != 0) {
            out.push_back(padded);
            out.back()[name] = *padded.at(name).as<int64_t>() + more;
          }
    return out;
  }
  bool has_all(const expr::Map& given) const {
    for (const Json& name : part("far"))
      if (!given.count(name.get<std::string>())) return false;
    return true;
  }

  /// Each stride, from the least up, is longer than what it steps over, by another multiple of 16 bytes.
  Result<expr::Map> padded_strides(const expr::Map& plain, const std::vector<Tensor>& tensors) const {
    expr::Map out = plain;
    int64_t more = 0;
    for (const Tensor& t : tensors) {
      std::array<size_t, kRank> order{3, 2, 1, 0};
      std::ranges::stable_sort(order, {}, [&](size_t i) { return t.number[i]; });
      const int64_t unit = std::max(1, 16 / size_of(t.buffer->dtype));
      int64_t extent = 1;  // of the dimensions before
      for (const size_t i : order) {
        int64_t stride = std::max(t.number[i], int64_t{0});
        if (!t.names[i].empty() && t.shape[i] > 0 && stride > 0) {
          stride = ((extent + unit - 1) / unit + ++more) * unit;
          out[t.names[i]] = stride;
        }
        extent = std::max(extent, stride * (t.shape[i] - 1) + extent);
      }
    }
    for (const auto& [name, text] : part("padded").items()) {
      ROOFGEN_TRY(const expr::Expr e, reader_->parse(text.get<std::string>()));
      if (out.count(name)) {
        ROOFGEN_TRY(out[name], e.eval(plain));
      }
    }
    return out;
  }

  Result<bool> add_call(const Problem& problem, const std::vector<Tensor>& tensors, const expr::Map& given,
                        std::string& number) {
    const auto call = interface_.scope_of(given);
    if (!call) return false;
    for (const Tensor& t : tensors) {
      ROOFGEN_TRY(const Interface::Extent extent, interface_.extent(*t.buffer, *call));
      for (size_t i = 0; extent.aligned_strides && i + 1 < extent.strides.size(); ++i)
        if (extent.strides[i] * size_of(t.buffer->dtype) % 16 != 0) return false;
    }
    ROOFGEN_TRY(const std::optional<std::vector<int>> pipelines, taken(*call));
    if (!pipelines) return false;
    const bool refused = std::ranges::all_of(*pipelines, [](int p) { return p < 0; });
    if (refused) {
      if (refused_++ < kMostRefused) calls_.push_back({"-1", false, -1, given, ""});
      return false;
    }
    if (only_refused_) return true;
    if (number.empty()) {
      ROOFGEN_TRY(number, problem_text(problem, tensors));
      if (number.empty()) return false;
    }
    std::string strides;
    for (const Tensor& t : tensors) {
      ROOFGEN_TRY(Interface::Placed placed, interface_.placed(*t.buffer, *call));
      widen(placed.strides, 0);
      strides += fmt::format("\n    {{{}}},", fmt::join(placed.strides, ", "));
    }
    calls_.push_back({number, std::ranges::count(*pipelines, -1) > 0, pipelines->front(), given, std::move(strides)});
    return true;
  }

  /// For each of several pipelines the sizes of a shape that it is for, small where the shapes do not differ.
  Result<void> add_shapes() {
    if (!selects()) return {};
    const Json small = tests_.value("small", Json::object());
    for (size_t p = 0; p < request_.pipelines.size(); ++p) {
      const auto shape = std::ranges::find(request_.shapes, p, &EmittedShape::pipeline);
      if (shape == request_.shapes.end()) continue;
      Problem problem = problem_;
      for (const auto& [name, size] : shape->sizes) {
        const bool differs = std::ranges::any_of(
            request_.shapes, [&, &name = name, &size = size](const auto& x) { return x.sizes.at(name) != size; });
        problem.dims[name] = differs ? size : std::min(size, small.value(name, size));
      }
      if (const auto complete = op_.complete(problem)) {
        ROOFGEN_CHECK(add(*complete, {Strides::kPlain}));
      }
    }
    return {};
  }

  Result<void> add_listed() {
    const Json& cases = part("cases");
    const Json alternatives = tests_.value("alternatives", Json::array({Json::object()}));
    const size_t enough = tests_.value("enough", kEnough);
    size_t served = 0;
    for (size_t i = 0; i < cases.size(); ++i) {
      only_refused_ = served >= enough;
      for (size_t a = 0; a < alternatives.size(); ++a) {
        Json sizes = cases[i];
        sizes.update(alternatives[(a + i) % alternatives.size()]);
        ROOFGEN_TRY(const std::optional<Problem> problem, problem_at(sizes, i));
        if (!problem) continue;
        ROOFGEN_TRY(bool one, add(*problem, {i % 2 == 0 ? Strides::kPadded : Strides::kPlain}));
        if (!one) {
          ROOFGEN_TRY(one, add(*problem, {i % 2 == 0 ? Strides::kPlain : Strides::kPadded}));
        }
        if (!one) continue;
        if (served++ == 0) ROOFGEN_CHECK(add(*problem, {Strides::kPlain, Strides::kFar, Strides::kShifted}));
        break;
      }
    }
    return {};
  }

  /// --test-shape.
  Result<void> add_asked() {
    for (const auto& [text, sizes] : request_.test_shapes) {
      const auto no = [&, &text = text](const std::string& why) {
        return Error{Exit::kUsage, fmt::format("--test-shape {}: {}", text, why)};
      };
      for (const auto& [name, size] : sizes.items())
        if (!problem_.dims.count(name)) return no(fmt::format("{} has no size {}", problem_.op, name));
      ROOFGEN_TRY(const std::optional<Problem> problem, problem_at(sizes, 1));
      if (!problem) return no("no such problem");
      ROOFGEN_TRY(const bool served, add(*problem, {Strides::kPlain}));
      if (!served) return no("the kernels do not take these sizes");
    }
    return {};
  }

  /// The pipelines at each shape, and around the middle of each two.
  Result<void> add_selections() {
    std::set<std::vector<int64_t>> tried;
    if (!selects()) return {};
    for (const EmittedShape& a : request_.shapes)
      for (const EmittedShape& b : request_.shapes)
        for (size_t k = 0; k < sizes_.size(); ++k) {
          const int64_t from = a.sizes.at(sizes_[k]), to = b.sizes.at(sizes_[k]);
          const auto middle = static_cast<int64_t>(std::sqrt(static_cast<double>(from) * static_cast<double>(to)));
          const int64_t whole = middle / 128 * 128;
          for (const int64_t size : {from, middle - 1, middle, middle + 1, (from + to) / 2, whole, whole + 128}) {
            std::vector<int64_t> at;
            for (const std::string& name : sizes_) at.push_back(a.sizes.at(name));
            at[k] = size;
            if (size > 0) tried.insert(at);
          }
        }
    const size_t step = tried.size() / kMostSelections + 1;
    size_t i = 0;
    for (std::vector<int64_t> at : tried) {
      if (i++ % step != 0) continue;
      expr::Map given;
      for (const Parameter& p : parameters_)
        if (p.kind == Parameter::Kind::kReal)
          given[p.key] = problem_.reals.at(p.key);
        else if (p.kind != Parameter::Kind::kTensor)
          given[p.key] = int64_t{0};
      for (size_t k = 0; k < sizes_.size(); ++k) given[sizes_[k]] = at[k];
      const auto call = interface_.scope_of(given);
      if (call) {
        ROOFGEN_TRY(const auto pipelines, taken(*call));
        if (!pipelines) continue;
        at.push_back(pipelines->front());
      } else {
        at.push_back(-1);
      }
      selections_ += fmt::format("    {{{}}},\n", fmt::join(at, ", "));
    }
    return {};
  }

  // ---- Text ----

  /// The number of a problem whose tables are added to the text; "": its index data are too long.
  Result<std::string> problem_text(const Problem& problem, const std::vector<Tensor>& tensors) {
    const double work = work_of(problem);
    const bool whole = work <= kWholeWork;
    ROOFGEN_TRY(const ExpectedElements expected, expected_of(problem, tensors, whole));
    if (expected.empty())
      return Error{Exit::kFailed, fmt::format("nothing is expected of the outputs of {}", to_string(problem))};
    const std::string number = fmt::format("{}", problems_);
    std::string tables, rows;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& t = tensors[i];
      const std::string id = fmt::format("{}_{}", number, i);
      std::string row = fmt::format("    {{{}, E_{}, {{{}}}, {{{}}}, ", t.parameter, to_string(t.buffer->dtype),
                                    fmt::join(t.shape, ", "), fmt::join(t.number, ", "));
      if (t.buffer->has_contents()) {
        ROOFGEN_TRY(const std::optional<std::string> made, recipe_text(problem, t, id, tables));
        if (!made) return std::string();
        row += *made;
      } else {
        row += "kResult, 0, 0, E_fp32, NULL, NULL, 0, 0";
      }
      const auto found = expected.find(t.buffer->name);
      row += found == expected.end() ? ", NULL, 0, NULL" : expected_text(problem, t, found->second, id, tables);
      rows += row + "},\n";
    }
    ++problems_;
    std::string sizes;
    for (const Parameter& p : parameters_)
      if (p.kind == Parameter::Kind::kSize && problem.dims.count(p.key))
        sizes += fmt::format("{}{} {}", sizes.empty() ? "" : ", ", p.key, problem.dims.at(p.key));
    text_ += fmt::format("\n/* {} */\n{}static const tensor_case tensors_{}[] = {{\n{}}};\n", to_string(problem),
                         tables, number, rows);
    problem_rows_ += fmt::format("    {{\"{}\", {:.3g}, {}, tensors_{}}},\n", sizes, work, whole ? 1 : 0, number);
    return number;
  }

  /// Operations of the reference: its matrix FLOPs, else one for each element or term.
  double work_of(const Problem& problem) const {
    const auto required = op_.required(problem);
    if (required && required->mma_flops > 0) return required->mma_flops;
    std::set<std::string> outputs;
    for (const Stage& stage : variant_->stages)
      for (const std::string& output : compared_outputs(op_, problem, stage)) outputs.insert(output);
    double work = 0;
    for (const std::string& output : outputs)
      for (const Region& region : all_rows(op_, problem, output)) work += op_.weight(problem, region);
    return work;
  }

  Result<ExpectedElements> expected_of(const Problem& problem, const std::vector<Tensor>& tensors, bool whole) const {
    const auto tensor_of = [&](const std::string& buffer) {
      return std::ranges::find(tensors, buffer, [](const Tensor& t) -> const std::string& { return t.buffer->name; });
    };
    const auto wanted = [&](const std::string& buffer, uint64_t at, uint64_t first, uint64_t end) {
      const auto t = tensor_of(buffer);
      if (t == tensors.end() || t->buffer->role == Buffer::Role::kInput) return false;
      if (!whole) {
        const uint64_t step = std::max<uint64_t>(1, (end - first) / 16) | 1;
        return (at - first) % step == 0 || end - at <= 2;
      }
      const int64_t place = t->place(at), last = t->elements() - 1;
      return place % step_of(*t) == 0 || place == last;
    };
    ExpectedElements out;
    for (const Stage& stage : variant_->stages)
      for (const std::string& output : compared_outputs(op_, problem, stage)) {
        const std::vector<Region> regions =
            whole ? all_rows(op_, problem, output) : sampled_regions(op_.extent_of(problem, output), 2, output);
        ROOFGEN_CHECK(
            add_expected(op_, problem, InputPattern::kNormal, variant_->name, stage.name, regions, wanted, out));
      }
    return out;
  }

  /// Neighbours in the sample: prime to a row, so that each column has some, and at most a row apart.
  static int64_t step_of(const Tensor& t) {
    const int64_t columns = t.shape[kRank - 1], rows = t.elements() / columns;
    int64_t step = std::max<int64_t>(1, t.elements() / std::clamp(rows, kSamples, kMostRows));
    // In each new row of a cache one.
    if (t.buffer->role == Buffer::Role::kUpdated) step = std::min(step, columns);
    while (step > 1 && std::gcd(step, columns) != 1) --step;
    return step;
  }

  /// Whether an element of an updated tensor stays as it was: it was no NaN.
  bool is_old(const Problem& problem, const Tensor& t, uint64_t at) const {
    if (t.buffer->role != Buffer::Role::kUpdated) return false;
    std::byte raw[8] = {};
    const auto size = static_cast<uint64_t>(size_of(t.buffer->dtype));
    op_.fill(problem, InputPattern::kNormal, t.buffer->name, at * size, std::span(raw).first(size));
    return !std::isnan(load_element(raw, 0, t.buffer->dtype));
  }

  std::string expected_text(const Problem& problem, const Tensor& t, const std::map<uint64_t, ExpectedElement>& found,
                            const std::string& id, std::string& tables) const {
    std::map<int64_t, std::pair<uint32_t, uint32_t>> codes;
    for (const auto& [at, e] : found)
      if (const auto range = codes_of(e, t.buffer->dtype); range && !is_old(problem, t, at))
        codes[t.place(at)] = *range;
    if (codes.empty()) return ", NULL, 0, NULL";
    std::vector<std::string> runs, words;
    const bool wide = size_of(t.buffer->dtype) == 4;
    for (auto it = codes.begin(); it != codes.end();) {
      const int64_t first = it->first;
      int64_t step = 1, count = 0, at = first;
      if (const auto next = std::next(it); next != codes.end()) step = next->first - first;
      for (; it != codes.end() && it->first == at; ++it, ++count, at += step) {
        const auto [least, most] = it->second;
        if (wide) words.push_back(fmt::format("0x{:x}", least));
        words.push_back(wide ? fmt::format("{}", most - least) : fmt::format("0x{:x}", least | (most - least) << 16));
      }
      runs.push_back(fmt::format("{{{}, {}, {}}}", first, step, count));
    }
    tables += fmt::format("static const int64_t runs_{0}[][3] = {1};\nstatic const uint32_t codes_{0}[] = {2};\n", id,
                          braced(runs), braced(words));
    return fmt::format(", runs_{0}, {1}, codes_{0}", id, runs.size());
  }

  Result<std::optional<std::string>> recipe_text(const Problem& problem, const Tensor& t, const std::string& id,
                                                 std::string& tables) const {
    static constexpr const char* kKinds[] = {"kStream", "kRows", "kValues", "kScales", "kAngles"};
    const Recipe recipe = op_.recipe(problem, t.buffer->name);
    const DType dtype = t.buffer->dtype;
    const auto size = static_cast<uint64_t>(size_of(dtype)), count = t.buffer->bytes / size;
    std::vector<std::string> values, runs;
    for (const double scale : recipe.scales) values.push_back(real(scale));
    if (recipe.kind == Recipe::Kind::kValues) {
      if (count > kMostListed && problems_ > 0) return std::optional<std::string>();
      std::vector<std::byte> bytes(t.buffer->bytes);
      op_.fill(problem, InputPattern::kNormal, t.buffer->name, 0, bytes);
      for (uint64_t i = 0; i < count; ++i) values.push_back(real(load_element(bytes.data(), i, dtype)));
    }
    for (const Recipe::Run& r : recipe.runs)
      runs.push_back(fmt::format("{{{}, {}, {}, {}, {}}}", r.block, r.row, r.batch, r.first, r.count));
    if (runs.size() > kMostListed / 5 && problems_ > 0) return std::optional<std::string>();
    std::string table = "NULL", rows = "NULL";
    if (!values.empty()) {
      tables += fmt::format("static const double values_{}[] = {};\n", id, braced(values));
      table = "values_" + id;
    }
    if (!runs.empty()) {
      tables += fmt::format("static const int64_t rows_{}[][5] = {};\n", id, braced(runs));
      rows = "rows_" + id;
    }
    return std::optional(fmt::format("{}, 0x{:x}, {}, E_{}, {}, {}, {}, 0x{:x}", kKinds[static_cast<int>(recipe.kind)],
                                     recipe.key, recipe.small || recipe.large ? 1 : 0, to_string(recipe.letters), table,
                                     rows, runs.size(), digest_of(problem, t, recipe)));
  }

  /// Of some elements of an input, in the order in which the self test makes them. 0: not compared, because cosines
  /// differ between mathematical libraries.
  uint64_t digest_of(const Problem& problem, const Tensor& t, const Recipe& recipe) const {
    if (recipe.kind == Recipe::Kind::kAngles) return 0;
    const auto fill = op_.filler(problem, InputPattern::kNormal, t.buffer->name);
    const auto size = static_cast<uint64_t>(size_of(t.buffer->dtype));
    uint64_t made = 0, out = 1;
    const uint64_t step = static_cast<uint64_t>(t.elements()) / kDigested + 1;
    const auto element = [&](uint64_t number) {
      if (made++ % step != 0) return;
      std::byte raw[8] = {};
      fill(number * size, std::span(raw).first(size));
      uint64_t bits = 0;
      std::memcpy(&bits, raw, sizeof bits);
      out = mix(out ^ bits);
    };
    if (recipe.kind != Recipe::Kind::kRows) {
      for (int64_t place = 0; place < t.elements(); place += static_cast<int64_t>(step)) {
        made = 0;
        element(t.number_of(place));
      }
      return out;
    }
    for (const Recipe::Run& r : recipe.runs)
      for (int64_t row = 0; row < r.count; ++row)
        for (int64_t head = 0; head < t.shape[2]; ++head)
          for (int64_t c = 0; c < t.shape[3]; ++c)
            element(static_cast<uint64_t>(r.block * t.number[0] + (r.row + row) * t.number[1] + head * t.number[2] +
                                          c * t.number[3]));
    return out;
  }

  std::string tables() const {
    std::string calls, wrong;
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Call& c = calls_[i];
      std::vector<std::string> numbers;
      for (const Parameter& p : parameters_) {
        const auto at = c.given.find(p.key);
        numbers.push_back(p.kind == Parameter::Kind::kTensor ? "{0}"
                          : p.kind == Parameter::Kind::kReal
                              ? fmt::format("{{.real = {}f}}", real(*at->second.as<double>()))
                              : fmt::format("{{{}}}", at->second.str()));
      }
      text_of_calls(c, i, numbers, calls);
      if (c.problem != "-1") wrong += wrong_calls(i, c);
    }
    std::string out = fmt::format("\nstatic const problem_case problems[] = {{\n{}}};\n", problem_rows_);
    out += calls;
    out += "static const call_case calls[] = {\n";
    for (size_t i = 0; i < calls_.size(); ++i) {
      const Call& c = calls_[i];
      out += fmt::format("    {{{}, {}, {}, numbers_{}, {}}},\n", c.problem, c.may_be_refused ? 1 : 0, c.pipeline, i,
                         c.strides.empty() ? "NULL" : fmt::format("strides_{}", i));
    }
    out += fmt::format(
        "}};\n\n/* Calls with one other number are refused. */\nstatic const wrong_case wrong[] = {{\n{}    "
        "{{-1, 0, {{0}}}}}};\n",
        wrong);
    if (selects())
      out += fmt::format("\n/* The pipeline at these sizes. */\nstatic const int64_t selections[][{}] = {{\n{}}};\n",
                         sizes_.size() + 1, selections_);
    return out;
  }

  static void text_of_calls(const Call& c, size_t i, const std::vector<std::string>& numbers, std::string& out) {
    out += fmt::format("static const number numbers_{}[] = {};\n", i, braced(numbers));
    if (!c.strides.empty()) out += fmt::format("static const int64_t strides_{}[][4] = {{{}}};\n", i, c.strides);
  }

  std::string wrong_calls(size_t i, const Call& c) const {
    std::string out;
    for (const Json& change : part("wrong"))
      for (const auto& [name, text] : change.items()) {
        const auto p = std::ranges::find(parameters_, name, &Parameter::key);
        if (p == parameters_.end() || !c.given.count(name)) continue;
        expr::Map scope = scope_, given = c.given;
        for (const auto& [key, number] : given) scope[key] = number;
        const auto value = evaluated(text, scope);
        if (!value) continue;
        given[name] = *value;
        if (const auto served = interface_.scope_of(given); served) continue;
        out += fmt::format("    {{{}, {}, {{{}}}}},\n", i, p - parameters_.begin(),
                           value->as<double>() ? fmt::format(".real = {}f", real(*value->as<double>())) : value->str());
      }
    return out;
  }

  const EmitRequest& request_;
  const Interface& interface_;
  const Conditions& conditions_;
  const std::vector<std::string>& sizes_;
  const Op& op_;
  const Problem& problem_;
  const expr::Map& scope_;
  const std::vector<Parameter> parameters_;
  const Variant* variant_ = nullptr;  ///< by which results are judged: kernels that round more often, if any does
  const TestsReader* reader_ = nullptr;
  Json tests_;
  size_t problems_ = 0, refused_ = 0;
  bool only_refused_ = false;  ///< of calls that are served there are enough
  std::vector<Call> calls_;
  std::string text_, problem_rows_, selections_;
};

}  // namespace

Result<std::string> self_test_cases(const EmitRequest& request, const Interface& interface,
                                    const std::vector<std::vector<std::vector<LaunchCode::Condition>>>& conditions,
                                    const std::vector<std::string>& sizes) {
  ROOFGEN_TRY(const Op* op, find_op(*request.files, request.problem->op));
  return Cases(request, interface, conditions, sizes, *op).write();
}

}  // namespace roofgen

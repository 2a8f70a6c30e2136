// Parses chains and plans.
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include "base/diagnostics.h"
#include "base/number.h"
#include "base/suggest.h"
#include "generator/ops/chain.h"
#include "generator/ops/declared.h"
#include "generator/ops/row_definitions.h"
#include "generator/ops/rows_formulas.h"

namespace roofgen {
namespace {

using pointwise::Definition;

constexpr const char* kArgument = "--chain";

enum class Takes { kNothing, kEarlierStep, kDType, kNumber, kQuantFormat };

/// A word of the language. `text`: the step's value as a function of the previous value {0} and its tensor {1}. Row
/// operators are in row_definitions.h.
struct Word {
  const char* name;
  ChainStep::Kind kind;
  Takes takes;
  const char* text;
  std::vector<std::pair<const char*, std::vector<std::string>>> tensors;  ///< base name, indices
};

const std::vector<Word>& words() {
  using K = ChainStep::Kind;
  static const std::vector<std::string> row{"n"}, col{"m"}, both{"m", "n"};
  static const std::vector<Word> table = {
      {"gemm", K::kGemm, Takes::kNothing, "", {}},
      {"bias", K::kPointwise, Takes::kNothing, "{0} + {1}[n]", {{"bias", row}}},
      {"row_bias", K::kPointwise, Takes::kNothing, "{0} + {1}[m]", {{"row_bias", col}}},
      {"scale", K::kPointwise, Takes::kNothing, "{0} * scale", {}},
      {"residual", K::kPointwise, Takes::kEarlierStep, "{0} + {1}[m,n]", {{"residual", both}}},
      {"relu", K::kPointwise, Takes::kNothing, "relu({0})", {}},
      {"gelu", K::kPointwise, Takes::kNothing, "gelu({0})", {}},
      {"gelu_tanh", K::kPointwise, Takes::kNothing, "gelu_tanh({0})", {}},
      {"silu", K::kPointwise, Takes::kNothing, "silu({0})", {}},
      {"sigmoid", K::kPointwise, Takes::kNothing, "sigmoid({0})", {}},
      {"tanh", K::kPointwise, Takes::kNothing, "tanh({0})", {}},
      {"cast", K::kPointwise, Takes::kDType, "{0}", {}},
      {"rmsnorm", K::kRow, Takes::kNumber, "", {{"weight", row}}},
      {"layernorm", K::kRow, Takes::kNumber, "", {{"weight", row}, {"shift", row}}},
      {"softmax", K::kRow, Takes::kNothing, "", {}},
      {"quant", K::kRow, Takes::kQuantFormat, "", {}},
  };
  return table;
}

std::vector<std::string> word_names() {
  std::vector<std::string> out;
  for (const Word& w : words()) out.emplace_back(w.name);
  return out;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

/// A piece of a text without surrounding blanks.
struct Piece {
  std::string_view text;
  Span span;
};

Piece trimmed(std::string_view all, size_t begin, size_t end) {
  while (begin < end && std::isspace(static_cast<unsigned char>(all[begin]))) ++begin;
  while (end > begin && std::isspace(static_cast<unsigned char>(all[end - 1]))) --end;
  return {all.substr(begin, end - begin), {static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}};
}

/// Splits at `separator` outside brackets.
std::vector<Piece> split(std::string_view all, char separator) {
  std::vector<Piece> out;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= all.size(); ++i) {
    if (i < all.size() && all[i] == '(') ++depth;
    if (i < all.size() && all[i] == ')') --depth;
    if (i < all.size() && (all[i] != separator || depth > 0)) continue;
    out.push_back(trimmed(all, begin, i));
    begin = i + 1;
  }
  return out;
}

/// `text` with the name `v` replaced.
std::string with_value(std::string_view text, const std::string& value) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end == i) {
      out += text[i++];
      continue;
    }
    const std::string_view word = text.substr(i, end - i);
    out += word == "v" ? value : std::string(word);
    i = end;
  }
  return out;
}

}  // namespace

class ChainParser {
 public:
  ChainParser(std::string_view text, DType dtype, std::vector<TensorArg> declared, double scale)
      : source_{std::string(text), {}} {
    chain_.dtype_ = dtype;
    chain_.scalars_ = {{"scale", scale}};
    chain_.declared_ = std::move(declared);
    for (const TensorArg& t : chain_.declared_) names_.insert(t.name);
  }

  Result<Chain> run() {
    for (const Piece& piece : split(source_.text, '>')) {
      if (piece.text.empty()) return bad(piece.span, "a step is missing here");
      if (chain_.steps_.size() == kMostSteps)
        return bad(piece.span, fmt::format("a chain has at most {} steps", kMostSteps));
      if (!chain_.steps_.empty() && !chain_.steps_.back().row_scale.empty())
        return bad(piece.span, fmt::format("{} must be the last step: it writes quantised values and the scale "
                                           "of each row",
                                           chain_.steps_.back().label));
      ROOFGEN_TRY(ChainStep step, piece.text[0] == '(' ? expression(piece) : word(piece));
      chain_.steps_.push_back(std::move(step));
    }
    return std::move(chain_);
  }

 private:
  Error bad(Span at, const std::string& message) const {
    Error error = located_error(source_, at, fmt::format("{}: {}", kArgument, message));
    error.exit = Exit::kUsage;
    return error;
  }

  std::string value_before() const { return fmt::format("v{}", chain_.steps_.size()); }
  std::string value() const { return fmt::format("v{}", chain_.steps_.size() + 1); }
  DType dtype_before() const { return chain_.dtype_before(chain_.steps_.size()); }

  static std::string unique(const std::string& base, std::set<std::string>& taken) {
    std::string name = base;
    for (int i = 2; !taken.insert(name).second; ++i) name = fmt::format("{}{}", base, i);
    return name;
  }

  /// `(expression over v)`.
  Result<ChainStep> expression(const Piece& piece) {
    const std::string_view text = piece.text;
    if (text.back() != ')')
      return bad({piece.span.end - 1, piece.span.end}, "an expression as a step needs parentheses: (v * 2 + 1)");
    const Piece inner = trimmed(source_.text, piece.span.begin + 1, piece.span.end - 1);
    if (inner.text.empty()) return bad(piece.span, "an expression over v was expected in the brackets");
    // Checked separately first, so that messages show the user's text.
    pointwise::Vocabulary vocabulary;
    vocabulary.source = "v";
    vocabulary.source_dtype = dtype_before();
    vocabulary.tensors = chain_.declared_;
    vocabulary.scalars = chain_.scalars_;
    vocabulary.no_reductions = "a step that reduces over the row has a name: rmsnorm, layernorm, softmax or quant";
    ROOFGEN_CHECK(
        pointwise::Formula::parse({{"y", std::string(inner.text), kArgument}}, {{"y", "y", DType::kFp32}}, vocabulary));
    ChainStep step;
    step.label = unique("map", labels_);
    step.dtype = dtype_before();
    step.definitions = {{value(), with_value(inner.text, value_before()), kArgument}};
    return step;
  }

  Result<ChainStep> word(const Piece& piece) {
    size_t end = 0;
    while (end < piece.text.size() && is_word(piece.text[end])) ++end;
    const std::string name(piece.text.substr(0, end));
    const Span at{piece.span.begin, piece.span.begin + static_cast<uint32_t>(std::max<size_t>(end, 1))};
    if (name.empty()) return bad(at, "a step was expected: a name, or an expression over v in brackets");
    const auto found = std::find_if(words().begin(), words().end(), [&](const Word& w) { return name == w.name; });
    if (found == words().end())
      return bad(at, fmt::format("unknown step \"{}\"{}", name, did_you_mean(name, word_names())));
    if (found->kind == ChainStep::Kind::kGemm && !chain_.steps_.empty())
      return bad(at,
                 "gemm must be the first step: no kernel reads the rows of earlier steps as a matrix operand (a layout "
                 "break)");
    const Piece rest = trimmed(source_.text, at.end, piece.span.end);
    Piece argument{{}, at};
    if (!rest.text.empty()) {
      if (rest.text.front() != '(') return bad(rest.span, fmt::format("\">\" was expected after {}", name));
      if (rest.text.back() != ')') return bad(rest.span, "the bracket is not closed");
      argument = trimmed(source_.text, rest.span.begin + 1, rest.span.end - 1);
      if (argument.text.empty()) return bad(rest.span, fmt::format("{}: the brackets are empty", name));
    }
    ChainStep step;
    step.kind = found->kind;
    step.dtype = dtype_before();
    // Sums are not stored in 8-bit formats, or in tf32, which is fp32 in memory.
    if (step.kind == ChainStep::Kind::kGemm)
      step.dtype = size_of(chain_.dtype_) == 1     ? DType::kBf16
                   : chain_.dtype_ == DType::kTf32 ? DType::kFp32
                                                   : chain_.dtype_;
    ROOFGEN_CHECK(take(*found, argument, step));
    define(*found, step);
    step.label = unique(name, labels_);
    return step;
  }

  /// The argument in brackets.
  Result<void> take(const Word& word, const Piece& argument, ChainStep& step) {
    const std::string text(argument.text);
    const bool given = !text.empty();
    switch (word.takes) {
      case Takes::kNothing:
        if (given) return bad(argument.span, fmt::format("{} takes no argument", word.name));
        break;
      case Takes::kEarlierStep:
        if (given) return earlier(argument, step);
        break;
      case Takes::kDType: {
        const auto dtype = parse_dtype(text);
        if (!given) return bad(argument.span, "cast(dtype) was expected, like cast(fp32)");
        if (!dtype || size_of(*dtype) < 2 || *dtype == DType::kInt32 || *dtype == DType::kTf32)
          return bad(argument.span, fmt::format("cast to \"{}\": bf16, fp16 or fp32 was expected", text));
        step.dtype = *dtype;
        break;
      }
      case Takes::kNumber: {
        eps_ = (word.name == std::string_view("layernorm") ? rows::kLayernorm : rows::kRmsnorm).eps;
        if (!given) break;
        const std::optional<double> eps = parse_number(text);
        if (!eps || !(*eps >= 0) || *eps > 1)
          return bad(argument.span, fmt::format("{}: an epsilon from 0 to 1 was expected", word.name));
        eps_ = *eps;
        break;
      }
      case Takes::kQuantFormat:
        if (!given || text == "fp8")
          step.dtype = DType::kFp8;
        else if (text == "int8")
          step.dtype = DType::kInt8;
        else
          return bad(argument.span, fmt::format("quant to \"{}\": fp8 or int8 was expected", text));
        break;
    }
    return {};
  }

  Result<void> earlier(const Piece& argument, ChainStep& step) const {
    std::vector<std::string> known;
    for (const ChainStep& s : chain_.steps_) known.push_back(s.label);
    const auto at = std::find(known.begin(), known.end(), argument.text);
    if (at == known.end())
      return bad(argument.span, fmt::format("no step before this one is called \"{}\"{}", argument.text,
                                            did_you_mean(argument.text, known)));
    step.adds = static_cast<size_t>(at - known.begin());
    return {};
  }

  void define(const Word& word, ChainStep& step) {
    const std::string v = value_before(), y = value();
    std::vector<std::string> names;
    if (!step.adds)
      for (const auto& [base, indices] : word.tensors) {
        names.push_back(unique(base, names_));
        step.tensors.push_back({names.back(), dtype_before(), indices});
      }
    const auto add = [&](const rows::Definitions& all) {
      for (const auto& [name, text] : all) step.definitions.push_back({name, text, kArgument});
    };
    const std::string eps = fmt::format("{:.9g}", eps_);
    const std::string_view kind = word.name;
    if (step.kind == ChainStep::Kind::kGemm || step.adds) return;  // the sum depends on the location of the other value
    if (kind == "rmsnorm") {
      add(rows::rmsnorm(v, y, {eps, names[0], ""}));
    } else if (kind == "layernorm") {
      add(rows::layernorm(v, y, y + "_centred", {eps, names[0], names[1]}));
    } else if (kind == "softmax") {
      add(rows::softmax(v, y, y + "_power"));
    } else if (kind == "quant") {
      step.row_scale = y + "_scale";
      add(rows::quantised_by_row(v, y, step.row_scale, step.dtype));
    } else {
      names.resize(1);
      add({{y, fmt::format(fmt::runtime(word.text), v, names[0])}});
    }
  }

  Source source_;
  Chain chain_;
  std::set<std::string> labels_, names_;
  double eps_ = 0;
};

Result<Chain> Chain::parse(std::string_view text, DType dtype, std::vector<TensorArg> declared, double scale) {
  std::vector<std::string> own{"A", "B", "x", "y", "row_scale", "v"};  // and names of values stored between steps
  for (size_t i = 0; i <= kMostSteps; ++i)
    for (const char* base : {"t", "v"}) own.push_back(fmt::format("{}{}", base, i));
  ROOFGEN_CHECK(check_declared(declared, "a chain", own));
  return ChainParser(text, dtype, std::move(declared), scale).run();
}

Result<std::vector<Part>> parse_plan(const Chain& chain, std::string_view text) {
  const Source source{std::string(text), {}};
  const auto bad = [&](Span at, const std::string& message) {
    Error error = located_error(source, at, "--plan: " + message);
    error.exit = Exit::kUsage;
    return error;
  };
  std::vector<std::string> labels;
  for (const ChainStep& s : chain.steps()) labels.push_back(s.label);
  std::vector<Part> parts;
  size_t next = 0;
  for (const Piece& kernel : split(source.text, '|')) {
    Part part{next, next};
    for (const Piece& inner : split(kernel.text, '+')) {
      const Span at{kernel.span.begin + inner.span.begin, kernel.span.begin + inner.span.end};
      if (inner.text.empty()) return bad(at, "a step is missing here");
      const std::string label(inner.text);
      if (std::find(labels.begin(), labels.end(), label) == labels.end())
        return bad(at, fmt::format("the chain has no step \"{}\"{}", label, did_you_mean(label, labels)));
      if (part.last == labels.size()) return bad(at, fmt::format("the chain ends with {}", labels.back()));
      if (labels[part.last] != label)
        return bad(at, fmt::format("{} was expected here: a plan keeps the order of the chain", labels[part.last]));
      ++part.last;
    }
    parts.push_back(part);
    next = part.last;
  }
  if (next < labels.size())
    return bad({static_cast<uint32_t>(text.size()), static_cast<uint32_t>(text.size())},
               fmt::format("{} is missing: a plan has every step of the chain", labels[next]));
  return parts;
}

}  // namespace roofgen

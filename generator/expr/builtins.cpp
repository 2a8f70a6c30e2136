#include "generator/expr/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "generator/expr/operators.h"

namespace roofgen::expr {
namespace {

using Args = std::vector<Value>;

int64_t int_arg(const Args& args, size_t i, const Site& site) {
  if (auto v = as_int(args[i])) return *v;
  site.fail(fmt::format("argument {} must be an int, not {}", i + 1, args[i].type_name()));
}

const std::string& string_arg(const Args& args, size_t i, const Site& site) {
  if (auto v = args[i].as<std::string>()) return *v;
  site.fail(fmt::format("argument {} must be a string, not {}", i + 1, args[i].type_name()));
}

const List& list_arg(const Args& args, size_t i, const Site& site) {
  if (auto v = args[i].list()) return *v;
  site.fail(fmt::format("argument {} must be a list, not {}", i + 1, args[i].type_name()));
}

int64_t positive_arg(const Args& args, size_t i, const Site& site) {
  const int64_t v = int_arg(args, i, site);
  if (v <= 0) site.fail(fmt::format("argument {} must be positive, not {}", i + 1, v));
  return v;
}

Value range(const Args& args, const Site& site) {
  const int64_t begin = args.size() > 1 ? int_arg(args, 0, site) : 0;
  const int64_t end = int_arg(args, args.size() > 1 ? 1 : 0, site);
  const int64_t step = args.size() > 2 ? int_arg(args, 2, site) : 1;
  if (step == 0) site.fail("the step of a range cannot be 0");
  List out;
  int64_t v = begin;
  while (step > 0 ? v < end : v > end) {
    if (out.size() >= kMaxListLength) site.fail(fmt::format("a range of more than {} items", kMaxListLength));
    out.emplace_back(v);
    if (__builtin_add_overflow(v, step, &v)) break;
  }
  site.charge(out.size());
  return out;
}

Value ceil_div(const Args& args, const Site& site) {
  const Value b = positive_arg(args, 1, site);
  const int64_t a = int_arg(args, 0, site);
  const bool rest = *binary(Op::kMod, a, b, site).as<int64_t>() != 0;
  return *binary(Op::kFloorDiv, a, b, site).as<int64_t>() + rest;
}

Value align_up(const Args& args, const Site& site) { return binary(Op::kMul, ceil_div(args, site), args[1], site); }

bool power_of_two(int64_t v) { return v > 0 && std::has_single_bit(static_cast<uint64_t>(v)); }

Value log2(const Args& args, const Site& site) {
  if (auto d = args[0].as<double>()) {
    if (!(*d > 0)) site.fail("log2 needs a positive number");
    return make_float(std::log2(*d), site);
  }
  const int64_t v = int_arg(args, 0, site);
  if (!power_of_two(v)) site.fail(fmt::format("log2({}) is not an integer; log2(float(x)) is a float", v));
  return static_cast<int64_t>(std::countr_zero(static_cast<uint64_t>(v)));
}

Value is_pow2(const Args& args, const Site& site) { return power_of_two(int_arg(args, 0, site)); }

/// The first of the smallest (sign -1) or largest (sign 1), as Python chooses among equals.
Value extreme(const List& items, int sign, const Site& site) {
  if (items.empty()) site.fail("min and max need at least one item");
  const Value* best = &items[0];
  site.charge(items.size());
  for (const Value& v : items) {
    const auto o = order(v, *best, site);
    if (sign < 0 ? o < 0 : o > 0) best = &v;
  }
  return *best;
}

Value min(const Args& args, const Site& site) {
  return extreme(args.size() == 1 ? list_arg(args, 0, site) : args, -1, site);
}
Value max(const Args& args, const Site& site) {
  return extreme(args.size() == 1 ? list_arg(args, 0, site) : args, 1, site);
}

/// As filters they order numbers only: Jinja2's fold the case of strings.
void check_numbers(const Args& args, const Site& site) {
  for (const Value& v : list_arg(args, 0, site))
    if (!as_number(v)) site.fail(fmt::format("the list must hold numbers, not {}", v.type_name()));
}
Value min_filter(const Args& args, const Site& site) { return check_numbers(args, site), min(args, site); }
Value max_filter(const Args& args, const Site& site) { return check_numbers(args, site), max(args, site); }

Value length(const Args& args, const Site& site) {
  if (auto s = args[0].as<std::string>()) {
    site.charge(s->size() / 16);
    return static_cast<int64_t>(std::count_if(s->begin(), s->end(), [](char c) { return (c & 0xC0) != 0x80; }));
  }
  if (auto l = args[0].list()) return static_cast<int64_t>(l->size());
  if (auto m = args[0].map()) return static_cast<int64_t>(m->size());
  site.fail(fmt::format("{} has no length", args[0].type_name()));
}

Value abs(const Args& args, const Site& site) {
  if (auto d = args[0].as<double>()) return std::fabs(*d);
  const int64_t v = int_arg(args, 0, site);
  return v < 0 ? unary(Op::kNeg, v, site) : Value(v);
}

Value to_int(const Args& args, const Site& site) {
  if (auto i = as_int(args[0])) return *i;
  if (auto d = args[0].as<double>()) {
    if (!(*d >= -0x1p63 && *d < 0x1p63)) site.fail("the number does not fit 64 bits");
    return static_cast<int64_t>(*d);
  }
  const std::string& s = string_arg(args, 0, site);
  int64_t v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc() || end != s.data() + s.size()) site.fail("the string is not an integer of 64 bits");
  return v;
}

Value to_float(const Args& args, const Site& site) {
  if (auto d = as_number(args[0])) return *d;
  const std::string& s = string_arg(args, 0, site);
  double v = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc() || end != s.data() + s.size()) site.fail("the string is not a number");
  return make_float(v, site);
}

Value to_string(const Args& args, const Site& site) { return make_text(args[0], site); }

Value join(const Args& args, const Site& site) {
  const std::string between = args.size() > 1 ? string_arg(args, 1, site) : "";
  std::string out;
  bool first = true;
  for (const Value& v : list_arg(args, 0, site)) {
    if (!first) out += between;
    first = false;
    out += make_text(v, site);
    if (out.size() > kMaxStringBytes) break;  // make_string refuses it
  }
  return make_string(std::move(out), site);
}

/// ASCII only: kernel sources need no Unicode tables of letter case and blanks.
const std::string& ascii_arg(const Args& args, const Site& site) {
  const std::string& s = string_arg(args, 0, site);
  if (std::any_of(s.begin(), s.end(), [](char c) { return static_cast<unsigned char>(c) > 0x7F; }))
    site.fail("this works on ASCII text only");
  return s;
}

Value upper(const Args& args, const Site& site) {
  std::string s = ascii_arg(args, site);
  for (char& c : s)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return make_string(std::move(s), site);
}

Value lower(const Args& args, const Site& site) {
  std::string s = ascii_arg(args, site);
  for (char& c : s)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return make_string(std::move(s), site);
}

Value trim(const Args& args, const Site& site) {
  static constexpr std::string_view kBlank = " \t\n\r\f\v\x1c\x1d\x1e\x1f";  // ASCII blanks of Python's str.strip
  const std::string& s = ascii_arg(args, site);
  const size_t begin = s.find_first_not_of(kBlank);
  if (begin == s.npos) return "";
  return make_string(s.substr(begin, s.find_last_not_of(kBlank) + 1 - begin), site);
}

Value replace(const Args& args, const Site& site) {
  const std::string &s = string_arg(args, 0, site), &from = string_arg(args, 1, site), &to = string_arg(args, 2, site);
  if (from.empty()) site.fail("the text to replace is empty");
  std::string out;
  size_t at = 0;
  for (size_t hit; (hit = s.find(from, at)) != s.npos && out.size() <= kMaxStringBytes; at = hit + from.size())
    out.append(s, at, hit - at) += to;
  return make_string(out.append(s, at), site);
}

Value round(const Args& args, const Site& site) {
  const int64_t digits = args.size() > 1 ? int_arg(args, 1, site) : 0;
  if (digits < 0 || digits > 20) site.fail("round takes 0 to 20 digits");
  if (auto i = as_int(args[0])) return *i;
  auto d = args[0].as<double>();
  if (!d) site.fail(fmt::format("round needs a number, not {}", args[0].type_name()));
  if (!std::isfinite(*d)) return *d;
  // Exact decimal rounding with ties of the exact value to even, as Python's round.
  char buffer[400];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, *d, std::chars_format::fixed, static_cast<int>(digits)).ptr;
  double v = 0;
  std::from_chars(buffer, end, v);
  return v;
}

Value first(const Args& args, const Site& site) {
  const List& list = list_arg(args, 0, site);
  if (list.empty()) site.fail("the list is empty");
  return list.front();
}

Value last(const Args& args, const Site& site) {
  const List& list = list_arg(args, 0, site);
  if (list.empty()) site.fail("the list is empty");
  return list.back();
}

/// Called for existing values; the evaluator handles undefined ones.
Value value_or_default(const Args& args, const Site&) { return args[0]; }

constexpr Builtin kBuiltins[] = {
    // name, function, filter, arguments
    {"abs", true, true, 1, 1, abs},
    {"align_up", true, false, 2, 2, align_up},
    {"ceil_div", true, false, 2, 2, ceil_div},
    {"default", false, true, 2, 2, value_or_default},
    {"first", false, true, 1, 1, first},
    {"float", true, true, 1, 1, to_float},
    {"int", true, true, 1, 1, to_int},
    {"is_pow2", true, false, 1, 1, is_pow2},
    {"join", true, true, 1, 2, join},
    {"last", false, true, 1, 1, last},
    {"len", true, false, 1, 1, length},
    {"length", false, true, 1, 1, length},
    {"log2", true, false, 1, 1, log2},
    {"lower", true, true, 1, 1, lower},
    {"max", true, false, 1, -1, max},
    {"max", false, true, 1, 1, max_filter},
    {"min", true, false, 1, -1, min},
    {"min", false, true, 1, 1, min_filter},
    {"range", true, false, 1, 3, range},
    {"replace", false, true, 3, 3, replace},
    {"round", false, true, 1, 2, round},
    {"str", true, false, 1, 1, to_string},
    {"string", false, true, 1, 1, to_string},
    {"trim", false, true, 1, 1, trim},
    {"upper", true, true, 1, 1, upper},
};

const Builtin* find(std::string_view name, bool Builtin::*kind) {
  for (const Builtin& b : kBuiltins)
    if (b.*kind && name == b.name) return &b;
  return nullptr;
}

std::vector<std::string> names(bool Builtin::*kind) {
  std::vector<std::string> out;
  for (const Builtin& b : kBuiltins)
    if (b.*kind) out.emplace_back(b.name);
  return out;
}

}  // namespace

const Builtin* find_function(std::string_view name) { return find(name, &Builtin::function); }
const Builtin* find_filter(std::string_view name) { return find(name, &Builtin::filter); }
std::vector<std::string> function_names() { return names(&Builtin::function); }
std::vector<std::string> filter_names() { return names(&Builtin::filter); }

}  // namespace roofgen::expr

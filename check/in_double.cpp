#include "check/in_double.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/text_table.h"
#include "check/views.h"
#include "runtime/sim/doubles.h"

namespace roofgen::check {
namespace {

sim::Format format_of(Element type) {
  switch (type) {
    case Element::kF16: return sim::Format::kF16;
    case Element::kBf16: return sim::Format::kBf16;
    case Element::kF32: return sim::Format::kF32;
    case Element::kF64: return sim::Format::kF64;
    default: return sim::Format::kNone;
  }
}

std::string why_text(sim::Departure why) {
  switch (why) {
    case sim::Departure::kRounding: return "rounding";
    case sim::Departure::kCancellation: return "cancellation";
    case sim::Departure::kOverflow: return "overflow";
    case sim::Departure::kInvalid: return "nan";
    case sim::Departure::kOnlyInDouble: break;
  }
  return "only-in-double";
}

DoublePlace place_of(const sim::DoubleSite& site, const std::function<void(Where&, Where&)>& own_places) {
  DoublePlace out{site.source, site.ptx,   site.cta,      site.thread,    site.count,      why_text(site.why),
                  site.own,    site.value, site.compares, site.own_other, site.value_other};
  own_places(out.source, out.ptx);
  return out;
}

/// Two numbers with as many digits as tell them apart.
std::pair<std::string, std::string> numbers(double a, double b, int least = 7) {
  for (int digits = least;; ++digits) {
    std::pair out{fmt::format("{:.{}g}", a, digits), fmt::format("{:.{}g}", b, digits)};
    if (a == b || out.first != out.second || digits == 17) return out;
  }
}

/// An error relative to `of`.
double relative(double error, double of) { return error == 0 ? 0 : error / of; }

}  // namespace

Result<InDouble> compared_in_double(const sim::Doubles& doubles, Executor& executor, const std::vector<Argument>& args,
                                    const std::map<const Argument*, DevicePtr>& places,
                                    const std::function<void(Where& source, Where& ptx)>& own_places) {
  InDouble out;
  out.floats = doubles.any_floats();
  out.bound = doubles.bound();
  for (const auto& [from, to] :
       {std::pair{doubles.departures(), &out.departures}, std::pair{doubles.decisions(), &out.decisions},
        std::pair{doubles.losses(), &out.losses}})
    for (const sim::DoubleSite& site : from) to->push_back(place_of(site, own_places));
  const std::vector<sim::DoubleSite> departures = doubles.departures();
  for (const Argument* a : buffers_of(args)) {
    const sim::Format format = format_of(a->type);
    if (a->read_only || format == sim::Format::kNone || !out.floats) continue;
    const uint32_t size = bytes_of(a->type);
    std::vector<std::byte> bytes(a->bytes()), wanted;
    std::vector<bool> written(a->bytes()), ignored(*a->size);
    const uint64_t address = places.at(a).address;
    ROOFGEN_CHECK(executor.read({address}, bytes, &written));
    if (a->expect && !std::holds_alternative<Nothing>(a->expect->contents)) {
      wanted.resize(a->bytes());
      fill(a->expect->contents, a->type, 0, wanted);
      for (const auto& [begin, end] : a->expect->ignored)
        for (uint64_t i = begin; i < end; ++i) ignored[i] = true;
    }
    BufferInDouble b;
    b.name = a->name;
    uint32_t origin = 0;
    double error = 0, magnitude = 0, of_element = 0;
    for (uint64_t i = 0; i < *a->size; ++i) {
      if (!written[i * size]) continue;
      const std::byte* const at = &bytes[i * size];
      uint64_t bits = 0;
      std::copy_n(at, size, reinterpret_cast<std::byte*>(&bits));
      const sim::DoubleMemory::Cell* const cell = doubles.at(address + i * size, format, bits);
      const double own = decode(a->type, at), value = cell ? cell->value : own;
      const bool same = own == value || (std::isnan(own) && std::isnan(value));
      const double apart = same ? 0 : std::isfinite(own - value) ? std::fabs(own - value) : HUGE_VAL;
      ++b.elements;
      if (std::isfinite(value)) magnitude = std::max(magnitude, std::fabs(value));
      of_element = std::max(of_element, relative(apart, std::max(std::fabs(value), sim::smallest_normal(format))));
      if (apart > error) {
        error = apart;
        b.worst = {i, own, value};
        if (!b.rounding) origin = cell->origin;
      }
      if (wanted.empty() || ignored[i]) continue;
      const double expected = decode(a->type, &wanted[i * size]);
      // In the type of the buffer, as the kernel would store it.
      const uint64_t stored_bits = encode(a->type, value);
      std::byte stored[8];
      std::memcpy(stored, &stored_bits, 8);
      const bool right = agrees(own, expected, *a->expect);
      const bool right_in_double =
          std::isnan(value) ? std::isnan(expected) : agrees(decode(a->type, stored), expected, *a->expect);
      if (right && !right_in_double && b.only_rounded++ == 0) b.first_only_rounded = {i, own, value};
      if (right) continue;
      uint64_t& of_kind = right_in_double ? b.rounding : b.logic;
      if (of_kind++ == 0) (right_in_double ? b.first_rounding : b.first_logic) = {i, own, value};
      if (right_in_double && b.rounding == 1) origin = cell->origin;
    }
    b.largest_error = error;
    b.of_largest = relative(error, std::max(magnitude, sim::smallest_normal(format)));
    b.of_element = of_element;
    for (size_t i = 0; origin && (b.rounding || !b.logic) && i < departures.size(); ++i)
      if (departures[i].order == doubles.departure_of(origin).order) b.departs = i;
    out.buffers.push_back(std::move(b));
  }
  return out;
}

namespace {

std::string place_text(const DoublePlace& p) { return place(p.source.line > 0 ? p.source : p.ptx); }

std::string details(const DoublePlace& p) {
  return fmt::format("CTA {}, thread {}{}; {} time{}", p.cta, p.thread, p.source.line > 0 ? ", " + place(p.ptx) : "",
                     p.count, p.count == 1 ? "" : "s");
}

std::string departure_text(const DoublePlace& p) {
  const std::string how = p.why == "cancellation"     ? ", as nearly equal values are subtracted"
                          : p.why == "overflow"       ? ", an overflow"
                          : p.why == "only-in-double" ? ""
                          : p.why == "nan"            ? ""
                                                      : ", as roundings add up";
  const auto [own, value] = numbers(p.own, p.in_double);
  return fmt::format("{}: {} is {} in double{} ({})", place_text(p), own, value, how, details(p));
}

std::string decision_text(const DoublePlace& p) {
  constexpr int kLeast = 9;  // a float is no other then
  const auto [own, value] = numbers(p.own, p.in_double, kLeast);
  const auto [own_other, other] = numbers(p.own_other, p.in_double_other, kLeast);
  const std::string what = p.compares
                               ? fmt::format("compares {} and {}, in double {} and {}", own, own_other, value, other)
                               : fmt::format("makes {} a whole number, in double {}", own, value);
  return fmt::format("{}: {} ({})", place_text(p), what, details(p));
}

std::string element_text(const BufferInDouble& b, const ElementInDouble& e) {
  const auto [own, value] = numbers(e.own, e.in_double);
  return fmt::format("{}[{}] is {}, in double {}", b.name, e.element, own, value);
}

/// The first few.
template <class Line>
std::string list_text(const char* title, const std::vector<DoublePlace>& all, const Line& line) {
  constexpr size_t kMost = 4;
  std::string out;
  for (size_t i = 0; i < std::min(all.size(), kMost); ++i) out += fmt::format("  {}{}\n", title, line(all[i]));
  if (all.size() > kMost) out += fmt::format("  {}at {} more places\n", title, all.size() - kMost);
  return out;
}

}  // namespace

std::string in_double_text(const InDouble& r) {
  if (!r.floats) return "\nin double: the kernel computes with no floats\n";
  const std::string bound = fmt::format("2^{}", std::ilogb(r.bound));
  std::string out = "\nin double\n";
  for (const BufferInDouble& b : r.buffers) {
    const uint64_t wrong = b.rounding + b.logic;
    if (b.rounding)
      out += fmt::format("  {}: rounding: {} of {} wrong elements are as expected in double; {}\n", b.name, b.rounding,
                         wrong, element_text(b, b.first_rounding));
    if (b.logic)
      out += fmt::format("  {}: logic{}{}: {} of {} wrong elements are wrong in double too; {}\n", b.name,
                         r.decisions.empty() ? "" : " or a decision that comes out otherwise",
                         r.losses.empty() ? "" : " or rounding that is not followed", b.logic, wrong,
                         element_text(b, b.first_logic));
    if (b.only_rounded)
      out += fmt::format("  {}: {} right elements are wrong in double, so the kernel relies on its rounding; {}\n",
                         b.name, b.only_rounded, element_text(b, b.first_only_rounded));
    if (!wrong && b.largest_error > 0)
      out += fmt::format("  {}: off by at most {:.2g} of the largest value, and by {:.2g} of a value itself; {}\n",
                         b.name, b.of_largest, b.of_element, element_text(b, b.worst));
    if (b.departs)
      out +=
          fmt::format("  {}: departs by more than {} at {}\n", b.name, bound, departure_text(r.departures[*b.departs]));
    else if (b.rounding)
      out += fmt::format("  {}: roundings add up; no instruction departs by more than {}\n", b.name, bound);
  }
  if (std::ranges::all_of(r.buffers, [](const BufferInDouble& b) { return b.largest_error == 0 && b.logic == 0; }))
    out += "  all that is written is the same\n";
  out += list_text("decides otherwise at ", r.decisions, decision_text);
  out += list_text("not followed at ", r.losses,
                   [](const DoublePlace& p) { return fmt::format("{} ({})", place_text(p), details(p)); });
  return wrapped(out, 4);
}

namespace {

constexpr const char *kDeparts = "departs", *kDecides = "decides", *kLoses = "loses";

/// JSON has no infinity and no NaN.
Json number_json(double x) {
  return std::isnan(x) ? Json("nan") : std::isinf(x) ? Json(x > 0 ? "inf" : "-inf") : Json(x);
}

Json place_json(const char* kind, const DoublePlace& p) {
  Json j{{"kind", kind},
         {"source", where_json(p.source)},
         {"ptx", where_json(p.ptx)},
         {"cta", p.cta},
         {"thread", p.thread},
         {"count", p.count}};
  if (kind != kLoses) j["own"] = number_json(p.own), j["in_double"] = number_json(p.in_double);
  if (kind == kDeparts) j["why"] = p.why;
  if (p.compares) j["own_other"] = number_json(p.own_other), j["in_double_other"] = number_json(p.in_double_other);
  return j;
}

Json element_json(const ElementInDouble& e) {
  return {{"element", e.element}, {"own", number_json(e.own)}, {"in_double", number_json(e.in_double)}};
}

}  // namespace

Json in_double_json(const InDouble& r) {
  Json j{{"floats", r.floats}, {"bound", r.bound}, {"buffers", Json::array()}, {"places", Json::array()}};
  for (const BufferInDouble& b : r.buffers) {
    Json& o = j["buffers"].emplace_back();
    ROOFGEN_PUT(o, b, name, elements, rounding, logic, only_rounded)
    o["largest_error"] = number_json(b.largest_error);
    o["of_largest"] = number_json(b.of_largest);
    o["of_element"] = number_json(b.of_element);
    if (b.elements) o["worst"] = element_json(b.worst);
    if (b.rounding) o["first_rounding"] = element_json(b.first_rounding);
    if (b.logic) o["first_logic"] = element_json(b.first_logic);
    if (b.only_rounded) o["first_only_rounded"] = element_json(b.first_only_rounded);
    if (b.departs) o["departs"] = *b.departs;
  }
  for (const auto& [kind, places] :
       {std::pair{kDeparts, &r.departures}, std::pair{kDecides, &r.decisions}, std::pair{kLoses, &r.losses}})
    for (const DoublePlace& p : *places) j["places"].push_back(place_json(kind, p));
  return j;
}

}  // namespace roofgen::check

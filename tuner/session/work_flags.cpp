#include "tuner/session/work_flags.h"

#include <fmt/format.h>

#include <cmath>

#include "base/number.h"
#include "base/suggest.h"

namespace roofgen {
namespace {

std::string with_hyphens(std::string name) {
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

const WorkDim* find(const std::vector<WorkDim>& dims, const std::string& flag) {
  for (const WorkDim& d : dims)
    if (with_hyphens(d.name) == with_hyphens(flag)) return &d;
  return nullptr;
}

class Reader {
 public:
  Reader(const WorkFormula& formula, const std::vector<std::string>& arguments)
      : formula_(formula), arguments_(arguments) {}

  Result<WorkRequest> read() {
    while (next_ < arguments_.size()) {
      std::string word = arguments_[next_++];
      if (!word.starts_with("--")) {
        // A pair of --dims M=128,N=4096.
        const size_t eq = word.find('=');
        if (eq == std::string::npos || eq == 0)
          return Error{Exit::kUsage, fmt::format("unexpected \"{}\"; a flag of {} was expected", word, formula_.op())};
        ROOFGEN_CHECK(set(word.substr(0, eq), word.substr(eq + 1)));
        continue;
      }
      word.erase(0, 2);
      std::optional<std::string> value;
      if (const size_t eq = word.find('='); eq != std::string::npos) {
        value = word.substr(eq + 1);
        word.resize(eq);
      }
      ROOFGEN_CHECK(set(word, value));
    }
    return request_;
  }

 private:
  Result<std::string> value_of(const std::string& flag, const std::optional<std::string>& given) {
    if (given) return *given;
    if (next_ < arguments_.size() && !arguments_[next_].starts_with("--")) return arguments_[next_++];
    return Error{Exit::kUsage, fmt::format("--{} needs a value", flag)};
  }

  Result<void> set(const std::string& flag, const std::optional<std::string>& given) {
    if (const WorkDim* d = find(formula_.dims(), flag)) {
      ROOFGEN_TRY(const std::string text, value_of(flag, given));
      ROOFGEN_TRY(const int64_t value, parse_count(flag, text));
      if (!request_.dims.emplace(d->name, value).second)
        return Error{Exit::kUsage, fmt::format("--{} is given twice", flag)};
      return {};
    }
    if (const WorkDim* d = find(formula_.flags(), flag)) {
      if (given && *given != "true" && *given != "false" && *given != "1" && *given != "0")
        return Error{Exit::kUsage, fmt::format("--{}={}: true or false was expected", flag, *given)};
      request_.flags[d->name] = !given || *given == "true" || *given == "1";
      return {};
    }
    if (flag.starts_with("no-"))
      if (const WorkDim* d = find(formula_.flags(), flag.substr(3))) {
        request_.flags[d->name] = false;
        return {};
      }
    if (flag.ends_with("-dtype"))
      if (const WorkDim* d = find(formula_.dtypes(), flag.substr(0, flag.size() - 6))) {
        ROOFGEN_TRY(const std::string text, value_of(flag, given));
        ROOFGEN_CHECK(find_number_format(text));
        request_.dtypes[d->name] = text;
        return {};
      }
    return Error{Exit::kUsage, fmt::format("{} has no flag --{}{}", formula_.op(), flag, did_you_mean(flag, known()))};
  }

  std::vector<std::string> known() const {
    std::vector<std::string> out;
    for (const WorkDim& d : formula_.dims()) out.push_back(with_hyphens(d.name));
    for (const WorkDim& d : formula_.flags()) out.push_back(with_hyphens(d.name));
    for (const WorkDim& d : formula_.dtypes()) out.push_back(with_hyphens(d.name) + "-dtype");
    return out;
  }

  const WorkFormula& formula_;
  const std::vector<std::string>& arguments_;
  size_t next_ = 0;
  WorkRequest request_;
};

}  // namespace

Result<int64_t> parse_count(const std::string& flag, const std::string& text) {
  const char unit = text.empty() ? 0 : text.back();
  const double scale = unit == 'k' || unit == 'K' ? 1024 : unit == 'M' ? 1024 * 1024 : 1;
  const auto value = parse_number(std::string_view(text).substr(0, text.size() - (scale > 1)));
  const double total = value.value_or(0) * scale;
  if (!value || !(std::fabs(total) <= 0x1p40) || total != std::floor(total))
    return Error{Exit::kUsage,
                 fmt::format("--{} {}: a whole number up to 2^40 was expected, like 4096, 4k or 1e6", flag, text)};
  return static_cast<int64_t>(total);
}

Result<WorkRequest> parse_work_flags(const WorkFormula& formula, const std::vector<std::string>& arguments) {
  return Reader(formula, arguments).read();
}

std::string work_help(const WorkFormula& f) {
  std::string out = fmt::format("{}: {}\n", f.op(), f.title());
  const auto line = [&](const std::string& flag, const WorkDim& d, bool dim) {
    out += fmt::format("  {:<24} {}", flag, d.help);
    if (d.preset)
      out += fmt::format(" [{}]", d.preset->text());
    else if (dim)
      out += " (required)";
    out += "\n";
  };
  for (const WorkDim& d : f.dims()) line(fmt::format("--{} N", with_hyphens(d.name)), d, true);
  for (const WorkDim& d : f.flags()) line("--" + with_hyphens(d.name), d, false);
  for (const WorkDim& d : f.dtypes()) line(fmt::format("--{}-dtype NAME", with_hyphens(d.name)), d, false);
  return out;
}

}  // namespace roofgen

// Problems of attention with rotary positions, appended keys and a cache in fp8, and a kernel of plain loops over the
// bytes of their buffers that stands in for those of roofgen.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "generator/ops/attention_inputs.h"
#include "generator/ops/attention_reference.h"
#include "generator/ops/elements.h"
#include "generator/ops/float16.h"
#include "generator/ops/op.h"

namespace roofgen::attention_prologue {

using attention::Inputs;
using attention::Shape;
using attention::Tensor;
using Dims = std::map<std::string, int64_t>;
using Flags = std::map<std::string, bool>;
using Texts = std::map<std::string, std::string>;

inline const Op& op() { return **find_op("attention"); }

struct Case {
  std::string name;
  Dims dims = {};
  Texts texts = {};
  Flags flags = {};
  std::map<std::string, double> reals = {};
  bool fp8 = false;
  DType dtype = DType::kBf16;
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

inline Result<Problem> completed(const Case& c) {
  Problem p{"attention", c.dims, c.dtype, c.flags, c.reals, c.texts};
  for (const auto& [name, value] :
       Dims{{"L", 4}, {"kv_len", 37}, {"d", 64}, {"batch", 2}, {"heads", 4}, {"kv_heads", 2}})
    if (!(c.texts.count("lengths") && (name == "L" || name == "kv_len")) &&
        !(c.texts.count("kv_lengths") && name == "kv_len"))
      p.dims.emplace(name, value);
  if (c.fp8) p.dtypes["kv"] = DType::kFp8;
  return op().complete(p);
}

inline Problem complete(const Case& c) {
  auto done = completed(c);
  EXPECT_TRUE(done) << c.name << ": " << done.error().message;
  return *done;
}

inline std::string refusal(const Case& c) {
  const auto done = completed(c);
  if (done) return "accepted";
  EXPECT_EQ(done.error().exit, Exit::kUsage);
  return done.error().message;
}

// ---- a kernel of plain loops -------------------------------------------------------------------

/// e4m3 from its definition.
inline double decode_e4m3(int code) {
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if ((code & 127) == 127) return NAN;
  const double magnitude = exponent == 0 ? std::ldexp(mantissa, -9) : std::ldexp(8 + mantissa, exponent - 10);
  return code & 128 ? -magnitude : magnitude;
}

/// The nearest number; of two, the one with an even code.
inline uint8_t encode_e4m3(double x) {
  if (std::isnan(x)) return 127;
  int best = 0;
  for (int code = 0; code < 127; ++code) {
    const double d = std::fabs(decode_e4m3(code) - std::fabs(x)), least = std::fabs(decode_e4m3(best) - std::fabs(x));
    if (d < least || (d == least && code % 2 == 0)) best = code;
  }
  return static_cast<uint8_t>(best | (std::signbit(x) ? 128 : 0));
}

inline double rounded(double x, DType dtype) { return std::isnan(x) ? x : round_to(x, format_of(dtype)); }

struct Faults {
  int64_t q_shift = 0, k_shift = 0;  ///< of positions
  bool other_pairing = false, wrong_sine = false, q_unrotated = false, k_unrotated = false, k_twice = false;
  bool all_columns = false;  ///< rotates d columns instead of rotary_dim
  bool new_unrotated = false, new_twice = false;
  bool scale_of_head_0 = false, no_k_scale = false, k_scale_for_v = false;
  int64_t append_shift = 0;     ///< keys
  bool other_sequence = false;  ///< appends to the places of sequence 0
  bool old_overwritten = false, exchanged = false, not_appended = false, writes_behind = false;
  bool unrounded_new = false;  ///< attention uses K_new and V_new instead of the stored e4m3
  bool overflows = false;      ///< NaN instead of the largest e4m3
  bool truncated_new = false;  ///< e4m3 by truncation
  bool truncated = false;      ///< rotated elements in 16 bits by truncation
  bool keys_missing = false;   ///< ignores the new keys
  bool plain_scaled = false;   ///< K_plain and V_plain times the scale
};

/// The buffers of a problem, and what a kernel writes to them.
class World {
 public:
  World(Problem problem, InputPattern pattern) : p_(std::move(problem)), pattern_(pattern), scope_(op().scope(p_)) {
    for (const Buffer& b : op().buffers(p_)) {
      buffers_[b.name] = b;
      auto& bytes = bytes_[b.name];
      bytes.resize(b.bytes);
      if (b.has_contents()) op().fill(p_, pattern_, b.name, 0, bytes);
    }
    const Shape s(p_);
    const auto temporary = [&](const char* name, int64_t rows, int64_t heads) {
      buffers_[name] = {name, p_.dtype, static_cast<uint64_t>(rows * heads * s.d * 2), Buffer::Role::kTemporary};
      bytes_[name].resize(buffers_[name].bytes);
    };
    temporary("Q_plain", s.q_tokens(), s.heads);
    temporary("K_plain", s.varlen() ? s.q_tokens() : s.batch * s.kv_len, s.kv_heads);
    temporary("V_plain", s.varlen() ? s.q_tokens() : s.batch * s.kv_len, s.kv_heads);
    buffers_["S"] = {"S", p_.dtype, static_cast<uint64_t>(s.batch * s.heads * s.q_len * s.kv_pitch() * 2)};
    bytes_["S"].resize(buffers_["S"].bytes);
  }

  double get(const std::string& name, int64_t i) const {
    return load_element(bytes_.at(name).data(), static_cast<size_t>(i), buffers_.at(name).dtype);
  }
  void put(const std::string& name, int64_t i, double x) {
    const Buffer& b = buffers_.at(name);
    if (b.dtype == DType::kFp8)
      bytes_[name][static_cast<size_t>(i)] = std::byte{encode_e4m3(x)};
    else
      store_element(bytes_[name].data(), static_cast<size_t>(i), b.dtype, x);
  }
  int64_t number(const char* name) const { return *scope_.at(name).as<int64_t>(); }
  bool is(const char* name) const { return *scope_.at(name).as<bool>(); }

  /// Place of element 0 of a row of Q or O, of a key, and of a new key.
  int64_t query(char tensor, int64_t b, int64_t h, int64_t r) const {
    const Shape s(p_);
    const std::string prefix(1, tensor);
    const int64_t row = number((prefix + "_row_stride").c_str()), head = number((prefix + "_head_stride").c_str());
    if (s.varlen()) return (s.first_token(b) + r) * row + h * head;
    return b * number((prefix + "_batch_stride").c_str()) + h * head + r * row;
  }
  int64_t key(bool v, int64_t b, int64_t h, int64_t k) const {
    const Shape s(p_);
    const auto stride = [&](const char* name) { return number((std::string(v ? "v" : "k") + name).c_str()); };
    const int64_t row = stride("_row_stride"), head = stride("_head_stride"), page = number("page");
    if (s.varlen()) return (s.first_token(b) + k) * row + h * head;
    if (page == 0) return b * stride("_batch_stride") + h * head + k * row;
    const auto entry = static_cast<int64_t>(get("block_table", b * number("pages_per_sequence") + k / page));
    return entry * stride("_page_stride") + h * head + k % page * row;
  }
  int64_t fresh(int64_t b, int64_t h, int64_t j) const {
    return b * number("k_new_batch_stride") + h * number("k_new_head_stride") + j * number("k_new_row_stride");
  }

  /// Rotates a row.
  void turn(std::vector<double>& x, int64_t position, const Faults& f, int times = 1) const {
    const auto d = static_cast<int64_t>(x.size());
    const int64_t n = f.all_columns ? d : number("rotary_dim");
    const bool half = (scope_.at("rotary").str() == "half") != f.other_pairing;
    const double base = is("rotary_table") ? 10000 : p_.reals.at("rotary_base");
    for (int64_t i = 0; i < n / 2; ++i) {
      const int64_t a = half ? i : 2 * i, b = half ? i + n / 2 : 2 * i + 1;
      const double angle =
          times * static_cast<double>(position) * std::pow(base, -2 * static_cast<double>(i) / static_cast<double>(n));
      double c = std::cos(angle), s = std::sin(angle);
      if (is("rotary_table") && times == 1 && position >= 0 && position < p_.dims.at("kv_len")) {
        c = get("rotary_table", position * n + i);
        s = get("rotary_table", position * n + n / 2 + i);
      }
      if (f.wrong_sine) s = -s;
      const double u = x[static_cast<size_t>(a)], v = x[static_cast<size_t>(b)];
      x[static_cast<size_t>(a)] = u * c - v * s;
      x[static_cast<size_t>(b)] = u * s + v * c;
    }
  }

  /// All stages, with operands and P rounded as kernels round them; `exactly`: P not rounded.
  void run(const Faults& f = {}, bool exactly = false) {
    const Shape s(p_);
    const auto round16 = [&](double x) { return rounded(x, p_.dtype); };
    const bool rotary = number("rotary_dim") > 0, fp8 = is("kv_fp8"), append = is("append");
    const auto scale = [&](bool values, int64_t h) {
      if (!fp8 || (f.no_k_scale && !values)) return 1.0;
      return get(values && !f.k_scale_for_v ? "v_scale" : "k_scale",
                 is("kv_scale_per_head") && !f.scale_of_head_0 ? h : 0);
    };
    o_.clear();
    for (int64_t b = 0; b < s.batch; ++b) {
      const int64_t keys = s.keys(b), rows = s.rows(b), first_new = append ? keys - s.q_len : keys;
      for (int64_t h = 0; h < s.kv_heads; ++h) {
        std::vector<std::vector<double>> k(static_cast<size_t>(keys)), v(k);
        for (const bool values : {false, true})
          for (int64_t j = 0; j < keys; ++j) {
            const bool fresh_one = j >= first_new;
            std::vector<double>& x = (values ? v : k)[static_cast<size_t>(j)];
            x.resize(static_cast<size_t>(s.d));
            const bool from_v = fresh_one && f.exchanged ? !values : values;
            const std::string name = std::string(from_v ? "V" : "K") + (fresh_one ? "_new" : "");
            const int64_t at = fresh_one ? fresh(b, h, j - first_new) : key(from_v, b, h, j);
            for (int64_t c = 0; c < s.d; ++c) x[static_cast<size_t>(c)] = get(name, at + c);
            const int64_t position = j + f.k_shift;
            if (rotary && !values && fresh_one && !f.new_unrotated) turn(x, position, f, f.new_twice ? 2 : 1);
            if (rotary && !values && !fresh_one && is("rotates_keys") && !f.k_unrotated) {
              turn(x, position, f, f.k_twice ? 2 : 1);
              for (double& y : x) y = f.truncated ? truncated(y) : round16(y);
            }
            if (rotary && !values && !fresh_one && !is("rotates_keys") && f.k_twice) turn(x, position, f);
            const double unit = scale(values, h);
            if (fresh_one) {
              const std::vector<double> before = x;
              for (double& y : x) {
                double stored = y;
                if (fp8) {
                  stored = decode_e4m3(encode_e4m3(y / unit));
                  if (f.overflows && std::fabs(y / unit) > 464) stored = NAN;
                  if (f.truncated_new && std::fabs(stored) > std::fabs(y / unit))
                    stored = decode_e4m3((encode_e4m3(stored) & 128) | ((encode_e4m3(stored) & 127) - 1));
                } else if (rotary && !values) {
                  stored = f.truncated ? truncated(y) : round16(y);
                }
                y = stored;
              }
              if (!f.not_appended) write_new(b, h, j, values, x, f);
              if (f.unrounded_new)
                for (size_t c = 0; c < x.size(); ++c) x[c] = before[c] / unit;
            }
            if (rotates_or_fp8(values)) {
              const std::string plain = values ? "V_plain" : "K_plain";
              const int64_t token = s.varlen() ? s.first_token(b) + j : b * s.kv_len + j;
              for (int64_t c = 0; c < s.d; ++c)
                put(plain, (token * s.kv_heads + h) * s.d + c, x[static_cast<size_t>(c)] * (f.plain_scaled ? unit : 1));
            }
          }
        for (int64_t group = 0; group < s.group(); ++group)
          for (int64_t r = 0; r < rows; ++r) {
            attend(b, h * s.group() + group, r, k, v, scale(false, h), scale(true, h), first_new, f, exactly);
          }
      }
    }
  }

  /// The unrounded rows of O in the order of the computation.
  const std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<double>>& o() const { return o_; }

  Comparison compare(const std::string& variant, const std::string& stage) const {
    const ElementReader read = [&](const std::string& name, uint64_t first, std::span<double> out,
                                   std::vector<bool>* valid) -> Result<void> {
      for (size_t i = 0; i < out.size(); ++i) out[i] = get(name, static_cast<int64_t>(first + i));
      if (valid) valid->assign(out.size(), true);
      return {};
    };
    Comparison all;
    const Extent extent = op().extent(p_);
    for (int64_t b = 0; b < extent.batch; ++b)
      for (int64_t h = 0; h < extent.heads; ++h) {
        const auto one = op().compare(p_, pattern_, variant, stage, {b, h, 0, extent.rows_of(b)}, read);
        EXPECT_TRUE(one) << one.error().message;
        if (!one) continue;
        all.rows += one->rows;
        all.worst = std::max(all.worst, one->worst);
        if (all.failure.empty()) all.failure = one->failure;
      }
    return all;
  }

  const Problem& problem() const { return p_; }

 private:
  double truncated(double x) const {
    const double near = rounded(x, p_.dtype);
    return std::fabs(near) > std::fabs(x) ? near - std::copysign(spacing(x, format_of(p_.dtype)), x) : near;
  }

  bool rotates_or_fp8(bool values) const { return is("kv_fp8") || (is("rotates_keys") && !values); }

  void write_new(int64_t b, int64_t h, int64_t j, bool values, const std::vector<double>& x, const Faults& f) {
    const std::string name = values ? "V" : "K";
    int64_t to = std::max<int64_t>(0, j + f.append_shift);
    if (f.other_sequence) to = std::min(to, Shape(p_).keys(0) - 1);
    for (size_t c = 0; c < x.size(); ++c)
      put(name, key(values, f.other_sequence ? 0 : b, h, to) + static_cast<int64_t>(c), x[c]);
    if (f.old_overwritten && j == Shape(p_).first_new(b))
      put(name, key(values, b, h, 1) + 5, get(name, key(values, b, h, 0) + 5) + 1);
    const Shape s(p_);
    if (f.writes_behind && j + 1 == s.keys(b) && s.keys(b) < s.kv_len)
      put(name, key(values, b, h, j) + number(values ? "v_row_stride" : "k_row_stride"), 1);
  }

  void attend(int64_t b, int64_t h, int64_t r, const std::vector<std::vector<double>>& k,
              const std::vector<std::vector<double>>& v, double k_scale, double v_scale, int64_t first_new,
              const Faults& f, bool exactly) {
    const Shape s(p_);
    const auto round16 = [&](double x) { return rounded(x, p_.dtype); };
    const int64_t position = r + s.keys(b) - s.rows(b), end = s.causal ? position + 1 : s.keys(b);
    std::vector<double> q(static_cast<size_t>(s.d));
    for (int64_t c = 0; c < s.d; ++c) q[static_cast<size_t>(c)] = get("Q", query('q', b, h, r) + c);
    if (number("rotary_dim") > 0 && !f.q_unrotated) turn(q, position + f.q_shift, f);
    for (double& x : q) x = f.truncated ? truncated(x) : round16(x);
    const int64_t token = s.first_token(b) + r;
    for (int64_t c = 0; c < s.d; ++c) put("Q_plain", (token * s.heads + h) * s.d + c, q[static_cast<size_t>(c)]);
    std::vector<double> p, o(q.size(), 0.0);
    double max = -INFINITY, sum = 0;
    for (int64_t j = 0; j < end; ++j) {
      double x = 0;
      for (size_t c = 0; c < q.size(); ++c) x += q[c] * round16(k[static_cast<size_t>(j)][c]);
      p.push_back(x * k_scale * s.scale);
      if (s.has_score()) p.back() = p_.reals.at("softcap") * std::tanh(p.back() / p_.reals.at("softcap"));
      if (f.keys_missing && j >= first_new) p.back() = -INFINITY;
      put("S", ((b * s.heads + h) * s.q_len + r) * s.kv_pitch() + j, p.back());
      max = std::max(max, p.back());
    }
    for (size_t j = 0; j < p.size(); ++j) {
      const double e = std::exp(p[j] - max);
      sum += e;
      for (size_t c = 0; c < o.size(); ++c) o[c] += (exactly ? e : round16(e)) * v[j][c];
    }
    for (size_t c = 0; c < o.size(); ++c) {
      o[c] *= v_scale / sum;
      put("O", query('o', b, h, r) + static_cast<int64_t>(c), o[c]);
    }
    if (s.lse) put("LSE", s.lse_index(b, h, r), max + std::log(sum));
    o_[{b, h, r}] = std::move(o);
  }

  Problem p_;
  InputPattern pattern_;
  expr::Map scope_;
  std::map<std::string, Buffer> buffers_;
  std::map<std::string, std::vector<std::byte>> bytes_;
  std::map<std::tuple<int64_t, int64_t, int64_t>, std::vector<double>> o_;
};

// ---- cases -------------------------------------------------------------------------------------

inline const Flags kTable{{"rotary_table", true}}, kAppend{{"append", true}},
    kAppendCausal{{"append", true}, {"causal", true}}, kLse{{"lse", true}};
inline const Texts kHalf{{"rotary", "half"}}, kInterleaved{{"rotary", "interleaved"}};
inline const std::string kLengths = "40,9,100,33";

inline const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"half", {}, kHalf, kLse},
      {"interleaved", {{"rotary_dim", 32}}, kInterleaved, {{"causal", true}}, {{"rotary_base", 500}}},
      {"packed", {{"rotary_dim", 48}}, {{"rotary", "half"}, {"lengths", "7,3"}}, {}, {}, false, DType::kFp16},
      {"table", {{"rotary_dim", 32}}, kHalf, kTable},
      {"early queries", {{"L", 40}, {"kv_len", 20}}, kHalf},
      {"small scale", {}, kHalf, {}, {{"scale", 1e-5}}, false, DType::kFp16},
      {"small scale in fp8", {}, kInterleaved, kAppend, {{"scale", 1e-5}}, true, DType::kFp16},
      {"small scale in a rotated cache of fp8", {}, kInterleaved, {}, {{"scale", 1e-5}}, true, DType::kFp16},
      {"softcap", {}, kInterleaved, {}, {{"softcap", 3}}},
      {"append", {}, {{"kv_layout", "hnd"}}, kAppendCausal},
      {"append to lengths", {{"batch", 4}, {"kv_len", 110}}, {{"kv_lengths", kLengths}, {"rotary", "half"}}, kAppend},
      {"append to pages",
       {{"batch", 4}, {"page", 16}},
       {{"kv_lengths", kLengths}, {"rotary", "interleaved"}},
       kAppendCausal},
      {"rotated cache", {{"page", 16}}, kInterleaved},
      {"table and append", {}, kInterleaved, {{"rotary_table", true}, {"append", true}}, {}, false, DType::kFp16},
      {"fp8", {}, {}, kLse, {}, true},
      {"fp8 per head", {{"page", 16}}, {{"kv_scales", "head"}}, {}, {}, true, DType::kFp16},
      {"fp8 rotated", {{"rotary_dim", 32}}, {{"rotary", "half"}, {"kv_scales", "head"}}, {}, {}, true},
      {"fp8 rotated append",
       {{"batch", 4}, {"page", 16}},
       {{"kv_lengths", kLengths}, {"rotary", "half"}, {"kv_scales", "head"}},
       kAppendCausal,
       {},
       true},
      {"fp8 append", {{"L", 9}}, {{"kv_scales", "head"}}, kAppend, {}, true}};
  return all;
}

inline constexpr InputPattern kPatterns[] = {InputPattern::kNormal, InputPattern::kZeroQuery, InputPattern::kOneHot,
                                             InputPattern::kGrowing};

/// The problem in the layout of a pattern.
inline Problem spread(Problem p, InputPattern pattern) {
  if (pattern != InputPattern::kNormal) p.dims[attention::kSpread] = 1;
  return p;
}

}  // namespace roofgen::attention_prologue

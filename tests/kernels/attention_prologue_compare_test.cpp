// Attention with rotary positions, appended keys and a cache in fp8, without a kernel: reference, tolerance and
// comparison.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tests/kernels/attention_prologue_world.h"

namespace roofgen::attention_prologue_compare_test {
namespace {

using namespace attention_prologue;

class EveryCase : public ::testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(Prologue, EveryCase, ::testing::ValuesIn(cases()), [](const auto& one) {
  std::string name = one.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

TEST_P(EveryCase, TheReferenceAgreesWithPlainLoops) {
  for (InputPattern pattern : kPatterns) {
    World world(spread(complete(GetParam()), pattern), pattern);
    world.run({}, true);
    const Shape s(world.problem());
    double largest = 0;
    for (const auto& [at, o] : world.o()) {
      const auto [b, h, r] = at;
      const auto band = attention::reference_of(s, pattern, attention::Rounding::kFused, {b, h, r, r + 1});
      for (size_t c = 0; c < o.size(); ++c) {
        if (std::isnan(o[c]) && std::isnan(band->o[c])) continue;
        largest = std::max(largest, std::fabs(o[c]));
        ASSERT_NEAR(band->o[c], o[c], 1e-6 * std::max(1.0, std::fabs(o[c])))
            << to_string(pattern) << " " << b << " " << h << " " << r << " " << c;
      }
    }
    EXPECT_GT(largest, 0.1) << to_string(pattern);
  }
}

TEST_P(EveryCase, ARightKernelPasses) {
  for (InputPattern pattern : kPatterns) {
    if (pattern == InputPattern::kZeroQuery && GetParam().reals.count("softcap")) continue;
    World world(spread(complete(GetParam()), pattern), pattern);
    world.run();
    for (const auto& [variant, stage] : {std::pair{"fused", "attention"},
                                         {"prologue", "prologue"},
                                         {"prologue", "attention"},
                                         {"unfused", "scores"}}) {
      if (stage == std::string("scores") && Shape(world.problem()).varlen()) continue;
      const Comparison c = world.compare(variant, stage);
      EXPECT_EQ(c.failure, "") << to_string(pattern) << " " << variant << " " << stage;
      EXPECT_GT(c.rows, 0u);
      EXPECT_LE(c.worst, 1);
      // The bounds are not wide either.
      if (pattern == InputPattern::kNormal && world.number("rotary_dim") > 0 && stage == std::string("scores")) {
        EXPECT_GT(c.worst, 0.3);
      }
    }
  }
}

// ---- faults ------------------------------------------------------------------------------------

struct Fault {
  std::string name;
  Faults faults;
  bool (*applies)(const World&);
  const char* stage;  ///< of the variant prologue, unless "fused"
};
void PrintTo(const Fault& f, std::ostream* out) { *out << f.name; }

bool rotates(const World& w) { return w.number("rotary_dim") > 0; }
bool appends(const World& w) { return w.is("append"); }
bool is_fp8(const World& w) { return w.is("kv_fp8"); }
bool rotates_part(const World& w) { return rotates(w) && w.number("rotary_dim") < w.number("d"); }
bool appends_rotated(const World& w) { return rotates(w) && appends(w); }
bool appends_fp8(const World& w) { return appends(w) && is_fp8(w); }
bool has_old_keys(const World& w) { return appends(w) && w.number("kv_len") > 8; }
bool rotates_all(const World& w) { return w.is("rotates_keys"); }
bool has_old_rotated(const World& w) { return rotates(w) && !w.is("rotates_keys"); }
bool has_heads(const World& w) { return w.is("kv_scale_per_head"); }
bool has_space(const World& w) { return appends(w) && w.number("page") == 0 && w.is("ragged"); }

Faults with(std::function<void(Faults&)> change) {
  Faults out;
  change(out);
  return out;
}

const std::vector<Fault>& faults() {
  static const std::vector<Fault> all{
      {"query one position too far", with([](Faults& f) { f.q_shift = 1; }), rotates, "attention"},
      {"query at its row", with([](Faults& f) { f.q_shift = -3; }), rotates, "attention"},
      {"keys one position too far", with([](Faults& f) { f.k_shift = 1; }), rotates_all, "attention"},
      {"other pairing", with([](Faults& f) { f.other_pairing = true; }), rotates, "prologue"},
      {"sine of the wrong sign", with([](Faults& f) { f.wrong_sine = true; }), rotates, "prologue"},
      {"query not rotated", with([](Faults& f) { f.q_unrotated = true; }), rotates, "attention"},
      {"keys not rotated", with([](Faults& f) { f.k_unrotated = true; }), rotates_all, "attention"},
      {"keys rotated twice", with([](Faults& f) { f.k_twice = true; }), rotates_all, "attention"},
      {"old keys rotated again", with([](Faults& f) { f.k_twice = true; }), has_old_rotated, "attention"},
      {"all columns rotated", with([](Faults& f) { f.all_columns = true; }), rotates_part, "attention"},
      {"new keys not rotated", with([](Faults& f) { f.new_unrotated = true; }), appends_rotated, "fused"},
      {"new keys rotated twice", with([](Faults& f) { f.new_twice = true; }), appends_rotated, "fused"},
      {"scale of head 0", with([](Faults& f) { f.scale_of_head_0 = true; }), has_heads, "attention"},
      {"no scale of K", with([](Faults& f) { f.no_k_scale = true; }), is_fp8, "attention"},
      {"scale of K for V", with([](Faults& f) { f.k_scale_for_v = true; }), is_fp8, "attention"},
      {"appended one key too far", with([](Faults& f) { f.append_shift = 1; }), has_space, "fused"},
      {"appended one key too early", with([](Faults& f) { f.append_shift = -1; }), appends, "fused"},
      {"appended to sequence 0", with([](Faults& f) { f.other_sequence = true; }), appends, "fused"},
      {"an old key overwritten", with([](Faults& f) { f.old_overwritten = true; }), has_old_keys, "fused"},
      {"K and V exchanged", with([](Faults& f) { f.exchanged = true; }), appends, "fused"},
      {"not appended", with([](Faults& f) { f.not_appended = true; }), appends, "fused"},
      {"written behind the end", with([](Faults& f) { f.writes_behind = true; }), has_space, "fused"},
      {"new keys ignored", with([](Faults& f) { f.keys_missing = true; }), appends, "attention"},
      {"attention with unrounded new keys", with([](Faults& f) { f.unrounded_new = true; }), appends_fp8, "attention"},
      {"new keys overflow", with([](Faults& f) { f.overflows = true; }), appends_fp8, "fused"},
      {"new keys truncated", with([](Faults& f) { f.truncated_new = true; }), appends_fp8, "fused"},
      {"plain rows times the scale", with([](Faults& f) { f.plain_scaled = true; }), is_fp8, "prologue"}};
  return all;
}

class EveryFault : public ::testing::TestWithParam<Fault> {};
INSTANTIATE_TEST_SUITE_P(Prologue, EveryFault, ::testing::ValuesIn(faults()), [](const auto& one) {
  std::string name = one.param.name;
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

// A fault fails in every case to which it applies, and the message names an element.
TEST_P(EveryFault, IsFoundInEveryCase) {
  const Fault& fault = GetParam();
  int cases_with_it = 0;
  for (const Case& c : cases()) {
    if (c.reals.count("scale")) continue;  // all keys count the same, whatever their scores
    World world(complete(c), InputPattern::kNormal);
    if (!fault.applies(world)) continue;
    ++cases_with_it;
    world.run(fault.faults);
    const bool fused = fault.stage == std::string("fused");
    const Comparison found = world.compare(fused ? "fused" : "prologue", fused ? "attention" : fault.stage);
    EXPECT_GT(found.worst, 1) << c.name;
    EXPECT_NE(found.failure.find("[batch "), std::string::npos) << c.name << ": " << found.failure;
  }
  EXPECT_GT(cases_with_it, 0);
}
// ---- tolerance ---------------------------------------------------------------------------------

/// O of a reference as a kernel's output.
Comparison compare_with(const Problem& p, const attention::BandReference& reference) {
  const ElementReader read = [&](const std::string&, uint64_t first, std::span<double> out,
                                 std::vector<bool>* valid) -> Result<void> {
    for (size_t i = 0; i < out.size(); ++i) out[i] = round_to(reference.o[first + i], format_of(p.dtype));
    valid->assign(out.size(), true);
    return {};
  };
  return *op().compare(p, InputPattern::kNormal, "prologue", "attention", {0, 0, 0, reference.rows}, read);
}

// Rotated codes round with the same sign in many columns: their errors add up in the LSE.
void expect_truncation_to_be_found(const std::vector<DType>& dtypes, const std::vector<Flags>& all_flags) {
  for (const DType dtype : dtypes)
    for (const Flags& flags : all_flags)
      for (const InputPattern pattern : {InputPattern::kNormal, InputPattern::kOneHot, InputPattern::kGrowing}) {
        const Dims dims{{"L", 100}, {"kv_len", 200}, {"d", 128}, {"batch", 1}, {"heads", 1}, {"kv_heads", 1}};
        World world(spread(complete({"", dims, kHalf, flags, {}, false, dtype}), pattern), pattern);
        world.run();
        EXPECT_EQ(world.compare("fused", "attention").failure, "") << to_string(pattern);
        world.run(with([](Faults& f) { f.truncated = true; }));
        const Comparison found = world.compare("fused", "attention");
        EXPECT_GT(found.worst, 3) << to_string(pattern) << " " << found.failure;
      }
}

const Flags kLseAppend{{"lse", true}, {"append", true}};

TEST(PrologueTolerance, RoundedOperandsPassAndTruncatedOnesDoNot) {
  expect_truncation_to_be_found({DType::kBf16}, {kLseAppend});
}

TEST(SlowPrologueTolerance, RoundedOperandsPassAndTruncatedOnesDoNot) {
  expect_truncation_to_be_found({DType::kBf16, DType::kFp16}, {kLse, kLseAppend});
}

TEST(PrologueTolerance, OneExtraKeyExceedsIt) {
  for (const bool fp8 : {false, true}) {
    Case c{"", {{"L", 64}, {"kv_len", 1023}, {"batch", 1}, {"heads", 1}, {"kv_heads", 1}}, kHalf, {}, {}, fp8};
    const Problem p = complete(c);
    const auto reference = [](const Problem& problem) {
      return attention::reference_of(Shape(problem), InputPattern::kNormal, attention::Rounding::kFused, {0, 0, 0, 64});
    };
    EXPECT_LE(compare_with(p, *reference(p)).worst, 0.5);
    Problem longer = p;
    longer.dims["kv_len"] = 1024;
    EXPECT_GT(compare_with(p, *reference(longer)).worst, 2);
  }
}

// Results are kept for problems; those that differ in one of the choices are others.
TEST(PrologueReference, EveryChoiceHasItsOwnResult) {
  std::vector<double> seen;
  const Dims one{{"batch", 1}, {"heads", 2}, {"kv_heads", 2}};
  const auto dims = [&](Dims more) {
    more.insert(one.begin(), one.end());
    return more;
  };
  const std::vector<Case> all{{"", dims({}), {}},
                              {"", dims({}), kHalf},
                              {"", dims({}), kInterleaved},
                              {"", dims({{"rotary_dim", 32}}), kHalf},
                              {"", dims({}), kHalf, {}, {{"rotary_base", 500}}},
                              {"", dims({}), kHalf, kAppend},
                              {"", dims({}), {}, {}, {}, true},
                              {"", dims({}), {{"kv_scales", "head"}}, {}, {}, true},
                              {"", dims({}), {}, kAppend, {}, true},
                              {"", dims({}), kHalf, kAppend, {}, true}};
  for (const Case& c : all) {
    const auto band =
        attention::reference_of(Shape(complete(c)), InputPattern::kNormal, attention::Rounding::kFused, {0, 1, 0, 4});
    EXPECT_EQ(std::count(seen.begin(), seen.end(), band->o[5]), 0) << to_string(complete(c));
    seen.push_back(band->o[5]);
  }
}

// ---- the cache after the step ------------------------------------------------------------------

/// Compares a right cache with one element changed.
std::string failure_with(const Case& c, const std::string& buffer, int64_t b, int64_t h, int64_t key, double value) {
  World world(complete(c), InputPattern::kNormal);
  world.run();
  world.put(buffer, world.key(buffer[0] == 'V', b, h, key) + 3, value);
  return world.compare("fused", "attention").failure;
}

TEST(PrologueCompare, NamesTheElementOfTheCache) {
  const Case c{"", {}, {{"kv_layout", "hnd"}}, kAppend};
  EXPECT_EQ(failure_with(c, "K", 1, 1, 35, 9).find("K[batch 1, head 1, key 35, column 3] is 9, "), 0u);
  EXPECT_EQ(failure_with(c, "V", 0, 1, 2, 9).find("V[batch 0, head 1, key 2, column 3] is 9, "), 0u);
  const Case ragged{"", {{"batch", 2}}, {{"kv_lengths", "30,20"}}, kAppend};
  EXPECT_EQ(failure_with(ragged, "V", 1, 0, 20, 9).find("V[batch 1, head 0, key 20, column 3] is 9, nan was"), 0u);
  const Case paged{"", {{"batch", 2}, {"page", 16}}, {{"kv_lengths", "30,20"}}, kAppend, {}, true};
  EXPECT_EQ(failure_with(paged, "K", 1, 1, 21, 9).find("K[batch 1, head 1, key 21, column 3] is 9, nan was"), 0u);
}

// Of more keys than are compared, those at the ends.
TEST(PrologueCompare, LooksAtTheEndsOfALongCache) {
  for (const int64_t page : {0, 64}) {
    Case c{"",  {{"L", 1}, {"kv_len", 5003}, {"batch", 1}, {"heads", 1}, {"kv_heads", 1}, {"d", 32}}, {}, kAppend, {},
           true};
    if (page > 0) c.dims["page"] = page;
    std::vector<int64_t> keys{0, 5002 - 64, 5001, 5002};
    if (page > 0) keys.insert(keys.end(), {4800 - 1, 4800});
    for (const int64_t key : keys) EXPECT_NE(failure_with(c, "V", 0, 0, key, 9), "") << key;
  }
}

// Only the first head of a group looks at the cache, and of a variant with a prologue only that stage.
TEST(PrologueCompare, OneStageAndOneHeadAnswerForTheCache) {
  const Problem p = complete({"", {}, {}, kAppend});
  World world(p, InputPattern::kNormal);
  world.run();
  world.put("K", world.key(false, 0, 0, 36) + 3, 9);
  EXPECT_NE(world.compare("fused", "attention").failure, "");
  EXPECT_NE(world.compare("prologue", "prologue").failure, "");
  EXPECT_EQ(world.compare("prologue", "attention").failure, "");
  EXPECT_NE(world.compare("unfused", "prologue").failure, "");
  EXPECT_EQ(world.compare("unfused", "scores").failure, "");
  const ElementReader read = [&](const std::string& name, uint64_t first, std::span<double> out,
                                 std::vector<bool>* valid) -> Result<void> {
    for (size_t i = 0; i < out.size(); ++i) out[i] = world.get(name, static_cast<int64_t>(first + i));
    if (valid) valid->assign(out.size(), true);
    return {};
  };
  const auto failure = [&](int64_t head, int64_t row) {
    return op().compare(p, InputPattern::kNormal, "fused", "attention", {0, head, row, row + 1}, read)->failure;
  };
  EXPECT_NE(failure(0, 3), "");
  EXPECT_EQ(failure(1, 3), "");
  EXPECT_EQ(failure(0, 2), "");
}

}  // namespace
}  // namespace roofgen::attention_prologue_compare_test

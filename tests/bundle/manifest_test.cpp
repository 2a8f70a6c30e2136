// A bundle from the manifest of another one.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/json.h"
#include "base/sha256.h"
#include "tests/bundle/fake_compiler.h"

namespace roofgen::test::manifest_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Files = std::map<std::string, std::string>;

/// The bundle of the default schedules.
class MadeAgain : public testing::Test {
 protected:
  static Problem problem(const std::string& op, const Sizes& sizes) {
    return *(*find_op(op))->complete({.op = op, .dims = sizes, .flags = {}, .reals = {}});
  }

  Files bundle_of_defaults(const Problem& p, const std::string& variant, Release release = {}) {
    const Device device = *load_device(files_, "h200-sxm");
    const Op& op = **find_op(p.op);
    const auto at = *variants_of(files_, op, limits(device), p);
    const Variant& v = *at.find(variant);
    std::vector<TunedKernel> kernels;
    for (const Stage& s : v.stages) {
      const auto legal = std::get<Legal>(check_schedule(v, s, *default_schedule(v, s, at.scope, {}), at.scope));
      TunedKernel& k = kernels.emplace_back();
      k.program = *generate(files_, s, legal);
      k.launch = *make_launch(s, legal);
      FakeCompiler(release, "sm_90", true).compile_all({&k.program}, [&](CompileOutcome o) {
        k.binary = *o.binary;
        return true;
      });
    }
    Bundle bundle;
    bundle.name = "it";
    bundle.problem = p;
    bundle.compiler = release.version + " at /elsewhere";
    bundle.pipelines.push_back(
        *bundle_pipeline(files_, device, p, variant, std::move(kernels), fake_compiler(release)));
    bundle.shapes.push_back({p.dims, 0});
    return *bundle_files(files_, bundle);
  }

  Result<Files> again(const std::string& manifest, Release release = {}) {
    ROOFGEN_TRY(const Manifest read, read_manifest(manifest, "m.json"));
    ROOFGEN_TRY(const Bundle bundle,
                bundle_of(files_, read, fake_compiler(release), [&](const std::string& w) { warnings_.push_back(w); }));
    return bundle_files(files_, bundle);
  }

  /// The error for a manifest with a change.
  std::string refusal(std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    if (at != std::string::npos) text.replace(at, from.size(), to);
    const auto files = again(text);
    EXPECT_FALSE(files) << to;
    if (files) return "";
    EXPECT_EQ(files.error().exit, Exit::kFailed);
    return to_string(files.error());
  }

  const Problem attention_ = problem("attention", {{"L", 256}, {"d", 64}, {"batch", 1}, {"heads", 4}});
  DataFiles files_;
  std::vector<std::string> warnings_;
};

TEST_F(MadeAgain, TheFilesAreTheSame) {
  Problem gemm = problem("gemm", {{"M", 256}, {"N", 256}, {"K", 512}});
  gemm.texts["epilogue"] = "gelu(acc + bias[n]) * scale";
  gemm.reals["scale"] = 0.3;
  gemm = *(*find_op("gemm"))->complete(gemm);
  for (const auto& [p, variant] : {std::pair{attention_, "warpgroup"},
                                   {attention_, "unfused"},
                                   {gemm, "fused"},
                                   {problem("rmsnorm", {{"rows", 64}, {"cols", 512}}), "fused"}}) {
    const Files first = bundle_of_defaults(p, variant);
    const auto second = again(first.at("manifest.json"));
    ASSERT_TRUE(second) << to_string(second.error());
    EXPECT_EQ(*second, first) << p.op;
  }
  EXPECT_TRUE(warnings_.empty());
}

TEST_F(MadeAgain, ARefusalNamesTheUsersSizes) {
  const Files files = bundle_of_defaults(problem("rmsnorm", {{"rows", 64}, {"cols", 4096}}), "fused");
  EXPECT_THAT(files.at("it.c"), HasSubstr("cols is 4096 in the tuned problem (condition 2 of it.h)"));
  EXPECT_THAT(files.at("it.h"), AllOf(HasSubstr(" *   1. "), HasSubstr(", where ")));
}

TEST_F(MadeAgain, TheManifestHasTheDigestOfEachOtherFile) {
  const Files files = bundle_of_defaults(attention_, "fused");
  const Json listed = parse_json(files.at("manifest.json"))["files"];
  EXPECT_EQ(listed.size() + 1, files.size());
  for (const auto& [name, text] : files)
    if (name != "manifest.json") {
      EXPECT_EQ(listed[name], sha256(text)) << name;
    }
  EXPECT_EQ(written_digests(files.at("manifest.json")).size(), files.size());
  EXPECT_TRUE(written_digests("{}").empty());
}

TEST_F(MadeAgain, BinariesThatNeedTheirLinesKeepThem) {
  const Release release{.lines_change_ptx = true};
  const Files first = bundle_of_defaults(attention_, "fused", release);
  const auto second = again(first.at("manifest.json"), release);
  ASSERT_TRUE(second) << to_string(second.error());
  EXPECT_EQ(*second, first);
}

TEST_F(MadeAgain, OtherPtxIsRefused) {
  const std::string manifest = bundle_of_defaults(attention_, "fused").at("manifest.json");
  const auto newer = again(manifest, {"NVRTC 13.1", "other ptx"});
  ASSERT_FALSE(newer);
  EXPECT_EQ(newer.error().exit, Exit::kFailed);
  EXPECT_GT(newer.error().where.line, 1);
  EXPECT_THAT(newer.error().message, AllOf(HasSubstr("attention is not the kernel that was verified"),
                                           HasSubstr("by NVRTC 13.1 instead of NVRTC 13.0; its source is the same")));
  const auto build = again(manifest, {"NVRTC 13.0", "other ptx"});
  EXPECT_THAT(build.error().message, HasSubstr("by another build of NVRTC 13.0"));
  const Json json = parse_json(manifest);
  const auto source = json["pipelines"][0]["kernels"][0]["source_sha256"].get<std::string>();
  std::string older = manifest;
  older.replace(older.find(source), 12, "0123456789ab");
  EXPECT_THAT(again(older, {"NVRTC 13.0", "other ptx"}).error().message,
              HasSubstr("instead of 0123456789ab: this roofgen has other templates"));
}

TEST_F(MadeAgain, OtherMachineCodeOfTheSamePtxIsTaken) {
  const Files first = bundle_of_defaults(attention_, "fused");
  const auto second = again(first.at("manifest.json"), {"NVRTC 13.1", "ptx", "other cubin"});
  ASSERT_TRUE(second) << to_string(second.error());
  ASSERT_EQ(warnings_.size(), 1u);
  EXPECT_EQ(warnings_[0],
            "m.json: attention has other machine code, by NVRTC 13.1 instead of NVRTC 13.0; its PTX is the verified "
            "kernel's");
  EXPECT_EQ(parse_json(second->at("manifest.json"))["compiler"], "NVRTC 13.1");
}

TEST_F(MadeAgain, ErrorsNameThePlace) {
  const std::string text = bundle_of_defaults(attention_, "fused").at("manifest.json");
  EXPECT_THAT(refusal(text, "manifest.3", "manifest.2"),
              HasSubstr("m.json:2:4: error: schema \"roofgen.manifest.2\"; \"roofgen.manifest.3\" was expected"));
  EXPECT_THAT(refusal(text, "\"name\": \"it\"", "\"name\": \"i t\""),
              HasSubstr("m.json:3:4: error: \"i t\" is not a name in C"));
  EXPECT_THAT(refusal(text, "\"op\": \"attention\"", "\"op\": \"atention\""), HasSubstr("did you mean \"attention\""));
  EXPECT_THAT(refusal(text, "\"L\": 256", "\"L\": 0"), HasSubstr("L is 0"));
  EXPECT_THAT(refusal(text, "\"heads\": 4,", ""), HasSubstr("numbers are missing"));
  EXPECT_THAT(refusal(text, "\"variant\": \"fused\"", "\"variant\": \"fusd\""), HasSubstr("did you mean \"fused\""));
  EXPECT_THAT(refusal(text, "\"pipelines\": [", "\"pipelines\": [], \"table\": ["), HasSubstr("0 items"));
  EXPECT_THAT(refusal(text, "\"arch\": \"sm_90\"", "\"arch\": \"sm_90 -x\""), HasSubstr("a name like \"sm_90a\""));
  EXPECT_THAT(refusal(text, "\"sms\": 132", "\"sms\": \"many\""), HasSubstr("an integer was expected"));
  EXPECT_THAT(refusal(text, "\"sms\": 132", "\"smms\": 132"), HasSubstr("sms"));
  EXPECT_THAT(refusal(text, "\"limits\"", "\"limit\""), HasSubstr("unknown key \"limit\"; did you mean \"limits\""));
  EXPECT_THAT(refusal(text, "\"BM\": ", "\"BK\": "), HasSubstr("has the parameters BK"));
  EXPECT_THAT(refusal(text, "\"BM\": ", "\"BM\": 7"), HasSubstr("is illegal: "));
  EXPECT_THAT(refusal(text, "\"q_in\": \"registers\"", "\"q_in\": \"register\""), HasSubstr("did you mean"));
  EXPECT_THAT(refusal(text, "\"digest\": \"a", "\"digest\": \"x"), HasSubstr("64 hexadecimal digits"));
  EXPECT_THAT(refusal(text, "}", ""), HasSubstr("m.json:"));
  EXPECT_FALSE(read_manifest("", "m.json"));
  EXPECT_FALSE(read_manifest("[]", "m.json"));
}

TEST_F(MadeAgain, AResultOfOtherKernelsIsRefused) {
  std::string text = bundle_of_defaults(attention_, "fused").at("manifest.json");
  Json json = parse_json(text);
  const Json kernel{{"digest", FakeCompiler({}, "sm_90", true).digest({})}};
  json["pipelines"][0]["result"]["variant"] = {{"name", "fused"}, {"kernels", {kernel}}};
  const auto same = again(json_document(json));
  ASSERT_TRUE(same) << to_string(same.error());
  EXPECT_EQ(same->at("manifest.json"), json_document(json));
  json["pipelines"][0]["result"]["variant"]["kernels"][0]["digest"] = std::string(64, 'c');
  const auto other = again(json_document(json));
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().message, HasSubstr("\"result\" belongs to other kernels"));
}

TEST_F(MadeAgain, ArgumentsThatDoNotFitAreNamed) {
  const auto manifest = read_manifest(bundle_of_defaults(attention_, "fused").at("manifest.json"), "m.json");
  ASSERT_TRUE(manifest) << to_string(manifest.error());
  EXPECT_TRUE(check_fits(*manifest, {attention_}, {}));
  EXPECT_TRUE(check_fits(*manifest, {attention_}, {"90"}));
  EXPECT_TRUE(check_fits(*manifest, {attention_}, {"90a"})) << "a portable kernel may be the best one there";
  Problem other = attention_;
  other.dims["L"] = 512;
  const auto why = [&](const std::vector<Problem>& problems, const std::vector<std::string>& archs) {
    const auto checked = check_fits(*manifest, problems, archs);
    return checked ? "" : checked.error().message;
  };
  EXPECT_THAT(why({other}, {}), HasSubstr("L is 256 instead of 512"));
  EXPECT_THAT(why({attention_, other}, {}), HasSubstr("it has no shape attention bf16 L=512"));
  EXPECT_THAT(why({problem("rmsnorm", {{"rows", 64}, {"cols", 512}})}, {}), HasSubstr("op is attention instead of"));
  EXPECT_THAT(why({attention_}, {"80", "90"}), HasSubstr("it has no kernels for 80, only for 90"));
}

}  // namespace
}  // namespace roofgen::test::manifest_test

// The C code of a bundle selects the kernels that select() selects. Nothing is compiled for a GPU.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/json.h"
#include "generator/emit.h"
#include "tests/support/c_program.h"
#include "tuner/dispatch/serving.h"

namespace roofgen::test::selection_test {
namespace {

namespace fs = std::filesystem;

/// The kernel of a shape: a variant, with the default schedule but for `changed`.
struct Choice {
  Sizes sizes;
  std::string variant;
  std::map<std::string, ParamValue> changed = {};
};

/// A table and its bundle, whose kernels have no code.
class Table {
 public:
  Table(const std::string& op_name, const std::vector<Choice>& choices) : op_(**find_op(op_name)) {
    std::string pattern = (fs::temp_directory_path() / "roofgen-selection-XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
    for (const Choice& c : choices) add(c);
  }
  ~Table() { fs::remove_all(dir_); }
  Table(const Table&) = delete;

  /// What the C code says for a problem.
  struct Answer {
    int selected = 0;         ///< -1: none
    bool workspace = false;   ///< some is needed
    std::vector<bool> holds;  ///< the conditions of each kernel
  };
  std::vector<Answer> of_c(const std::vector<Problem>& problems) {
    EmitRequest request;
    request.name = "it";
    request.files = &files_;
    request.problem = &table_.shapes.front().problem;
    request.buffers = op_.buffers(*request.problem);
    request.compiler = "none";
    request.table = json_document(dispatch_json(table_));
    for (const Built& b : built_) request.pipelines.push_back(b.emitted);
    for (const DispatchShape& s : table_.shapes) request.shapes.push_back({s.problem.dims, s.kernel});
    const auto texts = emit(request);
    EXPECT_TRUE(texts) << texts.error().message;
    if (!texts) return {};
    for (const auto& [name, text] : *texts) std::ofstream(dir_ / name) << text;
    std::ofstream main(dir_ / "main.c");
    main << "#include \"it.c\"\n#include <stdio.h>\nint main(void) {\n  it_t h = {0};\n  h.target = targets;\n";
    const Json manifest = parse_json(texts->at("manifest.json"));
    for (const Problem& p : problems) {
      const expr::Map scope = *problem_scope(op_, p, limits(device_));
      std::string arguments, members;
      for (const Json& name : manifest["workspace_parameters"]) {
        arguments += ", " + scope.at(name.get<std::string>()).str();
        members += fmt::format(".{} = {}, ", name.get<std::string>(), scope.at(name.get<std::string>()).str());
      }
      main << "  { const arguments a = {" << members << "};\n    printf(\"%d %d\", it_selected(&h" << arguments
           << "), it_workspace_bytes(&h" << arguments << ") > 0);\n"
           << "    for (int i = 0; i < " << built_.size()
           << "; ++i) printf(\" %d\", pipelines[i].check(&a) == 0);\n    puts(\"\"); }\n";
    }
    main << "  return 0;\n}\n";
    main.close();
    test::build_and_run_c(dir_, "main.c");
    std::vector<Answer> out;
    std::ifstream in(dir_ / "out.txt");
    for (Answer a; in >> a.selected >> a.workspace;) {
      a.holds.clear();
      for (int holds = 0; a.holds.size() < built_.size() && in >> holds;) a.holds.push_back(holds != 0);
      out.push_back(a);
    }
    return out;
  }

  int of_select(const Problem& p, const std::vector<bool>& holds) const {
    const auto selection = select(table_, p.dims, [&](size_t kernel) -> Result<bool> { return holds[kernel]; });
    return selection ? static_cast<int>(selection->kernel) : -1;
  }

  /// Whether all that the source of the kernel relies on holds for the problem. Nothing: its schedule is illegal there.
  std::optional<bool> relied_on_holds(const ProblemVariants& at, size_t kernel) const {
    const Built& built = built_[kernel];
    const Variant* v = at.find(table_.kernels[kernel].variant);
    bool out = true;
    for (size_t i = 0; v && i < v->stages.size(); ++i) {
      const auto checked = check_schedule(*v, v->stages[i], built.legal[i].schedule, at.scope, false);
      if (!std::holds_alternative<Legal>(checked)) return std::nullopt;
      out &= *serves(*built.emitted.kernels[i].stage, built.legal[i], std::get<Legal>(checked));
    }
    return v ? std::optional(out) : std::nullopt;
  }
  bool has_temporaries(size_t kernel) const { return !built_[kernel].emitted.temporaries.empty(); }
  ProblemVariants variants(const Problem& p) const { return *variants_of(files_, op_, limits(device_), p); }

  Problem problem(const Sizes& sizes) const {
    Problem p;
    p.op = op_.name();
    p.dims = sizes;
    return *op_.complete(p);
  }

 private:
  struct Built {
    ProblemVariants at;
    std::vector<Program> programs;
    std::vector<Launch> launches;
    std::vector<Legal> legal;
    EmittedPipeline emitted;
  };

  void add(const Choice& c) {
    Built& built = built_.emplace_back();
    const auto at = variants_of(files_, op_, limits(device_), problem(c.sizes));
    ASSERT_TRUE(at) << at.error().message;
    built.at = *at;
    const Variant& v = *built.at.find(c.variant);
    built.programs.reserve(v.stages.size());
    built.launches.reserve(v.stages.size());
    built.legal.reserve(v.stages.size());
    built.emitted = {"sm_90a", &v, *temporaries(v, built.at.scope), built.at.scope, {}, ""};
    DispatchKernel kernel{c.variant, table_.shapes.size(), {}};
    for (const Stage& s : v.stages) {
      const auto schedule = default_schedule(v, s, built.at.scope, c.changed);
      ASSERT_TRUE(schedule) << schedule.error().message;
      const auto checked = check_schedule(v, s, *schedule, built.at.scope);
      ASSERT_TRUE(std::holds_alternative<Legal>(checked)) << to_string(*schedule);
      const Legal& legal = built.legal.emplace_back(std::get<Legal>(checked));
      built.programs.push_back({legal.schedule, to_string(*schedule), s.entry, {}});
      built.launches.push_back(*make_launch(s, legal));
      built.emitted.kernels.push_back({&s, &built.programs.back(), &binary_, &built.launches.back(), legal.scope});
      kernel.stages.push_back({s.name, legal.schedule.params, "", {}, 0, 0});
    }
    table_.kernels.push_back(std::move(kernel));
    table_.shapes.push_back({problem(c.sizes), 1e-5, table_.kernels.size() - 1, 1e-5});
  }

  DataFiles files_;
  Device device_ = *load_device(files_, "h200-sxm");
  const Op& op_;
  fs::path dir_;
  Binary binary_;
  std::deque<Built> built_;
  DispatchTable table_;
};

/// Compares the choices, and the conditions in C with those of the search space. The kernels that were selected.
std::set<int> compare(Table& table, const std::vector<Sizes>& all) {
  std::vector<Problem> problems;
  for (const Sizes& sizes : all) problems.push_back(table.problem(sizes));
  const auto answers = table.of_c(problems);
  EXPECT_EQ(answers.size(), problems.size());
  std::set<int> out;
  size_t compared = 0;
  for (size_t i = 0; i < answers.size(); ++i) {
    const auto& [selected, workspace, holds] = answers[i];
    EXPECT_EQ(selected, table.of_select(problems[i], holds)) << to_string(problems[i]);
    if (selected >= 0) {
      EXPECT_EQ(workspace, table.has_temporaries(static_cast<size_t>(selected))) << to_string(problems[i]);
    }
    out.insert(selected);
    const ProblemVariants at = table.variants(problems[i]);
    for (size_t k = 0; k < holds.size(); ++k)
      if (const auto expected = table.relied_on_holds(at, k)) {
        EXPECT_EQ(holds[k], *expected) << to_string(problems[i]) << ", kernel " << k;
        ++compared;
      }
  }
  EXPECT_GT(compared, answers.size());
  return out;
}

ParamValue number(int64_t n) { return n; }

}  // namespace

TEST(Selection, OfGemmIsThatOfTheTable) {
  const std::map<std::string, ParamValue> tile{{"BM", number(64)}, {"BN", number(64)}};
  Table table("gemm", {{{{"M", 16}, {"N", 1024}, {"K", 1024}}, "split_k4"},
                       {{{"M", 64}, {"N", 1024}, {"K", 1024}}, "fused", tile},
                       {{{"M", 1000}, {"N", 1000}, {"K", 1024}}, "fused", tile},
                       {{{"M", 1024}, {"N", 1024}, {"K", 1024}}, "warpgroup"}});
  std::vector<Sizes> sizes;
  // 32 and 1 are as far from the first shape as from another, or from each side; 256 is a tie of the second and last.
  for (const int64_t m : {1, 16, 32, 33, 63, 64, 65, 128, 256, 300, 1000, 1012, 1024, 5000})
    for (const auto& [n, k] : {std::pair{1024, 1024}, {1000, 1024}, {64, 4096}, {1024, 1020}, {99, 77}})
      sizes.push_back({{"M", m}, {"N", n}, {"K", k}});
  std::mt19937 random(7);
  for (int i = 0; i < 60; ++i) {
    Sizes& s = sizes.emplace_back();
    for (const char* name : {"M", "N", "K"}) s[name] = 8 << random() % 8;
    if (i % 3 == 0) s["M"] += random() % 7;
  }
  EXPECT_EQ(compare(table, sizes), (std::set<int>{-1, 0, 1, 2, 3}));
}

TEST(Selection, OfAttentionIsThatOfTheTable) {
  const auto shape = [](int64_t length, int64_t heads) {
    return Sizes{{"L", length}, {"d", 64}, {"batch", 2}, {"heads", heads}, {"kv_heads", 4}};
  };
  Table table("attention", {{shape(512, 4), "fused"}, {shape(777, 8), "fused"}, {shape(2048, 8), "unfused"}});
  std::vector<Sizes> sizes;
  for (const int64_t length : {64, 512, 600, 640, 777, 1000, 1024, 2048, 2049, 4096})
    for (const int64_t heads : {4, 8, 32}) sizes.push_back(shape(length, heads));
  const std::set<int> selected = compare(table, sizes);
  for (const int kernel : {0, 1, 2}) EXPECT_EQ(selected.count(kernel), 1u) << kernel;
}

TEST(Selection, OfRowsIsThatOfTheTable) {
  Table table("rmsnorm", {{{{"rows", 64}, {"cols", 1024}}, "fused"}, {{{"rows", 64}, {"cols", 4096}}, "fused"}});
  std::vector<Sizes> sizes;
  for (const int64_t rows : {1, 64, 1000})
    for (const int64_t cols : {8, 256, 1000, 1024, 2000, 2048, 4095, 4096, 8192})
      sizes.push_back({{"rows", rows}, {"cols", cols}});
  const std::set<int> selected = compare(table, sizes);
  EXPECT_EQ(selected.count(0) + selected.count(1), 2u);
}

}  // namespace roofgen::test::selection_test

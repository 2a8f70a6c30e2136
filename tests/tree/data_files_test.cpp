#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>

#include "base/json_text.h"
#include "generator/generate.h"

namespace roofgen::data_files_test {
namespace {

namespace fs = std::filesystem;

/// A temporary folder for one test.
class DataDir : public testing::Test {
 protected:
  DataDir() : dir_(fs::temp_directory_path() / ("roofgen-data-" + std::to_string(std::random_device{}()))) {
    fs::create_directories(dir_);
  }
  ~DataDir() override { fs::remove_all(dir_); }

  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((dir_ / name).parent_path());
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }
  std::string path() const { return dir_.string(); }

  fs::path dir_;
};

std::string bytes_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(DataFiles, EmbedsEveryFileByteForByte) {
  const fs::path source = ROOFGEN_SOURCE_DIR;
  const DataFiles files;
  size_t count = 0;
  for (const char* root : {"templates", "search_spaces", "roofline/devices", "roofline/work", "roofline/models"}) {
    const fs::path base = std::string_view(root).starts_with("roofline/") ? source / "roofline" : source;
    for (const auto& entry : fs::recursive_directory_iterator(source / root)) {
      const std::string file = entry.path().filename().string();
      if (!entry.is_regular_file() || file[0] == '.' || file[0] == '#' || file.back() == '~') continue;
      if (file.ends_with(".mutants")) continue;  // of the tests
      const std::string name = fs::relative(entry.path(), base).generic_string();
      const auto text = files.read(name);
      ASSERT_TRUE(text) << name;
      EXPECT_EQ(*text, bytes_of(entry.path())) << name;
      ++count;
    }
  }
  EXPECT_EQ(files.list("").size(), count);
}

TEST(DataFiles, ListsSortedNamesWithThePrefix) {
  const std::vector<std::string> names = DataFiles().list("devices/sm_");
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_NE(std::find(names.begin(), names.end(), "devices/sm_90.json"), names.end());
  for (const std::string& name : names) EXPECT_TRUE(name.starts_with("devices/sm_")) << name;
  EXPECT_TRUE(DataFiles().list("devices/no-such").empty());
}

TEST(DataFiles, MissingFileListsTheSearchedFolders) {
  const auto text = DataFiles({"/nonexistent/dir"}).load("devices/nothing.json");
  ASSERT_FALSE(text);
  EXPECT_EQ(text.error().message, "no file 'devices/nothing.json'");
  ASSERT_EQ(text.error().notes.size(), 2u);
  EXPECT_EQ(text.error().notes[0], "looked in /nonexistent/dir");
}

TEST(DataFiles, CommentsBecomeBlanks) {
  EXPECT_EQ(without_comments("{ // one\n\"a // b\": 1,// \"two\n//\n\"c\\\" // d\": 2}//"),
            "{       \n\"a // b\": 1,       \n  \n\"c\\\" // d\": 2}  ");
  EXPECT_EQ(without_comments("1 / 2"), "1 / 2");
  // A string that is never closed ends at its line, as JSON's do.
  EXPECT_EQ(without_comments("\"a\n// b"), "\"a\n    ");
}

TEST_F(DataDir, ComesBeforeTheEmbeddedFiles) {
  write("devices/sm_90.json", "mine");
  write("devices/new.json", "new");
  const DataFiles files({path()});
  EXPECT_EQ(files.read("devices/sm_90.json"), "mine");
  EXPECT_EQ(files.read("devices/new.json"), "new");
  EXPECT_EQ(files.origin("devices/sm_90.json"), path() + "/devices/sm_90.json");
  EXPECT_EQ(files.origin("devices/sm_80.json"), "devices/sm_80.json");
  EXPECT_EQ(files.read("devices/sm_80.json"), DataFiles().read("devices/sm_80.json"));

  auto expected = DataFiles().list("devices/");
  expected.push_back("devices/new.json");
  std::sort(expected.begin(), expected.end());
  EXPECT_EQ(files.list("devices/"), expected);
}

TEST_F(DataDir, FirstDirectoryWins) {
  write("one/devices/a.json", "1");
  write("two/devices/a.json", "2");
  EXPECT_EQ(DataFiles({path() + "/one", path() + "/two"}).read("devices/a.json"), "1");
  EXPECT_EQ(DataFiles({path() + "/two", path() + "/one"}).read("devices/a.json"), "2");
}

TEST_F(DataDir, NamesCannotLeaveTheDirectory) {
  write("secret", "s");
  write("data/devices/a.json", "a");
  const DataFiles files({path() + "/data"});
  ASSERT_TRUE(files.read("devices/a.json"));
  for (const std::string name : {"../secret", "devices/../../secret", "/etc/hostname", "devices/./a.json",
                                 "devices//a.json", "devices\\a.json", "", ".", "..", "devices/"})
    EXPECT_FALSE(files.read(name)) << name;
  EXPECT_FALSE(files.read(std::string("devices/a.json\0", 15)));
  EXPECT_FALSE(files.read("devices/" + std::string(1000, 'a')));
}

TEST_F(DataDir, LargeAndSpecialFilesAreRefused) {
  write("devices/big.json", std::string((4u << 20) + 1, ' '));
  write("devices/limit.json", std::string(4u << 20, ' '));
  fs::create_directories(dir_ / "devices/folder.json");
  ASSERT_EQ(mkfifo((dir_ / "devices/fifo.json").c_str(), 0600), 0);
  const DataFiles files({path()});
  EXPECT_TRUE(files.read("devices/limit.json"));
  for (const char* name : {"devices/big.json", "devices/folder.json", "devices/fifo.json"}) {
    const auto text = files.load(name);
    ASSERT_FALSE(text) << name;
    EXPECT_EQ(text.error().where.file, path() + "/" + name);
  }
}

TEST_F(DataDir, OnlyTheShippedFoldersAreListed) {
  write("other/x.json", "");
  write("devices/.hidden.json", "");
  write("devices/saved.json~", "");
  write("templates/a/b/c/deep.cuh", "");
  EXPECT_TRUE(DataFiles({path()}).list("other/").empty());
  EXPECT_EQ(DataFiles({path()}).list("devices/"), DataFiles().list("devices/"));
  EXPECT_EQ(DataFiles({path()}).list("templates/a/b"), std::vector<std::string>{"templates/a/b/c/deep.cuh"});
}

}  // namespace
}  // namespace roofgen::data_files_test

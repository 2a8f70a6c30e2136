// A compiler whose PTX repeats the source.
#pragma once

#include <fmt/format.h>

#include <memory>
#include <string>

#include "tuner/bundle/bundle.h"

namespace roofgen::test {

/// What a compiler makes of a source.
struct Release {
  std::string version = "NVRTC 13.0", ptx = "ptx", cubin = "cubin";
  bool lines_change_ptx = false;
};

class FakeCompiler : public Compiler {
 public:
  FakeCompiler(Release release, std::string arch, bool line_info)
      : release_(std::move(release)), arch_(std::move(arch)), line_info_(line_info) {}
  std::string description() const override { return release_.version + " at /somewhere"; }
  std::string digest(const Program&) const override {
    return std::string(62, 'a') + release_.version.back() + (line_info_ ? 'a' : 'b');
  }
  void compile_all(const std::vector<const Program*>& programs,
                   const std::function<bool(CompileOutcome)>& done) override {
    for (size_t i = 0; i < programs.size(); ++i) {
      Binary b;
      b.digest = digest(*programs[i]);
      b.arch = programs[i]->target.empty() ? arch_ : programs[i]->target;
      b.entry = programs[i]->entry;
      b.ptx = fmt::format(".version 9.0\n{}{}\n{}", release_.ptx, line_info_ && release_.lines_change_ptx ? "L" : "",
                          programs[i]->source);
      b.cubin = release_.cubin + (line_info_ ? " with lines" : "");
      done({i, b});
    }
  }

 private:
  Release release_;
  std::string arch_;
  bool line_info_;
};

inline MakeCompiler fake_compiler(const Release& release) {
  return [release](const std::string& arch, bool line_info) -> Result<std::unique_ptr<Compiler>> {
    return std::unique_ptr<Compiler>(new FakeCompiler(release, arch, line_info));
  };
}

}  // namespace roofgen::test

// Prepares .cu files that contain main() and launches for NVRTC, which compiles device code only: declarations that do
// not compile and are neither __device__ nor __global__ are blanked out as a whole, so that line numbers stay the same.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "check/declarations.h"
#include "roofgen/result.h"
#include "runtime/compile/log.h"

namespace roofgen::check {

/// A declaration or #include removed from the source.
struct LeftOut {
  std::string what;  ///< "main", "#include <iostream>"
  Where where;
  std::string why;  ///< the compiler's message; empty for __host__ code
};

class Source {
 public:
  /// `file`: the user's name for it. `directories`: the search path for the user's headers, the file's own first.
  Source(std::string file, std::string text, std::vector<std::string> directories);

  /// The source for the compiler, with #line directives for the user's file names.
  std::string text() const;
  /// Removes host code that the errors refer to. False: nothing could be removed.
  bool leave_out(std::vector<Diagnostic> errors);
  const std::vector<LeftOut>& left_out() const { return left_out_; }
  bool has_host_functions() const;
  /// Names of kernel templates.
  std::vector<std::string> kernel_templates() const;
  /// The user's name for a file of the line table. NVRTC runs in the root directory and makes relative names absolute.
  std::string own_name(const std::string& file) const;
  /// The #include lines of large toolkit headers that may move to the top of the source, also those of the user's
  /// headers; "" without large ones. Such a line is not below a conditional, and no macro defined before it is named in
  /// the header.
  std::string large_includes() const;
  /// The text of the user's headers that the source can include; none if that depends on macros.
  std::optional<std::string> headers_text() const;
  /// True for the file and those of the user's headers that are part of the source.
  bool is_own(const std::string& file) const;
  /// Replaces #include lines of the user's headers by the headers. False: there are none, or it was done before.
  bool inline_headers();

 private:
  struct Header;
  class Inlining;
  using EachDirective = std::function<void(const Directive&, size_t depth)>;
  bool each_directive(const Header& in, const std::string& file, size_t depth, std::map<std::string, Header>& seen,
                      const EachDirective& act) const;
  bool inline_all_copies();
  Inlining inline_into(const std::string& text, bool all_copies);
  std::string find_header(const Directive& include, const std::string& includer) const;
  bool compiler_has(const std::string& header) const;
  bool leave_out_includes(const std::string& missing, bool libraries);
  bool leave_out_declaration(const Diagnostic& error);
  bool leave_out_declaration_at(size_t at, LeftOut& out);
  void blank(size_t begin, size_t end);
  /// Positions of an error in text_, one per copy of its file; none if it is outside the user's files.
  std::vector<size_t> positions_of(const Diagnostic& error) const;
  Where where(size_t position) const;

  std::vector<std::string> directories_;
  std::string text_;
  std::vector<Where> origin_;  ///< of each line of text_
  std::vector<size_t> line_begin_;
  Declarations declarations_;
  std::vector<LeftOut> left_out_;
  bool inlined_ = false, without_libraries_ = false;
  bool without_copy_ = false;   ///< an #include was left to the compiler, because a copy precedes it
  std::string before_;          ///< text_ before inlining
  size_t left_out_before_ = 0;  ///< size of left_out_ then
};

}  // namespace roofgen::check

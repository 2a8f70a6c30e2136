// A .cu file as people have it: kernels beside main() and launches. NVRTC takes device code alone. What it cannot
// compile and is neither __device__ nor __global__ is left out, by whole declarations, and the lines keep their
// numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "check/declarations.h"
#include "roofgen/result.h"
#include "runtime/compile/log.h"

namespace roofgen::check {

/// Something that the compiler does not get to see.
struct LeftOut {
  std::string what;  ///< "main", "#include <iostream>"
  Where where;
  std::string why;  ///< the compiler's words; empty when it is marked __host__
};

class Source {
 public:
  /// `file` is how the user names it; `directories` are those in which the user's own headers are looked for, the
  /// file's own first.
  Source(std::string file, std::string text, std::vector<std::string> directories);

  /// For the compiler, with #line directives for the user's names.
  std::string text() const;
  /// Leaves out what the errors are about, where it is no device code. False: nothing more can be left out.
  bool leave_out(const std::vector<Diagnostic>& errors);
  const std::vector<LeftOut>& left_out() const { return left_out_; }
  /// Names of templates of kernels.
  std::vector<std::string> kernel_templates() const;
  /// The user's name for a file as the line table has it; the compiler runs in the root directory and makes names
  /// absolute from there.
  std::string own_name(const std::string& file) const;
  /// Puts the user's own headers in the place of their #include lines. False: there are none, or it was done before.
  bool inline_headers();

 private:
  struct Header;
  class Inlining;
  bool inline_all_copies();
  Inlining inline_into(const std::string& text, bool all_copies);
  std::string find_header(const Directive& include, const std::string& includer) const;
  bool compiler_has(const std::string& header) const;
  bool leave_out_includes(const std::string& missing, bool libraries);
  bool leave_out_declaration(const Diagnostic& error);
  bool leave_out_declaration_at(size_t at, LeftOut& out);
  void blank(size_t begin, size_t end);
  /// Where in text_ an error is, in each copy of its file; none when it is in none of the user's lines.
  std::vector<size_t> positions_of(const Diagnostic& error) const;
  Where where(size_t position) const;

  std::vector<std::string> directories_;
  std::string text_;
  std::vector<Where> origin_;  ///< of each line of text_
  std::vector<size_t> line_begin_;
  Declarations declarations_;
  std::vector<LeftOut> left_out_;
  bool inlined_ = false, without_libraries_ = false;
  bool without_copy_ = false;   ///< an #include was left to the compiler, as a copy stands before it
  std::string before_;          ///< text_ without headers
  size_t left_out_before_ = 0;  ///< of it
};

}  // namespace roofgen::check

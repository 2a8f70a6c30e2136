// Errors that point into a text. Every located error of the expression language and of the
// template engine is made by located_error(), so they all look alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "roofgen/result.h"

namespace roofgen {

/// A text that errors point into: a whole file, or an expression that was cut from one.
struct Source {
  std::string text;
  Where origin;                   ///< of text[0]; line 0 when the place in the file is not known
  std::vector<Where> lines = {};  ///< where each line begins, of a text put together from several places
};

/// A range of bytes of a Source, end excluded.
struct Span {
  uint32_t begin = 0, end = 0;
};

/// Line and column (in characters) of a byte of the text.
Where locate(const Source& source, uint32_t offset);

/// `message` at `at`, with an excerpt of the line and a caret below it as notes.
Error located_error(const Source& source, Span at, std::string message);

/// Adds a line such as "included from a.jinja:3:1"; a runaway recursion keeps only the innermost ones.
void add_note(Error& error, std::string note);

/// Carries an Error up through parser and evaluator. It never leaves generator/expr and
/// generator/jinja: their public functions turn it into a Result.
struct Failure {
  Error error;
};

[[noreturn]] void fail_at(const Source& source, Span at, std::string message);

}  // namespace roofgen

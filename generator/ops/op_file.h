// search_spaces/ops/<op>.json: what is said of an op once (docs/internals/ops.md). The command line, reports, bundles
// and the library read it. The reference and the inputs of an op are its class (op.h), or formulas of this file
// (formula_op.h).
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generator/expr/expr.h"
#include "generator/space/data_files.h"
#include "roofgen/result.h"

namespace roofgen {

class JsonFile;

/// A name of a problem that the command line sets. Without `help` another op explains it.
struct OpFlag {
  std::string name;  ///< in the problem, "kv_heads"
  std::string help;
  std::vector<std::string> formats;  ///< of a format: the only ones; empty: any
};
/// Where a problem keeps it: Problem::dims, flags, reals, texts, dtypes.
enum class OpFlagKind { kSize, kSwitch, kNumber, kText, kFormat };
inline constexpr std::array kOpFlagKinds{OpFlagKind::kSize, OpFlagKind::kSwitch, OpFlagKind::kNumber, OpFlagKind::kText,
                                         OpFlagKind::kFormat};

/// What reports call an op and its parts.
struct OpWords {
  std::string title;                          ///< "attention forward"
  std::string reduced = "a reduced problem";  ///< on which every CTA runs
  std::string parts = "whole tiles";          ///< of which the counts of all are made
  std::string flops = "MMA FLOPs only";       ///< the convention of its FLOPs
  std::vector<std::string> dims = {};         ///< in the order of a problem's line; others follow
};

struct OpFile {
  std::string op;
  std::string group;  ///< heading of its flags in --help; empty: of flags that several groups share
  std::array<std::vector<OpFlag>, kOpFlagKinds.size()> flags;
  bool formulas = false;           ///< its outputs have formulas: it needs no class (formula_op.h)
  bool args = false;               ///< its expressions read tensors of --arg
  std::vector<std::string> sizes;  ///< that may differ between calls of a kernel, in the order of its C function
  OpWords words;
  /// A size, and the FLOPs for each exponential at that size: the special-function units limit the FLOPs then.
  std::optional<std::pair<std::string, expr::Expr>> flops_per_exp;
  std::shared_ptr<const JsonFile> json;  ///< the whole file, for other readers

  const std::vector<OpFlag>& of(OpFlagKind kind) const { return flags[static_cast<size_t>(kind)]; }

  static std::string path(const std::string& op) { return "search_spaces/ops/" + op + ".json"; }
  static Result<OpFile> load(const DataFiles& files, const std::string& op);
  static Result<OpFile> parse(std::string text, std::string file);
  /// All ops, the program's first.
  static Result<std::vector<OpFile>> load_all(const DataFiles& files);
};

/// With the line and a caret, unless the error has them.
Error with_excerpt(const JsonFile& file, Error error);

/// Of an op without a file its name and the usual words.
Result<OpWords> op_words(const DataFiles& files, const std::string& op);

}  // namespace roofgen

// The parameters of a bundle's launch function: the union of its kernels' parameters. The op's file says which sizes
// may differ between calls, and how its tensors lie in memory (docs/internals/ops.md).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "generator/expr/c_code.h"
#include "generator/generate.h"
#include "roofgen/pipeline.h"
#include "roofgen/result.h"

namespace roofgen {

using expr::has_word;

bool is_c_keyword(const std::string& name);  ///< of C or C++

struct Parameter {
  enum class Kind { kTensor, kReal, kSize, kStride };
  Kind kind;
  std::string name;  ///< in C
  std::string key;   ///< the buffer, or the name in the problem's scope
};

class Interface {
 public:
  /// How a tensor lies in memory, in C. `shape` may be empty: unknown, because index data decides it.
  struct Layout {
    std::vector<std::string> shape, strides;  ///< elements; as many strides as sides, or no sides
    bool aligned_strides = false;             ///< rows begin at multiples of 16 bytes
  };
  /// What a call must satisfy besides the conditions of its kernels; `code` is C.
  struct Rule {
    std::string code, text;
    bool of_launches = false;  ///< it reads a number that a launch has, and calls about sizes have not
  };
  /// Bounds of a call under which no product of sizes overflows 64 bits.
  static constexpr int64_t kMostSize = INT32_MAX, kMostStride = int64_t{1} << 40;

  /// `carried`: names in the problem's scope that kernels take as arguments; these may vary, too.
  static Result<Interface> load(const DataFiles& files, const Problem& problem, expr::Map scope,
                                const std::set<std::string>& carried);

  /// The C name of a parameter, which is added at its first use.
  std::string add(Parameter::Kind kind, const std::string& key);
  bool has_tensor(const std::string& buffer) const;
  /// Of a tensor that a formula reads; null: it is none.
  const std::vector<std::string>* indices_of(const std::string& buffer) const {
    const auto found = indices_.find(buffer);
    return found == indices_.end() ? nullptr : &found->second;
  }
  /// Whether a local variable may have the name.
  bool is_free(const std::string& name) const;
  /// The numbers among the parameters that are words of `code`.
  std::vector<std::string> variables_in(const std::string& code) const;
  /// The C name of a size or stride that may vary, of a number of the user; "" for a constant.
  std::string variable(const std::string& name);
  bool varies(const std::string& name) const { return varying_.count(key_of(name)) != 0; }
  Result<std::string> translate(const expr::Expr& e);

  /// Adds the sizes in which the shapes differ. Exit::kUsage for one that is a part of the kernels.
  Result<void> add_sizes(const std::vector<std::map<std::string, int64_t>>& shapes);

  Result<Layout> layout(const Buffer& buffer);
  /// The same as numbers, for the sizes and strides of which `scope` is made.
  struct Extent {
    std::vector<int64_t> shape, strides;
    bool aligned_strides = false;
  };
  Result<Extent> extent(const Buffer& buffer, const expr::Map& scope) const;
  /// Of a tensor whose shape no call knows, too: as many elements as the buffer has. `names`: of the strides that are
  /// parameters, else "".
  struct Placed {
    std::vector<int64_t> shape, strides;
    std::vector<std::string> names;
  };
  Result<Placed> placed(const Buffer& buffer, expr::Map scope) const;
  Result<std::vector<Rule>> rules();
  /// Whether a rule keeps a size below a product of others.
  bool is_bounded(const std::string& key) const { return bounded_.count(key) != 0; }
  /// Whether no output has an element without this size. A call with 0 of any of these does nothing.
  bool may_be_empty(const std::string& size) const { return empty_.count(size) != 0; }
  bool is_empty(const expr::Map& scope) const;

  /// The problem's scope in a call with these numbers, by the key of their parameter. What is not given is as tuned,
  /// or follows from what is given. Exit::kUsage for sizes and strides that no kernel takes.
  Result<expr::Map> scope_of(const expr::Map& given) const;
  std::string note(const std::string& key) const;  ///< about a size or number; may be empty

  /// In the order of the C function: inputs, updated tensors, outputs, numbers, sizes, strides.
  std::vector<Parameter> parameters(const std::vector<Buffer>& buffers) const;

 private:
  struct Tensor {
    std::vector<expr::Expr> shape, strides;
    bool aligned_strides = false;
    std::vector<expr::Expr> whole_shape, whole_strides;  ///< where index data decides the shape
  };
  Result<void> read(const DataFiles& files);
  const std::string& key_of(const std::string& name) const;
  Result<void> check(const expr::Map& scope) const;

  const Problem* problem_ = nullptr;
  expr::Map scope_;
  std::vector<std::string> sizes_, stride_order_;                    ///< of the file, in order
  std::set<std::string> fixed_;                                      ///< parts of the kernels
  std::map<std::string, std::string> notes_, axis_sizes_, aliases_;  ///< aliases: of sizes, in the scope
  std::set<std::string> empty_, bounded_;
  std::vector<std::pair<std::string, expr::Expr>> presets_;  ///< of sizes and strides that are not given, in order
  std::map<std::string, Tensor> tensors_;
  std::vector<expr::Expr> rules_;
  std::map<std::string, std::vector<std::string>> indices_;  ///< of the tensors of formulas
  std::set<std::string> varying_, taken_;
  std::vector<Parameter> parameters_;
};

/// The sizes that the kernels of an op take at run time. Any other size (the head dimension, a page) is compiled in,
/// and every size of an op whose interface is not described.
Result<std::vector<std::string>> run_time_sizes(const DataFiles& files, const std::string& op);
/// A condition as what must hold: "L must be a multiple of 64".
std::string requirement(const std::string& condition);

}  // namespace roofgen

// A block of a Llama model by kernels that are tuned, compiled and launched in this process, fused and unfused:
//   llama_block [TOKENS]
//
//   h = x + out(attention(rotary(qkv(rmsnorm(x)))))
//   y = h + down(swiglu(gate_up(rmsnorm(h))))
//
// Fused, each line of `block` is one kernel: the GEMMs add the residual and apply the gate to their sums in registers,
// and attention rotates Q and K as it loads them. Unfused, each of these steps is a kernel of its own. The results of
// all lines are compared with a reference in double precision, and with those of the other form.
#include <cstdio>
#include <roofgen/roofgen.hpp>
#include <string>

#include "reference.h"

namespace {

using roofgen::Argument;
using roofgen::Request;

constexpr size_t kWidth = 256, kHidden = 512;
constexpr Heads kHeads{4, 2, 64, 500000, 0.125};
constexpr size_t kHeadColumns = kHeads.heads * kHeads.d;
constexpr double kEps = 1e-5;

/// x and the weights; a row of a matrix has the factors of a column of the product.
struct Inputs {
  Tensor x, norm1, qkv, out, norm2, gate_up, down;
  Inputs(const Driver& cu, size_t tokens)
      : x(cu, tokens * kWidth, 1),
        norm1(cu, kWidth, 2),
        qkv(cu, kHeads.columns() * kWidth, 3, 0.125),
        out(cu, kWidth * kHeadColumns, 4, 0.125),
        norm2(cu, kWidth, 5),
        gate_up(cu, 2 * kHidden * kWidth, 6, 0.125),  // rows of gate and up in turn
        down(cu, kWidth * kHidden, 7, 0.125) {}
};

struct Cost {
  int launches = 0;
  double time_us = 0;
  unsigned long long workspace_bytes = 0;  ///< temporaries between the kernels of a line
};

/// A line of the block.
struct Stage {
  const char* name;
  Request request;
  std::vector<Argument> arguments;
  Tensor* output;
  Cost cost = {};
  bool measured = false;  ///< the time, by the search
};

struct Form {
  bool fused;
  Tensor normed1, qkv, attended, h, normed2, hidden, y;
  std::vector<Stage> stages = {};
  Form(const Driver& cu, size_t tokens, bool is_fused)
      : fused(is_fused),
        normed1(cu, tokens * kWidth, 10),
        qkv(cu, tokens * kHeads.columns(), 11),
        attended(cu, tokens * kHeadColumns, 12),
        h(cu, tokens * kWidth, 13),
        normed2(cu, tokens * kWidth, 14),
        hidden(cu, tokens * kHidden, 15),
        y(cu, tokens * kWidth, 16) {}
};

Argument at(const char* name, const Tensor& tensor, size_t element = 0) {
  return Argument::at(name, tensor.at + 2 * element);
}
Request rmsnorm(size_t tokens) {
  return Request("rmsnorm").set("rows", tokens).set("cols", kWidth).set("eps", kEps).set("evals", 2);
}
Request gemm(size_t M, size_t N, size_t K) {
  return Request("gemm").set("M", M).set("N", N).set("K", K).set("evals", 2);
}

std::vector<Stage> block(const Inputs& in, size_t tokens, Form& f) {
  // Without "variant" the search takes the fastest of both.
  const char* variant = f.fused ? "fused" : "unfused";
  const Request attention = Request("attention")
                                .set("batch", 1)
                                .set("L", tokens)
                                .set("heads", kHeads.heads)
                                .set("kv-heads", kHeads.kv_heads)
                                .set("d", kHeads.d)
                                .set("causal", true)
                                .set("rotary", "half")
                                .set("rotary-base", kHeads.rotary_base)
                                .set("evals", 2)
                                .set("variant", variant);
  const Request out = gemm(tokens, kWidth, kHeadColumns).set("epilogue", "acc + residual[m,n]").set("variant", variant);
  const Request swiglu = gemm(tokens, 2 * kHidden, kWidth).set("gated", "silu").set("variant", variant);
  const Request down = gemm(tokens, kWidth, kHidden).set("epilogue", "acc + residual[m,n]").set("variant", variant);
  // Q, K and V are columns of one matrix: strides are arguments of a launch.
  const std::vector<Argument> of_attention = {at("Q", f.qkv),
                                              at("K", f.qkv, kHeadColumns),
                                              at("V", f.qkv, kHeadColumns + kHeads.kv_heads * kHeads.d),
                                              at("O", f.attended),
                                              {"q_row_stride", kHeads.columns()},
                                              {"k_row_stride", kHeads.columns()},
                                              {"v_row_stride", kHeads.columns()}};
  return {
      {"rmsnorm", rmsnorm(tokens), {at("x", in.x), at("weight", in.norm1), at("y", f.normed1)}, &f.normed1},
      {"qkv", gemm(tokens, kHeads.columns(), kWidth), {at("A", f.normed1), at("B", in.qkv), at("C", f.qkv)}, &f.qkv},
      {"attention", attention, of_attention, &f.attended},
      {"out + x", out, {at("A", f.attended), at("B", in.out), at("residual", in.x), at("C", f.h)}, &f.h},
      {"rmsnorm", rmsnorm(tokens), {at("x", f.h), at("weight", in.norm2), at("y", f.normed2)}, &f.normed2},
      {"swiglu", swiglu, {at("A", f.normed2), at("B", in.gate_up), at("C", f.hidden)}, &f.hidden},
      {"down + h", down, {at("A", f.hidden), at("B", in.down), at("residual", f.h), at("C", f.y)}, &f.y},
  };
}

/// The results of the same lines.
std::vector<Field> reference(const Inputs& in, bool fused) {
  const auto temporary = [&](Field f) { return fused ? f : stored(std::move(f)); };
  const Field x(in.x, kWidth);
  std::vector<Field> out;
  out.push_back(rmsnorm(x, Field(in.norm1, kWidth), kEps));
  out.push_back(product(rounded(out.back()), Field(in.qkv, kWidth)));
  out.push_back(attention(rounded(out.back()), kHeads, !fused));
  out.push_back(sum(temporary(product(rounded(out.back()), Field(in.out, kHeadColumns))), x));
  const Field h = rounded(out.back());
  out.push_back(rmsnorm(h, Field(in.norm2, kWidth), kEps));
  out.push_back(swiglu(temporary(product(rounded(out.back()), Field(in.gate_up, kWidth)))));
  out.push_back(sum(temporary(product(rounded(out.back()), Field(in.down, kHidden))), h));
  return out;
}

/// A number or bool in the text of a pipeline.
std::string member(const std::string& text, const std::string& name) {
  const size_t begin = text.find("\"" + name + "\":") + name.size() + 3;
  return text.substr(begin, text.find_first_of(",}", begin) - begin);
}

/// Makes the kernels of all stages, launches them one behind the other, and fetches the results.
roofgen::Result<void> run(const Driver& cu, roofgen::Session& session, Form& form) {
  std::vector<roofgen::Pipeline> pipelines;
  unsigned long long workspace = 0;
  uint64_t most = 0;
  for (Stage& stage : form.stages) {
    auto made = roofgen::jit(session, stage.request);
    if (!made) return made.error();
    const auto bytes = made->workspace_bytes(stage.arguments);
    if (!bytes) return bytes.error();
    stage.cost.workspace_bytes = *bytes;
    most = std::max(most, *bytes);
    const std::string text = made->text();
    stage.cost.time_us = std::strtod(member(text, "time_us").c_str(), nullptr);
    stage.measured = member(text, "measured") == "true";
    for (size_t kernel = text.find("\"schedule\""); kernel != text.npos; kernel = text.find("\"schedule\"", kernel + 1))
      ++stage.cost.launches;
    pipelines.push_back(std::move(*made));
  }
  if (most > 0 && (workspace = cu.allocate(most)) == 0) return roofgen::Error{1, "no device memory"};
  for (size_t i = 0; i < pipelines.size(); ++i)
    if (auto done = pipelines[i].launch(nullptr, form.stages[i].arguments, workspace, most); !done) return done;
  for (const Stage& stage : form.stages)
    if (!stage.output->fetch(cu)) return roofgen::Error{1, "a kernel failed"};
  return {};
}

/// The largest error in tolerances.
double error_of(const Tensor& got, const Field& expected) {
  double worst = 0;
  for (size_t i = 0; i < got.values.size(); ++i) {
    const double error = std::fabs(got.values[i] - expected.value[i]) / tolerance(expected, i);
    if (!(error <= worst)) worst = error;  // also NaN
  }
  return worst;
}

/// The same of two results, each with a rounding and errors of its own.
double difference(const Tensor& a, const Field& of_a, const Tensor& b, const Field& of_b) {
  double worst = 0;
  for (size_t i = 0; i < a.values.size(); ++i) {
    Field both(1, 1);
    both.value[0] = of_a.value[i];
    both.variance[0] = of_a.variance[i] + of_b.variance[i];
    const double error = std::fabs(a.values[i] - b.values[i]) / (tolerance(both, 0) + ulp(a.values[i]) / 2);
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

int fail(const roofgen::Error& error) {
  std::fprintf(stderr, "llama_block: %s\n", error.message.c_str());
  return error.status;
}

}  // namespace

int main(int argc, char** argv) {
  const size_t tokens = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 64;
  if (tokens == 0 || tokens > 4096)
    return std::fprintf(stderr, "llama_block: %s: a number of tokens from 1 to 4096 was expected\n", argv[1]), 2;
  const Driver cu;
  if (!cu.begin()) return std::fprintf(stderr, "llama_block: no CUDA driver, or no GPU\n"), ROOFGEN_UNAVAILABLE;
  auto session = roofgen::Session::open();
  if (!session) return fail(session.error());
  session->on_warning([](const char* line) { std::fprintf(stderr, "llama_block: warning: %s\n", line); });

  const Inputs in(cu, tokens);
  Form fused(cu, tokens, true), unfused(cu, tokens, false);
  for (Form* form : {&fused, &unfused}) {
    form->stages = block(in, tokens, *form);
    if (const auto done = run(cu, *session, *form); !done) return fail(done.error());
  }
  const std::vector<Field> of_fused = reference(in, true), of_unfused = reference(in, false);

  std::printf("              launches       time [us], %-8s  temporaries [B]    largest error / tolerance\n",
              fused.stages[0].measured ? "measured" : "modelled");
  std::printf("            fused unfused     fused  unfused     fused  unfused   fused  unfused  each other\n");
  const auto line = [](const char* name, const Cost& a, const Cost& b) {
    std::printf("%-10s  %5d %7d  %8.1f %8.1f  %8llu %8llu", name, a.launches, b.launches, a.time_us, b.time_us,
                a.workspace_bytes, b.workspace_bytes);
  };
  const auto add = [](Cost& total, const Cost& c) {
    total.launches += c.launches;
    total.time_us += c.time_us;
    total.workspace_bytes += c.workspace_bytes;
  };
  Cost of_all_fused, of_all_unfused;
  unsigned long long between = 0;
  bool right = true;
  for (size_t i = 0; i < fused.stages.size(); ++i) {
    const Stage &a = fused.stages[i], &b = unfused.stages[i];
    const double errors[] = {error_of(*a.output, of_fused[i]), error_of(*b.output, of_unfused[i]),
                             difference(*a.output, of_fused[i], *b.output, of_unfused[i])};
    for (const double e : errors) right &= e <= 1;
    line(a.name, a.cost, b.cost);
    std::printf("  %6.2f %8.2f  %10.2f\n", errors[0], errors[1], errors[2]);
    add(of_all_fused, a.cost);
    add(of_all_unfused, b.cost);
    if (a.output != &fused.y) between += 2 * a.output->values.size();
  }
  line("all", of_all_fused, of_all_unfused);
  std::printf("\nand the results of all lines but the last: %llu bytes\n", between);
  if (!right) std::fprintf(stderr, "llama_block: an error is larger than its tolerance\n");
  return right ? 0 : 1;
}

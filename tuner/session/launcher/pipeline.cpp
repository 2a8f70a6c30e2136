#include "tuner/session/launcher/pipeline.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "base/json.h"
#include "base/suggest.h"
#include "generator/launch_checks.h"
#include "generator/launch_code.h"
#include "runtime/cuda/launch.h"

namespace roofgen {
namespace {

constexpr uint64_t kWorkspaceAlignment = 256;

uint64_t bits_of(double value) {
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
double real_of(uint64_t bits) {
  double value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

Error refused(std::string message) { return {Exit::kUsage, std::move(message)}; }

/// How checks number a tensor and its strides: `index` among the tensors of a call; `side` 0: the tensor itself, else
/// one more than the dimension of a stride. 0 is the workspace.
constexpr int kNumbersOfTensor = 8;
int number_of(size_t index, size_t side) { return static_cast<int>(1 + index * kNumbersOfTensor + side); }

const char* kind_text(Parameter::Kind kind) {
  static constexpr const char* kTexts[] = {"tensor", "real", "size", "stride"};
  return kTexts[static_cast<int>(kind)];
}

}  // namespace

/// The pipelines whose launches are captured, so that the end of the program loses no counts.
class Pipeline::Live {
 public:
  /// Never destroyed: static pipelines of the program may outlive other static objects.
  static Live& all() {
    static Live* const live = [] {
      std::atexit([] { all().capture_launches(); });
      return new Live;
    }();
    return *live;
  }
  void add(Pipeline* pipeline) {
    const std::lock_guard lock(mutex_);
    pipelines_.insert(pipeline);
  }
  void remove(Pipeline* pipeline) {
    const std::lock_guard lock(mutex_);
    pipelines_.erase(pipeline);
  }

 private:
  void capture_launches() {
    const std::lock_guard lock(mutex_);
    for (Pipeline* pipeline : pipelines_) pipeline->capture_launches();
  }
  std::mutex mutex_;
  std::set<Pipeline*> pipelines_;
};

Result<std::unique_ptr<Pipeline>> Pipeline::load(std::shared_ptr<const cuda::Driver> driver, Winner winner) {
  std::unique_ptr<Pipeline> out(new Pipeline(std::move(driver)));
  out->winner_ = std::move(winner);
  ROOFGEN_CHECK(out->describe());
  ROOFGEN_CHECK(out->load_modules());
  if (!out->capture_file_.empty()) Live::all().add(out.get());
  return out;
}

/// The parameters are those of a bundle of the same kernels (docs/use/emit.md).
Result<void> Pipeline::describe() {
  const Problem& problem = winner_.tuned.problem;
  buffers_ = winner_.op->buffers(problem);
  EmitRequest request;
  request.files = winner_.files.get();
  request.problem = &problem;
  request.buffers = buffers_;
  ROOFGEN_TRY(std::vector<Buffer> own, temporaries(*winner_.variant, winner_.tuned.scope));
  EmittedPipeline pipeline{winner_.device.arch, winner_.variant, std::move(own), winner_.tuned.scope, {}, ""};
  for (size_t i = 0; i < winner_.kernels.size(); ++i) {
    const TunedKernel& k = winner_.kernels[i];
    pipeline.kernels.push_back({&winner_.variant->stages[i], &k.program, &k.binary, &k.launch, winner_.legal[i].scope});
  }
  request.pipelines.push_back(pipeline);
  ROOFGEN_TRY(interface_, Interface::load(*winner_.files, problem, winner_.tuned.scope, carried_names(request)));
  Json conditions = Json::array(), kernels = Json::array();
  for (size_t i = 0; i < pipeline.kernels.size(); ++i) {
    const EmittedKernel& k = pipeline.kernels[i];
    ROOFGEN_TRY(LaunchCode code, launch_code(*interface_, request, pipeline, k));
    for (const LaunchCode::Condition& c : code.conditions) conditions.push_back(c.code);
    conditions_.push_back(std::move(code.conditions));
    kernels.push_back({{"name", k.stage->name},
                       {"schedule", to_string(k.program->schedule)},
                       {"arch", k.binary->arch},
                       {"registers", k.binary->registers},
                       {"digest", k.binary->digest}});
  }
  for (const Variant::Temporary& t : winner_.variant->temporaries) ROOFGEN_CHECK(bytes_code(*interface_, pipeline, t));
  std::map<std::string, Interface::Layout> layouts;
  for (const Buffer& b : buffers_)
    if (interface_->has_tensor(b.name)) {
      ROOFGEN_TRY(layouts[b.name], interface_->layout(b));
    }
  ROOFGEN_CHECK(interface_->rules());
  parameters_ = interface_->parameters(buffers_);

  Json parameters = Json::array();
  for (const Parameter& p : parameters_) {
    Json one{{"name", p.key}, {"kind", kind_text(p.kind)}};
    std::optional<uint64_t> preset;
    if (p.kind == Parameter::Kind::kTensor) {
      const Buffer& b = *std::ranges::find(buffers_, p.key, &Buffer::name);
      ROOFGEN_TRY(const Interface::Extent extent, interface_->extent(b, winner_.tuned.scope));
      one["dtype"] = to_string(b.dtype);
      one["role"] = b.role == Buffer::Role::kInput ? "input" : b.role == Buffer::Role::kOutput ? "output" : "updated";
      one["shape"] = extent.shape;
      one["strides"] = extent.strides;
      one["formulas"] = {{"shape", layouts[b.name].shape}, {"strides", layouts[b.name].strides}};
    } else if (p.kind == Parameter::Kind::kReal) {
      one["default"] = problem.reals.at(p.key);
      preset = bits_of(problem.reals.at(p.key));
    } else {
      const auto size = problem.dims.find(p.key);
      const int64_t* in_scope =
          winner_.tuned.scope.count(p.key) ? winner_.tuned.scope.at(p.key).as<int64_t>() : nullptr;
      if (size == problem.dims.end() && !in_scope)
        return Error{Exit::kFailed, fmt::format("the parameter {} has no value", p.key)};
      const int64_t value = size == problem.dims.end() ? *in_scope : size->second;
      one["default"] = value;
    }
    defaults_.push_back(preset);
    parameters.push_back(std::move(one));
  }
  description_ = json_line({{"schema", "roofgen.pipeline.1"},
                            {"problem", to_string(problem)},
                            {"device", winner_.device.name},
                            {"variant", winner_.variant->name},
                            {"time_us", winner_.seconds * 1e6},
                            {"measured", winner_.measured},
                            {"kernels", kernels},
                            {"parameters", parameters},
                            {"requires", conditions}});
  return {};
}

Result<void> Pipeline::load_modules() {
  const cuda::Driver& cu = *driver_;
  ROOFGEN_CHECK(cu.check(cu.current_context(&context_), "asking for the current context"));
  for (const TunedKernel& k : winner_.kernels) {
    const Launch& launch = k.launch;
    const bool attributes = launch.overlap || launch.cluster.count() > 1;
    if (attributes) ROOFGEN_CHECK(cu.have(cu.launch_ex, "clusters and overlapping launches"));
    if (std::ranges::any_of(launch.args, [](const Arg& a) { return a.map != nullptr; }))
      ROOFGEN_CHECK(cu.have(cu.encode_tensor_map, "tensor maps"));
    cuda::Handle module = nullptr, function = nullptr;
    cuda::Status status = cu.load_module(&module, k.binary.cubin.data(), 0, nullptr, nullptr);
    // A driver without support for the machine code may compile the PTX.
    if (status == cuda::kNoBinaryForGpu || status == cuda::kInvalidImage)
      status = cu.load_module(&module, k.binary.ptx.c_str(), 0, nullptr, nullptr);
    ROOFGEN_CHECK(cu.check(status, fmt::format("loading kernel {} for {}", k.binary.entry, k.binary.arch)));
    modules_.push_back(module);
    ROOFGEN_CHECK(cu.check(cu.function(&function, module, k.binary.entry.c_str()), "finding kernel " + k.binary.entry));
    functions_.push_back(function);
    ROOFGEN_CHECK(cu.check(
        cu.set_function_attribute(function, cuda::kFunctionMaxDynamicSmem, static_cast<int>(launch.smem_bytes)),
        fmt::format("reserving {} bytes of shared memory for kernel {}", launch.smem_bytes, k.binary.entry)));
    if (launch.cluster.count() > 8)
      ROOFGEN_CHECK(
          cu.check(cu.set_function_attribute(function, cuda::kFunctionBigClusters, 1),
                   fmt::format("allowing clusters of {} CTAs for kernel {}", launch.cluster.count(), k.binary.entry)));
  }
  return {};
}

bool Pipeline::enter() const {
  cuda::Handle current = nullptr;
  if (driver_->current_context(&current) == 0 && current == context_) return false;
  return driver_->push_context(context_) == 0;
}

void Pipeline::leave(bool entered) const {
  cuda::Handle own = nullptr;
  if (entered) driver_->pop_context(&own);
}

/// The first launch of a shape was captured when it happened, so that a program that crashes leaves its shapes.
void Pipeline::capture_locked() {
  if (capture_file_.empty()) return;
  for (const auto& [numbers, shape] : prepared_)
    if (const uint64_t more = shape->uncaptured.exchange(0); more > 0)
      capture(capture_file_, captured_line(winner_.tuned.problem.op, winner_.flags, shape->sizes, more));
}

void Pipeline::capture_launches() {
  const std::lock_guard lock(mutex_);
  capture_locked();
}

Pipeline::~Pipeline() {
  if (!capture_file_.empty()) {
    Live::all().remove(this);
    capture_launches();
  }
  if (modules_.empty()) return;
  const bool entered = enter();
  for (const cuda::Handle module : modules_) driver_->unload_module(module);
  leave(entered);
}

Result<void> Pipeline::set(Call& call, const roofgen_argument& argument) const {
  if (!argument.name) return refused("an argument has no name");
  const std::string name = argument.name;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (p.key != name) continue;
    const bool tensor = p.kind == Parameter::Kind::kTensor, real = p.kind == Parameter::Kind::kReal;
    // A tensor of the user may have the name of a size.
    if (tensor != (argument.kind == ROOFGEN_POINTER) && std::ranges::count(parameters_, p.key, &Parameter::key) > 1)
      continue;
    if (tensor && argument.kind != ROOFGEN_POINTER) return refused(name + " is a tensor: a pointer was expected");
    if (!tensor && argument.kind == ROOFGEN_POINTER)
      return refused(fmt::format("{} is a {}, no tensor", name, kind_text(p.kind)));
    if (argument.kind != ROOFGEN_POINTER && argument.kind != ROOFGEN_INTEGER && argument.kind != ROOFGEN_REAL)
      return refused(fmt::format("{}: kind {}; ROOFGEN_POINTER, ROOFGEN_INTEGER or ROOFGEN_REAL was expected", name,
                                 argument.kind));
    if (tensor) {
      call.pointers[i] = argument.value.pointer;
    } else if (real) {
      call.numbers[i] =
          bits_of(argument.kind == ROOFGEN_REAL ? argument.value.real : static_cast<double>(argument.value.integer));
    } else {
      if (argument.kind == ROOFGEN_REAL) return refused(name + ": a whole number was expected");
      call.numbers[i] = static_cast<uint64_t>(argument.value.integer);
    }
    return {};
  }
  // What the kernels do not take: right if it is as they have it.
  const Problem& problem = winner_.tuned.problem;
  if (std::ranges::any_of(buffers_, [&](const Buffer& b) { return b.name == name; })) return {};
  const expr::Map& scope = winner_.tuned.scope;
  const auto own = scope.find(name);
  const bool size = problem.dims.count(name) || name.ends_with("_stride");
  if (size && own != scope.end() && own->second.as<int64_t>() && argument.kind == ROOFGEN_INTEGER) {
    if (*own->second.as<int64_t>() == argument.value.integer) return {};
    return not_served(
        fmt::format("{} is {} in them, not {}", name, *own->second.as<int64_t>(), argument.value.integer));
  }
  if (const auto real = problem.reals.find(name); real != problem.reals.end() && argument.kind != ROOFGEN_POINTER) {
    const double value =
        argument.kind == ROOFGEN_REAL ? argument.value.real : static_cast<double>(argument.value.integer);
    if (value == real->second) return {};
    return not_served(fmt::format("{} is {} in them, not {}", name, real->second, value));
  }
  std::vector<std::string> known;
  for (const Parameter& p : parameters_) known.push_back(p.key);
  return refused(fmt::format("the pipeline has no argument {}{}", name, did_you_mean(name, known)));
}

Result<Pipeline::Call> Pipeline::read(const roofgen_argument* arguments, size_t count) const {
  if (!arguments && count > 0) return refused("arguments is null");
  Call call{std::vector<uint64_t>(parameters_.size()), defaults_};
  for (size_t i = 0; i < count; ++i) ROOFGEN_CHECK(set(call, arguments[i]));
  return call;
}

Result<std::shared_ptr<Pipeline::Prepared>> Pipeline::prepared(const Numbers& numbers) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto at = prepared_.find(numbers); at != prepared_.end()) return at->second;
  }
  ROOFGEN_TRY(std::shared_ptr<Prepared> fresh, prepare(numbers));
  // A loop of decode steps has new sizes in each launch.
  constexpr size_t kMostPrepared = 4096;
  const std::lock_guard lock(mutex_);
  if (prepared_.size() >= kMostPrepared) {
    capture_locked();
    prepared_.clear();
  }
  return prepared_.emplace(numbers, std::move(fresh)).first->second;
}

/// Evaluates for the sizes and strides of a call what a bundle has as C, and checks that the kernels are right for
/// them.
Result<std::shared_ptr<Pipeline::Prepared>> Pipeline::prepare(const Numbers& numbers) const {
  expr::Map given;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Parameter& p = parameters_[i];
    if (!numbers[i]) continue;
    given[p.key] = p.kind == Parameter::Kind::kReal ? expr::Value(real_of(*numbers[i]))
                                                    : expr::Value(static_cast<int64_t>(*numbers[i]));
  }
  ROOFGEN_TRY(const expr::Map scope, interface_->scope_of(given));
  auto out = std::make_shared<Prepared>();
  for (const Parameter& p : parameters_)
    if (p.kind == Parameter::Kind::kSize && winner_.tuned.problem.dims.count(p.key))
      out->sizes[p.key] = *scope.at(p.key).as<int64_t>();
  if (interface_->is_empty(scope)) return out;
  const Variant& variant = *winner_.variant;
  for (size_t i = 0; i < variant.stages.size(); ++i) {
    ROOFGEN_TRY(out->launches.emplace_back(), launch_in_call(variant, variant.stages[i], winner_.legal[i],
                                                             winner_.kernels[i].launch, conditions_[i], scope));
  }
  ROOFGEN_TRY(out->temporaries, temporaries(variant, scope));
  for (const Buffer& t : out->temporaries) {
    out->offsets.push_back(out->workspace);
    out->workspace += (t.bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment * kWorkspaceAlignment;
  }
  for (Launch& launch : out->launches) {
    std::vector<Source>& sources = out->sources.emplace_back();
    launch.axes.clear();
    for (Arg& arg : launch.args) {
      Source& source = sources.emplace_back(Source{Source::kNull});
      if (!arg.is_buffer) continue;
      for (size_t i = 0; i < parameters_.size(); ++i)
        if (parameters_[i].kind == Parameter::Kind::kTensor && parameters_[i].key == arg.name)
          source = {Source::kParameter, i};
      for (size_t i = 0; i < out->temporaries.size(); ++i)
        if (out->temporaries[i].name == arg.name) source = {Source::kTemporary, i};
      arg.name.clear();  // each launch copies its arguments
    }
  }
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (parameters_[i].kind != Parameter::Kind::kTensor) continue;
    const Buffer& b = *std::ranges::find(buffers_, parameters_[i].key, &Buffer::name);
    ROOFGEN_TRY(Interface::Extent extent, interface_->extent(b, scope));
    if (extent.shape.size() > std::size(launch_tensor().shape))
      return Error{Exit::kFailed,
                   fmt::format("{} has {} dimensions; 5 at most were expected", b.name, extent.shape.size())};
    const auto rank = static_cast<int>(extent.shape.size());
    launch_tensor known{
        number_of(out->tensors.size(), 0), b.role != Buffer::Role::kInput, size_of(b.dtype), 0, rank, {}, {}, {}};
    for (size_t d = 0; d < extent.shape.size(); ++d) {
      known.shape[d] = extent.shape[d];
      known.stride[d] = extent.strides[d];
      if (extent.aligned_strides && d + 1 < extent.shape.size())
        known.aligned[d] = number_of(out->tensors.size(), d + 1);
    }
    out->tensors.push_back({i, known});
  }
  return out;
}

Result<void> Pipeline::check(const Prepared& prepared, const Call& call, uint64_t workspace,
                             uint64_t workspace_bytes) const {
  const auto name = [&](const Tensor& t) -> const std::string& { return parameters_[t.parameter].key; };
  if (prepared.workspace > 0) {
    if (!workspace) return refused(fmt::format("workspace is null; {} bytes were expected", prepared.workspace));
    if (workspace % kWorkspaceAlignment) return refused("workspace is not aligned to 256 bytes");
    if (workspace_bytes < prepared.workspace)
      return refused(fmt::format("workspace has {} bytes; {} were expected", workspace_bytes, prepared.workspace));
  }
  std::vector<launch_tensor> tensors;
  for (const Tensor& t : prepared.tensors) {
    tensors.push_back(t.known);
    tensors.back().at = call.pointers[t.parameter];
  }
  const launch_tensor memory{0, 1, 1, workspace, 1, {static_cast<int64_t>(prepared.workspace)}, {1}, {}};
  const int fault = launch_check_tensors(tensors.data(), static_cast<int>(tensors.size()),
                                         prepared.workspace > 0 ? &memory : nullptr);
  if (fault == LAUNCH_OK) return {};
  const int detail = LAUNCH_DETAIL(fault);
  const auto shares = [&](const launch_tensor& written) {  // the name of a tensor with which it shares memory
    const auto at = std::ranges::find_if(tensors, [&](const launch_tensor& t) { return launch_share(&written, &t); });
    return at == tensors.end() ? "" : name(prepared.tensors[static_cast<size_t>(at - tensors.begin())]);
  };
  if (detail == 0) return refused("workspace shares memory with " + shares(memory));
  const auto index = static_cast<size_t>((detail - 1) / kNumbersOfTensor);
  const auto side = static_cast<size_t>((detail - 1) % kNumbersOfTensor);
  const launch_tensor& tensor = tensors[index];
  const std::string& own = name(prepared.tensors[index]);
  switch (LAUNCH_KIND(fault)) {
    case LAUNCH_NULL: return refused(own + " is null or missing");
    case LAUNCH_MISALIGNED:
      if (side == 0) return refused(own + " is not aligned to 16 bytes");
      return refused(fmt::format("a stride of {} is {} elements, which is not a multiple of 16 bytes", own,
                                 tensor.stride[side - 1]));
    case LAUNCH_RANGE: return refused(own + " takes more bytes than a device has");
    default: break;
  }
  if (tensor.writes && launch_overlaps_itself(&tensor))
    return refused(fmt::format("{} overlaps itself: elements of it share their place by strides of {}", own,
                               fmt::join(tensor.stride, tensor.stride + tensor.rank, ", ")));
  const auto written = std::ranges::find_if(tensors, [&](const launch_tensor& t) { return launch_share(&t, &tensor); });
  return refused(fmt::format("{} shares memory with {}, which is written", own,
                             name(prepared.tensors[static_cast<size_t>(written - tensors.begin())])));
}

Result<void> Pipeline::run(const Prepared& prepared, const Call& call, cuda::Handle stream, uint64_t workspace) const {
  const cuda::Driver& cu = *driver_;
  const std::vector<Launch>& launches = prepared.launches;
  std::vector<std::vector<Arg>> args(launches.size());
  std::vector<cuda::Parameters> parameters(launches.size());
  // All kernels are checked before the first one runs.
  for (size_t k = 0; k < launches.size(); ++k) {
    args[k] = launches[k].args;
    for (size_t i = 0; i < args[k].size(); ++i) {
      const Source& source = prepared.sources[k][i];
      if (source.kind == Source::kParameter) args[k][i].bits = call.pointers[source.index];
      if (source.kind == Source::kTemporary) args[k][i].bits = workspace + prepared.offsets[source.index];
    }
    ROOFGEN_CHECK(parameters[k].set(args[k], [&](const Arg& arg, cuda::TensorMapBytes* map) -> Result<void> {
      if (const std::string why = fault_in(*arg.map, arg.bits); !why.empty())
        return refused(fmt::format("kernel {}: tensor map: {}", winner_.kernels[k].binary.entry, why));
      return cu.check(cuda::encode(cu, *arg.map, arg.bits, map), "encoding a tensor map");
    }));
  }
  for (size_t i = 0; i < prepared.temporaries.size(); ++i)
    if (prepared.temporaries[i].zeroed)
      ROOFGEN_CHECK(cu.check(cu.fill(workspace + prepared.offsets[i], 0, prepared.temporaries[i].bytes, stream),
                             "zeroing the workspace"));
  for (size_t k = 0; k < launches.size(); ++k) {
    // Without a check, whose text costs time.
    const cuda::Status status =
        cuda::queue(cu, functions_[k], stream, launches[k], launches[k].overlap && k > 0, parameters[k]);
    if (status != 0) return cu.check(status, "running kernel " + winner_.kernels[k].binary.entry);
  }
  return {};
}

Result<void> Pipeline::launch(cuda::Handle stream, const roofgen_argument* arguments, size_t count, uint64_t workspace,
                              uint64_t workspace_bytes) {
  ROOFGEN_TRY(const Call call, read(arguments, count));
  ROOFGEN_TRY(const std::shared_ptr<Prepared> shape, prepared(call.numbers));
  ROOFGEN_CHECK(check(*shape, call, workspace, workspace_bytes));
  const bool entered = enter();
  const Result<void> ran = run(*shape, call, stream, workspace);
  leave(entered);
  if (!capture_file_.empty() && ran && !shape->launches.empty()) {
    if (shape->seen.exchange(true))
      ++shape->uncaptured;
    else
      capture(capture_file_, captured_line(winner_.tuned.problem.op, winner_.flags, shape->sizes, 1));
  }
  return ran;
}

Result<uint64_t> Pipeline::workspace_bytes(const roofgen_argument* arguments, size_t count) {
  ROOFGEN_TRY(const Call call, read(arguments, count));
  ROOFGEN_TRY(const std::shared_ptr<Prepared> shape, prepared(call.numbers));
  return shape->workspace;
}

}  // namespace roofgen

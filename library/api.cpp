// The C API: a request in JSON, read into the flags of the command of the same name, asks a session.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <system_error>

#include "base/json.h"
#include "base/paths.h"
#include "generator/space/json_reader.h"
#include "library/session.h"
#include "tuner/session/emit.h"
#include "tuner/session/explain.h"
#include "tuner/session/generate.h"
#include "tuner/session/launcher/pipeline.h"
#include "tuner/session/tune.h"

struct roofgen_pipeline {
  std::unique_ptr<roofgen::Pipeline> pipeline;
};

namespace roofgen::library {
namespace {

struct LastError {
  std::string text;
  Where where;
};
LastError& last_error() {
  thread_local LastError error;
  return error;
}

/// The options of roofgen_open.
class OptionsReader : JsonReader {
 public:
  using JsonReader::JsonReader;
  Result<void> read(roofgen_session& session) const {
    ROOFGEN_CHECK(only(file_.root(), {"data_dirs", "cache_dir", "data_home"}));
    ROOFGEN_TRY(session.data_dirs, strings(file_.root(), "data_dirs"));
    ROOFGEN_TRY(session.cache, string_or(file_.root(), "cache_dir", session.cache));
    ROOFGEN_TRY(session.home, string_or(file_.root(), "data_home", session.home));
    return {};
  }
};

/// Reads the request into the flags that `Request` declares, and runs `ask` on it, which fills the result. `*result` is
/// given also for a tune that missed what was asked for.
template <class Request>
int run(roofgen_session* owner, const char* command, const char* text, roofgen_result** result, const FlagValues& more,
        const std::function<Result<void>(const Session&, Request&, roofgen_result&)>& ask) {
  if (result) *result = nullptr;
  if (!owner) return null_argument("session");
  if (!text) return null_argument("request");
  if (!result) return null_argument("result");
  return guarded([&]() -> int {
    auto problem = read_problem(text, "request");
    if (!problem) return bad(problem.error());
    problem->flags.insert(problem->flags.end(), more.begin(), more.end());
    RequestFlags flags(command, owner->data_dirs);
    Call call(*owner);
    flags.flags().add_switch("--force", call.session.force, "");
    Request request;
    request.declare(flags.flags());
    if (const auto read = flags.read(*problem); !read) return fail(read.error());
    auto out = std::make_unique<roofgen_result>();
    const auto done = ask(call.session, request, *out);
    for (const TunedKernel& k : out->kernels) out->schedules.push_back(to_string(k.program.schedule));
    if (!out->text.empty()) *result = out.release();
    return done ? ROOFGEN_OK : fail(done.error());
  });
}

int generated(roofgen_session* session, const char* request, bool compile, roofgen_result** result) {
  return run<GenerateRequest>(session, "generate", request, result, {},
                              [&](const Session& here, GenerateRequest& asked, roofgen_result& out) -> Result<void> {
                                asked.compile |= compile;
                                ROOFGEN_TRY(Generated made, generate(here, asked));
                                out.text = std::move(made.text);
                                out.kernels = std::move(made.kernels);
                                return {};
                              });
}

}  // namespace

int fail(const Error& error) {
  Error line = error;
  line.notes.clear();
  if (line.exit == Exit::kInterrupted) line.message = "interrupted";
  std::string text = line.where.file.empty()
                         ? line.message
                         : fmt::format("{}:{}:{}: {}", line.where.file, line.where.line, line.where.col, line.message);
  std::replace(text.begin(), text.end(), '\n', ' ');
  last_error() = {std::move(text),
                  error.where.file == "request" || error.where.file == "options" ? error.where : Where{}};
  return static_cast<int>(error.exit);
}

/// The text is an argument: files with the same fault only failed.
int bad(Error error) {
  error.exit = Exit::kUsage;
  return fail(error);
}

int null_argument(const char* what) { return fail({Exit::kUsage, fmt::format("{} is null", what)}); }

int guarded(const std::function<int()>& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return fail({Exit::kFailed, "no memory"});
  } catch (const std::exception& e) {
    return fail({Exit::kFailed, e.what()});
  }
}

Call::Call(roofgen_session& owner) : owner_(owner) {
  session.data_dirs = owner.data_dirs;
  session.cache = owner.cache;
  session.home = owner.home;
  session.stop = &stop_;
  const std::lock_guard lock(owner.mutex);
  session.warn = [f = owner.warning, user = owner.warning_user](const std::string& line) {
    if (f) f(user, line.c_str());
  };
  session.progress = [f = owner.progress, user = owner.progress_user](const std::string&) -> ShowPhase {
    return [f, user](const char* phase, uint64_t done, uint64_t total) {
      if (f) f(user, phase, done, total);
    };
  };
  owner.running.insert(&stop_);
}

Call::~Call() {
  const std::lock_guard lock(owner_.mutex);
  owner_.running.erase(&stop_);
}

}  // namespace roofgen::library

using namespace roofgen;
using namespace roofgen::library;

const char* roofgen_version(void) { return version(); }
int roofgen_abi_version(void) { return ROOFGEN_ABI_VERSION; }
const char* roofgen_error(void) { return last_error().text.c_str(); }
int roofgen_error_line(void) { return last_error().where.line; }
int roofgen_error_column(void) { return last_error().where.col; }

int roofgen_open(roofgen_session** session, const char* options) {
  if (!session) return null_argument("session");
  *session = nullptr;
  return guarded([&]() -> int {
    auto out = std::make_unique<roofgen_session>();
    out->cache = cache_dir();
    out->home = data_home();
    if (options) {
      const auto file = JsonFile::parse(options, "options");
      if (!file) return bad(file.error());
      if (const auto read = OptionsReader(*file).read(*out); !read) return bad(read.error());
    }
    *session = out.release();
    return ROOFGEN_OK;
  });
}

void roofgen_close(roofgen_session* session) { delete session; }

int roofgen_on_warning(roofgen_session* session, void (*warning)(void*, const char*), void* user) {
  if (!session) return null_argument("session");
  const std::lock_guard lock(session->mutex);
  session->warning = warning;
  session->warning_user = user;
  return ROOFGEN_OK;
}

int roofgen_on_progress(roofgen_session* session, void (*progress)(void*, const char*, uint64_t, uint64_t),
                        void* user) {
  if (!session) return null_argument("session");
  const std::lock_guard lock(session->mutex);
  session->progress = progress;
  session->progress_user = user;
  return ROOFGEN_OK;
}

int roofgen_cancel(roofgen_session* session) {
  if (!session) return null_argument("session");
  const std::lock_guard lock(session->mutex);
  for (std::atomic<bool>* stop : session->running) *stop = true;
  return ROOFGEN_OK;
}

int roofgen_tune(roofgen_session* session, const char* request, roofgen_result** result) {
  return run<TuneRequest>(session, "tune", request, result, {},
                          [](const Session& here, TuneRequest& asked, roofgen_result& out) -> Result<void> {
                            asked.kernels = true;
                            ROOFGEN_TRY(const TuneAnswer answer, tune(here, asked));
                            out.kernels = answer.kernels();
                            out.text = json_document(answer_json(answer));
                            const FusionVerdict& verdict = answer.result.report.verdict;
                            if (!answer.family) out.verdict = fmt::format("{}: {}", verdict.decision, verdict.reason);
                            ROOFGEN_CHECK(write_tuned(here, asked, answer));
                            return conclusion(asked, answer);
                          });
}

int roofgen_generate(roofgen_session* session, const char* request, roofgen_result** result) {
  return generated(session, request, false, result);
}

int roofgen_compile(roofgen_session* session, const char* request, roofgen_result** result) {
  return generated(session, request, true, result);
}

int roofgen_emit(roofgen_session* session, const char* request, const char* directory, roofgen_result** result) {
  if (result) *result = nullptr;
  if (!directory) return null_argument("directory");
  return run<BundleRequest>(session, "emit", request, result, {{"--output", {directory}}},
                            [](const Session& here, BundleRequest& asked, roofgen_result& out) -> Result<void> {
                              ROOFGEN_TRY(const Emitted emitted, emit(here, asked));
                              out.text = emitted_text(emitted, asked);
                              return {};
                            });
}

int roofgen_explain(roofgen_session* session, const char* request, roofgen_result** result) {
  return run<ExplainRequest>(session, "explain", request, result, {},
                             [](const Session& here, ExplainRequest& asked, roofgen_result& out) -> Result<void> {
                               asked.json = true;
                               ROOFGEN_TRY(out.text, explain(here, asked));
                               return {};
                             });
}

const char* roofgen_result_text(const roofgen_result* result) { return result ? result->text.c_str() : ""; }
const char* roofgen_result_verdict(const roofgen_result* result) { return result ? result->verdict.c_str() : ""; }
size_t roofgen_result_kernels(const roofgen_result* result) { return result ? result->kernels.size() : 0; }
void roofgen_result_free(roofgen_result* result) { delete result; }

int roofgen_result_kernel(const roofgen_result* result, size_t index, roofgen_kernel* kernel) {
  if (!result) return null_argument("result");
  if (!kernel) return null_argument("kernel");
  return guarded([&]() -> int {
    if (index >= result->kernels.size())
      return fail({Exit::kUsage, fmt::format("kernel {} of {}", index, result->kernels.size())});
    const TunedKernel& k = result->kernels[index];
    const Dim3 &grid = k.launch.grid, &block = k.launch.block, &cluster = k.launch.cluster;
    const roofgen_kernel all{kernel->struct_bytes,        result->schedules[index].c_str(),
                             k.program.entry.c_str(),     k.program.source.c_str(),
                             k.binary.ptx.c_str(),        k.binary.cubin.data(),
                             k.binary.cubin.size(),       k.binary.arch.c_str(),
                             k.binary.digest.c_str(),     k.binary.registers,
                             k.binary.spill_bytes,        {grid.x, grid.y, grid.z},
                             {block.x, block.y, block.z}, {cluster.x, cluster.y, cluster.z},
                             k.launch.smem_bytes};
    std::memcpy(kernel, &all, std::min(kernel->struct_bytes, sizeof all));
    return ROOFGEN_OK;
  });
}

int roofgen_jit(roofgen_session* session, const char* request, roofgen_pipeline** pipeline) {
  if (pipeline) *pipeline = nullptr;
  if (!session) return null_argument("session");
  if (!request) return null_argument("request");
  if (!pipeline) return null_argument("pipeline");
  return guarded([&]() -> int {
    auto problem = read_problem(request, "request");
    if (!problem) return bad(problem.error());
    Call call(*session);
    auto made = load_pipeline(call.session, std::move(*problem));
    if (!made) return fail(made.error());
    *pipeline = new roofgen_pipeline{std::move(*made)};
    return ROOFGEN_OK;
  });
}

void roofgen_pipeline_free(roofgen_pipeline* pipeline) { delete pipeline; }
const char* roofgen_pipeline_text(const roofgen_pipeline* pipeline) {
  return pipeline ? pipeline->pipeline->description().c_str() : "";
}

int roofgen_workspace_bytes(roofgen_pipeline* pipeline, const roofgen_argument* arguments, size_t count,
                            uint64_t* bytes) {
  if (!pipeline) return null_argument("pipeline");
  if (!bytes) return null_argument("bytes");
  *bytes = 0;
  return guarded([&]() -> int {
    const auto needed = pipeline->pipeline->workspace_bytes(arguments, count);
    if (!needed) return fail(needed.error());
    *bytes = *needed;
    return ROOFGEN_OK;
  });
}

int roofgen_launch(roofgen_pipeline* pipeline, void* stream, const roofgen_argument* arguments, size_t count,
                   uint64_t workspace, uint64_t workspace_bytes) {
  if (!pipeline) return null_argument("pipeline");
  return guarded([&]() -> int {
    const auto done = pipeline->pipeline->launch(stream, arguments, count, workspace, workspace_bytes);
    return done ? ROOFGEN_OK : fail(done.error());
  });
}

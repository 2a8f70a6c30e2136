#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/output_file.h"
#include "roofline/plot/plot.h"

extern char** environ;

namespace roofgen::plot {

namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

/// The last 600 bytes of `file`, on one line.
std::string last_words(std::FILE* file) {
  constexpr long kMost = 600;
  std::fseek(file, 0, SEEK_END);
  std::fseek(file, std::max(0L, std::ftell(file) - kMost), SEEK_SET);
  std::string text(kMost, '\0'), line;
  text.resize(std::fread(text.data(), 1, text.size(), file));
  for (char c : text) {
    const bool blank = static_cast<unsigned char>(c) <= ' ' || c == 0x7f;
    if (!blank) line += c;
    if (blank && !line.empty() && line.back() != ' ') line += ' ';
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

Error failed(const std::string& path, const std::string& why) {
  return Error{.message = "the plot cannot be written: " + why, .where = {path}};
}

/// Runs gnuplot with the three files as its standard streams and without the user's start-up files (-d).
Result<int> run(int in, int out, int err) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in, 0);
  posix_spawn_file_actions_adddup2(&actions, out, 1);
  posix_spawn_file_actions_adddup2(&actions, err, 2);
  char name[] = "gnuplot", defaults[] = "-d";
  char* arguments[] = {name, defaults, nullptr};
  pid_t child = 0;
  const int error = posix_spawnp(&child, name, &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == ENOENT)
    return Error{.exit = Exit::kUnavailable,
                 .message = "gnuplot was not found, which draws SVG and PNG: install the package gnuplot-nox"};
  if (error != 0)
    return Error{.exit = Exit::kUnavailable,
                 .message = fmt::format("gnuplot cannot be started: {}", std::strerror(error))};
  int status = 0;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return Error{.message = "gnuplot was lost: " + std::string(std::strerror(errno))};
  return status;
}

}  // namespace

Result<void> write_plot(const Roofline& roofline, PlotFormat format, const std::string& path, const DataFiles& files) {
  ROOFGEN_TRY(const std::string script, gnuplot_script(roofline, format, files));
  const File in(std::tmpfile()), out(std::tmpfile()), err(std::tmpfile());
  if (!in || !out || !err || std::fwrite(script.data(), 1, script.size(), in.get()) != script.size() ||
      std::fflush(in.get()) != 0)
    return failed(path, fmt::format("no temporary file: {}", std::strerror(errno)));
  std::rewind(in.get());
  ROOFGEN_TRY(const int status, run(fileno(in.get()), fileno(out.get()), fileno(err.get())));
  std::rewind(out.get());
  std::string image;
  char chunk[65536];
  for (size_t got = 0; (got = std::fread(chunk, 1, sizeof chunk, out.get())) > 0;) image.append(chunk, got);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0 || image.empty()) {
    const std::string words = last_words(err.get());
    return failed(path, "gnuplot failed" + (words.empty() ? "" : ": " + words));
  }
  return write_output(path, image);
}

}  // namespace roofgen::plot

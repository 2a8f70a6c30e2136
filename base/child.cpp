#include "base/child.h"

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/spawn.h"

namespace roofgen {
namespace {

/// The last lines that a dead worker wrote to standard error, for the notes of an Error.
std::vector<std::string> tail_of(int fd) {
  constexpr size_t kTail = 2000;
  off_t size = lseek(fd, 0, SEEK_END);
  if (size <= 0) return {};
  std::string text(std::min<size_t>(static_cast<size_t>(size), kTail), '\0');
  ssize_t got = pread(fd, text.data(), text.size(), size - static_cast<off_t>(text.size()));
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text.empty() ? std::vector<std::string>() : std::vector<std::string>{text};
}

}  // namespace

int Child::start(const std::string& executable, const std::string& argument, int shared) {
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) return errno;
  socket_ = pair[0];
  errors_ = memfd_create("roofgen-worker", MFD_CLOEXEC);
  std::vector<int> files{pair[1], kNoFile, errors_};
  if (shared >= 0) files.push_back(shared);
  const int failed = spawn(&pid_, executable, {"roofgen", argument}, environment_with(), files);
  close(pair[1]);
  if (failed != 0) {
    pid_ = 0;
    close_all();
  }
  return failed;
}

std::chrono::nanoseconds Child::cpu_time() const {
  clockid_t clock;
  timespec used = {};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &used) != 0) return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

bool Child::died_while_idle() const {
  char byte;
  return recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

size_t Child::send_some(std::string_view bytes) const {
  ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<size_t>(sent);
  return errno == EAGAIN || errno == EINTR ? 0 : bytes.size();
}

bool Child::receive_some(std::string& in) const {
  char buffer[65536];
  for (;;) {
    ssize_t got = recv(socket_, buffer, sizeof buffer, MSG_DONTWAIT);
    if (got > 0) {
      in.append(buffer, static_cast<size_t>(got));
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    return got < 0 && errno == EAGAIN;
  }
}

bool Child::reap(std::chrono::milliseconds patience, int* status, rusage* usage) {
  const auto deadline = std::chrono::steady_clock::now() + patience;
  for (;;) {
    pid_t got = wait4(pid_, status, patience.count() > 0 ? WNOHANG : 0, usage);
    if (got == pid_ || (got < 0 && errno != EINTR)) return true;
    if (got != 0) continue;
    if (std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

Child::End Child::wait(std::chrono::milliseconds patience) {
  End end;
  if (!reap(patience, &end.status, &end.usage)) {
    kill(pid_, SIGKILL);
    end.status = SIGKILL;  // the status that it would report
    reap(patience, &end.status, &end.usage);
  }
  pid_ = 0;
  end.tail = tail_of(errors_);
  close_all();
  return end;
}

bool Child::stop(std::chrono::milliseconds patience) {
  bool ended = true;
  if (running()) {
    int status = 0;
    rusage usage;
    kill(pid_, SIGKILL);
    ended = reap(patience, &status, &usage);
    pid_ = 0;
  }
  close_all();
  return ended;
}

void Child::close_all() {
  if (socket_ >= 0) close(socket_);
  if (errors_ >= 0) close(errors_);
  socket_ = errors_ = -1;
}

std::string ending_text(int status) {
  return WIFSIGNALED(status) ? fmt::format("crashed: {}", strsignal(WTERMSIG(status)))
                             : fmt::format("ended unexpectedly, with status {}", WEXITSTATUS(status));
}

/// PR_SET_PDEATHSIG is unsuitable: it fires when the *thread* that started the worker ends.
void exit_with_parent() {
  std::thread([] {
    pollfd parent{kWorkerSocket, POLLRDHUP, 0};
    while (poll(&parent, 1, -1) <= 0 || !(parent.revents & (POLLRDHUP | POLLHUP | POLLERR))) {
    }
    _exit(0);
  }).detach();
}

}  // namespace roofgen

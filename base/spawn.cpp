#include "base/spawn.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

#include <algorithm>

extern char** environ;

namespace roofgen {
std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

int spawn(pid_t* pid, const std::string& program, std::vector<std::string> argv, std::vector<std::string> environment,
          const std::vector<int>& files) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setpgroup(&attributes, 0);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (size_t i = 0; i < files.size(); ++i) {
    const int to = static_cast<int>(i);
    if (files[i] == kNoFile)
      posix_spawn_file_actions_addopen(&actions, to, "/dev/null", to == 0 ? O_RDONLY : O_WRONLY, 0);
    else
      posix_spawn_file_actions_adddup2(&actions, files[i], to);
  }
  const int failed =
      posix_spawnp(pid, program.c_str(), &actions, &attributes, pointers(argv).data(), pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return failed;
}

std::vector<std::string> environment_with(const std::vector<std::pair<std::string, std::string>>& more) {
  std::vector<std::string> out;
  for (char** e = environ; *e; ++e) out.emplace_back(*e);
  std::erase_if(out, [&](const std::string& entry) {
    return std::any_of(more.begin(), more.end(), [&](const auto& m) { return entry.starts_with(m.first + "="); });
  });
  for (const auto& [name, value] : more) out.push_back(name + "=" + value);
  return out;
}

}  // namespace roofgen

#include "cli/manual.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/suggest.h"

namespace roofgen::cli {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

// ---- Manual page ---------------------------------------------------------------------------------

/// Text as man(7) reads it: hyphens that can be copied, no line that begins a request.
std::string in_man(const std::string& text) {
  std::string out = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  out = replaced(out, "\n", "\n.br\n");
  return out.starts_with('.') || out.starts_with('\'') ? "\\&" + out : out;
}

std::string in_man(const FlagText& flag) {
  std::string names;
  for (const std::string& name : flag.names)
    names += fmt::format("{}\\fB{}\\fR", names.empty() ? "" : ", ", in_man(name));
  if (!flag.words.empty()) {
    names += fmt::format(" \\fI{}\\fR", in_man(fmt::format("{}", fmt::join(flag.words, "|"))));
  } else if (!flag.value.empty() && !flag.positional) {
    names += fmt::format(" \\fI{}\\fR", in_man(flag.value));
  }
  return fmt::format(".TP\n{}\n{}\n", names, in_man(flag.help));
}

// ---- Completion ----------------------------------------------------------------------------------

/// A word of a shell in single quotes.
std::string quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

bool is_number(const FlagText& flag) { return flag.value == "INT" || flag.value == "UINT" || flag.value == "FLOAT"; }

std::string joined(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// The values of a flag or argument that can be named.
std::vector<std::string> values_of(const CommandText& command, const FlagText& flag, const KnownValues& known) {
  for (const std::string& name : flag.names)
    for (const std::string& key : {command.name + " " + name, name})
      if (const auto it = known.find(key); it != known.end()) return it->second;
  return flag.words;
}

/// What completes the value of each flag, as in "tune --color": words, folders, or files.
std::string bash_script(const std::vector<CommandText>& commands, const KnownValues& known) {
  std::string values, flags;
  std::vector<std::string> names;
  for (const CommandText& command : commands) {
    names.push_back(command.name);
    std::vector<std::string> own, first;
    for (const FlagText& flag : command.flags) {
      const std::vector<std::string> words = values_of(command, flag, known);
      if (flag.positional) {
        first.insert(first.end(), words.begin(), words.end());
        continue;
      }
      own.insert(own.end(), flag.names.begin(), flag.names.end());
      if (flag.value.empty()) continue;
      std::string pattern;
      for (const std::string& name : flag.names)
        pattern += fmt::format("{}'{} {}'", pattern.empty() ? "" : "|", command.name, name);
      const std::string action = !words.empty() || is_number(flag) ? "-W " + quoted(joined(words))
                                 : flag.directory                  ? "-d"
                                                                   : "-f";
      values += fmt::format("    {}) COMPREPLY=($(compgen {} -- \"$word\")); return ;;\n", pattern, action);
    }
    flags += fmt::format("    {}) flags={} words={} ;;\n", command.name, quoted(joined(own)), quoted(joined(first)));
  }
  return fmt::format(R"(# bash completion of roofgen
_roofgen() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}} command=${{COMP_WORDS[1]}} flags words
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W {} -- "$word"))
    return
  fi
  case "$command $before" in
{}  esac
  case $command in
{}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$flags" -- "$word"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$word") $(compgen -f -- "$word"))
  fi
}}
complete -o filenames -F _roofgen roofgen
)",
                     quoted(joined(names)), values, flags);
}

/// Text inside the brackets of zsh's _arguments, itself in single quotes.
std::string in_zsh(const std::string& text) {
  std::string out;
  for (const char c : replaced(text, "\n", " ")) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return replaced(out, "'", "'\\''");
}

std::string zsh_script(const std::vector<CommandText>& commands, const KnownValues& known) {
  std::string list, cases;
  for (const CommandText& command : commands) {
    list += fmt::format("    '{}:{}'\n", command.name, in_zsh(command.summary));
    cases += fmt::format("    {})\n      _arguments", command.name);
    for (const FlagText& flag : command.flags) {
      const std::vector<std::string> words = values_of(command, flag, known);
      const std::string action = !words.empty()    ? fmt::format("({})", joined(words))
                                 : flag.directory  ? "_files -/"
                                 : is_number(flag) ? " "
                                                   : "_files";
      if (flag.positional) {
        cases += fmt::format(" \\\n        '*:{}:{}'", in_zsh(flag.names.front()), action);
        continue;
      }
      for (const std::string& name : flag.names)
        cases += fmt::format(" \\\n        '*{}[{}]{}'", name, in_zsh(flag.help),
                             flag.value.empty() ? "" : fmt::format(":{}:{}", flag.value, action));
    }
    cases += "\n      ;;\n";
  }
  return fmt::format(R"(#compdef roofgen
# zsh completion of roofgen
_roofgen() {{
  local -a commands=(
{}  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  local command=$words[2]
  shift words
  ((CURRENT--))
  case $command in
{}  esac
}}
if [[ $funcstack[1] == _roofgen ]]; then _roofgen "$@"; else compdef _roofgen roofgen; fi
)",
                     list, cases);
}

std::string fish_script(const std::vector<CommandText>& commands, const KnownValues& known) {
  const auto word = [](const std::string& text) {
    return "'" + replaced(replaced(replaced(text, "\n", " "), "\\", "\\\\"), "'", "\\'") + "'";
  };
  std::string out = "# fish completion of roofgen\n";
  for (const CommandText& command : commands)
    out += fmt::format("complete -c roofgen -n __fish_use_subcommand -f -a {} -d {}\n", command.name,
                       word(command.summary));
  for (const CommandText& command : commands) {
    const std::string where = fmt::format("complete -c roofgen -n '__fish_seen_subcommand_from {}'", command.name);
    for (const FlagText& flag : command.flags) {
      const std::vector<std::string> words = values_of(command, flag, known);
      if (flag.positional) {
        if (!words.empty()) out += fmt::format("{} -a {}\n", where, word(joined(words)));
        continue;
      }
      std::string names;
      for (const std::string& name : flag.names)
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      const std::string value = flag.value.empty() ? ""
                                : is_number(flag)  ? " -x"
                                : !words.empty()   ? " -x -a " + word(joined(words))
                                : flag.directory   ? " -x -a '(__fish_complete_directories)'"
                                                   : " -r";
      out += fmt::format("{}{}{} -d {}\n", where, names, value, word(flag.help));
    }
  }
  return out;
}

}  // namespace

std::string manual_page(const std::vector<CommandText>& commands, const std::string& version) {
  std::string out = fmt::format(
      ".TH ROOFGEN 1 \"\" \"roofgen {}\" \"User Commands\"\n.SH NAME\nroofgen \\- CUDA kernels from templates, tuned "
      "and "
      "scored against the roofline\n.SH SYNOPSIS\n.B roofgen\n.I command\n.RI [ options ]\n.SH DESCRIPTION\nroofgen "
      "generates kernels of attention, norms and matrix products, compiles them with NVRTC, searches for their best "
      "tile "
      "sizes, and scores each kernel by its distance to the roofline. Without a GPU a simulator verifies the kernels "
      "and "
      "a model predicts their times.\n",
      version);
  for (const CommandText& command : commands) {
    out += fmt::format(".SH COMMAND: {}\n{}.\n", in_man(command.name), in_man(command.summary));
    std::string group;
    for (const FlagText& flag : command.flags) {
      if (flag.group != group) out += fmt::format(".SS {}\n", in_man(flag.group));
      group = flag.group;
      out += in_man(flag);
    }
    if (!command.footer.empty()) out += fmt::format(".PP\n{}\n", in_man(command.footer));
  }
  out +=
      ".SH EXIT STATUS\n.TP\n0\nsuccess\n.TP\n1\nfailed\n.TP\n2\nan error in the command line or in an input "
      "file\n.TP\n"
      "3\nno schedule is legal, or a component is missing\n.TP\n4\nthe score is below "
      "\\fB\\-\\-min\\-score\\fR\n.TP\n130\n"
      "interrupted\n";
  return out;
}

Result<std::string> completion_script(const std::vector<CommandText>& commands, const KnownValues& values,
                                      const std::string& shell) {
  if (shell == "bash") return bash_script(commands, values);
  if (shell == "zsh") return zsh_script(commands, values);
  if (shell == "fish") return fish_script(commands, values);
  return Error{Exit::kUsage,
               fmt::format("unknown shell \"{}\"{}", shell, did_you_mean(shell, {"bash", "zsh", "fish"}))};
}

}  // namespace roofgen::cli

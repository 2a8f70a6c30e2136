// What a request may say, by name: declared once, filled by a command line or by a JSON object. CLI11, which checks the
// values, is included by flags.cpp alone: it takes seconds to compile.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "generator/ops/op_file.h"
#include "roofgen/result.h"
#include "tuner/session/suite/file.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace roofgen {

/// A declared flag. The functions that return it are chained behind the declaration.
class Flag {
 public:
  explicit Flag(CLI::Option* option) : option_(option) {}
  Flag help(const std::string& text) const;
  Flag group(const std::string& heading) const;  ///< of --help
  Flag required(bool yes = true) const;
  Flag split(char delimiter) const;  ///< one value is a list
  Flag repeated() const;             ///< each occurrence has one value, and all count
  Flag needs(Flag other) const;
  Flag excludes(Flag other) const;
  Flag one_of(const std::vector<std::string>& words) const;
  Flag directory() const;  ///< that exists
  /// Int or uint64_t.
  template <class Number>
  Flag range(Number least, Number most) const;
  /// A range that NaN is not in, with a message of one line: "a number of seconds from 0.1 to 3600".
  Flag number_from(double least, double most, const std::string& what) const;

  bool given() const;
  std::string name() const;  ///< "--device"

 private:
  CLI::Option* option_;
};

/// What flags of a command line depend on besides the code.
struct FlagData {
  std::vector<std::string> dirs;        ///< of the caller's data files: an op's file declares its flags
  std::map<std::string, Error> faults;  ///< by command: why its flags are not known, which parsing it says
  std::optional<Result<std::vector<OpFile>>> ops = {};  ///< read once: several commands have their flags
};

/// The flags of a subcommand.
class FlagSet {
 public:
  FlagSet(CLI::App* app, std::shared_ptr<FlagData> data) : app_(app), data_(std::move(data)) {}
  /// A flag with a value: a string, an int, int64_t, uint64_t or double, or a list of strings. A name without hyphens
  /// is an argument in that place.
  template <class T>
  Flag add(const std::string& name, T& value, const std::string& help) const;
  /// The same for a value that `take` keeps: a string, an int64_t or a double.
  template <class T>
  Flag add_each(const std::string& name, std::function<void(const T&)> take, const std::string& help) const;
  Flag add_switch(const std::string& name, bool& on, const std::string& help) const;
  Flag add_switch(const std::string& name, std::function<void()> on, const std::string& help) const;
  Flag find(const std::string& name) const;
  bool has(const std::string& name) const;
  /// Every flag of the command line with its values; a switch has none.
  FlagValues given() const;
  void footer(const std::string& text) const;
  /// Arguments that no flag takes are kept instead of refused.
  void keep_rest() const;
  std::vector<std::string> rest() const;

  /// The index of the first word from argv[2] on that is neither a flag of this subcommand nor its value: "--", or the
  /// first word of another program's command line.
  int end_of_flags(int argc, char** argv) const;

  std::string command() const;
  bool chosen() const;  ///< the command line names this subcommand
  /// The files of all ops; none after a fault.
  const std::vector<OpFile>& ops() const;
  void fault(Error error) const;  ///< in the data that declare flags

 private:
  /// The option that `add` makes. A fault where the name is taken: an op's file may declare any.
  template <class Add>
  Flag added(const std::string& name, const Add& add) const;

  CLI::App* app_;
  std::shared_ptr<FlagData> data_;
};

/// A flag or argument as --help shows it, for the manual page and for completion.
struct FlagText {
  std::vector<std::string> names;  ///< "-o", "--output"; of an argument its name
  std::string value;               ///< "TEXT", "INT"; empty: a switch
  std::vector<std::string> words;  ///< the only values, of one_of(); empty: others
  bool directory = false;          ///< the value is a folder
  bool positional = false;
  std::string help, group;
};
struct CommandText {
  std::string name, summary, footer;
  std::vector<FlagText> flags;  ///< of one group behind each other
};

/// The flags of one command, for a request in JSON.
class RequestFlags {
 public:
  explicit RequestFlags(const std::string& command, std::vector<std::string> data_dirs = {});
  ~RequestFlags();
  FlagSet flags() const;
  /// Gives the declared flags the values of the request. Errors are at the place of the request.
  Result<void> read(const SuiteProblem& request);

 private:
  std::unique_ptr<CLI::App> app_;
  std::shared_ptr<FlagData> data_;
};

/// The program's command line: subcommands and their flags.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& summary, const std::string& version,
              std::vector<std::string> data_dirs = {});
  ~CommandLine();
  FlagSet add_command(const std::string& name, const std::string& summary);
  void footer(const std::string& text);
  std::string help() const;
  std::vector<CommandText> commands() const;
  /// False when nothing is left to do: --help and --version are printed here. An error is one line with a suggestion.
  Result<bool> parse(int argc, char** argv);

 private:
  std::unique_ptr<CLI::App> app_;
  std::shared_ptr<FlagData> data_;
};

/// The folders of --data-dir, which are needed before the command line can be parsed.
std::vector<std::string> data_dirs_of(int argc, char** argv);

}  // namespace roofgen

#include "tuner/session/flags.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>

#include "base/number.h"
#include "base/suggest.h"

namespace roofgen {
namespace {

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> out;
  for (const CLI::Option* o : app.get_options())
    for (const std::string& name : o->get_lnames()) out.push_back("--" + name);
  return out;
}

/// ", as in roofgen check ...", from the first example of its help.
std::string example_of(const CLI::App& command) {
  constexpr std::string_view kMark = "Example: ";
  const std::string footer = command.get_footer();
  const size_t at = footer.find(kMark);
  if (at == std::string::npos) return "";
  const size_t begin = at + kMark.size();
  return ", as in " + footer.substr(begin, footer.find('\n', begin) - begin);
}

/// CLI11's exceptions as one line with a suggestion.
Error usage_error(const CLI::App& app, const CLI::ParseError& e, int argc, char** argv) {
  std::string message = e.what();
  const CLI::App* sub = app.get_subcommands().empty() ? &app : app.get_subcommands().front();
  if (dynamic_cast<const CLI::ExtrasError*>(&e) || dynamic_cast<const CLI::RequiredError*>(&e)) {
    for (int i = 1; i < argc; ++i) {
      std::string word = argv[i];
      if (const size_t eq = word.find('='); eq != std::string::npos && word.starts_with("--")) word.resize(eq);
      if (sub == &app && !word.starts_with("-")) {
        std::vector<std::string> names;
        for (const CLI::App* s : app.get_subcommands({})) names.push_back(s->get_name());
        return {Exit::kUsage, fmt::format("unknown command \"{}\"{}", word, did_you_mean(word, names))};
      }
      if (word.size() > 1 && word.starts_with("-") && !std::isdigit(static_cast<unsigned char>(word[1])) &&
          !sub->get_option_no_throw(word) && !app.get_option_no_throw(word)) {
        const std::string near = nearest(word, option_names(*sub));
        return {Exit::kUsage, fmt::format("unknown option {}{}", word,
                                          near.empty() ? fmt::format("; see roofgen {} --help", sub->get_name())
                                                       : fmt::format("; did you mean {}?", near))};
      }
    }
  }
  if (dynamic_cast<const CLI::RequiredError*>(&e)) message += example_of(*sub);
  if (dynamic_cast<const CLI::ConversionError*>(&e)) message += "; a number was expected";
  if (const size_t newline = message.find('\n'); newline != std::string::npos) message.resize(newline);
  return {Exit::kUsage, message};
}

}  // namespace

Flag Flag::help(const std::string& text) const { return Flag(option_->description(text)); }
Flag Flag::group(const std::string& heading) const { return Flag(option_->group(heading)); }
Flag Flag::required(bool yes) const { return Flag(option_->required(yes)); }
Flag Flag::split(char delimiter) const { return Flag(option_->delimiter(delimiter)); }
Flag Flag::repeated() const { return Flag(option_->expected(1)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)); }
Flag Flag::needs(Flag other) const { return Flag(option_->needs(other.option_)); }
Flag Flag::excludes(Flag other) const { return Flag(option_->excludes(other.option_)); }
Flag Flag::one_of(const std::vector<std::string>& words) const { return Flag(option_->check(CLI::IsMember(words))); }
Flag Flag::directory() const { return Flag(option_->check(CLI::ExistingDirectory)); }
template <class Number>
Flag Flag::range(Number least, Number most) const {
  return Flag(option_->check(CLI::Range(least, most)));
}
template Flag Flag::range(int, int) const;
template Flag Flag::range(uint64_t, uint64_t) const;

Flag Flag::number_from(double least, double most, const std::string& what) const {
  const auto fault = [=](const std::string& text) -> std::string {
    const std::optional<double> value = parse_number(text);
    if (value && *value >= least && *value <= most) return "";
    return most >= 1e15 ? fmt::format("{}: {} of at least {:g} was expected", text, what, least)
                        : fmt::format("{}: {} from {:g} to {:g} was expected", text, what, least, most);
  };
  return Flag(option_->check(CLI::Validator(fault, "")));
}

bool Flag::given() const { return option_->count() > 0; }
std::string Flag::name() const { return option_->get_name(); }

template <class Add>
Flag FlagSet::added(const std::string& name, const Add& add) const {
  try {
    return Flag(add());
  } catch (const CLI::OptionAlreadyAdded&) {
    const std::string taken = name.substr(name.rfind(',') + 1);
    fault({Exit::kFailed,
           fmt::format("the file of an op declares {}, which {} has for another purpose", taken, app_->get_name())});
    return Flag(app_->get_option(taken));
  }
}

template <class T>
Flag FlagSet::add(const std::string& name, T& value, const std::string& help) const {
  if constexpr (std::is_same_v<T, double>)
    return add_each<double>(
        name, [&value](const double& x) { value = x; }, help);
  else
    return added(name, [&] { return app_->add_option(name, value, help); });
}
template Flag FlagSet::add(const std::string&, std::string&, const std::string&) const;
template Flag FlagSet::add(const std::string&, std::vector<std::string>&, const std::string&) const;
template Flag FlagSet::add(const std::string&, int&, const std::string&) const;
template Flag FlagSet::add(const std::string&, int64_t&, const std::string&) const;
template Flag FlagSet::add(const std::string&, uint64_t&, const std::string&) const;
template Flag FlagSet::add(const std::string&, double&, const std::string&) const;

template <class T>
Flag FlagSet::add_each(const std::string& name, std::function<void(const T&)> take, const std::string& help) const {
  if constexpr (std::is_same_v<T, double>) {
    const auto read = [take](const CLI::results_t& given) {
      // CLI11 would read it by the locale of the program that has loaded the library, where 0,5 may be a half.
      const std::optional<double> x = parse_number(given.back());
      if (x) take(*x);
      return x.has_value();
    };
    return added(name, [&] { return app_->add_option(name, read, help)->type_name("FLOAT"); });
  } else {
    return added(name, [&] { return app_->add_option_function<T>(name, take, help); });
  }
}
template Flag FlagSet::add_each(const std::string&, std::function<void(const std::string&)>, const std::string&) const;
template Flag FlagSet::add_each(const std::string&, std::function<void(const int64_t&)>, const std::string&) const;
template Flag FlagSet::add_each(const std::string&, std::function<void(const double&)>, const std::string&) const;

Flag FlagSet::add_switch(const std::string& name, bool& on, const std::string& help) const {
  return added(name, [&] { return app_->add_flag(name, on, help); });
}
Flag FlagSet::add_switch(const std::string& name, std::function<void()> on, const std::string& help) const {
  return added(name, [&] { return app_->add_flag_callback(name, on, help); });
}
Flag FlagSet::find(const std::string& name) const { return Flag(app_->get_option(name)); }
bool FlagSet::has(const std::string& name) const { return app_->get_option_no_throw(name) != nullptr; }
FlagValues FlagSet::given() const {
  FlagValues out;
  for (const CLI::Option* o : app_->get_options())
    if (o->count() > 0 && !o->get_lnames().empty())
      out.emplace_back(o->get_name(), o->get_items_expected_max() > 0 ? o->results() : std::vector<std::string>{});
  return out;
}
void FlagSet::footer(const std::string& text) const { app_->footer(text); }
void FlagSet::keep_rest() const { app_->allow_extras(); }
std::vector<std::string> FlagSet::rest() const { return app_->remaining(); }
int FlagSet::end_of_flags(int argc, char** argv) const {
  int i = 2;
  for (; i < argc && argv[i][0] == '-' && std::strcmp(argv[i], "--") != 0; ++i)
    if (const CLI::Option* option = app_->get_option_no_throw(argv[i]); option && option->get_items_expected_max() > 0)
      ++i;
  return std::min(i, argc);
}

std::string FlagSet::command() const { return app_->get_name(); }
bool FlagSet::chosen() const { return app_->parsed(); }
const std::vector<OpFile>& FlagSet::ops() const {
  static const std::vector<OpFile> kNone;
  if (!data_->ops) data_->ops = OpFile::load_all(DataFiles(data_->dirs));
  if (*data_->ops) return **data_->ops;
  fault(data_->ops->error());
  return kNone;
}
void FlagSet::fault(Error error) const { data_->faults.emplace(command(), std::move(error)); }

CommandLine::CommandLine(const std::string& program, const std::string& summary, const std::string& version,
                         std::vector<std::string> data_dirs)
    : app_(std::make_unique<CLI::App>(summary, program)),
      data_(std::make_shared<FlagData>(FlagData{std::move(data_dirs), {}})) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
}
CommandLine::~CommandLine() = default;

FlagSet CommandLine::add_command(const std::string& name, const std::string& summary) {
  return {app_->add_subcommand(name, summary), data_};
}
void CommandLine::footer(const std::string& text) { app_->footer(text); }
std::string CommandLine::help() const { return app_->help(); }

std::vector<CommandText> CommandLine::commands() const {
  std::vector<CommandText> out;
  for (const CLI::App* app : app_->get_subcommands({})) {
    CommandText command{app->get_name(), app->get_description(), app->get_footer(), {}};
    for (const std::string& group : app->get_groups())
      for (const CLI::Option* o :
           app->get_options([&](const CLI::Option* option) { return option->get_group() == group; })) {
        FlagText flag;
        flag.positional = o->get_positional();
        if (flag.positional) flag.names.push_back(o->get_name(true));
        for (const std::string& name : o->get_snames()) flag.names.push_back("-" + name);
        for (const std::string& name : o->get_lnames()) flag.names.push_back("--" + name);
        // CLI11 shows the validators after the type: "TEXT:{auto,always,never}", "TEXT:DIR".
        const std::string type = o->get_items_expected_max() > 0 ? o->get_type_name() : "";
        flag.value = type.substr(0, type.find(':'));
        flag.directory = type.find(":DIR") != std::string::npos;
        if (const size_t open = type.find('{'), close = type.find('}', open); close != std::string::npos)
          flag.words = CLI::detail::split(type.substr(open + 1, close - open - 1), ',');
        flag.help = o->get_description(), flag.group = group;
        command.flags.push_back(std::move(flag));
      }
    out.push_back(std::move(command));
  }
  return out;
}

std::vector<std::string> data_dirs_of(int argc, char** argv) {
  constexpr std::string_view kFlag = "--data-dir";
  std::vector<std::string> out;
  for (int i = 1; i < argc && std::strcmp(argv[i], "--") != 0; ++i) {
    const std::string_view word = argv[i];
    if (word == kFlag && i + 1 < argc)
      out.emplace_back(argv[++i]);
    else if (word.starts_with(kFlag) && word.substr(kFlag.size()).starts_with('='))
      out.emplace_back(word.substr(kFlag.size() + 1));
  }
  return out;
}

Result<bool> CommandLine::parse(int argc, char** argv) {
  if (argc > 1)
    if (const auto fault = data_->faults.find(argv[1]); fault != data_->faults.end()) return fault->second;
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& e) {
    app_->exit(e);
    return false;
  } catch (const CLI::ParseError& e) {
    return usage_error(*app_, e, argc, argv);
  }
  return true;
}

RequestFlags::RequestFlags(const std::string& command, std::vector<std::string> data_dirs)
    : app_(std::make_unique<CLI::App>("", "roofgen")),
      data_(std::make_shared<FlagData>(FlagData{std::move(data_dirs), {}})) {
  app_->add_subcommand(command);
}
RequestFlags::~RequestFlags() = default;
FlagSet RequestFlags::flags() const { return {app_->get_subcommands({}).front(), data_}; }

Result<void> RequestFlags::read(const SuiteProblem& request) {
  if (!data_->faults.empty()) return data_->faults.begin()->second;
  std::vector<std::string> words = {"roofgen", flags().command(), request.op};
  for (const auto& [name, values] : request.flags) {
    if (values.empty()) words.push_back(name);
    for (const std::string& value : values) words.push_back(name + "=" + value);  // a value may begin with a hyphen
  }
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  const int argc = static_cast<int>(argv.size());
  try {
    app_->parse(argc, argv.data());
  } catch (const CLI::Success& e) {
    return at(request, {Exit::kUsage, "unknown option --help or --version; they print, which is for the command line"});
  } catch (const CLI::ParseError& e) {
    return at(request, usage_error(*app_, e, argc, argv.data()));
  }
  return {};
}

}  // namespace roofgen

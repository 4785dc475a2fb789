// The program brisk. Exit codes: 0 done, 1 failed, 2 wrong use.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>

#include "brisk/error.h"
#include "cli/commands.h"

namespace {

/// What did not arrive (a full disk) is a failure, unless the caller has closed the stream on purpose.
int written(int code, bool wanted) {
  if (!wanted || (std::fflush(stdout) == 0 && std::ferror(stdout) == 0)) return code;
  std::fprintf(stderr, "brisk: standard output cannot be written\n");
  return code != 0 ? code : 1;
}

/// The library names its own fields; who sits at a terminal knows the program's options.
std::string with_option_names(std::string text) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"StepOptions.accumulate", "--accumulate"},
      {"StepOptions.batch", "--batch"},
      {"StepOptions.precision", "--precision"},
      {"StepOptions.threads", "--threads"},
      {"FitOptions.duration", "--epochs"},
      {"FitOptions.workers", "--workers"},
      {"ImageOptions.size", "--input"},
      {"sgd.learning_rate", "--learning-rate"},
      {"adam.learning_rate", "--learning-rate"},
      {"adamw.learning_rate", "--learning-rate"},
      {"sgd.momentum", "--momentum"},
      {"sgd.weight_decay", "--weight-decay"},
      {"adam.weight_decay", "--weight-decay"},
      {"adamw.weight_decay", "--weight-decay"},
  };
  for (const auto& [field, option] : kNames) {
    const size_t at = text.find(std::string("] ") + field + " ");
    if (at != std::string::npos) return text.replace(at + 2, std::string(field).size(), option);
  }
  return text;
}

}  // namespace

int main(int argc, char** argv) {
  const bool wanted = ::fcntl(STDOUT_FILENO, F_GETFD) >= 0;
  CLI::App app("Trains neural networks and predicts with them, measures training steps, shows plans, handles weights.");
  app.name("brisk");
  app.set_version_flag("--version", BRISK_VERSION);
  app.require_subcommand(0, 1);  // none is refused below, so that an unknown one is named by the parser
  brisk::cli::Outcome outcome;
  brisk::cli::add_bench(app, outcome);
  brisk::cli::add_models(app, outcome);
  brisk::cli::add_plan(app, outcome);
  brisk::cli::add_predict(app, outcome);
  brisk::cli::add_train(app, outcome);
  brisk::cli::add_weights(app, outcome);
  try {
    app.parse(argc, argv);
    if (!app.get_subcommands().empty()) return written(outcome.code, wanted);
    std::fprintf(stderr,
                 "brisk: a subcommand is missing: bench, models, plan, predict, train or weights; see brisk --help\n");
    return 2;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return written(app.exit(error), wanted);  // --help, --version
    const auto chosen = app.get_subcommands();
    const std::string command = chosen.empty() ? "brisk" : "brisk " + chosen.front()->get_name();
    std::fprintf(stderr, "brisk: %s; see %s --help\n", error.what(), command.c_str());
    return 2;
  } catch (const brisk::Error& error) {
    const bool wrong_use = error.code() == brisk::ErrorCode::option;
    std::fprintf(stderr, "brisk: %s\n", wrong_use ? with_option_names(error.what()).c_str() : error.what());
    return wrong_use ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "brisk: %s\n", error.what());
    return 1;
  }
}

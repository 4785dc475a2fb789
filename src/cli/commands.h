// The subcommands. Each adds itself to the parser and runs when it was chosen.
#pragma once

#include <CLI/CLI.hpp>

namespace brisk::cli {

/// The exit code of the chosen subcommand.
struct Outcome {
  int code = 0;
};

void add_bench(CLI::App& app, Outcome& outcome);
void add_models(CLI::App& app, Outcome& outcome);
void add_plan(CLI::App& app, Outcome& outcome);
void add_predict(CLI::App& app, Outcome& outcome);
void add_train(CLI::App& app, Outcome& outcome);
void add_weights(CLI::App& app, Outcome& outcome);

}  // namespace brisk::cli

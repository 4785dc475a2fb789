// The program brisk. Exit codes: 0 done, 1 failed, 2 wrong use.
#include <cstdio>
#include <exception>

#include "brisk/error.h"
#include "cli/commands.h"

int main(int argc, char** argv) {
  CLI::App app("Trains neural networks, measures training steps, shows plans, handles weights.");
  app.name("brisk");
  app.set_version_flag("--version", BRISK_VERSION);
  app.require_subcommand(0, 1);  // none is refused below, so that an unknown one is named by the parser
  brisk::cli::Outcome outcome;
  brisk::cli::add_bench(app, outcome);
  brisk::cli::add_plan(app, outcome);
  brisk::cli::add_train(app, outcome);
  brisk::cli::add_weights(app, outcome);
  try {
    app.parse(argc, argv);
    if (!app.get_subcommands().empty()) return outcome.code;
    std::fprintf(stderr, "brisk: a subcommand is missing: bench, plan, train or weights; see brisk --help\n");
    return 2;
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const brisk::Error& error) {
    std::fprintf(stderr, "brisk: %s\n", error.what());
    return error.code() == brisk::ErrorCode::option ? 2 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "brisk: %s\n", error.what());
    return 1;
  }
}

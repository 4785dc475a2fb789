// brisk models: the networks that it knows, with their sizes.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brisk/brisk.h"
#include "cli/commands.h"
#include "cli/models.h"

namespace brisk::cli {
namespace {

struct ModelsOptions {
  bool json = false;
};

/// Of the forward pass over one sample; a multiplication and an addition are two.
double forward_flops(Model& model) {
  const Step step(model, cross_entropy(), sgd({.learning_rate = 0.01}), {.batch = 1});
  double flops = 0;
  for (const PlanStep& kernel : step.plan().steps()) {
    if (kernel.stage == "forward") flops += kernel.flops;
  }
  return flops;
}

void run(const ModelsOptions& options) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  if (!options.json)
    std::printf("%-18s %-14s %8s %12s %16s\n", "model", "input", "classes", "parameters", "forward MFLOP");
  for (const std::string& name : model_names()) {
    ModelChoice choice;
    choice.name = name;
    const NamedModel named = find_model(choice);
    Model model(named.function, named.input);
    const double flops = forward_flops(model);
    if (options.json) {
      rows.push_back({{"name", name},
                      {"input", std::vector<int64_t>(named.input.begin(), named.input.end())},
                      {"classes", named.classes},
                      {"parameters", model.parameter_count()},
                      {"forward_flops", flops}});
    } else {
      std::printf("%-18s %-14s %8lld %12lld %16.1f\n", name.c_str(), named.input.text().c_str(),
                  static_cast<long long>(named.classes), static_cast<long long>(model.parameter_count()), flops * 1e-6);
    }
  }
  if (options.json) std::printf("%s\n", rows.dump().c_str());
}

}  // namespace

void add_models(CLI::App& app, Outcome&) {
  const auto options = std::make_shared<ModelsOptions>();
  CLI::App* const command = app.add_subcommand(
      "models",
      "Lists the networks: input and classes by default, parameters, floating-point operations of a forward "
      "pass over one sample.");
  command->add_flag("--json", options->json, "one JSON array");
  command->callback([options] { run(*options); });
}

}  // namespace brisk::cli

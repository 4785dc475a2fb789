// brisk plan: what a training step will do and need, without allocating any of it.
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>

#include "brisk/brisk.h"
#include "cli/commands.h"
#include "cli/models.h"

namespace brisk::cli {
namespace {

struct PlanOptions {
  int64_t batch = 64;
  std::string device = "cpu";
  bool dot = false;
  std::string dump;
  bool json = false;
  ModelChoice model;
  std::string optimizer = "sgd";
  std::string precision = "f32";
  std::string target;
  int threads = 0;
};

nlohmann::ordered_json bytes_json(const PlanBytes& bytes) {
  return {{"total", bytes.total},
          {"activations", bytes.activations},
          {"parameters", bytes.parameters},
          {"gradients", bytes.gradients},
          {"moments", bytes.moments},
          {"buffers", bytes.buffers},
          {"scratch", bytes.scratch},
          {"shadows", bytes.shadows},
          {"staged", bytes.staged},
          {"state", bytes.state},
          {"library_bound", bytes.library_bound},
          {"live", bytes.live}};
}

void print_json(const PlanOptions& options, const Plan& plan) {
  nlohmann::ordered_json out;
  out["model"] = options.model.name;
  out["batch"] = plan.batch();
  out["isa"] = plan.target();
  out["bytes"] = bytes_json(plan.bytes());
  out["launches"] = plan.launches();
  out["microseconds"] = plan.seconds() * 1e6;
  out["steps"] = nlohmann::ordered_json::array();
  for (const PlanStep& step : plan.steps()) {
    out["steps"].push_back({{"op", step.op},
                            {"stage", step.stage},
                            {"implementation", step.implementation},
                            {"declined", step.declined},
                            {"shape", step.shape},
                            {"wave", step.wave},
                            {"flops", step.flops},
                            {"bytes", step.bytes},
                            {"launches", step.launches},
                            {"microseconds", step.seconds * 1e6}});
  }
  std::printf("%s\n", out.dump().c_str());
}

Optimizer optimizer_named(const std::string& name) {
  if (name == "sgd") return sgd({.learning_rate = 0.01, .momentum = 0.9});
  if (name == "adam") return adam();
  if (name == "adamw") return adamw();
  throw Error(ErrorCode::option, "--optimizer " + name, "unknown; there are sgd, adam, adamw");
}

Device device_of(const PlanOptions& options) {
  if (options.device == "cuda") return gpu(0);
  if (options.device != "cpu")
    throw Error(ErrorCode::option, "--device " + options.device, "unknown; there are cpu and cuda");
  if (!options.target.empty()) throw Error(ErrorCode::option, "--target " + options.target, "goes with --device cuda");
  return cpu();
}

void run(const PlanOptions& options) {
  const NamedModel named = find_model(options.model);
  Model model(named.function, named.input);
  const Step step(model, cross_entropy(), optimizer_named(options.optimizer),
                  {.batch = options.batch,
                   .device = device_of(options),
                   .precision = parse_precision(options.precision),
                   .threads = options.threads});
  const Plan plan = step.plan(0, options.target);
  if (options.json) {
    print_json(options, plan);
  } else if (options.dot) {
    std::printf("%s", plan.dot().c_str());
  } else if (!options.dump.empty()) {
    std::printf("%s", plan.dump(options.dump).c_str());
  } else {
    std::printf("%s", plan.explain().c_str());
  }
}

}  // namespace

void add_plan(CLI::App& app, Outcome&) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* const command = app.add_subcommand(
      "plan", "Shows the plan of a training step: each kernel, why others were declined, exact bytes.");
  add_model_options(*command, options->model, true);
  command->add_option("--batch", options->batch, "samples a step")->capture_default_str();
  command->add_option("--device", options->device, "cpu or cuda, which need not be in the machine")
      ->capture_default_str();
  command->add_option("--optimizer", options->optimizer, "sgd, adam or adamw")->capture_default_str();
  command->add_option("--precision", options->precision, "f32, bf16, fp16 or automatic")->capture_default_str();
  command->add_option("--target", options->target, "with --device cuda: h200, h100, a100, ...; default: the machine's");
  command->add_option("--threads", options->threads, "0: all that this process may use")->capture_default_str();
  CLI::Option* const dump = command->add_option("--dump", options->dump, "the graph after this pass, as text");
  CLI::Option* const dot = command->add_flag("--dot", options->dot, "the last graph, as Graphviz");
  command->add_flag("--json", options->json, "one JSON object")->excludes(dump)->excludes(dot);
  dot->excludes(dump);
  command->callback([options] { run(*options); });
}

}  // namespace brisk::cli

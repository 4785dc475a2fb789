// The networks that the program knows by name, with the variants that its options ask for.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "brisk/model.h"
#include "brisk/step.h"

namespace brisk::cli {

/// What the command line says of a model; empty and 0: the model's own.
struct ModelChoice {
  std::string name;
  std::vector<int64_t> channels;
  int64_t classes = 0;  ///< or outputs: what the data have
  std::string input;    ///< "27x29": height x width
  int64_t kernel = 0;
};

/// A network ready to be traced.
struct NamedModel {
  ModelFunction function;
  Shape input;  ///< of one sample
  int64_t classes = 0;
};

/// Adds the positional MODEL and the options of its variants.
void add_model_options(CLI::App& command, ModelChoice& choice, bool required);

/// In the order in which they are shown.
std::vector<std::string> model_names();

/// Throws Error [option] that lists the names, or says which variants the model has.
NamedModel find_model(const ModelChoice& choice);

void add_device_option(CLI::App& command, std::string& device);
/// "cpu", "cuda" (the first GPU) or "auto" (best_device()).
Device parse_device(const std::string& text);

/// "f32" ... Throws Error [option].
Precision parse_precision(const std::string& text);

}  // namespace brisk::cli

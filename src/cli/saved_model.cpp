// The description of a model as JSON in the header of its weights file.
#include "cli/saved_model.h"

#include <nlohmann/json.hpp>

#include "brisk/ops/norm.h"
#include "brisk/ops/shape.h"
#include "brisk/weights.h"

namespace brisk::cli {
namespace {

constexpr const char* kKey = "brisk.model";
constexpr int kVersion = 1;

nlohmann::ordered_json to_json(const SavedModel& saved) {
  return {{"version", kVersion},
          {"model", saved.choice.name},
          {"channels", saved.choice.channels},
          {"kernel", saved.choice.kernel},
          {"outputs", saved.choice.classes},
          {"input", saved.input},
          {"classes", saved.classes},
          {"resize", saved.resize},
          {"bytes", saved.bytes},
          {"inputs", saved.inputs},
          {"targets", saved.targets},
          {"mean", saved.mean},
          {"deviation", saved.deviation},
          {"target_mean", saved.target_mean},
          {"target_deviation", saved.target_deviation}};
}

SavedModel from_json(const nlohmann::json& found) {
  if (found.at("version") != kVersion) throw std::runtime_error("its version is not " + std::to_string(kVersion));
  SavedModel out;
  found.at("model").get_to(out.choice.name);
  found.at("channels").get_to(out.choice.channels);
  found.at("kernel").get_to(out.choice.kernel);
  found.at("outputs").get_to(out.choice.classes);
  found.at("input").get_to(out.input);
  found.at("classes").get_to(out.classes);
  found.at("resize").get_to(out.resize);
  found.at("bytes").get_to(out.bytes);
  found.at("inputs").get_to(out.inputs);
  found.at("targets").get_to(out.targets);
  found.at("mean").get_to(out.mean);
  found.at("deviation").get_to(out.deviation);
  found.at("target_mean").get_to(out.target_mean);
  found.at("target_deviation").get_to(out.target_deviation);
  return out;
}

void check(const SavedModel& saved) {
  const auto require = [](bool good, const char* what) {
    if (!good) throw std::runtime_error(what);
  };
  constexpr int64_t kMost = 1 << 24;
  require(saved.choice.classes >= 1 && saved.choice.classes <= kMost, "outputs is out of range");
  const auto outputs = static_cast<size_t>(saved.choice.classes);
  for (const int64_t size : saved.input) require(size >= 1 && size <= kMost, "input is out of range");
  require(saved.classes.empty() || saved.classes.size() == outputs, "classes are not as many as outputs");
  if (saved.is_table()) {
    require(saved.input == std::vector<int64_t>{static_cast<int64_t>(saved.inputs.size())},
            "input does not fit inputs");
    require(!saved.classes.empty() || (saved.targets.size() == outputs && saved.target_mean.size() == outputs),
            "targets are not as many as outputs");
  } else {
    require(saved.input.size() == 3 && (saved.input[0] == 1 || saved.input[0] == 3) && !saved.classes.empty(),
            "input is no image of one or three channels");
    require(!saved.bytes || saved.input[0] == 3, "bytes are of three channels");
  }
}

}  // namespace

Field SavedModel::field() const {
  if (bytes) return {"input", {input[1], input[2], 3}, DType::u8};
  return {"input", Shape(std::span<const int64_t>(input))};
}

Model SavedModel::make(uint64_t seed) const {
  ModelFunction function = find_model(choice).function;
  if (bytes) {
    // ImageNet's colours, as weights for torchvision's networks expect them.
    const NormalizeOptions colours = {.deviation = {0.229, 0.224, 0.225}, .mean = {0.485, 0.456, 0.406}};
    function = [network = function, colours](Var x) {
      return network({{"input", normalize(to_channels_first(x), colours)}});
    };
  }
  return Model(function, Inputs{field()}, {.seed = seed});
}

void save(const SavedModel& saved, const Model& model, const std::string& path) {
  save_weights(model, path, {.metadata = {{kKey, to_json(saved).dump()}}});
}

SavedModel read_saved(const std::string& path) {
  const WeightsFile file(path);
  for (const auto& [name, text] : file.metadata()) {
    if (name != kKey) continue;
    try {
      SavedModel out = from_json(nlohmann::json::parse(text));
      check(out);
      return out;
    } catch (const std::exception& error) {
      throw Error(ErrorCode::file, path, std::string("its ") + kKey + " is damaged: " + error.what());
    }
  }
  throw Error(ErrorCode::file, path,
              std::string("says nothing of its model (no ") + kKey + " in its header); brisk train --save writes it");
}

}  // namespace brisk::cli

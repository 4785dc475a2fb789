// Names to networks.
#include "cli/models.h"

#include <cstdio>

#include "brisk/device.h"
#include "brisk/models.h"

namespace brisk::cli {
namespace {

std::string joined(const std::vector<int64_t>& numbers) {
  std::string out;
  for (const int64_t number : numbers) out += (out.empty() ? "" : ",") + std::to_string(number);
  return out;
}

Shape image_shape(int64_t channels, const std::string& text, int64_t size) {
  if (text.empty()) return {channels, size, size};
  long long height = 0, width = 0;
  int used = 0;
  const int found = std::sscanf(text.c_str(), "%lldx%lld%n", &height, &width, &used);
  if (found != 2 || used != static_cast<int>(text.size()) || height < 1 || width < 1) {
    throw Error(ErrorCode::option, "--input " + text, "must be height x width, for example 27x29");
  }
  return {channels, height, width};
}

void check_channels(const ModelChoice& choice, size_t most, const char* meaning) {
  for (const int64_t channels : choice.channels) {
    if (channels < 1)
      throw Error(ErrorCode::option, "--channels " + joined(choice.channels), "each must be at least 1");
  }
  if (!choice.channels.empty() && choice.channels.size() != most && most != 0) {
    throw Error(ErrorCode::option, "--channels " + joined(choice.channels), choice.name + " takes " + meaning);
  }
}

void refuse_kernel(const ModelChoice& choice) {
  if (choice.kernel != 0) {
    throw Error(ErrorCode::option, "--kernel " + std::to_string(choice.kernel),
                choice.name + " has no such variant; lenet has");
  }
}

template <class Options>
void set_classes(Options& options, const ModelChoice& choice) {
  if (choice.classes > 0) options.classes = choice.classes;
}

NamedModel lenet(const ModelChoice& choice) {
  check_channels(choice, 2, "two numbers, for example 19,51");
  models::LenetOptions options;
  set_classes(options, choice);
  if (!choice.channels.empty()) options.channels1 = choice.channels[0], options.channels2 = choice.channels[1];
  if (choice.kernel != 0) options.kernel = choice.kernel;
  return {models::lenet(options), image_shape(1, choice.input, 28), options.classes};
}

NamedModel mlp(const ModelChoice& choice) {
  check_channels(choice, 0, "the widths of the hidden layers");
  refuse_kernel(choice);
  std::vector<int64_t> widths = choice.channels.empty() ? std::vector<int64_t>{300, 100} : choice.channels;
  const int64_t classes = choice.classes > 0 ? choice.classes : 10;
  widths.push_back(classes);
  return {models::mlp(widths), image_shape(1, choice.input, 28), classes};
}

/// One that has a width and otherwise only a size of images.
template <auto kMake, int64_t kSize, class Options>
NamedModel image_network(const ModelChoice& choice) {
  check_channels(choice, 1, "one number, the channels of the first stage");
  refuse_kernel(choice);
  Options options;
  set_classes(options, choice);
  if (!choice.channels.empty()) options.channels = choice.channels[0];
  return {kMake(options), image_shape(3, choice.input, kSize), options.classes};
}

/// One whose widths are the published ones.
template <auto kMake, int64_t kSize, class Options>
NamedModel published_network(const ModelChoice& choice) {
  refuse_kernel(choice);
  if (!choice.channels.empty()) {
    throw Error(ErrorCode::option, "--channels " + joined(choice.channels), choice.name + " has no such variant");
  }
  Options options;
  set_classes(options, choice);
  return {kMake(options), image_shape(3, choice.input, kSize), options.classes};
}

struct Entry {
  const char* name;
  NamedModel (*make)(const ModelChoice& choice);
};
using models::EfficientnetOptions, models::Resnet32x32Options, models::ResnetCifarOptions, models::ResnetOptions;
constexpr Entry kModels[] = {
    {"lenet", lenet},
    {"mlp", mlp},
    {"resnet8", image_network<models::resnet_cifar, 32, ResnetCifarOptions>},
    {"resnet9", image_network<models::resnet9, 32, Resnet32x32Options>},
    {"resnet18_cifar", image_network<models::resnet18_cifar, 32, Resnet32x32Options>},
    {"resnet34_cifar", image_network<models::resnet34_cifar, 32, Resnet32x32Options>},
    {"resnet18", image_network<models::resnet18, 224, ResnetOptions>},
    {"resnet34", image_network<models::resnet34, 224, ResnetOptions>},
    {"resnet50", image_network<models::resnet50, 224, ResnetOptions>},
    {"resnet101", image_network<models::resnet101, 224, ResnetOptions>},
    {"mobilenet_v2", published_network<models::mobilenet_v2, 224, models::MobilenetOptions>},
    {"efficientnet_b0", published_network<models::efficientnet_b0, 224, EfficientnetOptions>},
    {"efficientnet_b1", published_network<models::efficientnet_b1, 240, EfficientnetOptions>},
    {"efficientnet_b2", published_network<models::efficientnet_b2, 260, EfficientnetOptions>},
    {"efficientnet_b3", published_network<models::efficientnet_b3, 300, EfficientnetOptions>},
    {"efficientnet_b4", published_network<models::efficientnet_b4, 380, EfficientnetOptions>},
};

}  // namespace

std::vector<std::string> model_names() {
  std::vector<std::string> out;
  for (const Entry& entry : kModels) out.push_back(entry.name);
  return out;
}

void add_model_options(CLI::App& command, ModelChoice& choice, bool required) {
  CLI::Option* const model =
      command.add_option("MODEL", choice.name, "a name that brisk models lists: lenet, mlp, resnet50, ...");
  if (required) model->required();
  command
      .add_option("--channels", choice.channels,
                  "widths, separated by commas: two for lenet, the hidden layers of mlp, one for resnets")
      ->delimiter(',');
  command.add_option("--input", choice.input, "height x width of the images, for example 27x29");
  command.add_option("--kernel", choice.kernel, "size of lenet's convolutions")->check(CLI::PositiveNumber);
}

NamedModel find_model(const ModelChoice& choice) {
  std::string names;
  for (const Entry& entry : kModels) {
    if (choice.name == entry.name) return entry.make(choice);
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  throw Error(ErrorCode::option, "model \"" + choice.name + "\"", "unknown; there are " + names);
}

void add_device_option(CLI::App& command, std::string& device) {
  command.add_option("--device", device, "cpu, cuda (the first GPU) or auto (the best one that can be used)")
      ->check(CLI::IsMember({"cpu", "cuda", "auto"}))
      ->capture_default_str();
}

Device parse_device(const std::string& text) {
  if (text == "auto") return best_device();
  return text == "cuda" ? gpu(0) : cpu();
}

Precision parse_precision(const std::string& text) {
  if (text == "f32") return Precision::f32;
  if (text == "bf16") return Precision::bf16;
  if (text == "fp16") return Precision::fp16;
  if (text == "automatic") return Precision::automatic;
  throw Error(ErrorCode::option, "--precision " + text, "must be f32, bf16, fp16 or automatic");
}

}  // namespace brisk::cli

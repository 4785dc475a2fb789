// Names to networks.
#include "cli/models.h"

#include <cstdio>

#include "brisk/models.h"

namespace brisk::cli {
namespace {

constexpr int64_t kClasses = 10;

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

NamedModel lenet(const ModelChoice& choice) {
  check_channels(choice, 2, "two numbers, for example 19,51");
  models::LenetOptions options;
  if (!choice.channels.empty()) options.channels1 = choice.channels[0], options.channels2 = choice.channels[1];
  if (choice.kernel != 0) options.kernel = choice.kernel;
  return {models::lenet(options), image_shape(1, choice.input, 28), options.classes};
}

NamedModel mlp(const ModelChoice& choice) {
  check_channels(choice, 0, "the widths of the hidden layers");
  refuse_kernel(choice);
  std::vector<int64_t> widths = choice.channels.empty() ? std::vector<int64_t>{300, 100} : choice.channels;
  widths.push_back(kClasses);
  return {models::mlp(widths), image_shape(1, choice.input, 28), kClasses};
}

/// One that has a width and otherwise only a size of images.
template <class Options>
NamedModel image_network(const ModelChoice& choice, ModelFunction (*make)(Options), int64_t size) {
  check_channels(choice, 1, "one number, the channels of the first stage");
  refuse_kernel(choice);
  Options options;
  if (!choice.channels.empty()) options.channels = choice.channels[0];
  return {make(options), image_shape(3, choice.input, size), options.classes};
}

}  // namespace

void add_model_options(CLI::App& command, ModelChoice& choice, bool required) {
  CLI::Option* const model = command.add_option(
      "MODEL", choice.name,
      "lenet, mlp, resnet8, resnet9, resnet18_cifar or resnet50 (resnets: images of three channels)");
  if (required) {
    model->required();
  } else {
    model->capture_default_str();
  }
  command
      .add_option("--channels", choice.channels,
                  "widths, separated by commas: two for lenet, the hidden layers of mlp, one for resnets")
      ->delimiter(',');
  command.add_option("--input", choice.input, "height x width of the images, for example 27x29");
  command.add_option("--kernel", choice.kernel, "size of lenet's convolutions")->check(CLI::PositiveNumber);
}

NamedModel find_model(const ModelChoice& choice) {
  if (choice.name == "lenet") return lenet(choice);
  if (choice.name == "mlp") return mlp(choice);
  if (choice.name == "resnet8") return image_network(choice, models::resnet_cifar, 32);
  if (choice.name == "resnet9") return image_network(choice, models::resnet9, 32);
  if (choice.name == "resnet18_cifar") return image_network(choice, models::resnet18_cifar, 32);
  if (choice.name == "resnet50") return image_network(choice, models::resnet50, 224);
  throw Error(ErrorCode::option, "model \"" + choice.name + "\"",
              "unknown; there are lenet, mlp, resnet8, resnet9, resnet18_cifar, resnet50");
}

Precision parse_precision(const std::string& text) {
  if (text == "f32") return Precision::f32;
  if (text == "bf16") return Precision::bf16;
  if (text == "fp16") return Precision::fp16;
  if (text == "automatic") return Precision::automatic;
  throw Error(ErrorCode::option, "--precision " + text, "must be f32, bf16, fp16 or automatic");
}

}  // namespace brisk::cli

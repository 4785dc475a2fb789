// brisk weights: what a .safetensors file holds, how two differ, names changed.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "brisk/brisk.h"
#include "cli/commands.h"

namespace brisk::cli {
namespace {

using Renames = std::vector<std::pair<std::string, std::string>>;

struct WeightsOptions {
  std::string first, second;
  bool json = false;
  std::vector<std::string> renames;
  double tolerance = 0;
};

/// Names come from files: bytes that would move the cursor of a terminal are shown as ?.
std::string printable(std::string text) {
  for (char& letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < 0x20 || code == 0x7f) letter = '?';
  }
  return text;
}

bool is_float(const StoredWeight& weight) {
  return weight.dtype == "F32" || weight.dtype == "F16" || weight.dtype == "BF16" || weight.dtype == "F64";
}

void show(const WeightsOptions& options) {
  const WeightsFile file(options.first);
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  int64_t elements = 0;
  for (const StoredWeight& weight : file.tensors()) {
    elements += weight.shape.count();
    if (options.json) {
      const std::vector<int64_t> shape(weight.shape.begin(), weight.shape.end());
      rows.push_back({{"name", weight.name}, {"dtype", weight.dtype}, {"shape", shape}});
    } else {
      std::printf("%-40s %-5s %s\n", printable(weight.name).c_str(), weight.dtype.c_str(), weight.shape.text().c_str());
    }
  }
  if (options.json) {
    std::printf("%s\n", rows.dump().c_str());
  } else {
    std::printf("%zu tensors, %lld elements\n", file.tensors().size(), static_cast<long long>(elements));
  }
}

/// Largest difference of two tensors of one shape; a NaN on one side alone is an infinite one.
double largest_difference(const Tensor& a, const Tensor& b) {
  double largest = 0;
  for (int64_t i = 0; i < a.count(); ++i) {
    const float x = a.data<float>()[i], y = b.data<float>()[i];
    if (x == y || (std::isnan(x) && std::isnan(y))) continue;
    const double difference = std::fabs(static_cast<double>(x) - static_cast<double>(y));
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

/// "" when the tensors agree within the tolerance.
std::string difference(const WeightsFile& a, const WeightsFile& b, const StoredWeight& x, const StoredWeight& y,
                       double tolerance) {
  if (!(x.shape == y.shape)) return x.shape.text() + " against " + y.shape.text();
  if (!is_float(x) || !is_float(y)) return x.dtype == y.dtype ? "" : x.dtype + " against " + y.dtype;
  const double largest = largest_difference(a.read(x.name), b.read(y.name));
  if (largest <= tolerance) return "";
  char text[64];
  std::snprintf(text, sizeof(text), "differs by up to %.6g", largest);
  return text;
}

int diff(const WeightsOptions& options) {
  if (!(options.tolerance >= 0)) {
    throw Error(ErrorCode::option, "--tolerance", "must be at least 0");
  }
  const WeightsFile a(options.first), b(options.second);
  int differences = 0;
  const auto line = [&](const std::string& name, const std::string& text) {
    std::printf("%-40s %s\n", printable(name).c_str(), text.c_str());
    ++differences;
  };
  auto x = a.tensors().begin();
  auto y = b.tensors().begin();
  while (x != a.tensors().end() || y != b.tensors().end()) {  // both are sorted by name
    if (y == b.tensors().end() || (x != a.tensors().end() && x->name < y->name)) {
      line((x++)->name, "only in the first file");
    } else if (x == a.tensors().end() || y->name < x->name) {
      line((y++)->name, "only in the second file");
    } else {
      const std::string text = difference(a, b, *x, *y, options.tolerance);
      if (!text.empty()) line(x->name, text);
      ++x, ++y;
    }
  }
  std::printf("%d tensors differ\n", differences);
  return differences == 0 ? 0 : 1;
}

void rename(const WeightsOptions& options) {
  Renames renames;
  for (const std::string& text : options.renames) {
    const size_t equals = text.find('=');
    if (equals == std::string::npos) {
      throw Error(ErrorCode::option, "--name " + text, "must be FROM=TO, for example features.0.0=conv1");
    }
    renames.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  WeightsFile(options.first).save_renamed(options.second, renames);
}

}  // namespace

void add_weights(CLI::App& app, Outcome& outcome) {
  const auto options = std::make_shared<WeightsOptions>();
  CLI::App* const command = app.add_subcommand("weights", "Shows, compares and renames what .safetensors files hold.");
  command->require_subcommand(1);
  CLI::App* const shown = command->add_subcommand("show", "Lists names, types and shapes.");
  shown->add_option("FILE", options->first, "a .safetensors file")->required();
  shown->add_flag("--json", options->json, "one JSON array");
  shown->callback([options] { show(*options); });

  CLI::App* const compared = command->add_subcommand("diff", "Compares two files; exit code 1 when they differ.");
  compared->add_option("FILE", options->first, "a .safetensors file")->required();
  compared->add_option("OTHER", options->second, "another one")->required();
  compared->add_option("--tolerance", options->tolerance, "largest difference of two elements that is none")
      ->capture_default_str();
  compared->callback([options, &outcome] { outcome.code = diff(*options); });

  CLI::App* const renamed = command->add_subcommand("rename", "Writes the same tensors under changed names.");
  renamed->add_option("FILE", options->first, "a .safetensors file")->required();
  renamed->add_option("OUT", options->second, "the file to write")->required();
  renamed
      ->add_option("--name", options->renames,
                   "FROM=TO: a leading part of names, whole between dots; may be given several times")
      ->required()
      ->allow_extra_args(false);
  renamed->callback([options] { rename(*options); });
}

}  // namespace brisk::cli

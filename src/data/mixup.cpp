// Samples mixed in pairs.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "brisk/augment.h"
#include "core/text.h"
#include "data/fields.h"
#include "data/lending.h"

namespace brisk {
namespace {

MixupOptions checked(const Dataset& dataset, MixupOptions options) {
  if (!(options.alpha > 0 && std::isfinite(options.alpha))) {
    throw Error(ErrorCode::option, cat("MixupOptions.alpha = ", options.alpha), "must be finite and more than 0");
  }
  if (options.classes < 1 || options.classes > INT32_MAX) {
    throw Error(ErrorCode::option, cat("MixupOptions.classes = ", options.classes),
                "must be the number of classes, at least 1 and below 2^31");
  }
  const std::vector<Field> fields = dataset.fields();
  const auto field = [&](const std::string& called) -> const Field& {
    return fields[static_cast<size_t>(data::field_number(fields, called, dataset.name()))];
  };
  const Field& input = field(options.input);
  if (input.dtype != DType::f32 && input.dtype != DType::u8) {
    throw Error(ErrorCode::data, cat("\"", input.name, "\""), cat("is ", name(input.dtype), "; f32 and u8 are mixed"));
  }
  const Field& target = field(options.target);
  if (target.dtype != DType::i64 || target.shape.rank() != 0) {
    throw Error(ErrorCode::data, cat("\"", target.name, "\""),
                cat("is ", name(target.dtype), " ", target.shape, "; class numbers are i64 []"));
  }
  return options;
}

// log of a Gamma(alpha, 1) variate: G. Marsaglia, W. Tsang, "A simple method for generating gamma variables", 2000. As
// a logarithm, since for small alpha most of them are smaller than any double.
double log_gamma_variate(double alpha, Random& random) {
  const double d = alpha + 1 - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  for (;;) {
    const double x = random.normal(), root = 1 + c * x;
    const double u = 1 - static_cast<double>(random.uniform());  // (0, 1]
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(u) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      const double boost = std::log(1 - static_cast<double>(random.uniform())) / alpha;
      return std::log(d * v) + boost;
    }
  }
}

template <class T>
void mix(const T* other, double share, int64_t count, T* to) {
  const float a = static_cast<float>(share), b = static_cast<float>(1 - share);
  for (int64_t i = 0; i < count; ++i) {
    const float value = a * static_cast<float>(to[i]) + b * static_cast<float>(other[i]);
    to[i] = static_cast<T>(std::is_same_v<T, uint8_t> ? value + 0.5f : value);
  }
}

}  // namespace

struct Mixup::Rows {
  data::Lending<Batch> batches;
};

Mixup::Mixup(const Dataset& dataset, MixupOptions options)
    : dataset_(dataset), options_(checked(dataset, std::move(options))), rows_(std::make_shared<Rows>()) {}

std::vector<Field> Mixup::fields() const {
  std::vector<Field> out = dataset_.fields();
  Field& target = out[static_cast<size_t>(data::field_number(out, options_.target, name()))];
  target.shape = {options_.classes};
  target.dtype = DType::f32;
  return out;
}

void Mixup::read(int64_t index, Sample& out, Random& random) const {
  auto rows = rows_->batches.lend([&] { return std::make_unique<Batch>(dataset_.fields(), 2); });
  const int64_t both[2] = {index, index};
  rows->assign(both);
  Sample own(*rows, 0), second(*rows, 1);
  dataset_.read(index, own, random);
  const int64_t other = random.integer(size());
  const double first = log_gamma_variate(options_.alpha, random);
  const double share = 1 / (1 + std::exp(log_gamma_variate(options_.alpha, random) - first));
  dataset_.read(other, second, random);

  const View input = own[options_.input];
  if (input.dtype() == DType::u8) {
    mix(second[options_.input].data<uint8_t>(), share, input.count(), input.data<uint8_t>());
  } else {
    mix(second[options_.input].data<float>(), share, input.count(), input.data<float>());
  }
  float* const target = out[options_.target].data<float>();
  std::fill_n(target, options_.classes, 0.0f);
  for (const auto& [sample, part] : {std::pair{&own, share}, {&second, 1 - share}}) {
    const int64_t label = (*sample)[options_.target].data<int64_t>()[0];
    if (label < 0 || label >= options_.classes) {
      throw Error(ErrorCode::data, cat("class ", label), cat("must be 0 to ", options_.classes - 1));
    }
    target[label] += static_cast<float>(part);
  }
  for (const Field& field : rows->fields()) {
    if (field.name == options_.target) continue;
    const View from = own[field.name];
    std::memcpy(out[field.name].raw(), from.raw(), static_cast<size_t>(from.count() * size_of(field.dtype)));
  }
}

}  // namespace brisk

// Columns in memory, gathered row by row.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "brisk/data.h"
#include "core/host_view.h"
#include "core/text.h"
#include "data/order.h"

namespace brisk {
namespace {

Field field_of(std::string name, const ConstView& elements) {
  if (name.empty()) throw Error(ErrorCode::data, "add", "a field needs a name");
  if (elements.shape().rank() == 0) {
    throw Error(ErrorCode::data, cat("\"", name, "\""), "a scalar has no samples; the first dimension counts them");
  }
  check_host(cat("\"", name, "\""), elements);
  const Shape& shape = elements.shape();
  return {std::move(name), Shape(std::span<const int64_t>(shape.begin() + 1, shape.end())), elements.dtype()};
}

void check_index(int64_t index, int64_t count, const std::string& owner) {
  if (index >= 0 && index < count) return;
  throw Error(ErrorCode::data, cat("sample ", index, " of ", owner), cat("allowed is 0 to ", count - 1));
}

// A division for each pixel, made once.
constexpr std::array<float, 256> kPixelValues = [] {
  std::array<float, 256> values = {};
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i) / 255.0f;
  return values;
}();

// Shuffled rows are far apart: their memory is asked for a few rows before it is read.
constexpr size_t kRowsAhead = 4;

void prefetch(const std::byte* from, int64_t bytes) {
  constexpr int64_t kLine = 64;
  constexpr int64_t kMost = 4096;  // beyond it the processor has seen the pattern itself
  for (int64_t i = 0; i < std::min(bytes, kMost); i += kLine) __builtin_prefetch(from + i);
}

void copy_pixels(const uint8_t* from, int64_t count, float* to) {
  for (int64_t i = 0; i < count; ++i) to[i] = kPixelValues[from[i]];
}

// `dtype` is what is delivered; stored and delivered elements differ for pixels only.
void copy_elements(const std::byte* from, bool pixels, int64_t count, DType dtype, std::byte* to) {
  if (pixels) {
    copy_pixels(reinterpret_cast<const uint8_t*>(from), count, reinterpret_cast<float*>(to));
  } else if (count > 0) {
    std::memcpy(to, from, static_cast<size_t>(count * size_of(dtype)));
  }
}

}  // namespace

void InMemoryDataset::add_column(Column column) {
  const std::string quoted = cat("\"", column.field.name, "\"");
  if (rows_)
    throw Error(ErrorCode::data, quoted, "a part of a split set takes no more fields; add them before split()");
  for (const Column& other : columns_) {
    if (other.field.name == column.field.name) throw Error(ErrorCode::data, quoted, "there is a field of this name");
  }
  if (!columns_.empty() && column.elements.dim(0) != size()) {
    throw Error(
        ErrorCode::data, quoted,
        cat("has ", column.elements.dim(0), " samples, but \"", columns_.front().field.name, "\" has ", size()));
  }
  columns_.push_back(std::move(column));
}

void InMemoryDataset::add(std::string name, Tensor tensor) {
  Field field = field_of(std::move(name), tensor);
  auto owner = std::make_shared<const Tensor>(std::move(tensor));
  const ConstView elements = *owner;
  add_column({std::move(field), elements, std::move(owner), false});
}

void InMemoryDataset::add(std::string name, ConstView view) {
  add_column({field_of(std::move(name), view), view, nullptr, false});
}

void InMemoryDataset::add_pixels(std::string name, Tensor bytes) {
  if (bytes.dtype() != DType::u8) {
    throw Error(ErrorCode::data, cat("\"", name, "\""),
                cat("pixels are u8, these elements are ", brisk::name(bytes.dtype())));
  }
  Field field = field_of(std::move(name), bytes);
  field.dtype = DType::f32;
  auto owner = std::make_shared<const Tensor>(std::move(bytes));
  const ConstView elements = *owner;
  add_column({std::move(field), elements, std::move(owner), true});
}

int64_t InMemoryDataset::size() const {
  if (rows_) return static_cast<int64_t>(rows_->size());
  return columns_.empty() ? 0 : columns_.front().elements.dim(0);
}

std::vector<Field> InMemoryDataset::fields() const {
  std::vector<Field> out;
  for (const Column& column : columns_) out.push_back(column.field);
  return out;
}

std::string InMemoryDataset::name() const { return name_.empty() ? "data set" : name_; }

void InMemoryDataset::rows(std::span<const int64_t> indices, Batch& out) const {
  const int64_t count = size();
  for (const int64_t index : indices) check_index(index, count, name());
  out.assign(indices);
  for (size_t c = 0; c < columns_.size(); ++c) {
    const Column& column = columns_[c];
    const int64_t elements = column.field.shape.count();
    if (out.fields().size() != columns_.size() || !(out.fields()[c].shape == column.field.shape) ||
        out.fields()[c].dtype != column.field.dtype) {
      throw Error(ErrorCode::data, name(), "the batch was not made from this data set's fields()");
    }
    const int64_t stored_bytes = elements * size_of(column.elements.dtype());
    const int64_t delivered_bytes = elements * size_of(column.field.dtype);
    const auto* from = static_cast<const std::byte*>(column.elements.raw());
    auto* to = static_cast<std::byte*>(out.slot(static_cast<int64_t>(c)).raw());
    const auto row = [&](size_t i) {
      return from + (rows_ ? (*rows_)[static_cast<size_t>(indices[i])] : indices[i]) * stored_bytes;
    };
    for (size_t i = 0; i < std::min(kRowsAhead, indices.size()); ++i) prefetch(row(i), stored_bytes);
    for (size_t i = 0; i < indices.size(); ++i, to += delivered_bytes) {
      if (i + kRowsAhead < indices.size()) prefetch(row(i + kRowsAhead), stored_bytes);
      copy_elements(row(i), column.pixels, elements, column.field.dtype, to);
    }
  }
}

void InMemoryDataset::read(int64_t index, Sample& out, Random&) const {
  check_index(index, size(), name());
  const int64_t row = rows_ ? (*rows_)[static_cast<size_t>(index)] : index;
  for (const Column& column : columns_) {
    const ConstView from = column.elements.rows(row, 1);
    copy_elements(static_cast<const std::byte*>(from.raw()), column.pixels, from.count(), column.field.dtype,
                  static_cast<std::byte*>(out[column.field.name].raw()));
  }
}

InMemoryDataset InMemoryDataset::part(std::vector<int64_t> rows) const {
  InMemoryDataset out = *this;
  out.rows_ = std::make_shared<const std::vector<int64_t>>(std::move(rows));
  return out;
}

Split InMemoryDataset::split(SplitOptions options) const {
  data::SplitRows parts = data::split_rows(options, size());
  for (std::vector<int64_t>* const rows : {&parts.first, &parts.second}) {
    for (int64_t& row : *rows) row = rows_ ? (*rows_)[static_cast<size_t>(row)] : row;
  }
  return {part(std::move(parts.first)), part(std::move(parts.second))};
}

void InMemoryDataset::check_finite() const {
  const int64_t count = size();
  for (const Column& column : columns_) {
    if (column.elements.dtype() != DType::f32) continue;
    const int64_t elements = column.field.shape.count();
    const float* values = column.elements.data<float>();
    for (int64_t sample = 0; sample < count; ++sample) {
      const int64_t row = rows_ ? (*rows_)[static_cast<size_t>(sample)] : sample;
      for (int64_t i = 0; i < elements; ++i) {
        const float value = values[row * elements + i];
        if (!std::isfinite(value)) {
          throw Error(ErrorCode::data, "",
                      cat("\"", column.field.name, "\", sample ", sample, ", column ", i, " is ",
                          std::isnan(value) ? "NaN" : "infinite"));
        }
      }
    }
  }
}

}  // namespace brisk

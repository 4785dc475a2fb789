// Batches, samples, their random numbers, and data sets that make a sample when it is read.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <typeinfo>

#include "brisk/data.h"
#include "core/philox.h"
#include "core/text.h"
#include "data/fields.h"
#include "data/fill.h"

namespace brisk {

int64_t data::field_number(const std::vector<Field>& fields, std::string_view name, std::string_view owner) {
  for (size_t i = 0; i < fields.size(); ++i) {
    if (fields[i].name == name) return static_cast<int64_t>(i);
  }
  std::vector<std::string> names;
  std::string list;
  for (const Field& field : fields) {
    names.push_back(field.name);
    list += (list.empty() ? "" : ", ") + field.name;
  }
  const std::string close = closest(name, names);
  throw Error(ErrorCode::data, "",
              cat(owner, " has no field \"", name, "\"; it has ", list.empty() ? "none" : list,
                  close.empty() ? "" : cat(" (did you mean ", close, "?)")));
}

Random::Random(uint64_t seed, int64_t epoch, int64_t index)
    : key_(mix(mix(seed, hash_name("sample")), static_cast<uint64_t>(epoch))), index_(index) {}

uint32_t Random::operator()() {
  if (drawn_ % 4 == 0) {
    const uint64_t index = static_cast<uint64_t>(index_);
    const PhiloxBlock block =
        philox(key_, {drawn_ / 4, 0, static_cast<uint32_t>(index), static_cast<uint32_t>(index >> 32)});
    std::copy(block.begin(), block.end(), block_);
  }
  return block_[drawn_++ % 4];
}

float Random::uniform() { return brisk::uniform((*this)()); }

bool Random::chance(double p) { return bernoulli((*this)(), std::clamp(p, 0.0, 1.0)); }

// D. Lemire, "Fast random integer generation in an interval", 2019: a product's high word, rejecting the uneven rest.
int64_t Random::integer(int64_t n) {
  if (n < 1) throw Error(ErrorCode::option, cat("integer(", n, ")"), "the count of values must be at least 1");
  __extension__ using Wide = unsigned __int128;
  const uint64_t range = static_cast<uint64_t>(n);
  const uint64_t uneven = (uint64_t{0} - range) % range;
  for (;;) {
    const uint64_t high = (*this)();
    const Wide product = Wide{high << 32 | (*this)()} * range;
    if (static_cast<uint64_t>(product) >= uneven) return static_cast<int64_t>(product >> 64);
  }
}

float Random::normal() {
  const uint32_t first = (*this)();
  return brisk::normal(first, (*this)())[0];
}

Batch::Batch(std::vector<Field> fields, int64_t capacity) : fields_(std::move(fields)), capacity_(capacity) {
  if (capacity < 1) throw Error(ErrorCode::option, cat("batch = ", capacity), "must be at least 1");
  for (const Field& field : fields_) {
    Shape shape = {capacity};
    for (const int64_t size : field.shape) shape.append(size);
    storage_.emplace_back(shape, field.dtype);
  }
  indices_.resize(static_cast<size_t>(capacity));
}

ConstView Batch::operator[](std::string_view name) const {
  return ConstView(storage_[static_cast<size_t>(data::field_number(fields_, name, "the batch"))]).rows(0, size_);
}

void Batch::assign(std::span<const int64_t> indices) {
  if (static_cast<int64_t>(indices.size()) > capacity_) {
    throw Error(ErrorCode::data, cat(indices.size(), " samples"), cat("this batch holds at most ", capacity_));
  }
  if (indices.data() != indices_.data()) std::copy(indices.begin(), indices.end(), indices_.begin());
  size_ = static_cast<int64_t>(indices.size());
}

View Batch::slot(int64_t field) { return View(storage_.at(static_cast<size_t>(field))).rows(0, size_); }

View Sample::operator[](std::string_view name) const {
  const int64_t number = data::field_number(batch_->fields(), name, "the sample");
  const View row = batch_->slot(number).rows(row_, 1);
  return {row.raw(), batch_->fields()[static_cast<size_t>(number)].shape, row.dtype()};
}

Dataset::~Dataset() = default;

std::string Dataset::name() const {
  const char* mangled = typeid(*this).name();
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> plain(abi::__cxa_demangle(mangled, nullptr, nullptr, &status),
                                                     std::free);
  const std::string full = status == 0 ? plain.get() : mangled;
  // Without namespaces, as the class is called where it was written.
  const size_t colon = full.rfind("::");
  return colon == std::string::npos ? full : full.substr(colon + 2);
}

namespace {
// The text of an exception without the head that it will get anew.
std::string reason_of(const std::exception& error) {
  const std::string text = error.what();
  const size_t end = text.find("] ");
  return text.rfind("Error [", 0) == 0 && end != std::string::npos ? text.substr(end + 2) : text;
}
}  // namespace

bool data::is_in_memory(const Dataset& dataset) { return typeid(dataset) == typeid(InMemoryDataset); }

bool data::fill_rows(const Dataset& dataset, uint64_t seed, int64_t epoch, Batch& out, int64_t& row, int64_t last,
                     const std::atomic<bool>& abandon) {
  if (is_in_memory(dataset)) {
    static_cast<const InMemoryDataset&>(dataset).rows(out.indices(), out);
    row = last;
    return true;
  }
  for (; row < last; ++row) {
    if (abandon.load(std::memory_order_relaxed)) return false;
    const int64_t index = out.indices()[static_cast<size_t>(row)];
    Sample sample(out, row);
    Random random(seed, epoch, index);
    try {
      dataset.read(index, sample, random);
    } catch (const std::exception& error) {
      throw Error(ErrorCode::data, cat("sample ", index, " of ", dataset.name()), reason_of(error));
    } catch (...) {
      throw Error(ErrorCode::data, cat("sample ", index, " of ", dataset.name()),
                  "an exception that is no std::exception");
    }
  }
  return true;
}

}  // namespace brisk

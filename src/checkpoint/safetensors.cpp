// Reading and writing .safetensors files.
#include "checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/stored_types.h"
#include "core/text.h"

namespace brisk::checkpoint {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian and its bytes are copied");

constexpr int64_t kLengthBytes = 8;
constexpr int64_t kChunkElements = int64_t{1} << 16;

/// Zip archives begin with PK\3\4, pickles of protocol 2 to 5 with \x80 and the protocol.
bool looks_like_pickle(const std::array<unsigned char, kLengthBytes>& begin) {
  return std::memcmp(begin.data(), "PK\3\4", 4) == 0 || (begin[0] == 0x80 && begin[1] >= 2 && begin[1] <= 5);
}

std::string read_header(InputFile& file) {
  const auto fail = [&](const std::string& message) { throw Error(ErrorCode::file, file.path(), message); };
  std::array<unsigned char, kLengthBytes> begin = {};
  const int64_t got = file.read(begin.data(), kLengthBytes);
  uint64_t length = 0;
  std::memcpy(&length, begin.data(), sizeof(length));
  const bool too_long = length > static_cast<uint64_t>(kMostHeaderBytes);
  if ((got < kLengthBytes || too_long) && looks_like_pickle(begin)) {
    fail(
        "is a zip archive or a pickle, as PyTorch's .pt files are, not .safetensors; write it in Python with "
        "safetensors.torch.save_file(net.state_dict(), \"from_torch.safetensors\")");
  }
  if (got < kLengthBytes) fail(cat("has ", got, " bytes; a .safetensors file begins with 8 bytes of header length"));
  if (too_long) fail(cat("declares a header of ", length, " bytes; at most ", kMostHeaderBytes, " are allowed"));
  const auto bytes = static_cast<int64_t>(length);
  if (bytes > file.size() - kLengthBytes) {
    fail(cat("declares a header of ", bytes, " bytes, but only ", file.size() - kLengthBytes, " follow; is it cut?"));
  }
  std::string json(length, '\0');
  if (file.read(json.data(), bytes) != bytes) fail("ended while its header was read");
  return json;
}

float from_half(uint16_t half) {
  const uint32_t sign = uint32_t{half & 0x8000u} << 16;
  const uint32_t exponent = half >> 10 & 0x1fu;
  const uint32_t fraction = half & 0x3ffu;
  if (exponent == 0) {  // zero or subnormal: a multiple of 2^-24, exact in f32
    const float value = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -value : value;
  }
  const uint32_t widened = exponent == 0x1f ? 0xffu : exponent + 112;  // the biases are 15 and 127
  return std::bit_cast<float>(sign | widened << 23 | fraction << 13);
}

template <class T>
T element(const char* bytes, int64_t index) {
  T out;
  std::memcpy(&out, bytes + index * int64_t{sizeof(T)}, sizeof(T));
  return out;
}

[[noreturn]] void refuse_double(const StoredTensor& tensor, int64_t index, double value) {
  throw Error(ErrorCode::weights, tensor.name,
              cat("element ", index, " of ", tensor.shape, " is ", value, ", which f32 cannot hold"));
}

void convert(const StoredTensor& tensor, int64_t first, const char* bytes, int64_t count, float* out) {
  if (tensor.dtype == "F16") {
    for (int64_t i = 0; i < count; ++i) out[i] = from_half(element<uint16_t>(bytes, i));
  } else if (tensor.dtype == "BF16") {
    for (int64_t i = 0; i < count; ++i) out[i] = std::bit_cast<float>(uint32_t{element<uint16_t>(bytes, i)} << 16);
  } else {
    for (int64_t i = 0; i < count; ++i) {
      const auto value = element<double>(bytes, i);
      out[i] = static_cast<float>(value);
      if (std::isfinite(value) && !std::isfinite(out[i])) refuse_double(tensor, first + i, value);
    }
  }
}

std::string header_text(const std::string& path, const std::vector<StoredTensor>& tensors, const Metadata& metadata) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  for (const StoredTensor& tensor : tensors) {
    nlohmann::ordered_json entry;
    entry["dtype"] = tensor.dtype;
    entry["shape"] = std::vector<int64_t>(tensor.shape.begin(), tensor.shape.end());
    entry["data_offsets"] = {tensor.begin, tensor.end};
    header.push_back({tensor.name, std::move(entry)});
  }
  try {
    std::string text = header.dump();
    text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
    return text;
  } catch (const nlohmann::json::exception& error) {
    throw Error(ErrorCode::file, path, cat("a name of a tensor is not UTF-8: ", error.what()));
  }
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(path.find('\0') == std::string::npos
                ? path
                : throw Error(ErrorCode::file, path.c_str(), "the path goes on behind a NUL byte")) {
  const std::string json = read_header(file_);
  data_start_ = kLengthBytes + static_cast<int64_t>(json.size());
  header_ = parse_header(path, json, file_.size() - data_start_);
}

const StoredTensor* SafetensorsFile::find(std::string_view name) const {
  for (const StoredTensor& tensor : header_.tensors) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

void SafetensorsFile::read(const StoredTensor& tensor, int64_t offset, void* out, int64_t count) {
  file_.seek(data_start_ + tensor.begin + offset);
  if (file_.read(out, count) != count) {
    throw Error(ErrorCode::file, path(), cat("ended while tensor ", quote_name(tensor.name), " was read"));
  }
}

Tensor SafetensorsFile::read_f32(const StoredTensor& tensor) {
  if (!is_stored_float(tensor.dtype)) {
    throw Error(ErrorCode::weights, tensor.name, cat("holds ", tensor.dtype, "; F32, F16, BF16 and F64 become f32"));
  }
  Tensor out(tensor.shape);
  const int64_t count = tensor.shape.count();
  if (tensor.dtype == "F32") {
    read(tensor, 0, out.data<float>(), tensor.end - tensor.begin);
    return out;
  }
  const int64_t width = tensor.dtype == "F64" ? 8 : 2;
  std::vector<char> bytes(static_cast<size_t>(std::min(count, kChunkElements) * width));
  for (int64_t first = 0; first < count; first += kChunkElements) {
    const int64_t part = std::min(count - first, kChunkElements);
    read(tensor, first * width, bytes.data(), part * width);
    convert(tensor, first, bytes.data(), part, out.data<float>() + first);
  }
  return out;
}

SafetensorsWriter::SafetensorsWriter(const std::string& path, std::vector<StoredTensor> tensors,
                                     const Metadata& metadata)
    : file_(path), tensors_(std::move(tensors)) {
  std::set<std::string_view> names = {"__metadata__"};
  for (StoredTensor& tensor : tensors_) {
    if (!names.insert(tensor.name).second) {
      throw Error(ErrorCode::file, path,
                  cat("tensor ", quote_name(tensor.name),
                      tensor.name == "__metadata__" ? ": the name is the format's own" : " is given twice"));
    }
    tensor.end = stored_bytes(path, tensor);
  }
  std::sort(tensors_.begin(), tensors_.end(), [](const StoredTensor& a, const StoredTensor& b) {
    const int left = find_stored_type(a.dtype)->rank, right = find_stored_type(b.dtype)->rank;
    return left != right ? left > right : a.name < b.name;
  });
  for (StoredTensor& tensor : tensors_) {
    tensor.begin = data_bytes_;
    if (__builtin_add_overflow(data_bytes_, tensor.end, &data_bytes_)) {
      throw Error(ErrorCode::file, path, "the tensors together do not fit 63 bits");
    }
    tensor.end = data_bytes_;
  }
  const std::string json = header_text(path, tensors_, metadata);
  const auto length = static_cast<uint64_t>(json.size());
  if (length > static_cast<uint64_t>(kMostHeaderBytes)) {
    throw Error(ErrorCode::file, path, cat("needs a header of ", length, " bytes; ", kMostHeaderBytes, " are allowed"));
  }
  file_.write(&length, kLengthBytes);
  file_.write(json.data(), static_cast<int64_t>(json.size()));
}

void SafetensorsWriter::write(const void* bytes, int64_t count) {
  if (count > data_bytes_ - written_) {
    throw Error(ErrorCode::file, file_.path(), cat("more than the declared ", data_bytes_, " bytes were given"));
  }
  file_.write(bytes, count);
  written_ += count;
}

void SafetensorsWriter::finish() {
  if (written_ != data_bytes_) {
    throw Error(ErrorCode::file, file_.path(), cat(written_, " of ", data_bytes_, " bytes were given"));
  }
  file_.commit();
}

}  // namespace brisk::checkpoint

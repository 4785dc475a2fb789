// The .safetensors format: 8 bytes header length (little-endian), a JSON header, the bytes of the tensors without gaps.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "brisk/tensor.h"
#include "checkpoint/new_file.h"
#include "core/file.h"

namespace brisk::checkpoint {

/// The longest header that is read or written, as in the format's reference.
constexpr int64_t kMostHeaderBytes = 100'000'000;

struct StoredTensor {
  std::string name;
  std::string dtype;  ///< the format's name: "F32"
  Shape shape;
  int64_t begin = 0;  ///< bytes from the start of the data
  int64_t end = 0;
};
using Metadata = std::map<std::string, std::string>;

/// The format's name of an element type.
const char* stored_name(DType dtype);
/// F32, F16, BF16, F64: what read_f32 converts.
bool is_stored_float(std::string_view dtype);
/// A name of a file for messages: unprintable bytes as \xNN, cut when long; then the same in quotes.
std::string readable_name(std::string_view text);
std::string quote_name(std::string_view text);

/// What a header declares, before a byte of the file's tensors is read. Tensors are in the order of their bytes.
struct Header {
  Metadata metadata;
  std::vector<StoredTensor> tensors;
};
/// Parses and checks: strict JSON, each key once, known types, shapes whose size fits, ranges that follow each other
/// and fill `data_bytes` exactly. Throws Error [file] naming path, tensor, value and rule.
Header parse_header(const std::string& path, std::string_view json, int64_t data_bytes);

class SafetensorsFile {
 public:
  /// Reads the header; sizes are checked against the file before memory is taken. Throws Error [file].
  explicit SafetensorsFile(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const std::vector<StoredTensor>& tensors() const { return header_.tensors; }
  const Metadata& metadata() const { return header_.metadata; }
  /// nullptr: no such tensor.
  const StoredTensor* find(std::string_view name) const;
  /// Bytes [offset, offset + count) of the tensor as stored. Throws Error [file] when the file has become shorter.
  void read(const StoredTensor& tensor, int64_t offset, void* out, int64_t count);
  /// A float tensor as f32: F16 and BF16 exactly, F64 rounded to nearest. Throws Error [weights] for another type, and
  /// for a finite F64 beyond f32's range.
  Tensor read_f32(const StoredTensor& tensor);

 private:
  InputFile file_;
  Header header_;
  int64_t data_start_ = 0;
};

/// Writes a file tensor by tensor. Nothing is at `path` before finish().
class SafetensorsWriter {
 public:
  /// Lays the tensors out (begin and end are computed): larger element types first, then by name, as the reference
  /// does; writes the header. Throws Error [file] for a name twice, an unknown type, text that is not UTF-8.
  SafetensorsWriter(const std::string& path, std::vector<StoredTensor> tensors, const Metadata& metadata);
  /// In the order in which their bytes must be given.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  void write(const void* bytes, int64_t count);
  /// Throws Error [file] when too few or too many bytes were given.
  void finish();

 private:
  NewFile file_;
  std::vector<StoredTensor> tensors_;
  int64_t data_bytes_ = 0;
  int64_t written_ = 0;
};

}  // namespace brisk::checkpoint

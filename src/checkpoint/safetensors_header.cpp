// Headers of .safetensors files. The file is not believed: each rule of the format is checked, by name, with the value.
#include <algorithm>
#include <array>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>

#include "checkpoint/safetensors.h"
#include "checkpoint/stored_types.h"
#include "core/text.h"

namespace brisk::checkpoint {
namespace {

using Json = nlohmann::json;

/// Follows the JSON token by token, so that keys given twice are seen and nothing is built that is not a tensor.
class HeaderParser final : public Json::json_sax_t {
 public:
  HeaderParser(const std::string& path, Header& out) : path_(path), out_(out) {}

  bool start_object(std::size_t) override {
    if (at_ == At::start) {
      at_ = At::root;
    } else if (at_ == At::root) {
      at_ = in_metadata_ ? At::metadata : At::entry;
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(std::string& key) override {
    if (at_ == At::root) {
      in_metadata_ = key == "__metadata__";
      if (!names_.insert(key).second)
        fail(cat(in_metadata_ ? "" : "tensor ", quote_name(key), " stands twice in the header"));
      if (!in_metadata_) out_.tensors.push_back({key, {}, {}, 0, 0});
      seen_ = 0;
    } else if (at_ == At::metadata) {
      key_ = key;
      if (out_.metadata.count(key) != 0) fail(cat("__metadata__ has the key ", quote_name(key), " twice"));
    } else {
      entry_key(key);
    }
    return true;
  }

  bool end_object() override {
    if (at_ == At::entry) {
      for (size_t i = 0; i < kFields.size(); ++i) {
        if ((seen_ & 1u << i) == 0) fail(cat(subject(), " has no ", kFields[i]));
      }
    }
    at_ = at_ == At::root ? At::end : At::root;
    return true;
  }

  bool start_array(std::size_t) override {
    if (at_ != At::entry || field_ == kDtype) refuse("a list");
    at_ = At::list;
    offsets_ = 0;
    return true;
  }

  bool end_array() override {
    if (field_ == kOffsets && offsets_ != 2)
      fail(cat(subject(), ": data_offsets has ", offsets_, " numbers; it needs 2"));
    at_ = At::entry;
    return true;
  }

  bool number_unsigned(Json::number_unsigned_t value) override {
    if (at_ != At::list) refuse(std::to_string(value));
    if (value > static_cast<Json::number_unsigned_t>(INT64_MAX)) {
      fail(cat(subject(), ": ", kFields[field_], " has ", value, ", which does not fit 63 bits"));
    }
    number(static_cast<int64_t>(value));
    return true;
  }

  bool string(std::string& value) override {
    if (at_ == At::metadata) {
      out_.metadata[key_] = value;
    } else if (at_ == At::entry && field_ == kDtype) {
      if (find_stored_type(value) == nullptr) {
        fail(cat(subject(), ": dtype ", quote_name(value), " is unknown; the format has ", stored_type_names()));
      }
      out_.tensors.back().dtype = value;
    } else {
      refuse(quote_name(value));
    }
    return true;
  }

  bool null() override { return refuse("null"); }
  bool boolean(bool value) override { return refuse(value ? "true" : "false"); }
  bool number_integer(Json::number_integer_t value) override { return refuse(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { return refuse(text); }
  bool binary(Json::binary_t&) override { return refuse("bytes"); }
  bool parse_error(std::size_t position, const std::string&, const Json::exception& error) override {
    constexpr size_t kMostText = 200;  // the message repeats the last token, which may be the whole header
    fail(cat("the header is not JSON, byte ", position, ": ", std::string_view(error.what()).substr(0, kMostText)));
  }

 private:
  enum class At : uint8_t { start, root, metadata, entry, list, end };
  enum Field : uint8_t { kDtype, kShape, kOffsets };
  static constexpr std::array<const char*, 3> kFields = {"dtype", "shape", "data_offsets"};

  [[noreturn]] void fail(const std::string& message) const { throw Error(ErrorCode::file, path_, message); }
  std::string subject() const { return "tensor " + quote_name(out_.tensors.back().name); }

  [[noreturn]] bool refuse(const std::string& found) const {
    if (at_ == At::start) fail(cat("the header is ", found, "; it must be an object"));
    if (at_ == At::root && in_metadata_) fail(cat("__metadata__ is ", found, "; it must be an object of texts"));
    if (at_ == At::root) fail(cat(subject(), " is ", found, "; it must be an object"));
    if (at_ == At::metadata) fail(cat("__metadata__ ", quote_name(key_), " is ", found, "; it must be a text"));
    const char* const wanted = field_ == kDtype   ? "the name of an element type"
                               : at_ == At::entry ? "a list of numbers"
                                                  : "whole numbers from 0";
    fail(cat(subject(), ": ", kFields[field_], at_ == At::list ? " has " : " is ", found, "; allowed: ", wanted));
  }

  void entry_key(const std::string& key) {
    const auto found = std::find(kFields.begin(), kFields.end(), key);
    if (found == kFields.end()) fail(cat(subject(), " has the unknown key ", quote_name(key)));
    field_ = static_cast<Field>(found - kFields.begin());
    if ((seen_ & 1u << field_) != 0) fail(cat(subject(), " has ", key, " twice"));
    seen_ |= 1u << field_;
  }

  void number(int64_t value) {
    StoredTensor& tensor = out_.tensors.back();
    if (field_ == kShape) {
      if (tensor.shape.rank() == Shape::kMaximumRank) {
        fail(cat(subject(), ": shape has more than ", Shape::kMaximumRank, " dimensions"));
      }
      tensor.shape.append(value);
    } else if (++offsets_ <= 2) {
      (offsets_ == 1 ? tensor.begin : tensor.end) = value;
    }
  }

  const std::string& path_;
  Header& out_;
  At at_ = At::start;
  Field field_ = kDtype;
  bool in_metadata_ = false;
  unsigned seen_ = 0;  ///< fields of the current tensor, one bit each
  int64_t offsets_ = 0;
  std::string key_;
  std::set<std::string> names_;
};

/// Checks the ranges in the order of their bytes, and puts the tensors in that order.
void check_ranges(const std::string& path, std::vector<StoredTensor>& tensors, int64_t data_bytes) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
  });
  int64_t reached = 0;
  for (const StoredTensor& tensor : tensors) {
    const std::string subject =
        cat("tensor ", quote_name(tensor.name), ": data_offsets [", tensor.begin, ", ", tensor.end, "]");
    const auto fail = [&](const std::string& rule) { throw Error(ErrorCode::file, path, cat(subject, " ", rule)); };
    if (tensor.begin > tensor.end) fail("end before they begin");
    if (tensor.end > data_bytes) fail(cat("reach beyond the data, which has ", data_bytes, " bytes"));
    const int64_t needed = stored_bytes(path, tensor);
    if (tensor.end - tensor.begin != needed) {
      fail(cat("hold ", tensor.end - tensor.begin, " bytes; shape ", tensor.shape, " of ", tensor.dtype, " needs ",
               needed));
    }
    if (tensor.begin < reached) fail(cat("overlap the bytes before ", reached, " of another tensor"));
    if (tensor.begin > reached) fail(cat("leave a hole: the tensors before end at ", reached));
    reached = tensor.end;
  }
  if (reached != data_bytes) {
    throw Error(ErrorCode::file, path,
                cat(tensors.empty() ? "no tensor" : "the last tensor " + quote_name(tensors.back().name), " ends at ",
                    reached, ", the data has ", data_bytes, " bytes; the tensors must cover it exactly"));
  }
}

}  // namespace

std::string readable_name(std::string_view text) {
  constexpr size_t kMost = 80;
  std::string out;
  for (const char letter : text.substr(0, kMost)) {
    const auto code = static_cast<unsigned char>(letter);
    if (code >= 0x20 && code != 0x7f) {
      out += letter;
      continue;
    }
    char buffer[5];
    std::snprintf(buffer, sizeof(buffer), "\\x%02x", unsigned{code});
    out += buffer;
  }
  return out + (text.size() > kMost ? "..." : "");
}

std::string quote_name(std::string_view text) { return cat('"', readable_name(text), '"'); }

int64_t stored_bytes(const std::string& path, const StoredTensor& tensor) {
  const StoredType* const type = find_stored_type(tensor.dtype);
  const auto fail = [&](const std::string& rule) {
    throw Error(ErrorCode::file, path, cat("tensor ", quote_name(tensor.name), ": ", rule));
  };
  if (type == nullptr) fail(cat("dtype ", quote_name(tensor.dtype), " is unknown"));
  int64_t bits = 1;
  bool fits = true;
  for (const int64_t size : tensor.shape) fits = fits && !__builtin_mul_overflow(bits, size, &bits);
  fits = fits && !__builtin_mul_overflow(bits, int64_t{type->bits}, &bits);
  if (!fits) fail(cat("shape ", tensor.shape, " of ", tensor.dtype, " has a size that does not fit 63 bits"));
  if (bits % 8 != 0) fail(cat("shape ", tensor.shape, " of ", tensor.dtype, " does not end with a whole byte"));
  return bits / 8;
}

Header parse_header(const std::string& path, std::string_view json, int64_t data_bytes) {
  if (json.empty() || json.front() != '{') throw Error(ErrorCode::file, path, "the header does not begin with {");
  // The parser takes a NUL for the end of its input and would not look at what follows.
  const size_t nul = json.find('\0');
  if (nul != std::string_view::npos) throw Error(ErrorCode::file, path, cat("the header has a NUL, byte ", nul));
  Header out;
  HeaderParser parser(path, out);
  Json::sax_parse(json.begin(), json.end(), &parser);
  check_ranges(path, out.tensors, data_bytes);
  return out;
}

}  // namespace brisk::checkpoint

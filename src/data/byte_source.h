// The bytes of a file, unpacked when it is gzip (told by its first two bytes 1f 8b, whatever its name).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace brisk::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Bytes delivered: `count`, or fewer at the end only. Throws Error [file] for damaged or cut gzip data.
  virtual int64_t read(void* out, int64_t count) = 0;
  /// The most bytes the whole source can deliver, known before reading: exact for plain files.
  virtual int64_t most_bytes() const = 0;
  /// What is on disk.
  virtual int64_t file_bytes() const = 0;
  virtual bool packed() const = 0;
};

/// Throws Error [file].
std::unique_ptr<ByteSource> open_source(const std::string& path);

}  // namespace brisk::data

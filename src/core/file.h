// Files that are read: opened once, checked to be regular, every failure named with the path.
#pragma once

#include <cstdint>
#include <string>

namespace brisk {

class InputFile {
 public:
  /// Throws Error [file] with the path and the system's reason; also for folders, pipes and devices.
  explicit InputFile(std::string path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  int64_t size() const { return size_; }
  /// Bytes read: `count`, or fewer at the end of the file only. Throws Error [file].
  int64_t read(void* out, int64_t count);
  /// The next read starts at this byte.
  void seek(int64_t offset);

 private:
  std::string path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
};

/// True for a regular file that exists.
bool is_file(const std::string& path);

}  // namespace brisk

// A file that appears whole or not at all: written beside its place, synced, renamed.
#pragma once

#include <cstdint>
#include <string>

namespace brisk::checkpoint {

class NewFile {
 public:
  /// Makes an empty file in the folder of `path`. A link is followed to the file it names. Throws Error [file] for an
  /// empty path, one with a NUL, a folder, a device, a folder that is absent or may not be written.
  explicit NewFile(const std::string& path);
  /// Removes what was not committed.
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;

  const std::string& path() const { return path_; }
  /// Appends. Throws Error [file] with the system's reason, for example a full disk.
  void write(const void* bytes, int64_t count);
  /// Syncs the file, puts it in its place (a new inode, whatever was there) and syncs the folder. Throws Error [file].
  void commit();

 private:
  [[noreturn]] void fail(const char* what, int error) const;
  std::string path_;
  std::string target_;  ///< path_ with links followed
  std::string folder_;
  std::string partial_;  ///< empty once it is in its place
  int descriptor_ = -1;
};

}  // namespace brisk::checkpoint

// Whole files or none.
#include "checkpoint/new_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "brisk/error.h"
#include "core/text.h"

namespace brisk::checkpoint {
namespace {

std::string folder_of(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

NewFile::NewFile(const std::string& path) : path_(path), target_(path) {
  if (path.empty()) throw Error(ErrorCode::file, "path \"\"", "is empty; give the name of a file");
  if (path.find('\0') != std::string::npos) {
    throw Error(ErrorCode::file, path.c_str(), "the path goes on behind a NUL byte; it would name another file");
  }
  if (path.back() == '/') throw Error(ErrorCode::file, path, "is a folder; give the name of a file");
  struct stat status;
  bool exists = lstat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail("cannot be written", errno);
  if (exists && S_ISLNK(status.st_mode)) {
    const std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
    if (!real) fail("is a link that leads nowhere", errno);
    target_ = real.get();
    exists = stat(target_.c_str(), &status) == 0;
  }
  // Renaming onto a device would replace the device.
  if (exists && !S_ISREG(status.st_mode)) {
    throw Error(ErrorCode::file, path,
                S_ISDIR(status.st_mode) ? "is a folder; give the name of a file"
                                        : "is a device or a pipe; give the name of a file");
  }
  folder_ = folder_of(target_);
  // Short, so that a name of the greatest length has a sibling; no other process or thread makes the same one.
  static std::atomic<uint64_t> count{0};
  do {
    partial_ = cat(folder_, "/.brisk-", getpid(), "-", count.fetch_add(1), ".partial");
    descriptor_ = ::open(partial_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  if (descriptor_ < 0) {
    partial_.clear();
    fail(cat("cannot make a file in the folder ", folder_).c_str(), errno);
  }
}

NewFile::~NewFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!partial_.empty()) ::unlink(partial_.c_str());
}

void NewFile::fail(const char* what, int error) const {
  throw Error(ErrorCode::file, path_, cat(what, ": ", errno_text(error)));
}

void NewFile::write(const void* bytes, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 30;  // one call of the system writes no more than 2 GB
  int64_t done = 0;
  while (done < count) {
    const ssize_t written = ::write(descriptor_, static_cast<const char*>(bytes) + done,
                                    static_cast<size_t>(std::min(count - done, kMost)));
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("cannot be written, nothing was kept", errno);
    done += written;
  }
}

void NewFile::commit() {
  if (fsync(descriptor_) != 0) fail("cannot be synced to the disk, nothing was kept", errno);
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0) fail("cannot be written, nothing was kept", errno);
  if (std::rename(partial_.c_str(), target_.c_str()) != 0) fail("cannot be put in its place", errno);
  partial_.clear();
  const int folder = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;  // a folder that may be written and not read: the file is in its place
  const int synced = fsync(folder);
  const int error = errno;
  ::close(folder);
  // Some file systems cannot sync a folder and say EINVAL.
  if (synced != 0 && error != EINVAL) fail("is in its place, but its folder cannot be synced", error);
}

}  // namespace brisk::checkpoint

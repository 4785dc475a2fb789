// Files that are read.
#include "core/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "brisk/error.h"
#include "core/text.h"

namespace brisk {

InputFile::InputFile(std::string path) : path_(std::move(path)) {
  // Non-blocking: opening a pipe that nobody writes must not wait for ever; for regular files it changes nothing.
  descriptor_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) throw Error(ErrorCode::file, path_, cat("cannot open: ", errno_text(errno)));
  struct stat status;
  if (fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    throw Error(ErrorCode::file, path_, "is not a regular file");
  }
  size_ = status.st_size;
}

InputFile::~InputFile() { ::close(descriptor_); }

int64_t InputFile::read(void* out, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 30;  // one call of the system reads no more than 2 GB
  int64_t done = 0;
  while (done < count) {
    const size_t wanted = static_cast<size_t>(std::min(count - done, kMost));
    const ssize_t got = ::read(descriptor_, static_cast<char*>(out) + done, wanted);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(ErrorCode::file, path_, cat("cannot read: ", errno_text(errno)));
    if (got == 0) break;
    done += got;
  }
  return done;
}

void InputFile::seek(int64_t offset) {
  if (lseek(descriptor_, offset, SEEK_SET) < 0) {
    throw Error(ErrorCode::file, path_, cat("cannot seek: ", errno_text(errno)));
  }
}

bool is_file(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

}  // namespace brisk

// Plain files and gzip files behind one read().
#include "data/byte_source.h"

#include <zlib.h>

#include <algorithm>
#include <vector>

#include "brisk/error.h"
#include "core/file.h"
#include "core/text.h"

namespace brisk::data {
namespace {

class PlainSource : public ByteSource {
 public:
  explicit PlainSource(std::unique_ptr<InputFile> file) : file_(std::move(file)) {}
  int64_t read(void* out, int64_t count) override { return file_->read(out, count); }
  int64_t most_bytes() const override { return file_->size(); }
  int64_t file_bytes() const override { return file_->size(); }
  bool packed() const override { return false; }

 private:
  std::unique_ptr<InputFile> file_;
};

class GzipSource : public ByteSource {
 public:
  explicit GzipSource(std::unique_ptr<InputFile> file) : file_(std::move(file)), input_(kInputBytes) {
    constexpr int kGzipOnly = 16;  // added to the window bits: zlib's way to say that a gzip header must come
    if (inflateInit2(&stream_, kGzipOnly + MAX_WBITS) != Z_OK) {
      throw Error(ErrorCode::memory, file_->path(), "no memory to unpack gzip");
    }
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  int64_t read(void* out, int64_t count) override {
    int64_t done = 0;
    while (done < count && !ended_) done += inflate_some(static_cast<uint8_t*>(out) + done, count - done);
    return done;
  }
  // Deflate's densest code is 258 bytes for two bits, so 1 byte never becomes more than 1032.
  int64_t most_bytes() const override { return file_->size() > INT64_MAX / 1032 ? INT64_MAX : file_->size() * 1032; }
  int64_t file_bytes() const override { return file_->size(); }
  bool packed() const override { return true; }

 private:
  static constexpr size_t kInputBytes = size_t{1} << 16;

  void refill() {
    stream_.next_in = input_.data();
    stream_.avail_in = static_cast<uInt>(file_->read(input_.data(), static_cast<int64_t>(input_.size())));
  }

  int64_t inflate_some(uint8_t* out, int64_t count) {
    if (stream_.avail_in == 0) refill();
    stream_.next_out = out;
    const uInt room = static_cast<uInt>(std::min<int64_t>(count, 1 << 30));
    stream_.avail_out = room;
    const bool dry = stream_.avail_in == 0;
    const int result = inflate(&stream_, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      finish_member();
    } else if (dry && result == Z_BUF_ERROR) {
      throw Error(ErrorCode::file, file_->path(),
                  cat("the gzip data ends too early: cut after ", grouped(file_->size()), " bytes"));
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      throw Error(ErrorCode::file, file_->path(),
                  cat("the gzip data is damaged: ", stream_.msg ? stream_.msg : "unknown code"));
    }
    return room - stream_.avail_out;
  }

  // A gzip file may be several members one after the other; anything else behind the end is not part of it.
  void finish_member() {
    if (stream_.avail_in == 0) refill();
    if (stream_.avail_in == 0) {
      ended_ = true;
    } else if (*stream_.next_in != 0x1f) {
      throw Error(ErrorCode::file, file_->path(), "extra bytes follow the end of the gzip data");
    } else {
      inflateReset(&stream_);
    }
  }

  std::unique_ptr<InputFile> file_;
  std::vector<uint8_t> input_;
  z_stream stream_ = {};
  bool ended_ = false;
};

}  // namespace

std::unique_ptr<ByteSource> open_source(const std::string& path) {
  auto file = std::make_unique<InputFile>(path);
  uint8_t magic[2] = {};
  const int64_t got = file->read(magic, 2);
  file->seek(0);
  if (got == 2 && magic[0] == 0x1f && magic[1] == 0x8b) return std::make_unique<GzipSource>(std::move(file));
  return std::make_unique<PlainSource>(std::move(file));
}

}  // namespace brisk::data

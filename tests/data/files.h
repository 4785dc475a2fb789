// Small files that tests write: a folder of their own, IDX bytes, gzip bytes.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace brisk::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    static int count = 0;
    path_ = std::filesystem::path(testing::TempDir()) /
            ("brisk_data_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(path_);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string path() const { return path_.string(); }
  std::string put(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

inline std::string big_endian(uint32_t value) {
  return {static_cast<char>(value >> 24), static_cast<char>(value >> 16), static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

/// 00 00, type, rank, sizes.
inline std::string idx_header(const std::vector<uint32_t>& sizes, char type = 0x08) {
  std::string out = {0, 0, type, static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes) out += big_endian(size);
  return out;
}

/// `count` bytes 0, 1, 2, ...
inline std::string counting(size_t count) {
  std::string out(count, '\0');
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<char>(i);
  return out;
}

/// One gzip member. With a name its header begins 1f 8b 08 08, as the gzip program writes it.
inline std::string gzip(const std::string& bytes, std::string name = "train-images") {
  z_stream stream = {};
  gz_header header = {};
  header.name = reinterpret_cast<Bytef*>(name.data());
  if (deflateInit2(&stream, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    throw std::runtime_error("zlib");
  deflateSetHeader(&stream, &header);
  std::string out(deflateBound(&stream, bytes.size()) + name.size() + 64, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("zlib");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

}  // namespace brisk::test

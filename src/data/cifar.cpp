// CIFAR-10 and CIFAR-100 as their binary files hold them: records of label bytes and 3 x 32 x 32 pixel bytes.
#include <algorithm>
#include <cstdlib>

#include "brisk/data.h"
#include "core/file.h"
#include "core/text.h"
#include "data/byte_source.h"

namespace brisk::data {
namespace {

constexpr int64_t kPixels = 3 * 32 * 32;

// One set: its folder, its files and what stands before the pixels of a record.
struct Layout {
  const char* name;
  const char* folder;
  std::vector<std::string> train;
  std::vector<std::string> test;
  std::vector<int> classes;  // of each label byte; the last one is the target
  int64_t record_bytes() const { return static_cast<int64_t>(classes.size()) + kPixels; }
};

Layout cifar10_layout() {
  return {"cifar10",
          "cifar-10-batches-bin",
          {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"},
          {"test_batch.bin"},
          {10}};
}
Layout cifar100_layout() { return {"cifar100", "cifar-100-binary", {"train.bin"}, {"test.bin"}, {20, 100}}; }

// The files' records, one behind the other.
class Records {
 public:
  explicit Records(const Layout& layout) : layout_(layout) {}

  void append(const std::string& path) {
    const std::unique_ptr<ByteSource> source = open_source(path);
    const int64_t size = layout_.record_bytes();
    if (!source->packed()) check_size(path, source->file_bytes());
    constexpr int64_t kBlockRecords = 512;
    std::vector<uint8_t> block(static_cast<size_t>(size * kBlockRecords));
    int64_t bytes = 0;
    for (;;) {
      const int64_t got = source->read(block.data(), static_cast<int64_t>(block.size()));
      for (int64_t at = 0; at + size <= got; at += size) add(path, block.data() + at, (bytes + at) / size);
      bytes += got;
      if (got < static_cast<int64_t>(block.size())) break;
    }
    check_size(path, bytes);
  }

  InMemoryDataset set(const char* name) {
    const int64_t count = static_cast<int64_t>(labels_.size());
    InMemoryDataset out;
    out.add_pixels("input", Tensor(std::move(pixels_), {count, 3, 32, 32}));
    out.add("target", Tensor(std::move(labels_), {count}));
    out.set_name(name);
    return out;
  }

 private:
  void check_size(const std::string& path, int64_t bytes) const {
    const int64_t size = layout_.record_bytes();
    if (bytes > 0 && bytes % size == 0) return;
    throw Error(ErrorCode::file, path,
                cat("has ", grouped(bytes), " bytes; ", layout_.name, " needs a whole number of records of ",
                    grouped(size), " bytes, at least one"));
  }

  void add(const std::string& path, const uint8_t* record, int64_t number) {
    for (size_t i = 0; i < layout_.classes.size(); ++i) {
      if (record[i] < layout_.classes[i]) continue;
      throw Error(ErrorCode::file, path,
                  cat("record ", number, ": label byte ", i, " is ", static_cast<int>(record[i]), ", allowed is 0 to ",
                      layout_.classes[i] - 1, "; these are not the binary files of ", layout_.name));
    }
    const uint8_t* first = record + layout_.classes.size();
    labels_.push_back(first[-1]);
    pixels_.insert(pixels_.end(), first, first + kPixels);
  }

  const Layout& layout_;
  std::vector<uint8_t> pixels_;
  std::vector<int64_t> labels_;
};

std::vector<std::string> folders_to_try(const Layout& layout, const std::string& folder) {
  const char* chosen = std::getenv("BRISK_DATA");
  const std::string base = !folder.empty() ? folder : chosen ? chosen : "";
  if (base.empty()) return {};
  return {base, cat(base, "/", layout.folder)};
}

// "<folder>/<name>", "<folder>/<name>.gz", or "" when there is neither.
std::string find_in(const std::string& folder, const std::string& name) {
  for (const char* ending : {"", ".gz"}) {
    std::string path = cat(folder, "/", name, ending);
    if (is_file(path)) return path;
  }
  return {};
}

TrainTest read_cifar(const Layout& layout, const std::string& folder) {
  const std::vector<std::string> folders = folders_to_try(layout, folder);
  std::string names;
  std::string tried;
  for (const auto* part : {&layout.train, &layout.test}) {
    for (const std::string& name : *part) names += (names.empty() ? "" : ", ") + name;
  }
  for (const std::string& candidate : folders) {
    tried += (tried.empty() ? "" : ", ") + candidate;
    const auto lacks = [&](const std::string& name) { return find_in(candidate, name).empty(); };
    if (std::any_of(layout.train.begin(), layout.train.end(), lacks)) continue;
    if (std::any_of(layout.test.begin(), layout.test.end(), lacks)) continue;
    Records train(layout);
    for (const std::string& name : layout.train) train.append(find_in(candidate, name));
    Records test(layout);
    for (const std::string& name : layout.test) test.append(find_in(candidate, name));
    return {train.set("train"), test.set("test")};
  }
  throw Error(ErrorCode::file, layout.name,
              cat("the files ", names, " (plain or .gz) are not together in any of: ",
                  tried.empty() ? "no folder, as none is given and BRISK_DATA is not set" : tried,
                  "; unpack the set's binary version, which is never downloaded, and give its folder"));
}

}  // namespace

TrainTest cifar10(const std::string& folder) { return read_cifar(cifar10_layout(), folder); }
TrainTest cifar100(const std::string& folder) { return read_cifar(cifar100_layout(), folder); }

}  // namespace brisk::data

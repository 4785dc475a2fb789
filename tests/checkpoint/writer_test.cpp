// Files that are written: their bytes, and that they appear whole or not at all.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>

#include "checkpoint/safetensors.h"
#include "checkpoint/stored.h"
#include "data/files.h"

namespace brisk::checkpoint {
namespace {

using test::bytes_of;
using test::content;
using test::names_in;
using test::refusal;
using test::TemporaryFolder;

struct Named {
  std::string name;
  ConstView value;
};

void write(const std::string& path, const std::vector<Named>& tensors, const Metadata& metadata = {}) {
  std::vector<StoredTensor> table;
  for (const Named& tensor : tensors) {
    table.push_back({tensor.name, stored_name(tensor.value.dtype()), tensor.value.shape(), 0, 0});
  }
  SafetensorsWriter writer(path, std::move(table), metadata);
  for (const StoredTensor& tensor : writer.tensors()) {
    for (const Named& given : tensors) {
      if (given.name == tensor.name) writer.write(given.value.raw(), tensor.end - tensor.begin);
    }
  }
  writer.finish();
}

std::vector<float> values_in(const std::string& path, const std::string& name) {
  SafetensorsFile file(path);
  const Tensor tensor = file.read_f32(*file.find(name));
  return {tensor.data<float>(), tensor.data<float>() + tensor.count()};
}

ino_t inode(const std::string& path) {
  struct stat status = {};
  EXPECT_EQ(stat(path.c_str(), &status), 0);
  return status.st_ino;
}

TEST(SafetensorsWriter, TheSameBytesAsTheReference) {  // safetensors.numpy.save of version 0.8 made the header
  const TemporaryFolder folder;
  const std::vector<float> a = {1, 2}, b = {3, 4};
  const std::vector<int64_t> n = {5};
  write(folder.path() + "/x", {{"b", view(b, {2})}, {"a", view(a, {1, 2})}, {"n", view(n, {})}}, {{"format", "pt"}});
  const std::string header = R"({"__metadata__":{"format":"pt"},"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
                             R"("a":{"dtype":"F32","shape":[1,2],"data_offsets":[8,16]},)"
                             R"("b":{"dtype":"F32","shape":[2],"data_offsets":[16,24]}}     )";
  EXPECT_EQ(content(folder.path() + "/x"), test::stored(header, bytes_of(n) + bytes_of(a) + bytes_of(b)));
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"x"});
}

TEST(SafetensorsWriter, DataBeginsAtAMultipleOfEight) {
  const TemporaryFolder folder;
  const std::vector<float> value = {1};
  std::string name;
  for (int i = 0; i < 17; ++i) {
    write(folder.path() + "/x", {{name += 'n', view(value, {1})}});
    EXPECT_EQ((content(folder.path() + "/x").size() - sizeof(float)) % 8, 0u);
    EXPECT_EQ(values_in(folder.path() + "/x", name), value);
  }
}

TEST(SafetensorsWriter, SF09ViewsOfOneMemoryAreWrittenByValue) {
  const TemporaryFolder folder;
  const std::vector<float> data = {1, 2, 3, 4, 5, 6};
  const ConstView all = view(data, {3, 2});
  write(folder.path() + "/x",
        {{"all", all}, {"same", all}, {"slice", all.rows(1, 1)}, {"tail", all.rows(1, 2)}, {"none", all.rows(3, 0)}});
  EXPECT_EQ(values_in(folder.path() + "/x", "all"), data);
  EXPECT_EQ(values_in(folder.path() + "/x", "same"), data);
  EXPECT_EQ(values_in(folder.path() + "/x", "slice"), (std::vector<float>{3, 4}));
  EXPECT_EQ(values_in(folder.path() + "/x", "tail"), (std::vector<float>{3, 4, 5, 6}));
  EXPECT_TRUE(values_in(folder.path() + "/x", "none").empty());
}

TEST(SafetensorsWriter, SF08AMappedFileStaysAsItWas) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/x";
  const std::vector<float> old_values(1000, 7), values(1000, 9);
  write(path, {{"w", view(old_values, {1000})}});
  const std::string before = content(path);
  const ino_t old_inode = inode(path);
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const mapped = mmap(nullptr, before.size(), PROT_READ, MAP_SHARED, descriptor, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  SafetensorsFile file(path);  // also a reader that has the old file open
  write(path, {{"w", view(values, {1000})}});
  EXPECT_EQ(std::memcmp(mapped, before.data(), before.size()), 0);
  EXPECT_EQ(file.read_f32(*file.find("w")).data<float>()[999], 7);
  EXPECT_EQ(values_in(path, "w"), values);
  EXPECT_NE(inode(path), old_inode);
  const float* const still = reinterpret_cast<const float*>(static_cast<const char*>(mapped) + before.size()) - 1000;
  write(path, {{"w", ConstView(still, {1000})}});  // from the old file's mapping over its successor
  EXPECT_EQ(content(path), before);
  munmap(mapped, before.size());
  close(descriptor);
}

TEST(SafetensorsWriter, CK26NamesStayNames) {
  const TemporaryFolder outer;
  const std::string folder = outer.path() + "/inner";
  std::filesystem::create_directory(folder);
  const std::vector<float> value = {1, 2};
  const std::vector<std::string> names = {
      "../../x", "val/loss", "a:b", std::string(300, 'n'), "", std::string("a\0b", 3)};
  std::vector<Named> tensors;
  for (const std::string& name : names) tensors.push_back({name, view(value, {2})});
  write(folder + "/w", tensors);
  for (const std::string& name : names) EXPECT_EQ(values_in(folder + "/w", name), value) << name;
  EXPECT_EQ(names_in(folder), std::set<std::string>{"w"});
  EXPECT_EQ(names_in(outer.path()), std::set<std::string>{"inner"});
  write(folder + "/a:b", tensors);
  for (const std::string& path : {folder + "/" + std::string(300, 'n'), std::string(), folder + "/", folder,
                                  outer.path() + std::string("/x\0y", 4), folder + "/no/such"}) {
    EXPECT_NE(refusal([&] { write(path, tensors); }, ErrorCode::file), "") << path;
  }
  EXPECT_NE(refusal([&] { SafetensorsFile file(folder + std::string("/w\0y", 4)); }, ErrorCode::file), "");
  EXPECT_EQ(names_in(folder), (std::set<std::string>{"a:b", "w"}));
  EXPECT_EQ(names_in(outer.path()), std::set<std::string>{"inner"});
}

TEST(SafetensorsWriter, TheLongestNameOfAFileIsWritten) {
  const TemporaryFolder folder;
  const std::vector<float> value = {1};
  const std::string name(255, 'n');
  write(folder.path() + "/" + name, {{"w", view(value, {1})}});
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{name});
}

TEST(SafetensorsWriter, LinksAreFollowedAndDevicesLeftAlone) {
  const TemporaryFolder folder;
  const std::vector<float> value = {1};
  const std::string target = folder.put("real/w", "old"), link = folder.path() + "/latest";
  std::filesystem::create_symlink(target, link);
  write(link, {{"w", view(value, {1})}});
  EXPECT_TRUE(std::filesystem::is_symlink(link));
  EXPECT_EQ(values_in(target, "w"), value);
  std::filesystem::create_symlink(folder.path() + "/gone", folder.path() + "/broken");
  EXPECT_NE(refusal([&] { write(folder.path() + "/broken", {}); }, ErrorCode::file).find("link"), std::string::npos);
  ASSERT_EQ(mkfifo((folder.path() + "/pipe").c_str(), 0600), 0);
  for (const std::string& path : {folder.path() + "/pipe", std::string("/dev/full"), std::string("/dev/null")}) {
    EXPECT_NE(refusal([&] { write(path, {}); }, ErrorCode::file).find("device or a pipe"), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

/// Files of this process that grow beyond `bytes` fail, as on a full disk, while it lives.
class SmallDisk {
 public:
  explicit SmallDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SmallDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_ = {};
  void (*handler_)(int);
};

TEST(SafetensorsWriter, AFullDiskLeavesTheOldFileAndNothingElse) {
  const TemporaryFolder folder;
  const std::vector<float> small = {1}, large(100000, 2);
  const std::string path = folder.path() + "/w";
  write(path, {{"w", view(small, {1})}});
  for (const rlim_t limit : {0, 4, 100, 4096, 399999}) {
    const SmallDisk disk(limit);
    const std::string said = refusal([&] { write(path, {{"w", view(large, {100000})}}); }, ErrorCode::file);
    EXPECT_NE(said.find(path), std::string::npos) << limit;
    EXPECT_NE(said.find("File too large"), std::string::npos) << said;
  }
  EXPECT_EQ(values_in(path, "w"), small);
  EXPECT_EQ(names_in(folder.path()), std::set<std::string>{"w"});
}

TEST(SafetensorsWriter, FoldersThatMayNotBeWritten) {
  const TemporaryFolder folder;
  const std::string file = folder.put("file", "x");
  EXPECT_NE(refusal([&] { write(file + "/w", {}); }, ErrorCode::file).find("Not a directory"), std::string::npos);
  EXPECT_NE(refusal([&] { write(folder.path() + "/a/w", {}); }, ErrorCode::file).find("No such file"),
            std::string::npos);
  EXPECT_NE(refusal([] { write("/proc/w", {}); }, ErrorCode::file).find("/proc"), std::string::npos);
  if (geteuid() == 0) return;  // root may write anywhere
  const std::string closed = folder.path() + "/closed";
  std::filesystem::create_directory(closed);
  ASSERT_EQ(chmod(closed.c_str(), 0500), 0);
  EXPECT_NE(refusal([&] { write(closed + "/w", {}); }, ErrorCode::file).find("Permission denied"), std::string::npos);
}

TEST(SafetensorsWriter, WrongUseLeavesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/w";
  const std::vector<float> value = {1, 2};
  const auto refused = [&](auto&& f, const char* word) {
    EXPECT_NE(refusal(f, ErrorCode::file).find(word), std::string::npos) << refusal(f, ErrorCode::file);
  };
  refused([&] { write(path, {{"a", view(value, {2})}, {"a", view(value, {2})}}); }, "\"a\" is given twice");
  refused([&] { write(path, {{"__metadata__", view(value, {2})}}); }, "the format's own");
  refused([&] { write(path, {{"\xff", view(value, {2})}}); }, "UTF-8");
  refused([&] { write(path, {}, {{"\xff", "x"}}); }, "UTF-8");
  refused([&] { SafetensorsWriter writer(path, {{"a", "F33", {2}, 0, 0}}, {}); }, "F33");
  refused([&] { SafetensorsWriter(path, {{"a", "F32", {2}, 0, 0}}, {}).finish(); }, "0 of 8 bytes");
  refused([&] { SafetensorsWriter(path, {{"a", "F32", {1}, 0, 0}}, {}).write(value.data(), 8); }, "declared 4 bytes");
  std::vector<StoredTensor> huge;
  for (const char name : {'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i'}) {
    huge.push_back({std::string(1, name), "U64", {INT64_MAX / 64}, 0, 0});
  }
  refused([&] { SafetensorsWriter writer(path, huge, {}); }, "63 bits");
  EXPECT_TRUE(names_in(folder.path()).empty());
}

TEST(SafetensorsWriter, CK01KilledWhileSavingTheFileIsWhole) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/w";
  const std::vector<float> first(20000, 0);
  write(path, {{"w", view(first, {20000})}});
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (float value = 1;; ++value) {
        const std::vector<float> next(20000, value);
        write(path, {{"w", view(next, {20000})}});
      }
    }
    ASSERT_GT(child, 0);
    usleep(static_cast<useconds_t>(500 + 700 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const std::vector<float> found = values_in(path, "w");
    ASSERT_EQ(found, std::vector<float>(20000, found[0])) << round;
  }
}

}  // namespace
}  // namespace brisk::checkpoint

// Stories of data: a loop of one's own over a loader, a data set of one's own, weights to and from other programs.
#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "api/story_support.h"

namespace {

using namespace brisk;
using story::contains;
using story::error_text;
using story::same_bits;

struct File {
  std::string path;
  int64_t label;
};

/// What a decoder would make of a file: an image as bright as its label says.
std::vector<uint8_t> decode(const std::string& path) {
  if (contains(path, "damaged")) return {};
  return std::vector<uint8_t>(16 * 16 * 3, static_cast<uint8_t>(40 + 150 * (path.back() - '0')));
}

class Scans : public Dataset {
 public:
  explicit Scans(std::vector<File> files) : files_(std::move(files)) {}
  int64_t size() const override { return std::ssize(files_); }
  std::vector<Field> fields() const override { return {{"input", {16, 16, 3}, DType::u8}, {"target", {}, DType::i64}}; }
  void read(int64_t index, Sample& out, Random& random) const override {  // called by several threads at once
    const File& file = files_[static_cast<size_t>(index)];
    std::vector<uint8_t> image = decode(file.path);
    if (image.empty()) throw std::runtime_error("cannot decode " + file.path);
    for (uint8_t& byte : image) byte = static_cast<uint8_t>(byte + random.integer(20));  // pure in (seed, epoch, index)
    std::memcpy(out["input"].data<uint8_t>(), image.data(), image.size());               // straight into the batch slot
    out["target"].data<int64_t>()[0] = file.label;
  }

 private:
  std::vector<File> files_;
};

std::vector<File> files(int64_t count) {
  std::vector<File> out;
  for (int64_t i = 0; i < count; ++i)
    out.push_back({"/data/" + std::to_string(i) + "/" + std::to_string(i % 2), i % 2});
  return out;
}

Model scan_model() {
  return Model(
      [](Var x) {
        x = normalize(to_channels_first(x), {.deviation = {0.229, 0.224, 0.225}, .mean = {0.485, 0.456, 0.406}});
        return linear(global_avg_pool2d(relu(conv2d(x, {.channels = 4, .kernel = 3}))), 2);
      },
      {{"input", {16, 16, 3}, DType::u8}});  // floats are made on the device
}

TEST(DataStory, ADataSetOfOnesOwn) {
  const Scans scans(files(40));
  Model model = scan_model();
  Trainer trainer(model, cross_entropy(), adam({.learning_rate = 0.02}), {.batch = 8});
  trainer.add_metric("accuracy", accuracy());
  const FitResult r = trainer.fit(scans, scans, {.duration = 20_epochs, .progress = false, .workers = 3});
  EXPECT_EQ(r.evaluation.metric("accuracy"), 1);
  EXPECT_EQ(trainer.statistics().workers, 3);
  EXPECT_GE(trainer.statistics().data_wait_s, 0);
  EXPECT_LE(trainer.statistics().data_wait_s, trainer.statistics().seconds);
}

TEST(DataStory, AnExceptionOfReadNamesSampleAndClass) {
  std::vector<File> some = files(40);
  some[12].path = "/data/damaged.png";
  const Scans scans(some);
  Model model = scan_model();
  Trainer trainer(model, cross_entropy(), adam(), {.batch = 8});
  for (const int64_t workers : {0, 3})
    EXPECT_EQ(error_text([&] { trainer.fit(scans, {.duration = 1_epochs, .progress = false, .workers = workers}); }),
              "Error [data] sample 12 of Scans: cannot decode /data/damaged.png");
}

/// Reads `epochs` epochs of batches and keeps their bytes, as an upload would see them.
std::vector<std::byte> upload(Loader& loader, int64_t epochs) {
  std::vector<std::byte> seen;
  for (int64_t epoch = 0; epoch < epochs; ++epoch)
    for (const Batch& batch : loader.epoch(epoch)) {  // batch lives until the next turn of the loop
      const auto bytes = batch["input"].bytes();
      seen.insert(seen.end(), bytes.begin(), bytes.end());
      EXPECT_EQ(bytes.size(), static_cast<size_t>(batch.size() * 16 * 16 * 3));
      EXPECT_LT(batch["target"].data<int64_t>()[0], 2);
    }
  return seen;
}

TEST(DataStory, ALoopOverALoader) {
  const Scans scans(files(100));
  Loader loader(scans, {.batch = 64, .pinned = true, .seed = 7, .shuffle = true, .workers = 4});
  Loader alone(scans, {.batch = 64, .seed = 7, .shuffle = true});
  const std::vector<std::byte> seen = upload(loader, 3);
  EXPECT_EQ(seen.size(), size_t{3 * 100 * 16 * 16 * 3});
  EXPECT_EQ(seen, upload(alone, 3));  // same order for any number of workers

  loader.epoch(5);
  loader.next();
  LoaderPosition where = loader.position();
  EXPECT_EQ(where, (LoaderPosition{5, 64}));
  const Batch* batch = loader.next();
  const std::vector<int64_t> rest(batch->indices().begin(), batch->indices().end());
  EXPECT_EQ(rest.size(), 36u);
  alone.seek(where);  // O(1)
  batch = alone.next();
  EXPECT_EQ(rest, std::vector<int64_t>(batch->indices().begin(), batch->indices().end()));
}

TEST(DataStory, WeightsToAndFromOtherPrograms) {
  const story::File file("lenet.safetensors"), other("other.safetensors");
  Model model(story::lenet, {1, 28, 28}, {.seed = 5});
  save_weights(model, file.path());  // PyTorch's names and layouts
  const WeightsFile stored(file.path());
  ASSERT_EQ(stored.tensors().size(), 8u);
  EXPECT_EQ(stored.tensors()[1].name, "conv1.weight");
  EXPECT_EQ(stored.tensors()[1].shape, (Shape{20, 1, 5, 5}));  // OIHW

  Model again(story::lenet, {1, 28, 28}, {.seed = 6});
  load_weights(again, file.path());
  for (const Parameter& p : model.parameters())
    EXPECT_TRUE(same_bits(model.parameter(p.name), again.parameter(p.name)));

  stored.save_renamed(other.path(), {{"conv1", "features.0.0"}, {"fc2", "classifier"}});
  Model fresh(story::lenet, {1, 28, 28}, {.seed = 7});
  EXPECT_TRUE(contains(error_text([&] { load_weights(fresh, other.path()); }), "Error [weights]"));
  LoadReport r = load_weights(fresh, other.path(), {.rename = {{"features.0.0", "conv1"}}, .strict = false});
  EXPECT_TRUE(same_bits(fresh.parameter("conv1.weight"), model.parameter("conv1.weight")));
  EXPECT_EQ(r.loaded.size(), 6u);
  EXPECT_EQ(r.missing, (std::vector<std::string>{"fc2.weight", "fc2.bias"}));
  EXPECT_EQ(r.unexpected, (std::vector<std::string>{"classifier.bias", "classifier.weight"}));
  EXPECT_TRUE(r.mismatched.empty());
}

}  // namespace

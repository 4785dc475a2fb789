// Cases from other libraries' histories, each named by its id in the case table.
#include <gtest/gtest.h>

#include <map>

#include "brisk/images.h"
#include "brisk/loader.h"
#include "data/files.h"
#include "data/scripted_set.h"
#include "encode.h"

namespace brisk {
namespace {

using test::encode_jpeg;
using test::encode_png;
using test::picture;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// What is wrong with each file of DA06, and a part of the reason that is given.
std::map<std::string, std::pair<std::string, std::string>> bad_files() {
  const std::string jpeg = encode_jpeg(picture(120, 160)),
                    progressive = encode_jpeg(picture(120, 160), {.progressive = true});
  const std::string png = encode_png(picture(120, 160));
  std::map<std::string, std::pair<std::string, std::string>> out;
  for (const size_t percent : {10, 50, 99}) {
    const std::string name = std::to_string(percent);
    out["cut_" + name] = {jpeg.substr(0, jpeg.size() * percent / 100), ""};
    out["progressive_cut_" + name] = {progressive.substr(0, progressive.size() * percent / 100), ""};
    out["png_cut_" + name] = {png.substr(0, png.size() * percent / 100), "the file ends too early"};
  }
  out["cut_10"].second = out["progressive_cut_10"].second = "Premature end";
  out["cut_50"].second = out["cut_99"].second = "Premature end of JPEG file";
  out["without_its_end"] = {jpeg.substr(0, jpeg.size() - 2), "Premature end of JPEG file"};
  out["empty"] = {"", "the file has 0 bytes"};
  out["text"] = {"This is no image at all.\n", "is neither a JPEG nor a PNG file"};
  return out;
}

std::string fitted(const ImageFolder& set, int64_t workers) {
  try {
    Loader loader(set, {.batch = 4, .workers = workers});
    for (const Batch& batch : loader.epoch(0)) static_cast<void>(batch);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::data);
    return error.what();
  }
  return "no error";
}

// JPEG cut at 10/50/99%; 0 bytes; text named .jpg. Wherever the part lies that is read: the policy fail names the file.
TEST(Cases, DA06_cut_empty_and_text_files_fail_by_name) {
  for (const auto& [name, file] : bad_files()) {
    const test::TemporaryFolder folder;
    const std::string path = folder.put("a/" + name + ".jpg", file.first);
    for (const ImageForm form : {ImageForm::center_crop, ImageForm::random_crop, ImageForm::random_resized_crop}) {
      const std::string text = fitted(data::image_folder(folder.path(), {.form = form, .size = 24}), 0);
      EXPECT_TRUE(contains(text, "Error [data] sample 0 of " + folder.path() + ": " + path + ": ")) << text;
      EXPECT_TRUE(contains(text, file.second)) << name << ": " << text;
    }
  }
}

// PNG named .jpg: the content counts.
TEST(Cases, DA06_png_named_jpg) {
  const test::TemporaryFolder folder;
  folder.put("a/png.jpg", encode_png(picture(24, 24)));
  folder.put("b/jpeg.png", encode_jpeg(picture(24, 24)));
  EXPECT_EQ(fitted(data::image_folder(folder.path(), {.resize = 24, .size = 24}), 0), "no error");
}

// Bit flips: an image or an error that names the file, never an exit or a crash.
TEST(Cases, DA06_bit_flips) {
  const std::string files[] = {encode_jpeg(picture(60, 80)), encode_jpeg(picture(60, 80), {.progressive = true}),
                               encode_jpeg(picture(60, 80), {.restart_rows = 1}), encode_png(picture(30, 40)),
                               encode_png(picture(30, 40), {8, true, PNG_COLOR_TYPE_PALETTE})};
  int refused = 0;
  const test::TemporaryFolder folder;
  for (const std::string& good : files) {
    for (int i = 0; i < 200; ++i) {
      Random random(6, 0, i);
      std::string bytes = good;
      for (int64_t flips = random.integer(3) + 1; flips > 0; --flips) {
        bytes[static_cast<size_t>(random.integer(static_cast<int64_t>(bytes.size())))] ^=
            static_cast<char>(1 << random.integer(8));
      }
      const std::string path = folder.put("a/flipped.jpg", bytes);
      const std::string text =
          fitted(data::image_folder(folder.path(),
                                    {.form = ImageForm::random_resized_crop, .most_pixels = 1 << 16, .size = 16}),
                 0);
      if (text == "no error") continue;
      ++refused;
      EXPECT_TRUE(contains(text, path + ": ")) << text;
    }
  }
  EXPECT_GT(refused, 200);
}

// 1 bad file among 1000, and a skip limit of 1%.
class CasesDA06 : public testing::Test {
 protected:
  CasesDA06() {
    const std::string good = encode_jpeg(picture(12, 16));
    for (int i = 0; i < 1000; ++i) {
      const std::string name = std::to_string(10000 + i).substr(1);
      paths_.push_back(folder_.put((i < 500 ? "a/" : "b/") + name + ".jpg", good));
    }
  }
  void damage(int64_t index) {
    const std::string& path = paths_[static_cast<size_t>(index)];
    std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  }
  ImageFolder set(CorruptImage corrupt) const {
    return data::image_folder(folder_.path(),
                              {.corrupt = corrupt, .form = ImageForm::random_crop, .resize = 12, .size = 8});
  }
  test::TemporaryFolder folder_;
  std::vector<std::string> paths_;
};

TEST_F(CasesDA06, DA06_1_bad_file_among_1000) {
  damage(499);  // the last of its class: the next good one is of the other
  for (const int64_t workers : {0, 3}) {
    const std::string text = fitted(set(CorruptImage::fail), workers);
    EXPECT_TRUE(contains(text, "sample 499 of " + folder_.path() + ": " + paths_[499] + ": Premature end")) << text;
  }
  std::vector<uint64_t> hashes;
  for (const int64_t workers : {0, 1, 4}) {
    const ImageFolder images = set(CorruptImage::skip);
    EXPECT_EQ(images.skipped().count, 0);
    Loader loader(images, {.batch = 100, .seed = 4, .shuffle = true, .workers = workers});
    uint64_t hash = 0;
    int64_t samples = 0, of_b = 0;
    for (const Batch& batch : loader.epoch(0)) {
      hash = test::hash_of(batch, hash + 1);
      samples += batch.size();
      for (int64_t i = 0; i < batch.size(); ++i) of_b += batch["target"].data<int64_t>()[i];
    }
    hashes.push_back(hash);
    EXPECT_EQ(samples, 1000);
    EXPECT_EQ(of_b, 501);
    EXPECT_EQ(images.skipped().count, 1);
    EXPECT_EQ(images.skipped().first_path, paths_[499]);
    EXPECT_TRUE(contains(images.skipped().reason, "Premature end")) << images.skipped().reason;
  }
  EXPECT_EQ(hashes, std::vector<uint64_t>(3, hashes[0]));
}

TEST_F(CasesDA06, DA06_skip_limit_of_1_percent_then_fail) {
  for (int64_t i = 0; i < 10; ++i) damage(990 + i);
  ImageFolder images = set(CorruptImage::skip);
  EXPECT_EQ(fitted(images, 2), "no error");
  EXPECT_EQ(images.skipped().count, 10);
  EXPECT_EQ(images.skipped().first_path, paths_[990]);
  damage(3);
  images = set(CorruptImage::skip);
  const std::string text = fitted(images, 2);
  EXPECT_TRUE(contains(text, "corrupt_limit = 0.01: 11 of 1000 images are corrupt; the first: " + paths_[3])) << text;
  for (int64_t i = 0; i < 1000; ++i) std::ofstream(paths_[static_cast<size_t>(i)], std::ios::trunc);
  images = data::image_folder(folder_.path(), {.corrupt = CorruptImage::skip, .corrupt_limit = 1});
  EXPECT_TRUE(contains(fitted(images, 0), "every image is corrupt"));
}

}  // namespace
}  // namespace brisk

// Folders of images: what is listed, what a sample is, for every kind of file that is decoded.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "brisk/images.h"
#include "brisk/loader.h"
#include "data/files.h"
#include "data/image_reader.h"
#include "data/scripted_set.h"
#include "encode.h"
#include "support/error_text.h"

namespace brisk {
namespace {

using data::image_folder;
using test::encode_jpeg;
using test::encode_png;
using test::picture;
using test::Picture;

using test::error_text;

bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// One sample, read alone.
struct Read {
  explicit Read(const Dataset& set, int64_t index = 0, Random random = Random(1, 0, 0)) : batch(set.fields(), 1) {
    batch.assign(std::vector<int64_t>{index});
    Sample sample(batch, 0);
    set.read(index, sample, random);
  }
  const uint8_t* pixels() const { return batch["input"].data<uint8_t>(); }
  std::vector<uint8_t> bytes() const { return {pixels(), pixels() + batch["input"].count()}; }
  int64_t target() const { return batch["target"].data<int64_t>()[0]; }
  Batch batch;
};

/// A folder with one class and one image.
class OneImage {
 public:
  explicit OneImage(const std::string& bytes, const std::string& name = "a/image.jpg") { folder_.put(name, bytes); }
  ImageFolder set(const ImageOptions& options) const { return image_folder(folder_.path(), options); }

 private:
  test::TemporaryFolder folder_;
};

/// The triangle filter as it is defined, in double, over the whole image.
double filtered(const Picture& from, const data::Region& region, ImageSize size, int64_t y, int64_t x, int c) {
  const auto weigh = [](double start, double length, int64_t wanted, int64_t place, int64_t lines) {
    const double scale = length / static_cast<double>(wanted), reach = std::max(scale, 1.0);
    std::vector<double> weights(static_cast<size_t>(lines));
    double sum = 0;
    for (size_t i = 0; i < weights.size(); ++i) {
      const double distance =
          std::abs(static_cast<double>(i) + 0.5 - start - (static_cast<double>(place) + 0.5) * scale);
      sum += weights[i] = std::max(0.0, 1 - distance / reach);
    }
    for (double& weight : weights) weight /= sum;
    return weights;
  };
  const auto down = weigh(region.top, region.height, size.height, y, from.height);
  const auto across = weigh(region.left, region.width, size.width, x, from.width);
  double out = 0;
  for (int i = 0; i < from.height; ++i) {
    for (int k = 0; down[static_cast<size_t>(i)] > 0 && k < from.width; ++k) {
      out += down[static_cast<size_t>(i)] * across[static_cast<size_t>(k)] * from.at(i, k)[c];
    }
  }
  return out;
}

TEST(ImageFolder, ListsClassesAndFilesInOrder) {
  const test::TemporaryFolder folder;
  const std::string bytes = encode_png(picture(8, 8));
  for (const char* name : {"cat/b.jpg", "cat/a.PNG", "ant/9.jpeg", "ant/10.JPG", "cat/.hidden.png", "cat/notes.txt",
                           "bee/only.png", ".git/x.png", "readme.png"}) {
    folder.put(name, bytes);
  }
  const ImageFolder set = image_folder(folder.path(), {.resize = 8, .size = 8});
  EXPECT_EQ(set.classes(), (std::vector<std::string>{"ant", "bee", "cat"}));
  ASSERT_EQ(set.size(), 5);
  const std::vector<std::string> names = {"ant/10.JPG", "ant/9.jpeg", "bee/only.png", "cat/a.PNG", "cat/b.jpg"};
  const std::vector<int64_t> targets = {0, 0, 1, 2, 2};
  for (int64_t i = 0; i < 5; ++i) {
    EXPECT_EQ(set.path(i), folder.path() + "/" + names[static_cast<size_t>(i)]);
    EXPECT_EQ(Read(set, i).target(), targets[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(set.name(), folder.path());
  EXPECT_TRUE(contains(error_text([&] { set.path(5); }), "index 5: must be 0 to 4"));

  EXPECT_TRUE(contains(error_text([&] { image_folder(folder.path() + "/none"); }), "none: No such file"));
  EXPECT_TRUE(contains(error_text([&] { image_folder(folder.path() + "/ant"); }), "holds no folder"));
  folder.put("dog/notes.txt", "text");
  EXPECT_TRUE(contains(error_text([&] { image_folder(folder.path()); }), "/dog: holds no .jpg"));
}

TEST(ImageFolder, WholeImagesArriveAsTheyAreInEachLayoutAndType) {
  const OneImage wide(encode_png(picture(24, 40)));
  EXPECT_EQ(wide.set({.resize = 40, .size = ImageSize(24, 40)}).fields()[0].shape.text(), "[24, 40, 3]");
  const std::vector<uint8_t> square =
      Read(OneImage(encode_png(picture(24, 24))).set({.resize = 24, .size = 24})).bytes();
  EXPECT_EQ(square, picture(24, 24).rgb);

  ImageOptions first = {.channels_first = true, .dtype = DType::f32, .resize = 24, .size = 24};
  const Read floats(OneImage(encode_png(picture(24, 24))).set(first));
  EXPECT_EQ(floats.batch.fields()[0].shape.text(), "[3, 24, 24]");
  const float* values = floats.batch["input"].data<float>();
  for (int64_t i = 0; i < 24 * 24; ++i) {
    for (int64_t c = 0; c < 3; ++c) {
      ASSERT_FLOAT_EQ(values[c * 24 * 24 + i], static_cast<float>(square[static_cast<size_t>(i * 3 + c)]) / 255);
    }
  }
}

TEST(ImageFolder, EachKindOfPngIsRgbOfEightBits) {
  const Picture colours = picture(17, 17);
  Picture greys = colours, black_and_white = colours;
  for (size_t i = 0; i < colours.rgb.size(); ++i) {
    greys.rgb[i] = colours.rgb[i / 3 * 3];
    black_and_white.rgb[i] = greys.rgb[i] >= 128 ? 255 : 0;
  }
  const ImageOptions whole = {.resize = 17, .size = 17};
  for (const bool interlaced : {false, true}) {
    const auto decoded = [&](int bits, int kind) {
      return Read(OneImage(encode_png(colours, {bits, interlaced, kind})).set(whole)).bytes();
    };
    for (const int bits : {8, 16}) {
      EXPECT_EQ(decoded(bits, PNG_COLOR_TYPE_RGB), colours.rgb);
      EXPECT_EQ(decoded(bits, PNG_COLOR_TYPE_RGB_ALPHA), colours.rgb);
      EXPECT_EQ(decoded(bits, PNG_COLOR_TYPE_GRAY), greys.rgb);
      EXPECT_EQ(decoded(bits, PNG_COLOR_TYPE_GRAY_ALPHA), greys.rgb);
    }
    EXPECT_EQ(decoded(8, PNG_COLOR_TYPE_PALETTE), greys.rgb);
    EXPECT_EQ(decoded(1, PNG_COLOR_TYPE_GRAY), black_and_white.rgb);
  }
}

TEST(ImageFolder, GreyAndInkJpegsAreRgb) {
  const Picture colours = picture(32, 32);
  const ImageOptions whole = {.resize = 32, .size = 32};
  const auto grey = Read(OneImage(encode_jpeg(colours, {.grey = true, .quality = 100})).set(whole)).bytes();
  const auto inks = Read(OneImage(encode_jpeg(colours, {.inks = true, .quality = 100})).set(whole)).bytes();
  for (size_t i = 0; i < grey.size(); ++i) {
    EXPECT_EQ(grey[i], grey[i / 3 * 3]);
    EXPECT_NEAR(grey[i], colours.rgb[i / 3 * 3 + 1], 3);
    EXPECT_NEAR(inks[i], colours.rgb[i], 4);
  }
}

// Only a part of a file is transformed, at a reduced size where that suffices: the pixels are those of a whole
// decoding.
TEST(ImageFolder, PartsOfJpegsAreThoseOfWholeDecodings) {
  int64_t reduced = 0;
  for (const bool progressive : {false, true}) {
    for (const int sampling : {1, 2}) {
      for (const auto& [height, width] : {std::pair{150, 203}, {331, 97}, {40, 40}}) {
        const std::string bytes =
            encode_jpeg(picture(height, width), {.progressive = progressive, .sampling = sampling});
        const OneImage one(bytes);
        for (const ImageForm form : {ImageForm::center_crop, ImageForm::random_crop, ImageForm::random_resized_crop}) {
          for (int64_t seed = 0; seed < 4; ++seed) {
            ImageOptions options = {.form = form, .resize = 30, .size = ImageSize(25, 30)};
            Random random(static_cast<uint64_t>(seed), 0, 0), same = random;
            const Read found(one.set(options), 0, random);
            const data::ImagePart part = data::choose_part(options, {height, width}, same);
            int reduction = 8;
            while (reduction > 1 && (part.region.width < 30 * reduction || part.region.height < 25 * reduction)) {
              reduction /= 2;
            }
            reduced += reduction > 1;
            const Picture all = test::decode_jpeg(bytes, reduction);
            const data::Region region = {part.region.left / reduction, part.region.top / reduction,
                                         part.region.width / reduction, part.region.height / reduction};
            for (const auto& [y, x] : {std::pair{0, 0}, {24, 29}, {0, 29}, {24, 0}, {12, 17}, {7, 3}}) {
              const int64_t column = part.mirrored ? 29 - x : x;
              for (int c = 0; c < 3; ++c) {
                const uint8_t pixel = found.pixels()[(y * 30 + column) * 3 + c];
                ASSERT_NEAR(pixel, filtered(all, region, options.size, y, x, c), 0.51)
                    << height << "x" << width << " form " << int(form) << " seed " << seed << " at " << y << "," << x;
              }
            }
          }
        }
      }
    }
  }
  EXPECT_GT(reduced, 20);
}

TEST(ImageFolder, FormsAreWhatTheySay) {
  const ImageOptions random_resized = {.form = ImageForm::random_resized_crop, .resize = 256, .size = 224};
  const ImageOptions random_crop = {.form = ImageForm::random_crop, .resize = 256, .size = 224};
  int mirrored = 0;
  double least = 1, most = 0;
  for (int64_t i = 0; i < 400; ++i) {
    Random random(3, 0, i);
    const data::ImagePart part = data::choose_part(random_resized, {375, 500}, random);
    const data::Region& r = part.region;
    EXPECT_TRUE(r.left >= 0 && r.top >= 0 && r.left + r.width <= 500 && r.top + r.height <= 375);
    EXPECT_TRUE(r.width / r.height < 1.36 && r.height / r.width < 1.36);
    least = std::min(least, r.width * r.height / (375 * 500));
    most = std::max(most, r.width * r.height / (375 * 500));
    mirrored += part.mirrored;

    const data::Region crop = data::choose_part(random_crop, {375, 500}, random).region;
    EXPECT_NEAR(crop.height, 224 * 375.0 / 256, 1e-9);
    EXPECT_NEAR(crop.width, 224 * 500.0 / 341, 1e-9);
    EXPECT_TRUE(crop.left >= 0 && crop.top >= 0 && crop.left + crop.width <= 500 + 1e-9 &&
                crop.top + crop.height <= 375 + 1e-9);
  }
  EXPECT_NEAR(least, 0.08, 0.03);
  EXPECT_GT(most, 0.85);
  EXPECT_NEAR(mirrored, 200, 60);
  Random random(3, 0, 0);
  const data::ImagePart centre = data::choose_part({.resize = 256, .size = 224}, {375, 500}, random);
  EXPECT_FALSE(centre.mirrored);
  EXPECT_NEAR(centre.region.top, 16 * 375.0 / 256, 1e-9);
  EXPECT_NEAR(centre.region.left, 59 * 500.0 / 341, 1e-9);
  // No part of that ratio fits: the largest centre that does.
  const data::Region narrow =
      data::choose_part({.form = ImageForm::random_resized_crop, .smallest_area = 0.9}, {1000, 10}, random).region;
  EXPECT_NEAR(narrow.width, 10, 1e-9);
  EXPECT_NEAR(narrow.height, 10 * 4 / 3.0, 1e-9);
}

TEST(ImageFolder, FlippingMirrorsTheSamePart) {
  const OneImage one(encode_png(picture(60, 80)));
  ImageOptions options = {.flip = 0, .form = ImageForm::random_crop, .resize = 40, .size = 32};
  const auto plain = Read(one.set(options)).bytes();
  options.flip = 1;
  const auto mirrored = Read(one.set(options)).bytes();
  for (size_t y = 0; y < 32; ++y) {
    for (size_t x = 0; x < 32; ++x) {
      for (size_t c = 0; c < 3; ++c) EXPECT_EQ(plain[(y * 32 + x) * 3 + c], mirrored[(y * 32 + 31 - x) * 3 + c]);
    }
  }
}

TEST(ImageFolder, SamplesDoNotDependOnWorkersAndDifferByEpoch) {
  const test::TemporaryFolder folder;
  for (int i = 0; i < 12; ++i) {
    folder.put((i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".jpg", encode_jpeg(picture(40 + i, 60, i)));
  }
  const ImageFolder set = image_folder(folder.path(), {.form = ImageForm::random_resized_crop, .size = 16});
  const auto hashes = [&](int64_t workers) {
    return test::two_epochs(set, {.batch = 5, .seed = 9, .shuffle = true, .workers = workers});
  };
  const auto expected = hashes(0);
  EXPECT_EQ(std::set<uint64_t>(expected.begin(), expected.end()).size(), 6u);
  for (const int64_t workers : {1, 2, 5}) EXPECT_EQ(hashes(workers), expected);
}

TEST(ImageFolder, OneImageIsReadAsTheFolderReadsIt) {
  const test::TemporaryFolder folder;
  const std::string path = folder.put("a/image.jpg", encode_jpeg(picture(50, 70)));
  const ImageOptions options = {.form = ImageForm::random_crop, .resize = 40, .size = 32};
  const Tensor image = data::read_image(path, options, 5);
  EXPECT_EQ(image.shape().text(), "[32, 32, 3]");
  const Read folders(image_folder(folder.path(), options), 0, Random(5, 0, 0));
  EXPECT_EQ(std::vector<uint8_t>(image.data<uint8_t>(), image.data<uint8_t>() + image.count()), folders.bytes());
  const std::string empty = folder.put("empty.jpg", "");
  EXPECT_EQ(error_text([&] { data::read_image(empty); }), "Error [data] " + empty + ": the file has 0 bytes");
  EXPECT_TRUE(contains(error_text([&] { data::read_image(folder.path() + "/none.jpg"); }), "Error [file]"));
}

TEST(ImageFolder, SplitsAndOtherForms) {
  const test::TemporaryFolder folder;
  for (int i = 0; i < 10; ++i) {
    folder.put((i % 2 == 0 ? "a/" : "b/") + std::to_string(i) + ".png", encode_png(picture(20, 20, i)));
  }
  const ImageFolder all = image_folder(folder.path(), {.form = ImageForm::random_crop, .resize = 20, .size = 16});
  const auto [first, second] = all.split({.first = 0.7, .seed = 3});
  EXPECT_EQ(first.size(), 7);
  EXPECT_EQ(second.size(), 3);
  EXPECT_EQ(second.classes(), all.classes());
  std::set<std::string> paths;
  for (int64_t i = 0; i < 7; ++i) paths.insert(first.path(i));
  for (int64_t i = 0; i < 3; ++i) paths.insert(second.path(i));
  EXPECT_EQ(paths.size(), 10u);
  const ImageFolder evaluation = second.with({.resize = 20, .size = 20});
  EXPECT_EQ(evaluation.path(2), second.path(2));
  EXPECT_EQ(evaluation.fields()[0].shape.text(), "[20, 20, 3]");
  EXPECT_TRUE(contains(error_text([&] { all.split({.first = 1}); }), "SplitOptions.first = 1"));
}

TEST(ImageFolder, RefusesOptionsOutOfRange) {
  const OneImage one(encode_png(picture(8, 8)));
  const auto refused = [&](const ImageOptions& options) { return error_text([&] { one.set(options); }); };
  EXPECT_TRUE(contains(refused({.size = 0}), "ImageOptions.size = {0, 0}"));
  EXPECT_TRUE(contains(refused({.resize = 100}), "ImageOptions.resize = 100: must be at least the longer side 224"));
  EXPECT_TRUE(contains(refused({.dtype = DType::i64}), "ImageOptions.dtype = i64: must be u8 or f32"));
  EXPECT_TRUE(contains(refused({.flip = NAN}), "ImageOptions.flip = nan"));
  EXPECT_TRUE(contains(refused({.corrupt_limit = 1.5}), "ImageOptions.corrupt_limit = 1.5"));
  EXPECT_TRUE(contains(refused({.smallest_area = 0}), "ImageOptions.smallest_area = 0"));
  EXPECT_TRUE(contains(refused({.widest_ratio = 0.5}), "ImageOptions.widest_ratio = 0.5"));
  EXPECT_TRUE(contains(refused({.most_pixels = 0}), "ImageOptions.most_pixels = 0"));
}

/// A progressive file whose first scan comes 300 times: a few kilobytes that ask for 300 passes over the image.
std::string many_scans() {
  const std::string bytes = encode_jpeg(picture(64, 64), {.progressive = true});
  const std::string scan = "\xff\xda";
  const size_t first = bytes.find(scan);
  size_t end = first + 2;
  while (bytes[end] != '\xff' || bytes[end + 1] == '\0') ++end;
  std::string out = bytes.substr(0, first);
  for (int i = 0; i < 300; ++i) out += bytes.substr(first, end - first);
  return out + bytes.substr(end);
}

TEST(ImageFolder, ImagesThatWouldTakeTooMuchAreCorruptBeforeTheyTakeIt) {
  std::string png = encode_png(picture(8, 8));
  png.replace(16, 8, std::string("\0\1\x86\xa0\0\1\x86\xa0", 8));  // 100,000 x 100,000
  png.replace(29, 4, "\x8e\x9f\x7c\xb0");
  uLong check = crc32(0, reinterpret_cast<const Bytef*>(png.data()) + 12, 17);
  for (size_t i = 0; i < 4; ++i) png[29 + i] = static_cast<char>(check >> (24 - 8 * i));
  std::string jpeg = encode_jpeg(picture(8, 8));
  jpeg.replace(jpeg.find("\xff\xc0") + 5, 4, "\xff\xdc\xff\xdc");  // 65,500 x 65,500
  const ImageOptions options = {.resize = 8, .size = 8};
  EXPECT_TRUE(contains(error_text([&] { Read(OneImage(png).set(options)); }),
                       "a/image.jpg: declares 100000 x 100000 pixels, allowed are 1 to most_pixels = 67,108,864"));
  EXPECT_TRUE(contains(error_text([&] { Read(OneImage(jpeg).set(options)); }), "declares 65500 x 65500 pixels"));
  const std::string scans = error_text([&] { Read(OneImage(many_scans()).set(options)); });
  EXPECT_TRUE(contains(scans, "a/image.jpg: ")) << scans;
  ImageOptions tiny = options;
  tiny.most_pixels = 63;
  EXPECT_TRUE(contains(error_text([&] { Read(OneImage(encode_png(picture(8, 8))).set(tiny)); }), "8 x 8 pixels"));
}

}  // namespace
}  // namespace brisk

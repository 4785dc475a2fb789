// JPEG files of 500 x 375 pixels to samples of 224 x 224, cut and mirrored at random, against what libjpeg-turbo
// decodes on as many threads from memory. Rounds of both alternate, so that a busy machine slows both down.
// data_benchmark [THREADS [ROUNDS]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "brisk/images.h"
#include "brisk/loader.h"
#include "images/encode.h"

namespace {

using namespace brisk;

constexpr int kFiles = 64;
constexpr int kImages = 512;  // of a round
constexpr int kHeight = 375;
constexpr int kWidth = 500;

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "brisk-images-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
    std::filesystem::create_directory(path_ + "/a");
    for (int i = 0; i < kFiles; ++i) {
      files_.push_back(test::encode_jpeg(test::picture(kHeight, kWidth, i)));
      std::ofstream(path_ + "/a/" + std::to_string(i) + ".jpg", std::ios::binary) << files_.back();
    }
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }
  const std::vector<std::string>& files() const { return files_; }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

double images_per_s(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return kImages / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void read_samples(Loader& loader) {
  for (int64_t left = kImages; left > 0;) {
    if (const Batch* batch = loader.next()) left -= batch->size();
  }
}

/// Whole images from memory into one buffer, with one decoder: all that libjpeg-turbo has to do.
class Alone {
 public:
  Alone() : pixels_(size_t{kHeight} * kWidth * 3) {
    info_.err = jpeg_std_error(&errors_);
    jpeg_create_decompress(&info_);
  }
  ~Alone() { jpeg_destroy_decompress(&info_); }
  Alone(const Alone&) = delete;
  Alone& operator=(const Alone&) = delete;
  void decode(const std::string& file) {
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(file.data()), file.size());
    jpeg_read_header(&info_, TRUE);
    info_.out_color_space = JCS_RGB;
    jpeg_start_decompress(&info_);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = pixels_.data() + size_t{info_.output_scanline} * kWidth * 3;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
  }

 private:
  jpeg_error_mgr errors_{};
  jpeg_decompress_struct info_{};
  std::vector<uint8_t> pixels_;
};

void decode_alone(const std::vector<std::string>& files, int threads) {
  std::vector<std::thread> running;
  for (int t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      Alone decoder;
      for (int i = t; i < kImages; i += threads) decoder.decode(files[static_cast<size_t>(i % kFiles)]);
    });
  }
  for (std::thread& thread : running) thread.join();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int rounds = argc > 2 ? std::atoi(argv[2]) : 7;
  if (threads < 1 || rounds < 1) {
    std::fprintf(stderr, "data_benchmark [THREADS [ROUNDS]]: each at least 1\n");
    return 2;
  }
  const Folder folder;
  std::printf("%d x %d JPEG files of %zu bytes, %d threads, median of %d rounds\n", kWidth, kHeight,
              folder.files()[0].size(), threads, rounds);
  for (const ImageForm form : {ImageForm::random_crop, ImageForm::random_resized_crop}) {
    const ImageFolder set = data::image_folder(folder.path(), {.form = form});
    Loader loader(set, {.batch = 32, .shuffle = true, .workers = threads});
    read_samples(loader);
    std::vector<double> ours, alone;
    for (int i = 0; i < rounds; ++i) {
      ours.push_back(images_per_s([&] { read_samples(loader); }));
      alone.push_back(images_per_s([&] { decode_alone(folder.files(), threads); }));
    }
    std::printf("%-20s %7.0f samples/s; libjpeg-turbo alone %7.0f images/s; ratio %.2f\n",
                form == ImageForm::random_crop ? "random_crop" : "random_resized_crop", median(ours), median(alone),
                median(ours) / median(alone));
  }
}

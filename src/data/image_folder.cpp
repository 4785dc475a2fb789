// Folders of images: the list of files, and what becomes of a damaged one.
#include <algorithm>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <set>

#include "brisk/images.h"
#include "core/log.h"
#include "core/text.h"
#include "data/image_reader.h"
#include "data/lending.h"
#include "data/order.h"

namespace brisk {
namespace {

namespace fs = std::filesystem;

struct File {
  std::string path;
  int64_t label = 0;
};

struct Listing {
  std::string folder;
  std::vector<std::string> classes;
  std::vector<File> files;
};

bool is_image_name(const std::string& name) {
  std::string ending = fs::path(name).extension().string();
  for (char& letter : ending) letter = letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter + 32) : letter;
  return name[0] != '.' && (ending == ".jpg" || ending == ".jpeg" || ending == ".png");
}

/// Names of what is in a folder and fits, sorted.
template <class Fits>
std::vector<std::string> names_in(const std::string& folder, const Fits& fits) {
  std::vector<std::string> out;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (fits(*at)) out.push_back(at->path().filename().string());
  }
  if (error) throw Error(ErrorCode::file, folder, error.message());
  std::sort(out.begin(), out.end());
  return out;
}

Listing list(const std::string& folder) {
  std::error_code ignored;
  Listing out{folder,
              names_in(folder,
                       [&](const fs::directory_entry& entry) {
                         return entry.is_directory(ignored) && entry.path().filename().string()[0] != '.';
                       }),
              {}};
  if (out.classes.empty()) {
    throw Error(ErrorCode::file, folder, "holds no folder; each class of images is a folder in it");
  }
  for (const std::string& name : out.classes) {
    const std::string path = (fs::path(folder) / name).string();
    const auto files = names_in(path, [&](const fs::directory_entry& entry) {
      return is_image_name(entry.path().filename().string()) && !entry.is_directory(ignored);
    });
    if (files.empty()) {
      throw Error(ErrorCode::file, path, "holds no .jpg, .jpeg or .png file; each folder is a class of images");
    }
    const int64_t label = &name - out.classes.data();
    for (const std::string& file : files) out.files.push_back({(fs::path(path) / file).string(), label});
  }
  return out;
}

void check_range(const char* option, double value, bool good, const char* allowed) {
  if (!good) throw Error(ErrorCode::option, cat("ImageOptions.", option, " = ", value), allowed);
}

ImageOptions checked(ImageOptions options) {
  const int64_t height = options.size.height, width = options.size.width;
  constexpr int64_t kMostSide = 65536;
  if (height < 1 || width < 1 || height > kMostSide || width > kMostSide) {
    throw Error(ErrorCode::option, cat("ImageOptions.size = {", height, ", ", width, "}"),
                cat("each must be 1 to ", kMostSide, " pixels"));
  }
  const int64_t longer = std::max(height, width);
  if (options.resize == 0) options.resize = (longer * 256 + 112) / 224;
  if (options.resize < longer || options.resize > kMostSide * 2) {
    throw Error(ErrorCode::option, cat("ImageOptions.resize = ", options.resize),
                cat("must be at least the longer side ", longer, " of size and at most ", kMostSide * 2));
  }
  if (options.dtype != DType::u8 && options.dtype != DType::f32) {
    throw Error(ErrorCode::option, cat("ImageOptions.dtype = ", name(options.dtype)), "must be u8 or f32");
  }
  constexpr int64_t kMostPixels = int64_t{1} << 32;
  if (options.most_pixels < 1 || options.most_pixels > kMostPixels) {
    throw Error(ErrorCode::option, cat("ImageOptions.most_pixels = ", options.most_pixels),
                cat("must be 1 to ", kMostPixels));
  }
  const auto share = [](double value) { return value >= 0 && value <= 1; };
  check_range("corrupt_limit", options.corrupt_limit, share(options.corrupt_limit), "must be 0 to 1");
  check_range("flip", options.flip, share(options.flip), "must be 0 to 1");
  check_range("smallest_area", options.smallest_area, options.smallest_area > 0 && share(options.smallest_area),
              "must be above 0 and at most 1");
  check_range("widest_ratio", options.widest_ratio, options.widest_ratio >= 1 && options.widest_ratio <= 1000,
              "must be 1 to 1000");
  return options;
}

Shape shape_of(const ImageOptions& options) {
  const int64_t height = options.size.height, width = options.size.width;
  return options.channels_first ? Shape{3, height, width} : Shape{height, width, 3};
}

}  // namespace

struct ImageFolder::Impl {
  Impl(std::shared_ptr<const Listing> all, std::vector<int64_t> some, const ImageOptions& wanted)
      : listing(std::move(all)), rows(std::move(some)), options(checked(wanted)) {}

  const File& file(int64_t index) const {
    if (index < 0 || index >= std::ssize(rows)) {
      throw Error(ErrorCode::data, cat("index ", index), cat("must be 0 to ", std::ssize(rows) - 1));
    }
    return listing->files[static_cast<size_t>(rows[static_cast<size_t>(index)])];
  }

  bool is_bad(int64_t index) {
    const std::lock_guard lock(mutex);
    return bad.count(index) > 0;
  }

  /// Writes down a damaged image. Throws Error [data] when there are too many.
  void skip(int64_t index, const std::string& reason) {
    const std::lock_guard lock(mutex);
    if (!bad.insert(index).second) return;
    if (*bad.begin() == index) first_reason = reason;
    if (bad.size() == 1) {
      log_warning(file(index).path, ": ", reason, "; the next image takes its place (ImageFolder::skipped() counts)");
    }
    if (static_cast<double>(bad.size()) > options.corrupt_limit * static_cast<double>(rows.size())) {
      throw Error(ErrorCode::data, cat("ImageOptions.corrupt_limit = ", options.corrupt_limit),
                  cat(bad.size(), " of ", rows.size(), " images are corrupt; the first: ", file(*bad.begin()).path,
                      ": ", first_reason));
    }
  }

  const std::shared_ptr<const Listing> listing;
  const std::vector<int64_t> rows;  // of the listing's files
  const ImageOptions options;
  data::Lending<data::ImageReader> readers;
  std::mutex mutex;
  std::set<int64_t> bad;
  std::string first_reason;  // of the first of them
};

int64_t ImageFolder::size() const { return std::ssize(impl_->rows); }

std::vector<Field> ImageFolder::fields() const {
  return {{"input", shape_of(impl_->options), impl_->options.dtype}, {"target", {}, DType::i64}};
}

std::string ImageFolder::name() const { return impl_->listing->folder; }
const std::vector<std::string>& ImageFolder::classes() const { return impl_->listing->classes; }
const std::string& ImageFolder::path(int64_t index) const { return impl_->file(index).path; }

void ImageFolder::read(int64_t index, Sample& out, Random& random) const {
  const bool skips = impl_->options.corrupt == CorruptImage::skip;
  auto reader = impl_->readers.lend([] { return std::make_unique<data::ImageReader>(); });
  for (int64_t tried = 0; tried < size(); ++tried) {
    const int64_t at = (index + tried) % size();
    if (skips && impl_->is_bad(at)) continue;
    const File& file = impl_->file(at);
    Random draws = random;
    try {
      reader->read(file.path, impl_->options, out["input"], draws);
    } catch (const data::Corrupt& corrupt) {
      if (!skips) throw Error(ErrorCode::data, file.path, corrupt.what());
      impl_->skip(at, corrupt.what());
      continue;
    }
    out["target"].data<int64_t>()[0] = file.label;
    random = draws;
    return;
  }
  throw Error(ErrorCode::data, name(), "every image is corrupt");
}

SkippedImages ImageFolder::skipped() const {
  const std::lock_guard lock(impl_->mutex);
  if (impl_->bad.empty()) return {};
  return {std::ssize(impl_->bad), impl_->file(*impl_->bad.begin()).path, impl_->first_reason};
}

ImageFolder ImageFolder::with(const ImageOptions& options) const {
  return ImageFolder(std::make_shared<Impl>(impl_->listing, impl_->rows, options));
}

ImageFolderSplit ImageFolder::split(SplitOptions options) const {
  data::SplitRows parts = data::split_rows(options, size());
  const auto part = [&](std::vector<int64_t>& rows) {
    for (int64_t& row : rows) row = impl_->rows[static_cast<size_t>(row)];
    return ImageFolder(std::make_shared<Impl>(impl_->listing, std::move(rows), impl_->options));
  };
  return {part(parts.first), part(parts.second)};
}

ImageFolder data::image_folder(const std::string& path, const ImageOptions& options) {
  checked(options);
  auto listing = std::make_shared<const Listing>(list(path));
  std::vector<int64_t> rows(listing->files.size());
  std::iota(rows.begin(), rows.end(), 0);
  return ImageFolder(std::make_shared<ImageFolder::Impl>(std::move(listing), std::move(rows), options));
}

Tensor data::read_image(const std::string& path, const ImageOptions& options, uint64_t seed) {
  const ImageOptions known = checked(options);
  Tensor out(shape_of(known), known.dtype);
  Random random(seed, 0, 0);
  try {
    ImageReader().read(path, known, out, random);
  } catch (const Corrupt& corrupt) {
    throw Error(ErrorCode::data, path, corrupt.what());
  }
  return out;
}

}  // namespace brisk

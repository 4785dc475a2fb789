// brisk/images.h: folders of JPEG and PNG images as a data set, decoded when they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "brisk/data.h"
#include "brisk/export.h"

namespace brisk {

/// Pixels; one number is a square.
struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  constexpr ImageSize() = default;
  constexpr ImageSize(int64_t side) : height(side), width(side) {}  // NOLINT: a number is a size
  constexpr ImageSize(int64_t rows, int64_t columns) : height(rows), width(columns) {}
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// Which part of an image becomes a sample, always resampled to ImageOptions::size.
enum class ImageForm : uint8_t {
  center_crop,          ///< the shorter side to `resize`, then the centre: for evaluation
  random_crop,          ///< the shorter side to `resize`, then any place, mirrored with probability `flip`
  random_resized_crop,  ///< any part of random area and ratio, mirrored with probability `flip`: for training
};

/// What a file that is no whole image is.
enum class CorruptImage : uint8_t {
  fail,  ///< an Error [data] that names it
  skip,  ///< replaced by the next good image in the order of files, as long as there are few of them
};

struct ImageOptions {
  bool channels_first = false;                ///< input [3, height, width]; false: [height, width, 3], as files hold it
  CorruptImage corrupt = CorruptImage::fail;  ///< see there
  double corrupt_limit = 0.01;                ///< with skip: more than this share of the images is an Error; 0 to 1
  DType dtype = DType::u8;                    ///< u8, or f32 in [0, 1]
  double flip = 0.5;                          ///< probability of the mirror image in the random forms
  ImageForm form = ImageForm::center_crop;    ///< see there
  int64_t most_pixels = int64_t{1} << 26;     ///< larger images count as corrupt, before memory is taken for them
  int64_t resize = 0;             ///< the shorter side before the crop; 0: 256/224 of the longer side of `size`
  ImageSize size = 224;           ///< of a sample
  double smallest_area = 0.08;    ///< random_resized_crop: least share of the image's area; above 0, to 1
  double widest_ratio = 4.0 / 3;  ///< random_resized_crop: width / height lies between this and its inverse; from 1
};

/// Images that were replaced since the data set was made.
struct SkippedImages {
  int64_t count = 0;         ///< different files
  std::string first_path{};  ///< of them, the first in the order of files
  std::string reason{};      ///< what is wrong with it
};

struct ImageFolderSplit;

/// Images of classes, one folder a class. Fields: input u8 [height, width, 3] (or as the options say), target i64 [].
/// Colours are RGB; grey becomes three equal channels, CMYK is converted, 16 bits become 8, alpha is ignored, and so is
/// the orientation in EXIF data. The kind is told by a file's content, not by its name. Each file is checked to its
/// end, whatever part of it is needed: what the decoder so much as warns of (JPEG) is corrupt, never filled with grey.
/// A copy shares the list of files and the record of what was skipped.
class BRISK_EXPORT ImageFolder : public Dataset {
 public:
  int64_t size() const override;
  std::vector<Field> fields() const override;
  /// Decodes in the calling thread. A skipped sample is that of the next good image, with the same random numbers: the
  /// same for any number of threads.
  void read(int64_t index, Sample& out, Random& random) const override;
  /// The folder, as it was given.
  std::string name() const override;

  /// Names of the classes, sorted; the target is the position in this list.
  const std::vector<std::string>& classes() const;
  /// The file of a sample. Throws Error [data] for an index outside 0 .. size() - 1.
  const std::string& path(int64_t index) const;
  SkippedImages skipped() const;

  /// The same files in another form, for example for evaluation. Throws Error [option].
  ImageFolder with(const ImageOptions& options) const;
  /// Two disjoint random parts with all classes: auto [train, validation] = images.split({.first = 0.9}). Throws Error
  /// [option] when a part would be empty.
  ImageFolderSplit split(SplitOptions options = {}) const;

  struct Impl;
  explicit ImageFolder(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

 private:
  std::shared_ptr<Impl> impl_;
};

struct ImageFolderSplit {
  ImageFolder first;
  ImageFolder second;
};

namespace data {

/// Each folder in `path` is a class, sorted by name (bytes); its files that end in .jpg, .jpeg or .png (any case) are
/// its images, sorted; names that begin with a dot are left out. Throws Error [file] when there is no such folder, no
/// class or a class without images; Error [option] for an option out of range, and when an image is read that this
/// build has no decoder for.
BRISK_EXPORT ImageFolder image_folder(const std::string& path, const ImageOptions& options = {});

/// One file, as image_folder reads it; the random forms draw from Random(seed, 0, 0). Throws Error [data] for a corrupt
/// one, whatever `corrupt` says.
BRISK_EXPORT Tensor read_image(const std::string& path, const ImageOptions& options = {}, uint64_t seed = 0);

}  // namespace data
}  // namespace brisk

// brisk/data.h: data sets: samples with named fields, kept in memory or made when they are read.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "brisk/error.h"
#include "brisk/export.h"
#include "brisk/field.h"
#include "brisk/tensor.h"

namespace brisk {

/// Random numbers for one sample, a pure function of (seed, epoch, index): augmentation repeats itself in a resumed run
/// and does not depend on threads. Also a generator for <random> (result_type, min, max, operator()).
class BRISK_EXPORT Random {
 public:
  using result_type = uint32_t;
  Random(uint64_t seed, int64_t epoch, int64_t index);

  /// [0, 1) in steps of 2^-24.
  float uniform();
  /// [low, high).
  float uniform(float low, float high) { return low + (high - low) * uniform(); }
  /// True with probability p; never for p <= 0, always for p >= 1.
  bool chance(double p);
  /// 0 .. n - 1, each equally likely. Throws Error [option] unless 1 <= n.
  int64_t integer(int64_t n);
  /// Mean 0, standard deviation 1.
  float normal();

  uint32_t operator()();
  static constexpr uint32_t min() { return 0; }
  static constexpr uint32_t max() { return UINT32_MAX; }

 private:
  uint64_t key_;
  int64_t index_;
  uint32_t drawn_ = 0;
  uint32_t block_[4] = {};
};

/// Up to `capacity` samples, each field contiguous: [size, shape of the field...]. The views it gives stay valid until
/// the batch is filled again; a batch of a loop holds until the next turn of the loop.
class BRISK_EXPORT Batch {
 public:
  Batch() = default;
  /// Takes all its memory now; size() is 0.
  Batch(std::vector<Field> fields, int64_t capacity);

  /// The samples of one field. Throws Error [data] naming the fields there are.
  ConstView operator[](std::string_view name) const;
  const std::vector<Field>& fields() const { return fields_; }
  int64_t size() const { return size_; }
  int64_t capacity() const { return capacity_; }
  /// The data set's index of each sample.
  std::span<const int64_t> indices() const { return {indices_.data(), static_cast<size_t>(size_)}; }

  /// Says which samples it holds from now on; their elements are written through slot(). At most capacity() of them.
  void assign(std::span<const int64_t> indices);
  /// All `size()` rows of field number `field`, to be written.
  View slot(int64_t field);

 private:
  std::vector<Field> fields_;
  std::vector<Tensor> storage_;
  std::vector<int64_t> indices_;
  int64_t size_ = 0;
  int64_t capacity_ = 0;
};

/// Where Dataset::read puts one sample: a row of a batch.
class BRISK_EXPORT Sample {
 public:
  Sample(Batch& batch, int64_t row) : batch_(&batch), row_(row) {}
  /// The place for field `name`, of exactly the field's shape and element type. Throws Error [data] naming the fields
  /// there are.
  View operator[](std::string_view name) const;

 private:
  Batch* batch_;
  int64_t row_;
};

/// Samples by index. Derive from it to read, decode or make samples when they are needed.
class BRISK_EXPORT Dataset {
 public:
  virtual ~Dataset();
  virtual int64_t size() const = 0;
  /// Name, shape of one sample and element type of each field; the same at each call.
  virtual std::vector<Field> fields() const = 0;
  /// Writes every field of sample `index` (0 .. size() - 1) to `out`, whose former contents are arbitrary. Called by
  /// several threads at once. All randomness comes from `random`. What it throws reaches the caller as Error [data]
  /// naming the sample.
  virtual void read(int64_t index, Sample& out, Random& random) const = 0;
  /// How messages call it; the class's name unless overridden.
  virtual std::string name() const;
};

struct SplitOptions {
  double first = 0.8;  ///< share of the samples that the first part gets, rounded to whole samples; in (0, 1)
  uint64_t seed = 0;   ///< which samples: a pure function of it
};

struct Split;

/// Columns in memory. A copy shares the elements, which are never written.
class BRISK_EXPORT InMemoryDataset : public Dataset {
 public:
  /// One value a sample: tensor [N, shape of the field...]. The tensor moves in, or is copied. All columns must have
  /// the same N. Throws Error [data] when they have not, for a scalar tensor, an empty or a repeated name, or after
  /// split.
  void add(std::string name, Tensor tensor);
  /// Borrows: the elements must outlive the data set and all its copies and parts.
  void add(std::string name, ConstView view);
  /// Bytes [N, ...] that are delivered as f32 value / 255, [0, 1]: a quarter of the memory of floats.
  void add_pixels(std::string name, Tensor bytes);

  int64_t size() const override;
  std::vector<Field> fields() const override;
  void read(int64_t index, Sample& out, Random& random) const override;
  std::string name() const override;
  /// How messages call it; "data set" when empty.
  void set_name(std::string name) { name_ = std::move(name); }
  /// Gathers samples into `out` (made from fields()). Throws Error [data] for an index outside 0 .. size() - 1.
  void rows(std::span<const int64_t> indices, Batch& out) const;

  /// Two disjoint random parts that share this set's elements:
  /// auto [train, test] = all.split({.first = 0.8, .seed = 7}). Throws Error [option] when a part would be empty.
  Split split(SplitOptions options = {}) const;
  /// Throws Error [data] naming field, sample and column (the position within the sample) of the first NaN or infinity.
  void check_finite() const;

 private:
  struct Column {
    Field field;
    ConstView elements;
    std::shared_ptr<const Tensor> owner;  // null: borrowed
    bool pixels = false;
  };
  void add_column(Column column);
  InMemoryDataset part(std::vector<int64_t> rows) const;

  std::vector<Column> columns_;
  std::shared_ptr<const std::vector<int64_t>> rows_;  // null: all
  std::string name_;
};

struct Split {
  InMemoryDataset first{};
  InMemoryDataset second{};
};

namespace data {

struct TrainTest {
  InMemoryDataset train{};
  InMemoryDataset test{};
};

/// Fashion-MNIST: 60,000 and 10,000 images; fields input f32 [1, 28, 28] in [0, 1], target i64 [] 0..9.
/// folder: where the four IDX files are, plain or .gz; empty: $BRISK_DATA, $BRISK_DATA/fashion-mnist, then
/// /usr/share/datasets/fashion-mnist (Debian's package dataset-fashion-mnist). Nothing is ever downloaded. Throws
/// Error [file] listing the folders tried, or saying what is wrong with a file.
BRISK_EXPORT TrainTest fashion_mnist(const std::string& folder = {});

/// CIFAR-10, its binary version (data_batch_1.bin .. data_batch_5.bin, test_batch.bin; plain or .gz): 50,000 and 10,000
/// images; fields input f32 [3, 32, 32] in [0, 1], target i64 [] 0..9. Shorter files with whole records are taken.
/// folder: where the files are, or the folder above their cifar-10-batches-bin; empty: $BRISK_DATA. Nothing is ever
/// downloaded. Throws Error [file] listing the folders tried, or naming the record and saying what is wrong with it.
BRISK_EXPORT TrainTest cifar10(const std::string& folder = {});
/// CIFAR-100 (train.bin, test.bin; or the folder above their cifar-100-binary), as cifar10; target is the fine label,
/// 0..99.
BRISK_EXPORT TrainTest cifar100(const std::string& folder = {});

/// `count` images of the digits 0..9, drawn by the library itself with random slant, size, place, pen and noise; a pure
/// function of (seed, index), so a larger set begins with the smaller one. Fields as fashion_mnist's. Another seed
/// makes a test set. Throws Error [option] unless 1 <= count < 2^31.
BRISK_EXPORT InMemoryDataset drawn_digits(int64_t count, uint64_t seed = 0);

/// Images and labels in IDX files of unsigned bytes (type 0x08), plain or gzip (told by its first bytes, whatever the
/// name). Fields: input f32 in [0, 1], [1, H, W] for images [N, H, W], otherwise the file's shape without N; target i64
/// []. Throws Error [file] with the reason, the expected and the actual size for anything that is not exactly such a
/// file; a file that unpacks to more than its header declares is not unpacked further.
BRISK_EXPORT InMemoryDataset idx(const std::string& images_path, const std::string& labels_path);

}  // namespace data
}  // namespace brisk

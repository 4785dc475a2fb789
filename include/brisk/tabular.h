// brisk/tabular.h: tables of numbers: comma-separated files, and columns brought to mean 0 and deviation 1.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "brisk/data.h"
#include "brisk/export.h"
#include "brisk/model.h"

namespace brisk {

struct CsvOptions {
  bool classes = false;                ///< the one target column holds class numbers 0, 1, ...: i64, not f32
  char delimiter = ',';                ///< one of , ; | and tab
  bool header = true;                  ///< the first line names the columns; without it they are "1", "2", ...
  std::vector<std::string> ignore{};   ///< columns that are not read: text, row numbers
  std::vector<std::string> inputs{};   ///< in this order; empty: all other columns, in the file's order
  std::vector<std::string> targets{};  ///< in this order; empty: the table has no targets
};

struct Table {
  InMemoryDataset samples{};           ///< input f32 [inputs]; target f32 [targets], or i64 [] for classes
  std::vector<std::string> inputs{};   ///< names of the columns, as they stand in `input`
  std::vector<std::string> targets{};  ///< as they stand in `target`
};

/// Brings each element of a field to mean 0 and standard deviation 1 over a data set: (x - mean) / deviation. An
/// element that is the same in all samples has deviation 0; it becomes 0.
class BRISK_EXPORT Standardizer {
 public:
  /// Mean and deviation (the root of the mean square distance) of each element of an f32 field over all samples, read
  /// in epoch 0 with seed 0; sums in double. Throws Error [data] for an empty set, another element type, no such field,
  /// a NaN or an infinity.
  static Standardizer fit(const Dataset& dataset, std::string_view field = "input");
  /// From numbers kept elsewhere. Throws Error [data] unless both have the same size of at least 1, all are finite and
  /// no deviation is negative.
  Standardizer(std::vector<double> mean, std::vector<double> deviation);

  const std::vector<double>& mean() const { return mean_; }
  const std::vector<double>& deviation() const { return deviation_; }
  /// In place: f32, any number of samples [..., elements of one sample]. Throws Error [data] for another element type
  /// or a count that is no multiple of the size.
  void apply(View samples) const;
  /// The same as the first layer of a model: x [N, ...] f32 with as many elements a sample. The numbers become buffers
  /// scale.mean and scale.deviation in the current scope, so that they are saved with the weights; they are never
  /// trained. A model that load_weights() fills can be made with any numbers of the right size. Computes in f32, where
  /// apply() uses double: columns whose mean is above 10,000 deviations (dates, say) are better moved by apply() first.
  /// Throws Error [shape] for another number of elements. Two in one scope need a Scope each.
  Var operator()(Var x, Where where = Where::here()) const;
  /// The inverse of apply, for predictions: x * deviation + mean.
  void undo(View samples) const;
  /// A copy of the data set with this field standardized; its other fields are copied as they are.
  InMemoryDataset apply(const InMemoryDataset& dataset, std::string_view field = "input") const;

 private:
  float* checked(View samples) const;
  std::vector<double> mean_;
  std::vector<double> deviation_;
};

namespace data {

/// A file of lines of numbers with a decimal point, whatever the locale; plain or gzip. Cells may stand in double
/// quotes, blanks around them and empty lines are skipped, a line may end in \r\n. Throws Error [file] naming line and
/// column for a cell that is empty, no number, not finite or too large, for a line with more or fewer cells than the
/// first, and for what is no text; Error [option] for a column that there is not, naming the ones there are. In a build
/// without the CSV reader: Error [option].
BRISK_EXPORT Table csv(const std::string& path, const CsvOptions& options = {});

}  // namespace data
}  // namespace brisk

// Comma-separated numbers. Lines and quotes are the CSV reader's work, columns and numbers are done here.
#include "brisk/tabular.h"
#include "core/text.h"

#ifdef BRISK_HAVE_CSV

#define CSV_IO_NO_THREAD 1
#include <libfccp/csv.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>

#include "data/byte_source.h"

namespace brisk::data {
namespace {

// The file's bytes, with an end to its last line: the reader's end of data is then never inside a line.
class LineSource : public io::ByteSourceBase {
 public:
  explicit LineSource(const std::string& path) : path_(path), source_(open_source(path)) {}

  int read(char* out, int size) override {
    int got = static_cast<int>(source_->read(out, size));
    if (std::memchr(out, 0, static_cast<size_t>(got)) != nullptr) {
      throw Error(ErrorCode::file, path_, "holds a zero byte: it is no text in UTF-8");
    }
    if (got > 0) last_ = out[got - 1];
    if (got < size && last_ != '\n') out[got++] = last_ = '\n';
    return got;
  }

 private:
  const std::string path_;
  std::unique_ptr<ByteSource> source_;
  char last_ = '\n';
};

using Cells = std::vector<std::string_view>;

template <char kDelimiter>
void split(char* line, Cells& cells) {
  using Quotes = io::double_quote_escape<kDelimiter, '"'>;
  for (char* begin = line;;) {
    char* const end = begin + (Quotes::find_next_column_end(begin) - begin);
    const bool last = *end == '\0';
    char* first = begin;
    char* behind = end;
    io::trim_chars<' '>::trim(first, behind);
    Quotes::unescape(first, behind);
    cells.emplace_back(first, static_cast<size_t>(behind - first));
    if (last) return;
    begin = end + 1;
  }
}

using Splitter = void (*)(char*, Cells&);

Splitter splitter(char delimiter) {
  switch (delimiter) {
    case ',':
      return split<','>;
    case ';':
      return split<';'>;
    case '|':
      return split<'|'>;
    case '\t':
      return split<'\t'>;
    default:
      throw Error(ErrorCode::option, cat("delimiter = '", delimiter, "'"), "must be one of , ; | and tab");
  }
}

// Lines as cells, each with its number for messages.
class LineCells {
 public:
  LineCells(const std::string& path, char delimiter)
      : path_(path), split_(splitter(delimiter)), lines_(path, std::make_unique<LineSource>(path)) {}

  /// False at the end. The cells hold until the next call.
  bool next() {
    cells_.clear();
    try {
      char* line = lines_.next_line();
      while (line != nullptr && is_blank(line)) line = lines_.next_line();
      if (line == nullptr) return false;
      split_(line, cells_);
    } catch (const io::error::escaped_string_not_closed&) {
      refuse(cat("cell ", cells_.size() + 1, " begins a quote that does not end on this line"));
    } catch (const io::error::line_length_limit_exceeded&) {
      refuse("is longer than 16 million bytes: no line of a table");
    }
    return true;
  }
  const Cells& cells() const { return cells_; }
  [[noreturn]] void refuse(const std::string& reason) const {
    throw Error(ErrorCode::file, cat(path_, ":", lines_.get_file_line()), reason);
  }

 private:
  static bool is_blank(const char* line) { return line[std::strspn(line, " \t")] == '\0'; }
  const std::string path_;
  Splitter split_;
  io::LineReader lines_;
  Cells cells_;
};

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out;
}

// Which columns of the file are read, and as what.
class Columns {
 public:
  Columns(std::vector<std::string> names, const CsvOptions& options) : names_(std::move(names)) {
    std::vector<bool> taken(names_.size(), false);
    take("ignore", options.ignore, taken);
    targets_ = take("targets", options.targets, taken);
    inputs_ = take("inputs", options.inputs, taken);
    for (size_t i = 0; options.inputs.empty() && i < names_.size(); ++i) {
      if (!taken[i]) inputs_.push_back(i);
    }
    if (inputs_.empty()) {
      throw Error(ErrorCode::option, "inputs", cat("no column is left for it; there are: ", joined(names_)));
    }
    if (options.classes && targets_.size() != 1) {
      throw Error(ErrorCode::option, "classes = true", cat("needs one target column; targets has ", targets_.size()));
    }
  }

  const std::vector<std::string>& names() const { return names_; }
  const std::vector<size_t>& inputs() const { return inputs_; }
  const std::vector<size_t>& targets() const { return targets_; }
  std::vector<std::string> names_of(const std::vector<size_t>& columns) const {
    std::vector<std::string> out;
    for (const size_t column : columns) out.push_back(names_[column]);
    return out;
  }

 private:
  std::vector<size_t> take(const char* option, const std::vector<std::string>& wanted, std::vector<bool>& taken) const {
    std::vector<size_t> out;
    for (const std::string& name : wanted) {
      const size_t column = static_cast<size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
      const std::string field = cat(option, " = \"", name, "\"");
      if (column == names_.size()) {
        const std::string close = closest(name, names_);
        throw Error(ErrorCode::option, field,
                    cat("there is no such column; there are: ", joined(names_),
                        close.empty() ? "" : cat(" (did you mean ", close, "?)")));
      }
      if (taken[column]) throw Error(ErrorCode::option, field, "the column is named twice; each has one use");
      taken[column] = true;
      out.push_back(column);
    }
    return out;
  }

  std::vector<std::string> names_;
  std::vector<size_t> inputs_;
  std::vector<size_t> targets_;
};

// A column without a name is called by its number.
std::vector<std::string> column_names(const LineCells& first, bool header) {
  std::vector<std::string> names;
  for (size_t i = 0; i < first.cells().size(); ++i) {
    std::string name(header ? first.cells()[i] : std::string_view());
    if (name.empty()) name = cat(i + 1);
    if (std::find(names.begin(), names.end(), name) != names.end()) {
      first.refuse(cat("two columns are called \"", name, "\"; rename one, or read the file with header = false"));
    }
    names.push_back(std::move(name));
  }
  return names;
}

class TableReader {
 public:
  TableReader(const std::string& path, const CsvOptions& options) : path_(path), options_(options) {}

  Table read() {
    LineCells lines(path_, options_.delimiter);
    if (!lines.next()) throw Error(ErrorCode::file, path_, "is empty");
    const Columns columns(column_names(lines, options_.header), options_);
    if (!options_.header) add_row(lines, columns);
    while (lines.next()) add_row(lines, columns);
    if (rows_ == 0) throw Error(ErrorCode::file, path_, "has no line of numbers, only the names of columns");
    return table(columns);
  }

 private:
  void add_row(const LineCells& lines, const Columns& columns) {
    if (lines.cells().size() != columns.names().size()) {
      lines.refuse(cat("has ", lines.cells().size(), " cells, the first line has ", columns.names().size()));
    }
    for (const size_t column : columns.inputs()) inputs_.push_back(number(lines, columns, column));
    for (const size_t column : columns.targets()) {
      if (options_.classes) {
        classes_.push_back(class_number(lines, columns, column));
      } else {
        targets_.push_back(number(lines, columns, column));
      }
    }
    ++rows_;
  }

  [[noreturn]] static void refuse(const LineCells& lines, const Columns& columns, size_t column,
                                  const std::string& reason) {
    constexpr size_t kShown = 40;
    const std::string_view cell = lines.cells()[column];
    const std::string shown = cell.size() > kShown ? cat(cell.substr(0, kShown), "...") : std::string(cell);
    lines.refuse(cat("column \"", columns.names()[column], "\": ",
                     cell.empty() ? "the cell is empty; fill it in, leave out the row or ignore the column"
                                  : cat("\"", shown, "\" ", reason)));
  }

  // Too small for a float, not too large: it is 0.
  static bool is_tiny(std::string_view cell) {
    double value = 1;
    std::from_chars(cell.data(), cell.data() + cell.size(), value);
    return std::abs(value) < 1;
  }

  static float number(const LineCells& lines, const Columns& columns, size_t column) {
    std::string_view cell = lines.cells()[column];
    if (cell.size() > 1 && cell[0] == '+' && cell[1] != '-') cell.remove_prefix(1);
    float value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error == std::errc::invalid_argument || end != cell.data() + cell.size()) {
      refuse(lines, columns, column, "is no number such as -1.5e3; convert it, or ignore the column");
    }
    if (error == std::errc::result_out_of_range && !is_tiny(cell)) {
      refuse(lines, columns, column, "does not fit a 32-bit float");
    }
    if (!std::isfinite(value)) refuse(lines, columns, column, "is not finite; leave out the row or fill it in");
    return value;
  }

  static int64_t class_number(const LineCells& lines, const Columns& columns, size_t column) {
    const std::string_view cell = lines.cells()[column];
    int64_t value = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), value);
    if (error != std::errc() || end != cell.data() + cell.size() || value < 0) {
      refuse(lines, columns, column, "is no class number 0, 1, ...; number the classes, or use classes = false");
    }
    return value;
  }

  Table table(const Columns& columns) {
    Table out;
    out.inputs = columns.names_of(columns.inputs());
    out.targets = columns.names_of(columns.targets());
    out.samples.set_name(path_.substr(path_.rfind('/') + 1));
    out.samples.add("input", Tensor(std::move(inputs_), {rows_, static_cast<int64_t>(out.inputs.size())}));
    if (options_.classes) {
      out.samples.add("target", Tensor(std::move(classes_), {rows_}));
    } else if (!out.targets.empty()) {
      out.samples.add("target", Tensor(std::move(targets_), {rows_, static_cast<int64_t>(out.targets.size())}));
    }
    return out;
  }

  const std::string path_;
  const CsvOptions options_;
  int64_t rows_ = 0;
  std::vector<float> inputs_;
  std::vector<float> targets_;
  std::vector<int64_t> classes_;
};

}  // namespace

Table csv(const std::string& path, const CsvOptions& options) { return TableReader(path, options).read(); }

}  // namespace brisk::data

#else

namespace brisk::data {

Table csv(const std::string& path, const CsvOptions&) {
  throw Error(ErrorCode::option, cat("csv(\"", path, "\")"),
              "this build of Brisk has no CSV reader; install libfccp-dev (Fast C++ CSV Parser) and build it again, or "
              "fill an InMemoryDataset");
}

}  // namespace brisk::data

#endif

// Plots of a run's loss. Values that are not finite are left out and interrupt the line.
#include "train/curve.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <vector>

#include "core/text.h"

namespace brisk {
namespace train {
namespace {

struct Range {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();
  bool empty() const { return !(low <= high); }
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// Position of a value in [0, 1].
  double at(double value) const { return high > low ? (value - low) / (high - low) : 0.5; }
};

/// Finite, and so that differences are as well.
bool drawable(double value) { return std::fabs(value) <= 1e300; }
bool drawable(const RunPoint& point) { return drawable(point.epochs) && drawable(point.loss); }

struct Frame {
  Range epochs;
  Range loss;
};

Frame frame_of(const RunCurves& curves) {
  Frame frame;
  for (const std::vector<RunPoint>* points : {&curves.train, &curves.validation}) {
    for (const RunPoint& point : *points) {
      if (!drawable(point)) continue;
      frame.epochs.add(point.epochs);
      frame.loss.add(point.loss);
    }
  }
  if (!frame.epochs.empty()) frame.epochs.low = 0;
  return frame;
}

std::string padded(double value, int width) {
  const std::string text = number_text(value, 3);
  return std::string(static_cast<size_t>(std::max(0, width - static_cast<int>(text.size()))), ' ') + text;
}

/// Characters under construction.
class Canvas {
 public:
  Canvas(int columns, int rows)
      : columns_(columns),
        rows_(rows),
        cells_(static_cast<size_t>(rows), std::string(static_cast<size_t>(columns), ' ')) {}
  /// x and y in [0, 1], y upwards.
  void put(double x, double y, char mark) {
    const int column = std::clamp(static_cast<int>(x * (columns_ - 1) + 0.5), 0, columns_ - 1);
    const int row = std::clamp(static_cast<int>((1 - y) * (rows_ - 1) + 0.5), 0, rows_ - 1);
    cells_[static_cast<size_t>(row)][static_cast<size_t>(column)] = mark;
  }
  const std::string& row(int row) const { return cells_[static_cast<size_t>(row)]; }

 private:
  int columns_;
  int rows_;
  std::vector<std::string> cells_;
};

}  // namespace

std::string draw_text(const RunCurves& curves, int columns, int rows) {
  constexpr int kLabel = 9;
  const Frame frame = frame_of(curves);
  if (frame.epochs.empty()) return "no loss has been recorded\n";
  const int width = std::max(columns - kLabel - 1, 10);
  const int height = std::max(rows - 2, 4);
  Canvas canvas(width, height);
  const auto plot = [&](const std::vector<RunPoint>& points, char mark) {
    for (const RunPoint& point : points) {
      if (drawable(point)) canvas.put(frame.epochs.at(point.epochs), frame.loss.at(point.loss), mark);
    }
  };
  plot(curves.train, '*');
  plot(curves.validation, 'o');
  std::string out;
  for (int row = 0; row < height; ++row) {
    const double value = frame.loss.high - (frame.loss.high - frame.loss.low) * row / (height - 1);
    const bool labelled = row % 4 == 0 || row == height - 1;
    std::string cells = canvas.row(row);
    cells.erase(cells.find_last_not_of(' ') + 1);
    out += (labelled ? padded(value, kLabel - 1) : std::string(kLabel - 1, ' ')) + " |" + cells + "\n";
  }
  out += std::string(kLabel, ' ') + "+" + std::string(static_cast<size_t>(width), '-') + "\n";
  std::string legend = curves.validation.empty() ? "loss: * train" : "loss: * train, o validation";
  const std::string end = cat(frame.epochs.high, " epochs");
  const size_t gap = static_cast<size_t>(std::max<int>(2, width - static_cast<int>(legend.size() + end.size()) - 1));
  return out + std::string(kLabel + 1, ' ') + "0 " + legend + std::string(gap - 1, ' ') + end + "\n";
}

namespace {

/// A round step that cuts a range into about `parts`.
double tick_step(const Range& range, int parts) {
  const double raw = std::max((range.high - range.low) / parts, 1e-12);
  const double power = std::pow(10, std::floor(std::log10(raw)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (raw <= factor * power) return factor * power;
  }
  return 10 * power;
}

std::string coordinate(double value) { return fixed_text(value, 1); }

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else
      out += c;
  }
  return out;
}

/// The drawing area of an SVG picture, in its units.
struct Area {
  double left = 64, right = 704, top = 48, bottom = 352;
  Frame frame;
  double x(double epochs) const { return left + (right - left) * frame.epochs.at(epochs); }
  double y(double loss) const { return bottom - (bottom - top) * frame.loss.at(loss); }
};

std::string label(double x, double y, const char* anchor, const std::string& text) {
  return cat("<text x=\"", coordinate(x), "\" y=\"", coordinate(y), "\" text-anchor=\"", anchor, "\">", escaped(text),
             "</text>\n");
}

std::string line(double x1, double y1, double x2, double y2, const char* colour) {
  return cat("<line x1=\"", coordinate(x1), "\" y1=\"", coordinate(y1), "\" x2=\"", coordinate(x2), "\" y2=\"",
             coordinate(y2), "\" stroke=\"", colour, "\"/>\n");
}

/// The multiples of a round step in a range: counted, since a large number plus a small step may be the same number.
std::vector<double> ticks(const Range& range, int parts) {
  const double step = tick_step(range, parts), first = std::ceil(range.low / step);
  std::vector<double> out;
  for (int k = 0; k <= 2 * parts && (first + k) * step <= range.high + 1e-9 * step; ++k) {
    out.push_back((first + k) * step);
  }
  return out;
}

std::string grid(const Area& area) {
  std::string out;
  for (const double value : ticks(area.frame.loss, 6)) {
    out += line(area.left, area.y(value), area.right, area.y(value), "#dddddd");
    out += label(area.left - 8, area.y(value) + 4, "end", number_text(value));
  }
  for (const double value : ticks(area.frame.epochs, 8)) {
    out += line(area.x(value), area.bottom, area.x(value), area.bottom + 5, "#444444");
    out += label(area.x(value), area.bottom + 20, "middle", number_text(value));
  }
  out += line(area.left, area.bottom, area.right, area.bottom, "#444444");
  out += line(area.left, area.top, area.left, area.bottom, "#444444");
  return out + label((area.left + area.right) / 2, area.bottom + 38, "middle", "epochs");
}

std::string polyline(const Area& area, const std::vector<RunPoint>& points, const char* colour) {
  std::string out, path, dots;
  const auto close = [&] {
    if (!path.empty())
      out += cat("<polyline fill=\"none\" stroke-width=\"2\" stroke=\"", colour, "\" points=\"", path, "\"/>\n");
    path.clear();
  };
  for (const RunPoint& point : points) {
    if (!drawable(point)) {
      close();
      continue;
    }
    const std::string x = coordinate(area.x(point.epochs)), y = coordinate(area.y(point.loss));
    path += cat(path.empty() ? "" : " ", x, ",", y);
    if (points.size() <= 40) dots += cat("<circle r=\"3\" cx=\"", x, "\" cy=\"", y, "\" fill=\"", colour, "\"/>\n");
  }
  close();
  return out + dots;
}

}  // namespace

std::string draw_svg(const RunCurves& curves, const std::string& title) {
  constexpr const char* kTrain = "#1f5fb4";
  constexpr const char* kValidation = "#d1541f";
  Area area;
  area.frame = frame_of(curves);
  std::string out =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"400\" viewBox=\"0 0 720 400\" "
      "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"720\" height=\"400\" fill=\"white\"/>\n";
  out += label(area.left, 24, "start", title);
  if (area.frame.epochs.empty()) return out + label(360, 200, "middle", "no loss has been recorded") + "</svg>\n";
  Range& loss = area.frame.loss;
  if (!(loss.high > loss.low)) loss.add(loss.low + std::max(1.0, std::fabs(loss.low) / 1000));
  out += grid(area);
  out += polyline(area, curves.train, kTrain);
  out += polyline(area, curves.validation, kValidation);
  out += line(520, 20, 544, 20, kTrain) + label(550, 24, "start", "train");
  if (!curves.validation.empty()) out += line(600, 20, 624, 20, kValidation) + label(630, 24, "start", "validation");
  return out + "</svg>\n";
}

}  // namespace train

namespace {

std::string file_in(const std::string& folder, const char* name) {
  return (std::filesystem::path(folder) / name).string();
}

}  // namespace

std::string loss_picture(const std::string& run_folder, PictureOptions options) {
  constexpr int kMost = 10000;
  const auto check = [&](const char* field, int value, int least) {
    if (value < least || value > kMost)
      throw Error(ErrorCode::option, cat("PictureOptions.", field, " = ", value),
                  cat("must be ", least, " to ", kMost));
  };
  check("columns", options.columns, 20);
  check("rows", options.rows, 6);
  return train::draw_text(train::read_curves(file_in(run_folder, "events.jsonl")), options.columns, options.rows);
}

std::string write_loss_svg(const std::string& run_folder) {
  const std::string text =
      train::draw_svg(train::read_curves(file_in(run_folder, "events.jsonl")), "loss of " + run_folder);
  const std::string path = file_in(run_folder, "loss.svg");
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) throw Error(ErrorCode::file, path, "cannot be written");
  return path;
}

}  // namespace brisk

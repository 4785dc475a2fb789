// What fit() shows while it runs: lines to the program's logger, a bar that is redrawn on a terminal, plain lines
// elsewhere, or nothing.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

#include "brisk/trainer.h"

namespace brisk::train {

/// What the bar and the lines tell.
struct ProgressState {
  Clock clock{};
  double epochs_wanted = 0;  ///< 0: not known as epochs
  double fraction = 0;       ///< of this run, [0, 1]
  double samples_per_s = 0;
  double seconds_left = 0;
  std::string values{};  ///< "loss 0.412, accuracy 0.853"; empty before the first report
};

/// "epoch 2 of 5 [#####...............]  26 %, 0:42 left, 12,340 samples/s, loss 0.4123", at most `columns` wide.
std::string bar_text(const ProgressState& state, int columns);
/// "epoch 1.20, 1,500 updates: loss 0.4123, accuracy 0.853; rate 0.001, 12,340 samples/s, 0:42 left"
std::string report_text(const ProgressState& state, const UpdateReport& report);
/// "0:42", "1:02:03"
std::string time_text(double seconds);

class Progress {
 public:
  enum class Mode : uint8_t { none, lines, bar, logger };
  /// Chooses the mode: none unless `enabled`; the program's logger when it has one, level info; a bar when `out` is a
  /// terminal; else lines there.
  Progress(bool enabled, bool lines_beside_bar, std::FILE* out = stdout);
  /// Ends the bar's line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  Mode mode() const { return mode_; }
  /// Whether tick() would draw at `seconds`: ten times a second at most, so that the state need not be made for
  /// nothing.
  bool wants_tick(double seconds) const { return mode_ == Mode::bar && seconds >= next_tick_; }
  void tick(const ProgressState& state);
  void report(const ProgressState& state, const UpdateReport& report);
  /// A line that stays.
  void line(const std::string& text);

 private:
  void clear();
  Mode mode_ = Mode::none;
  bool lines_beside_bar_;
  bool drawn_ = false;
  double next_tick_ = 0;
  std::FILE* out_;
};

}  // namespace brisk::train

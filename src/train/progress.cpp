// The progress bar and its plain twin.
#include "train/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "core/log.h"
#include "core/text.h"

namespace brisk::train {
namespace {

constexpr double kTickSeconds = 0.1;
constexpr int kDefaultColumns = 80;

std::string rate_text(double samples_per_s) {
  if (!(samples_per_s > 0 && samples_per_s < 1e15)) return {};
  return cat(", ", grouped(std::llround(samples_per_s)), " samples/s");
}

int terminal_columns(std::FILE* out) {
  winsize size = {};
  if (::ioctl(::fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return kDefaultColumns;
}

}  // namespace

std::string time_text(double seconds) {
  if (!(seconds >= 0 && seconds < 1e9)) return "?";
  const long long total = std::llround(seconds);
  char buffer[48];
  if (total >= 3600) {
    std::snprintf(buffer, sizeof(buffer), "%lld:%02lld:%02lld", total / 3600, total / 60 % 60, total % 60);
  } else {
    std::snprintf(buffer, sizeof(buffer), "%lld:%02lld", total / 60, total % 60);
  }
  return buffer;
}

std::string bar_text(const ProgressState& state, int columns) {
  std::string head;
  if (state.epochs_wanted > 0) {
    const double current = std::min(std::floor(state.clock.epochs) + 1, std::ceil(state.epochs_wanted));
    head = cat("epoch ", current, " of ", state.epochs_wanted, " ");
  }
  const double fraction = std::clamp(state.fraction, 0.0, 1.0);
  char percent[16];
  std::snprintf(percent, sizeof(percent), "%3d %%", static_cast<int>(fraction * 100));
  std::string tail = percent;
  if (state.fraction > 0) tail += cat(", ", time_text(state.seconds_left), " left");
  tail += rate_text(state.samples_per_s);
  if (!state.values.empty()) tail += ", " + state.values;
  const int room = columns - 1 - static_cast<int>(head.size() + tail.size()) - 3;
  const int width = std::clamp(room, 5, 30);
  const int full = static_cast<int>(fraction * width);
  std::string out = head + "[" + std::string(static_cast<size_t>(full), '#') +
                    std::string(static_cast<size_t>(width - full), '.') + "] " + tail;
  return out.substr(0, static_cast<size_t>(std::max(columns - 1, 1)));
}

std::string report_text(const ProgressState& state, const UpdateReport& report) {
  std::string out = cat("epoch ", fixed_text(state.clock.epochs, 2), ", ", grouped(state.clock.updates),
                        " updates: ", state.values, "; rate ", report.learning_rate, rate_text(state.samples_per_s));
  if (report.loss_scale != 1) out += cat(", loss scale ", report.loss_scale);
  if (report.skipped > 0) out += cat(", ", grouped(report.skipped), " skipped");
  if (state.fraction > 0 && state.fraction < 1) out += cat(", ", time_text(state.seconds_left), " left");
  return out;
}

Progress::Progress(bool enabled, bool lines_beside_bar, std::FILE* out)
    : lines_beside_bar_(lines_beside_bar), out_(out) {
  if (!enabled) return;
  mode_ = has_own_logger() ? Mode::logger : ::isatty(::fileno(out)) ? Mode::bar : Mode::lines;
}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (!drawn_) return;
  std::fputs("\r\x1b[K", out_);
  std::fflush(out_);
  drawn_ = false;
}

void Progress::tick(const ProgressState& state) {
  if (!wants_tick(state.clock.seconds)) return;
  next_tick_ = state.clock.seconds + kTickSeconds;
  std::fputs(("\r" + bar_text(state, terminal_columns(out_)) + "\x1b[K").c_str(), out_);
  std::fflush(out_);
  drawn_ = true;
}

void Progress::report(const ProgressState& state, const UpdateReport& report) {
  if (mode_ == Mode::none || (mode_ == Mode::bar && !lines_beside_bar_)) return;
  line(report_text(state, report));
}

void Progress::line(const std::string& text) {
  if (mode_ == Mode::none) return;
  if (mode_ == Mode::logger) {
    log_info(text);
    return;
  }
  clear();
  std::fputs((text + "\n").c_str(), out_);
  std::fflush(out_);
}

}  // namespace brisk::train

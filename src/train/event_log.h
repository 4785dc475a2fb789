// The event log of a run: one JSON object a line, appended to <run folder>/events.jsonl.
// Every line has "type" and the clock: "attempts", "epochs", "samples", "seconds", "updates". What is not finite is
// null, and the line then has "nonfinite": true.
//   start       "version", "model", "parameters", "optimizer", "learning_rate" (the schedule), "batch", "accumulate",
//               "precision", "threads", "machine", "duration", "train_samples", "validation_samples", "plan_bytes"
//   train       "loss", "terms", "metrics", "learning_rate" (of the last update), "gradient_norm",
//               "loss_scale", "skipped" (in all), "samples_per_s"
//   evaluation  "loss", "terms", "metrics", "evaluated_samples"
//   finish      "reason", "message"
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "brisk/trainer.h"

namespace brisk::train {

/// What a start line tells.
struct RunFacts {
  int64_t accumulate = 1;
  int64_t batch = 0;
  std::string duration{};
  std::string learning_rate{};
  std::string machine{};
  std::string model{};
  std::string optimizer{};
  int64_t parameters = 0;
  int64_t plan_bytes = 0;
  std::string precision{};
  int threads = 0;
  int64_t train_samples = 0;
  int64_t validation_samples = 0;
};

/// Appends lines, each with one write, so that a killed run leaves whole lines but perhaps the last.
class EventLog {
 public:
  /// An empty folder: no log. Makes the folder. Throws Error [file] when the log cannot be opened.
  explicit EventLog(const std::string& run_folder);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  void start(const Clock& clock, const RunFacts& facts);
  void train(const UpdateReport& report);
  void evaluation(const Clock& clock, const EvaluationResult& result);
  void finish(const Clock& clock, StopReason reason, const std::string& message);
  const std::string& path() const { return path_; }

 private:
  void write(const std::string& line);
  std::string path_;
  int file_ = -1;
};

/// A measured value over the run.
struct RunPoint {
  double epochs = 0;
  double loss = 0;  ///< NaN where the line had null
};
struct RunCurves {
  std::vector<RunPoint> train;
  std::vector<RunPoint> validation;
};

/// The losses of the newest run in an event log: what follows its last "start" line with no updates done. Lines that
/// are no JSON (a killed run's last one) are left out. Throws Error [file] when it cannot be read.
RunCurves read_curves(const std::string& events_path);

}  // namespace brisk::train

// JSON lines.
#include "train/event_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/file.h"
#include "core/log.h"

namespace brisk::train {
namespace {

using Json = nlohmann::ordered_json;

/// One line under construction: numbers that are not finite become null and are remembered.
class Line {
 public:
  Line(const char* type, const Clock& clock) {
    json_["type"] = type;
    json_["attempts"] = clock.attempts;
    number("epochs", clock.epochs);
    json_["samples"] = clock.samples;
    number("seconds", clock.seconds);
    json_["updates"] = clock.updates;
  }
  void number(const char* name, double value) { json_[name] = checked(value); }
  template <class T>
  void set(const char* name, const T& value) {
    json_[name] = value;
  }
  void means(const char* name, const std::vector<NamedMean>& means) {
    Json object = Json::object();
    for (const NamedMean& mean : means) object[mean.name] = checked(mean.value());
    json_[name] = object;
  }
  std::string text() {
    if (nonfinite_) json_["nonfinite"] = true;
    return json_.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

 private:
  Json checked(double value) {
    if (std::isfinite(value)) return value;
    nonfinite_ = true;
    return nullptr;
  }
  Json json_;
  bool nonfinite_ = false;
};

[[noreturn]] void throw_file(const std::string& path, const char* what, int error) {
  throw Error(ErrorCode::file, path, cat(what, ": ", errno_text(error)));
}

/// A program that died while it wrote left half a line, to which the next one must not be glued.
bool ends_inside_line(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file || file.tellg() <= 0) return false;
  file.seekg(-1, std::ios::end);
  return file.get() != '\n';
}

double number_or_nan(const Json& event, const char* name) {
  const auto found = event.find(name);
  return found != event.end() && found->is_number() ? found->get<double>() : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

EventLog::EventLog(const std::string& run_folder) {
  if (run_folder.empty()) return;
  std::error_code failure;
  std::filesystem::create_directories(run_folder, failure);
  if (failure) throw_file(run_folder, "the run folder cannot be made", failure.value());
  path_ = (std::filesystem::path(run_folder) / "events.jsonl").string();
  // Non-blocking: opening a pipe that nobody reads must not wait for ever.
  file_ = ::open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);
  if (file_ < 0) throw_file(path_, "the event log cannot be opened", errno);
  ::fcntl(file_, F_SETFL, O_APPEND);
  if (file_ <= STDERR_FILENO) {
    // The program has closed a standard stream: what is printed there must not end up in this file.
    const int moved = ::fcntl(file_, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    ::close(file_);
    file_ = moved;
    if (file_ < 0) throw_file(path_, "the event log cannot be opened", error);
  }
  struct stat status;
  if (::fstat(file_, &status) == 0 && S_ISREG(status.st_mode) && ends_inside_line(path_)) write("\n");
}

EventLog::~EventLog() {
  if (file_ >= 0) ::close(file_);
}

void EventLog::write(const std::string& line) {
  if (file_ < 0) return;
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = ::write(file_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      log_warning(path_, ": ", errno_text(errno), "; training goes on without the event log");
      ::close(file_);
      file_ = -1;
      return;
    }
    done += static_cast<size_t>(written);
  }
}

void EventLog::start(const Clock& clock, const RunFacts& facts) {
  if (file_ < 0) return;
  Line line("start", clock);
  line.set("version", 1);
  line.set("model", facts.model);
  line.set("parameters", facts.parameters);
  line.set("optimizer", facts.optimizer);
  line.set("learning_rate", facts.learning_rate);
  line.set("batch", facts.batch);
  line.set("accumulate", facts.accumulate);
  line.set("precision", facts.precision);
  line.set("threads", facts.threads);
  line.set("machine", facts.machine);
  line.set("duration", facts.duration);
  line.set("train_samples", facts.train_samples);
  line.set("validation_samples", facts.validation_samples);
  line.set("plan_bytes", facts.plan_bytes);
  write(line.text());
}

void EventLog::train(const UpdateReport& report) {
  if (file_ < 0) return;
  Line line("train", report.clock);
  line.number("loss", report.loss);
  line.means("terms", report.terms);
  line.means("metrics", report.metrics);
  line.number("learning_rate", report.learning_rate);
  line.number("gradient_norm", report.gradient_norm);
  line.number("loss_scale", report.loss_scale);
  line.set("skipped", report.skipped);
  line.number("samples_per_s", report.samples_per_s);
  write(line.text());
}

void EventLog::evaluation(const Clock& clock, const EvaluationResult& result) {
  if (file_ < 0) return;
  Line line("evaluation", clock);
  line.number("loss", result.loss);
  line.means("terms", result.terms);
  line.means("metrics", result.metrics);
  line.set("evaluated_samples", result.samples);
  write(line.text());
}

void EventLog::finish(const Clock& clock, StopReason reason, const std::string& message) {
  if (file_ < 0) return;
  Line line("finish", clock);
  line.set("reason", name(reason));
  line.set("message", message);
  write(line.text());
}

RunCurves read_curves(const std::string& events_path) {
  InputFile file(events_path);
  std::string bytes(static_cast<size_t>(file.size()), '\0');
  bytes.resize(static_cast<size_t>(file.read(bytes.data(), file.size())));
  std::istringstream lines(std::move(bytes));
  RunCurves out;
  std::string text;
  while (std::getline(lines, text)) {
    const Json event = Json::parse(text, nullptr, false);
    if (!event.is_object() || !event.contains("type") || !event["type"].is_string()) continue;
    const std::string type = event["type"].get<std::string>();
    if (type == "start" && number_or_nan(event, "updates") == 0) out = {};
    const RunPoint point{number_or_nan(event, "epochs"), number_or_nan(event, "loss")};
    if (type == "train") out.train.push_back(point);
    if (type == "evaluation") out.validation.push_back(point);
  }
  return out;
}

}  // namespace brisk::train

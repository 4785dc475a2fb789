// The event log's lines, and the curves read back from them.
#include "train/event_log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <clocale>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "train/curve.h"
#include "train_support.h"

namespace brisk::train {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

UpdateReport report_at(double epochs, double loss) {
  UpdateReport out;
  out.clock = {.epochs = epochs, .samples = 64, .seconds = 1, .updates = 1};
  out.loss = loss;
  out.learning_rate = 0.1;
  out.metrics = {{"accuracy", 32, 64}};
  out.terms = {{"loss", loss * 64, 64}};
  return out;
}

TEST(EventLog, EveryLineParsesWhateverTheNumbersAre) {
  const TemporaryFolder folder;
  {
    EventLog log(folder.path() + "/a/b");
    log.start({}, {.model = "net \"x\"\n\xff", .optimizer = "sgd"});
    log.train(report_at(0.5, 1.25));
    UpdateReport bad = report_at(1, kNan);
    bad.gradient_norm = std::numeric_limits<double>::infinity();
    log.train(bad);
    log.evaluation({.epochs = 1}, {.loss = 0.5, .samples = 10});
    log.finish({.epochs = 1}, StopReason::diverged, "Error [numeric] fc1.weight: \"x\"");
  }
  const std::vector<nlohmann::json> events = read_events(folder.path() + "/a/b/events.jsonl");
  ASSERT_EQ(events.size(), 5U);
  EXPECT_EQ(events[0]["type"], "start");
  EXPECT_EQ(events[0]["version"], 1);
  EXPECT_EQ(events[1]["type"], "train");
  EXPECT_EQ(events[1]["loss"], 1.25);
  EXPECT_EQ(events[1]["metrics"]["accuracy"], 0.5);
  EXPECT_EQ(events[1]["terms"]["loss"], 1.25);
  EXPECT_FALSE(events[1].contains("nonfinite"));
  EXPECT_TRUE(events[2]["loss"].is_null());
  EXPECT_TRUE(events[2]["gradient_norm"].is_null());
  EXPECT_EQ(events[2]["nonfinite"], true);
  EXPECT_EQ(events[3]["type"], "evaluation");
  EXPECT_EQ(events[3]["evaluated_samples"], 10);
  EXPECT_EQ(events[4]["reason"], "diverged");
  for (const nlohmann::json& event : events) {
    for (const char* name : {"attempts", "epochs", "samples", "seconds", "updates"})
      EXPECT_TRUE(event.contains(name)) << name;
  }
}

TEST(EventLog, AppendsAndReadsTheNewestRun) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/events.jsonl";
  for (int run = 0; run < 2; ++run) {
    EventLog log(folder.path());
    log.start({}, {});
    log.train(report_at(0.5, 1 + run));
    log.train(report_at(1, kNan));
    log.evaluation({.epochs = 1}, {.loss = 3.0 + run});
    log.finish({}, StopReason::finished, "");
  }
  std::ofstream(path, std::ios::app) << "{\"type\":\"train\",\"epochs\":2,\"lo";  // a run that was killed
  const RunCurves curves = read_curves(path);
  ASSERT_EQ(curves.train.size(), 2U);
  EXPECT_EQ(curves.train[0].loss, 2);
  EXPECT_TRUE(std::isnan(curves.train[1].loss));
  ASSERT_EQ(curves.validation.size(), 1U);
  EXPECT_EQ(curves.validation[0].loss, 4);
}

TEST(EventLog, ErrorsNameTheFile) {
  const TemporaryFolder folder;
  EXPECT_NE(
      error_text([&] { read_curves(folder.path() + "/none.jsonl"); }).find("none.jsonl: cannot open: No such file"),
      std::string::npos);
  std::ofstream(folder.path() + "/file") << "x";
  EXPECT_NE(error_text([&] { EventLog log(folder.path() + "/file/run"); }).find("Error [file] "), std::string::npos);
}

RunCurves falling() {
  RunCurves curves;
  for (int i = 1; i <= 20; ++i) curves.train.push_back({i / 10.0, 2.0 / i});
  curves.train.push_back({2.1, kNan});
  curves.validation = {{1, 0.3}, {2, 0.2}};
  return curves;
}

TEST(Curve, TextFitsItsFrame) {
  const std::string picture = draw_text(falling(), 60, 12);
  size_t lines = 0, begin = 0;
  for (size_t i = 0; i < picture.size(); ++i) {
    if (picture[i] != '\n') continue;
    EXPECT_LE(i - begin, 60U);
    begin = i + 1;
    ++lines;
  }
  EXPECT_EQ(lines, 12U);
  // The first loss is the highest, in the top row, left of the middle; the last in the bottom row at the right.
  EXPECT_LT(picture.find('*'), picture.find('\n'));
  EXPECT_NE(picture.find("o validation"), std::string::npos);
  EXPECT_NE(picture.find("2 epochs"), std::string::npos);
  EXPECT_EQ(draw_text({}, 60, 12), "no loss has been recorded\n");
  EXPECT_NO_THROW(draw_text({{{1, 1}}, {}}, 60, 12));
}

TEST(Curve, SvgHoldsBothLinesAndNoNan) {
  const std::string svg = draw_svg(falling(), "loss of <a> & b");
  EXPECT_EQ(svg.find("<svg"), 0U);
  EXPECT_NE(svg.find("</svg>"), std::string::npos);
  EXPECT_NE(svg.find("loss of &lt;a&gt; &amp; b"), std::string::npos);
  size_t lines = 0;
  for (size_t at = svg.find("<polyline"); at != std::string::npos; at = svg.find("<polyline", at + 1)) ++lines;
  EXPECT_EQ(lines, 2U);
  EXPECT_EQ(svg.find("nan"), std::string::npos);
  EXPECT_NE(draw_svg({}, "empty").find("no loss has been recorded"), std::string::npos);
}

TEST(Curve, WritesTheFileOfARunFolder) {
  const TemporaryFolder folder;
  {
    EventLog log(folder.path());
    log.start({}, {});
    log.train(report_at(0.5, 1));
    log.train(report_at(1, 0.5));
  }
  EXPECT_NE(loss_picture(folder.path(), {.columns = 40, .rows = 8}).find('*'), std::string::npos);
  const std::string path = write_loss_svg(folder.path());
  EXPECT_EQ(path, folder.path() + "/loss.svg");
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_NE(error_text([&] {
              loss_picture(folder.path(), {.columns = 1});
            }).find("PictureOptions.columns = 1: must be 20 to 10000"),
            std::string::npos);
}

TEST(EventLog, HalfALineOfAKilledRunDoesNotSwallowTheNextOne) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/events.jsonl";
  std::ofstream(path) << R"({"type":"train","epochs":50,"loss":77})"
                      << "\n"
                      << R"({"type":"train","epo)";
  {
    EventLog log(folder.path());
    log.start({}, {});
  }
  EXPECT_TRUE(read_curves(path).train.empty()) << "a new run has begun";
  { EventLog log(folder.path()); }
  std::ifstream file(path);
  int lines = 0;
  for (std::string line; std::getline(file, line);) lines += 1;
  EXPECT_EQ(lines, 3) << "a whole line is followed by nothing";
}

TEST(EventLog, NeverTakesTheNumberOfAStandardStream) {
  const TemporaryFolder folder;
  const int kept = dup(STDIN_FILENO);
  close(STDIN_FILENO);
  {
    EventLog log(folder.path());
    EXPECT_LT(fcntl(STDIN_FILENO, F_GETFD), 0) << "the lowest number is free again";
    log.start({}, {});
  }
  if (kept >= 0) dup2(kept, STDIN_FILENO);
  if (kept >= 0) close(kept);
  EXPECT_EQ(read_events(folder.path() + "/events.jsonl").size(), 1U);
}

TEST(EventLog, PipesAndFoldersAreRefusedWithoutWaiting) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/events.jsonl";
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_THROW(EventLog(folder.path()), Error);
  EXPECT_THROW(read_curves(path), Error);
  EXPECT_THROW(read_curves(folder.path()), Error);
}

TEST(Curve, AnyFiniteLossesMakeAPicture) {
  const double next = std::nextafter(1e17, 2e17);
  for (const std::pair<double, double>& losses : std::vector<std::pair<double, double>>{
           {1e17, 1e17}, {1e17, next}, {1e300, -1e300}, {1e308, 1}, {0, 0}, {-7, -7}}) {
    RunCurves curves;
    curves.train = {{1, losses.first}, {2, losses.second}};
    const std::string svg = draw_svg(curves, "t");
    EXPECT_LT(svg.size(), 20000U);
    EXPECT_EQ(svg.find("nan"), std::string::npos) << losses.first;
    EXPECT_EQ(svg.find("inf"), std::string::npos) << losses.first;
    EXPECT_NE(draw_text(curves, 60, 12).find('*'), std::string::npos);
  }
}

/// A locale whose decimal point is a comma, made now; false where that cannot be done.
bool use_comma(const std::string& folder) {
  const std::string make = "localedef -i de_DE -f UTF-8 " + folder + "/de_DE.UTF-8 > /dev/null 2>&1";
  if (std::system(make.c_str()) != 0) return false;
  setenv("LOCPATH", folder.c_str(), 1);
  return std::setlocale(LC_ALL, "de_DE.UTF-8") != nullptr;
}

TEST(Curve, NumbersHaveAPointInEveryLocale) {
  const std::string svg = draw_svg(falling(), "t"), text = draw_text(falling(), 60, 12);
  const TemporaryFolder folder;
  if (!use_comma(folder.path())) GTEST_SKIP() << "no locale with a comma";
  EXPECT_EQ(draw_svg(falling(), "t"), svg);
  EXPECT_EQ(draw_text(falling(), 60, 12), text);
  EXPECT_EQ(Duration(0.5, Duration::Unit::epochs).text(), "0.5 epochs");
  FitResult result;
  result.clock = {.epochs = 0.5, .samples = 1, .seconds = 0.25, .updates = 1};
  EXPECT_EQ(result.text().find(','), result.text().find(", 1 updates"));
  std::setlocale(LC_ALL, "C");
}

}  // namespace
}  // namespace brisk::train

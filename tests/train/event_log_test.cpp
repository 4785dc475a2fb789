// The event log's lines, and the curves read back from them.
#include "train/event_log.h"

#include <gtest/gtest.h>
#include <unistd.h>

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
    for (const char* name : {"epochs", "samples", "seconds", "updates"}) EXPECT_TRUE(event.contains(name)) << name;
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
  EXPECT_NE(error_text([&] {
              read_curves(folder.path() + "/none.jsonl");
            }).find("none.jsonl: the event log cannot be read: No such file"),
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
  EXPECT_NE(error_text([&] { loss_picture(folder.path(), {.columns = 1}); }).find("must be at least 20 and 6"),
            std::string::npos);
}

}  // namespace
}  // namespace brisk::train

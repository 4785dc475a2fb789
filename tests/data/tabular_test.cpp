// Tables: what a CSV file holds, what is refused and where, and columns brought to mean 0 and deviation 1.
#include "brisk/tabular.h"

#include <gtest/gtest.h>

#include <clocale>
#include <cmath>
#include <limits>
#include <numeric>

#include "files.h"

namespace brisk {
namespace {

using Names = std::vector<std::string>;

std::vector<float> floats(const InMemoryDataset& set, const std::string& field) {
  std::vector<int64_t> all(static_cast<size_t>(set.size()));
  std::iota(all.begin(), all.end(), 0);
  Batch batch(set.fields(), set.size());
  set.rows(all, batch);
  const float* x = batch[field].data<float>();
  return {x, x + batch[field].count()};
}

class Csv : public testing::Test {
 protected:
  Table read(const std::string& text, const CsvOptions& options = {}) const {
    return data::csv(folder_.put("table.csv", text), options);
  }
  std::string reason(const std::string& text, const CsvOptions& options = {}) const {
    try {
      read(text, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }
  void SetUp() override {
    try {
      read("a\n1\n");
    } catch (const Error& error) {
      ASSERT_NE(std::string(error.what()).find("libfccp-dev"), std::string::npos);
      GTEST_SKIP() << error.what();
    }
  }
  test::TemporaryFolder folder_;
};

TEST_F(Csv, ReadsNumbersByTheirColumns) {
  const Table table =
      read("age, rooms ,price,id\n30,-2.5,100,7\n +4e1 ,.5,2e2,8\n", {.ignore = {"id"}, .targets = {"price"}});
  EXPECT_EQ(table.inputs, (Names{"age", "rooms"}));
  EXPECT_EQ(table.targets, (Names{"price"}));
  ASSERT_EQ(table.samples.size(), 2);
  EXPECT_EQ(table.samples.name(), "table.csv");
  EXPECT_EQ(table.samples.fields()[0].shape.text(), "[2]");
  EXPECT_EQ(table.samples.fields()[1].shape.text(), "[1]");
  EXPECT_EQ(floats(table.samples, "input"), (std::vector<float>{30, -2.5f, 40, 0.5f}));
  EXPECT_EQ(floats(table.samples, "target"), (std::vector<float>{100, 200}));
}

TEST_F(Csv, TakesColumnsInTheOrderAskedFor) {
  const Table table = read("a,b,c,d\n1,2,3,4\n5,6,7,8\n", {.inputs = {"d", "a"}, .targets = {"c", "b"}});
  EXPECT_EQ(floats(table.samples, "input"), (std::vector<float>{4, 1, 8, 5}));
  EXPECT_EQ(floats(table.samples, "target"), (std::vector<float>{3, 2, 7, 6}));
  const Table without = read("1;2\n3;4", {.delimiter = ';', .header = false});
  EXPECT_EQ(without.inputs, (Names{"1", "2"}));
  EXPECT_TRUE(without.targets.empty());
  EXPECT_EQ(without.samples.fields().size(), 1u);
  EXPECT_EQ(floats(without.samples, "input"), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(Csv, ReadsClasses) {
  const Table table = read("x,kind\n0.5,2\n1.5,0\n", {.classes = true, .targets = {"kind"}});
  EXPECT_EQ(table.samples.fields()[1].dtype, DType::i64);
  EXPECT_EQ(table.samples.fields()[1].shape.rank(), 0);
  for (const char* wrong : {"1.0", "-1", "cat", "99999999999999999999"}) {
    EXPECT_NE(reason(std::string("x,kind\n0.5,") + wrong + "\n", {.classes = true, .targets = {"kind"}})
                  .find(std::string("table.csv:2: column \"kind\": \"") + wrong + "\" is no class number 0, 1, ..."),
              std::string::npos);
  }
  EXPECT_NE(reason("x,y\n1,2\n", {.classes = true}), "no error");
}

TEST_F(Csv, ReadsQuotesLineEndsMarksAndEveryDelimiter) {
  const std::vector<float> expected = {1, 2, 3, 4};
  EXPECT_EQ(floats(read("\"a, b\",\"say \"\"x\"\"\"\n\"1\",2\n3, \"4\" \n").samples, "input"), expected);
  EXPECT_EQ(read("\"a, b\",\"say \"\"x\"\"\"\n1,2\n").inputs, (Names{"a, b", "say \"x\""}));
  EXPECT_EQ(floats(read("a,b\r\n1,2\r\n3,4").samples, "input"), expected);
  EXPECT_EQ(floats(read("\xEF\xBB\xBF"
                        "a,b\n1,2\n\n  \n3,4\n\n",
                        {.inputs = {"a", "b"}})
                       .samples,
                   "input"),
            expected);
  for (const char delimiter : {',', ';', '|', '\t'}) {
    std::string text = "a_b\n1_2\n3_4\n";
    std::replace(text.begin(), text.end(), '_', delimiter);
    EXPECT_EQ(floats(read(text, {.delimiter = delimiter}).samples, "input"), expected);
  }
  EXPECT_NE(reason("a b\n1 2\n", {.delimiter = ' '}), "no error");
  const std::string packed = folder_.put("packed.csv", test::gzip("a,b\n1,2\n3,4\n"));
  EXPECT_EQ(floats(data::csv(packed).samples, "input"), expected);
}

TEST_F(Csv, NamesLineAndColumnOfWhatIsWrong) {
  const auto says = [&](const std::string& text, const std::string& part) {
    const std::string message = reason(text);
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  says("a,b\n1,2\n3,\n", "table.csv:3: column \"b\": the cell is empty");
  says("a,b\n1,2\n\"\",4\n", "table.csv:3: column \"a\": the cell is empty");
  says("a,b\n1,2\n\n5,six\n", "table.csv:4: column \"b\": \"six\" is no number");
  says("a,b\n1,2,5\n", "table.csv:2: has 3 cells, the first line has 2");
  says("a,b\n1\n", "table.csv:2: has 1 cells, the first line has 2");
  for (const char* wrong : {"1.5x", "0x10", "1,5", "--1", "+-1", "NA", "?", "1 2", "e5", "-"}) {
    says(std::string("a\n\"") + wrong + "\"\n",
         "table.csv:2: column \"a\": \"" + std::string(wrong) + "\" is no number");
  }
  for (const char* wrong : {"nan", "NaN", "-nan", "inf", "-Infinity"}) {
    says(std::string("a\n") + wrong + "\n", "table.csv:2: column \"a\": \"" + std::string(wrong) + "\" is not finite");
  }
  says("a\n1e39\n", "\"1e39\" does not fit a 32-bit float");
  says("a\n-1e400\n", "\"-1e400\" does not fit a 32-bit float");
  says("a,b\n\"1,2\n3,4\n", "table.csv:2: cell 1 begins a quote that does not end on this line");
  says("a,a\n1,2\n", "table.csv:1: two columns are called \"a\"");
  says("", "is empty");
  says("a,b\n", "has no line of numbers");
  says(std::string("a\n1\0\n", 5), "holds a zero byte");
  EXPECT_EQ(floats(read("a\n1e-50\n3e38\n").samples, "input"), (std::vector<float>{0, 3e38f}));
  EXPECT_THROW(data::csv(folder_.path() + "/none.csv"), Error);
}

TEST_F(Csv, NamesOptionsThatFitNoColumn) {
  EXPECT_EQ(reason("age,price\n1,2\n", {.targets = {"prise"}}),
            "Error [option] targets = \"prise\": there is no such column; there are: age, price (did you mean price?)");
  EXPECT_EQ(reason("a,b\n1,2\n", {.inputs = {"a"}, .targets = {"a"}}),
            "Error [option] inputs = \"a\": the column is named twice; each has one use");
  EXPECT_NE(reason("a,b\n1,2\n", {.ignore = {"a"}, .targets = {"b"}}).find("no column is left"), std::string::npos);
}

// Text in an ignored column is no error; a column without a name has its number.
TEST_F(Csv, IgnoresText) {
  const Table table = read(",city,x\n0,Bonn,1\n1,\"Bad Ems, Lahn\",2\n", {.ignore = {"1", "city"}});
  EXPECT_EQ(floats(table.samples, "input"), (std::vector<float>{1, 2}));
}

TEST_F(Csv, KeepsADecimalPointInEveryLocale) {
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "C"}) {
    if (std::setlocale(LC_ALL, name) == nullptr) continue;
    EXPECT_EQ(floats(read("a\n1.5\n").samples, "input"), (std::vector<float>{1.5f}));
  }
  std::setlocale(LC_ALL, "C");
}

// Longer than the blocks in which the file is read, and without an end to its last line.
TEST_F(Csv, ReadsLargeFiles) {
  constexpr int64_t kRows = 400'000;
  std::string text = "a";
  for (int64_t i = 0; i < kRows; ++i) text += "\n" + std::string(80, ' ') + std::to_string(10'000'000 + i);
  ASSERT_GT(text.size(), size_t{2} << 24);
  const std::vector<float> values = floats(read(text).samples, "input");
  ASSERT_EQ(values.size(), static_cast<size_t>(kRows));
  for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], static_cast<float>(10'000'000 + i));
}

TEST(Standardizer, BringsColumnsToMean0AndDeviation1) {
  InMemoryDataset set;
  std::vector<float> x;
  for (int i = 0; i < 1000; ++i) {
    x.push_back(1e6f + static_cast<float>(i % 2));  // mean far from 0: the sums must not lose the deviation
    x.push_back(static_cast<float>(i));
    x.push_back(7);
  }
  set.add("input", Tensor(std::vector<float>(x), {1000, 3}));
  set.add("target", Tensor({1000}, DType::i64));
  const Standardizer scaler = Standardizer::fit(set);
  EXPECT_DOUBLE_EQ(scaler.mean()[0], 1e6 + 0.5);
  EXPECT_NEAR(scaler.deviation()[0], 0.5, 1e-12);
  EXPECT_NEAR(scaler.mean()[1], 499.5, 1e-9);
  EXPECT_NEAR(scaler.deviation()[1], std::sqrt((1000.0 * 1000.0 - 1) / 12), 1e-9);
  EXPECT_EQ(scaler.deviation()[2], 0);

  const InMemoryDataset scaled = scaler.apply(set);
  EXPECT_EQ(scaled.fields().size(), 2u);
  const std::vector<float> z = floats(scaled, "input");
  EXPECT_EQ(z[0], -1.0f);
  EXPECT_EQ(z[3], 1.0f);
  EXPECT_EQ(z[2], 0.0f);
  const Standardizer again = Standardizer::fit(scaled);
  for (const size_t i : {size_t{0}, size_t{1}}) {
    EXPECT_NEAR(again.mean()[i], 0, 1e-6);
    EXPECT_NEAR(again.deviation()[i], 1, 1e-6);
  }
  EXPECT_EQ(floats(set, "input"), x);  // the original is as it was
  std::vector<float> back = z;
  scaler.undo(view(back, {1000, 3}));
  for (size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], x[i], 1e-3) << i;
}

TEST(Standardizer, RefusesWhatCannotBe) {
  InMemoryDataset set;
  EXPECT_THROW(Standardizer::fit(set), Error);
  set.add("input", Tensor(std::vector<float>{1, 2, std::numeric_limits<float>::quiet_NaN(), 4}, {2, 2}));
  set.add("target", Tensor({2}, DType::i64));
  try {
    Standardizer::fit(set);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "Error [data] \"input\": sample 1 of data set, column 0 is nan; a mean needs finite values");
  }
  EXPECT_THROW(Standardizer::fit(set, "target"), Error);
  EXPECT_THROW(Standardizer::fit(set, "inputs"), Error);
  EXPECT_THROW(Standardizer({}, {}), Error);
  EXPECT_THROW(Standardizer({1, 2}, {1}), Error);
  EXPECT_THROW(Standardizer({1}, {-1}), Error);
  EXPECT_THROW(Standardizer({NAN}, {1}), Error);
  std::vector<float> three(3);
  EXPECT_THROW(Standardizer({1, 2}, {1, 1}).apply(view(three, {3})), Error);
  std::vector<int64_t> whole(2);
  EXPECT_THROW(Standardizer({1, 2}, {1, 1}).apply(view(whole, {2})), Error);
}

}  // namespace
}  // namespace brisk

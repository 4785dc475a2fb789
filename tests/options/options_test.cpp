// Every number that a user gives: refused by name outside of its range, accepted inside, and none forgotten.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "options/table.h"

namespace brisk::test {
namespace {

std::vector<Row> all_rows() {
  std::vector<Row> all;
  for (const auto& rows : {operation_rows(), loss_rows(), data_rows(), training_rows(), model_rows()})
    all.insert(all.end(), rows.begin(), rows.end());
  return all;
}

std::string last_part(const std::string& field) { return field.substr(field.rfind('.') + 1); }

/// Whether a text says what to do: what is allowed, or what to give.
bool has_remedy(const std::string& text) {
  for (const char* word : {" must ", " allowed ", " needs ", " takes ", "give ", " there are ", " finite as an f32"})
    if (text.find(word) != std::string::npos) return true;
  return false;
}

void expect_refused(const Row& row, const Try& attempt) {
  SCOPED_TRACE(row.field + " = " + attempt.value);
  try {
    attempt.use();
    ADD_FAILURE() << "was accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.code(), row.code) << text;
    EXPECT_NE(text.find(last_part(row.field)), std::string::npos) << text;
    EXPECT_NE(text.find(attempt.value), std::string::npos) << text;
    EXPECT_TRUE(has_remedy(text)) << text;
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception: " << error.what();
  }
}

void expect_accepted(const Row& row, const Try& attempt) {
  SCOPED_TRACE(row.field + " = " + attempt.value);
  EXPECT_NO_THROW(attempt.use());
}

TEST(Options, OutOfRangeIsRefused) {
  for (const Row& row : all_rows())
    for (const Try& attempt : row.outside) expect_refused(row, attempt);
}

TEST(Options, InRangeIsAccepted) {
  for (const Row& row : all_rows())
    for (const Try& attempt : row.inside) expect_accepted(row, attempt);
}

/// The public headers, without comments. Launchers of kernels take device pointers beside their numbers: what they
/// refuse is tested where there is a device, in tests/kernels.
std::vector<std::string> headers() {
  std::vector<std::string> out;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(std::string(BRISK_SOURCE_DIR) + "/include/brisk")) {
    if (entry.path().extension() != ".h" || entry.path().parent_path().filename() == "kernels") continue;
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    out.push_back(std::regex_replace(text.str(), std::regex("//[^\n]*"), ""));
  }
  return out;
}

std::set<std::string> rows_by_name() {
  std::set<std::string> names;
  for (const Row& row : all_rows()) names.insert(row.field);
  return names;
}

/// Numeric fields of the structs that users fill, as "[namespace::]Struct.field".
std::vector<std::string> numeric_fields() {
  static const std::regex kSpace(R"(^namespace ([\w:]+) \{)");
  static const std::regex kStruct(R"(^struct (\w*Options|EarlyStop|ParameterGroup|Init) \{)");
  static const std::regex kField(
      R"(^  (int|int32_t|int64_t|float|double|Size2|ImageSize|Count|Duration|Schedule|std::optional<\w+>|std::vector<(?:int64_t|double)>) (\w+)( =|\{))");
  std::vector<std::string> out;
  for (const std::string& header : headers()) {
    std::istringstream lines(header);
    std::string space, owner;
    for (std::string line; std::getline(lines, line);) {
      std::smatch match;
      if (std::regex_search(line, match, kSpace)) {
        space = match[1].str() == "brisk" ? "" : std::regex_replace(match[1].str(), std::regex("^brisk::"), "") + "::";
      } else if (line[0] == '}' && line.find(';') == std::string::npos) {
        space.clear();
      } else if (std::regex_search(line, match, kStruct)) {
        owner = space + match[1].str();
      } else if (line.rfind("};", 0) == 0) {
        owner.clear();
      } else if (!owner.empty() && std::regex_search(line, match, kField)) {
        out.push_back(owner + "." + match[2].str());
      }
    }
  }
  return out;
}

/// Numeric parameters of the public functions, as "function.parameter". Operators and checks take what their operands
/// are; they have no name to refuse by.
std::vector<std::string> numeric_parameters() {
  static const std::regex kFunction(R"(BRISK_EXPORT [\w:<>]+ (\w+)\(([^;]*?)\);)");
  static const std::regex kParameter(R"((?:^|, )\s*(?:int|int64_t|float|double) (\w+))");
  std::vector<std::string> out;
  for (const std::string& text : headers()) {
    const std::string header = std::regex_replace(text, std::regex(R"(\s+)"), " ");
    for (std::sregex_iterator found(header.begin(), header.end(), kFunction), end; found != end; ++found) {
      const std::string name = (*found)[1], parameters = (*found)[2];
      if (name == "check_count" || name == "refuse_element") continue;
      for (std::sregex_iterator p(parameters.begin(), parameters.end(), kParameter); p != end; ++p)
        out.push_back(name + "." + (*p)[1].str());
    }
  }
  return out;
}

TEST(Options, EveryNumericFieldHasARow) {
  const std::set<std::string> rows = rows_by_name();
  const std::vector<std::string> fields = numeric_fields();
  EXPECT_GT(fields.size(), 90u);
  for (const std::string& field : fields) EXPECT_TRUE(rows.count(field)) << field;
}

TEST(Options, EveryNumericParameterHasARow) {
  const std::set<std::string> rows = rows_by_name();
  const std::vector<std::string> parameters = numeric_parameters();
  EXPECT_GT(parameters.size(), 15u);
  for (const std::string& parameter : parameters) EXPECT_TRUE(rows.count(parameter)) << parameter;
}

}  // namespace
}  // namespace brisk::test

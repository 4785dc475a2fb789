// The format's rules, one by one; damaged files; types of elements.
#include "checkpoint/safetensors.h"

#include <cmath>
#include <limits>

#include "checkpoint/stored.h"
#include "data/files.h"

namespace brisk::checkpoint {
namespace {

using test::bytes_of;
using test::refusal;
using test::stored;

std::string reading(const std::string& bytes) {
  const test::TemporaryFolder folder;
  const std::string path = folder.put("a.safetensors", bytes);
  return refusal([&] { SafetensorsFile file(path); }, ErrorCode::file);
}

std::string entry(const std::string& name, const std::string& shape, const std::string& offsets,
                  const std::string& type = "\"F32\"") {
  return "\"" + name + "\":{\"dtype\":" + type + ",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}";
}

std::string one(const std::string& shape, const std::string& offsets, size_t data,
                const std::string& type = "\"F32\"") {
  return stored("{" + entry("layer.weight", shape, offsets, type) + "}", std::string(data, '\0'));
}

void expect_refused(const std::string& bytes, const std::vector<std::string>& words) {
  const std::string said = reading(bytes);
  for (const std::string& word : words) {
    EXPECT_NE(said.find(word), std::string::npos) << "no " << word << " in \"" << said << "\"";
  }
}

TEST(Safetensors, SF02RangesFollowEachOtherAndCoverTheData) {
  std::string ten;
  for (char digit = '0'; digit <= '9'; ++digit) {
    ten += (ten.empty() ? "{" : ",") + entry(std::string("weight_") + digit, "[2,2]", "[0,16]");
  }
  expect_refused(stored(ten + "}", std::string(16, '\0')), {"weight_1", "[0, 16]", "overlap"});
  const auto two = [](const char* a, const char* b, size_t data) {
    return stored("{" + entry("a", "[4]", a) + "," + entry("b", "[4]", b) + "}", std::string(data, '\0'));
  };
  expect_refused(two("[0,16]", "[8,24]", 24), {"\"b\"", "[8, 24]", "overlap"});
  expect_refused(two("[0,16]", "[0,16]", 32), {"\"b\"", "overlap"});
  expect_refused(two("[0,16]", "[20,36]", 36), {"\"b\"", "[20, 36]", "hole", "16"});
  expect_refused(two("[4,20]", "[20,36]", 36), {"\"a\"", "[4, 20]", "hole"});
  expect_refused(two("[16,0]", "[16,32]", 32), {"\"a\"", "[16, 0]", "end before they begin"});
  expect_refused(two("[16,32]", "[8,24]", 32), {"\"b\"", "[8, 24]", "hole"});                  // backwards
  expect_refused(two("[0,16]", "[16,32]", 40), {"\"b\"", "ends at 32", "40 bytes", "cover"});  // something behind it
  expect_refused(two("[0,16]", "[16,32]", 24), {"\"b\"", "[16, 32]", "beyond", "24"});
  expect_refused(stored("{}", "x"), {"no tensor", "1 bytes"});
}

TEST(Safetensors, TheOrderOfTheHeaderIsNoOrderOfTheBytes) {  // the reference takes these, and some writers make them
  const test::TemporaryFolder folder;
  const std::string header = "{" + entry("a", "[2]", "[8,16]") + "," + entry("b", "[2]", "[0,8]") + "}";
  SafetensorsFile file(folder.put("a", stored(header, bytes_of<float>({1, 2, 3, 4}))));
  EXPECT_EQ(file.read_f32(*file.find("a")).data<float>()[0], 3);
  EXPECT_EQ(file.read_f32(*file.find("b")).data<float>()[1], 2);
  EXPECT_EQ(file.find("c"), nullptr);
}

TEST(Safetensors, SF03ShapesThatOverflow) {
  expect_refused(one("[4194305,4194305,211106198978564]", "[0,16]", 16), {"layer.weight", "4194305", "63 bits"});
  expect_refused(one("[2,18446744073709551614]", "[0,16]", 16), {"layer.weight", "18446744073709551614", "63 bits"});
  expect_refused(one("[2,9223372036854775807]", "[0,16]", 16), {"layer.weight", "9223372036854775807", "63 bits"});
  expect_refused(one("[2305843009213693952]", "[0,16]", 16), {"layer.weight", "63 bits"});  // 2^61 of 32 bits
}

TEST(Safetensors, SF04RangesFitShapes) {
  expect_refused(one("[1000000]", "[0,4]", 4), {"layer.weight", "[0, 4]", "hold 4 bytes", "[1000000]", "4000000"});
  expect_refused(one("[1000,1000]", "[0,4]", 4), {"layer.weight", "[1000, 1000]", "4000000"});
  expect_refused(one("[]", "[0,8]", 8), {"layer.weight", "needs 4"});
  expect_refused(one("[0]", "[0,4]", 4), {"layer.weight", "needs 0"});
  expect_refused(one("[3]", "[0,2]", 2, "\"F4\""), {"layer.weight", "F4", "whole byte"});
  EXPECT_EQ(reading(one("[4]", "[0,3]", 3, "\"F6_E2M3\"")), "");
  EXPECT_EQ(reading(one("[0,3]", "[0,0]", 0)), "");
  EXPECT_EQ(reading(one("[]", "[0,4]", 4)), "");
}

TEST(Safetensors, SF05Offsets) {
  expect_refused(one("[4]", "[-1,16]", 16), {"layer.weight", "data_offsets", "-1"});
  expect_refused(one("[4]", "[16,0]", 16), {"layer.weight", "[16, 0]"});
  expect_refused(one("[4]", "[1.5,16]", 16), {"layer.weight", "data_offsets", "1.5"});
  expect_refused(one("[4]", "[\"0\",16]", 16), {"layer.weight", "data_offsets", "\"0\""});
  expect_refused(one("[4]", "['0',16]", 16), {"not JSON"});
  expect_refused(one("[4]", "[0]", 16), {"layer.weight", "data_offsets", "1 numbers"});
  expect_refused(one("[4]", "[0,1,2]", 16), {"layer.weight", "data_offsets", "3 numbers"});
  expect_refused(one("[4]", "[0,1e400]", 16), {"1e400"});
  expect_refused(one("[4]", "[0,16.0]", 16), {"layer.weight", "16.0"});
  expect_refused(one("[4]", "[0,18446744073709551615]", 16), {"18446744073709551615", "63 bits"});
  expect_refused(one("[4]", "[0,18446744073709551632]", 16), {"18446744073709551632"});  // 2^64 + 16
  expect_refused(one("[4]", "[]", 16), {"0 numbers"});
  expect_refused(one("[4]", "[[0,16]]", 16), {"a list"});
  expect_refused(one("[4]", "{\"0\":16}", 16), {"an object"});
  expect_refused(one("[4]", "null", 16), {"null"});
}

TEST(Safetensors, SF07NoKeyTwice) {
  const std::string a = entry("a", "[4]", "[0,16]");
  expect_refused(stored("{" + a + "," + a + "}", std::string(16, '\0')), {"tensor \"a\"", "twice"});
  expect_refused(stored("{" + a + "," + entry("\\u0061", "[4]", "[0,16]") + "}", std::string(16, '\0')),
                 {"\"a\"", "twice"});
  expect_refused(stored("{\"__metadata__\":{},\"__metadata__\":{}," + a + "}", std::string(16, '\0')),
                 {"__metadata__", "twice"});
  expect_refused(stored("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}," + a + "}", std::string(16, '\0')),
                 {"\"k\"", "twice"});
  expect_refused(
      stored(R"({"a":{"dtype":"F32","dtype":"I32","shape":[4],"data_offsets":[0,16]}})", std::string(16, '\0')),
      {"\"a\"", "dtype twice"});
}

TEST(Safetensors, Headers) {
  const std::string a = entry("a", "[4]", "[0,16]"), data(16, '\0');
  EXPECT_EQ(reading(stored("{" + a + "} \n   ", data)), "");
  EXPECT_EQ(reading(stored("{\"__metadata__\":{\"format\":\"pt\"}," + a + "}", data)), "");
  EXPECT_EQ(reading(stored("{}", "")), "");
  const std::string nul(1, '\0');
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"", "does not begin with {"},
      {" {" + a + "}", "does not begin with {"},
      {"[]", "does not begin with {"},
      {"\xef\xbb\xbf{" + a + "}", "does not begin with {"},
      {"{" + a + "}" + nul + "hidden", "NUL"},
      {"{" + a + "}x", "not JSON"},
      {"{" + a + "}{}", "not JSON"},
      {"{" + a + ",}", "not JSON"},
      {"{" + a, "not JSON"},
      {"{/**/" + a + "}", "not JSON"},
      {"{" + entry("\xff", "[4]", "[0,16]") + "}", "not JSON"},
      {"{" + entry("\\ud800", "[4]", "[0,16]") + "}", "not JSON"},
      {"{" + entry("a", "[4]", "[0,16]", "\"F33\"") + "}", "\"F33\" is unknown"},
      {"{" + entry("a", "[4]", "[0,16]", "\"f32\"") + "}", "\"f32\" is unknown"},
      {"{" + entry("a", "[4]", "[0,16]", "[\"F32\"]") + "}", "a list"},
      {"{" + entry("a", "[4]", "[0,16]", "32") + "}", "dtype is 32"},
      {"{" + entry("a", "[-4]", "[0,16]") + "}", "shape has -4"},
      {"{" + entry("a", "[4.0]", "[0,16]") + "}", "shape has 4.0"},
      {"{" + entry("a", "[true]", "[0,16]") + "}", "shape has true"},
      {"{" + entry("a", "4", "[0,16]") + "}", "4"},
      {"{" + entry("a", "[1,1,1,1,1,1,1,1,4]", "[0,16]") + "}", "more than 8 dimensions"},
      {R"({"a":{"shape":[4],"data_offsets":[0,16]}})", "has no dtype"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,16]}})", "has no shape"},
      {R"({"a":{"dtype":"F32","shape":[4]}})", "has no data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16],"path":"x"}})", "unknown key \"path\""},
      {R"({"a":[]})", "a list"},
      {R"({"a":7})", "\"a\" is 7"},
      {R"({"__metadata__":{"k":1}})", "\"k\" is 1"},
      {R"({"__metadata__":{"k":{}}})", "\"k\" is an object"},
      {R"({"__metadata__":"k"})", "__metadata__ is \"k\""},
      {"{\"a\":" + std::string(100000, '['), "a list"},
      {"{\"a\":{\"shape\":" + std::string(100000, '['), "a list"}};
  for (const auto& [header, word] : refused) expect_refused(stored(header, data), {word});
}

TEST(Safetensors, HeaderLengths) {
  const auto with_length = [](uint64_t length) {
    std::string out = stored("{}", "");
    std::memcpy(out.data(), &length, sizeof(length));
    return out;
  };
  EXPECT_EQ(reading(with_length(2)), "");
  expect_refused(with_length(3), {"3 bytes", "only 2 follow"});
  expect_refused(with_length(100'000'000), {"100000000", "only 2"});
  expect_refused(with_length(100'000'001), {"100000001", "at most 100000000"});
  expect_refused(with_length(uint64_t{1} << 63), {"9223372036854775808", "at most"});
  expect_refused(with_length(~uint64_t{0}), {"18446744073709551615", "at most"});
  expect_refused("", {"0 bytes"});
  expect_refused("1234567", {"7 bytes"});
}

std::string small_file() {
  return stored(
      "{\"__metadata__\":{\"k\":\"v\"}," + entry("a", "[2,2]", "[0,16]") + "," + entry("b", "[3]", "[16,28]") + "}",
      bytes_of<float>({1, 2, 3, 4, 5, 6, 7}));
}

TEST(Safetensors, CK15CutAtEveryByteOrLonger) {
  const std::string whole = small_file();
  ASSERT_EQ(reading(whole), "");
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_NE(reading(whole.substr(0, size)), "") << size << " of " << whole.size();
  }
  expect_refused(whole + "x", {"\"b\"", "cover"});
}

TEST(Safetensors, ChangedBytesAreReadOrRefused) {  // never another exception, a crash or a read out of bounds
  const std::string whole = small_file();
  const test::TemporaryFolder folder;
  int refused = 0;
  for (size_t place = 0; place < whole.size() - 28; ++place) {
    for (const char letter : {'\0', '\x01', '"', '{', '}', '[', ']', '9', '-', ',', ' ', '\\', '\x80', '\xff'}) {
      std::string changed = whole;
      changed[place] = letter;
      const std::string path = folder.put("a", changed);
      refused += refusal(
                     [&] {
                       SafetensorsFile file(path);
                       for (const StoredTensor& tensor : file.tensors()) {
                         if (is_stored_float(tensor.dtype)) file.read_f32(tensor);
                       }
                     },
                     ErrorCode::file)
                         .empty()
                     ? 0
                     : 1;
    }
  }
  EXPECT_GT(refused, 1000);
}

TEST(Safetensors, AFileThatShrinksWhileItIsReadIsAnError) {
  const test::TemporaryFolder folder;
  const std::string path = folder.put("a", small_file());
  SafetensorsFile file(path);
  std::filesystem::resize_file(path, small_file().size() - 4);
  EXPECT_NE(refusal([&] { file.read_f32(*file.find("b")); }, ErrorCode::file).find("\"b\""), std::string::npos);
}

Tensor read_as(const std::string& type, int64_t count, const std::string& bytes) {
  const test::TemporaryFolder folder;
  const std::string offsets = "[0," + std::to_string(bytes.size()) + "]";
  const std::string header = "{" + entry("w", "[" + std::to_string(count) + "]", offsets, "\"" + type + "\"") + "}";
  SafetensorsFile file(folder.put("a", stored(header, bytes)));
  return file.read_f32(*file.find("w"));
}

double half_value(uint16_t half) {
  const int exponent = half >> 10 & 0x1f, fraction = half & 0x3ff;
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return exponent == 0 ? sign * std::ldexp(fraction, -24) : sign * std::ldexp(1024 + fraction, exponent - 25);
}

TEST(Safetensors, EveryHalfIsConvertedExactly) {
  std::vector<uint16_t> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<uint16_t>(i);
  const Tensor half = read_as("F16", 65536, bytes_of(halves));
  const Tensor bfloat = read_as("BF16", 65536, bytes_of(halves));
  for (size_t i = 0; i < halves.size(); ++i) {
    const double wanted = half_value(halves[i]);
    const float found = half.data<float>()[i];
    ASSERT_TRUE(std::isnan(wanted) ? std::isnan(found) : found == wanted && std::signbit(found) == std::signbit(wanted))
        << i;
    uint32_t bits = 0;
    std::memcpy(&bits, bfloat.data<float>() + i, sizeof(bits));
    ASSERT_EQ(bits, uint32_t{halves[i]} << 16);
  }
}

TEST(Safetensors, DoublesAreRoundedToNearest) {
  const std::vector<double> values = {0.1, -1e-300, 1 + 0x1p-24, 1 + 0x1.8p-24, INFINITY};
  const Tensor found = read_as("F64", 5, bytes_of(values));
  for (size_t i = 0; i < values.size(); ++i) EXPECT_EQ(found.data<float>()[i], static_cast<float>(values[i]));
  const std::string said = refusal([] { read_as("F64", 2, bytes_of<double>({1, -1e39})); }, ErrorCode::weights);
  EXPECT_EQ(said, "Error [weights] w: element 1 of [2] is -1e+39, which f32 cannot hold");
  EXPECT_NE(refusal([] { read_as("I32", 1, std::string(4, '\0')); }, ErrorCode::weights).find("I32"),
            std::string::npos);
}

TEST(Safetensors, PickledFilesAreRefusedWithTheRemedy) {
  for (const std::string& begin : {std::string("PK\3\4\x14\0\0\0\0\0\0\0", 12), std::string("PK\3\4"),
                                   std::string("\x80\2\x8a\nl\xfc\x9c\x46\xf9\x20", 10)}) {
    expect_refused(begin, {".pt", "safetensors.torch.save_file(net.state_dict(), \"from_torch.safetensors\")"});
  }
}

}  // namespace
}  // namespace brisk::checkpoint

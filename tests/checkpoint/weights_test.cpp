// Weights of models: what is written, what is taken, and that a refusal changes nothing.
#include "brisk/weights.h"

#include <cmath>
#include <limits>
#include <map>

#include "brisk/brisk.h"
#include "checkpoint/safetensors.h"
#include "checkpoint/stored.h"
#include "data/files.h"
#include "support/networks.h"

namespace brisk {
namespace {

using checkpoint::SafetensorsFile;
using checkpoint::SafetensorsWriter;
using checkpoint::StoredTensor;
using test::hash_of;
using test::refusal;
using test::TemporaryFolder;
using Names = std::vector<std::string>;

/// A tensor to be written: its values are first, first + 1, ...
struct Given {
  std::string name;
  Shape shape;
  float first = 1;
};

std::string put(const TemporaryFolder& folder, const std::vector<Given>& tensors, const std::string& name = "given") {
  std::vector<StoredTensor> table;
  std::map<std::string, float> first;
  for (const Given& given : tensors) {
    table.push_back({given.name, "F32", given.shape, 0, 0});
    first[given.name] = given.first;
  }
  SafetensorsWriter writer(folder.path() + "/" + name, std::move(table), {});
  for (const StoredTensor& tensor : writer.tensors()) {
    for (int64_t i = 0; i < tensor.shape.count(); ++i) {
      const float value = first[tensor.name] + static_cast<float>(i);
      writer.write(&value, sizeof(value));
    }
  }
  writer.finish();
  return folder.path() + "/" + name;
}

float at(const Model& model, const std::string& name, int64_t index = 0) {
  return model.parameter(name).data<float>()[index];
}

/// fc1 (2 x 3), fc2 (1 x 2).
Model two_layers() {
  return Model([](Var x) { return linear(linear(x, 2), 1); }, {3});
}
std::vector<Given> of_two_layers() {
  return {{"fc1.weight", {2, 3}, 10}, {"fc1.bias", {2}, 20}, {"fc2.weight", {1, 2}, 30}, {"fc2.bias", {1}, 40}};
}

/// Expects an Error [weights] with these words, and a model that has not changed.
void expect_unchanged(Model& model, const std::string& path, const LoadOptions& options, const Names& words,
                      ErrorCode code = ErrorCode::weights) {
  const uint64_t before = hash_of(model);
  const std::string said = refusal([&] { load_weights(model, path, options); }, code);
  EXPECT_NE(said, "");
  for (const std::string& word : words) {
    EXPECT_NE(said.find(word), std::string::npos) << "no " << word << " in \"" << said << "\"";
  }
  EXPECT_EQ(hash_of(model), before) << said;
}

TEST(Weights, WhatIsSavedIsLoadedBitByBit) {
  const TemporaryFolder folder;
  Model saved(test::residual_net, {3, 8, 8}, {.seed = 1}), loaded(test::residual_net, {3, 8, 8}, {.seed = 2});
  ASSERT_NE(hash_of(saved), hash_of(loaded));
  save_weights(saved, folder.path() + "/w");
  const LoadReport report = load_weights(loaded, folder.path() + "/w");
  EXPECT_EQ(hash_of(saved), hash_of(loaded));
  EXPECT_EQ(report.loaded.size(), saved.parameters().size());
  EXPECT_EQ(report.loaded.front(), saved.parameters().front().name);
  EXPECT_TRUE(report.mismatched.empty() && report.missing.empty() && report.skipped.empty() &&
              report.unexpected.empty());
  save_weights(loaded, folder.path() + "/again");
  EXPECT_EQ(test::content(folder.path() + "/w"), test::content(folder.path() + "/again"));
}

TEST(Weights, TheHeaderKeepsTexts) {
  const TemporaryFolder folder;
  const std::string path = folder.path() + "/texts";
  const Model model = two_layers();
  save_weights(model, path, {.metadata = {{"note", "line 1\n\"2\""}, {"classes", "cat,dog"}}});
  using Texts = std::vector<std::pair<std::string, std::string>>;
  EXPECT_EQ(WeightsFile(path).metadata(), (Texts{{"classes", "cat,dog"}, {"format", "pt"}, {"note", "line 1\n\"2\""}}));
  for (const Texts& texts : {Texts{{"a", "1"}, {"a", "2"}}, Texts{{"format", "np"}}}) {
    EXPECT_NE(refusal([&] { save_weights(model, path, {.metadata = texts}); }, ErrorCode::option)
                  .find("SaveOptions.metadata"),
              std::string::npos);
  }
}

TEST(Weights, FilesHavePyTorchsNamesAndLayouts) {
  const TemporaryFolder folder;
  Model model(
      [](Var x) {
        const Scope scope("stem");
        return linear(flatten(batch_norm(conv2d(x, {.bias = false, .channels = 2, .kernel = Size2{1, 2}}))), 2);
      },
      {3, 1, 2});
  std::vector<float> weight(12);
  for (size_t i = 0; i < weight.size(); ++i) weight[i] = static_cast<float>(i);  // O, I, H, W
  model.set_parameter("stem.conv1.weight", view(weight, {2, 3, 1, 2}));
  save_weights(model, folder.path() + "/w");
  SafetensorsFile file(folder.path() + "/w");
  std::map<std::string, std::string> found;
  for (const StoredTensor& tensor : file.tensors()) found[tensor.name] = tensor.dtype + tensor.shape.text();
  EXPECT_EQ(found, (std::map<std::string, std::string>{{"stem.bn1.bias", "F32[2]"},
                                                       {"stem.bn1.num_batches_tracked", "I64[]"},
                                                       {"stem.bn1.running_mean", "F32[2]"},
                                                       {"stem.bn1.running_var", "F32[2]"},
                                                       {"stem.bn1.weight", "F32[2]"},
                                                       {"stem.conv1.weight", "F32[2, 3, 1, 2]"},
                                                       {"stem.fc1.bias", "F32[2]"},
                                                       {"stem.fc1.weight", "F32[2, 2]"}}));
  const Tensor written = file.read_f32(*file.find("stem.conv1.weight"));
  EXPECT_TRUE(std::equal(weight.begin(), weight.end(), written.data<float>()));
  EXPECT_EQ(file.metadata(), (checkpoint::Metadata{{"format", "pt"}}));
}

TEST(Weights, CK14NoShapeIsStretched) {
  const TemporaryFolder folder;
  Model conv([](Var x) { return conv2d(x, {.bias = false, .channels = 32, .kernel = 1}); }, {64, 2, 2});
  expect_unchanged(conv, put(folder, {{"conv1.weight", {1, 64, 1, 1}}}), {},
                   {"conv1.weight", "[1, 64, 1, 1]", "[32, 64, 1, 1]", "nothing was loaded"});
  Model two = two_layers();
  std::vector<Given> given = of_two_layers();
  given[0].shape = {6};
  expect_unchanged(two, put(folder, given), {}, {"fc1.weight", "file has [6]", "model has [2, 3]"});
  given[0].shape = {3, 2};  // the transpose is another shape, too
  expect_unchanged(two, put(folder, given), {}, {"fc1.weight", "file has [3, 2]", "model has [2, 3]"});
  Model row([](Var x) { return linear(x, 1, {.bias = false}); }, {4});
  expect_unchanged(row, put(folder, {{"fc1.weight", {4}}}), {}, {"fc1.weight", "[4]", "[1, 4]"});
  const uint64_t before = hash_of(row);
  const LoadReport report = load_weights(row, put(folder, {{"fc1.weight", {4}}}), {.strict = false});
  EXPECT_EQ(report.mismatched, Names{"fc1.weight"});
  EXPECT_TRUE(report.loaded.empty() && report.missing.empty());
  EXPECT_EQ(hash_of(row), before);
}

TEST(Weights, TheWholeMessageOfAMismatch) {
  const TemporaryFolder folder;
  Model model([](Var x) { return linear(x, 7, {.name = "fc"}); }, {512});
  const std::string path = put(folder, {{"fc.weight", {1000, 512}}, {"fc.bias", {1000}}});
  EXPECT_EQ(
      refusal([&] { load_weights(model, path); }, ErrorCode::weights),
      "Error [weights] fc.weight: file has [1000, 512], model has [7, 512] (1 more: fc.bias); skip them with {.skip = "
      "{\"fc.*\"}}; nothing was loaded");
  const LoadReport report = load_weights(model, path, {.skip = {"fc.*"}});
  EXPECT_EQ(report.skipped, (Names{"fc.bias", "fc.weight"}));
  EXPECT_TRUE(report.loaded.empty());
}

TEST(Weights, CK15CutFilesAndOtherSetsOfTensors) {
  const TemporaryFolder folder;
  Model model = two_layers();
  const std::string whole = test::content(put(folder, of_two_layers()));
  for (size_t size = 0; size < whole.size(); ++size) {
    expect_unchanged(model, folder.put("cut", whole.substr(0, size)), {.strict = false}, {"cut"}, ErrorCode::file);
  }
  std::vector<Given> given = of_two_layers();
  given.pop_back();
  const std::string less = put(folder, given);
  expect_unchanged(model, less, {}, {"fc2.bias", "the file does not", "nothing was loaded"});
  given = of_two_layers();
  given.push_back({"fc\x1b[31m" + std::string(300, 'x'), {2}});
  expect_unchanged(model, put(folder, given, "odd"), {.skip = {"fc2.bias"}}, {"fc\\x1b[31mxxx", "xxx..."});
  given.back() = {"fc3.weight", {2}};
  const std::string more = put(folder, given, "more");
  expect_unchanged(model, more, {}, {"fc3.weight", "the file has it, model 'model' does not", "{.skip = {\"fc3.*\"}}"});
  const float bias = at(model, "fc2.bias");
  LoadReport report = load_weights(model, less, {.strict = false});
  EXPECT_EQ(report.missing, Names{"fc2.bias"});
  EXPECT_EQ(report.loaded, (Names{"fc1.weight", "fc1.bias", "fc2.weight"}));
  EXPECT_EQ(at(model, "fc2.bias"), bias);
  EXPECT_EQ(at(model, "fc1.weight", 5), 15);
  report = load_weights(model, more, {.strict = false});
  EXPECT_EQ(report.unexpected, Names{"fc3.weight"});
  EXPECT_EQ(report.loaded.size(), 4u);
  EXPECT_EQ(at(model, "fc2.bias"), 40);
}

TEST(Weights, AllKindsOfDifferencesAreNamed) {
  const TemporaryFolder folder;
  Model model = two_layers();
  const std::string path =
      put(folder, {{"fc1.weight", {3, 3}}, {"fc1.bias", {2}}, {"fc2.wieght", {1, 2}}, {"fc2.bias", {1}}});
  expect_unchanged(model, path, {},
                   {"fc1.weight", "[3, 3]", "also missing: fc2.weight", "also unexpected: fc2.wieght", "{\"fc1.*\"}"});
  expect_unchanged(model, path, {.skip = {"fc1.weight"}},
                   {"fc2.weight", "the file does not", "did you mean fc2.wieght?", "also unexpected: fc2.wieght"});
  EXPECT_EQ(load_weights(model, path, {.rename = {{"fc2.wieght", "fc2.weight"}}, .skip = {"fc1.weight"}}).loaded.size(),
            3u);
}

TEST(Weights, CK16TensorsGoByNameNotByOrder) {
  const TemporaryFolder folder;
  const auto layers = [](const char* first, const char* second) {
    return Model(
        [=](Var x) { return linear(linear(x, 4, {.bias = false, .name = first}), 4, {.bias = false, .name = second}); },
        {4});
  };
  Model ab = layers("a", "b"), ba = layers("b", "a");
  EXPECT_EQ(ab.parameters().front().name, "a.weight");
  EXPECT_EQ(ba.parameters().front().name, "b.weight");
  load_weights(ab, put(folder, {{"a.weight", {4, 4}, 100}, {"b.weight", {4, 4}, 200}}));
  save_weights(ab, folder.path() + "/w");
  load_weights(ba, folder.path() + "/w");
  EXPECT_EQ(at(ba, "a.weight"), 100);
  EXPECT_EQ(at(ba, "b.weight", 15), 215);
}

TEST(Weights, SF11ValuesThatAreNotFinite) {
  const TemporaryFolder folder;
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinite = std::numeric_limits<float>::infinity();
  Model model = two_layers();
  for (const float bad : {nan, infinite, -infinite}) {
    std::vector<float> weight = {1, 2, 3, 4, bad, 6};
    Model other = two_layers();
    other.set_parameter("fc1.weight", view(weight, {2, 3}));
    save_weights(other, folder.path() + "/w");
    expect_unchanged(model, folder.path() + "/w", {}, {"fc1.weight", "element 4 of [2, 3]", ".allow_nonfinite = true"});
    expect_unchanged(model, folder.path() + "/w", {.strict = false}, {"fc1.weight", "element 4"});
    EXPECT_EQ(load_weights(model, folder.path() + "/w", {.skip = {"fc1.*"}}).skipped.size(), 2u);
  }
  load_weights(model, folder.path() + "/w", {.allow_nonfinite = true});
  EXPECT_EQ(at(model, "fc1.weight", 4), -infinite);
}

TEST(Weights, OtherFloatTypesAreConvertedAndOthersRefused) {
  const TemporaryFolder folder;
  Model model([](Var x) { return linear(x, 1, {.bias = false}); }, {2});
  const auto file = [&](const char* type, const std::string& data) {
    const std::string size = std::to_string(data.size());
    return folder.put("w", test::stored(std::string(R"({"fc1.weight":{"dtype":")") + type +
                                            R"(","shape":[1,2],"data_offsets":[0,)" + size + "]}}",
                                        data));
  };
  load_weights(model, file("F16", test::bytes_of<uint16_t>({0x3e00, 0xc000})));
  EXPECT_EQ(at(model, "fc1.weight", 0), 1.5f);
  EXPECT_EQ(at(model, "fc1.weight", 1), -2.0f);
  load_weights(model, file("BF16", test::bytes_of<uint16_t>({0x3fc0, 0x4040})));
  EXPECT_EQ(at(model, "fc1.weight", 1), 3.0f);
  load_weights(model, file("F64", test::bytes_of<double>({0.1, 4})));
  EXPECT_EQ(at(model, "fc1.weight", 0), 0.1f);
  expect_unchanged(model, file("F64", test::bytes_of<double>({0.1, 1e39})), {}, {"fc1.weight", "element 1", "1e+39"});
  expect_unchanged(model, file("I32", test::bytes_of<int32_t>({1, 2})), {}, {"fc1.weight", "file has I32 [1, 2]"});
  EXPECT_EQ(load_weights(model, file("I32", test::bytes_of<int32_t>({1, 2})), {.strict = false}).mismatched.size(), 1u);
}

/// Values of bn1 and its counter.
std::string norm_file(const TemporaryFolder& folder, const std::string& type, const std::string& shape,
                      const std::string& counter) {
  std::string header = R"({"bn1.num_batches_tracked":{"dtype":")" + type + R"(","shape":)" + shape +
                       R"(,"data_offsets":[0,)" + std::to_string(counter.size()) + "]}";
  size_t begin = counter.size();
  for (const char* leaf : {"bias", "running_mean", "running_var", "weight"}) {
    header += std::string(R"(,"bn1.)") + leaf + R"(":{"dtype":"F32","shape":[1],"data_offsets":[)" +
              std::to_string(begin) + "," + std::to_string(begin + 4) + "]}";
    begin += 4;
  }
  return folder.put("norm", test::stored(header + "}", counter + test::bytes_of<float>({1, 2, 3, 4})));
}

TEST(Weights, CountersOfBatchNormAreCheckedAndNotNeeded) {
  const TemporaryFolder folder;
  Model model([](Var x) { return batch_norm(x); }, {1, 2, 2});
  const auto count = [](int64_t value) { return test::bytes_of<int64_t>({value}); };
  const LoadReport report = load_weights(model, norm_file(folder, "I64", "[]", count(1000)));
  EXPECT_EQ(report.loaded, (Names{"bn1.weight", "bn1.bias", "bn1.running_mean", "bn1.running_var"}));
  EXPECT_TRUE(report.unexpected.empty());
  EXPECT_EQ(at(model, "bn1.running_var"), 3);
  expect_unchanged(model, norm_file(folder, "I64", "[]", count(-1)), {}, {"bn1.num_batches_tracked", "-1"});
  expect_unchanged(model, norm_file(folder, "I64", "[2]", count(1) + count(2)), {},
                   {"bn1.num_batches_tracked", "I64 [2]"});
  expect_unchanged(model, norm_file(folder, "F64", "[]", count(1)), {}, {"bn1.num_batches_tracked", "F64"});
  std::vector<Given> without = {
      {"bn1.bias", {1}}, {"bn1.running_mean", {1}}, {"bn1.running_var", {1}}, {"bn1.weight", {1}, 9}};
  load_weights(model, put(folder, without));
  EXPECT_EQ(at(model, "bn1.weight"), 9);
  Model other([](Var x) { return linear(x, 1, {.bias = false, .name = "bn1"}); }, {1});
  EXPECT_EQ(load_weights(other, norm_file(folder, "I64", "[]", count(0)), {.strict = false}).unexpected.size(), 4u);
}

TEST(Weights, NamesAreChangedByPrefixAndRename) {
  const TemporaryFolder folder;
  Model model = two_layers();
  const std::string path = put(folder, {{"net.features.0.0.weight", {2, 3}, 10},
                                        {"net.features.0.0.bias", {2}, 20},
                                        {"net.features.0.01.weight", {1, 2}, 30},
                                        {"net.features.0.01.bias", {1}, 40},
                                        {"head.bias", {7}}});
  LoadReport report =
      load_weights(model, path, {.prefix = "net.", .rename = {{"features.0.0", "fc1"}, {"features.0.01", "fc2"}}});
  EXPECT_EQ(report.loaded.size(), 4u);
  EXPECT_EQ(report.skipped, Names{"head.bias"});
  EXPECT_EQ(at(model, "fc1.weight", 5), 15);
  EXPECT_EQ(at(model, "fc2.bias"), 40);
  expect_unchanged(model, path, {}, {"fc1.weight", "3 more", "also unexpected: head.bias"});
  expect_unchanged(model, path, {.prefix = "nett."}, {"fc1.weight", "3 more"});
  expect_unchanged(model, path, {.rename = {{"features.0", "fc1"}}}, {"LoadOptions.rename", "features.0"},
                   ErrorCode::option);
  expect_unchanged(model, path, {.rename = {{"net.features.0.01", "a"}, {"net.features.0.0", "a"}}},
                   {"a.bias", "net.features.0.0.bias", "net.features.0.01.bias", "two tensors"});
  expect_unchanged(model, path, {.skip = {"fc9.*"}, .strict = false}, {"LoadOptions.skip", "fc9.*"}, ErrorCode::option);
  Model nested(
      [](Var x) {
        const Scope scope("encoder");
        return linear(linear(x, 2), 1);
      },
      {3});
  const std::string plain = put(folder, of_two_layers(), "plain");
  EXPECT_EQ(load_weights(nested, plain, {.rename = {{"", "encoder"}}}).loaded.size(), 4u);
  EXPECT_EQ(at(nested, "encoder.fc2.bias"), 40);
  save_weights(nested, folder.path() + "/nested");
  EXPECT_EQ(load_weights(model, folder.path() + "/nested", {.rename = {{"encoder", ""}}}).loaded.size(), 4u);
}

TEST(Weights, CK26NamesOfModelsStayInsideTheFile) {
  const TemporaryFolder outer;
  const std::string folder = outer.path() + "/inner";
  std::filesystem::create_directory(folder);
  for (const std::string& name : {std::string("../../x"), std::string("val/loss"), std::string("a:b"),
                                  std::string(300, 'n'), std::string("a\0b", 3)}) {
    Model model([](Var x) { return linear(x, 1); }, {1}, {.name = name});
    save_weights(model, folder + "/w");
    EXPECT_EQ(load_weights(model, folder + "/w").loaded.size(), 2u);
  }
  EXPECT_EQ(test::names_in(folder), std::set<std::string>{"w"});
  EXPECT_EQ(test::names_in(outer.path()), std::set<std::string>{"inner"});
}

TEST(Weights, FilesThatCannotBeReadOrWritten) {
  const TemporaryFolder folder;
  Model model = two_layers();
  expect_unchanged(model, folder.path() + "/none", {}, {"none", "No such file"}, ErrorCode::file);
  expect_unchanged(model, folder.path(), {}, {"not a regular file"}, ErrorCode::file);
  expect_unchanged(model, folder.put("net.pt", std::string("PK\3\4\x14\0\0\0\0\0", 10)), {},
                   {"net.pt", ".pt", "safetensors.torch.save_file(net.state_dict(), \"from_torch.safetensors\")"},
                   ErrorCode::file);
  EXPECT_NE(refusal([&] { save_weights(model, folder.path() + "/a/w"); }, ErrorCode::file).find("/a"),
            std::string::npos);
}

TEST(Weights, AStepMadeBeforeTrainsWhatIsLoaded) {
  const TemporaryFolder folder;
  const test::Rows rows = test::make_rows(4, {1, 28, 28}, 10, 1);
  Model model(test::lenet, {1, 28, 28});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 4});
  save_weights(model, folder.path() + "/start");
  step.run(rows.inputs(0, 4), rows.labels(0, 4));
  const uint64_t once = hash_of(model);
  step.run(rows.inputs(0, 4), rows.labels(0, 4));
  ASSERT_NE(hash_of(model), once);
  load_weights(model, folder.path() + "/start");
  step.run(rows.inputs(0, 4), rows.labels(0, 4));
  EXPECT_EQ(hash_of(model), once);
}

TEST(Weights, PyTorchsWeightsGivePyTorchsResults) {  // make_from_torch.py wrote the file
  const std::string path = BRISK_SOURCE_DIR "/tests/checkpoint/from_torch.safetensors";
  constexpr int64_t kSamples = 5, kClasses = 4;
  Model model(
      [](Var x) {
        return linear(flatten(relu(batch_norm(conv2d(x, {.channels = 3, .kernel = {3, 2}})))), kClasses);
      },
      {2, 5, 4});
  expect_unchanged(model, path, {}, {"losses", "the file has it"});
  EXPECT_EQ(load_weights(model, path, {.skip = {"losses"}}).loaded.size(), 8u);
  const Tensor wanted = WeightsFile(path).read("losses");
  Trainer trainer(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 1});
  for (int64_t i = 0; i < kSamples; ++i) {
    std::vector<float> x(40);
    for (int64_t j = 0; j < 40; ++j) x[static_cast<size_t>(j)] = static_cast<float>((i * 40 + j) * 7 % 11 - 5) / 4;
    for (int64_t label = 0; label < kClasses; ++label) {
      InMemoryDataset one;
      one.add("input", Tensor(view(x, {1, 2, 5, 4})));
      one.add("target", Tensor(std::vector<int64_t>{label}, {1}));
      EXPECT_NEAR(trainer.evaluate(one).loss, wanted.data<float>()[i * kClasses + label], 1e-5);
    }
  }
}

TEST(WeightsFile, ListsReadsAndRenames) {
  const TemporaryFolder folder;
  const std::string path = put(folder, of_two_layers());
  const WeightsFile file(path);
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.tensors()[1].name, "fc1.weight");
  EXPECT_EQ(file.tensors()[1].dtype, "F32");
  EXPECT_EQ(file.tensors()[1].shape, (Shape{2, 3}));
  EXPECT_EQ(file.read("fc2.weight").data<float>()[1], 31);
  EXPECT_NE(refusal([&] { file.read("fc2.wieght"); }, ErrorCode::weights).find("did you mean fc2.weight?"),
            std::string::npos);
  file.save_renamed(path, {{"fc1", "a.b"}});  // over the file that is being read
  Names names;
  for (const StoredWeight& weight : WeightsFile(path).tensors()) names.push_back(weight.name);
  EXPECT_EQ(names, (Names{"a.b.bias", "a.b.weight", "fc2.bias", "fc2.weight"}));
  EXPECT_EQ(WeightsFile(path).read("a.b.weight").data<float>()[5], 15);
  EXPECT_NE(refusal(
                [&] {
                  file.save_renamed(path, {{"fc1", "fc2"}});
                },
                ErrorCode::file)
                .find("twice"),
            std::string::npos);
  EXPECT_NE(refusal([&] { file.save_renamed(path, {{"fc", "x"}}); }, ErrorCode::option), "");
}

}  // namespace
}  // namespace brisk

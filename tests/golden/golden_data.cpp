// Reader of the golden files and C++ twin of counter.py.
#include "golden/golden_data.h"

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <numeric>
#include <ostream>
#include <stdexcept>

namespace brisk::golden {
namespace {

using nlohmann::json;

constexpr uint64_t kParameterStream = 1;
constexpr uint64_t kInputStream = 1000;
constexpr uint64_t kLabelStream = 2000;
constexpr uint64_t kSampleStream = 3000;
constexpr uint64_t kSampleSeed = 0;

// The finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
uint64_t mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15u;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

int64_t product(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": cannot be read");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Tensors of a safetensors file (header length, JSON header, bytes); all are F64 here.
struct TensorFile {
  json header;
  std::string bytes;
  explicit TensorFile(const std::string& path) : bytes(read_file(path)) {
    uint64_t length = 0;
    if (bytes.size() < sizeof length) throw std::runtime_error(path + ": too short");
    std::memcpy(&length, bytes.data(), sizeof length);
    if (length > bytes.size() - sizeof length) throw std::runtime_error(path + ": header longer than the file");
    header = json::parse(bytes.substr(sizeof length, length));
    bytes.erase(0, sizeof length + length);
  }
  std::vector<double> read(const std::string& name) const {
    const json& entry = header.at(name);
    const auto first = entry.at("data_offsets").at(0).get<size_t>();
    const auto last = entry.at("data_offsets").at(1).get<size_t>();
    if (entry.at("dtype") != "F64" || first > last || last > bytes.size() || (last - first) % sizeof(double) != 0) {
      throw std::runtime_error("golden tensor " + name + ": not whole doubles of this file");
    }
    std::vector<double> values((last - first) / sizeof(double));
    std::memcpy(values.data(), bytes.data() + first, last - first);
    return values;
  }
};

Network read_network(const json& from) {
  Network network;
  network.input = from.at("input").get<std::vector<int64_t>>();
  for (const json& row : from.at("buffers")) network.buffers.push_back({row.at("name"), row.at("shape")});
  for (const json& row : from.at("parameters")) {
    network.parameters.push_back({row.at("name"), row.at("shape"), row.at("init"), row.value("fan_in", int64_t{0})});
  }
  return network;
}

Trajectory read_run(const TensorFile& file, const std::string& prefix, uint64_t seed) {
  Trajectory run;
  run.seed = seed;
  run.first = file.read(prefix + "first");
  run.last = file.read(prefix + "last");
  run.losses = file.read(prefix + "losses");
  const std::vector<double> own = file.read(prefix + "pytorch");
  run.pytorch = {own.at(0), own.at(1), own.at(2), own.size() > 3 ? own[3] : 0.0};
  if (file.header.contains(prefix + "statistics")) run.statistics = file.read(prefix + "statistics");
  return run;
}

Array read_array(const json& from) {
  return {from.value("dtype", "f64") == "i64", from.at("shape"), from.at("values").get<std::vector<double>>()};
}

std::map<std::string, Array> read_arrays(const json& from) {
  std::map<std::string, Array> arrays;
  for (const auto& [name, value] : from.items()) arrays[name] = read_array(value);
  return arrays;
}

std::map<std::string, std::vector<double>> read_options(const json& from) {
  std::map<std::string, std::vector<double>> options;
  for (const auto& [name, value] : from.items()) {
    if (value.is_array()) {
      options[name] = value.get<std::vector<double>>();
    } else {
      options[name] = {value.is_boolean() ? static_cast<double>(value.get<bool>()) : value.get<double>()};
    }
  }
  return options;
}

double first_of(const std::map<std::string, std::vector<double>>& options, const std::string& key, double otherwise) {
  const auto found = options.find(key);
  return found == options.end() ? otherwise : found->second.at(0);
}

}  // namespace

uint64_t hash(uint64_t seed, uint64_t stream, uint64_t index) { return mix(mix(mix(seed) ^ stream) ^ index); }

std::vector<float> uniform(uint64_t seed, uint64_t stream, int64_t count, double bound) {
  std::vector<float> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto steps = static_cast<int64_t>(hash(seed, stream, i) >> 40) - (int64_t{1} << 23);
    values[i] = static_cast<float>(static_cast<double>(steps) * 0x1p-23 * bound);
  }
  return values;
}

std::vector<int64_t> labels(uint64_t seed, uint64_t stream, int64_t count, int64_t classes) {
  std::vector<int64_t> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<int64_t>(hash(seed, stream, i) % static_cast<uint64_t>(classes));
  }
  return values;
}

int64_t ParameterRule::count() const { return product(shape); }

std::vector<std::vector<float>> Trajectories::initial(const std::string& network, uint64_t seed) const {
  std::vector<std::vector<float>> values;
  for (const ParameterRule& rule : networks.at(network).parameters) {
    if (rule.init == "uniform") {
      const double bound = 1.0 / std::sqrt(static_cast<double>(rule.fan_in));
      values.push_back(uniform(seed, kParameterStream + values.size(), rule.count(), bound));
    } else {
      values.emplace_back(static_cast<size_t>(rule.count()), rule.init == "ones" ? 1.0f : 0.0f);
    }
  }
  return values;
}

std::vector<double> Trajectories::initial_statistics(const std::string& network) const {
  std::vector<double> values;
  for (const BufferRule& rule : networks.at(network).buffers) {
    const bool variance = rule.name.ends_with("running_var");
    values.insert(values.end(), static_cast<size_t>(product(rule.shape)), variance ? 1.0 : 0.0);
  }
  return values;
}

std::vector<float> Trajectories::inputs(const std::string& network, uint64_t seed, int64_t update) const {
  const int64_t count = batch * product(networks.at(network).input);
  return uniform(seed, kInputStream + static_cast<uint64_t>(update), count, 1.0);
}

std::vector<int64_t> Trajectories::targets(uint64_t seed, int64_t update) const {
  return labels(seed, kLabelStream + static_cast<uint64_t>(update), batch, classes);
}

std::vector<double> Trajectories::sample(const std::vector<std::vector<float>>& parameters) const {
  std::vector<std::vector<double>> wide;
  for (const std::vector<float>& values : parameters) wide.push_back(widen(values));
  return sample(wide);
}

std::vector<double> Trajectories::sample(const std::vector<std::vector<double>>& parameters) const {
  std::vector<double> values;
  for (size_t place = 0; place < parameters.size(); ++place) {
    const std::vector<double>& all = parameters[place];
    const bool whole = static_cast<int64_t>(all.size()) <= quota;
    const size_t count = whole ? all.size() : static_cast<size_t>(quota);
    for (size_t i = 0; i < count; ++i) {
      values.push_back(all[whole ? i : hash(kSampleSeed, kSampleStream + place, i) % all.size()]);
    }
  }
  return values;
}

double distance(const std::vector<double>& value, const std::vector<double>& wanted, const std::vector<double>& start) {
  double error = 0, length = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    error += (value.at(i) - wanted[i]) * (value.at(i) - wanted[i]);
    length += (wanted[i] - start.at(i)) * (wanted[i] - start.at(i));
  }
  return std::sqrt(error / length);
}

std::vector<double> widen(const std::vector<float>& values) { return {values.begin(), values.end()}; }

std::vector<float> Array::floats() const {
  std::vector<float> out;
  for (const double value : values) out.push_back(static_cast<float>(value));
  return out;
}

std::vector<int64_t> Array::integers() const {
  std::vector<int64_t> out;
  for (const double value : values) out.push_back(static_cast<int64_t>(value));
  return out;
}

double OpCase::attribute(const std::string& key, double otherwise) const {
  return first_of(attributes, key, otherwise);
}

double OptimizerTrace::option(const std::string& key, double otherwise) const {
  return first_of(options, key, otherwise);
}

void PrintTo(const OpCase& row, std::ostream* out) { *out << row.name; }

void PrintTo(const OptimizerTrace& trace, std::ostream* out) { *out << trace.name; }

Trajectories read_trajectories(const std::string& path) try {
  const TensorFile file(path);
  const json about = json::parse(file.header.at("__metadata__").at("about").get<std::string>());
  Trajectories all;
  all.batch = about.at("batch");
  all.classes = about.at("classes");
  all.quota = about.at("quota");
  all.updates = about.at("updates");
  for (const auto& [name, network] : about.at("networks").items()) all.networks[name] = read_network(network);
  for (const auto& [network, by_optimizer] : about.at("seeds").items()) {
    for (const auto& [optimizer, seeds] : by_optimizer.items()) {
      for (const auto& seed : seeds) {
        const std::string prefix = network + "/" + optimizer + "/" + std::to_string(seed.get<uint64_t>()) + "/";
        all.runs[network][optimizer].push_back(read_run(file, prefix, seed));
      }
    }
  }
  return all;
} catch (const json::exception& error) {
  throw std::runtime_error(path + ": " + error.what());
}

Ops read_ops(const std::string& path) try {
  const json all = json::parse(read_file(path));
  Ops ops;
  for (const json& row : all.at("cases")) {
    ops.cases.push_back({read_options(row.at("attributes")), read_array(row.at("cotangent")),
                         read_arrays(row.at("gradients")), read_arrays(row.at("inputs")), row.at("name"), row.at("op"),
                         read_arrays(row.at("outputs"))});
  }
  for (const json& row : all.at("optimizers")) {
    ops.optimizers.push_back({row.at("gradients"), row.at("kind"), row.at("name"), read_options(row.at("options")),
                              row.at("parameters"), row.at("rates"), row.at("start")});
  }
  return ops;
} catch (const json::exception& error) {
  throw std::runtime_error(path + ": " + error.what());
}

}  // namespace brisk::golden

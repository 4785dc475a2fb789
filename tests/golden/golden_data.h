// Golden numbers: reads trajectories.safetensors and ops.json, and repeats the weights and batches that counter.py
// made, bit for bit and without PyTorch. README.md describes the files.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

namespace brisk::golden {

// counter.py in C++.
uint64_t hash(uint64_t seed, uint64_t stream, uint64_t index);
std::vector<float> uniform(uint64_t seed, uint64_t stream, int64_t count, double bound);
std::vector<int64_t> labels(uint64_t seed, uint64_t stream, int64_t count, int64_t classes);

struct ParameterRule {
  std::string name;
  std::vector<int64_t> shape;  // PyTorch's order
  std::string init;            // uniform (within 1 / sqrt(fan_in)), ones or zeros
  int64_t fan_in = 0;
  int64_t count() const;
};

struct BufferRule {
  std::string name;
  std::vector<int64_t> shape;
};

struct Network {
  std::vector<BufferRule> buffers;        // module order; running_mean starts at 0, running_var at 1
  std::vector<int64_t> input;             // of one sample
  std::vector<ParameterRule> parameters;  // module order
};

// How far PyTorch's own float32 run is from the double one.
struct Deviation {
  double after_first = 0;  // distance() of the sampled parameters after one update
  double after_last = 0;   // ... after all
  double losses = 0;       // largest absolute difference
  double statistics = 0;   // distance() of the batch-norm statistics after all
};

// One trajectory in double precision.
struct Trajectory {
  uint64_t seed = 0;
  std::vector<double> first;   // sampled parameters after one update
  std::vector<double> last;    // ... after all
  std::vector<double> losses;  // one an update, taken before it
  Deviation pytorch;
  std::vector<double> statistics;  // after all updates, buffers in module order
};

struct Trajectories {
  int64_t batch = 0;
  int64_t classes = 0;
  std::map<std::string, Network> networks;
  std::map<std::string, std::map<std::string, std::vector<Trajectory>>> runs;  // [network][optimizer]
  int64_t quota = 0;  // largest number of samples of a parameter
  int64_t updates = 0;

  // Initial values in module order.
  std::vector<std::vector<float>> initial(const std::string& network, uint64_t seed) const;
  // Batch-norm statistics before training, flat.
  std::vector<double> initial_statistics(const std::string& network) const;
  std::vector<float> inputs(const std::string& network, uint64_t seed, int64_t update) const;
  std::vector<int64_t> targets(uint64_t seed, int64_t update) const;
  // The recorded elements of parameters given whole, in module order.
  std::vector<double> sample(const std::vector<std::vector<double>>& parameters) const;
  std::vector<double> sample(const std::vector<std::vector<float>>& parameters) const;
};

// ||value - wanted|| / ||wanted - start||: the error in units of how far the run went.
double distance(const std::vector<double>& value, const std::vector<double>& wanted, const std::vector<double>& start);
std::vector<double> widen(const std::vector<float>& values);

struct Array {
  bool integer = false;
  std::vector<int64_t> shape;
  std::vector<double> values;
  int64_t count() const { return static_cast<int64_t>(values.size()); }
  std::vector<float> floats() const;
  std::vector<int64_t> integers() const;
};

// One operation: outputs for inputs, and the gradients of the inputs for a gradient of the output "y".
struct OpCase {
  std::map<std::string, std::vector<double>> attributes;  // a number or truth value is a list of one
  Array cotangent;
  std::map<std::string, Array> gradients;
  std::map<std::string, Array> inputs;
  std::string name;
  std::string op;
  std::map<std::string, Array> outputs;
  double attribute(const std::string& key, double otherwise) const;
};

// One parameter moved by given gradients.
struct OptimizerTrace {
  std::vector<std::vector<double>> gradients;  // one a step
  std::string kind;                            // sgd, adam, adamw
  std::string name;
  std::map<std::string, std::vector<double>> options;
  std::vector<std::vector<double>> parameters;  // after each step
  std::vector<double> rates;                    // one a step
  std::vector<double> start;
  double option(const std::string& key, double otherwise) const;
};

// How a failing parametrised test names its case.
void PrintTo(const OpCase& row, std::ostream* out);
void PrintTo(const OptimizerTrace& trace, std::ostream* out);

struct Ops {
  std::vector<OpCase> cases;
  std::vector<OptimizerTrace> optimizers;
};

// Both throw std::runtime_error that names the file when it is absent or damaged.
Trajectories read_trajectories(const std::string& path);
Ops read_ops(const std::string& path);

}  // namespace brisk::golden

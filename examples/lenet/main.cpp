// LeNet on Fashion-MNIST (or on digits that the library draws): by default 2 epochs of SGD 0.001, momentum 0.9, batch
// 4, with a line every 2,000 mini-batches. Options try better recipes; --quickstart is one that passes 90 % in a few
// minutes.
#include <brisk/brisk.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

using namespace brisk;

namespace {

Var lenet(Var x) {                                                                // [N, 1, 28, 28]; N is never written
  x = max_pool2d(relu(conv2d(x, {.channels = 20, .kernel = 5})), {.kernel = 2});  // [N, 20, 12, 12]
  x = max_pool2d(relu(conv2d(x, {.channels = 50, .kernel = 5})), {.kernel = 2});  // [N, 50, 4, 4]
  return linear(relu(linear(flatten(x), 500)), 10);                               // [N, 800] -> [N, 10]
}

struct Options {
  int64_t batch = 4;
  std::string data = "auto";
  double epochs = 2;
  double learning_rate = 0.001;
  double momentum = 0.9;
  bool quickstart = false;
  std::string run_folder;
  bool svg = false;
  int threads = 0;
};

const char* const kHelp =
    "usage: lenet [options]\n"
    "  --data D            auto (Fashion-MNIST where installed, else drawn digits), fashion-mnist, digits, or a "
    "folder\n"
    "  --epochs E          how long to train (2); fractions are allowed\n"
    "  --batch N           samples of a mini-batch (4)\n"
    "  --learning-rate R   constant (0.001); with --quickstart the peak\n"
    "  --momentum M        (0.9)\n"
    "  --threads T         0: all that this process may use (0)\n"
    "  --run-folder F      append events.jsonl there and draw the loss at the end\n"
    "  --svg               write loss.svg into the run folder\n"
    "  --quickstart        a recipe for 90 %: batch 64, 6 epochs, warm-up and cosine to 0, peak 0.05; "
    "runs/quickstart\n";

[[noreturn]] void wrong_use(const std::string& message) {
  std::fprintf(stderr, "lenet: %s\n%s", message.c_str(), kHelp);
  std::exit(2);
}

double number(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') wrong_use(name + " " + text + ": must be a number");
  return value;
}

int64_t whole_number(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0') wrong_use(name + " " + text + ": must be a whole number");
  return value;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--quickstart") == 0) {
      options = {.batch = 64,
                 .epochs = 6,
                 .learning_rate = 0.05,
                 .quickstart = true,
                 .run_folder = "runs/quickstart",
                 .svg = true};
    }
  }
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      std::printf("%s", kHelp);
      std::exit(0);
    }
    if (name == "--quickstart") continue;
    if (name == "--svg") {
      options.svg = true;
      continue;
    }
    if (i + 1 == argc) wrong_use(name + ": unknown, or its value is missing");
    const std::string value = argv[++i];
    if (name == "--data")
      options.data = value;
    else if (name == "--epochs")
      options.epochs = number(name, value);
    else if (name == "--batch")
      options.batch = whole_number(name, value);
    else if (name == "--learning-rate")
      options.learning_rate = number(name, value);
    else if (name == "--momentum")
      options.momentum = number(name, value);
    else if (name == "--threads")
      options.threads = static_cast<int>(whole_number(name, value));
    else if (name == "--run-folder")
      options.run_folder = value;
    else
      wrong_use(name + ": unknown");
  }
  if (options.svg && options.run_folder.empty()) wrong_use("--svg needs --run-folder");
  return options;
}

data::TrainTest drawn_digits() {
  data::TrainTest digits{data::drawn_digits(30000, 0), data::drawn_digits(5000, 1)};
  digits.train.set_name("drawn digits, train");
  digits.test.set_name("drawn digits, test");
  return digits;
}

data::TrainTest load(const std::string& name) {
  if (name == "digits") return drawn_digits();
  if (name != "auto") return data::fashion_mnist(name == "fashion-mnist" ? "" : name);
  try {
    return data::fashion_mnist();
  } catch (const Error& error) {
    if (error.code() != ErrorCode::file) throw;
    std::printf("Fashion-MNIST is not here, so digits are drawn instead.\n%s\n", error.what());
    return drawn_digits();
  }
}

int run(const Options& options) {
  const auto [train, test] = load(options.data);
  Model model(lenet, {1, 28, 28});
  Schedule rate = options.learning_rate;
  if (options.quickstart) rate = warmup(200_updates).then(cosine(options.learning_rate));
  const double decay = options.quickstart ? 5e-4 : 0;
  Trainer trainer(model, cross_entropy(),
                  sgd({.learning_rate = rate, .momentum = options.momentum, .weight_decay = decay}),
                  {.batch = options.batch, .threads = options.threads});
  trainer.add_metric("accuracy", accuracy());

  FitOptions fit;
  fit.duration = Duration(options.epochs, Duration::Unit::epochs);
  fit.run_folder = options.run_folder;
  fit.stop_on_signals = true;  // what has been trained is reported, then exit code 143
  if (!options.quickstart) fit.log_every = 2000_updates;
  const FitResult result = trainer.fit(train, test, fit);

  if (!options.run_folder.empty()) std::printf("%s", loss_picture(options.run_folder).c_str());
  if (options.svg) std::printf("%s\n", write_loss_svg(options.run_folder).c_str());
  return result.exit_code();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const Error& error) {
    std::fprintf(stderr, "lenet: %s\n", error.what());
    return error.code() == ErrorCode::option ? 2 : 1;
  }
}

// The optimizer factories: every field is checked here, so that nothing behind them meets a value it cannot use.
#include "brisk/optimizer.h"

#include <cmath>
#include <limits>

#include "core/text.h"
#include "optim/schedule_body.h"

namespace brisk {
namespace {

/// Checks of one optimizer's fields; messages begin with its name.
class FieldCheck {
 public:
  explicit FieldCheck(std::string optimizer) : optimizer_(std::move(optimizer)) {}

  void rate(const Schedule& schedule) const { optim::check_rate(optimizer_ + ".learning_rate", schedule); }
  void fraction(const char* field, double value) const {
    require(value >= 0 && value < 1, field, value, "must be in [0, 1)");
  }
  void closed_fraction(const char* field, double value) const {
    require(value >= 0 && value <= 1, field, value, "must be in [0, 1]");
  }
  void not_negative(const char* field, double value) const {
    require(value >= 0 && std::isfinite(static_cast<float>(value)), field, value,
            "must be a finite number of at least 0");
  }
  /// Kernels hold it as an f32 with denormals flushed: a smaller one would be 0, and 0 / 0 a NaN.
  void epsilon(double value) const {
    require(value >= std::numeric_limits<float>::min() && std::isfinite(static_cast<float>(value)), "epsilon", value,
            "must be a finite number above 1.2e-38");
  }
  void betas(const std::vector<double>& betas) const {
    if (betas.size() != 2) {
      throw Error(ErrorCode::option, optimizer_ + ".betas",
                  cat("has ", betas.size(), " numbers; it takes two, for example {0.9, 0.999}"));
    }
    fraction("betas[0]", betas[0]);
    fraction("betas[1]", betas[1]);
  }
  void groups(const std::vector<ParameterGroup>& groups) const {
    for (size_t i = 0; i < groups.size(); ++i) {
      const std::string prefix = cat("groups[", i, "].");
      if (groups[i].match.empty()) {
        throw Error(ErrorCode::option, cat(optimizer_, ".", prefix, "match"),
                    "missing; a glob over parameter names, for example \"fc.*\"");
      }
      not_negative((prefix + "learning_rate_scale").c_str(), groups[i].learning_rate_scale);
      if (groups[i].weight_decay) not_negative((prefix + "weight_decay").c_str(), *groups[i].weight_decay);
    }
  }
  void require(bool condition, const char* field, double value, const char* allowed) const {
    if (!condition) throw Error(ErrorCode::option, cat(optimizer_, ".", field, " = ", value), allowed);
  }

 private:
  std::string optimizer_;
};

/// Adam and AdamW differ only in where the decay acts.
template <class Options>
Optimizer adam_family(Options options, const char* name, bool decoupled) {
  const FieldCheck check(name);
  check.betas(options.betas);
  check.epsilon(options.epsilon);
  check.groups(options.groups);
  check.rate(options.learning_rate);
  check.not_negative("weight_decay", options.weight_decay);
  Optimizer out;
  out.kind = Optimizer::Kind::adam;
  out.beta1 = options.betas[0];
  out.beta2 = options.betas[1];
  out.epsilon = options.epsilon;
  out.groups = std::move(options.groups);
  out.learning_rate = std::move(options.learning_rate);
  out.name = name;
  out.decoupled = decoupled;
  out.weight_decay = options.weight_decay;
  return out;
}

}  // namespace

Optimizer sgd(SgdOptions options) {
  const FieldCheck check("sgd");
  check.closed_fraction("dampening", options.dampening);
  check.groups(options.groups);
  check.rate(options.learning_rate);
  check.fraction("momentum", options.momentum);
  check.not_negative("weight_decay", options.weight_decay);
  if (options.nesterov && (options.momentum == 0 || options.dampening != 0)) {
    throw Error(ErrorCode::option, "sgd.nesterov = true",
                cat("needs momentum > 0 and dampening 0; they are ", options.momentum, " and ", options.dampening));
  }
  Optimizer out;
  out.beta1 = options.momentum;
  out.dampening = options.dampening;
  out.groups = std::move(options.groups);
  out.learning_rate = std::move(options.learning_rate);
  out.name = "sgd";
  out.nesterov = options.nesterov;
  out.weight_decay = options.weight_decay;
  return out;
}

Optimizer adam(AdamOptions options) { return adam_family(std::move(options), "adam", false); }
Optimizer adamw(AdamWOptions options) { return adam_family(std::move(options), "adamw", true); }

}  // namespace brisk

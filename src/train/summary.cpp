// Parameters, rules, batch, plan.
#include "train/summary.h"

#include <map>

#include "core/text.h"
#include "optim/rules.h"
#include "train/step_access.h"

namespace brisk::train {
namespace {

struct Counted {
  int64_t elements = 0;
  int tensors = 0;
};

std::string parameters_text(const ModelState& model) {
  Counted trained, frozen, buffers;
  for (const graph::Segment& segment : model.segments) {
    Counted& kind = segment.spec.buffer ? buffers : segment.frozen ? frozen : trained;
    kind.elements += segment.spec.shape.count();
    ++kind.tensors;
  }
  std::string out =
      cat("model \"", model.name, "\": ", grouped(trained.elements), " parameters in ", trained.tensors, " tensors");
  if (frozen.tensors > 0) out += cat(", ", grouped(frozen.elements), " frozen in ", frozen.tensors);
  if (buffers.tensors > 0) out += cat(", ", grouped(buffers.elements), " of buffers in ", buffers.tensors);
  return out;
}

/// "weight decay 0.05 on 21 parameters, 0 on 41; rate x 10 on 2"
std::string rules_text(const ModelState& model, const Optimizer& optimizer) {
  std::vector<optim::NamedParameter> parameters;
  for (const graph::Segment& segment : model.segments) {
    if (segment.spec.buffer) continue;
    parameters.push_back({segment.spec.name, segment.spec.torch_shape.rank(), segment.spec.decay});
  }
  std::map<double, int> decays, scales;
  for (const auto& [decay, scale] : optim::resolve_rules(optimizer, parameters)) {
    ++decays[decay];
    ++scales[scale];
  }
  std::string out = "weight decay";
  for (auto it = decays.rbegin(); it != decays.rend(); ++it) {
    out += cat(it == decays.rbegin() ? " " : ", ", it->first, " on ", it->second,
               it == decays.rbegin() ? " parameters" : "");
  }
  if (optimizer.groups.empty() && optimizer.weight_decay > 0) out += " (two or more dimensions decay)";
  for (const auto& [scale, count] : scales) {
    if (scale != 1) out += cat("; rate x ", scale, " on ", count);
  }
  return out;
}

std::string plan_text(const Step* step) {
  if (step == nullptr) return "plan: made at the first fit, since the loss takes its targets from the data";
  const PlanBytes bytes = step->plan().bytes();
  return cat("plan: ", grouped(bytes.total), " bytes (activations ", grouped(bytes.activations), ", parameters ",
             grouped(bytes.parameters), ", gradients ", grouped(bytes.gradients), ", moments ", grouped(bytes.moments),
             ")");
}

}  // namespace

std::string optimizer_text(const Optimizer& optimizer) {
  std::string out = optimizer.name;
  if (optimizer.kind == Optimizer::Kind::adam) {
    out += cat(", betas {", optimizer.beta1, ", ", optimizer.beta2, "}, epsilon ", optimizer.epsilon);
  } else {
    out += cat(", momentum ", optimizer.beta1);
    if (optimizer.dampening != 0) out += cat(", dampening ", optimizer.dampening);
    if (optimizer.nesterov) out += ", nesterov";
  }
  return out + cat(", weight decay ", optimizer.weight_decay);
}

std::string summary_text(const ModelState& model, const Optimizer& optimizer, const StepOptions& options,
                         const Step* step) {
  std::string out = parameters_text(model) + "\n";
  out += cat("optimizer: ", optimizer_text(optimizer), "\n");
  out += cat("learning rate: ", optimizer.learning_rate, "\n");
  out += rules_text(model, optimizer) + "\n";
  if (step != nullptr) {
    out += cat("global batch ", step->batch() * step->accumulate(), " = ", step->batch(), " x accumulate ",
               step->accumulate(), " x ranks 1; threads ", step->threads(), "\n");
  }
  out += cat("precision: ", name(options.precision));
  if (step != nullptr && options.precision == Precision::automatic)
    out += cat(", which is ", name(step->plan().precision()), " on ", step->plan().target());
  out += "\n";
  return out + plan_text(step) + "\n";
}

}  // namespace brisk::train

// Names of a data set against names of a step.
#include "train/binding.h"

#include <algorithm>

#include "core/text.h"
#include "data/fields.h"

namespace brisk::train {
namespace {

std::string joined(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ", ") + name;
  return out.empty() ? "none" : out;
}

template <class Named>
std::vector<std::string> names_of(const std::vector<Named>& fields) {
  std::vector<std::string> out;
  for (const auto& field : fields) {
    if constexpr (std::is_same_v<Named, Field>) {
      out.push_back(field.name);
    } else {
      out.push_back(field.first);
    }
  }
  return out;
}

bool has(const std::vector<Field>& fields, const std::string& name) {
  return std::any_of(fields.begin(), fields.end(), [&](const Field& field) { return field.name == name; });
}

std::string type_text(const Field& field) { return cat(field.shape, " ", name(field.dtype)); }

/// The field of the data set for `wanted`, whose shape and type must be those of the step.
BoundField bind(const Dataset& dataset, const std::vector<Field>& fields, const Field& wanted, const std::string& name,
                const char* role) {
  const std::string owner = data_set_text(dataset.name());
  const Field& field = fields[static_cast<size_t>(data::field_number(fields, name, owner))];
  if (field.shape == wanted.shape && field.dtype == wanted.dtype) return {wanted.name, name};
  throw Error(ErrorCode::data, cat(owner, ", field \"", name, "\""),
              cat("one sample is ", type_text(field), ", the ", role, " takes ", type_text(wanted),
                  "; give the column in that shape and type"));
}

/// The name under which the data set has a target.
std::string target_name(const std::vector<Field>& remaining, const std::vector<Field>& targets, const Field& target,
                        const std::string& owner) {
  if (has(remaining, target.name) || targets.size() > 1) return target.name;
  if (remaining.size() == 1) return remaining[0].name;
  throw Error(
      ErrorCode::data, "",
      cat(owner, " has ", remaining.size(), " fields that could be the loss's target: ", joined(names_of(remaining)),
          "; call one of them \"", target.name, "\", or name it in StepOptions.targets"));
}

/// The value that a function asked for and did not find among `available`; empty: the error is another one.
std::string missing_value(const Error& error, const Vars& available) {
  if (error.code() != ErrorCode::data || error.field() != "Vars") return {};
  const std::string text = error.what(), begin = "no value \"";
  const std::string end = "\"; it has " + joined(names_of(available.entries()));
  const size_t from = text.find(begin), to = text.rfind(end);
  if (from == std::string::npos || to == std::string::npos || to + end.size() != text.size()) return {};
  return text.substr(from + begin.size(), to - from - begin.size());
}

}  // namespace

std::string data_set_text(const std::string& data_name) {
  return data_name == "data set" ? data_name : cat("data set \"", data_name, "\"");
}

std::vector<Field> remaining_fields(const Dataset& dataset, const std::vector<Field>& inputs) {
  const std::vector<Field> fields = dataset.fields();
  const std::string owner = data_set_text(dataset.name());
  for (const Field& input : inputs) data::field_number(fields, input.name, owner);
  std::vector<Field> out;
  for (const Field& field : fields) {
    if (!has(inputs, field.name)) out.push_back(field);
  }
  if (out.empty()) {
    throw Error(
        ErrorCode::data, "",
        cat(owner, " has no target: all of its fields (", joined(names_of(fields)), ") are inputs of the model"));
  }
  return out;
}

Binding::Binding(const Dataset& dataset, const std::vector<Field>& inputs, const std::vector<Field>& targets) {
  const std::vector<Field> fields = dataset.fields();
  const std::vector<Field> remaining = targets.empty() ? std::vector<Field>() : remaining_fields(dataset, inputs);
  for (const Field& input : inputs) fields_.push_back(bind(dataset, fields, input, input.name, "model"));
  for (const Field& target : targets) {
    const std::string name = target_name(remaining, targets, target, data_set_text(dataset.name()));
    fields_.push_back(bind(dataset, fields, target, name, "loss"));
  }
}

const Feed& Binding::feed(const Batch& batch) {
  feed_.clear();
  for (const BoundField& field : fields_) feed_.add(field.step, batch[field.data]);
  return feed_;
}

LossFunction observed(const LossFunction& loss, std::shared_ptr<TracedLoss> traced, const std::string& data_name,
                      const std::vector<Field>& data_fields) {
  const auto call = [loss, traced, data_name, data_fields](const Vars& outputs, const Vars& targets) -> Mean {
    try {
      Mean mean = loss(outputs, targets);
      traced->factors.clear();
      for (const Mean::Term& term : mean.terms()) traced->factors.push_back(term.factor);
      return mean;
    } catch (const Error& error) {
      const std::string missing = missing_value(error, targets);
      if (!missing.empty() && !data_fields.empty()) data::field_number(data_fields, missing, data_set_text(data_name));
      throw;
    }
  };
  InferTargets infer;
  if (loss.infer_targets()) {
    infer = [loss, traced](const Vars& outputs) {
      traced->targets = loss.infer_targets()(outputs);
      return traced->targets;
    };
  }
  return LossFunction(call, infer);
}

}  // namespace brisk::train

// Names of files against names of models.
#include "checkpoint/match.h"

#include <algorithm>
#include <set>

#include "core/text.h"
#include "optim/glob.h"

namespace brisk::checkpoint {
namespace {

constexpr std::string_view kMean = "running_mean";
constexpr std::string_view kCounter = "num_batches_tracked";
constexpr size_t kMostListed = 4;

/// Whether `name` is `part`, or begins with it before a dot.
bool begins_with_part(std::string_view name, std::string_view part) {
  return name.substr(0, part.size()) == part && (name.size() == part.size() || name[part.size()] == '.');
}

/// Skip patterns, counting what was used.
class Skips {
 public:
  explicit Skips(const std::vector<std::string>& globs) : globs_(globs), used_(globs.size(), false) {}
  bool operator()(std::string_view name) {
    bool any = false;
    for (size_t i = 0; i < globs_.size(); ++i) {
      if (!optim::glob_matches(globs_[i], name)) continue;
      used_[i] = any = true;
    }
    return any;
  }
  void check_all_used() const {
    for (size_t i = 0; i < globs_.size(); ++i) {
      if (!used_[i]) {
        throw Error(ErrorCode::option, cat("LoadOptions.skip = ", quote_name(globs_[i])),
                    "matches no name of the model or the file");
      }
    }
  }

 private:
  const std::vector<std::string>& globs_;
  std::vector<bool> used_;
};

/// "b, c" of all but the first, cut when long.
std::string listed(const std::vector<std::string>& names, size_t first) {
  std::string out;
  for (size_t i = first; i < std::min(names.size(), first + kMostListed); ++i) {
    out += (i > first ? ", " : "") + readable_name(names[i]);
  }
  return out + (names.size() > first + kMostListed ? ", ..." : "");
}

std::string others(const std::vector<std::string>& names) {
  return names.size() < 2 ? std::string() : cat(" (", names.size() - 1, " more: ", listed(names, 1), ")");
}

/// The globs that skip these names: one a layer.
std::string skip_remedy(const std::vector<std::string>& names) {
  std::vector<std::string> globs;
  for (const std::string& name : names) {
    const size_t dot = name.rfind('.');
    const std::string glob = readable_name(dot == std::string::npos ? name : name.substr(0, dot) + ".*");
    if (std::find(globs.begin(), globs.end(), glob) == globs.end()) globs.push_back(glob);
  }
  std::string out;
  for (size_t i = 0; i < std::min(globs.size(), kMostListed); ++i) out += (i > 0 ? ", \"" : "\"") + globs[i] + "\"";
  return "{.skip = {" + out + (globs.size() > kMostListed ? ", ..." : "") + "}}";
}

}  // namespace

std::string did_you_mean(const std::string& name, std::vector<std::string> candidates) {
  constexpr size_t kLongest = 256;  // comparing takes time and memory by length, and a file may hold any name
  candidates.erase(std::remove_if(candidates.begin(), candidates.end(),
                                  [](const std::string& candidate) { return candidate.size() > kLongest; }),
                   candidates.end());
  const std::string near = closest(name, candidates);
  return near.empty() ? std::string() : cat(" (did you mean ", readable_name(near), "?)");
}

namespace {

/// Why a tensor cannot go into a parameter; "" when it can.
std::string difference(const StoredTensor& stored, const Shape& wanted) {
  if (!is_stored_float(stored.dtype)) {
    return cat("file has ", stored.dtype, " ", stored.shape, ", model has ", wanted,
               " of f32, made from F32, F16, BF16, F64");
  }
  return stored.shape == wanted ? std::string() : cat("file has ", stored.shape, ", model has ", wanted);
}

/// The file's tensors under the model's names. Those without the prefix are reported as skipped.
std::map<std::string, const StoredTensor*> rename_all(const std::vector<StoredTensor>& tensors,
                                                      const LoadOptions& options, LoadReport& report) {
  Renamer renamer(options);
  std::map<std::string, const StoredTensor*> out;
  for (const StoredTensor& stored : tensors) {
    if (!renamer.takes(stored.name)) {
      report.skipped.push_back(stored.name);
      continue;
    }
    const auto [entry, added] = out.emplace(renamer(stored.name), &stored);
    if (!added) {
      throw Error(ErrorCode::weights, readable_name(entry->first),
                  cat("two tensors of the file get this name: ", quote_name(entry->second->name), " and ",
                      quote_name(stored.name), "; change {.rename}; nothing was loaded"));
    }
  }
  renamer.check_all_used();
  return out;
}

}  // namespace

std::string counter_of(const Parameter& parameter) {
  const std::string& name = parameter.name;
  if (!parameter.buffer || name.size() < kMean.size()) return {};
  const size_t start = name.size() - kMean.size();
  if (name.compare(start, std::string::npos, kMean) != 0 || (start > 0 && name[start - 1] != '.')) return {};
  return name.substr(0, start) + std::string(kCounter);
}

std::string Renamer::operator()(std::string_view name) {
  name.remove_prefix(options_.prefix.size());
  for (size_t i = 0; i < options_.rename.size(); ++i) {
    const auto& [from, to] = options_.rename[i];
    if (!from.empty() && !begins_with_part(name, from)) continue;
    used_[i] = true;
    std::string_view rest = name.substr(from.size());
    if (!rest.empty() && rest.front() == '.') rest.remove_prefix(1);
    return cat(to, to.empty() || rest.empty() ? "" : ".", rest);
  }
  return std::string(name);
}

void Renamer::check_all_used() const {
  for (size_t i = 0; i < used_.size(); ++i) {
    if (!used_[i]) {
      throw Error(ErrorCode::option, cat("LoadOptions.rename = ", quote_name(options_.rename[i].first)),
                  "no name of the file begins with it (whole parts between dots)");
    }
  }
}

Match match_names(const Model& model, const std::vector<StoredTensor>& tensors, const LoadOptions& options) {
  Match match;
  LoadReport& report = match.report;
  std::map<std::string, const StoredTensor*> left = rename_all(tensors, options, report);
  Skips skips(options.skip);
  std::set<std::string> skipped;
  std::set<std::string> counters;
  for (const Parameter& parameter : model.parameters()) {
    const std::string& name = parameter.name;
    if (const std::string counter = counter_of(parameter); !counter.empty()) counters.insert(counter);
    const auto found = left.find(name);
    if (skips(name)) {
      skipped.insert(name);
    } else if (found == left.end()) {
      report.missing.push_back(name);
    } else if (const std::string text = difference(*found->second, parameter.shape); !text.empty()) {
      report.mismatched.push_back(name);
      match.difference[name] = text;
    } else {
      report.loaded.push_back(name);
      match.loaded[found->second] = name;
    }
    if (found != left.end()) left.erase(found);
  }
  for (const auto& [name, stored] : left) {
    if (skips(name)) {
      skipped.insert(name);
    } else if (counters.count(name) != 0) {
      match.counters[name] = stored;
    } else {
      report.unexpected.push_back(name);
    }
  }
  skips.check_all_used();
  report.skipped.insert(report.skipped.end(), skipped.begin(), skipped.end());
  std::sort(report.skipped.begin(), report.skipped.end());
  return match;
}

void refuse_differences(const Model& model, const Match& match) {
  const LoadReport& r = match.report;
  const char* const end = "; nothing was loaded";
  std::string also;
  const auto mention = [&](const std::vector<std::string>& names, const char* kind) {
    if (!names.empty()) also += cat("; also ", kind, ": ", listed(names, 0));
  };
  if (!r.mismatched.empty()) {
    mention(r.missing, "missing");
    mention(r.unexpected, "unexpected");
    const std::string& name = r.mismatched.front();
    throw Error(ErrorCode::weights, name,
                cat(match.difference.at(name), others(r.mismatched), also, "; skip them with ",
                    skip_remedy(r.mismatched), end));
  }
  if (!r.missing.empty()) {
    mention(r.unexpected, "unexpected");
    const std::string& name = r.missing.front();
    throw Error(
        ErrorCode::weights, name,
        cat("model '", model.name(), "' has it, the file does not", did_you_mean(name, r.unexpected), others(r.missing),
            also, "; keep the model's values with ", skip_remedy(r.missing), ", or name them with .rename", end));
  }
  if (r.unexpected.empty()) return;
  throw Error(ErrorCode::weights, readable_name(r.unexpected.front()),
              cat("the file has it, model '", model.name(), "' does not", others(r.unexpected), "; leave them with ",
                  skip_remedy(r.unexpected), ", or name them with .rename", end));
}

}  // namespace brisk::checkpoint

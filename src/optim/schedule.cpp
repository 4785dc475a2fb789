// Rates: closed forms in double, pure in the number of updates, so that any update may be asked for in any order.
#include "brisk/schedule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text.h"
#include "optim/schedule_body.h"

namespace brisk {

using Body = Schedule::Body;
using Kind = Body::Kind;

namespace {

constexpr int64_t kForever = std::numeric_limits<int64_t>::max();
constexpr double kPi = 3.14159265358979323846;
constexpr double kLongest = 9007199254740992.0;  // 2^53: whole numbers of a double end here

const char* unit_name(Duration::Unit unit) {
  switch (unit) {
    case Duration::Unit::epochs:
      return "epoch";
    case Duration::Unit::samples:
      return "sample";
    case Duration::Unit::seconds:
      return "second";
    case Duration::Unit::updates:
      return "update";
    case Duration::Unit::none:
      break;
  }
  return "";
}

void check_number(const std::string& field, double value) {
  if (std::isfinite(static_cast<float>(value)) && value >= 0) return;
  throw Error(ErrorCode::option, cat(field, " = ", value), "must be a finite number of at least 0");
}

void check_length(const std::string& field, const Duration& length) {
  const std::string subject = cat(field, " = ", length.text());
  if (length.unit() == Duration::Unit::seconds) {
    throw Error(ErrorCode::schedule, subject,
                "a rate is a function of updates, so that a resumed run repeats it; give epochs, samples or updates");
  }
  if (!(length.count() >= 0 && length.count() <= kLongest)) {
    throw Error(ErrorCode::option, subject, "must be a finite length of at least 0");
  }
  const bool whole = std::floor(length.count()) == length.count();
  if (length.unit() == Duration::Unit::updates && !whole) {
    throw Error(ErrorCode::option, subject, "must be a whole number of updates");
  }
}

Schedule make(Body body) { return Schedule(std::make_shared<const Body>(std::move(body))); }

bool open(const Body& body) { return body.kind == Kind::cosine && !body.length.set(); }

bool has_end(const Body& body) {
  if (body.kind == Kind::sequence) return has_end(*body.pieces.back());
  return body.kind == Kind::warmup || (body.kind == Kind::cosine && body.length.set());
}

Duration in_updates(double count) { return {count, Duration::Unit::updates}; }

/// A length in updates: to the nearest whole one.
Duration convert(const Duration& length, int64_t updates_per_epoch, int64_t samples_per_update) {
  double updates = length.count();
  if (length.unit() == Duration::Unit::epochs) updates *= static_cast<double>(updates_per_epoch);
  if (length.unit() == Duration::Unit::samples) updates /= static_cast<double>(samples_per_update);
  return length.set() ? in_updates(std::round(updates)) : length;
}

std::vector<std::shared_ptr<const Body>> pieces_of(const std::shared_ptr<const Body>& body) {
  if (body->kind == Kind::sequence) return body->pieces;
  return {body};
}

[[noreturn]] void throw_no_goal(const Body& body) {
  throw Error(
      ErrorCode::schedule, body.text(),
      cat("climbs to the first value of what follows it, and nothing does; add one: ", body.text(), ".then(0.1)"));
}

}  // namespace

std::string Duration::text() const {
  if (!set()) return "not set";
  const bool whole = std::floor(count_) == count_ && std::fabs(count_) < kLongest;
  const std::string number = whole ? grouped(static_cast<int64_t>(count_)) : number_text(count_);
  return cat(number, " ", unit_name(unit_), count_ == 1 ? "" : "s");
}

double Body::at(int64_t update, const Body* next) const {
  const double t = static_cast<double>(update);
  switch (kind) {
    case Kind::constant:
      return value;
    case Kind::warmup: {
      if (next == nullptr) throw_no_goal(*this);
      // The quotient first: it is exactly 1 at the last update, which then has the peak to the last bit.
      return next->at(0, nullptr) * ((t + 1) / length.count());
    }
    case Kind::cosine: {
      const double total = length.count();
      if (t >= total) return end;
      return end + (value - end) * (1 + std::cos(kPi * t / total)) / 2;
    }
    case Kind::step_decay:
      return value * std::pow(factor, std::floor(t / length.count()));
    case Kind::sequence:
      break;
  }
  for (size_t i = 0; i + 1 < pieces.size(); ++i) {
    const int64_t piece_length = pieces[i]->updates();
    if (update < piece_length) return pieces[i]->at(update, pieces[i + 1].get());
    update -= piece_length;
  }
  return pieces.back()->at(update, nullptr);
}

int64_t Body::updates() const {
  return kind == Kind::warmup || kind == Kind::cosine ? static_cast<int64_t>(length.count()) : kForever;
}

bool Body::resolved() const {
  for (const auto& piece : pieces) {
    if (!piece->resolved()) return false;
  }
  return kind == Kind::constant || kind == Kind::sequence || length.unit() == Duration::Unit::updates;
}

std::string Body::text() const {
  switch (kind) {
    case Kind::constant:
      return number_text(value);
    case Kind::warmup:
      return cat("warmup(", length.text(), ")");
    case Kind::cosine: {
      std::string options = end != 0 ? cat(".end = ", end) : "";
      if (length.set()) options += cat(options.empty() ? "" : ", ", ".over = ", length.text());
      return options.empty() ? cat("cosine(", value, ")") : cat("cosine(", value, ", {", options, "})");
    }
    case Kind::step_decay:
      return cat("step_decay(", value, ", {.every = ", length.text(), ", .factor = ", factor, "})");
    case Kind::sequence:
      break;
  }
  std::string out = pieces.front()->text();
  for (size_t i = 1; i < pieces.size(); ++i) out += cat(".then(", pieces[i]->text(), ")");
  return out;
}

Schedule::Schedule(double value) {
  Body body;
  body.value = value;
  body_ = std::make_shared<const Body>(std::move(body));
}
Schedule::Schedule() = default;
Schedule::Schedule(std::shared_ptr<const Body> body) : body_(std::move(body)) {}

double Schedule::at(const Clock& clock) const {
  if (!set()) throw Error(ErrorCode::schedule, "Schedule", "is not set; give a number or a schedule");
  if (clock.updates < 0) {
    throw Error(ErrorCode::option, cat("Clock.updates = ", clock.updates), "must be at least 0");
  }
  optim::check_resolved("Schedule", *this);
  return body_->at(clock.updates, nullptr);
}

Schedule Schedule::then(Schedule next) const {
  if (!set() || !next.set()) throw Error(ErrorCode::schedule, "Schedule.then", "one of the two schedules is not set");
  if (!has_end(*body_)) {
    throw Error(ErrorCode::schedule, text(),
                cat("has no end, so ", next.text(), " would never begin; ",
                    open(*pieces_of(body_).back()) ? "give its length: {.over = 10_epochs}" : "leave one of them out"));
  }
  Body body;
  body.kind = Kind::sequence;
  body.pieces = pieces_of(body_);
  const std::vector<std::shared_ptr<const Body>> more = pieces_of(next.body_);
  if (body.pieces.back()->kind == Kind::warmup && more.front()->kind == Kind::warmup) {
    throw Error(ErrorCode::schedule, text(), cat("climbs to the first value of ", next.text(), ", which has none"));
  }
  body.pieces.insert(body.pieces.end(), more.begin(), more.end());
  return make(std::move(body));
}

Schedule Schedule::resolve(int64_t updates_per_epoch, int64_t samples_per_update, int64_t total_updates) const {
  if (!set()) return *this;
  if (updates_per_epoch < 1 || samples_per_update < 1 || total_updates < 0) {
    throw Error(ErrorCode::schedule, "Schedule.resolve",
                cat("updates_per_epoch = ", updates_per_epoch, ", samples_per_update = ", samples_per_update,
                    ", total_updates = ", total_updates, ": the first two must be at least 1, the third at least 0"));
  }
  std::vector<std::shared_ptr<const Body>> resolved;
  int64_t begin = 0;
  for (const auto& piece : pieces_of(body_)) {
    Body copy = *piece;
    copy.length = convert(piece->length, updates_per_epoch, samples_per_update);
    if (copy.kind == Kind::step_decay && copy.length.count() < 1) copy.length = in_updates(1);
    if (open(copy)) copy.length = in_updates(static_cast<double>(std::max<int64_t>(total_updates - begin, 0)));
    const int64_t length = copy.updates();
    if (copy.kind == Kind::warmup && length > total_updates - begin) {
      throw Error(
          ErrorCode::schedule, copy.text(),
          cat("ends after the run, which has ", grouped(total_updates), " updates; make it shorter, or train longer"));
    }
    if (length != kForever) begin += length;
    resolved.push_back(std::make_shared<const Body>(std::move(copy)));
  }
  if (resolved.size() == 1) return Schedule(resolved.front());
  Body body;
  body.kind = Kind::sequence;
  body.pieces = std::move(resolved);
  return make(std::move(body));
}

bool Schedule::resolved() const { return set() && body_->resolved(); }
std::string Schedule::text() const { return set() ? body_->text() : "not set"; }

Schedule constant(double value) {
  check_number("constant.value", value);
  return {value};
}

Schedule warmup(Duration length) {
  if (!length.set()) throw Error(ErrorCode::option, "warmup", "needs a length, for example warmup(500_updates)");
  check_length("warmup", length);
  Body body;
  body.kind = Kind::warmup;
  body.length = length;
  return make(std::move(body));
}

Schedule cosine(double peak, CosineOptions options) {
  check_number("cosine.peak", peak);
  check_number("CosineOptions.end", options.end);
  if (options.over.set()) check_length("CosineOptions.over", options.over);
  Body body;
  body.kind = Kind::cosine;
  body.value = peak;
  body.end = options.end;
  body.length = options.over;
  return make(std::move(body));
}

Schedule step_decay(double peak, StepDecayOptions options) {
  check_number("step_decay.peak", peak);
  if (!options.every.set()) {
    throw Error(ErrorCode::option, "StepDecayOptions.every", "missing; the length of a stair, for example 30_epochs");
  }
  check_length("StepDecayOptions.every", options.every);
  if (options.every.count() == 0) {
    throw Error(ErrorCode::option, cat("StepDecayOptions.every = ", options.every.text()), "must be more than 0");
  }
  if (!(options.factor > 0 && options.factor <= 1)) {
    throw Error(ErrorCode::option, cat("StepDecayOptions.factor = ", options.factor), "must be in (0, 1]");
  }
  Body body;
  body.kind = Kind::step_decay;
  body.value = peak;
  body.factor = options.factor;
  body.length = options.every;
  return make(std::move(body));
}

namespace optim {

void check_rate(const std::string& field, const Schedule& schedule) {
  if (!schedule.set()) {
    throw Error(ErrorCode::option, field,
                "missing; give a rate or a schedule, for example .learning_rate = 0.01 or "
                "warmup(500_updates).then(cosine(0.1))");
  }
  const std::vector<std::shared_ptr<const Body>> pieces = pieces_of(Body::of(schedule));
  for (const auto& piece : pieces) {
    const std::string subject = piece->kind == Kind::constant ? field : cat(field, ": ", piece->text(), ": peak");
    check_number(subject, piece->value);
  }
  if (pieces.back()->kind == Kind::warmup) {
    throw Error(ErrorCode::schedule, field,
                cat(schedule.text(), " climbs to the first value of what follows it, and nothing does; add one: ",
                    schedule.text(), ".then(0.1)"));
  }
}

std::string why_unresolved(const Schedule& schedule) {
  for (const auto& piece : pieces_of(Body::of(schedule))) {
    if (piece->resolved()) continue;
    if (open(*piece)) {
      return cat(piece->text(), " lasts to the end of the run, and a Step has none; give cosine(", piece->value, ", {",
                 piece->end != 0 ? cat(".end = ", piece->end, ", ") : "", ".over = 10000_updates})");
    }
    return cat(piece->text(), " counts in ", unit_name(piece->length.unit()),
               "s, and a Step knows updates only; give its length in updates, for example 500_updates");
  }
  return {};
}

void check_resolved(const std::string& field, const Schedule& schedule) {
  if (schedule.resolved()) return;
  throw Error(ErrorCode::schedule, field, why_unresolved(schedule));
}

}  // namespace optim
}  // namespace brisk

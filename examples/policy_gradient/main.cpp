// Reinforcement learning: eight threads act in a simulation while the main thread learns from what they saw (proximal
// policy optimisation, Schulman et al. 2017) and publishes the policy to them. The task is a pole on a cart (Barto,
// Sutton and Anderson 1983). Ends with 1 unless the pole stays up for 195 of 200 steps, on average.
#include <brisk/brisk.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <mutex>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

using namespace brisk;

namespace {

constexpr int kActors = 8;
constexpr int kSegment = 64;      // steps that an actor plays before it delivers them
constexpr int kSegments = 16;     // of a rollout
constexpr int kBatch = 256;       // transitions of an update
constexpr int kEpochs = 4;        // passes over a rollout
constexpr float kReward = 0.05f;  // for each step that the pole stays up
constexpr int kMostSteps = 200;   // of an episode

struct CartPole {
  std::array<float, 4> state{};  // cart's position (m) and speed, pole's angle (rad) and speed
  int steps = 0;

  void reset(std::mt19937& random) {
    std::uniform_real_distribution<float> start(-0.05f, 0.05f);
    for (float& value : state) value = start(random);
    steps = 0;
  }
  bool fallen() const { return std::fabs(state[0]) > 2.4f || std::fabs(state[2]) > 0.2095f; }
  /// Pushes right (1) or left (0) for 0.02 s.
  void push(int64_t action) {
    constexpr float kGravity = 9.8f, kPole = 0.1f, kMass = 1.1f, kHalfLength = 0.5f, kForce = 10, kSeconds = 0.02f;
    auto& [x, speed, angle, turn] = state;
    const float sine = std::sin(angle), cosine = std::cos(angle);
    const float push = ((action == 1 ? kForce : -kForce) + kPole * kHalfLength * turn * turn * sine) / kMass;
    const float spin = (kGravity * sine - cosine * push) / (kHalfLength * (4.0f / 3 - kPole * cosine * cosine / kMass));
    x += kSeconds * speed;
    speed += kSeconds * (push - kPole * kHalfLength * spin * cosine / kMass);
    angle += kSeconds * turn;
    turn += kSeconds * spin;
    ++steps;
  }
};

/// What an actor saw: one row a step.
struct Segment {
  std::vector<float> states, old_log_p, advantages, returns;
  std::vector<int64_t> actions;
  std::vector<int> episodes;  // lengths of those that ended
};

/// Actors put segments in, the learner takes them out; actors wait while it is full.
class Queue {
 public:
  void put(Segment segment) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return closed_ || segments_.size() < kSegments; });
    if (!closed_) segments_.push_back(std::move(segment));
    changed_.notify_all();
  }
  Segment take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !segments_.empty(); });
    Segment segment = std::move(segments_.front());
    segments_.pop_front();
    changed_.notify_all();
    return segment;
  }
  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }
  bool closed() {
    const std::lock_guard lock(mutex_);
    return closed_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Segment> segments_;
  bool closed_ = false;
};

Vars actor_critic(const Vars& in) {
  const Var h = tanh(linear(tanh(linear(in["state"], 64)), 64));
  return {{"logits", linear(h, 2, {.name = "actor"})}, {"value", linear(h, 1, {.name = "critic"})}};
}

struct Opinion {
  std::array<float, 2> logits{};
  float value = 0;
};

Opinion ask(const Predictor& act, const std::array<float, 4>& state) {
  Opinion opinion;
  act.run({{"state", view(state, {1, 4})}},
          {{"logits", view(opinion.logits, {1, 2})}, {"value", view(&opinion.value, {1, 1})}});
  return opinion;
}

/// log of the probability of going left (0) and right (1).
std::array<float, 2> log_probabilities(const Opinion& opinion) {
  const float d = opinion.logits[1] - opinion.logits[0];
  return {-std::log1p(std::exp(d)), -std::log1p(std::exp(-d))};
}

/// What one step was worth. An episode ends when the pole falls, and is only cut off after 200 steps: the value of what
/// would have come counts then.
struct Worth {
  float value = 0;   ///< the critic's opinion before the step
  float beyond = 0;  ///< and after it
  bool ended = false;
};

/// Advantages by generalised estimation (Schulman et al. 2016) with discount 0.99 and lambda 0.95.
void judge(Segment& segment, const std::vector<Worth>& steps) {
  constexpr float kDiscount = 0.99f, kLambda = 0.95f;
  segment.advantages.assign(steps.size(), 0);
  segment.returns.assign(steps.size(), 0);
  float advantage = 0;
  for (size_t i = steps.size(); i-- > 0;) {
    const Worth& step = steps[i];
    advantage = kReward + kDiscount * step.beyond - step.value + (step.ended ? 0 : kDiscount * kLambda * advantage);
    segment.advantages[i] = advantage;
    segment.returns[i] = advantage + step.value;
  }
}

void play(const Predictor& act, Queue& queue, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> draw(0, 1);
  CartPole game;
  game.reset(random);
  while (!queue.closed()) {
    Segment segment;
    std::vector<Worth> steps;
    Opinion opinion = ask(act, game.state);
    for (int i = 0; i < kSegment; ++i) {
      const std::array<float, 2> log_p = log_probabilities(opinion);
      const int64_t action = draw(random) < std::exp(log_p[1]) ? 1 : 0;
      segment.states.insert(segment.states.end(), game.state.begin(), game.state.end());
      segment.actions.push_back(action);
      segment.old_log_p.push_back(log_p[static_cast<size_t>(action)]);
      const float value = opinion.value;
      game.push(action);
      opinion = ask(act, game.state);
      const bool fallen = game.fallen(), ended = fallen || game.steps >= kMostSteps;
      steps.push_back({value, fallen ? 0 : opinion.value, ended});
      if (!ended) continue;
      segment.episodes.push_back(game.steps);
      game.reset(random);
      opinion = ask(act, game.state);
    }
    judge(segment, steps);
    queue.put(std::move(segment));
  }
}

template <class T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// Mean 0 and deviation 1.
void standardize(std::vector<float>& values) {
  const float n = static_cast<float>(values.size());
  const float mean = std::accumulate(values.begin(), values.end(), 0.0f) / n;
  float square = 0;
  for (const float value : values) square += (value - mean) * (value - mean) / n;
  for (float& value : values) value = (value - mean) / (std::sqrt(square) + 1e-6f);
}

}  // namespace

int main() {
  Model policy(actor_critic, Inputs{{"state", {4}}});
  Predictor act(policy, {.batches = {1}, .concurrency = kActors});
  Step learn(
      [&](const Vars& in) {
        const Vars out = policy({{"state", in["state"]}});
        const Var log_p = log_softmax(out["logits"]);
        const Var ratio = exp(gather(log_p, in["action"]) - in["old_log_p"]);
        const Var gain = minimum(ratio * in["advantage"], clamp(ratio, 0.8, 1.2) * in["advantage"]);
        const Var entropy = -reduce_sum(exp(log_p) * log_p, {.axes = {1}});
        return sample_mean(-gain, {.name = "policy"}) + 0.5 * mse(out["value"], in["return"], {.name = "value"}) -
               0.01 * sample_mean(entropy, {.name = "entropy"});
      },
      {{"state", {4}}, {"action", {}, DType::i64}, {"old_log_p", {}}, {"advantage", {}}, {"return", {1}}},
      adam({.learning_rate = 1e-3}), {.batch = kBatch, .clip_norm = 0.5, .update = {&policy}});

  Queue queue;
  std::vector<std::thread> actors;
  for (unsigned i = 0; i < kActors; ++i) actors.emplace_back([&, i] { play(act, queue, i + 1); });
  std::deque<int> recent;  // lengths of the last 50 episodes
  double average = 0;
  for (int rollout = 1; rollout <= 300 && (recent.size() < 50 || average < 195); ++rollout) {
    Segment all;
    for (int i = 0; i < kSegments; ++i) {
      const Segment segment = queue.take();
      append(all.states, segment.states);
      append(all.actions, segment.actions);
      append(all.old_log_p, segment.old_log_p);
      append(all.advantages, segment.advantages);
      append(all.returns, segment.returns);
      for (const int length : segment.episodes) recent.push_back(length);
      while (recent.size() > 50) recent.pop_front();
    }
    standardize(all.advantages);
    const int64_t n = std::ssize(all.actions);
    const ConstView state = view(all.states, {n, 4}), action = view(all.actions, {n}), old = view(all.old_log_p, {n}),
                    advantage = view(all.advantages, {n}), target = view(all.returns, {n, 1});
    for (int epoch = 0; epoch < kEpochs; ++epoch) {
      for (int64_t i = 0; i < n; i += kBatch) {
        const int64_t rows = std::min<int64_t>(kBatch, n - i);
        learn.run({{"state", state.rows(i, rows)},
                   {"action", action.rows(i, rows)},
                   {"old_log_p", old.rows(i, rows)},
                   {"advantage", advantage.rows(i, rows)},
                   {"return", target.rows(i, rows)}});
      }
    }
    act.publish(policy);  // actors see it at their next call: whole, never torn
    average =
        std::accumulate(recent.begin(), recent.end(), 0.0) / static_cast<double>(std::max<size_t>(recent.size(), 1));
    if (rollout % 10 == 0) {
      std::printf("rollout %d, %lld updates: episodes of %.0f steps, loss %.3f\n", rollout,
                  static_cast<long long>(learn.clock().updates), average, learn.read().loss);
    }
  }
  queue.close();
  for (std::thread& actor : actors) actor.join();
  const PredictorStatistics calls = act.statistics();
  std::printf("the pole stays up for %.0f steps; policy version %lld; %lld decisions, median %.1f us, p99 %.1f us\n",
              average, static_cast<long long>(act.version()), static_cast<long long>(calls.count), calls.p50_us,
              calls.p99_us);
  return average >= 195 ? 0 : 1;
}

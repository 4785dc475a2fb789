// Stories of inference: a predictor in the program's threads, and one that follows a policy while it learns.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "api/story_support.h"

namespace {

using namespace brisk;
using story::numbers;

TEST(InferenceStory, InsideTheProgram) {
  const story::File file("lenet.safetensors");
  save_weights(Model(story::lenet, {1, 28, 28}, {.seed = 9}), file.path());
  Model model(story::lenet, {1, 28, 28});
  load_weights(model, file.path());
  const Predictor predictor(model,
                            {.batches = {1, 8, 64}, .concurrency = 8, .threads = 1});  // all memory is taken here
  EXPECT_EQ(predictor.batches(), (std::vector<int64_t>{64, 8, 1}));

  const int64_t n = 77;  // 64 + 8 + 5 x 1, never padded
  const std::vector<float> many = numbers(n * 784);
  std::vector<float> out(static_cast<size_t>(n * 10));
  predictor.run(view(many, {n, 1, 28, 28}), view(out, {n, 10}));
  std::atomic<int> right{0};
  {
    std::vector<std::jthread> threads;  // any of the program's threads, at once
    for (int64_t t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        const std::vector<float> pixels(many.begin() + t * 784, many.begin() + (t + 1) * 784);
        std::array<float, 10> logits;
        predictor.run(view(pixels, {1, 1, 28, 28}), view(logits, {1, 10}));  // const, no lock held while computing
        bool same = true;
        for (size_t i = 0; i < 10; ++i)
          same = same && std::abs(logits[i] - out[static_cast<size_t>(t) * 10 + i]) < 1e-5f;
        right += same ? 1 : 0;
      });
  }
  EXPECT_EQ(right, 8);
  const PredictorStatistics statistics = predictor.statistics();
  EXPECT_EQ(statistics.count, 9);
  EXPECT_GT(statistics.p50_us, 0);
  EXPECT_LE(statistics.p50_us, statistics.p99_us);
}

TEST(InferenceStory, ThePlanBeforeAnythingIsAllocated) {
  Model model(story::lenet, {1, 28, 28});
  Step step(model, cross_entropy(), sgd({.learning_rate = 0.1}), {.batch = 256});
  const Plan plan = step.plan();  // a value
  EXPECT_GT(plan.bytes().total, plan.bytes().activations);
  EXPECT_TRUE(story::contains(plan.explain(), "conv2d 'conv1'")) << plan.explain();
  EXPECT_EQ(plan.dot().rfind("digraph", 0), 0u);
  const int64_t most = step.largest_batch({.budget_bytes = 60'000'000});
  EXPECT_GT(most, 1);
  EXPECT_LE(step.plan(most).bytes().total, 60'000'000);
  EXPECT_GT(step.plan(most + 1).bytes().total, 60'000'000);
  step.prepare();  // allocates exactly plan.bytes()
}

Vars actor_critic(const Vars& in) {
  Var h = tanh(linear(tanh(linear(in["state"], 64)), 64));
  return {{"logits", linear(h, 4, {.name = "actor"})}, {"value", linear(h, 1, {.name = "critic"})}};
}

struct Transition {
  std::vector<float> state;
  int64_t action;
  float old_log_p, advantage, ret;
};

/// The program's own queue: waits while full, and while empty.
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t most) : most_(most) {}
  void put(Transition t, std::stop_token end) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait(lock, end, [&] { return items_.size() < most_; })) return;
    items_.push_back(std::move(t));
    changed_.notify_all();
  }
  std::vector<Transition> take(size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return items_.size() >= count; });
    std::vector<Transition> out(items_.begin(), items_.begin() + static_cast<int64_t>(count));
    items_.erase(items_.begin(), items_.begin() + static_cast<int64_t>(count));
    changed_.notify_all();
    return out;
  }

 private:
  const size_t most_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::vector<Transition> items_;
};

void play(const Predictor& act, BoundedQueue& queue, int seed, std::stop_token end) {
  for (int64_t t = 0; !end.stop_requested(); ++t) {
    std::vector<float> state(84);
    for (size_t i = 0; i < 84; ++i) state[i] = std::sin(static_cast<float>(seed * 100 + t) + static_cast<float>(i));
    std::array<float, 4> logits;
    float value = 0;
    act.run({{"state", view(state, {1, 84})}}, {{"logits", view(logits, {1, 4})}, {"value", view(&value, {1, 1})}});
    float sum = 0;
    for (const float x : logits) sum += std::exp(x);
    const int64_t action = (seed + t) % 4;
    const float reward = action == (state[0] > 0 ? 1 : 2) ? 1.0f : 0.0f;
    queue.put({state, action, logits[static_cast<size_t>(action)] - std::log(sum), reward - value, reward}, end);
  }
}

/// Rows of one update.
struct Rollout {
  explicit Rollout(const std::vector<Transition>& transitions) {
    for (const Transition& t : transitions) {
      state.insert(state.end(), t.state.begin(), t.state.end());
      action.push_back(t.action);
      old_log_p.push_back(t.old_log_p);
      advantage.push_back(t.advantage);
      ret.push_back(t.ret);
    }
  }
  std::vector<float> state, old_log_p, advantage, ret;
  std::vector<int64_t> action;
};

TEST(InferenceStory, ActLearnAndPublishAtTheSameTime) {
  Model policy(actor_critic, {{"state", {84}}});
  Predictor act(policy, {.batches = {1}, .concurrency = 8});
  Step learn(
      [&](const Vars& in) {
        Vars out = policy({{"state", in["state"]}});
        Var ratio = exp(gather(log_softmax(out["logits"]), in["action"]) - in["old_log_p"]);
        Var gain = minimum(ratio * in["advantage"], clamp(ratio, 0.8, 1.2) * in["advantage"]);
        return sample_mean(-gain, {.name = "policy"}) + 0.5 * mse(out["value"], in["return"], {.name = "value"});
      },
      {{"state", {84}}, {"action", {}, DType::i64}, {"old_log_p", {}}, {"advantage", {}}, {"return", {1}}},
      adam({.learning_rate = 3e-4}), {.batch = 256, .clip_norm = 0.5, .update = {&policy}});
  BoundedQueue queue(4096);  // the program's own
  std::vector<std::jthread> actors;
  for (int i = 0; i < 8; ++i) actors.emplace_back([&, i](std::stop_token end) { play(act, queue, i, end); });
  double first = 0, last = 0;
  for (int64_t u = 0; u < 60; ++u) {
    const Rollout b(queue.take(256));
    learn.run({{"state", view(b.state, {256, 84})},
               {"action", view(b.action, {256})},
               {"old_log_p", view(b.old_log_p, {256})},
               {"advantage", view(b.advantage, {256})},
               {"return", view(b.ret, {256, 1})}});
    if (u % 10 == 9) {
      act.publish(policy);  // actors see it at their next call: whole, never torn
      last = learn.read().terms[1].value();
      if (first == 0) first = last;
    }
  }
  for (std::jthread& actor : actors) actor.request_stop();
  actors.clear();
  EXPECT_EQ(act.version(), 6);  // counts publications
  EXPECT_EQ(learn.clock().updates, 60);
  EXPECT_LT(last, first);  // the critic learns
  EXPECT_GE(act.statistics().count, 60 * 256);
}

}  // namespace

// Optimizer factories and parameter rules: each field's range, groups, globs.
#include "brisk/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "optim/glob.h"
#include "optim/rules.h"
#include "support/error_text.h"

namespace brisk {
namespace {

using test::error_text;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Optimizer, FactoriesFillTheValue) {
  const Optimizer a = sgd({.dampening = 0.5, .learning_rate = 0.1, .momentum = 0.9, .weight_decay = 5e-4});
  EXPECT_EQ(a.kind, Optimizer::Kind::sgd);
  EXPECT_EQ(a.beta1, 0.9);
  EXPECT_EQ(a.dampening, 0.5);
  EXPECT_EQ(a.weight_decay, 5e-4);
  EXPECT_EQ(a.moments(), 1);
  EXPECT_EQ(sgd({.learning_rate = 0.1}).moments(), 0);
  const Optimizer b = adamw({.betas = {0.5, 0.99}});
  EXPECT_EQ(b.name, "adamw");
  EXPECT_TRUE(b.decoupled);
  EXPECT_EQ(b.beta1, 0.5);
  EXPECT_EQ(b.beta2, 0.99);
  EXPECT_EQ(b.weight_decay, 0.01);
  EXPECT_EQ(b.learning_rate.at({}), 1e-3);
  EXPECT_EQ(b.moments(), 2);
  EXPECT_FALSE(adam().decoupled);
}

TEST(Optimizer, EveryFieldIsChecked) {
  EXPECT_EQ(error_text([] { sgd({.learning_rate = 0.1, .momentum = 1.5}); }),
            "Error [option] sgd.momentum = 1.5: must be in [0, 1)");
  EXPECT_NE(error_text([] { sgd({}); }).find("Error [option] sgd.learning_rate: missing; "), std::string::npos);
  EXPECT_NE(error_text([] { sgd({.learning_rate = kNan}); }).find("sgd.learning_rate = nan"), std::string::npos);
  EXPECT_NE(error_text([] { sgd({.learning_rate = kInfinity}); }).find("sgd.learning_rate = inf"), std::string::npos);
  EXPECT_NE(error_text([] { sgd({.learning_rate = -0.1}); }).find("sgd.learning_rate = -0.1"), std::string::npos);
  EXPECT_NE(error_text([] { sgd({.learning_rate = 1e300}); }).find("1e+300"), std::string::npos);
  EXPECT_NE(error_text([] { sgd({.learning_rate = warmup(5_updates)}); }).find("sgd.learning_rate"), std::string::npos);
  EXPECT_NE(error_text([] { sgd({.learning_rate = warmup(5_updates).then(kNan)}); }).find("nan"), std::string::npos);
  EXPECT_NE(error_text([] { sgd({.learning_rate = 0.1, .momentum = kNan}); }).find("momentum = nan"),
            std::string::npos);
  EXPECT_NE(error_text([] { sgd({.dampening = 2, .learning_rate = 0.1}); }).find("dampening = 2"), std::string::npos);
  EXPECT_NE(error_text([] { sgd({.learning_rate = 0.1, .weight_decay = -1}); }).find("weight_decay = -1"),
            std::string::npos);
  EXPECT_NE(error_text([] { sgd({.learning_rate = 0.1, .weight_decay = kInfinity}); }).find("weight_decay = inf"),
            std::string::npos);
  EXPECT_NE(error_text([] { sgd({.learning_rate = 0.1, .nesterov = true}); }).find("needs momentum > 0"),
            std::string::npos);
  EXPECT_NE(error_text([] { adam({.betas = {0.9}}); }).find("adam.betas: has 1 numbers"), std::string::npos);
  EXPECT_NE(error_text([] { adam({.betas = {0.9, 1}}); }).find("adam.betas[1] = 1"), std::string::npos);
  EXPECT_NE(error_text([] { adamw({.epsilon = 0}); }).find("adamw.epsilon = 0"), std::string::npos);
  EXPECT_NE(error_text([] { adamw({.epsilon = kNan}); }).find("adamw.epsilon = nan"), std::string::npos);
  EXPECT_NE(error_text([] { adamw({.groups = {{.learning_rate_scale = 2}}}); }).find("adamw.groups[0].match: missing"),
            std::string::npos);
  EXPECT_NE(
      error_text([] { adamw({.groups = {{.match = "*", .weight_decay = kNan}}}); }).find("groups[0].weight_decay"),
      std::string::npos);
}

TEST(Rules, DecayActsOnTwoOrMoreDimensions) {
  const std::vector<optim::NamedParameter> parameters = {
      {"conv1.weight", 4, true}, {"conv1.bias", 1, true}, {"fc1.weight", 2, true}, {"b", 2, false}};
  const auto rules = optim::resolve_rules(adamw({.weight_decay = 0.05}), parameters);
  ASSERT_EQ(rules.size(), 4U);
  EXPECT_EQ(rules[0], std::make_pair(0.05, 1.0));
  EXPECT_EQ(rules[1], std::make_pair(0.0, 1.0));
  EXPECT_EQ(rules[2], std::make_pair(0.05, 1.0));
  EXPECT_EQ(rules[3], std::make_pair(0.0, 1.0));
}

TEST(Rules, FirstGroupThatMatchesWins) {
  const std::vector<optim::NamedParameter> parameters = {
      {"layer2.0.conv1.weight", 4, true}, {"fc.weight", 2, true}, {"fc.bias", 1, true}};
  const Optimizer optimizer = adamw({.groups = {{.learning_rate_scale = 10, .match = "fc.*"},
                                                {.match = "layer2.*", .weight_decay = 0},
                                                {.match = "*", .weight_decay = 0.5}},
                                     .weight_decay = 0.1});
  const auto rules = optim::resolve_rules(optimizer, parameters);
  EXPECT_EQ(rules[0], std::make_pair(0.0, 1.0));
  EXPECT_EQ(rules[1], std::make_pair(0.1, 10.0));
  EXPECT_EQ(rules[2], std::make_pair(0.0, 10.0));
  const auto all =
      optim::resolve_rules(sgd({.groups = {{.match = "*", .weight_decay = 5e-4}}, .learning_rate = 0.1}), parameters);
  for (const auto& rule : all) EXPECT_EQ(rule.first, 5e-4);
}

TEST(Rules, PatternThatMatchesNothingIsAnError) {
  const std::vector<optim::NamedParameter> parameters = {{"fc1.weight", 2, true}, {"fc1.bias", 1, true}};
  EXPECT_EQ(error_text(
                [&] { optim::resolve_rules(sgd({.groups = {{.match = "fc9.*"}}, .learning_rate = 0.1}), parameters); }),
            "Error [option] sgd.groups[0].match = \"fc9.*\": matches no parameter; there are fc1.weight, fc1.bias");
}

TEST(Glob, StarsAndQuestionMarks) {
  EXPECT_TRUE(optim::glob_matches("*", ""));
  EXPECT_TRUE(optim::glob_matches("fc.*", "fc.weight"));
  EXPECT_FALSE(optim::glob_matches("fc.*", "fc1.weight"));
  EXPECT_TRUE(optim::glob_matches("fc?.*", "fc1.weight"));
  EXPECT_TRUE(optim::glob_matches("*.bias", "layer1.0.bn1.bias"));
  EXPECT_FALSE(optim::glob_matches("*.bias", "layer1.0.bn1.bias2"));
  EXPECT_TRUE(optim::glob_matches("a*b*c", "aXbYbZc"));
  EXPECT_FALSE(optim::glob_matches("a*b*c", "aXbYbZ"));
  EXPECT_FALSE(optim::glob_matches("", "a"));
  EXPECT_FALSE(optim::glob_matches("a?", "a"));
  EXPECT_TRUE(optim::glob_matches("[x].+", "[x].+"));
}

}  // namespace
}  // namespace brisk

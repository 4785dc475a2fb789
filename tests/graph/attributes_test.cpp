// Attributes: order, kinds, text.
#include "graph/attributes.h"

#include <gtest/gtest.h>

#include "graph/examples.h"
#include "support/own_ops.h"

namespace brisk::graph {
namespace {

using test::error_of;

Attributes sample() {
  return {{"stride", std::vector<int64_t>{1, 2}},
          {"groups", 3},
          {"activation", std::string("relu")},
          {"flag", true},
          {"rate", 0.1},
          {"weights", std::vector<double>{1, 0.25}},
          {"empty", std::vector<double>{}},
          {"factor", -1.5e-300}};
}

TEST(Attributes, EachKindComesBack) {
  const Attributes a = sample();
  EXPECT_EQ(a.integers("stride"), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(a.integer("groups"), 3);
  EXPECT_EQ(a.text("activation"), "relu");
  EXPECT_TRUE(a.flag("flag"));
  EXPECT_EQ(a.real("rate"), 0.1);
  EXPECT_EQ(a.reals("weights"), (std::vector<double>{1, 0.25}));
}

TEST(Attributes, KindsFollowTheTable) {
  // Kind numbers the alternatives of Attribute: the op table compares them.
  EXPECT_EQ(Attribute(true).index(), static_cast<size_t>(Kind::flag));
  EXPECT_EQ(Attribute(int64_t{1}).index(), static_cast<size_t>(Kind::integer));
  EXPECT_EQ(Attribute(1.0).index(), static_cast<size_t>(Kind::real));
  EXPECT_EQ(Attribute(std::string()).index(), static_cast<size_t>(Kind::text));
  EXPECT_EQ(Attribute(std::vector<int64_t>()).index(), static_cast<size_t>(Kind::integers));
  EXPECT_EQ(Attribute(std::vector<double>()).index(), static_cast<size_t>(Kind::reals));
  EXPECT_EQ(Attribute(Object()).index(), static_cast<size_t>(Kind::object));
}

TEST(Attributes, SortedByNameWhateverTheOrder) {
  Attributes a;
  a.set("b", 1);
  a.set("a", 2);
  a.set("c", 3);
  a.set("a", 4);
  EXPECT_EQ(a.print(), "{a = 4, b = 1, c = 3}");
  EXPECT_EQ(a, (Attributes{{"c", 3}, {"b", 1}, {"a", 4}}));
  EXPECT_FALSE(a == (Attributes{{"c", 3}, {"b", 1}, {"a", 5}}));
}

TEST(Attributes, TextIsExact) {
  EXPECT_EQ(sample().print(),
            "{activation = relu, empty = [], factor = -1.5e-300, flag = true, groups = 3, rate = 0.1, stride = [1, 2], "
            "weights = [1, 0.25]}");
  EXPECT_EQ((Attributes{{"x", 0.1 + 0.2}}).print(), "{x = 0.30000000000000004}");
  EXPECT_EQ(Attributes().print(), "");
}

TEST(Attributes, ObjectsAreEqualWhenTheyAreTheSame) {
  const Attributes a = {{"op", Object(std::make_shared<brisk::test::LearntSwish>())}};
  const Attributes same = a, other = {{"op", Object(std::make_shared<brisk::test::LearntSwish>())}};
  EXPECT_EQ(a, same);
  EXPECT_FALSE(a == other);
  EXPECT_EQ(a.print(), "{op = learnt_swish}");
  EXPECT_EQ(a.object("op").name(), "learnt_swish");
}

TEST(Attributes, MissingAndOtherKindAreNamed) {
  const Attributes a = sample();
  EXPECT_EQ(a.find("strid"), nullptr);
  EXPECT_FALSE(a.has("strides"));
  EXPECT_NE(error_of([&] { a.integer("strid"); }).find("Error [state] attribute 'strid': is missing"),
            std::string::npos);
  EXPECT_NE(error_of([&] { a.real("groups"); }).find("'groups': is of another kind"), std::string::npos);
}

}  // namespace
}  // namespace brisk::graph

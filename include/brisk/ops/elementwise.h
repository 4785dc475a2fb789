// brisk/ops/elementwise.h: arithmetic and functions of each element.
#pragma once

#include "brisk/model.h"

namespace brisk {

/// max(x, 0); NaN stays NaN.
BRISK_EXPORT Var relu(Var x, Where where = Where::here());
BRISK_EXPORT Var tanh(Var x, Where where = Where::here());
/// 1 / (1 + exp(-x))
BRISK_EXPORT Var sigmoid(Var x, Where where = Where::here());
BRISK_EXPORT Var exp(Var x, Where where = Where::here());
/// Natural logarithm: -inf at 0, NaN below.
BRISK_EXPORT Var log(Var x, Where where = Where::here());

/// Element by element, f32. The dimensions of one sample (without N) broadcast as in NumPy: aligned from the right, a
/// size of 1 or a missing dimension repeats; a value without N (a parameter) repeats over the samples. Throws Error
/// [shape] that names both operands and where they were made.
BRISK_EXPORT Var operator+(Var a, Var b);
BRISK_EXPORT Var operator-(Var a, Var b);
BRISK_EXPORT Var operator*(Var a, Var b);
BRISK_EXPORT Var operator/(Var a, Var b);
BRISK_EXPORT Var operator-(Var x);

/// With the same number for all elements, an f32. Throws Error [option] for one that is not finite and division by 0.
BRISK_EXPORT Var operator+(Var x, double value);
BRISK_EXPORT Var operator-(Var x, double value);
BRISK_EXPORT Var operator*(Var x, double value);
BRISK_EXPORT Var operator/(Var x, double value);
BRISK_EXPORT Var operator+(double value, Var x);
BRISK_EXPORT Var operator-(double value, Var x);
BRISK_EXPORT Var operator*(double value, Var x);
BRISK_EXPORT Var operator/(double value, Var x);

}  // namespace brisk

// brisk/ops/elementwise.h: arithmetic, functions, comparisons and element types of each element.
#pragma once

#include "brisk/model.h"

namespace brisk {

// Functions of one f32 value x of any shape give a value of the same shape and throw Error [shape] for other element
// types, which cast() converts. NaN stays NaN in all of them, and so it does in their gradients.

/// max(x, 0)
BRISK_EXPORT Var relu(Var x, Where where = Where::here());
/// x where x > 0, else slope x. slope: finite, at least 0, or Error [option].
BRISK_EXPORT Var leaky_relu(Var x, double slope = 0.01, Where where = Where::here());
/// x where x > 0, else alpha (e^x - 1). alpha: finite, at least 0, or Error [option].
BRISK_EXPORT Var elu(Var x, double alpha = 1, Where where = Where::here());
/// x / (1 + exp(-x)), also called swish; 0 at -infinity.
BRISK_EXPORT Var silu(Var x, Where where = Where::here());
/// log(1 + exp(x)): PyTorch's with beta 1, whose threshold of 20 an f32 cannot show.
BRISK_EXPORT Var softplus(Var x, Where where = Where::here());

/// erf: x Phi(x), Phi the normal distribution's cumulative function. tanh: 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715
/// x^3))), up to 5e-4 from it. Hendrycks and Gimpel: "Gaussian Error Linear Units", 2016. Both 0 at -infinity.
enum class Gelu : uint8_t { erf, tanh };
BRISK_EXPORT Var gelu(Var x, Gelu form = Gelu::erf, Where where = Where::here());

BRISK_EXPORT Var tanh(Var x, Where where = Where::here());
/// 1 / (1 + exp(-x))
BRISK_EXPORT Var sigmoid(Var x, Where where = Where::here());
BRISK_EXPORT Var exp(Var x, Where where = Where::here());
/// Natural logarithm: -inf at 0, NaN below.
BRISK_EXPORT Var log(Var x, Where where = Where::here());
/// NaN below 0. Its gradient at 0 is infinite.
BRISK_EXPORT Var sqrt(Var x, Where where = Where::here());
/// |x|. Its gradient at 0 is 0.
BRISK_EXPORT Var abs(Var x, Where where = Where::here());
/// x^exponent as C's pow: of a negative x it is NaN unless the exponent is an integer; x^0 is 1 for all x, with the
/// gradient 0. exponent: finite as an f32, or Error [option].
BRISK_EXPORT Var pow(Var x, double exponent, Where where = Where::here());
/// x limited to [low, high], either of which may be infinite. The gradient passes where low < x < high (PyTorch's
/// rule, so that clamp(x, 0, 6) is its relu6). Throws Error [option] when low is above high or one of them NaN.
BRISK_EXPORT Var clamp(Var x, double low, double high, Where where = Where::here());

/// Element by element, f32. The dimensions of one sample (without N) broadcast as in NumPy: aligned from the right, a
/// size of 1 or a missing dimension repeats; a value without N (a parameter) repeats over the samples. Throws Error
/// [shape] that names all operands and where they were made.
BRISK_EXPORT Var operator+(Var a, Var b);
BRISK_EXPORT Var operator-(Var a, Var b);
BRISK_EXPORT Var operator*(Var a, Var b);
BRISK_EXPORT Var operator/(Var a, Var b);
BRISK_EXPORT Var operator-(Var x);
/// The smaller or larger of two, broadcast; NaN where either is. Two equal ones get half of the gradient each.
BRISK_EXPORT Var minimum(Var a, Var b, Where where = Where::here());
BRISK_EXPORT Var maximum(Var a, Var b, Where where = Where::here());

/// With the same number for all elements, an f32. Throws Error [option] for one that is not finite and division by 0.
BRISK_EXPORT Var operator+(Var x, double value);
BRISK_EXPORT Var operator-(Var x, double value);
BRISK_EXPORT Var operator*(Var x, double value);
BRISK_EXPORT Var operator/(Var x, double value);
BRISK_EXPORT Var operator+(double value, Var x);
BRISK_EXPORT Var operator-(double value, Var x);
BRISK_EXPORT Var operator*(double value, Var x);
BRISK_EXPORT Var operator/(double value, Var x);

/// 1 where the relation holds, else 0, as f32; broadcast as arithmetic does. NaN is unequal to everything and neither
/// less nor greater. No gradient passes. Equality is a function, since == tells whether two objects are the same.
BRISK_EXPORT Var operator<(Var a, Var b);
BRISK_EXPORT Var operator<=(Var a, Var b);
BRISK_EXPORT Var operator>(Var a, Var b);
BRISK_EXPORT Var operator>=(Var a, Var b);
BRISK_EXPORT Var operator<(Var x, double value);
BRISK_EXPORT Var operator<=(Var x, double value);
BRISK_EXPORT Var operator>(Var x, double value);
BRISK_EXPORT Var operator>=(Var x, double value);
BRISK_EXPORT Var operator<(double value, Var x);
BRISK_EXPORT Var operator<=(double value, Var x);
BRISK_EXPORT Var operator>(double value, Var x);
BRISK_EXPORT Var operator>=(double value, Var x);
BRISK_EXPORT Var equal(Var a, Var b, Where where = Where::here());
BRISK_EXPORT Var equal(Var x, double value, Where where = Where::here());
BRISK_EXPORT Var not_equal(Var a, Var b, Where where = Where::here());
BRISK_EXPORT Var not_equal(Var x, double value, Where where = Where::here());

/// a where the condition is not 0 (so also where it is NaN), else b; all three f32, broadcast as arithmetic does. What
/// is not chosen gets a gradient of exactly 0, whatever its value; the condition gets none.
BRISK_EXPORT Var where(Var condition, Var a, Var b, Where at = Where::here());

/// x with another element type: f32, i32, i64 or u8; the same type gives x itself. From f32: cut towards 0 and limited
/// to what the type holds, NaN to 0; between integers: the low bits, as C++ converts. A gradient passes only where
/// nothing is converted.
BRISK_EXPORT Var cast(Var x, DType dtype, Where where = Where::here());

/// x, whose gradient ends here: nothing that it was made of is differentiated on its account.
BRISK_EXPORT Var stop_gradient(Var x, Where where = Where::here());

}  // namespace brisk

// Package sample chooses the next token from a model's logits. It knows sampling
// parameters, biases, vocabulary masks and random numbers. It knows no text, no model
// and no request: everything that a choice depends on is an argument of [Sampler.Token].
//
// # Definition
//
// A device that samples must choose the same tokens, so the choice is defined to
// the bit. Weights are integers: their sums do not depend on the order of the
// additions, and any number of threads may share the work.
//
// Logits are adjusted first, in float32. Every operation is rounded by itself; none are
// fused. A result beyond the finite range becomes the finite number of the largest
// magnitude with the same sign. For a token with the bias b that was chosen c times, and
// whose logit l is above -Inf, these steps apply in order:
//
//   - If b is -Inf, the token is forbidden, as by a mask. Otherwise l becomes l + b.
//   - If the repetition penalty r is neither 0 nor 1, and the token is in the prompt or
//     c > 0, l becomes l/r if l > 0, and l*r otherwise.
//   - If c > 0, l becomes l - f*c, where f is the frequency penalty and c is rounded to
//     float32, and then l - p, where p is the presence penalty.
//
// A token without an adjustment has b = 0 and c = 0 and is not in the prompt. The
// argument last counts as chosen once more. The model's logits must be finite or -Inf
// before any adjustment; log-probabilities are computed from them.
//
// Let V be the number of logits, l an adjusted logit, T the temperature, and
// S = 63 - bitlen(V), where bitlen is the number of bits of V without leading zeros
// (for V = 151,936 it is 18, and S = 45). Tokens are ordered by descending logit, and by
// ascending id among equal logits (0 and -0 are equal).
//
//  1. The allowed tokens are those whose mask bit is set, that no bias forbids and
//     whose logit is above -Inf. If T = 0, the first of them in order is chosen.
//  2. Top-k keeps the first k in order.
//  3. A token's weight is floor(2^S * e((l - m)/T)), where m is the largest allowed
//     logit and e the exponential below. The sum of all weights is below 2^63.
//  4. Typical keeps the tokens whose information is near its mean. For a token of
//     weight w > 0 let X = floor(2^20 * (m - l)/T), with the quotient in float64 and
//     negated as in the exponential. Let M = floor(2^20 * A / W), where A is the sum of
//     floor(w * X / 2^20) and W the sum of w over the tokens kept so far. Ordered by
//     ascending |X - M|, and by ascending id among equals, it keeps the shortest run of
//     tokens, from the first, whose weights sum to at least the exact product of the
//     parameter and W.
//  5. Top-p keeps the shortest run of tokens, from the first in order, whose
//     weights sum to at least the exact product of p and the sum of the weights
//     kept so far.
//  6. Min-p keeps the tokens whose weight is at least the exact product of the
//     parameter and the largest weight kept so far. That is 2^S, the first token's,
//     unless typical has removed it.
//  7. Let W be the sum of the kept weights, u 64 random bits, and
//     t = floor(u * W / 2^64), the upper half of a 128-bit product. The token chosen is
//     the first one, in order, at which the running sum of weights exceeds t.
//
// The 64 random bits are the words 1 (upper) and 0 (lower) of Philox4x32-10 with the
// seed as key and (position's lower word, position's upper word, choice, 0) as
// counter.
//
// The exponential is computed in float64. Every operation is rounded by itself; none are
// fused: x = (l-m)/T, y = x*log2(e), k = y-1/2 truncated towards 0,
// r = (x - k*hi) - k*lo, where hi+lo = ln 2 and hi has 32 bits. Then Taylor's
// polynomial of degree 12 is computed as even + r*odd, the even and the odd coefficients
// each by Horner's rule in r*r, and multiplied by 2^(k+S), which is exact.
// For y below -(S+1) the weight is 0.
//
// A token's information is -log(probability) = log(Z) - x, where Z is the sum of all
// e(x). Its mean is log(Z) minus the mean of x. The distance of a token's information
// from the mean is therefore that of x from its mean, without Z. X is below 2^26 if
// w > 0. Since w is at most 2^S * e(x) and X at most -2^20 * x, each term of A is below
// 2^S/e. So A, like W, stays below 2^63 for any vocabulary.
//
// A token less likely than the likeliest by a factor of 2^S or more has the weight 0
// and is never chosen. All other probabilities are exact to about 2^-S of the
// likeliest token's.
package sample

// Package sample chooses the next token from a model's logits. It knows sampling
// parameters, vocabulary masks and random numbers. It knows no text, no model and
// no request: whatever a choice depends on is an argument of [Sampler.Token].
//
// # Definition
//
// A device that samples must choose the same tokens, so the choice is defined to
// the bit. Weights are integers: their sums do not depend on the order of the
// additions, and any number of threads may share the work.
//
// Let V be the number of logits l, T the temperature, and S = 63 - bitlen(V), where
// bitlen is the number of bits of V without leading zeros (18 and so S = 45 for
// V = 151,936). Tokens are ordered by descending logit, and by ascending id among
// equal logits (0 and -0 are equal).
//
//  1. The allowed tokens are those whose mask bit is set and whose logit is above
//     -Inf. With T = 0 the first of them in order is the choice.
//  2. Top-k keeps the first k in order.
//  3. A token's weight is floor(2^S * e((l - m)/T)), m being the largest allowed
//     logit and e the exponential below. The sum of all weights is below 2^63.
//  4. Top-p keeps the shortest run of tokens, from the first in order, whose
//     weights sum to at least the exact product of p and the sum of the weights
//     kept so far.
//  5. Min-p keeps the tokens whose weight is at least the exact product of the
//     parameter and 2^S, the weight of the first token.
//  6. With W the sum of the kept weights and u 64 random bits, let
//     t = floor(u * W / 2^64), the upper half of a 128-bit product. The choice is
//     the first token, in order, at which the running sum of weights exceeds t.
//
// The 64 random bits are the words 1 (upper) and 0 (lower) of Philox4x32-10 with the
// seed as key and (position's lower word, position's upper word, choice, 0) as
// counter.
//
// The exponential is computed in float64, every operation rounded by itself, none
// fused: x = (l-m)/T, y = x*log2(e), k = y-1/2 cut towards 0,
// r = (x - k*hi) - k*lo, where hi+lo = ln 2 and hi has 32 bits, then Taylor's
// polynomial of degree 12 as even + r*odd, the even and the odd coefficients each by
// Horner's rule in r*r, and times 2^(k+S), which is exact.
// For y below -(S+1) the weight is 0.
//
// A token less likely than the likeliest by a factor of 2^S or more has the weight
// 0 and is never chosen; all other probabilities are exact to about 2^-S of the
// likeliest one's.
package sample

// Package sample chooses the next token from a model's logits. It knows sampling
// parameters, biases, vocabulary masks and random numbers. It knows no text, no model
// and no request: whatever a choice depends on is an argument of [Sampler.Token].
//
// # Definition
//
// A device that samples must choose the same tokens, so the choice is defined to
// the bit. Weights are integers: their sums do not depend on the order of the
// additions, and any number of threads may share the work.
//
// Logits are adjusted first, in float32, every operation rounded by itself, none
// fused; a result beyond the range of finite numbers becomes the number of the
// largest magnitude with its sign. A token of the bias b that was chosen c times, and
// whose logit l is above -Inf, goes through these in turn:
//
//   - It is forbidden where b is -Inf, as by a mask. Otherwise l becomes l + b.
//   - With a repetition penalty r that is neither 0 nor 1, and where the token is in
//     the prompt or c > 0, l becomes l/r where l > 0 and l*r otherwise.
//   - Where c > 0, l becomes l - f*c, f being the frequency penalty and c rounded to
//     float32, and then l - p, p being the presence penalty.
//
// A token without an adjustment has b = 0 and c = 0 and is not in the prompt. The token
// said to be the last one counts as chosen once more. The model's logits must be finite
// or -Inf before all this, and log-probabilities are theirs.
//
// Let V be the number of adjusted logits l, T the temperature, and S = 63 - bitlen(V), where
// bitlen is the number of bits of V without leading zeros (18 and so S = 45 for
// V = 151,936). Tokens are ordered by descending logit, and by ascending id among
// equal logits (0 and -0 are equal).
//
//  1. The allowed tokens are those whose mask bit is set, that no bias forbids and
//     whose logit is above -Inf. With T = 0 the first of them in order is the choice.
//  2. Top-k keeps the first k in order.
//  3. A token's weight is floor(2^S * e((l - m)/T)), m being the largest allowed
//     logit and e the exponential below. The sum of all weights is below 2^63.
//  4. Typical keeps the tokens whose information is near its mean. For a token of
//     weight w > 0 let X = floor(2^20 * (m - l)/T), the quotient in float64 and negated
//     as in the exponential, and let M be floor(2^20 * A / W), A being the sum of
//     floor(w * X / 2^20) and W that of w over the tokens kept so far. In the order of
//     ascending |X - M|, and of ascending id where these are equal, it keeps the
//     shortest run of tokens, from the first, whose weights sum to at least the exact
//     product of the parameter and W.
//  5. Top-p keeps the shortest run of tokens, from the first in order, whose
//     weights sum to at least the exact product of p and the sum of the weights
//     kept so far.
//  6. Min-p keeps the tokens whose weight is at least the exact product of the
//     parameter and the largest weight kept so far, which is 2^S, the first token's,
//     where typical has not dropped that.
//  7. With W the sum of the kept weights and u 64 random bits, let
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
// A token's information is -log(probability) = log(Z) - x, Z being the sum of all e(x),
// and its mean H is log(Z) less the mean of x: the distance between both is that of x
// from its mean, without Z. X is below 2^26 where w > 0, and since w is no more than
// 2^S * e(x) and X than -2^20 * x, each term of A is below 2^S/e: A stays below 2^63
// for any vocabulary, as W does.
//
// A token less likely than the likeliest by a factor of 2^S or more has the weight
// 0 and is never chosen; all other probabilities are exact to about 2^-S of the
// likeliest one's.
package sample

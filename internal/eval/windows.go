// Package eval measures how well a model predicts a text, and how far the predictions of two models
// are apart. It knows logits and token ids, and no models.
package eval

import "iter"

// A Window is a part of a text that a model reads in one sequence: the tokens from Begin up to End.
// Those from From on are scored, each by the logits of the token before it.
type Window struct{ Begin, From, End int }

// Windows cuts a text of n tokens into windows of size tokens that begin stride tokens apart, 1 <=
// stride < size. Each token but the first is scored in the first window that contains it. After the
// first window every scored token thus has at least size-stride tokens before it. Transformers'
// documentation calls this the sliding window, on its page about the perplexity of fixed-length
// models.
func Windows(n, size, stride int) iter.Seq[Window] {
	return func(yield func(Window) bool) {
		scored := 1 // the first token has no logits before it
		for begin := 0; scored < n; begin += stride {
			w := Window{Begin: begin, From: scored, End: min(n, begin+size)}
			if !yield(w) {
				return
			}
			scored = w.End
		}
	}
}

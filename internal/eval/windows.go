// Package eval measures how well a model predicts a text, and how far the predictions
// of two models are from each other. It knows logits and token ids, and no models.
package eval

import "iter"

// A Window is a part of a text that a model reads at one time: the tokens from Begin
// up to End. Those from From on are scored, each under what the window has before it.
type Window struct{ Begin, From, End int }

// Windows cut a text of n tokens into windows of size tokens that begin stride tokens
// after each other, 1 <= stride < size. Each token but the first is scored in the
// first window that has it, so that all after the first window have at least
// size-stride tokens before them. Transformers' documentation calls that the sliding
// window, in its page on the perplexity of models of fixed length.
func Windows(n, size, stride int) iter.Seq[Window] {
	return func(yield func(Window) bool) {
		scored := 1 // nothing comes before the first token
		for begin := 0; scored < n; begin += stride {
			w := Window{Begin: begin, From: scored, End: min(n, begin+size)}
			if !yield(w) {
				return
			}
			scored = w.End
		}
	}
}

package engine_test

import (
	"math"
	"slices"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// An expectation holds the results of a request according to a [reader].
type expected struct {
	outputs []uint64 // out of the prompt's tokens that are wanted
	damaged bool     // the prompt
	answers []answer
}

type answer struct {
	tokens  []int32
	outs    []uint64 // of the positions that they were chosen after
	logs    []float32
	stopped bool
	err     error // what ends it after tokens

}

// A rule is a request's mask function without its memory: it returns the allowed tokens after that
// many tokens, or an error.
type rule func(choice, n int, last int32) (open uint64, err error)

// expect computes the results of r alone.
func (m *hashModel) expect(r *engine.Request, rule rule) *expected {
	e := &expected{}
	read := newReader(m, len(r.Prompt))
	for i, id := range r.Prompt {
		read.read(id)
		if n := len(e.outputs); n < len(r.Outputs) && int(r.Outputs[n].Token) == i {
			e.outputs = append(e.outputs, read.out)
		}
	}
	e.damaged = read.damaged
	if r.Tokens == 0 || e.damaged {
		return e
	}
	for c := range max(1, r.Choices) {
		e.answers = append(e.answers, read.fork().answer(r, c, rule))
	}
	return e
}

// answer returns answer c to r, computed after the prompt.
func (m *reader) answer(r *engine.Request, c int, rule rule) (a answer) {
	var known adjusted
	for _, b := range r.Bias {
		known[b.Token].bias = b.Bias
	}
	for _, id := range r.Prompt {
		known[id].prompt = true
	}
	params := r.Sampling
	params.Choice += uint32(c)
	last := int32(-1)
	for n := 0; n < r.Tokens; n++ {
		now := known
		if n < r.MinTokens {
			for _, id := range r.Stop {
				now[id].bias = float32(math.Inf(-1))
			}
		}
		var mask []uint32
		if rule != nil {
			open, err := rule(c, n, last)
			if err != nil {
				a.err = err
				return a
			}
			mask = []uint32{uint32(open), uint32(open >> 32)}
		}
		if r.Allowed != nil {
			all := r.Allowed.Words
			if mask == nil {
				mask = all
			}
			mask = []uint32{mask[0] & all[0], mask[1] & all[1]}
		}
		token, log, ok := choose(m.out, &params, mask, &now)
		if !ok {
			a.err = sample.ErrEmptyMask
			return a
		}
		a.tokens, a.outs, a.logs = append(a.tokens, token), append(a.outs, m.out), append(a.logs, log)
		if a.stopped = n >= r.MinTokens && slices.Contains(r.Stop, token); a.stopped || n+1 == r.Tokens {
			return a
		}
		known[token].count++
		last = token
		if m.read(token); m.damaged {
			a.err = errDamaged
			if rule != nil { // the rule is called before the token runs
				if _, err := rule(c, n+1, token); err != nil {
					a.err = err
				}
			}
			return a
		}
	}
	return a
}

// differs describes how got differs from result number n of its answer, or returns "".
func (e *expected) differs(r *engine.Request, got *engine.Result, n int) string {
	var out uint64
	var want plan.Want
	if got.Chosen {
		a := &e.answers[got.Choice]
		if n >= len(a.tokens) {
			return "a token too many"
		}
		out, want = a.outs[n], r.Want
		final := n+1 == len(a.tokens) && a.err == nil
		log := float32(0)
		if want&plan.WantLogProbability != 0 {
			log = a.logs[n]
		}
		switch {
		case got.Index != n:
			return "the index differs"
		case got.Token != a.tokens[n]:
			return "the token differs"
		case got.LogProbability != log:
			return "the log-probability differs"
		case got.Final != final || got.Stopped != (final && a.stopped):
			return "the end differs"
		}
	} else {
		if n >= len(e.outputs) {
			return "an output too many"
		}
		if out, want = e.outputs[n], r.Outputs[n].Want; got.Index != int(r.Outputs[n].Token) || got.Choice != 0 {
			return "the output is of another token"
		}
	}
	same := func(wanted bool, x []float32, size int) bool {
		return !wanted && x == nil || wanted && slices.Equal(x, numbers(out, size))
	}
	switch {
	case !same(want&plan.WantLogits != 0, got.Logits, vocab):
		return "the logits differ"
	case !same(want&plan.WantHidden != 0, got.Hidden, deep):
		return "the hidden state differs"
	}
	return ""
}

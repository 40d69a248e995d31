package mesh

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// cutTokens is how many tokens of a sequence are worth a micro-batch of their own. Fewer take a device
// about as long as all of them.
const cutTokens = 256

// A microBatch is some consecutive tokens of a step, which run through the parts by themselves.
type microBatch struct {
	s         *pipelined
	index     int        // in the step
	tokens    plan.Range // of the step
	sequences plan.Range
	rows      plan.Range

	batch  plan.Batch // for the part that it is in
	copies plan.Batch // for a part that only copies pages
	last   []plan.Row // rows for the last part
	ops    []plan.StateOp
	input  [][]float32
	steps  []plan.Step  // by part, those begun
	result *plan.Result // of the last of steps
	errs   []error      // by sequence of the micro-batch; nil if none has failed
	err    error        // why all of it failed
}

// bounds appends to bounds where a batch is cut into micro-batches: as many as there are parts, of
// about as many tokens. Sequences stay whole, unless they are long and need not be. Steps that are
// measured are not cut, and neither are those that only copy pages.
func (e *pipeline) bounds(bounds []int, b *plan.Batch) []int {
	n, tokens := len(e.parts), len(b.Tokens)
	bounds = append(bounds[:0], 0)
	if tokens == 0 || b.Trace || b.Timed || b.Spans {
		return append(bounds, tokens)
	}
	for i := 1; i < n; i++ {
		at := tokens * i / n
		if e.whole || tokens < n*e.cut {
			at = nearest(b.Start, at)
		}
		if at > bounds[len(bounds)-1] && at < tokens {
			bounds = append(bounds, at)
		}
	}
	return append(bounds, tokens)
}

// nearest returns the start of a sequence that is nearest to token at.
func nearest(start []int32, at int) int {
	i, found := slices.BinarySearch(start, int32(at))
	if !found && i > 0 && at-int(start[i-1]) <= int(start[i])-at {
		i--
	}
	return int(start[i])
}

// take makes m the tokens lo to hi of the step s.
func (m *microBatch) take(s *pipelined, lo, hi int) {
	b := s.Batch
	row := func(token int) int {
		i, _ := slices.BinarySearchFunc(b.Rows, int32(token), func(r plan.Row, t int32) int { return int(r.Token - t) })
		return i
	}
	m.s, m.err, m.errs, m.result, m.input, m.steps = s, nil, nil, nil, nil, m.steps[:0]
	m.tokens, m.sequences, m.rows = plan.Range{Lo: lo, Hi: hi}, plan.Range{}, plan.Range{Lo: row(lo), Hi: row(hi)}
	if lo < hi {
		m.sequences = plan.Range{Lo: sequenceOf(b.Start, lo), Hi: sequenceOf(b.Start, hi-1) + 1}
	}
	own := &m.batch
	own.Tokens, own.Positions = append(own.Tokens[:0], b.Tokens[lo:hi]...), b.Positions[lo:hi]
	own.Lengths, own.Start = b.Lengths[m.sequences.Lo:m.sequences.Hi], append(own.Start[:0], 0)
	for q := m.sequences.Lo; q < m.sequences.Hi; q++ {
		own.Start = append(own.Start, min(b.Start[q+1], int32(hi))-int32(lo))
	}
	if own.Axes = nil; b.Axes != nil {
		own.Axes = b.Axes[2*lo : 2*hi]
	}
	own.Head, own.Trace, own.Timed, own.Spans = b.Head, b.Trace, b.Timed, b.Spans
	own.Tables = slices.Grow(own.Tables[:0], len(b.Tables))[:len(b.Tables)]
	for g := range b.Tables {
		of, t := &b.Tables[g], &own.Tables[g]
		if b.Head && !s.e.p.Uses(g, true) {
			*t = plan.PageTable{}
			continue
		}
		first := of.Start[m.sequences.Lo]
		t.Pages, t.First, t.Start = of.Pages[first:of.Start[m.sequences.Hi]], of.First[m.sequences.Lo:m.sequences.Hi], t.Start[:0]
		for q := m.sequences.Lo; q <= m.sequences.Hi; q++ {
			t.Start = append(t.Start, of.Start[q]-first)
		}
	}
	m.last = append(m.last[:0], b.Rows[m.rows.Lo:m.rows.Hi]...)
	for i := range m.last {
		m.last[i].Token -= int32(lo)
	}
}

// resolve sets the tokens of the previous step with which m continues. It reports whether they are
// there; if not, it has changed nothing.
func (m *microBatch) resolve() bool {
	from, before := m.s.Batch.From, m.s.before
	if from == nil {
		return true
	}
	from = from[m.tokens.Lo:m.tokens.Hi]
	var failed error
	for _, r := range from {
		if r < 0 {
			continue
		}
		_, ready, err := before.token(int(r))
		if !ready {
			return false
		}
		failed = cmp.Or(failed, err)
	}
	if failed != nil {
		m.err = fmt.Errorf("mesh: the step before gave no tokens: %w", failed)
		return true
	}
	row := 0
	for t, r := range from {
		for row < len(m.last) && int(m.last[row].Token) < t {
			row++
		}
		if r < 0 {
			continue
		}
		token, _, _ := before.token(int(r))
		if token < 0 {
			m.fail(sequenceOf(m.batch.Start, t), errors.New("mesh: a row of the step before gave no token"))
			token = 0
		}
		m.batch.Tokens[t] = token
		if row < len(m.last) && int(m.last[row].Token) == t && m.last[row].Sampling.Penalizes() {
			m.last[row].Adjustments = sample.Chosen(m.last[row].Adjustments, token)
		}
	}
	return true
}

// sequenceOf returns the sequence of token t.
func sequenceOf(start []int32, t int) int {
	i, found := slices.BinarySearch(start, int32(t))
	if !found {
		i--
	}
	return i
}

// fail notes the first error of a sequence of m.
func (m *microBatch) fail(q int, err error) {
	if m.errs == nil {
		m.errs = make([]error, m.sequences.Len())
	}
	if m.errs[q] == nil {
		m.errs[q] = err
	}
}

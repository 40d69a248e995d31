package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// A pipeline runs every step in one part after the other, see [Layers]. A step is cut into
// micro-batches, so that a part runs one of them while the next part runs the one before. Micro-batches
// go through all parts in the order of the steps and of their tokens.
//
// What a part computes for the next one goes through the host's memory, and so do the tokens that a
// step samples for the next one. So a pipeline needs no link between devices.
type pipeline struct {
	*group
	whole  bool // sequences cannot be cut
	cut    int  // see cutTokens
	stages []*stage
	open   sync.WaitGroup // micro-batches that are not done
	ended  sync.WaitGroup // goroutines of stages
	before *sampled       // the tokens of the step submitted last
	late   *pipelined
	steps  plan.StepPool[pipelined]

	mu      sync.Mutex
	waiting []*microBatch // for the first part, in order
}

// newPipeline starts a goroutine for each of g's parts.
func newPipeline(g *group, parts []Part) *pipeline {
	e := &pipeline{group: g, cut: cutTokens, whole: g.p.Whole || slices.ContainsFunc(g.p.Groups, func(g plan.Group) bool { return g.Kind == plan.PerSequence })}
	e.steps.New = func(s plan.PooledStep) *pipelined { return &pipelined{e: e, PooledStep: s} }
	rows := make([]plan.Row, g.lim.Tokens)
	for i := range rows {
		rows[i] = plan.Row{Token: int32(i), Want: plan.WantHidden}
	}
	for i, part := range g.parts {
		s := &stage{e: e, index: i, part: part, gives: parts[i].gives, rows: rows}
		s.running.init()
		e.stages = append(e.stages, s)
	}
	for _, s := range e.stages {
		e.ended.Go(s.end)
	}
	return e
}

// A pipelined is a step of a pipeline.
type pipelined struct {
	plan.PooledStep
	e      *pipeline
	all    []*microBatch // those in use, and others to reuse
	n      int           // number of micro-batches
	bounds []int
	before *sampled // the tokens of the step before
	own    *sampled
	chosen chan struct{} // closed when Choose has been called; nil if the step is not late
	left   int           // micro-batches that are not done
	done   atomic.Bool
}

// A sampled is the tokens of a step, which the next step may need before the step is done, and after
// it has been released.
type sampled struct {
	tokens []int32         // by row; -1: the row has none
	ends   []int           // by micro-batch: the end of its rows
	ready  []chan struct{} // by micro-batch: closed when its tokens are there
	errs   []error         // by micro-batch: why there are none
}

// token returns the token of a row. ready is false if it is not there yet.
func (x *sampled) token(row int) (token int32, ready bool, err error) {
	i, _ := slices.BinarySearch(x.ends, row+1)
	select {
	case <-x.ready[i]:
		return x.tokens[row], true, x.errs[i]
	default:
		return 0, false, nil
	}
}

// Submit implements [plan.Executable].
func (e *pipeline) Submit(b *plan.Batch) (plan.Step, error) {
	if err := e.check(b, e.late != nil); err != nil {
		return nil, err
	}
	s := e.steps.Take()
	s.Batch, s.before, s.chosen = b, e.before, nil
	s.Result.Times, s.Result.Layers, s.Result.Spans = plan.Times{}, nil, nil
	s.done.Store(false)
	if b.Late {
		s.chosen, e.late = make(chan struct{}), s
	}
	s.bounds = e.bounds(s.bounds, b)
	s.n = len(s.bounds) - 1
	s.left = s.n
	s.own = &sampled{tokens: make([]int32, len(b.Rows)), errs: make([]error, s.n)}
	for i := range s.n {
		if i == len(s.all) {
			s.all = append(s.all, &microBatch{})
		}
		m := s.all[i]
		m.take(s, s.bounds[i], s.bounds[i+1])
		m.index = i
		s.own.ends, s.own.ready = append(s.own.ends, m.rows.Hi), append(s.own.ready, make(chan struct{}))
	}
	e.begun++
	e.wanted, e.before = len(b.Rows), s.own
	e.open.Add(s.n)
	e.advance(s.all[:s.n]...)
	return s, nil
}

// advance begins the micro-batches that wait for the first part and whose tokens are known, and adds
// others behind them.
func (e *pipeline) advance(others ...*microBatch) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.waiting = append(e.waiting, others...)
	for len(e.waiting) > 0 && e.waiting[0].resolve() {
		m := e.waiting[0]
		e.waiting = append(e.waiting[:0], e.waiting[1:]...)
		e.stages[0].begin(m)
	}
}

// Choose implements [plan.Executable].
func (e *pipeline) Choose(s plan.Step) error {
	if e.late == nil || s != plan.Step(e.late) {
		return errors.New("mesh: Choose of a step that is not the one submitted last")
	}
	close(e.late.chosen)
	e.late = nil
	return nil
}

// SetMask implements [plan.Executable]. The last part samples.
func (e *pipeline) SetMask(id int32, words []uint32) error {
	last := e.parts[len(e.parts)-1]
	last.Lock()
	defer last.Unlock()
	return last.SetMask(id, words)
}

// Close implements [plan.Executable].
func (e *pipeline) Close() error {
	if e.closed {
		return nil
	}
	e.closed = true
	if e.late != nil {
		_ = e.Choose(e.late) // of the step submitted last
	}
	e.open.Wait()
	for _, s := range e.stages {
		s.running.close()
	}
	e.ended.Wait()
	return e.group.Close()
}

// Release implements [plan.Step].
func (s *pipelined) Release() {
	if !s.done.Load() {
		return // it is left to the garbage collector
	}
	for _, m := range s.all[:s.n] {
		m.release(len(m.steps))
	}
	s.PooledStep.Release()
}

// A stage is a part of a pipeline with what it runs.
type stage struct {
	e       *pipeline
	index   int
	part    *member
	gives   bool       // its hidden states are the input of the next one
	rows    []plan.Row // all rows of a step, if it gives
	running line       // micro-batches that have begun, or failed before
}

// begin begins m, unless it has failed. Only one goroutine at a time calls it, for micro-batches in
// their order.
func (s *stage) begin(m *microBatch) {
	if m.err == nil {
		if err := s.submit(m); err != nil {
			m.err = fmt.Errorf("mesh: part %d of %d: %w", s.index, len(s.e.stages), err)
		}
	}
	s.running.push(m)
}

// submit submits m to the part. A late step waits for its Choose in the last part. The last part has
// the head; in its steps the others only copy pages.
func (s *stage) submit(m *microBatch) error {
	b, of := &m.batch, m.s.Batch
	if m.ops = m.ops[:0]; m.tokens.Lo == 0 {
		m.ops = s.e.pages.operations(m.ops, of.States, s.index)
	}
	if len(b.Tokens) == 0 || of.Head && s.gives {
		if len(m.ops) == 0 {
			m.steps = append(m.steps, nil)
			return nil
		}
		b, m.copies = &m.copies, plan.Batch{}
	} else {
		b.Rows, b.Late, b.Input = m.last, of.Late, m.input
		if s.gives {
			b.Rows, b.Late = s.rows[:len(b.Tokens)], false
		}
	}
	b.States = m.ops
	s.part.Lock()
	begun, err := s.part.Submit(b)
	s.part.Unlock()
	if err != nil {
		return err
	}
	m.steps = append(m.steps, begun)
	if b.Late {
		<-m.s.chosen
		s.part.Lock()
		err = s.part.Choose(begun)
		s.part.Unlock()
		if err != nil {
			m.steps = m.steps[:s.index] // it is lost
		}
	}
	return err
}

// end waits for micro-batches in their order, and begins them in the next part, or ends them.
func (s *stage) end() {
	for m := s.running.pop(); m != nil; m = s.running.pop() {
		if len(m.steps) > s.index && m.steps[s.index] != nil { // it has begun
			r, err := m.steps[s.index].Wait(context.Background())
			if err != nil && m.err == nil {
				m.err = fmt.Errorf("mesh: part %d of %d: %w", s.index, len(s.e.stages), err)
			}
			if err == nil {
				m.collect(r)
			}
		}
		m.release(s.index) // of the part before, which this one has read
		if s.index+1 < len(s.e.stages) {
			s.e.stages[s.index+1].begin(m)
			continue
		}
		m.s.end(m)
		s.e.advance()
		s.e.open.Done()
	}
}

// collect takes what the next part, or the step, needs of a part's result.
func (m *microBatch) collect(r *plan.Result) {
	m.result, m.input = r, r.Hidden
	for q, err := range r.Err {
		if err != nil {
			m.fail(q, err)
		}
	}
	if b := &m.batch; b.Trace || b.Timed || b.Spans {
		m.s.measured(r, len(m.steps)-1)
	}
}

// measured adds the times of a part to those of a step that is one micro-batch.
func (s *pipelined) measured(r *plan.Result, part int) {
	into := &s.Result
	if into.Times.Total == 0 { // the first part that runs the step
		into.Times.Embed = r.Times.Embed
	}
	into.Times.Choose = r.Times.Choose
	into.Times.Total += r.Times.Total
	if r.Layers != nil && into.Layers == nil {
		into.Layers = make([]time.Duration, s.e.p.Layers()+1)
	}
	for i, d := range r.Layers {
		into.Layers[i] += d
	}
	begun := time.Duration(0)
	if n := len(into.Spans); n > 0 {
		begun = into.Spans[n-1].Begin + into.Spans[n-1].Time
	}
	into.Spans = appendSpans(into.Spans, r.Spans, part, begun)
}

// release releases the steps of the first parts.
func (m *microBatch) release(parts int) {
	for i := range m.steps[:min(parts, len(m.steps))] {
		if m.steps[i] != nil {
			m.steps[i].Release()
			m.steps[i] = nil
		}
	}
}

// end adds the results of m, which has been through all parts, to those of the step.
func (s *pipelined) end(m *microBatch) {
	own := s.own
	own.errs[m.index] = m.err
	for i := range m.last {
		if own.tokens[m.rows.Lo+i] = -1; m.err == nil && (m.errs == nil || m.errs[sequenceOf(m.batch.Start, int(m.last[i].Token))] == nil) {
			own.tokens[m.rows.Lo+i] = m.result.Tokens[i]
		}
	}
	close(own.ready[m.index])
	if s.left--; s.left > 0 {
		return
	}
	s.finish()
}

// finish makes the result of the step.
func (s *pipelined) finish() {
	r := &s.Result
	r.Tokens, r.Err = append(r.Tokens[:0], s.own.tokens...), nil
	r.Logits, r.Hidden, r.LogProbabilities = r.Logits[:0], r.Hidden[:0], r.LogProbabilities[:0]
	s.Err = nil
	for _, m := range s.all[:s.n] {
		if m.err != nil {
			s.Err = m.err
			break
		}
		r.Logits, r.Hidden = append(r.Logits, m.result.Logits...), append(r.Hidden, m.result.Hidden...)
		r.LogProbabilities = append(r.LogProbabilities, m.result.LogProbabilities...)
		for q, err := range m.errs {
			if err == nil {
				continue
			}
			if r.Err == nil {
				r.Err = make([]error, s.Batch.Seqs())
			}
			if at := &r.Err[m.sequences.Lo+q]; *at == nil {
				*at = err
			}
		}
	}
	s.done.Store(true)
	s.e.done.Add(1)
	s.Finish()
}

// A line is micro-batches in their order.
type line struct {
	mu     sync.Mutex
	moved  sync.Cond
	all    []*microBatch
	closed bool
}

func (l *line) init() { l.moved.L = &l.mu }

func (l *line) push(m *microBatch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, m)
	l.moved.Broadcast()
}

// close ends the line behind what has been pushed.
func (l *line) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	l.moved.Broadcast()
}

// pop removes the first micro-batch, and waits for one if there is none. It returns nil at the end.
func (l *line) pop() *microBatch {
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.all) == 0 && !l.closed {
		l.moved.Wait()
	}
	if len(l.all) == 0 {
		return nil
	}
	m := l.all[0]
	l.all = append(l.all[:0], l.all[1:]...)
	return m
}

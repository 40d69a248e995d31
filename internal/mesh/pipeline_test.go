package mesh_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// A hand is a part of a program that computes nothing: the test ends its steps.
type hand struct {
	plan.Executable
	p     *plan.Program
	steps chan *handStep // submitted
	fails error          // of Submit
}

type handStep struct {
	batch  *plan.Batch
	result plan.Result
	err    error
	ended  chan struct{}
}

func (h *hand) Submit(b *plan.Batch) (plan.Step, error) {
	if h.fails != nil {
		return nil, h.fails
	}
	s := &handStep{batch: b, ended: make(chan struct{})}
	s.result.Hidden = slices.Repeat([][]float32{make([]float32, h.p.Shapes[h.p.Hidden][1])}, len(b.Rows))
	s.result.Logits, s.result.LogProbabilities = make([][]float32, len(b.Rows)), make([]float32, len(b.Rows))
	s.result.Tokens = make([]int32, len(b.Rows))
	h.steps <- s
	return s, nil
}

func (h *hand) Choose(plan.Step) error { return nil }
func (h *hand) Close() error           { return nil }

func (s *handStep) Wait(context.Context) (*plan.Result, error) {
	<-s.ended
	return &s.result, s.err
}

func (s *handStep) Release() {}

// end ends the step with these tokens.
func (s *handStep) end(tokens ...int32) {
	copy(s.result.Tokens, tokens)
	close(s.ended)
}

// hands are devices whose executables are hands.
type hands struct {
	mesh.Device
	all []*hand
}

func (h *hands) Memories() []plan.MemoryInfo { return make([]plan.MemoryInfo, 1) }

func (h *hands) Separate(parts int) (all []plan.Backend) {
	for range parts {
		all = append(all, &palm{of: h})
	}
	return all
}

// A palm makes a hand.
type palm struct {
	plan.Backend
	of *hands
}

func (p *palm) Compile(_ context.Context, program *plan.Program, _ plan.Limits, _ plan.Loaded) (plan.Executable, error) {
	h := &hand{p: program, steps: make(chan *handStep, 16)}
	p.of.all = append(p.of.all, h)
	return h, nil
}

// handled returns a pipeline of two hands.
func handled(t *testing.T) (e plan.Executable, first, second *hand, p *plan.Program) {
	t.Helper()
	p = plantest.Model(t, nil)
	e, first, second = handledOf(t, p)
	return e, first, second, p
}

func handledOf(t *testing.T, p *plan.Program) (e plan.Executable, first, second *hand) {
	t.Helper()
	var h hands
	e, err := mesh.New(&h, 2, mesh.ByLayer).Compile(t.Context(), p, plantest.LimitsFor(p, 16, 4, 64, 16, plan.Limits{Cache: tensor.F16}), nil)
	if err != nil {
		t.Fatal(err)
	}
	return e, h.all[0], h.all[1]
}

// decoding returns a step of one token for each of two sequences.
func decoding(p *plan.Program, position int32, from []int32) *plan.Batch {
	b := &plan.Batch{Tokens: []int32{1, 2}, From: from, Positions: []int32{position, position}, Start: []int32{0, 1, 2}, Lengths: []int32{1, 1}, Tables: make([]plan.PageTable, len(p.Groups))}
	for g := range b.Tables {
		b.Tables[g].Reset()
		b.Tables[g].Add(0, 0)
		b.Tables[g].Add(0, 1)
	}
	for i := range int32(2) {
		b.Rows = append(b.Rows, plan.Row{Token: i, Want: plan.WantToken, Sampling: sample.Params{Presence: 1}, Adjustments: []sample.Adjustment{{Token: 7, Count: 3}}})
	}
	return b
}

func submit(t *testing.T, e plan.Executable, b *plan.Batch) plan.Step {
	t.Helper()
	s, err := e.Submit(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// While the second part runs a micro-batch, the first one runs the next. A sequence goes on in the
// next step as soon as its own token is there, with one more count of it.
func TestPipelineOverlaps(t *testing.T) {
	e, first, second, p := handled(t)
	one := submit(t, e, decoding(p, 0, nil))
	two := submit(t, e, decoding(p, 1, []int32{1, 0}))
	a, b := <-first.steps, <-first.steps // both, though neither has ended
	if len(a.batch.Tokens) != 1 || a.batch.Tokens[0] != 1 || b.batch.Tokens[0] != 2 || b.batch.Tables[0].Pages[0] != 1 {
		t.Errorf("micro-batches of tokens %v and %v, the second with pages %v", a.batch.Tokens, b.batch.Tokens, b.batch.Tables[0].Pages)
	}
	a.end()
	a2 := <-second.steps // while the first part runs the second micro-batch
	if len(a2.batch.Input) != 1 || len(a2.batch.Rows) != 1 || a2.batch.Rows[0].Want != plan.WantToken {
		t.Errorf("the second part gets inputs of %d tokens and rows %+v", len(a2.batch.Input), a2.batch.Rows)
	}
	b.end()
	b2 := <-second.steps
	b2.end(7) // the step's second row, with which the first sequence of the next step goes on
	a2.end(9)
	next := <-first.steps
	if next.batch.From != nil || next.batch.Tokens[0] != 7 {
		t.Errorf("the next step goes on with token %d from %v, want 7", next.batch.Tokens[0], next.batch.From)
	}
	last := <-first.steps
	next.end()
	next2 := <-second.steps
	if got, want := next2.batch.Rows[0].Adjustments, []sample.Adjustment{{Token: 7, Count: 4}}; !slices.Equal(got, want) {
		t.Errorf("adjustments %v after the token, want %v", got, want)
	}
	last.end()
	last2 := <-second.steps
	if got, want := last2.batch.Rows[0].Adjustments, []sample.Adjustment{{Token: 7, Count: 3}, {Token: 9, Count: 1}}; !slices.Equal(got, want) {
		t.Errorf("adjustments %v after the token, want %v", got, want)
	}
	next2.end(3)
	last2.end(4)
	for i, c := range []struct {
		plan.Step
		want []int32
	}{{one, []int32{9, 7}}, {two, []int32{3, 4}}} {
		r, err := c.Wait(t.Context())
		if err != nil || !slices.Equal(r.Tokens, c.want) {
			t.Errorf("step %d: %v, %v; want %v", i, r, err, c.want)
		}
		c.Release()
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A sequence whose token is there goes on while the last part still runs the others.
func TestPipelineGoesOnBySequence(t *testing.T) {
	e, first, second, p := handled(t)
	submit(t, e, decoding(p, 0, nil))
	submit(t, e, decoding(p, 1, []int32{0, 1}))
	(<-first.steps).end()
	(<-first.steps).end()
	(<-second.steps).end(5)
	other := <-second.steps
	if next := <-first.steps; next.batch.Tokens[0] != 5 {
		t.Errorf("the next step goes on with token %d, want 5", next.batch.Tokens[0])
	} else {
		next.end()
	}
	other.end(6)
	(<-first.steps).end()
	(<-second.steps).end()
	(<-second.steps).end()
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// An error of a part is that of the step, and of steps that go on with its tokens. Other steps are
// not concerned.
func TestPipelineFails(t *testing.T) {
	e, first, second, p := handled(t)
	failed, next, other := submit(t, e, decoding(p, 0, nil)), submit(t, e, decoding(p, 1, []int32{0, 1})), submit(t, e, decoding(p, 0, nil))
	broken := errors.New("broken")
	for range 2 {
		(<-first.steps).end()
		s := <-second.steps
		s.err = broken
		s.end()
	}
	for range 2 { // of the step that goes on, nothing is begun
		(<-first.steps).end()
		(<-second.steps).end(8)
	}
	if _, err := failed.Wait(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "part 1 of 2") {
		t.Errorf("a step that fails: %v", err)
	}
	if _, err := next.Wait(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "the step before gave no tokens") {
		t.Errorf("the step that goes on: %v", err)
	}
	if r, err := other.Wait(t.Context()); err != nil || !slices.Equal(r.Tokens, []int32{8, 8}) {
		t.Errorf("a step of others: %v, %v", r, err)
	}
	first.fails = broken
	if _, err := submit(t, e, decoding(p, 2, nil)).Wait(t.Context()); !errors.Is(err, broken) || !strings.Contains(err.Error(), "part 0 of 2") {
		t.Errorf("a step that is not begun: %v", err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// A sequence that fails in a part has no token, and the error is that of the first part.
func TestPipelineFailsBySequence(t *testing.T) {
	e, first, second, p := handled(t)
	step, next := submit(t, e, decoding(p, 0, nil)), submit(t, e, decoding(p, 1, []int32{0, 1}))
	cause := errors.New("cause")
	s := <-first.steps
	s.result.Err = []error{cause}
	s.end()
	(<-first.steps).end()
	s = <-second.steps
	s.result.Err = []error{errors.New("consequence")}
	s.end(5)
	(<-second.steps).end(6)
	for want := range int32(2) {
		s := <-first.steps
		if s.batch.Tokens[0] != 6*want {
			t.Errorf("sequence %d goes on with token %d, want %d", want, s.batch.Tokens[0], 6*want)
		}
		s.end()
		(<-second.steps).end(9)
	}
	r, err := step.Wait(t.Context())
	if err != nil || len(r.Err) != 2 || !errors.Is(r.Err[0], cause) || r.Err[1] != nil || !slices.Equal(r.Tokens, []int32{-1, 6}) {
		t.Errorf("the step: %+v, %v", r, err)
	}
	r, err = next.Wait(t.Context())
	if err != nil || len(r.Err) != 2 || r.Err[0] == nil || !strings.Contains(r.Err[0].Error(), "gave no token") || r.Err[1] != nil || !slices.Equal(r.Tokens, []int32{-1, 9}) {
		t.Errorf("the next step: %+v, %v", r, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// Close ends a late step that has had no Choose, and steps behind errors.
func TestPipelineCloses(t *testing.T) {
	e, first, second, p := handled(t)
	b := decoding(p, 0, nil)
	b.Late = true
	submit(t, e, b)
	if _, err := e.Submit(decoding(p, 0, nil)); err == nil || !strings.Contains(err.Error(), "needs Choose first") {
		t.Errorf("a step behind a late one: %v", err)
	}
	(<-first.steps).end()
	(<-first.steps).end()
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	(<-second.steps).end()
	(<-second.steps).end()
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := e.Submit(decoding(p, 0, nil)); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("a step of a closed executable: %v", err)
	}
}

// A step of the head runs in the last part alone. The others copy the pages that it saves: states of
// their layers share these with the head's.
func TestPipelineOfHead(t *testing.T) {
	w := func(rows, cols int) *tensor.Tensor {
		return &tensor.Tensor{Name: "w", DType: tensor.F32, Shape: []int{rows, cols}, Data: make([]byte, 4*rows*cols)}
	}
	p, err := plan.Build(func(b *plan.Builder) {
		attend := func(name string, x plan.Value) plan.Value {
			s := b.State(plan.State{Name: name, Kind: plan.PerToken, KVHeads: 1, HeadDim: 8, ValueDim: 8})
			return b.Attention(x, x, x, nil, s, plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: 8, Scale: 1})
		}
		output := func(x plan.Value) {
			x = b.Pick(x)
			b.Output(x, b.Linear(x, w(9, 8), nil))
		}
		x := b.Embed(w(9, 8))
		b.Layer(0)
		x = attend("first", b.Linear(b.Linear(x, w(64, 8), nil), w(8, 64), nil)) // most of the weights
		b.Layer(1)
		output(b.Linear(x, w(8, 8), nil))
		b.Head()
		output(attend("head", b.Embed(w(9, 8))))
	})
	if err != nil {
		t.Fatal(err)
	}
	e, first, second := handledOf(t, p)
	size := 16 * 2 * 8 * 2 // bytes of a page of a state: 16 rows of keys and values in F16
	host := make([]byte, 2*size)
	b := decoding(p, 0, nil)
	for i := range b.Rows {
		b.Rows[i].Adjustments = nil
	}
	b.Head, b.States = true, []plan.StateOp{{Kind: plan.SavePage, Page: 5, Host: host}}
	step := submit(t, e, b)
	copies := <-first.steps
	if ops := copies.batch.States; !copies.batch.OnlyStates() || len(ops) != 1 || ops[0].Page != 5 || len(ops[0].Host) != size || &ops[0].Host[0] != &host[0] {
		t.Errorf("the first part gets %d tokens and copies %+v", len(copies.batch.Tokens), copies.batch.States)
	}
	copies.end()
	for i := range 2 {
		s := <-second.steps
		if !s.batch.Head || len(s.batch.Input) > 0 || len(s.batch.Tokens) != 1 {
			t.Errorf("the last part gets %d tokens, of the head: %v, with %d inputs", len(s.batch.Tokens), s.batch.Head, len(s.batch.Input))
		}
		if ops := s.batch.States; (len(ops) == 1) != (i == 0) || i == 0 && &ops[0].Host[0] != &host[size] {
			t.Errorf("the last part copies %+v with micro-batch %d", ops, i)
		}
		s.end(int32(3 + i))
	}
	if r, err := step.Wait(t.Context()); err != nil || !slices.Equal(r.Tokens, []int32{3, 4}) {
		t.Errorf("%+v, %v", r, err)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

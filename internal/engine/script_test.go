package engine_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A scripted backend computes nothing. It checks whether a step could run, records its contents,
// and ends it on request.
type scripted struct {
	plan.Backend // nil
	program      *plan.Program
	limits       plan.Limits
	rows         int // of the previous step
	steps        []scriptedStep
	traced       []bool              // by step: its times are 1ns in total, and for its one layer as many microseconds as its number, from 1
	proceed      chan error          // ends a step, with an error or without
	refuse       error               // of Submit
	refuseMask   error               // of SetMask
	look         func(b *plan.Batch) // called with every batch, or nil

	sets  []int32            // ids of the masks set, in order
	words map[int32][]uint32 // their contents
	masks []map[int32]uint32 // by step and part: the first word of the mask of the last row
}

// A scriptedStep holds the part of each sequence, by the length of its prompt, which tests make
// different.
type scriptedStep map[int32]scriptedPart

type scriptedPart struct{ start, tokens, rows int }

func (b *scripted) Compile(_ context.Context, p *plan.Program, l plan.Limits, _ plan.Loaded) (plan.Executable, error) {
	b.program, b.limits, b.words = p, l, map[int32][]uint32{}
	return b, nil
}

func (b *scripted) Close() error                    { return nil }
func (b *scripted) AllocHost(n int) ([]byte, error) { return make([]byte, n), nil }
func (b *scripted) FreeHost([]byte) error           { return nil }
func (b *scripted) Setup() plan.Setup               { return plan.Setup{} }

func (b *scripted) SetMask(id int32, words []uint32) error {
	if b.refuseMask != nil {
		return b.refuseMask
	}
	b.sets, b.words[id] = append(b.sets, id), slices.Clone(words)
	return b.limits.ValidateMask(b.program, id, words)
}

func (b *scripted) Submit(batch *plan.Batch) (plan.Step, error) {
	if b.refuse != nil {
		return nil, b.refuse
	}
	if err := batch.Validate(b.program, &b.limits, b.rows); err != nil {
		return nil, err
	}
	if b.look != nil {
		b.look(batch)
	}
	b.rows = len(batch.Rows)
	step := scriptedStep{}
	for s, id := range batch.Lengths {
		from, to := batch.Start[s], batch.Start[s+1]
		part := scriptedPart{start: int(batch.Positions[from]), tokens: int(to - from)}
		for _, r := range batch.Rows {
			if from <= r.Token && r.Token < to {
				part.rows++
			}
		}
		step[id] = part
	}
	b.steps = append(b.steps, step)
	b.traced = append(b.traced, batch.Trace)
	n := len(batch.Rows)
	res := plan.Result{Tokens: make([]int32, n), Logits: make([][]float32, n), Hidden: make([][]float32, n), LogProbabilities: make([]float32, n)}
	if batch.Trace {
		res.Layers = []time.Duration{1, time.Duration(len(b.steps)) * time.Microsecond}
	}
	s := &waitingStep{b: b, batch: batch, result: res}
	if !batch.Late {
		return s, b.Choose(s)
	}
	return s, nil
}

// Choose records the masks with which a step samples.
func (b *scripted) Choose(s plan.Step) error {
	batch, masks := s.(*waitingStep).batch, map[int32]uint32{}
	for _, r := range batch.Rows {
		for q, id := range batch.Lengths {
			if batch.Start[q] <= r.Token && r.Token < batch.Start[q+1] && r.Mask > 0 {
				masks[id] = b.words[r.Mask][0]
			}
		}
	}
	b.masks = append(b.masks, masks)
	return nil
}

type waitingStep struct {
	b      *scripted
	batch  *plan.Batch
	result plan.Result
}

func (s *waitingStep) Wait(context.Context) (*plan.Result, error) {
	if err := <-s.b.proceed; err != nil {
		return nil, err
	}
	return &s.result, nil
}

func (s *waitingStep) Release() {}

// A script controls an engine whose steps end one at a time.
type script struct {
	t *testing.T
	b *scripted
	e *engine.Engine
}

// stepTime is how long each step takes.
const stepTime = 10 * time.Millisecond

func scripting(t *testing.T, c engine.Config, m *hashModel, test func(*script)) {
	t.Helper()
	c.Cache = tensor.F32
	synctest.Test(t, func(t *testing.T) {
		b := &scripted{proceed: make(chan error)}
		e, err := engine.New(t.Context(), m.program(), b, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		test(&script{t, b, e})
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		close(b.proceed)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
}

// next ends the oldest step, with an error or without.
func (s *script) next(err error) {
	s.t.Helper()
	synctest.Wait()
	time.Sleep(stepTime)
	select {
	case s.b.proceed <- err:
	default:
		s.t.Error("no step is under way")
	}
	synctest.Wait()
}

// steps ends n steps.
func (s *script) steps(n int) {
	s.t.Helper()
	for range n {
		s.next(nil)
	}
}

// until ends steps until c is over, n at most.
func (s *script) until(c *caller, n int) {
	s.t.Helper()
	for range n {
		if c.over {
			return
		}
		s.next(nil)
	}
	if !c.over {
		s.t.Fatalf("not over after %d steps more", n)
	}
}

// A caller is a running request.
type caller struct {
	chosen int
	over   bool
	stats  engine.Stats
	last   engine.Stats // of the last result
	err    error
	leave  context.CancelFunc
}

// ask starts a request on its own goroutine. Prompts of different lengths have nothing in common.
func (s *script) ask(prompt, n int, change func(*engine.Request), yield func(*engine.Result) bool) *caller {
	r := &engine.Request{Prompt: unlike(prompt), Tokens: n}
	if change != nil {
		change(r)
	}
	c := &caller{}
	ctx, cancel := context.WithCancel(s.t.Context())
	c.leave = cancel
	go func() {
		defer cancel()
		c.stats, c.err = s.e.Run(ctx, r, func(got *engine.Result) (bool, error) {
			c.last = got.Stats
			if got.Chosen {
				c.chosen++
			}
			return yield == nil || yield(got), nil
		})
		c.over = true
	}()
	synctest.Wait()
	return c
}

// unlike returns a prompt that shares no beginning with those of other lengths.
func unlike(n int) []int32 {
	p := make([]int32, n)
	for i := range p {
		p[i] = int32((n >> (6 * (i % 3)) & 63) % vocab)
	}
	return p
}

// done checks that the request was served.
func (s *script) done(c *caller, n int) {
	s.t.Helper()
	if !c.over || c.err != nil || c.chosen != n {
		s.t.Errorf("%d tokens of %d (%v), over: %v", c.chosen, n, c.err, c.over)
	}
	if c.last != c.stats {
		s.t.Errorf("the last result came with %+v, the end with %+v", c.last, c.stats)
	}
}

// Every step has a token of each decoding sequence, also while long prompts are prefilled, the
// shortest first. Prompts are cut at multiples of 256 if there are states per sequence.
func TestStepsOfAll(t *testing.T) {
	t.Run("tokens", func(t *testing.T) {
		stepsOfAll(t, &hashModel{windows: []int{0, 50}}, []scriptedPart{{0, 32, 0}, {32, 180, 0}, {212, 256, 0}, {468, 132, 1}}, false)
	})
	t.Run("states", func(t *testing.T) {
		stepsOfAll(t, &hashModel{windows: []int{0, recurrent}}, []scriptedPart{{0, 32, 0}, {32, 180, 0}, {212, 44, 0}, {256, 256, 0}, {512, 88, 1}}, true)
	})
}

func stepsOfAll(t *testing.T, m *hashModel, want []scriptedPart, cut bool) {
	scripting(t, engine.Config{Context: 1000, Parallel: 4}, m, func(s *script) {
		s.ask(1, 100, nil, nil)
		s.ask(2, 100, nil, nil)
		s.steps(4)
		at := len(s.b.steps)
		s.ask(600, 10, nil, nil)
		s.ask(300, 10, nil, nil)
		s.steps(12)
		next300 := 0
		chunks := []scriptedPart{}
		for i, step := range s.b.steps[at:] {
			if len(step) > 4 || step[1].tokens != 1 || step[2].tokens != 1 {
				t.Errorf("step %d is %v: a token of both that decode is missing", i, step)
			}
			if part := step[600]; part.tokens > 0 && part.start < 600 {
				chunks = append(chunks, part)
			}
			prompts := 0
			for _, id := range []int32{300, 600} {
				if part := step[id]; part.start < int(id) {
					prompts += part.tokens
					if cut && part.tokens > 0 && part.start/256 != (part.start+part.tokens-1)/256 {
						t.Errorf("step %d is %v: a chunk crosses a multiple of 256", i, step)
					}
				}
			}
			if prompts > 256 {
				t.Errorf("step %d is %v: %d tokens of prompts", i, step, prompts)
			}
			if part := step[300]; part.tokens > 0 {
				if part.start != next300 {
					t.Errorf("step %d is %v: position %d comes next", i, step, next300)
				}
				next300 = part.start + part.tokens
			}
		}
		if !slices.Equal(chunks, want) {
			t.Errorf("a prompt of 600 tokens is read as %v, want %v", chunks, want)
		}
		if next300 < 300 {
			t.Errorf("%d of the tokens of the other prompt were read", next300)
		}
	})
}

// A long prompt takes so little of each step that decoding sequences do not wait long for their
// next token.
func TestPromptsTakeTheirTime(t *testing.T) {
	scripting(t, engine.Config{Context: 1000, Parallel: 2}, &hashModel{windows: []int{0}}, func(s *script) {
		s.ask(600, 0, nil, nil)
		for range 3 { // prompts are slow: a token takes a millisecond
			time.Sleep(250 * time.Millisecond)
			s.next(nil)
		}
		s.ask(1, 30, nil, nil)
		s.steps(2)
		at := len(s.b.steps)
		s.ask(700, 0, nil, nil)
		s.steps(5)
		for i, step := range s.b.steps[at:] {
			if n := step[700].tokens; n == 0 || n > 128 || step[1].tokens != 1 {
				t.Errorf("step %d is %v: the prompt has %d tokens in it", i, step, n)
			}
		}
	})
}

// Prompts that arrive together share steps, even if a context is shorter than a step's prompt
// tokens.
func TestShortContext(t *testing.T) {
	scripting(t, engine.Config{Context: 40, Parallel: 4}, &hashModel{windows: []int{0, 50}}, func(s *script) {
		var callers []*caller
		for i := range 4 {
			callers = append(callers, s.ask(33+i, 5, nil, nil))
		}
		s.until(callers[3], 11)
		for _, c := range callers {
			s.done(c, 5)
		}
	})
}

// A slow caller gets a limited number of tokens, fewer if its results hold logits. Other callers get
// all of theirs.
func TestSlowCaller(t *testing.T) {
	for want, most := range map[plan.Want]int{0: 32, plan.WantLogits: 3} {
		scripting(t, engine.Config{Context: 100, Parallel: 2}, &hashModel{windows: []int{0}}, func(s *script) {
			wait := make(chan struct{})
			slow := s.ask(1, 50, func(r *engine.Request) { r.Want = want }, func(*engine.Result) bool { <-wait; return true })
			fast := s.ask(2, 60, nil, nil)
			s.steps(62) // the slow one is alone in two of them
			s.done(fast, 60)
			given := 0
			for _, step := range s.b.steps {
				given += step[1].tokens
			}
			if given != most {
				t.Errorf("a caller who looks at a token has %d, want %d", given, most)
			}
			close(wait)
			s.steps(50 - most)
			s.done(slow, 50)
		})
	}
}

// A failed step ends only its own requests.
func TestStepFails(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 3}, &hashModel{windows: []int{0}}, func(s *script) {
		lost := errors.New("the device is lost")
		one := s.ask(1, 20, nil, nil) // its first two steps are in flight
		two := s.ask(2, 20, nil, nil)
		s.next(nil)
		s.next(lost)
		if !errors.Is(one.err, lost) || two.over {
			t.Errorf("in a step that failed: %v; beside it: %v", one.err, two.err)
		}
		s.b.refuse = lost
		s.next(nil)
		if !errors.Is(two.err, lost) {
			t.Errorf("in a step that was refused: %v", two.err)
		}
		s.b.refuse = nil
		three := s.ask(3, 20, nil, nil)
		s.until(three, 25)
		s.done(three, 20)
	})
}

// A higher priority takes the place of a lower one, which later continues from its cached pages.
func TestPriority(t *testing.T) {
	scripting(t, engine.Config{Context: 200, Parallel: 1}, &hashModel{windows: []int{0}}, func(s *script) {
		low := s.ask(70, 20, nil, nil)
		s.steps(3)
		middle := s.ask(4, 3, func(r *engine.Request) { r.Priority = 1 }, nil)
		same := s.ask(5, 3, nil, nil)
		high := s.ask(6, 3, func(r *engine.Request) { r.Priority = 2 }, nil)
		s.next(nil) // a step of the first that was in flight
		var order []int
		note := func(c *caller, id int) {
			if c.over && !slices.Contains(order, id) {
				order = append(order, id)
			}
		}
		for range 27 {
			s.next(nil)
			note(high, 2)
			note(middle, 1)
			note(low, 0)
			note(same, -1)
			if len(order) == 4 {
				break
			}
		}
		if !slices.Equal(order, []int{2, 1, 0, -1}) {
			t.Errorf("requests ended in the order %v of priorities and arrivals", order)
		}
		s.done(low, 20)
		if low.stats.Preemptions == 0 || high.stats.Preemptions != 0 || same.stats.Preemptions != 0 {
			t.Errorf("preemptions: %d of the first, %d of the highest, %d of the last", low.stats.Preemptions, high.stats.Preemptions, same.stats.Preemptions)
		}
		computed := 0
		for _, step := range s.b.steps {
			computed += step[70].tokens
		}
		if most := 70 + 19 + 3*32; computed > most { // a part of a page for each time, and the tokens in flight
			t.Errorf("%d tokens were run for the first, which has %d: what was computed is not found again", computed, 70+19)
		}
	})
}

// If pages run short, the oldest sequence continues and the youngest waits.
func TestOldestGoesOn(t *testing.T) {
	scripting(t, engine.Config{Context: 256, Parallel: 3, States: 1}, &hashModel{windows: []int{0}}, func(s *script) {
		var callers []*caller
		for i := range 3 {
			callers = append(callers, s.ask(60+i, 150, nil, nil))
		}
		for steps := 0; !callers[2].over; steps++ {
			if s.next(nil); steps > 1000 {
				t.Fatal("the youngest never ends")
			}
			if callers[2].over && !callers[1].over || callers[1].over && !callers[0].over {
				t.Fatal("a younger one ended first")
			}
		}
		for _, c := range callers {
			s.done(c, 150)
		}
		if n := callers[0].stats.Preemptions; n > 0 {
			t.Errorf("the oldest was preempted %d times", n)
		}
		if n := callers[2].stats.Preemptions; n == 0 {
			t.Error("the youngest was never preempted")
		}
	})
}

// Many requests of one user do not keep few of another waiting.
func TestSaltsTakeTurns(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 1}, &hashModel{windows: []int{0}}, func(s *script) {
		var many []*caller
		for i := range 20 {
			many = append(many, s.ask(2+i, 10, func(r *engine.Request) { r.Salt = "many" }, nil))
		}
		s.steps(25)
		few := []*caller{
			s.ask(40, 10, func(r *engine.Request) { r.Salt = "few" }, nil),
			s.ask(41, 10, func(r *engine.Request) { r.Salt = "few" }, nil),
		}
		for steps := 0; !few[1].over; steps++ {
			if s.next(nil); steps > 100 {
				t.Fatal("the few wait for the many")
			}
		}
		ended := 0
		for _, c := range many {
			if c.over {
				ended++
			}
		}
		// Three had begun, and about one runs beside each of the other salt's.
		if ended < 3 || ended > 6 {
			t.Errorf("%d of the many were served before the few", ended)
		}
		for range 20 {
			if s.steps(10); many[19].over {
				break
			}
		}
		for _, c := range append(many, few...) {
			s.done(c, 10)
		}
	})
}

// A request that ends makes room in the next step.
func TestLeavingMakesPlace(t *testing.T) {
	for how, leave := range map[string]func(c *caller){"cancelled": func(c *caller) { c.leave() }, "stopped": nil} {
		scripting(t, engine.Config{Context: 100, Parallel: 1, States: 1}, &hashModel{windows: []int{0}}, func(s *script) {
			first := s.ask(60, 30, nil, func(got *engine.Result) bool { return leave != nil || got.Index < 1 })
			second := s.ask(61, 2, nil, nil)
			s.steps(2)
			if leave != nil {
				leave(first)
			}
			synctest.Wait()
			if !first.over || leave == nil != (first.err == nil) {
				t.Errorf("%s: %v, over: %v", how, first.err, first.over)
			}
			at := len(s.b.steps)
			s.next(nil) // in flight since before
			if got := s.b.steps[min(at, len(s.b.steps)-1)][61]; got.tokens != 61 {
				t.Errorf("%s: the next step is %v", how, s.b.steps[at:])
			}
			s.until(second, 3)
			s.done(second, 2)
			for _, group := range s.e.Metrics().Groups {
				if group.Used != 0 {
					t.Errorf("%s: %+v at rest", how, group)
				}
			}
		})
	}
}

// Checks what a caller is told, and what is counted.
func TestStatsAndMetrics(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 1}, &hashModel{windows: []int{0}}, func(s *script) {
		first := s.ask(70, 5, nil, nil)
		second := s.ask(70, 2, func(r *engine.Request) { r.Outputs = []engine.Output{{Token: 40, Want: plan.WantLogits}} }, nil)
		third := s.ask(70, 3, func(r *engine.Request) { r.Stop = []int32{0} }, nil) // all sampled tokens
		if m := s.e.Metrics(); m.Running != 1 || m.Waiting != 2 {
			t.Errorf("%d are running, %d waiting", m.Running, m.Waiting)
		}
		s.until(third, 20)
		fourth := s.ask(70, 2, func(r *engine.Request) { r.Salt = "other" }, nil)
		s.until(fourth, 5)
		for what, test := range map[string]struct{ got, want engine.Stats }{
			"first":                {first.stats, engine.Stats{}},
			"with an output of 40": {second.stats, engine.Stats{Cached: 32, Queue: second.stats.Queue}},
			"the same once more":   {third.stats, engine.Stats{Cached: 64, Queue: third.stats.Queue}},
			"of another salt":      {fourth.stats, engine.Stats{Queue: fourth.stats.Queue}},
		} {
			if test.got != test.want {
				t.Errorf("%s: %+v, want %+v", what, test.got, test.want)
			}
		}
		s.done(first, 5)
		s.done(second, 2)
		s.done(third, 1)
		s.done(fourth, 2)
		// The place of the first is free after five steps.
		if second.stats.Queue != 5*stepTime || third.stats.Queue <= second.stats.Queue || third.stats.Queue%stepTime != 0 {
			t.Errorf("waited for %v and %v", second.stats.Queue, third.stats.Queue)
		}
		m := s.e.Metrics()
		want := map[engine.Ending]uint64{engine.EndedByLength: 3, engine.EndedByStop: 1}
		if !maps.Equal(m.Ended, want) {
			t.Errorf("ended %v, want %v", m.Ended, want)
		}
		if m.Steps != uint64(len(s.b.steps)) || m.ChosenTokens != 10 || m.PromptTokens != 70+(70-32)+70+(70-64) ||
			m.CacheQueries != 4*70 || m.CacheHits != 32+64 || m.Preemptions != 0 || m.Evictions != 1 || m.Running != 0 || m.Waiting != 0 {
			t.Errorf("%+v", m)
		}
		for name, h := range map[string]engine.Histogram{
			"first": m.TimeToFirst, "all": m.EndToEnd, "queue": m.Queue, "prefill": m.Prefill, "decode": m.Decode, "prompt": m.PromptLength, "answer": m.AnswerLength,
		} {
			if h.Count() != 4 || len(h.Counts) != len(h.Bounds)+1 || !slices.IsSorted(h.Bounds) {
				t.Errorf("%s: %+v", name, h)
			}
		}
		if m.BetweenTokens.Count() != 6 || m.PromptLength.Sum != 280 || m.AnswerLength.Sum != 10 {
			t.Errorf("between tokens %+v, prompts %+v, answers %+v", m.BetweenTokens, m.PromptLength, m.AnswerLength)
		}
		if got, want := m.Queue.Sum, (second.stats.Queue + third.stats.Queue + fourth.stats.Queue).Seconds(); got < want-1e-9 || got > want+1e-9 {
			t.Errorf("queued for %v s in all, want %v", got, want)
		}
	})
}

// A request waits for its turn, and stops waiting when its context ends or the engine is closed.
func TestWaitingEnds(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 1}, &hashModel{windows: []int{0}}, func(s *script) {
		running := s.ask(1, 50, nil, nil)
		gone := s.ask(2, 5, nil, nil)
		waiting := s.ask(3, 5, nil, nil)
		if m := s.e.Metrics(); m.Running != 1 || m.Waiting != 2 {
			t.Errorf("%d are running, %d waiting", m.Running, m.Waiting)
		}
		gone.leave()
		synctest.Wait()
		if !errors.Is(gone.err, context.Canceled) || gone.chosen > 0 {
			t.Errorf("the wait ended with %v", gone.err)
		}
		s.steps(2)
		// No step ends any more, and all callers leave at once.
		closed := make(chan error)
		go func() { closed <- s.e.Close() }()
		synctest.Wait()
		if !errors.Is(running.err, engine.ErrClosed) || !errors.Is(waiting.err, engine.ErrClosed) || waiting.chosen > 0 {
			t.Errorf("Close left one running (%v) or waiting (%v)", running.err, waiting.err)
		}
		select {
		case err := <-closed:
			t.Errorf("Close does not wait for the steps under way (%v)", err)
		default:
		}
		s.next(nil)
		s.next(nil)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		late := s.ask(4, 5, nil, nil)
		if !errors.Is(late.err, engine.ErrClosed) {
			t.Errorf("after Close: %v", late.err)
		}
		if m := s.e.Metrics(); m.Running+m.Waiting > 0 || m.Ended[engine.Cancelled] != 3 {
			t.Errorf("after Close: %+v", m)
		}
	})
}

// The answers to one request are served like those of several, and one that its caller ends makes
// room.
func TestChoicesTakeTurns(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 2}, &hashModel{windows: []int{0}}, func(s *script) {
		var order []int
		c := s.ask(70, 10, func(r *engine.Request) { r.Choices = 3 }, func(got *engine.Result) bool {
			order = append(order, got.Choice)
			return got.Choice != 0 || got.Index < 3
		})
		s.until(c, 40)
		if c.err != nil || c.chosen != 4+10+10 {
			t.Errorf("%d tokens (%v)", c.chosen, c.err)
		}
		first := slices.Index(order, 2)
		if last := slices.Index(order[4:], 1); first < 0 || last < 0 || slices.Contains(order[first:], 0) {
			t.Errorf("results are of the answers %v", order)
		}
		if m := s.e.Metrics(); m.PromptTokens != 70+2*6 || m.Ended[engine.EndedByCaller] != 1 || m.Ended[engine.EndedByLength] != 2 {
			t.Errorf("%d tokens of prompts, ended %v", m.PromptTokens, m.Ended)
		}
	})
}

// Among users with equal shares, the first to arrive goes first.
func TestArrivals(t *testing.T) {
	scripting(t, engine.Config{Context: 100, Parallel: 1}, &hashModel{windows: []int{0}}, func(s *script) {
		s.ask(1, 5, nil, nil)
		var callers []*caller
		for i := range 5 {
			callers = append(callers, s.ask(2+i, 5, func(r *engine.Request) { r.Salt = string(rune('a' + i)) }, nil))
		}
		for i, c := range callers {
			s.until(c, 12)
			s.done(c, 5)
			if i+1 < len(callers) && callers[i+1].chosen > 0 {
				t.Errorf("user %d is served before user %d", i+1, i)
			}
		}
	})
}

// A request that needs many pages is not passed by later ones that need few.
func TestLargeRequestsAreNotPassed(t *testing.T) {
	scripting(t, engine.Config{Context: 256, Parallel: 3, States: 1}, &hashModel{windows: []int{0}}, func(s *script) {
		first := s.ask(150, 20, nil, nil)
		large := s.ask(200, 5, nil, nil)
		small := s.ask(3, 5, nil, nil)
		s.until(small, 40)
		s.until(large, 40)
		for _, step := range s.b.steps {
			if step[200].tokens > 0 {
				break
			}
			if step[3].tokens > 0 {
				t.Fatal("a small request came first")
			}
		}
		s.done(first, 20)
		s.done(large, 5)
		s.done(small, 5)
	})
}

// If pages are needed, the ends of histories are evicted first, and of these the least recently
// used.
func TestEvictionKeepsBeginnings(t *testing.T) {
	scripting(t, engine.Config{Context: 256, Parallel: 1, States: 1}, &hashModel{windows: []int{0}}, func(s *script) {
		serve := func(prompt int) int {
			c := s.ask(prompt, 1, nil, nil)
			s.until(c, 3)
			s.done(c, 1)
			return c.stats.Cached
		}
		serve(200) // six full pages of eight
		serve(100) // four pages, for which two are evicted
		if got := serve(200); got != 4*32 {
			t.Errorf("%d tokens are found of a prompt of whose 6 pages 2 had to go, want %d", got, 4*32)
		}
		serve(33)
		if m := s.e.Metrics(); m.Evictions == 0 {
			t.Error("nothing had to go")
		}
		if got := serve(200); got < 4*32 {
			t.Errorf("%d tokens are found of a prompt that was asked for just now, want %d at least", got, 4*32)
		}
	})
}

// A long prompt does not delay short ones that arrive later, nor do these delay it forever.
func TestShortPromptsFirst(t *testing.T) {
	scripting(t, engine.Config{Context: 4000, Parallel: 4}, &hashModel{windows: []int{0}}, func(s *script) {
		s.ask(3900, 1, nil, nil)
		s.steps(2)
		at := len(s.b.steps)
		for i := range 40 {
			s.ask(200+i, 1, nil, nil)
		}
		s.steps(40)
		short, long, waited, most := 0, 0, 0, 0
		for i, step := range s.b.steps[at:] {
			for id, part := range step {
				if id != 3900 && part.start+part.tokens == int(id) {
					short++
				}
			}
			if n := step[3900].tokens; n > 0 {
				long, waited = long+n, 0
			} else if waited++; waited > most {
				most = waited
			}
			if i == 1 && short < 2 {
				t.Errorf("after 2 steps %d short prompts are read", short)
			}
		}
		if short < 20 || long == 0 || most > 20 {
			t.Errorf("%d short prompts and %d tokens of the long one in 40 steps, which waited for %d at a time", short, long, most)
		}
	})
}

// A step has as many prompt tokens as the configuration says, of one prompt or of several.
func TestChunk(t *testing.T) {
	scripting(t, engine.Config{Context: 1500, Parallel: 5, Chunk: 2000}, &hashModel{windows: []int{0, 50}}, func(s *script) {
		s.ask(1, 20, nil, nil)
		s.steps(2)
		for _, n := range []int{1400, 500, 400, 1401, 1402, 1403, 1404} {
			s.ask(n, 1, nil, nil)
		}
		s.steps(12)
		most := 0
		for i, step := range s.b.steps {
			tokens := 0
			for id, part := range step {
				if part.start < int(id) && id > 1 {
					tokens += part.tokens
				}
			}
			if most = max(most, tokens); tokens > 2000 {
				t.Errorf("step %d is %v: %d tokens of prompts", i, step, tokens)
			}
		}
		if most <= 1400 {
			t.Errorf("a step has %d tokens of prompts at most; want those of several", most)
		}
	})
}

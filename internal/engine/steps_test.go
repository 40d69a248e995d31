package engine_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// A watched backend counts steps, steps that take a token from the previous one, and steps in
// flight.
type watched struct {
	plan.Backend
	steps, chained int
	now, most      atomic.Int64
	before         func()       // called before every Submit, or nil
	host           func() error // called by AllocHost, or nil
	bytes          atomic.Int64 // of host memory
}

func (w *watched) Compile(ctx context.Context, p *plan.Program, lim plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	exe, err := w.Backend.Compile(ctx, p, lim, loaded)
	return &watchedExecutable{exe, w}, err
}

type watchedExecutable struct {
	plan.Executable
	w *watched
}

func (e *watchedExecutable) AllocHost(n int) ([]byte, error) {
	if e.w.host != nil {
		return nil, e.w.host()
	}
	e.w.bytes.Add(int64(n))
	return e.Executable.AllocHost(n)
}

func (e *watchedExecutable) FreeHost(b []byte) error {
	e.w.bytes.Add(-int64(len(b)))
	return e.Executable.FreeHost(b)
}

func (e *watchedExecutable) Submit(b *plan.Batch) (plan.Step, error) {
	if e.w.before != nil {
		e.w.before()
	}
	e.w.steps++ // only one goroutine submits
	if b.From != nil {
		e.w.chained++
	}
	e.w.most.Store(max(e.w.most.Load(), e.w.now.Add(1)))
	s, err := e.Executable.Submit(b)
	if err != nil {
		e.w.now.Add(-1)
		return nil, err
	}
	return &watchedStep{Step: s, w: e.w}, nil
}

func (e *watchedExecutable) Choose(s plan.Step) error {
	return e.Executable.Choose(s.(*watchedStep).Step)
}

type watchedStep struct {
	plan.Step
	w    *watched
	once sync.Once
}

func (s *watchedStep) Wait(ctx context.Context) (*plan.Result, error) {
	res, err := s.Step.Wait(ctx)
	if err == nil {
		s.once.Do(func() { s.w.now.Add(-1) })
	}
	return res, err
}

// warm is the sampling of the tests below.
var warm = sample.Params{Temperature: 2, Seed: 5}

// Alone, every step but those of the prompt begins before the one before it is
// waited for, none too many, also where its masks depend on the tokens. The caller keeps up: one who is too many tokens behind is left out of steps.
func TestStepsBeginEarly(t *testing.T) {
	w := &watched{Backend: cpu.New(2)}
	p := plantest.Model(t, nil)
	c := engine.Config{Context: 600, Parallel: 2, Cache: tensor.F16}
	o, e := newOracle(t, w.Backend, p, 640, c), open(t, w, p, c)
	all := func(_ int, _ []int32, mask []uint32) error {
		for i := range mask {
			mask[i] = ^uint32(0)
		}
		return nil
	}
	odd := &engine.Mask{Words: slices.Repeat([]uint32{0xaaaaaaaa}, (modelVocab+31)/32)}
	for _, test := range []struct{ prompt, n, chunks int }{{1, 1, 1}, {1, 90, 1}, {31, 2, 1}, {256, 70, 1}, {257, 40, 2}, {513, 88, 3}} {
		for _, masked := range []string{"", "by a function", "by identity"} {
			// A single token after whole pages is not chained, and one of a chunk neither.
			r := &engine.Request{Prompt: tokens(test.prompt, 7), Tokens: test.n, Sampling: warm, Salt: time.Now().String()}
			chained := test.n - 1
			switch masked {
			case "by a function":
				r.Constrain = masking(all).by
			case "by identity":
				r.Allowed, r.MinTokens, r.Stop = odd, test.n, []int32{1, 3}
				r.Bias = []sample.Adjustment{{Token: 5, Bias: float32(math.Inf(-1))}}
			}
			w.steps, w.chained = 0, 0
			// Of the steps submitted all but the last are done, and what they chose is on its
			// way to the caller.
			taken, left := make(chan struct{}, test.n), make(chan struct{})
			w.before = func() {
				if w.steps > test.chunks {
					select {
					case <-taken:
					case <-left:
					}
				}
			}
			a, err := ask(t.Context(), e, r, func(*engine.Result) bool { taken <- struct{}{}; return true })
			close(left)
			if err == nil {
				err = o.differs(r, a)
			}
			if err != nil {
				t.Errorf("%+v: %v", test, err)
			}
			if w.steps != test.chunks+test.n-1 || w.chained != chained {
				t.Errorf("%+v, masked %q: %d steps, %d of them after an unknown token", test, masked, w.steps, w.chained)
			}
		}
	}
}

// However many callers leave before their steps are done, few steps are in flight, and the others
// get their tokens.
func TestAbandonedSteps(t *testing.T) {
	w := &watched{Backend: cpu.New(2)}
	e := open(t, w, plantest.Model(t, nil), engine.Config{Context: 256, Parallel: 64, Cache: tensor.F16})
	r := func() *engine.Request {
		r := &engine.Request{Prompt: tokens(64, 7), Tokens: 10, Want: plan.WantLogits}
		for i := range 63 {
			r.Outputs = append(r.Outputs, engine.Output{Token: int32(i), Want: plan.WantLogits})
		}
		return r
	}
	var left atomic.Int64
	var all sync.WaitGroup
	for i := range 48 {
		all.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*100*time.Microsecond)
			defer cancel()
			switch _, err := ask(ctx, e, r(), nil); {
			case errors.Is(err, context.DeadlineExceeded):
				left.Add(1)
			case err != nil:
				t.Error(err)
			}
		})
	}
	all.Wait()
	if left.Load() == 0 {
		t.Error("no caller left before its step was done")
	}
	if _, err := ask(t.Context(), e, r(), nil); err != nil {
		t.Error(err)
	}
	if n := w.most.Load(); n > 2 {
		t.Errorf("%d steps were under way at one time, want 2 at most", n)
	}
	for _, group := range e.Metrics().Groups {
		if group.Used > 0 {
			t.Errorf("at rest: %+v", group)
		}
	}
}

// If less host memory can be allocated than planned, all requests are still served.
func TestHostRefusesMemory(t *testing.T) {
	w := &watched{Backend: cpu.New(2), host: func() error { return errors.New("there is none") }}
	p := plantest.Model(t, nil)
	c := engine.Config{Context: 100, Parallel: 1, States: 1, Host: 1 << 30, Cache: tensor.F16}
	o, e := newOracle(t, w.Backend, p, 160, c), open(t, w, p, c)
	for i := range 6 {
		r := &engine.Request{Prompt: tokens(70, 1+i%3), Tokens: 30, Sampling: warm}
		a, err := ask(t.Context(), e, r, nil)
		if err == nil {
			err = o.differs(r, a)
		}
		if err != nil {
			t.Error(err)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
	}
	if m := e.Metrics(); m.Saves != 0 || m.Evictions == 0 {
		t.Errorf("%d saves, %d evictions", m.Saves, m.Evictions)
	}
}

// Host memory is freed, and never exceeds its limit.
func TestHostMemory(t *testing.T) {
	p := plantest.Model(t, nil)
	for _, room := range []int{1 << 10, 1 << 20, 16 << 20} {
		w := &watched{Backend: cpu.New(2)}
		c := engine.Config{Context: 100, Parallel: 1, States: 1, Host: room, Cache: tensor.F16}
		e, err := engine.New(t.Context(), p, w, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 12 {
			if _, err := ask(t.Context(), e, &engine.Request{Prompt: tokens(70, 1+i%4), Tokens: 30, Sampling: warm}, nil); err != nil {
				t.Error(err)
			}
			if n := w.bytes.Load(); n > int64(room) {
				t.Errorf("%d bytes of the host's memory, want %d at most", n, room)
			}
		}
		m := e.Metrics()
		if enough := room >= 16<<20; enough != (m.Restores > 0) && room != 1<<20 {
			t.Errorf("with %d bytes: %d saves and %d restores", room, m.Saves, m.Restores)
		}
		for g, group := range m.Groups {
			if group.HostUsed > group.HostPages || w.bytes.Load() == 0 != (m.Saves == 0) {
				t.Errorf("group %d: %+v, %d bytes", g, group, w.bytes.Load())
			}
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if n := w.bytes.Load(); n != 0 {
			t.Errorf("%d bytes of the host's memory were not given back", n)
		}
	}
}

// A window keeps only its own pages, however long the sequence is, and pools have room for the
// configured sizes.
func TestSizes(t *testing.T) {
	p := plantest.Model(t, nil)
	c := engine.Config{Context: 4096, Parallel: 2, Cache: tensor.F16}
	l := c.Limits(p)
	for g, group := range p.Groups {
		all := 2 * 4096 / l.PageTokens
		if group.Window == 0 && l.Pages[g] != all || group.Window > 0 && l.Pages[g] >= all/3 {
			t.Errorf("group %+v has %d pages of %d tokens", group, l.Pages[g], l.PageTokens)
		}
	}
	b := cpu.New(2)
	states := func(c engine.Config) int {
		t.Helper()
		m, err := c.Memory(p, b)
		if err != nil {
			t.Fatal(err)
		}
		l := c.Limits(p)
		if n, err := l.StateBytes(p); err != nil || n != m.States {
			t.Errorf("states take %d bytes, the pools %d (%v)", m.States, n, err)
		}
		return m.States
	}
	whole, single := states(c), states(engine.Config{Context: 4096, Parallel: 1, Cache: tensor.F16})
	if whole != 2*single {
		t.Errorf("two sequences take %d bytes, one %d", whole, single)
	}
	for _, n := range []int{1, single - 1, single, single + single/2, whole - 1, whole, 10 * whole} {
		some := c
		some.States = n
		got := states(some)
		if got < single || got > max(single, n) || got > whole || n >= whole && got != whole || n == single+single/2 && got < n-n/20 {
			t.Errorf("of %d bytes, with %d for one sequence and %d for all, %d are used", n, single, whole, got)
		}
	}
	for _, bad := range []engine.Config{{Context: 0, Parallel: 1}, {Context: 1, Parallel: 0}, {Context: 1, Parallel: 1, States: -1}, {Context: 1, Parallel: 1, Host: -1}} {
		bad.Cache = tensor.F16
		if _, err := bad.Memory(p, b); err == nil {
			t.Errorf("%+v has a size", bad)
		}
		if e, err := engine.New(t.Context(), p, b, bad, nil); err == nil {
			t.Errorf("%+v was taken", bad)
			e.Close()
		}
	}
	// A prompt far longer than the window, twice.
	c.States = 1
	o, e := newOracle(t, b, p, 1800, c), open(t, b, p, c)
	for range 2 {
		r := &engine.Request{Prompt: tokens(1500, 3), Tokens: 200, Sampling: warm}
		a, err := ask(t.Context(), e, r, nil)
		if err == nil {
			err = o.differs(r, a)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// A request within another's yield is served.
func TestRunWithinRun(t *testing.T) {
	e := open(t, cpu.New(2), plantest.Model(t, nil), engine.Config{Context: 64, Parallel: 4, Cache: tensor.F16})
	var within func(depth int) error
	within = func(depth int) error {
		if depth == 0 {
			return nil
		}
		_, err := e.Run(t.Context(), &engine.Request{Prompt: tokens(1, depth), Tokens: 3}, func(*engine.Result) (bool, error) {
			return true, within(depth - 1)
		})
		return err
	}
	if err := within(4); err != nil {
		t.Error(err)
	}
}

// A request that no step could run is refused before it shares one with others.
func TestRefused(t *testing.T) {
	w := &watched{Backend: cpu.New(2)}
	e := open(t, w, plantest.Model(t, nil), engine.Config{Context: 64, Parallel: 1, Cache: tensor.F32})
	two := tokens(2, 1)
	for what, r := range map[string]*engine.Request{
		"no prompt":                  {Tokens: 1},
		"an id":                      {Prompt: []int32{1, 1 << 20}, Tokens: 1},
		"the id after the last":      {Prompt: []int32{1, modelVocab}, Tokens: 1},
		"a negative id":              {Prompt: []int32{-1}, Tokens: 1},
		"a prompt too long":          {Prompt: tokens(65, 1)},
		"an answer too long":         {Prompt: tokens(60, 1), Tokens: 6},
		"a negative number":          {Prompt: two, Tokens: -1},
		"at least a negative number": {Prompt: two, Tokens: 1, MinTokens: -1},
		"less than no answer":        {Prompt: two, Tokens: 1, Choices: -1},
		"two outputs of one token":   {Prompt: two, Outputs: []engine.Output{{Token: 1, Want: plan.WantLogits}, {Token: 1, Want: plan.WantLogits}}},
		"an output of no token":      {Prompt: two, Outputs: []engine.Output{{Token: 2, Want: plan.WantLogits}}},
		"an output before all":       {Prompt: two, Outputs: []engine.Output{{Token: -1, Want: plan.WantLogits}}},
		"an output of the last":      {Prompt: two, Tokens: 1, Outputs: []engine.Output{{Token: 1, Want: plan.WantLogits}}},
		"an output's token":          {Prompt: two, Outputs: []engine.Output{{Token: 0, Want: plan.WantToken}}},
		"a temperature":              {Prompt: two, Tokens: 1, Sampling: sample.Params{Temperature: -1}},
		"a penalty":                  {Prompt: two, Tokens: 1, Sampling: sample.Params{Frequency: 1e6}},
		"a bias of no token":         {Prompt: two, Tokens: 1, Bias: []sample.Adjustment{{Token: modelVocab, Bias: 1}}},
		"a mask of one word":         {Prompt: two, Tokens: 1, Allowed: &engine.Mask{Words: make([]uint32, 1)}},
		"two biases of one token":    {Prompt: two, Tokens: 1, Bias: []sample.Adjustment{{Token: 1, Bias: 1}, {Token: 1, Bias: 2}}},
	} {
		_, err := e.Run(t.Context(), r, func(*engine.Result) (bool, error) {
			t.Errorf("%s: there is a result", what)
			return false, nil
		})
		if err == nil {
			t.Errorf("%s that does not exist was taken", what)
		}
	}
	if w.steps > 0 {
		t.Errorf("what was refused had %d steps", w.steps)
	}
	for _, r := range []*engine.Request{{Prompt: tokens(64, 1)}, {Prompt: tokens(64, 1), Tokens: 1}, {Prompt: two, Tokens: 63}} {
		if a, err := ask(t.Context(), e, r, nil); err != nil || len(a.tokens[0]) != r.Tokens {
			t.Errorf("exactly the context: %v (%v)", a.tokens, err)
		}
	}
}

// A request ends with its caller, its context or the engine, and returns the reason.
func TestRunEnds(t *testing.T) {
	e := open(t, cpu.New(2), plantest.Model(t, nil), engine.Config{Context: 40, Parallel: 1, Cache: tensor.F32})
	with := func(ctx context.Context, yield func(*engine.Result) (bool, error)) error {
		_, err := e.Run(ctx, &engine.Request{Prompt: tokens(2, 1), Tokens: 30, Outputs: []engine.Output{{Token: 0, Want: plan.WantHidden}}}, yield)
		return err
	}
	enough := errors.New("enough")
	if err := with(t.Context(), func(*engine.Result) (bool, error) { return true, enough }); !errors.Is(err, enough) {
		t.Errorf("the caller's error became %v", err)
	}
	count := 0
	err := with(t.Context(), func(got *engine.Result) (bool, error) { count++; return got.Chosen, nil })
	if err != nil || count != 1 {
		t.Errorf("ended with an output of the prompt: %v after %d results", err, count)
	}
	left := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(t.Context())
	count = 0
	err = with(ctx, func(*engine.Result) (bool, error) { count++; cancel(left); return true, nil })
	if !errors.Is(err, left) || !errors.Is(err, context.Canceled) || count != 1 {
		t.Errorf("cancelled with the first result: %v after %d", err, count)
	}
	count = 0
	if err := with(ctx, func(*engine.Result) (bool, error) { count++; return true, nil }); !errors.Is(err, left) || count != 0 {
		t.Errorf("cancelled before: %v after %d", err, count)
	}
	refused := errors.New("no mask")
	var asked, given []int
	rule := masking(func(_ int, chosen []int32, mask []uint32) error {
		asked = append(asked, len(chosen))
		if mask[0] = 3; len(chosen) == 2 {
			return refused
		}
		return nil
	})
	_, err = e.Run(t.Context(), &engine.Request{Prompt: tokens(2, 1), Tokens: 30, Constrain: rule.by}, func(got *engine.Result) (bool, error) {
		given = append(given, got.Index)
		return true, nil
	})
	if !errors.Is(err, refused) || !slices.Equal(asked, []int{0, 1, 2}) || !slices.Equal(given, []int{0, 1}) {
		t.Errorf("a constraint's error became %v, after %v and the results %v", err, asked, given)
	}
	rule = func(_ int, chosen []int32, mask []uint32) error {
		if mask[0] = 3; len(chosen) == 2 {
			panic("a constraint's")
		}
		return nil
	}
	_, err = e.Run(t.Context(), &engine.Request{Prompt: tokens(2, 1), Tokens: 30, Constrain: rule.by}, func(*engine.Result) (bool, error) { return true, nil })
	if err == nil || !strings.Contains(err.Error(), "a constraint's") {
		t.Errorf("a constraint's panic became %v", err)
	}
	count = 0
	err = with(t.Context(), func(*engine.Result) (bool, error) {
		count++
		return true, e.Close()
	})
	if !errors.Is(err, engine.ErrClosed) || count != 1 {
		t.Errorf("closed with the first result: %v after %d", err, count)
	}
	if err := with(t.Context(), nil); !errors.Is(err, engine.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := e.Check(); err != nil {
		t.Error(err)
	}
}

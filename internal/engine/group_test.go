package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A herd is a group of engines on fakes, whose steps take a millisecond.
type herd struct {
	t       *testing.T
	model   *hashModel
	group   *engine.Group
	engines []*engine.Engine
	lost    []atomic.Bool // by engine: its device loses all steps

	mu     sync.Mutex
	rng    *rand.Rand
	events []string // engines that failed and came back
}

func newHerd(t *testing.T, n int, c engine.Config, layers ...int) *herd {
	h := &herd{t: t, model: &hashModel{windows: layers}, lost: make([]atomic.Bool, n), rng: rand.New(rand.NewPCG(1, 2))}
	c.Cache = tensor.F32
	for i := range n {
		f := &fake{
			model: h.model, broken: t.Errorf, rng: rand.New(rand.NewPCG(3, uint64(i))), room: 1 << 20,
			pause: func(_ int, hurry <-chan struct{}) {
				select {
				case <-time.After(time.Millisecond):
				case <-hurry:
				}
			},
			lose: func(*plan.Batch) bool { return h.lost[i].Load() },
		}
		e, err := engine.New(t.Context(), h.model.program(), f, c, nil)
		if err != nil {
			t.Fatal(err)
		}
		f.verify = e.Check
		h.engines = append(h.engines, e)
	}
	h.group = engine.NewGroup(h.engines, func(i int, out bool) { h.events = append(h.events, fmt.Sprint(i, out)) })
	return h
}

func (h *herd) close() {
	if err := h.group.Close(); err != nil {
		h.t.Error(err)
	}
}

// request returns a request for n tokens after first and some others, whose values are finite.
func (h *herd) request(n int, first []int32, others int) *engine.Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		r := &engine.Request{Prompt: append(first[:len(first):len(first)], ids(h.rng, others)...), Tokens: n}
		if !h.model.expect(r, nil).damaged {
			return r
		}
	}
}

// run runs r and checks its tokens.
func (h *herd) run(ctx context.Context, r *engine.Request) (engine.Stats, error) {
	want, n := h.model.expect(r, nil), 0
	stats, err := h.group.Run(ctx, r, func(got *engine.Result) (bool, error) {
		if d := want.differs(r, got, n); d != "" {
			h.t.Errorf("result %d after %d tokens: %s", n, len(r.Prompt), d)
		}
		n++
		return true, nil
	})
	if errors.Is(err, errDamaged) { // by a token of the answer
		err = nil
	}
	return stats, err
}

// beginning returns n tokens whose values are finite.
func (h *herd) beginning(n int) []int32 { return h.request(0, nil, n).Prompt }

// waits returns how many answers each engine has.
func (h *herd) waits() (n []int) {
	for _, m := range h.group.Metrics() {
		n = append(n, m.Running+m.Waiting)
	}
	return n
}

// steps returns how many steps each engine has run.
func (h *herd) steps() (n []uint64) {
	for _, m := range h.group.Metrics() {
		n = append(n, m.Steps)
	}
	return n
}

// Requests that share nothing are divided evenly, on their way to the queues as well.
func TestGroupDivides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerd(t, 4, engine.Config{Context: 256, Parallel: 2}, 0)
		defer h.close()
		var all sync.WaitGroup
		for range 32 {
			r := h.request(40, nil, 50)
			all.Go(func() {
				if _, err := h.run(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		for i, n := range h.waits() {
			if n != 8 {
				t.Errorf("engine %d has %d of 32 answers", i, n)
			}
		}
		all.Wait()
	})
}

// Requests with a common beginning find it in the engine that has it, beside other requests.
func TestGroupFindsBeginnings(t *testing.T) {
	for name, layers := range map[string][]int{"attention": {0}, "windows": {0, 64}, "recurrent": {delta, 0}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHerd(t, 2, engine.Config{Context: 512, Parallel: 8}, layers...)
				defer h.close()
				const beginnings, clients, each = 12, 12, 40
				var first [beginnings][]int32
				for i := range first {
					first[i] = h.beginning(256)
				}
				var found, asked atomic.Int32
				var all sync.WaitGroup
				for c := range clients {
					rng := rand.New(rand.NewPCG(5, uint64(c)))
					all.Go(func() {
						for range each {
							stats, err := h.run(t.Context(), h.request(1+rng.IntN(30), first[rng.IntN(beginnings)], 1+rng.IntN(40)))
							if err != nil {
								t.Error(err)
							}
							asked.Add(1)
							if stats.Cached >= 192 {
								found.Add(1)
							}
						}
					})
				}
				all.Wait()
				// The first request with each beginning cannot find it.
				if n := asked.Load() - beginnings; found.Load() < n*95/100 {
					t.Errorf("%d of %d requests have found their beginning", found.Load(), n)
				}
				if n := h.steps(); n[0] < n[1]/2 || n[1] < n[0]/2 {
					t.Errorf("the engines have run %d steps", n)
				}
			})
		})
	}
}

// A shared beginning is computed again elsewhere if the engine that has it has much more to do.
func TestGroupSpreadsBeginning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerd(t, 2, engine.Config{Context: 512, Parallel: 64}, 0)
		defer h.close()
		first := h.beginning(128)
		if _, err := h.run(t.Context(), h.request(1, first, 1)); err != nil {
			t.Fatal(err)
		}
		var all sync.WaitGroup
		for range 40 {
			r := h.request(100, first, 10)
			all.Go(func() {
				if _, err := h.run(t.Context(), r); err != nil {
					t.Error(err)
				}
			})
		}
		synctest.Wait()
		if n := h.waits(); n[0]+n[1] != 40 || min(n[0], n[1]) < 15 {
			t.Errorf("the engines have %d answers", n)
		}
		all.Wait()
	})
}

// A request that waits moves to an engine that has a place.
func TestGroupMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerd(t, 2, engine.Config{Context: 512, Parallel: 1}, 0)
		defer h.close()
		ended := make(chan string, 4)
		start := func(name string, tokens int) {
			r := h.request(tokens, nil, 40)
			go func() {
				stats, err := h.run(t.Context(), r)
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if name == "waits" && stats.Queue < 20*time.Millisecond {
					t.Errorf("a request that has moved has waited %v", stats.Queue)
				}
				ended <- name
			}()
			synctest.Wait()
		}
		start("long", 400)
		start("short", 20)
		start("next", 100) // behind the short one
		start("waits", 10) // behind the long one
		if n := h.waits(); n[0] != 2 || n[1] != 2 {
			t.Fatalf("the engines have %d answers", n)
		}
		for _, want := range []string{"short", "next", "waits", "long"} {
			if got := <-ended; got != want {
				t.Errorf("%s has ended, want %s", got, want)
			}
		}
		for i, m := range h.group.Metrics() {
			if n := m.Ended[engine.EndedByLength]; n != []uint64{1, 3}[i] || len(m.Ended) != 1 {
				t.Errorf("engine %d: answers ended %v", i, m.Ended)
			}
		}
	})
}

// A request ends with its context, wherever it waits, and its room goes to others.
func TestGroupCancels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerd(t, 2, engine.Config{Context: 512, Parallel: 1}, 0)
		left := errors.New("the caller has left")
		var all sync.WaitGroup
		for i := range 40 {
			ctx, cancel := context.WithCancelCause(t.Context())
			r := h.request(20+i, nil, 40)
			all.Go(func() {
				if _, err := h.run(ctx, r); i%2 == 0 && err != nil || i%2 == 1 && !errors.Is(err, left) {
					t.Errorf("request %d: %v", i, err)
				}
			})
			if i%2 == 1 {
				time.AfterFunc(time.Duration(i)*5*time.Millisecond/10, func() { cancel(left) })
			} else {
				defer cancel(nil)
			}
		}
		all.Wait()
		if n := h.waits(); n[0]+n[1] != 0 {
			t.Errorf("the engines have %d answers", n)
		}
		for range 6 {
			r := h.request(20, nil, 40)
			all.Go(func() {
				if _, err := h.run(t.Context(), r); !errors.Is(err, engine.ErrClosed) {
					t.Errorf("a request of a closed group: %v", err)
				}
			})
		}
		synctest.Wait()
		h.close()
		all.Wait()
	})
}

// If a device is lost, the requests that run on it end with an error, and all others run elsewhere.
// The engine comes back when it has run a step.
func TestGroupLosesOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerd(t, 2, engine.Config{Context: 512, Parallel: 2}, 0)
		defer h.close()
		var failed, worked atomic.Int32
		var all sync.WaitGroup
		ask := func(n int) {
			for range n {
				r := h.request(40, nil, 40)
				all.Go(func() {
					_, err := h.run(t.Context(), r)
					switch {
					case err == nil:
						worked.Add(1)
					case errors.Is(err, errLost):
						failed.Add(1)
					default:
						t.Error(err)
					}
				})
			}
		}
		ask(20)
		time.Sleep(10 * time.Millisecond)
		h.lost[0].Store(true)
		all.Wait()
		if failed.Load() != 2 || worked.Load() != 18 {
			t.Errorf("%d requests have failed, %d not; two ran on the lost device", failed.Load(), worked.Load())
		}
		ask(20)
		all.Wait()
		if failed.Load() != 2 {
			t.Errorf("%d requests went to the lost device", failed.Load()-2)
		}
		if m := h.group.Metrics(); !m[0].Failed || m[1].Failed {
			t.Errorf("failed are %v and %v", m[0].Failed, m[1].Failed)
		}
		time.Sleep(10 * time.Second)
		before := h.steps()
		h.lost[0].Store(false)
		time.Sleep(time.Minute)
		synctest.Wait()
		ask(20)
		all.Wait()
		if n := h.steps(); failed.Load() != 2 || n[0]-before[0] < 40 {
			t.Errorf("%d requests have failed; after its return the engine has run %d steps", failed.Load(), n[0]-before[0])
		}
		if got := fmt.Sprint(h.events); got != "[0 true 0 false]" {
			t.Errorf("events %s", got)
		}
	})
}

// If all devices are lost, requests end with the error.
func TestGroupLosesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHerd(t, 2, engine.Config{Context: 512, Parallel: 2}, 0)
		defer h.close()
		for i := range h.lost {
			h.lost[i].Store(true)
		}
		var all sync.WaitGroup
		for range 10 {
			r := h.request(40, nil, 40)
			all.Go(func() {
				if _, err := h.run(t.Context(), r); !errors.Is(err, errLost) {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for i := range h.lost {
			h.lost[i].Store(false)
		}
		time.Sleep(2 * time.Minute)
		if _, err := h.run(t.Context(), h.request(40, nil, 40)); err != nil {
			t.Error(err)
		}
	})
}

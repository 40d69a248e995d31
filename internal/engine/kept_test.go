package engine_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// openKept opens p on b and returns the function that closes it.
func openKept(t *testing.T, b plan.Backend, p *plan.Program, c engine.Config) (e *engine.Engine, shut func()) {
	t.Helper()
	index := &cacheIndex{pages: map[cachedPage]bool{}}
	c.Events = index.apply
	e, err := engine.New(t.Context(), p, b, c, nil)
	if err == nil {
		err = index.equals(e)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e, func() {
		t.Helper()
		if err := index.equals(e); err != nil {
			t.Error(err)
		}
		if err := e.Check(); err != nil {
			t.Error(err)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A prefix is found, with the same bits, after an engine was closed and another one opened, several
// times. Nothing is found of another program or arithmetic.
func TestKept(t *testing.T) {
	onBackends(t, func(t *testing.T, b plan.Backend) {
		p := plantest.Model(t, nil)
		kept := new(engine.Kept)
		c := engine.Config{Context: 400, Parallel: 2, Cache: tensor.F16, Host: 64 << 20, Kept: kept}
		o := newOracle(t, b, p, c.Context, c)
		prompt := tokens(200, 7)
		ask1 := func(e *engine.Engine, prompt []int32, salt string, cached int) {
			t.Helper()
			r := &engine.Request{Prompt: prompt, Tokens: 5, Salt: salt, Sampling: sample.Params{Temperature: 2, Seed: 5}}
			a, err := ask(t.Context(), e, r, nil)
			if err == nil {
				err = o.differs(r, a)
			}
			if err != nil || a.stats.Cached != cached {
				t.Errorf("%v: %d tokens are found, want %d", err, a.stats.Cached, cached)
			}
		}
		e, shut := openKept(t, b, p, c)
		ask1(e, prompt, "", 0)
		ask1(e, prompt[:100], "mine", 0)
		shut()
		if kept.Bytes() == 0 {
			t.Fatal("nothing is kept")
		}
		for i := range 3 {
			e, shut = openKept(t, b, p, c)
			if n := kept.Bytes(); n != 0 {
				t.Errorf("%d bytes are still kept", n)
			}
			ask1(e, slices.Concat(prompt[:150], tokens(20, 11+i)), "", 128)
			ask1(e, prompt, "", 192)
			ask1(e, prompt[:100], "mine", 96)
			shut()
		}
		e, shut = openKept(t, b, p, c)
		ask1(e, prompt[:100], "yours", 0)
		shut()
		kept.Clear()
		e, shut = openKept(t, b, p, c)
		ask1(e, prompt, "", 0)
		shut()
		other := c
		other.Cache = tensor.F32
		e, shut = openKept(t, b, p, other)
		a, err := ask(t.Context(), e, &engine.Request{Prompt: prompt, Tokens: 1}, nil)
		if err != nil || a.stats.Cached != 0 {
			t.Errorf("%v: %d tokens of another arithmetic are found", err, a.stats.Cached)
		}
		shut()
	})
}

// If there is less room, the most recently used pages are kept; states per sequence are kept, too.
func TestKeptRoom(t *testing.T) {
	for _, windows := range [][]int{{0, recurrent}, {0, delta, recurrent}} {
		keptRoom(t, &hashModel{windows: windows})
	}
}

func keptRoom(t *testing.T, m *hashModel) {
	const all = 576 + 576 + 512
	kept := new(engine.Kept)
	bytes := 0
	for i, room := range []int{1 << 20, 1 << 20, 8 << 10, 0} {
		c := engine.Config{Context: 700, Parallel: 3, Host: room, Kept: kept}
		scripting(t, c, m, func(s *script) {
			found := 0
			for n := range 3 {
				again := s.ask(600-20*n, 1, nil, nil)
				s.until(again, 20)
				s.done(again, 1)
				found += again.stats.Cached
			}
			if want := i > 0; found > all || (i == 1) != (found == all) && i < 2 || !want && found > 512 {
				t.Errorf("%d: %d tokens are found", i, found)
			}
		})
		if n := kept.Bytes(); n > room || i == 0 && n == 0 {
			t.Errorf("%d: %d bytes are kept of %d", i, n, room)
		}
		bytes = max(bytes, kept.Bytes())
	}
	t.Logf("at most %d bytes", bytes)
}

// The answers of engines that follow each other, with too few pages that are kept, equal bit for
// bit those of the model to each request alone.
func TestKeptAnswers(t *testing.T) {
	onBackends(t, func(t *testing.T, b plan.Backend) {
		p := plantest.Model(t, nil)
		c := engine.Config{Context: 500, Parallel: 6, States: 1, Cache: tensor.Q8_0, Kept: new(engine.Kept)}
		o := newOracle(t, b, p, c.Context+60, c)
		rng := rand.New(rand.NewPCG(5, 5))
		all := requests(rng, 16, c.Context)
		for round, room := range []int{1 << 20, 1 << 18, 1 << 20, 1 << 16} {
			c.Host = room
			e, shut := openKept(t, b, p, c)
			var working sync.WaitGroup
			for _, i := range rng.Perm(len(all))[:8] {
				working.Go(func() {
					a, err := ask(t.Context(), e, all[i], nil)
					if err == nil {
						err = o.differs(all[i], a)
					}
					if err != nil {
						t.Errorf("round %d, request %d: %v", round, i, err)
					}
				})
			}
			working.Wait()
			if m := e.Metrics(); round > 0 && m.CacheHits == 0 {
				t.Errorf("round %d: nothing is found: %+v", round, m)
			}
			shut()
			if n := c.Kept.Bytes(); n > room {
				t.Errorf("round %d: %d bytes are kept in %d", round, n, room)
			}
		}
	})
}

package pool_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/pool"
)

// bubble runs f with a clock of its own.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func TestOneLoadForAll(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 2}, nil)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() { b.use([]string{"a", "aa"}[i%2], time.Minute) })
		}
		synctest.Wait()
		b.want("a absent") // its need is being estimated
		time.Sleep(time.Millisecond)
		synctest.Wait()
		b.want("a loading")
		if s := b.pool.Models()[0]; s.Waiting != 20 || s.Holds != 0 || s.Need["cpu"] != 2<<30 {
			t.Errorf("%+v", s)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		b.want("a ready")
		if s := b.pool.Models()[0]; s.Waiting != 0 || s.Holds != 20 || s.Counts.Loads != 1 || s.Counts.LoadTime != time.Second {
			t.Errorf("%+v", s)
		}
		all.Wait()
		if s := b.pool.Models()[0]; s.Holds != 0 || s.State != pool.Ready || len(b.begun) != 1 {
			t.Errorf("%+v, loads %v", s, b.begun)
		}
		b.close()
		b.want("a absent")
		if _, err := b.pool.Acquire(t.Context(), "a"); !errors.Is(err, pool.ErrClosed) {
			t.Error(err)
		}
	})
}

func TestUnknown(t *testing.T) {
	b := newBench(t, 4, map[string]int64{"a": 2, "b": 2}, nil)
	var unknown *pool.UnknownError
	_, err := b.pool.Acquire(t.Context(), "gpt")
	if !errors.As(err, &unknown) || err.Error() != `model "gpt" not found; the models are ["a" "b"]` {
		t.Error(err)
	}
	if err := b.pool.Unload(t.Context(), "gpt"); !errors.As(err, &unknown) {
		t.Error(err)
	}
}

// TestEviction: of those that are idle the one goes that was idle the longest by the time it
// takes to load, and no more than it takes.
func TestEviction(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 8, map[string]int64{"a": 3, "b": 3, "c": 1, "d": 2, "e": 5}, func(_ *pool.Config[*model], l *loader) {
			l.loading = func(name string) time.Duration {
				if name == "a" {
					return 10 * time.Second
				}
				return time.Second
			}
		})
		for _, name := range []string{"a", "b", "c"} {
			b.use(name, 0)
			time.Sleep(time.Second)
		}
		b.use("d", 0) // b was idle for a shorter time than a, and is loaded sooner
		b.want("a ready, b absent, c ready, d ready, e absent")
		time.Sleep(time.Hour)
		b.use("a", 0)
		time.Sleep(time.Minute)
		b.use("c", 0)
		// 2 GiB are free. d, which goes first, is not enough, and a is without d's.
		b.use("e", 0)
		b.want("a absent, b absent, c ready, d ready, e ready")
		list, _ := b.pool.Events(0)
		var why []string
		for _, e := range list {
			if e.State == pool.Draining {
				why = append(why, e.Model+": "+e.Why)
			}
		}
		if got := strings.Join(why, ", "); got != "b: d needs its memory, a: e needs its memory" {
			t.Error(got)
		}
		if s := b.pool.Models()[1]; s.Counts.Evictions != 1 {
			t.Errorf("%+v", s)
		}
		b.close()
	})
}

// TestPinned: what is pinned gives way to none, however long it was idle.
func TestPinned(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 2, "b": 2, "c": 2}, func(c *pool.Config[*model], _ *loader) { c.Models[0].Pinned = true })
		b.use("a", 0)
		time.Sleep(time.Hour)
		b.use("b", 0)
		b.use("c", 0)
		b.want("a ready, b absent, c ready")
		b.close()
	})
}

// TestInUse: what is in use is not evicted; after its time it takes no more requests, and the
// first that waits has its place when it is idle.
func TestInUse(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 3, "b": 3}, func(c *pool.Config[*model], _ *loader) { c.Stay = time.Minute })
		first := b.get("a")
		var all sync.WaitGroup
		all.Go(func() { b.use("b", time.Second) })
		time.Sleep(30 * time.Second)
		b.want("a ready, b absent")
		b.use("a", time.Second) // it has not stayed for a minute
		time.Sleep(31 * time.Second)
		b.want("a draining, b absent")
		all.Go(func() { b.use("a", 0) })
		time.Sleep(time.Hour)
		if b.want("a draining, b absent"); first.Model.closed.Load() {
			t.Error("a is closed while it is held")
		}
		first.Release()
		first.Release()
		time.Sleep(1500 * time.Millisecond)
		b.want("a absent, b ready")
		all.Wait()
		b.want("a ready, b absent")
		if got := strings.Join(b.begun, ""); got != "aba" {
			t.Error(got)
		}
		b.close()
	})
}

// TestOrder: models that wait are loaded in the order in which they were asked for, and a
// small one takes no memory from a large one before it. On another device it does not wait.
func TestOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 3, "b": 4, "c": 1, "d": 0}, func(c *pool.Config[*model], l *loader) {
			l.limits["gpu"], l.needs["d"] = 5, pool.Need{"gpu": 5}
			c.Stay = time.Hour
		})
		held := b.get("a")
		var all sync.WaitGroup
		for _, name := range []string{"b", "c", "d"} {
			all.Go(func() { b.use(name, time.Second) })
			time.Sleep(10 * time.Millisecond)
		}
		time.Sleep(time.Minute)
		b.want("a ready, b absent, c absent, d ready")
		held.Release()
		all.Wait()
		if got := strings.Join(b.begun, ""); got != "adbc" {
			t.Error(got)
		}
		b.close()
	})
}

// TestLeaving: who leaves takes its load out of the queue, and what waited behind it goes on.
func TestLeaving(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 3, "b": 4, "c": 1}, func(c *pool.Config[*model], _ *loader) { c.Stay = time.Hour })
		held := b.get("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := b.pool.Acquire(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		})
		time.Sleep(10 * time.Millisecond)
		all.Go(func() { b.use("c", 0) })
		all.Wait()
		b.want("a ready, b absent, c ready")
		held.Release()
		// Nobody waits any longer for what is estimated, or loaded: the load goes on.
		for _, d := range []time.Duration{time.Microsecond, 500 * time.Millisecond} {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			if _, err := b.pool.Acquire(ctx, "b"); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			cancel()
		}
		time.Sleep(time.Minute)
		b.want("a absent, b ready, c absent")
		b.close()
	})
}

func TestRefusals(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 3, "b": 2, "c": 5}, func(c *pool.Config[*model], _ *loader) {
			c.MaxWait, c.MaxWaiting, c.Stay = time.Minute, 2, time.Hour
			c.Models[0].Pinned = true
		})
		refused := func(name, says string) {
			t.Helper()
			if _, err := b.pool.Acquire(t.Context(), name); err == nil || err.Error() != says {
				t.Errorf("%v; want %s", err, says)
			}
		}
		refused("c", `model "c" needs 5.0 GiB of cpu, and all models together may take 4.0 GiB; give it a smaller context, or give the models more memory`)
		held := b.get("b")
		var all sync.WaitGroup
		for range 2 {
			all.Go(func() {
				refused("a", `model "a" waited 1m0s for 3.0 GiB of cpu; models have 2.0 GiB of 4.0 GiB, in use or promised to others; ask again later`)
			})
		}
		synctest.Wait()
		refused("a", `2 requests wait for models to be loaded, and no more than 2 may; ask again later for "a", or for a model that is ready`)
		b.use("b", 0) // it need not wait
		all.Wait()
		held.Release()
		b.use("a", 0)
		b.want("a ready, b absent, c absent")
		refused("b", `model "b" needs 2.0 GiB of cpu, and pinned models leave 1.0 GiB of 4.0 GiB; unload one of them, or give it a smaller context`)
		if err := b.pool.Unload(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		b.use("b", 0)
		b.close()
	})
}

// TestFailed: a model that is damaged is left alone for a while, twice as long each time, and
// then tried again; a load that is asked for is tried at once.
func TestFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		failing := errDamaged
		b := newBench(t, 4, map[string]int64{"a": 3}, func(_ *pool.Config[*model], l *loader) {
			l.fail = func(string) error { return failing }
		})
		for i, wait := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second} {
			for range 2 {
				var failed *pool.LoadError
				if _, err := b.pool.Acquire(t.Context(), "a"); !errors.Is(err, errDamaged) || !errors.As(err, &failed) || failed.Again != wait {
					t.Error(err)
				}
				b.want("a failed")
				if len(b.begun) != i+1 {
					t.Errorf("%d loads after %d", len(b.begun), i+1)
				}
			}
			time.Sleep(wait)
		}
		failing = errPanic
		var failed *pool.LoadError
		if _, err := b.pool.Acquire(t.Context(), "a"); !errors.As(err, &failed) || !strings.Contains(err.Error(), "panic: index out of range") {
			t.Error(err)
		}
		if s := b.pool.Models()[0]; s.Err == nil || s.Counts.Failures != 4 {
			t.Errorf("%+v", s)
		}
		failing = nil
		if err := b.pool.Load(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		if b.want("a ready"); b.pool.Models()[0].Err != nil {
			t.Error(b.pool.Models()[0].Err)
		}
		b.close()
	})
}

// TestEstimates: what cannot be estimated, or makes no sense, fails the model alone.
func TestEstimates(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 1, "b": -1, "c": 1, "d": 1}, func(_ *pool.Config[*model], l *loader) {
			l.needs["c"] = pool.Need{"gpu": 1}
			l.unknown = func(name string) error {
				if name == "d" {
					return errDamaged
				}
				return nil
			}
		})
		for name, says := range map[string]string{
			"b": "-1073741824 bytes of cpu", "c": `1 bytes of gpu; the devices are ["cpu"]`, "d": errDamaged.Error(),
		} {
			if _, err := b.pool.Acquire(t.Context(), name); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", name, err)
			}
		}
		b.use("a", 0)
		b.want("a ready, b failed, c failed, d failed")
		b.close()
	})
}

// TestTTL: what is idle for its time goes, whatever the time is by the model or by who used it
// last; what is pinned stays.
func TestTTL(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 8, map[string]int64{"a": 1, "b": 1, "c": 1}, func(c *pool.Config[*model], _ *loader) {
			c.Models[0].TTL = time.Minute
			c.Models[2].TTL, c.Models[2].Pinned = time.Minute, true
		})
		for _, name := range []string{"a", "b", "c"} {
			b.use(name, 0)
		}
		time.Sleep(30 * time.Second)
		b.use("a", time.Hour)
		time.Sleep(time.Minute - time.Nanosecond)
		b.want("a ready, b ready, c ready")
		time.Sleep(time.Second)
		b.want("a absent, b ready, c ready")
		for _, d := range []time.Duration{time.Hour, -1, 0} {
			h := b.get("a")
			h.KeepAlive(d)
			h.Release()
			if expires := b.pool.Models()[0].Expires; d > 0 != time.Now().Add(d).Equal(expires) {
				t.Errorf("kept for %v: expires %v", d, expires)
			}
			time.Sleep(time.Minute)
			if d != 0 {
				b.want("a ready, b ready, c ready")
				continue
			}
			b.want("a absent, b ready, c ready")
		}
		b.use("a", 0)
		time.Sleep(61 * time.Second) // what a request said is forgotten
		b.want("a absent, b ready, c ready")
		b.close()
	})
}

// TestLook: what is looked at is there until it is released, and as idle as it was.
func TestLook(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 3, "b": 3}, func(c *pool.Config[*model], _ *loader) { c.Models[0].TTL = time.Minute })
		if _, ok := b.pool.Look("a"); ok {
			t.Error("a is not there")
		}
		b.use("a", 0)
		time.Sleep(30 * time.Second)
		h, ok := b.pool.Look("aa")
		if !ok || h.Name != "a" || b.pool.Models()[0].Holds != 0 {
			t.Errorf("%+v, %v", h, ok)
		}
		h.KeepAlive(time.Hour)
		time.Sleep(31 * time.Second)
		if b.want("a draining, b absent"); h.Model.closed.Load() {
			t.Error("a is closed while somebody looks at it")
		}
		h.Release()
		h.Release()
		time.Sleep(time.Second)
		b.want("a absent, b absent")
		b.use("a", 0)
		h, _ = b.pool.Look("a")
		h.Release()
		b.use("b", 0) // a has its place no longer
		b.want("a absent, b ready")
		b.close()
	})
}

// TestUnload: a model in use goes when it is idle; a load is ended; another asks for it again.
func TestUnload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 3}, nil)
		if err := b.pool.Unload(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		var all sync.WaitGroup
		all.Go(func() {
			if _, err := b.pool.Acquire(t.Context(), "a"); !errors.Is(err, pool.ErrUnloaded) {
				t.Error(err)
			}
		})
		time.Sleep(500 * time.Millisecond)
		if err := b.pool.Unload(t.Context(), "a"); err != nil {
			t.Error(err)
		}
		all.Wait()
		b.want("a absent")
		h := b.get("a")
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := b.pool.Unload(ctx, "aa"); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		b.want("a draining")
		all.Go(func() { b.use("a", 0) })
		time.Sleep(time.Second)
		h.KeepAlive(time.Hour)
		h.Release()
		all.Wait()
		b.want("a ready")
		b.close()
	})
}

// TestClosing: closing waits for those who hold models, and refuses who waits.
func TestClosing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 2, "b": 2, "c": 2}, func(c *pool.Config[*model], l *loader) {
			c.Stay = time.Hour
			l.stuck = true
		})
		h := b.get("a")
		var all sync.WaitGroup
		for _, name := range []string{"b", "c"} { // one is loaded, one waits for memory
			all.Go(func() {
				if _, err := b.pool.Acquire(t.Context(), name); !errors.Is(err, pool.ErrClosed) {
					t.Error(err)
				}
			})
		}
		time.Sleep(500 * time.Millisecond)
		all.Go(func() {
			time.Sleep(time.Hour)
			h.Release()
		})
		begun := time.Now()
		if err := b.pool.Close(); !errors.Is(err, errStuck) || time.Since(begun) < time.Hour {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
		all.Wait()
		b.want("a absent, b absent, c absent")
	})
}

func TestEvents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 4, map[string]int64{"a": 3}, nil)
		list, more := b.pool.Events(0)
		if len(list) != 0 {
			t.Error(list)
		}
		h := b.get("a")
		<-more
		h.KeepAlive(0)
		h.Release()
		time.Sleep(time.Second)
		list, _ = b.pool.Events(0)
		var said []string
		for i, e := range list {
			said = append(said, e.State.String())
			if e.Number != uint64(i+1) || e.Model != "a" {
				t.Errorf("%+v", e)
			}
		}
		if got := strings.Join(said, " "); got != "loading ready draining absent" {
			t.Error(got)
		}
		if list, _ = b.pool.Events(3); len(list) != 1 || list[0].State != pool.Absent {
			t.Error(list)
		}
		for range 100 {
			if err := errors.Join(b.pool.Load(t.Context(), "a"), b.pool.Unload(t.Context(), "a")); err != nil {
				t.Fatal(err)
			}
		}
		if list, _ = b.pool.Events(4); len(list) != 256 || list[255].Number != 404 {
			t.Errorf("%d events", len(list))
		}
		b.close()
	})
}

func TestConfig(t *testing.T) {
	good := func() pool.Config[*model] {
		return pool.Config[*model]{Models: []pool.Spec{{Name: "a"}, {Name: "b"}}, Loader: &loader{}, MaxWaiting: 1}
	}
	for says, change := range map[string]func(*pool.Config[*model]){
		"there is no loader":               func(c *pool.Config[*model]) { c.Loader = nil },
		"the name of a model is empty":     func(c *pool.Config[*model]) { c.Models[0].Name = " " },
		`two models are called "b"`:        func(c *pool.Config[*model]) { c.Models[0].Aliases = []string{"b"} },
		"a TTL of -1s of model":            func(c *pool.Config[*model]) { c.Models[1].TTL = -time.Second },
		"a limit of -1 bytes of cpu":       func(c *pool.Config[*model]) { c.Limits = pool.Need{"cpu": -1} },
		"models in use are to stay for -1": func(c *pool.Config[*model]) { c.Stay = -time.Second },
		"0 may wait for models":            func(c *pool.Config[*model]) { c.MaxWaiting = 0 },
		"a longest wait of -1s":            func(c *pool.Config[*model]) { c.MaxWait = -time.Second },
	} {
		c := good()
		change(&c)
		if _, err := pool.New(c); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v; want %s", err, says)
		}
	}
	if _, err := pool.New(good()); err != nil {
		t.Error(err)
	}
}

package pool_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/pool"
)

// set replaces the list of models by those of these names, each with that version.
func (b *bench) set(version string, names ...string) {
	b.Helper()
	var models []pool.Spec
	for _, name := range names {
		models = append(models, pool.Spec{Name: name, Version: version})
	}
	if err := b.pool.Set(models, b.loader); err != nil {
		b.Error(err)
	}
}

// A model that both lists have stays loaded; one that the new list lacks is closed when the last
// hold is released, and is unknown at once.
func TestSet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 8, map[string]int64{"a": 2, "b": 2, "c": 2}, nil)
		a, h := b.get("a"), b.get("b")
		b.set("", "c", "a")
		b.want("c absent, a ready, b draining")
		var unknown *pool.UnknownError
		if _, err := b.pool.Acquire(t.Context(), "b"); !errors.As(err, &unknown) || !slices.Equal(unknown.Names, []string{"c", "a"}) {
			t.Error(err)
		}
		if _, err := b.pool.Acquire(t.Context(), "aa"); !errors.As(err, &unknown) {
			t.Errorf("an alias that is gone: %v", err)
		}
		if h.Model.closed.Load() {
			t.Error("b is closed while it is held")
		}
		h.Release()
		time.Sleep(time.Second)
		b.want("c absent, a ready")
		if used, _ := b.pool.Memory(); used["cpu"] != 2<<30 || !h.Model.closed.Load() {
			t.Errorf("%v", used)
		}
		a.Release()
		b.use("a", 0)
		if len(b.begun) != 2 {
			t.Errorf("loads %v", b.begun)
		}
		b.close()
	})
}

// A model comes back with the memory that it still has, and is loaded anew when that is free.
func TestSetBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 2, map[string]int64{"a": 2, "b": 2}, nil)
		h := b.get("a")
		b.set("", "b")
		b.set("", "b", "a")
		b.want("b absent, a draining")
		var all sync.WaitGroup
		all.Go(func() { b.use("a", 0) })
		time.Sleep(time.Minute)
		h.Release()
		all.Wait()
		b.want("b absent, a ready")
		if len(b.begun) != 2 {
			t.Errorf("loads %v", b.begun)
		}
		b.close()
	})
}

// A new version replaces the old one after use. Callers that wait for the old one get the new one,
// whether it is estimated, waits for memory, or is being loaded.
func TestSetVersion(t *testing.T) {
	for _, when := range []time.Duration{0, time.Second / 2, 2 * time.Second} {
		bubble(t, func(t *testing.T) {
			b := newBench(t, 2, map[string]int64{"a": 2, "b": 2}, nil)
			var all sync.WaitGroup
			all.Go(func() { b.use("b", time.Second/4) })
			time.Sleep(10 * time.Millisecond)
			old := b.loader
			var got *model
			all.Go(func() {
				h := b.get("a")
				got = h.Model
				h.Release()
			})
			synctest.Wait()
			time.Sleep(when)
			b.loader = newLoader(t, old.limits, old.needs)
			b.set("2", "a", "b")
			all.Wait()
			if when < 2*time.Second && got.loader != b.loader {
				t.Errorf("after %v: the model is the old one", when)
			}
			h := b.get("a")
			if h.Model.loader != b.loader {
				t.Errorf("after %v: a new hold is of the old model", when)
			}
			h.Release()
			b.close()
			b.loader = old
			b.close()
		})
	}
}

// A model that failed is tried at once when its version changes.
func TestSetFailed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 2, map[string]int64{"a": 2}, func(_ *pool.Config[*model], l *loader) {
			l.fail = func(string) error { return errDamaged }
		})
		var failed *pool.LoadError
		if _, err := b.pool.Acquire(t.Context(), "a"); !errors.As(err, &failed) {
			t.Fatal(err)
		}
		b.want("a failed")
		b.fail = nil
		b.set("", "a")
		if _, err := b.pool.Acquire(t.Context(), "a"); !errors.As(err, &failed) {
			t.Errorf("the same version: %v", err)
		}
		b.set("2", "a")
		b.want("a absent")
		b.use("a", 0)
		b.close()
	})
}

// TTL and Pinned apply to a model that is loaded.
func TestSetStay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		b := newBench(t, 2, map[string]int64{"a": 2}, nil)
		b.use("a", 0)
		stay := func(ttl time.Duration, pinned bool) {
			if err := b.pool.Set([]pool.Spec{{Name: "a", TTL: ttl, Pinned: pinned}}, b.loader); err != nil {
				t.Error(err)
			}
		}
		stay(time.Minute, false)
		stay(time.Minute, true)
		time.Sleep(time.Hour)
		b.want("a ready")
		stay(time.Minute, false)
		time.Sleep(time.Minute + time.Second)
		b.want("a absent")
		b.close()
	})
}

// A list with an error changes nothing.
func TestSetErrors(t *testing.T) {
	b := newBench(t, 2, map[string]int64{"a": 2}, nil)
	for _, models := range [][]pool.Spec{{{Name: "b"}, {Name: "b"}}, {{Name: ""}}, {{Name: "b", TTL: -1}}} {
		if err := b.pool.Set(models, b.loader); err == nil {
			t.Errorf("%+v is no error", models)
		}
	}
	b.want("a absent")
	b.close()
	if err := b.pool.Set([]pool.Spec{{Name: "a"}}, b.loader); !errors.Is(err, pool.ErrClosed) {
		t.Error(err)
	}
}

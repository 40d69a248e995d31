package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// holdings are the resources of a process that must not grow.
type holdings struct{ goroutines, files, used, host int }

// take measures the holdings once there are no more goroutines than expected: ending goroutines
// need a moment, and on a busy machine a long one.
func (h *holdings) take(e *engine.Engine, w *watched, expected int) {
	h.goroutines = runtime.NumGoroutine()
	for until := time.Now().Add(10 * time.Second); h.goroutines > expected && time.Now().Before(until); {
		runtime.Gosched()
		h.goroutines = min(h.goroutines, runtime.NumGoroutine())
	}
	files, _ := os.ReadDir("/proc/self/fd") // none where the system does not say
	h.files, h.used, h.host = len(files), 0, 0
	for _, group := range e.Metrics().Groups {
		h.used += group.Used
	}
	h.host = int(w.bytes.Load())
}

// Requests of all kinds arrive for as long as REALIZAR_ENGINE_LOAD says, with pools far too small
// for them and many callers that leave. Afterwards the holdings are as before.
func TestLoad(t *testing.T) {
	length := 2 * time.Second
	if s := os.Getenv("REALIZAR_ENGINE_LOAD"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatalf("REALIZAR_ENGINE_LOAD: %v", err)
		}
	}
	onBackends(t, func(t *testing.T, b plan.Backend) { underLoad(t, b, length) })
}

func underLoad(t *testing.T, b plan.Backend, length time.Duration) {
	p := plantest.Model(t, nil)
	w := &watched{Backend: b}
	c := engine.Config{Context: 500, Parallel: 6, States: 1, Host: 4 << 20, Cache: tensor.F16, Activations: w.Rounds()}
	o, e := newOracle(t, w.Backend, p, c.Context+60, c), open(t, w, p, c)
	idle := runtime.NumGoroutine()
	var served, left, compared atomic.Int64
	load := func(seed uint64, until time.Time) {
		var all sync.WaitGroup
		for i := range 12 {
			all.Go(func() {
				rng := rand.New(rand.NewPCG(seed, uint64(i)))
				for n := 0; time.Now().Before(until); n++ {
					for _, r := range requests(rng, 4, c.Context) {
						ctx, cancel := context.WithCancel(t.Context())
						if rng.IntN(4) == 0 {
							ctx, cancel = context.WithTimeout(t.Context(), time.Duration(rng.IntN(40))*time.Millisecond)
						}
						a, err := ask(ctx, e, r, nil)
						cancel()
						switch {
						case errors.Is(err, context.DeadlineExceeded):
							left.Add(1)
						case err != nil:
							t.Error(err)
						case rng.IntN(8) == 0:
							compared.Add(1)
							if err := o.differs(r, a); err != nil {
								t.Errorf("%d tokens after %d: %v", r.Tokens, len(r.Prompt), err)
							}
						}
						served.Add(1)
					}
					if err := e.Check(); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
	}
	load(1, time.Now().Add(length/8))
	var before, after holdings
	before.take(e, w, idle)
	heap := heapInUse()
	load(2, time.Now().Add(length-length/8))
	after.take(e, w, before.goroutines)
	if after.goroutines > before.goroutines || after.files > before.files || after.used != 0 || before.used != 0 || after.host > c.Host {
		t.Errorf("held after the load: %+v, before: %+v", after, before)
	}
	if now := heapInUse(); now > heap+heap/2+(8<<20) {
		t.Errorf("%d bytes of memory are in use, %d were before the load", now, heap)
	}
	if left.Load() == 0 || compared.Load() == 0 {
		t.Errorf("%d requests were left, %d compared: nothing is known of them", left.Load(), compared.Load())
	}
	m := e.Metrics()
	t.Logf("%v: %d requests, %d left, %d compared; %d steps, %d preemptions, %d evictions, %d saves, %d restores, %d tokens found of %d",
		length, served.Load(), left.Load(), compared.Load(), m.Steps, m.Preemptions, m.Evictions, m.Saves, m.Restores, m.CacheHits, m.CacheQueries)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if n := w.bytes.Load(); n != 0 {
		t.Errorf("%d bytes of the host's memory were not given back", n)
	}
}

// heapInUse returns the bytes of Go's heap in use after garbage collection.
func heapInUse() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

package realizar_test

import (
	"cmp"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// many runs requests for n tokens from several goroutines and calls each with every token.
func many(t testing.TB, m *realizar.Model, goroutines, n int, each func(i int)) {
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			request := &realizar.Request{PromptTokens: []int32{int32(i + 5), 7, 9}, Generation: realizar.Generation{MaxTokens: &n, IgnoreEnd: true}}
			for e, err := range m.Generate(t.Context(), request) {
				if err != nil {
					t.Error(err)
					return
				}
				for range e.Tokens {
					each(i)
				}
			}
		})
	}
	all.Wait()
}

// Sixteen concurrent requests progress at the same rate: when the first one is done, no other is
// far behind. Counting begins when all of them have a token.
func TestNobodyStarves(t *testing.T) {
	const goroutines, tokens = 16, 500
	m := open(t, realizar.Options{Parallel: goroutines}, modeltest.Context(1024))
	var counts [goroutines]atomic.Int64
	behind := atomic.Int64{}
	behind.Store(tokens)
	var begun sync.WaitGroup
	begun.Add(goroutines)
	many(t, m, goroutines, tokens, func(i int) {
		switch counts[i].Add(1) {
		case 1:
			begun.Done()
			begun.Wait()
			return
		case tokens:
		default:
			return
		}
		least := int64(tokens)
		for j := range counts {
			least = min(least, counts[j].Load())
		}
		behind.CompareAndSwap(tokens, least)
	})
	for i := range counts {
		if n := counts[i].Load(); n != tokens {
			t.Errorf("goroutine %d has %d of %d tokens", i, n, tokens)
		}
	}
	if n := behind.Load(); n < tokens/2 {
		t.Errorf("when one goroutine had all its %d tokens, another had %d", tokens, n)
	}
}

// This benchmark measures how late a ticker of one millisecond is while sixteen goroutines
// generate. REALIZAR_MODEL names the model; the default is a very small one.
func BenchmarkTickerBesideSixteen(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 2)) // as in the command
	o := realizar.Options{Parallel: 16, Context: 512}
	var m *realizar.Model
	if path := os.Getenv("REALIZAR_MODEL"); path != "" {
		var err error
		if m, err = realizar.Open(b.Context(), path, o); err != nil {
			b.Fatal(err)
		}
		defer m.Close()
	} else {
		m = open(b, o, modeltest.Context(1024))
	}
	for b.Loop() {
		done := make(chan struct{})
		var late []time.Duration
		var watched sync.WaitGroup
		watched.Go(func() {
			ticker := time.NewTicker(time.Millisecond)
			defer ticker.Stop()
			for {
				select {
				case at := <-ticker.C:
					late = append(late, time.Since(at))
				case <-done:
					return
				}
			}
		})
		var tokens atomic.Int64
		begun := time.Now()
		many(b, m, 16, 24, func(int) { tokens.Add(1) })
		took := time.Since(begun)
		close(done)
		watched.Wait()
		slices.SortFunc(late, cmp.Compare[time.Duration])
		if len(late) > 0 {
			b.ReportMetric(float64(late[len(late)*99/100].Microseconds()), "p99-µs")
			b.ReportMetric(float64(late[len(late)-1].Microseconds()), "max-µs")
		}
		b.ReportMetric(float64(tokens.Load())/took.Seconds(), "tok/s")
	}
}

package realizar_test

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
)

// This benchmark measures the tokens per second of one request and of sixteen. REALIZAR_MODEL names
// the model; the default is a very small one.
func BenchmarkStreams(b *testing.B) {
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
	for _, goroutines := range []int{1, 16} {
		b.Run(fmt.Sprint(goroutines), func(b *testing.B) {
			var tokens atomic.Int64
			begun := time.Now()
			for b.Loop() {
				many(b, m, goroutines, 48, func(int) { tokens.Add(1) })
			}
			b.ReportMetric(float64(tokens.Load())/time.Since(begun).Seconds(), "tok/s")
		})
	}
}

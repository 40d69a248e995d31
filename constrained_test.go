package realizar_test

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realizar/realizar"
)

// BenchmarkConstrained measures the tokens a second of streams whose answers a schema constrains,
// and of free ones. Log-probabilities are asked for, so that each token takes a step; "forced"
// does without, and reads text that is certain in one step. REALIZAR_MODEL names the model; without
// it, it is the demo.
func BenchmarkConstrained(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 2)) // as the command has it
	path := os.Getenv("REALIZAR_MODEL")
	if path == "" {
		path = "demo/demo.gguf"
	}
	m, err := realizar.Open(b.Context(), path, realizar.Options{Parallel: 64, Context: 512})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	g, err := realizar.JSONSchema([]byte(`{"type": "array", "minItems": 100, "items": {"type": "object", "properties": {
		"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 120}, "email": {"type": "string", "format": "email"},
		"tags": {"type": "array", "items": {"enum": ["new", "old", "paid"]}, "minItems": 1}}, "required": ["name", "age", "email", "tags"]}}`), realizar.JSONOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, streams := range []int{1, 8, 64} {
		for _, kind := range []struct {
			name     string
			grammar  *realizar.Grammar
			logProbs *int
		}{{"free", nil, new(0)}, {"constrained", g, new(0)}, {"forced", g, nil}} {
			b.Run(fmt.Sprint(kind.name, "/", streams), func(b *testing.B) {
				var tokens atomic.Int64
				begin := time.Now()
				for b.Loop() {
					var all sync.WaitGroup
					for i := range streams {
						all.Go(func() {
							r := realizar.Request{Prompt: fmt.Sprint(i, " List people as JSON."), Generation: realizar.Generation{
								Grammar: kind.grammar, IgnoreEnd: kind.grammar == nil, MaxTokens: new(128), LogProbs: kind.logProbs, Sampling: realizar.Sampling{Temperature: 1, Seed: uint64(i)}}}
							a, err := collect(m.Generate(b.Context(), &r))
							if err != nil {
								b.Error(err)
								return
							}
							tokens.Add(int64(a.finish.Usage.CompletionTokens))
						})
					}
					all.Wait()
				}
				b.ReportMetric(float64(tokens.Load())/time.Since(begin).Seconds(), "tok/s")
			})
		}
	}
}

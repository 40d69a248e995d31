package realizar_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realizar/realizar"
)

// BenchmarkConstrained measures streams whose answers a schema constrains against free ones: the
// median ratio of their tokens per second, in rounds that run one of each kind. All want
// log-probabilities, so that each token takes a step. "forced" wants none, and reads certain text in
// one step. REALIZAR_MODEL names the model; the default is the demo.
func BenchmarkConstrained(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU() + 2)) // as in the command
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
	kinds := []struct {
		name     string
		grammar  *realizar.Grammar
		logProbs *int
	}{{"free", nil, new(0)}, {"constrained", g, new(0)}, {"forced", g, nil}}
	for _, streams := range []int{1, 8, 64} {
		b.Run(fmt.Sprint(streams), func(b *testing.B) {
			rates := make([][]float64, len(kinds))
			for round := 0; b.Loop(); round++ {
				for i, kind := range kinds {
					var tokens atomic.Int64
					begun := time.Now()
					var all sync.WaitGroup
					for i := range streams {
						all.Go(func() {
							r := realizar.Request{Prompt: fmt.Sprint(i, " List people as JSON."), Generation: realizar.Generation{
								Grammar: kind.grammar, IgnoreEnd: kind.grammar == nil, MaxTokens: new(128), LogProbs: kind.logProbs, Sampling: realizar.Sampling{Temperature: 1, Seed: uint64(streams*round + i)}}}
							a, err := collect(m.Generate(b.Context(), &r))
							if err != nil {
								b.Error(err)
								return
							}
							tokens.Add(int64(a.finish.Usage.CompletionTokens))
						})
					}
					all.Wait()
					rates[i] = append(rates[i], float64(tokens.Load())/time.Since(begun).Seconds())
				}
			}
			free := rates[0]
			b.ReportMetric(median(free), "free-tok/s")
			for i, kind := range kinds[1:] {
				ratios := slices.Clone(rates[i+1])
				for n := range ratios {
					ratios[n] /= free[n]
				}
				b.ReportMetric(median(ratios), kind.name+"/free")
			}
		})
	}
}

// median returns the median of x.
func median(x []float64) float64 {
	return slices.Sorted(slices.Values(x))[len(x)/2]
}

package realizar_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar"
)

// This benchmark generates a tool call token by token, and with certain tokens forced in one step.
// REALIZAR_MODEL names the model. The weights of the demo fit the CPU's cache, so a step of many
// tokens takes as long as as many steps of one.
func BenchmarkForcedText(b *testing.B) {
	path := os.Getenv("REALIZAR_MODEL")
	if path == "" {
		path = "demo/demo.gguf"
	}
	m, err := realizar.Open(b.Context(), path, realizar.Options{Context: 1024})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close()
	g, err := realizar.JSONSchema([]byte(`{"type": "object", "properties": {
		"name": {"const": "get_current_weather"},
		"arguments": {"type": "object", "properties": {
			"location": {"enum": ["Oslo, Norway", "Rome, Italy", "Lima, Peru"]},
			"unit": {"enum": ["celsius", "fahrenheit"]},
			"days": {"type": "integer", "minimum": 1, "maximum": 9},
			"include_humidity": {"type": "boolean"}},
			"required": ["location", "unit", "days", "include_humidity"], "additionalProperties": false}},
		"required": ["name", "arguments"], "additionalProperties": false}`), realizar.JSONOptions{})
	if err != nil {
		b.Fatal(err)
	}
	prompt := strings.Repeat("What is the weather like? ", 8)
	for _, kind := range []struct {
		name     string
		grammar  *realizar.Grammar
		logProbs *int // if set, no token is forced
	}{{"forced", g, nil}, {"chosen", g, new(0)}, {"free", nil, new(0)}} {
		b.Run(kind.name, func(b *testing.B) {
			tokens, decode := 0, time.Duration(0)
			for i := 0; b.Loop(); i++ {
				r := realizar.Request{Prompt: fmt.Sprint(i, prompt), Generation: realizar.Generation{Grammar: kind.grammar, MaxTokens: new(100), LogProbs: kind.logProbs}}
				if kind.grammar == nil {
					r.MaxTokens, r.IgnoreEnd = new(60), true
				}
				a, err := collect(m.Generate(b.Context(), &r))
				if err != nil {
					b.Fatal(err)
				}
				tokens += a.finish.Usage.CompletionTokens
				decode += a.finish.Timings.Decode
			}
			b.ReportMetric(float64(tokens)/decode.Seconds(), "tok/s")
			b.ReportMetric(float64(tokens)/float64(b.N), "tokens")
		})
	}
}

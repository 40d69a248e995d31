package main_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/tensor"
)

// evaluated is the part of the command's output that the tests check.
type evaluated struct {
	Bytes, Tokens, Scored, Window, Stride int
	Nats, Perplexity                      float64
	BitsPerByte                           float64  `json:"bits_per_byte"`
	Error                                 *float64 `json:"perplexity_error"`
	Against                               *struct {
		Model      string
		Perplexity float64
		Mean       float64 `json:"divergence_mean"`
		Max        float64 `json:"divergence_max"`
		SameChoice float64 `json:"same_choice"`
	}
}

func evaluate(t *testing.T, stdin string, args ...string) (e evaluated) {
	t.Helper()
	if err := json.Unmarshal([]byte(output(t, stdin, append([]string{"eval", "--json", "--activations", "f32"}, args...)...)), &e); err != nil {
		t.Fatal(err)
	}
	return e
}

// probabilities returns the probabilities of the tokens that may follow ids.
func probabilities(t *testing.T, m *realizar.Model, ids []int32) []float64 {
	t.Helper()
	var p []float64
	if err := m.Logits(t.Context(), ids, len(ids)-1, func(_ int, logits []float32) error {
		sum := 0.0
		for _, v := range logits {
			p = append(p, math.Exp(float64(v)))
			sum += p[len(p)-1]
		}
		for i := range p {
			p[i] /= sum
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestEval compares the figures with their definitions, computed from the logits of each position.
func TestEval(t *testing.T) {
	model, other := modeltest.Llama(t), modeltest.Llama(t, modeltest.DType(tensor.Q8_0))
	text := "The quick brown fox jumps over the lazy dog, and the dog sleeps on."
	open := func(path string) *realizar.Model {
		m, err := realizar.Open(t.Context(), path, realizar.Options{Activations: realizar.ActivationsF32})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = m.Close() })
		return m
	}
	m, o := open(model), open(other)
	tok, err := m.Tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	ids := tok.Encode(text, true)
	const window, stride = 24, 10
	var nats, divergence, most float64
	same := 0
	for i := 1; i < len(ids); i++ {
		begin := 0 // of the first window that has token i
		for begin+window <= i {
			begin += stride
		}
		p, q := probabilities(t, o, ids[begin:i]), probabilities(t, m, ids[begin:i])
		nats -= math.Log(q[ids[i]])
		kl, bestP, bestQ := 0.0, 0, 0
		for k := range p {
			kl += p[k] * math.Log(p[k]/q[k])
			if p[k] > p[bestP] {
				bestP = k
			}
			if q[k] > q[bestQ] {
				bestQ = k
			}
		}
		if bestP == bestQ {
			same++
		}
		divergence, most = divergence+kl, max(most, kl)
	}
	scored := len(ids) - 1
	if scored < 2*window {
		t.Fatalf("the text has %d tokens, too few for the windows", len(ids))
	}
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-5*math.Abs(want) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, input := range []string{"-", path} {
		e := evaluate(t, text, model, "--text", input, "--context", "24", "--stride", "10", "--against", other)
		if e.Bytes != len(text) || e.Tokens != len(ids) || e.Scored != scored || e.Window != window || e.Stride != stride || e.Against == nil || e.Against.Model != other {
			t.Fatalf("the command found %+v", e)
		}
		near("the mean", e.Nats, nats/float64(scored))
		near("the perplexity", e.Perplexity, math.Exp(nats/float64(scored)))
		near("bits per byte", e.BitsPerByte, nats/math.Ln2/float64(len(text)))
		near("the divergence", e.Against.Mean, divergence/float64(scored))
		near("the largest divergence", e.Against.Max, most)
		near("the same choices", e.Against.SameChoice, float64(same)/float64(scored))
		back := evaluate(t, text, other, "--text", input, "--context", "24", "--stride", "10")
		near("the other's perplexity", e.Against.Perplexity, back.Perplexity)
		if divergence == 0 || e.Against.Perplexity == e.Perplexity {
			t.Error("the models do not differ, so the test shows nothing")
		}
	}
	if e := evaluate(t, text, model, "--text", "-", "--against", model); e.Against.Max != 0 || e.Against.SameChoice != 1 || e.Scored != scored {
		t.Errorf("a model against itself: %+v", e)
	}
	if e := evaluate(t, "ab", model, "--text", "-"); e.Scored == 1 && e.Error != nil {
		t.Errorf("one token has a spread of %v", *e.Error)
	}
	table := output(t, text, "eval", model, "--text", "-", "--against", other)
	for _, want := range []string{"standard input, 67 bytes", "perplexity", "bits per byte", "divergence", "same choice", other} {
		if !strings.Contains(table, want) {
			t.Errorf("the table lacks %q:\n%s", want, table)
		}
	}
}

func TestEvalRefuses(t *testing.T) {
	model := modeltest.Llama(t)
	for name, test := range map[string]struct {
		stdin string
		args  []string
		code  int
		parts []string
	}{
		"no text":          {"", []string{"--text", "-"}, 1, []string{"--text", "longer"}},
		"no file":          {"", []string{"--text", "nowhere.txt"}, 1, []string{"--text", "nowhere.txt"}},
		"one token":        {"a", []string{"--text", "-"}, 1, []string{"--text", "longer"}},
		"a wide stride":    {"abcdef", []string{"--text", "-", "--context", "4", "--stride", "4"}, 1, []string{"--stride=4", "less than the window's 4"}},
		"a stride below 0": {"abcdef", []string{"--text", "-", "--stride=-1"}, 2, []string{"--stride=-1"}},
		"another tokenizer": {
			"abcdef", []string{"--text", "-", "--against", filepath.Join("..", "..", "testdata", "babble.gguf")}, 1, []string{"babble.gguf", "tokens", "cannot be compared"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, realizarIn(t, test.stdin, append([]string{"eval", model}, test.args...)...), test.code, test.parts...)
		})
	}
}

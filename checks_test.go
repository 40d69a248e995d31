package realizar

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// answers returns the tokens of an answer of a model opened with o.
func answers(t *testing.T, path string, o Options) ([]int32, error) {
	t.Helper()
	m, err := Open(t.Context(), path, o)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}()
	var tokens []int32
	for e, err := range m.Generate(t.Context(), &Request{Prompt: "hello world", Generation: Generation{MaxTokens: new(12), IgnoreEnd: true}}) {
		if err != nil {
			return tokens, err
		}
		tokens = append(tokens, e.Tokens...)
	}
	return tokens, nil
}

// Checks of a correct device do not change the answer.
func TestChecks(t *testing.T) {
	path := modeltest.Llama(t, modeltest.DType(tensor.Q8_0))
	want, err := answers(t, path, Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{CheckArgmax: true}, {CheckReference: 5}, {CheckArgmax: true, CheckReference: 1000}} {
		if o.Device = "cpu"; len(want) != 12 {
			t.Fatalf("%d tokens", len(want))
		}
		if got, err := answers(t, path, o); err != nil || !slices.Equal(got, want) {
			t.Errorf("%+v: tokens %v, want %v (%v)", o, got, want, err)
		}
	}
	if _, err := Open(t.Context(), path, Options{CheckReference: -1}); !errors.Is(err, ErrOptions) {
		t.Errorf("-1 steps are checked: error %v", err)
	}
}

// A bent is an abacus with errors.
type bent struct {
	abacus
	token bool // it returns a wrong token in the fourth step
	layer int  // it shows wrong values of this layer in the second step
}

func (b *bent) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	exe, err := b.Backend.Compile(ctx, p, l, loaded)
	return &bentExecutable{Executable: exe, bent: b, program: p}, err
}

type bentExecutable struct {
	plan.Executable
	*bent
	program *plan.Program
	steps   int
}

func (e *bentExecutable) Close() error { return e.Executable.Close() }

func (e *bentExecutable) Submit(b *plan.Batch) (plan.Step, error) {
	e.steps++
	other := *b
	if b.Observe != nil && e.steps == 2 {
		other.Observe = func(v plan.Value, x []float32) {
			if i := slices.IndexFunc(e.program.Nodes, func(n plan.Node) bool { return n.Out == v }); e.program.Nodes[i].Layer == e.layer {
				x[0] += 1
			}
			b.Observe(v, x)
		}
	}
	s, err := e.Executable.Submit(&other)
	if err != nil || !e.token || e.steps != 4 {
		return s, err
	}
	r, err := s.Wait(context.Background())
	if err == nil {
		r.Tokens[0]++
	}
	return s, err
}

// An error of a device ends its request and says what is wrong.
func TestChecksFind(t *testing.T) {
	path := modeltest.Llama(t, modeltest.DType(tensor.Q8_0))
	for _, test := range []struct {
		what   string
		bent   bent
		o      Options
		tokens int // tokens before the error; -1: no error
		says   []string
	}{
		{"a token", bent{token: true, layer: -2}, Options{CheckArgmax: true}, 3, []string{"step 4", "kernel that samples tokens"}},
		{"an operation", bent{layer: 1}, Options{CheckReference: 3}, 1, []string{"step 2", "layer 1 ("}},
		{"after the steps that are checked", bent{layer: 1}, Options{CheckReference: 1}, -1, nil},
		{"a token, unchecked", bent{token: true, layer: -2}, Options{CheckReference: 4}, -1, nil},
	} {
		b := test.bent
		b.abacus = abacus{Backend: cpu.New(1), free: roomy8G}
		opens(t, func() (backends.Backend, error) { return &b, nil })
		test.o.Device = "abacus"
		tokens, err := answers(t, path, test.o)
		if errors.Is(err, ErrCheck) != (test.tokens >= 0) || err == nil != (test.tokens < 0) {
			t.Errorf("%s: error %v", test.what, err)
			continue
		}
		if test.tokens >= 0 && len(tokens) != test.tokens {
			t.Errorf("%s: %d tokens before the error", test.what, len(tokens))
		}
		for _, part := range test.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", test.what, err, part)
			}
		}
	}
}

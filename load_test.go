package realizar

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// A roomy backend takes so much for weights and has so much free.
type roomy struct {
	*cpu.Backend
	weights int
	free    int64
}

func (r *roomy) Memory() plan.MemoryInfo                { return plan.MemoryInfo{Free: r.free} }
func (r *roomy) Weights(*plan.Program, plan.Limits) int { return r.weights }

func build(t *testing.T, path string) *arch.Model {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	m, err := arch.Build(f)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// What weights take is not free for a context.
func TestSizes(t *testing.T) {
	const most, gib = 1 << 16, 1 << 30
	m := build(t, modeltest.Llama(t, modeltest.Context(most)))
	backend := cpu.New(1)
	// takes is what the states and the scratch of a context take.
	takes := func(context int) int64 {
		c, err := sizes(m, &roomy{Backend: backend, free: 1 << 60}, Options{Context: context, Parallel: 2})
		if err != nil {
			t.Fatal(err)
		}
		size, err := c.Memory(m.Program, backend)
		if err != nil {
			t.Fatal(err)
		}
		return int64(size.States) + int64(size.Scratch)
	}
	for _, test := range []struct {
		name    string
		asked   int
		weights int
		free    int64
		want    int // 0: an error
		says    []string
	}{
		{name: "all", free: 2 * takes(most), want: most},
		{name: "all, beside weights", weights: gib, free: gib + 2*takes(most), want: most},
		{name: "a byte too few", weights: gib, free: gib + 2*takes(most) - 1, want: most / 2},
		{name: "a little", weights: gib, free: gib + 2*takes(smallest), want: smallest},
		{name: "less than a little", weights: gib, free: gib + 2*takes(smallest) - 1,
			says: []string{"2 answers of 512 tokens", "beside 1.0 GiB of weights", "1.0 GiB are free", "lower the context"}},
		{name: "weights alone", weights: 3 * gib, free: 2 * gib, says: []string{"the weights take 3.0 GiB, 2.0 GiB are free", "smaller"}},
		{name: "asked for", asked: most, weights: gib, free: gib + takes(most), want: most},
		{name: "asked for, a byte too few", asked: most, weights: gib, free: gib + takes(most) - 1,
			says: []string{"2 answers of 65536 tokens", "beside 1.0 GiB of weights", "lower the context"}},
		{name: "asked for, weights alone", asked: most, weights: 3 * gib, free: 2 * gib, says: []string{"the weights take 3.0 GiB, 2.0 GiB are free"}},
		{name: "nobody knows", weights: gib, want: most},
		{name: "asked for, nobody knows", asked: 1000, weights: gib, want: 1000},
	} {
		c, err := sizes(m, &roomy{backend, test.weights, test.free}, Options{Context: test.asked, Parallel: 2})
		if test.want > 0 {
			if err != nil || c.Context != test.want {
				t.Errorf("%s: a context of %d (%v), want %d", test.name, c.Context, err, test.want)
			}
			continue
		}
		if !errors.Is(err, ErrMemory) {
			t.Errorf("%s: error %v, want one of the memory", test.name, err)
			continue
		}
		for _, part := range test.says {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q does not say %q", test.name, err, part)
			}
		}
	}
}

// Loading is told of to the last byte, whether the weights stay in the file or not.
func TestProgress(t *testing.T) {
	for name, option := range map[string]modeltest.Option{
		"mapped": modeltest.DType(tensor.F16), "laid out": modeltest.DType(tensor.Q8_0), "tied": modeltest.Tied(),
	} {
		path := modeltest.Llama(t, option)
		d, err := Describe(path)
		if err != nil {
			t.Fatal(err)
		}
		var want, got []Progress
		var total, done int64
		for _, x := range d.Tensors {
			total += x.Bytes
		}
		m, err := Open(t.Context(), path, Options{Progress: func(p Progress) { got = append(got, p) }})
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range m.arch.Program.Weights() {
			done += int64(len(w.Data))
			want = append(want, Progress{Done: done, Total: total})
		}
		if diff := cmp.Diff(want, got); diff != "" || done != total {
			t.Errorf("%s: of %d bytes (-want +got)\n%s", name, total, diff)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Loading ends early with its context, and says why.
func TestLoadEnds(t *testing.T) {
	path := modeltest.Llama(t, modeltest.DType(tensor.Q8_0))
	why := errors.New("the user thinks better of it")
	ctx, end := context.WithCancelCause(t.Context())
	var last Progress
	m, err := Open(ctx, path, Options{Progress: func(p Progress) {
		last = p
		if p.Done > p.Total/2 {
			end(why)
		}
	}})
	if !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
		if m != nil {
			_ = m.Close()
		}
	}
	if last.Done == last.Total {
		t.Error("all weights were loaded all the same")
	}
}

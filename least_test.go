package realizar

import (
	"errors"
	"testing"

	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/tensor"
)

// A model opens with the memory that Least returns as a limit, and fails to open with one byte
// less.
func TestLeast(t *testing.T) {
	for what, test := range map[string]struct {
		options Options
		model   []modeltest.Option
		context int
	}{
		"the model's context":  {Options{Parallel: 1}, nil, 256},
		"many answers":         {Options{Parallel: 16}, []modeltest.Option{modeltest.Context(4096)}, 4096},
		"a context":            {Options{Parallel: 4, Context: 512}, []modeltest.Option{modeltest.Context(4096)}, 512},
		"a window":             {Options{Parallel: 4}, []modeltest.Option{modeltest.Context(4096), modeltest.Window(32)}, 4096},
		"quantised":            {Options{Parallel: 4}, []modeltest.Option{modeltest.DType(tensor.Q8_0)}, 256},
		"a part in the host's": {Options{Parallel: 4, HostCache: 1 << 20}, nil, 256},
	} {
		t.Run(what, func(t *testing.T) {
			path := modeltest.Llama(t, test.model...)
			d, err := Describe(path)
			if err != nil {
				t.Fatal(err)
			}
			o := test.options
			o.Device = "cpu"
			l, err := d.Least(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			if l.Context != test.context || l.Device != "cpu" || l.Host != o.HostCache || l.Bytes <= 0 {
				t.Errorf("%+v", l)
			}
			o.Context, o.Memory = l.Context, l.Bytes
			m, err := Open(t.Context(), path, o)
			if err != nil {
				t.Fatal(err)
			}
			if n := m.HostMemory(); n != l.Bytes+l.Host || m.Context() != l.Context {
				t.Errorf("it takes %d bytes for %d tokens, want %d and %d, and %d", n, m.Context(), l.Bytes, l.Host, l.Context)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
			o.Memory--
			if _, err := Open(t.Context(), path, o); !errors.Is(err, ErrMemory) {
				t.Errorf("with a byte less: %v", err)
			}
		})
	}
}

// The result of Least does not depend on a device's free memory.
func TestLeastOfADevice(t *testing.T) {
	path := modeltest.Llama(t)
	d, err := Describe(path)
	if err != nil {
		t.Fatal(err)
	}
	var before *LeastMemory
	for _, free := range []int64{1, roomy8G} {
		present(t, &abacus{Backend: cpu.New(1), free: free}, nil)
		l, err := d.Least(t.Context(), Options{Parallel: 4})
		if err != nil {
			t.Fatal(err)
		}
		if l.Device != "abacus" || l.Free > free || l.Free <= 0 || before != nil && before.Bytes != l.Bytes {
			t.Errorf("%+v, before %+v", l, before)
		}
		before = l
	}
	m, err := Open(t.Context(), path, Options{Parallel: 4, Context: before.Context, DeviceMemory: MemoryLimit{Bytes: before.Bytes}, StreamWeights: StreamNever})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Close(); err != nil || m.Device() != "abacus" {
		t.Errorf("%s, %v", m.Device(), err)
	}
	if _, err := d.Least(t.Context(), Options{Parallel: -1}); !errors.Is(err, ErrOptions) {
		t.Error(err)
	}
}

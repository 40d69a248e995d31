package arch

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// weights finds a file's tensors by their short names and remembers which were
// used.
type weights struct {
	b    *plan.Builder
	f    *modelfile.File
	used map[string]bool
}

func newWeights(f *modelfile.File) *weights {
	return &weights{f: f, used: map[string]bool{}}
}

// A layer is the tensors of one layer, or those outside the layers.
type layer struct {
	*weights
	index int // plan.NoLayer outside the layers
}

// name is what the file calls a tensor.
func (l layer) name(short, suffix string) string {
	hub, top := l.f.Format() == modelfile.Safetensors, l.index == plan.NoLayer
	switch {
	case hub && top:
		return hubTop[short] + suffix
	case hub:
		return fmt.Sprintf("model.layers.%d.%s%s", l.index, hubLayer[short], suffix)
	case top:
		return short + suffix
	}
	return fmt.Sprintf("blk.%d.%s%s", l.index, short, suffix)
}

func (w *weights) find(name string) *tensor.Tensor {
	t, ok := w.f.Tensor(name)
	if !ok {
		return nil
	}
	w.used[name] = true
	return t
}

// weight is the tensor short.weight, which must be there.
func (l layer) weight(short string) *tensor.Tensor {
	name := l.name(short, ".weight")
	t := l.find(name)
	if t == nil {
		l.b.Fail(fmt.Errorf("%w: %s is missing", ErrTensor, name))
	}
	return t
}

// has reports whether there is a tensor short.weight.
func (l layer) has(short string) bool {
	_, ok := l.f.Tensor(l.name(short, ".weight"))
	return ok
}

// bias says whether a projection has a bias.
type bias uint8

const (
	// asFound: GGUF has no key for biases, so one that is there belongs.
	asFound bias = iota
	// without: a tensor of that name has no use.
	without
	// required: one must be there.
	required
)

// bias is the tensor short.bias, or nil.
func (l layer) bias(short string, want bias) *tensor.Tensor {
	if want == without {
		return nil
	}
	name := l.name(short, ".bias")
	t := l.find(name)
	if t == nil && want == required {
		l.b.Fail(fmt.Errorf("%w: %s is missing, though the architecture or its configuration has one", ErrTensor, name))
	}
	return t
}

// factors is a small tensor of n positive factors outside the layers, or nil.
func (w *weights) factors(short string, n int) []float64 {
	t := w.find(short + ".weight")
	if t == nil {
		return nil
	}
	if t.Elems() != n {
		w.b.Fail(fmt.Errorf("%w: %s has shape %v, want %d factors", ErrTensor, t.Name, t.Shape, n))
	}
	values, err := t.Float32s()
	if err != nil {
		w.b.Fail(fmt.Errorf("%w: %w", ErrTensor, err))
	}
	list := make([]float64, n)
	for i, v := range values {
		// Very large ones are how some files say that a pair is not turned.
		if list[i] = float64(v); !(v > 0 && v <= math.MaxFloat32) {
			w.b.Fail(fmt.Errorf("%w: %s: factor %d is %v, want a positive number", ErrTensor, t.Name, i, v))
		}
	}
	return list
}

// unused is an error when the file holds tensors that the architecture has no
// use for: what it computes would then not be the model.
func (w *weights) unused() error {
	var left []string
	for _, t := range w.f.Tensors() {
		if !w.used[t.Name] && !slices.ContainsFunc(derived, func(s string) bool { return strings.HasSuffix(t.Name, s) }) {
			left = append(left, t.Name)
		}
	}
	switch len(left) {
	case 0:
		return nil
	case 1, 2, 3:
		return fmt.Errorf("%w: the architecture has no use for %s", ErrTensor, strings.Join(left, ", "))
	}
	return fmt.Errorf("%w: the architecture has no use for %s and %d more", ErrTensor, strings.Join(left[:3], ", "), len(left)-3)
}

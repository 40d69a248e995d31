package arch

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// weights finds a file's tensors by their short names and records which were used.
type weights struct {
	b        *plan.Builder
	f        *modelfile.File
	hub      bool   // names are those of safetensors checkpoints
	names    names  // the architecture's own names
	base     string // prefix of names
	before   int    // number of the layer that the names in the file count as 0
	headBase string // prefix of the head's name, if it is not in names
	towers   bool   // the file has other parts than the language model
	spec     *Spec
	used     map[string]bool

	layouts     map[string]layout                 // of the file's tensors, by short name
	block       block                             // the architecture's
	predictor   predictor                         // of the program's head; nil: none
	streams     []plan.Value                      // of a residual of several
	embedded    plan.Value                        // the first layer's input
	residuals   []plan.Value                      // the residual stream before each layer, and after the last
	states      map[int]int                       // by layer: the state of its keys and values
	chosen      *plan.Value                       // positions that the last indexer has chosen; nil: none yet
	made        map[*tensor.Tensor]*tensor.Tensor // converted weights
	parts       map[rowRange]*tensor.Tensor       // views of rows, so that one that is used twice is one weight
	factorTable *tensor.Tensor                    // see tempered; nil until it is needed
}

// A rowRange is rows lo to hi of a tensor.
type rowRange struct {
	of     *tensor.Tensor
	lo, hi int
}

// rows returns a view of rows lo to hi of t.
func (w *weights) rows(t *tensor.Tensor, lo, hi int) *tensor.Tensor {
	if lo == 0 && hi == t.Rows() {
		return t
	}
	at := rowRange{t, lo, hi}
	if w.parts[at] == nil {
		part := t.RowSlice(lo, hi)
		part.Name = fmt.Sprintf("%s[%d:%d]", t.Name, lo, hi)
		w.parts[at] = part
	}
	return w.parts[at]
}

func newWeights(f *modelfile.File, a *architecture) *weights {
	w := &weights{
		f: f, hub: f.Format() == modelfile.Safetensors, names: a.ggufNames, used: map[string]bool{}, states: map[int]int{},
		made: map[*tensor.Tensor]*tensor.Tensor{}, parts: map[rowRange]*tensor.Tensor{},
	}
	if w.hub {
		w.names, w.base, w.layouts = a.hubNames, cmp.Or(a.base, "model."), a.layouts
		if !slices.ContainsFunc(f.Tensors(), func(t *tensor.Tensor) bool { return strings.HasPrefix(t.Name, w.base) }) {
			w.base = "" // a bare model has no prefix
		}
		w.nested()
	}
	return w
}

// noLayer is the layer number of tensors outside the layers.
const noLayer = plan.NoLayer

// A layer is the tensors of one layer, or those outside the layers.
type layer struct {
	*weights
	index int // noLayer for those outside the layers
}

func (w *weights) find(name string) *tensor.Tensor {
	t, ok := w.f.Tensor(name)
	if !ok {
		return nil
	}
	w.used[name] = true
	return t
}

// weight returns the tensor short.weight, which must exist.
func (l layer) weight(short string) *tensor.Tensor {
	return l.laid(short, l.named(l.name(short, ".weight")))
}

// named returns the tensor with that name, which must exist.
func (l layer) named(name string) *tensor.Tensor {
	t := l.find(name)
	if t == nil {
		l.b.Fail(fmt.Errorf("%w: %s is missing", ErrTensor, name))
	}
	return t
}

// laid returns t in the layout of formulas.
func (w *weights) laid(short string, t *tensor.Tensor) *tensor.Tensor {
	lay := w.layouts[short]
	if lay == nil {
		return t
	}
	if w.made[t] == nil {
		other, err := lay(w.spec, t)
		if err != nil {
			w.b.Fail(err)
		}
		w.made[t] = other
	}
	return w.made[t]
}

// has reports whether the file has a tensor short.weight.
func (l layer) has(short string) bool {
	_, ok := l.f.Tensor(l.name(short, ".weight"))
	return ok
}

// ignore marks a tensor and its bias as used although they are not part of the computation.
func (l layer) ignore(short string) {
	l.find(l.name(short, ".weight"))
	l.find(l.name(short, ".bias"))
}

// plus returns a vector with by added to each element: some files store the weights of norms minus
// one.
func (w *weights) plus(t *tensor.Tensor, by float64) *tensor.Tensor {
	if by == 0 {
		return t
	}
	if sum := w.made[t]; sum != nil {
		return sum
	}
	values, err := t.Float32s()
	if err != nil {
		w.b.Fail(fmt.Errorf("%w: %w", ErrTensor, err))
	}
	for i := range values {
		values[i] += float32(by)
	}
	w.made[t] = vectorOf(t.Name, values)
	return w.made[t]
}

// flat returns a tensor as a vector.
func flat(t *tensor.Tensor) *tensor.Tensor {
	v := *t
	v.Shape = []int{t.Elems()}
	return &v
}

// ones returns a vector of n ones: the weight of a norm that has none.
func ones(n int) *tensor.Tensor {
	values := make([]float32, n)
	for i := range values {
		values[i] = 1
	}
	return vectorOf("ones", values)
}

// scalar returns the tensor short.weight of one number, or 1 if GGUF has none.
func (l layer) scalar(short string) float64 {
	if !l.hub && !l.has(short) {
		return 1
	}
	t := l.weight(short)
	values, err := t.Float32s()
	if err != nil || len(values) != 1 {
		l.b.Fail(fmt.Errorf("%w: %s has shape %v, want one number", ErrTensor, t.Name, t.Shape))
	}
	return float64(values[0])
}

// vectorOf returns a vector of those values.
func vectorOf(name string, values []float32) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, DType: tensor.F32, Shape: []int{len(values)}, Data: make([]byte, 0, 4*len(values))}
	for _, v := range values {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, math.Float32bits(v))
	}
	return t
}

// eachHead returns n vectors of size elements, concatenated: the tensor short.weight, or one tensor
// each if the name contains a number.
func (l layer) eachHead(short string, n, size int) *tensor.Tensor {
	first := l.numbered(short, ".weight", 0)
	if first == l.numbered(short, ".weight", 1) {
		t := l.weight(short)
		if t.Elems() != n*size {
			l.b.Fail(fmt.Errorf("%w: %s has shape %v, want %d vectors of %d", ErrTensor, t.Name, t.Shape, n, size))
		}
		return flat(t)
	}
	var all []float32
	for i := range n {
		t := l.named(l.numbered(short, ".weight", i))
		values, err := t.Float32s()
		if err != nil || len(values) != size {
			l.b.Fail(fmt.Errorf("%w: %s has shape %v, want [%d]", ErrTensor, t.Name, t.Shape, size))
		}
		all = append(all, values...)
	}
	return vectorOf(fmt.Sprintf("%s and %d more", first, n-1), all)
}

// A bias says whether a projection has a bias.
type bias uint8

const (
	// asFound uses a bias if there is one: GGUF has no key for biases.
	asFound bias = iota
	// without uses none.
	without
	// required needs one.
	required
)

// bias returns the tensor short.bias, or nil.
func (l layer) bias(short string, want bias) *tensor.Tensor {
	if want == without {
		return nil
	}
	name := l.name(short, ".bias")
	t := l.find(name)
	if t == nil && want == required {
		l.b.Fail(fmt.Errorf("%w: %s is missing, though the architecture or its configuration has one", ErrTensor, name))
	}
	if t == nil {
		return nil
	}
	return l.laid(short, t)
}

// factors returns the values of a tensor of n positive factors outside the layers, or nil.
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
		// Some files have very large factors for pairs that are not rotated.
		if list[i] = float64(v); !(v > 0 && v <= math.MaxFloat32) {
			w.b.Fail(fmt.Errorf("%w: %s: factor %d is %v, want a positive number", ErrTensor, t.Name, i, v))
		}
	}
	return list
}

// unused returns an error if the file has tensors that the architecture does not use, because the
// program would then not compute the model.
func (w *weights) unused(s *Spec) error {
	var left []string
	for _, t := range w.f.Tensors() {
		if !w.used[t.Name] && !w.predicting(s, t.Name) && !w.elsewhere(t.Name) && !slices.ContainsFunc(derived, func(s string) bool { return strings.HasSuffix(t.Name, s) }) {
			left = append(left, t.Name)
		}
	}
	switch len(left) {
	case 0:
		return nil
	case 1, 2, 3:
		return fmt.Errorf("%w: the architecture does not use %s", ErrTensor, strings.Join(left, ", "))
	}
	return fmt.Errorf("%w: the architecture does not use %s and %d more", ErrTensor, strings.Join(left[:3], ", "), len(left)-3)
}

// predicting reports whether a tensor belongs to a layer that predicts tokens beyond the next one.
func (w *weights) predicting(s *Spec, name string) bool {
	prefix := "blk."
	if w.hub {
		prefix = w.base + "layers."
	}
	for i := range s.Predicting {
		if strings.HasPrefix(name, fmt.Sprintf("%s%d.", prefix, s.Layers+i)) {
			return true
		}
	}
	return false
}

package modelfile

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/realizar/realizar/tensor"
)

// Quantised checkpoints of model hubs store a weight as several tensors: numbers of
// few bits, scales, maybe zero points. config.json names the convention by which they
// belong together. What they stand for becomes one tensor with a source of rows, in
// the place of the numbers: nothing is computed before the rows are read.

// A convention says which tensors are parts of a weight, and of which.
type convention struct {
	// weight makes the weight that t is the main part of, and nil where t is another
	// tensor. It names the other parts to the assembly.
	weight func(a *assembly, t *tensor.Tensor) (*tensor.Tensor, error)
	// parts are the endings of names that only parts of weights have.
	parts []string
	// activations are the endings of names of tensors that say how activations, keys
	// and values are rounded. That is for runtimes which round them to FP8, as this
	// one never does, so that they are left out.
	activations []string
}

// activationScales are the endings that the conventions for FP8 share.
var activationScales = []string{".input_scale", ".activation_scale", ".input_scale_ub", ".k_scale", ".v_scale"}

// An assembly puts weights in the place of their parts.
type assembly struct {
	file  *File
	whole map[string]*tensor.Tensor // by the name of the main part
	gone  map[string]bool           // the other parts
}

// derive replaces the tensors that are parts of weights, as the config.json in that
// folder says.
func (f *File) derive(folder string) error {
	c, err := quantizationOf(f.meta, filepath.Join(folder, configName))
	if err != nil || c == nil {
		return err
	}
	a := &assembly{file: f, whole: make(map[string]*tensor.Tensor), gone: make(map[string]bool)}
	for _, t := range f.tensors {
		w, err := c.weight(a, t)
		if err != nil {
			return err
		}
		if w == nil {
			continue
		}
		if other, ok := f.byName[w.Name]; ok && other != t {
			return f.errorIn(t, 0, ErrFormat, "a part of the weight %s, and there is a tensor of that name too", clip(w.Name))
		}
		a.whole[t.Name] = w
	}
	kept := f.tensors[:0:0]
	for _, t := range f.tensors {
		switch w := a.whole[t.Name]; {
		case w != nil:
			delete(f.byName, t.Name)
			kept = append(kept, w)
		case a.gone[t.Name], endsIn(t.Name, c.activations):
			delete(f.byName, t.Name)
		case endsIn(t.Name, c.parts):
			return f.errorIn(t, 0, ErrFormat, "a part of no weight: the tensor that it belongs to is missing, or is not quantised")
		default:
			kept = append(kept, t)
		}
	}
	for _, w := range a.whole {
		f.byName[w.Name] = w
	}
	f.tensors = kept
	return nil
}

func endsIn(name string, endings []string) bool {
	for _, e := range endings {
		if strings.HasSuffix(name, e) {
			return true
		}
	}
	return false
}

// part is the tensor of that name, which is a part of a weight, or nil.
func (a *assembly) part(name string) *tensor.Tensor {
	t := a.file.byName[name]
	if t != nil {
		a.gone[name] = true
	}
	return t
}

// needed is the part of that name of the weight whose main part is t.
func (a *assembly) needed(t *tensor.Tensor, name string) (*tensor.Tensor, error) {
	if p := a.part(name); p != nil {
		return p, nil
	}
	return nil, a.file.errorIn(t, 0, ErrFormat, "the tensor %s, which belongs to it, is missing", clip(name))
}

// errorIn is an error about byte at of t's data.
func (f *File) errorIn(t *tensor.Tensor, at int, kind error, format string, args ...any) error {
	e := &FormatError{File: f.path, Tensor: t.Name, Offset: -1, Problem: fmt.Sprintf(format, args...), Err: kind}
	data := uintptr(unsafe.Pointer(unsafe.SliceData(t.Data)))
	for _, m := range f.mappings {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(m.data)))
		if data >= start && data-start <= uintptr(len(m.data)) {
			if e.File = m.path; len(t.Data) > 0 {
				e.Offset = int64(data-start) + int64(at)
			}
		}
	}
	return e
}

// ReleaseTensor is [File.Release] of what t's rows are read from.
func (f *File) ReleaseTensor(t *tensor.Tensor) {
	if t.Source == nil {
		f.Release(t.Data)
		return
	}
	for _, part := range t.Source.Parts() {
		f.ReleaseTensor(part)
	}
}

// isFloat reports whether scales may be of that format.
func isFloat(d tensor.DType) bool { return d == tensor.F32 || d == tensor.F16 || d == tensor.BF16 }

// floatAt is element i of a tensor for which isFloat holds.
func floatAt(t *tensor.Tensor, i int) float32 {
	le := binary.LittleEndian
	switch t.DType {
	case tensor.F16:
		return tensor.F16ToF32(le.Uint16(t.Data[2*i:]))
	case tensor.BF16:
		return tensor.BF16ToF32(le.Uint16(t.Data[2*i:]))
	}
	return math.Float32frombits(le.Uint32(t.Data[4*i:]))
}

// rowsOf writes the bytes of a tensor, whether they lie somewhere or are made.
type rowsOf struct{ t *tensor.Tensor }

// WriteTo implements [io.WriterTo].
func (r rowsOf) WriteTo(w io.Writer) (n int64, err error) {
	err = r.t.EachRows(func(_ int, rows []byte) error {
		written, err := w.Write(rows)
		n += int64(written)
		return err
	})
	return n, err
}

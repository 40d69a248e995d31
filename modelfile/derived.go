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

// Quantized checkpoints on model hubs store a weight as several tensors: numbers of few bits,
// scales, and sometimes zero points. config.json names the convention that relates them. This
// package presents each group of such tensors as one tensor, in the place of the numbers, whose
// rows are computed when they are read.

// A convention describes which tensors are parts of a weight, and of which weight.
type convention struct {
	// weight returns the weight whose main part is t, or nil if t is another tensor. It reports the
	// other parts to the assembly.
	weight func(a *assembly, t *tensor.Tensor) (*tensor.Tensor, error)
	// parts are name suffixes that only parts of weights have.
	parts []string
	// activations are name suffixes of the tensors that describe how activations, keys and values
	// are rounded to FP8. They are left out because this runtime never rounds these to FP8.
	activations []string
}

// activationScales are the suffixes that the FP8 conventions share.
var activationScales = []string{".input_scale", ".activation_scale", "_proj_activation_scale", ".input_scale_ub", ".k_scale", ".v_scale"}

// An assembly replaces parts by weights.
type assembly struct {
	file  *File
	whole map[string]*tensor.Tensor // by the name of the main part
	gone  map[string]bool           // the other parts
}

// derive replaces the tensors that are parts of weights, as described by the config.json in folder.
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
			return f.errorIn(t, 0, ErrFormat, "a part of the weight %s, but a tensor of that name exists too", clip(w.Name))
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
			return f.errorIn(t, 0, ErrFormat, "a part without its weight: the tensor that it belongs to is missing or not quantized")
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

// part returns the tensor called name and marks it as a part of a weight. It returns nil if there
// is none.
func (a *assembly) part(name string) *tensor.Tensor {
	t := a.file.byName[name]
	if t != nil {
		a.gone[name] = true
	}
	return t
}

// needed is like part, but returns an error about t, the main part of the weight, if the tensor is
// missing.
func (a *assembly) needed(t *tensor.Tensor, name string) (*tensor.Tensor, error) {
	if p := a.part(name); p != nil {
		return p, nil
	}
	return nil, a.file.errorIn(t, 0, ErrFormat, "the tensor %s, which belongs to it, is missing", clip(name))
}

// errorIn returns an error about byte at of t's data.
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

// ReleaseTensor calls [File.Release] for all data that t's rows are read from.
func (f *File) ReleaseTensor(t *tensor.Tensor) {
	if t.Source == nil {
		f.Release(t.Data)
		return
	}
	for _, part := range t.Source.Parts() {
		f.ReleaseTensor(part)
	}
}

// isFloat reports whether d is a valid format for scales.
func isFloat(d tensor.DType) bool { return d == tensor.F32 || d == tensor.F16 || d == tensor.BF16 }

// floatAt returns element i of a tensor whose format isFloat accepts, or of F8_E8M0.
func floatAt(t *tensor.Tensor, i int) float32 {
	le := binary.LittleEndian
	switch t.DType {
	case tensor.F8_E8M0:
		return tensor.E8M0ToF32(t.Data[i])
	case tensor.F16:
		return tensor.F16ToF32(le.Uint16(t.Data[2*i:]))
	case tensor.BF16:
		return tensor.BF16ToF32(le.Uint16(t.Data[2*i:]))
	}
	return math.Float32frombits(le.Uint32(t.Data[4*i:]))
}

// rowsOf writes the bytes of a tensor, whether they are stored or computed.
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

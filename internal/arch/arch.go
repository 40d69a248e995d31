// Package arch holds the model architectures, one file each. A file says what an architecture is
// called, how to read its metadata and how a layer computes. No other code names an architecture.
// [Build] turns an opened model file into the program that runs it.
//
// The formulas are the same for all file formats: they find tensors by the short names of GGUF, and
// names.go maps these to the names of safetensors checkpoints.
package arch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
)

// The kinds of error of this package, wrapped with the key or tensor, its value and the expected
// value.
var (
	// ErrUnknown reports that no architecture has the file's name.
	ErrUnknown = errors.New("unknown architecture")
	// ErrConfig reports that a file's metadata lack a value, or have one that is invalid or
	// unsupported.
	ErrConfig = errors.New("unusable model configuration")
	// ErrTensor reports that a tensor is missing, has the wrong shape, or is not used by the
	// architecture.
	ErrTensor = errors.New("unusable tensor")
)

// An architecture is one entry of the registry.
type architecture struct {
	title string // name of its models
	about string // differences from LLaMA

	gguf string // value of general.architecture
	hub  string // the first of config.json's architectures
	kind string // config.json's model_type, if it has no architectures

	base      string            // prefix of the tensors of a checkpoint; "": "model."
	hubNames  names             // names of tensors that differ from names.go
	ggufNames names             // names of tensors that differ from the short names
	layouts   map[string]layout // tensors that checkpoints lay out differently from GGUF
	keys      map[string]string // config.json's names of keys that differ from the usual ones
	ggufKeys  map[string]string // GGUF's names, without the prefix, of keys that adapt reads by others
	defaults  map[string]int    // transformers' values of keys that config.json lacks
	zeros     bool              // GGUF's numbers of heads and widths by layer may be 0
	ffn       int               // width of the feed-forward layer in widths of the residual stream, if config.json lacks it
	norm      *plan.Op          // nil: RMSNorm

	adapt func(*config, *Spec)
	block block
	nextn *nextn // its layer that predicts the token after the next one; nil: none

	encode func(*plan.Builder, *Spec, *weights) // all of an encoder, which has no block
}

var registry []architecture

func register(a architecture) { registry = append(registry, a) }

// An Architecture describes one architecture of the registry.
type Architecture struct {
	Title string // name of its models
	About string // differences from LLaMA
	Class string // in config.json's architectures; "" if none
	GGUF  string // in general.architecture; "" if none
}

// Architectures returns all architectures, by title.
func Architectures() []Architecture {
	var all []Architecture
	for _, a := range registry {
		all = append(all, Architecture{a.title, a.about, a.hub, a.gguf})
	}
	slices.SortFunc(all, func(a, b Architecture) int {
		return cmp.Or(cmp.Compare(a.Title, b.Title), cmp.Compare(a.Class, b.Class))
	})
	return all
}

// known returns the names that of returns for the registry, for error messages.
func known(of func(*architecture) string) []string {
	var all []string
	for i := range registry {
		if n := of(&registry[i]); n != "" {
			all = append(all, n)
		}
	}
	return all
}

// A Model is the result of [Build]: a model's numbers and its program.
type Model struct {
	Architecture string // as in the file
	Spec         Spec
	Program      *plan.Program
}

// Build reads f's metadata and returns the program for the model. The program uses views of f's
// tensors.
func Build(f *modelfile.File) (*Model, error) { return guarded(f, nil) }

// guarded returns the program for the model of f, with the head of the predictor that predicts returns
// unless that is nil.
func guarded(f *modelfile.File, predicts func(*architecture, *Spec, *weights) (predictor, error)) (*Model, error) {
	var m *Model
	err := f.Guard(func() (err error) { // some numbers of a configuration are tensors
		m, err = build(f, predicts)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(), err)
	}
	return m, nil
}

func build(f *modelfile.File, predicts func(*architecture, *Spec, *weights) (predictor, error)) (*Model, error) {
	a, name, err := find(f)
	if err != nil {
		return nil, err
	}
	c := &config{m: textMeta(f), gguf: f.Format() == modelfile.GGUF, name: name, file: f, keys: a.keys, ggufKeys: a.ggufKeys, defaults: a.defaults, ffn: a.ffn, zeros: a.zeros}
	m := &Model{Architecture: name, Spec: c.spec(cmp.Or(a.norm, plan.RMSNorm))}
	if a.adapt != nil {
		a.adapt(c, &m.Spec)
	}
	if n, _ := c.m.Int(c.key("expert_count")); c.gguf && n > 0 && m.Spec.Experts == 0 {
		c.failf("%s is %d; this architecture has no mixtures of experts", c.key("expert_count"), n)
	}
	if m.Spec.XIELU && (!m.Spec.Ungated || m.Spec.Experts > 0) {
		c.failf("%s is %q; this architecture has feed-forward layers with a gate", c.key("hidden_act"), "xielu")
	}
	if c.err != nil {
		return nil, c.err
	}
	w := newWeights(f, a)
	if w.block = a.block; predicts != nil {
		if w.predictor, err = predicts(a, &m.Spec, w); err != nil {
			return nil, err
		}
	}
	m.Program, err = plan.Build(func(b *plan.Builder) {
		w.b, w.spec = b, &m.Spec
		m.Spec.rope(c, w)
		if c.err != nil {
			b.Fail(c.err)
		}
		if a.encode != nil {
			a.encode(b, &m.Spec, w)
		} else {
			decoder(b, &m.Spec, a.block, w)
		}
	})
	if err != nil {
		return nil, err
	}
	m.Spec.Vocab = m.Program.Vocab
	if n := m.Program.Positions; n > 0 {
		m.Spec.Context = min(m.Spec.Context, n)
	}
	return m, w.unused(&m.Spec)
}

// find returns the architecture of f and the file's name for it.
func find(f *modelfile.File) (*architecture, string, error) {
	if f.Format() == modelfile.GGUF {
		name, _ := f.Meta().String("general.architecture")
		if name == "" {
			return nil, "", fmt.Errorf("%w: the file has no general.architecture; is it a vocabulary, an adapter or a projector?", ErrConfig)
		}
		return lookup(name, func(a *architecture) string { return a.gguf })
	}
	if len(f.Meta().Keys()) == 0 {
		return nil, "", fmt.Errorf("%w: safetensors files need a config.json beside them", ErrConfig)
	}
	if list, ok := f.Meta().Strings("architectures"); ok && len(list) > 0 {
		a, name, err := lookup(list[0], func(a *architecture) string { return a.hub })
		if inner := innerArchitecture(f); a == nil && inner != nil {
			return inner, name, nil
		}
		return a, name, err
	}
	kind, _ := f.Meta().String("model_type")
	if kind == "" {
		return nil, "", fmt.Errorf("%w: config.json has neither architectures nor a model_type", ErrConfig)
	}
	return lookup(kind, func(a *architecture) string { return a.kind })
}

func lookup(name string, of func(*architecture) string) (*architecture, string, error) {
	for i := range registry {
		if of(&registry[i]) == name {
			return &registry[i], name, nil
		}
	}
	return nil, name, fmt.Errorf("%w %q; the nearest known are %s", ErrUnknown, name, nearestOf(name, known(of)))
}

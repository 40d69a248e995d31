// Package arch holds the model architectures, one file each. A file says what
// an architecture is called, how its metadata reads and how a layer computes;
// nothing elsewhere names an architecture. [Build] turns an opened model file
// into the program that runs it.
//
// The formulas read the same whatever the file's format: tensors are found by
// the short names that GGUF gives them, and names.go says what safetensors
// checkpoints call the same things.
package arch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
)

// The kinds of error of this package, wrapped with the key or tensor, its value
// and what was expected.
var (
	// ErrUnknown says that no architecture has the file's name.
	ErrUnknown = errors.New("unknown architecture")
	// ErrConfig says that a file's metadata lacks a value, or has one that its
	// architecture does not define or that is not supported.
	ErrConfig = errors.New("unusable model configuration")
	// ErrTensor says that a tensor is missing, misshapen, or has no meaning to
	// the architecture.
	ErrTensor = errors.New("unusable tensor")
)

// An architecture is one entry of the registry.
type architecture struct {
	title string // what people call its models
	about string // what distinguishes it from LLaMA

	gguf string // general.architecture
	hub  string // the first of config.json's architectures
	kind string // config.json's model_type, where it names no architectures

	base      string            // what the names of a checkpoint's tensors begin with, "model." unless it says otherwise
	hubNames  names             // of tensors, where they are not those of names.go
	ggufNames names             // where they are not the short names
	layouts   map[string]layout // of tensors that checkpoints keep otherwise than GGUF does
	keys      map[string]string // what config.json calls what others call otherwise
	defaults  map[string]int    // what transformers takes for keys that config.json lacks
	ffn       int               // widths of the residual stream in the feed-forward layer's, where config.json does not say
	norm      *plan.Op          // RMSNorm unless it says otherwise

	adapt func(*config, *Spec)
	block block

	encode func(*plan.Builder, *Spec, *weights) // the whole of an encoder, which has no block
}

var registry []architecture

func register(a architecture) { registry = append(registry, a) }

// An Architecture is what the registry says of one.
type Architecture struct {
	Title string // what people call its models
	About string // what distinguishes it
	Class string // as config.json's architectures has it, "" for none
	GGUF  string // as general.architecture has it, "" for none
}

// Architectures are all that are registered, by title.
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

// known lists what the registry knows under f's kind of name.
func known(of func(*architecture) string) []string {
	var all []string
	for i := range registry {
		if n := of(&registry[i]); n != "" {
			all = append(all, n)
		}
	}
	return all
}

// A Model is a file understood: its numbers and its program.
type Model struct {
	Architecture string // as the file calls it
	Spec         Spec
	Program      *plan.Program
}

// Build reads f's metadata and writes the program that runs it. The program
// keeps views of f's tensors.
func Build(f *modelfile.File) (*Model, error) {
	var m *Model
	err := f.Guard(func() (err error) { // some numbers of a configuration are tensors
		m, err = build(f)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path(), err)
	}
	return m, nil
}

func build(f *modelfile.File) (*Model, error) {
	a, name, err := find(f)
	if err != nil {
		return nil, err
	}
	c := &config{m: f.Meta(), gguf: f.Format() == modelfile.GGUF, name: name, keys: a.keys, defaults: a.defaults, ffn: a.ffn}
	m := &Model{Architecture: name, Spec: c.spec(cmp.Or(a.norm, plan.RMSNorm))}
	if a.adapt != nil {
		a.adapt(c, &m.Spec)
	}
	if n, _ := c.m.Int(c.key("expert_count")); c.gguf && n > 0 && m.Spec.Experts == 0 {
		c.failf("%s is %d; there are no mixtures of experts in this architecture", c.key("expert_count"), n)
	}
	if c.err != nil {
		return nil, c.err
	}
	w := newWeights(f, a)
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

// find is the architecture that f names.
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
		return lookup(list[0], func(a *architecture) string { return a.hub })
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
	return nil, "", fmt.Errorf("%w %q; the nearest known are %s", ErrUnknown, name, nearestOf(name, known(of)))
}

// Package mesh runs a program on several devices of one host at the same time, each of which does
// and holds a part of it. The results have the bits of one device: see [Partition] and [Layers].
package mesh

import (
	"context"
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Device is a kind of device of which several run one program together.
type Device interface {
	plan.Backend
	// Sums reports whether parts that each have some columns of w, as many as the others, can add
	// their sums with the bits of one device.
	Sums(w *tensor.Tensor, parts int, l plan.Limits) bool
	// Connect returns a backend for each of several parts of one program, which compiles it. The
	// parts run every step at the same time.
	Connect(parts int) []plan.Backend
	// Separate returns a backend for each of several programs, none of which knows of the others.
	Separate(parts int) []plan.Backend
}

// A Split is a way to divide a program.
type Split uint8

// The ways to divide a program.
const (
	Auto     Split = iota // whichever suits the devices
	ByTensor              // every part has a share of every layer: tensor parallelism, see [Partition]
	ByLayer               // every part has some of the layers: pipeline parallelism, see [Layers]
)

// A Backend is several devices that share the host's memory.
type Backend struct {
	device Device
	parts  int
	split  Split
}

// New returns the backend that runs programs in that many parts. Auto is ByTensor.
func New(device Device, parts int, split Split) *Backend { return &Backend{device, parts, split} }

// Name returns the device's name with the number of parts, such as "cpu in 2 parts".
func (b *Backend) Name() string { return fmt.Sprintf("%s in %d parts", b.device.Name(), b.parts) }

// Rounds implements [plan.Backend].
func (b *Backend) Rounds() tensor.DType { return b.device.Rounds() }

// Memory implements [plan.Backend].
func (b *Backend) Memory() plan.MemoryInfo { return b.device.Memory() }

// Partition divides p as Compile does.
func (b *Backend) Partition(p *plan.Program, l plan.Limits) ([]Part, error) {
	if b.split == ByLayer {
		return Layers(p, b.parts)
	}
	return Partition(p, b.parts, func(w *tensor.Tensor) bool { return b.device.Sums(w, b.parts, l) })
}

// Limits returns the limits of a part of a program with limits l.
func (p *Part) Limits(l plan.Limits) plan.Limits {
	if p.gives {
		l.Rows = l.Tokens // it returns all of them
	}
	return l
}

// A taken is what a part takes of its device, in bytes.
type taken struct{ weights, states, scratch int }

// most returns the most that a part of p takes, times the parts: devices have the same memory, and
// the largest part must have room. Compile returns the error of a program that cannot be divided.
func (b *Backend) most(p *plan.Program, l plan.Limits) (t taken) {
	parts, err := b.Partition(p, l)
	if err != nil {
		return t
	}
	for _, part := range parts {
		l := part.Limits(l)
		states, err := l.StateBytes(part.Program)
		if err != nil {
			return taken{}
		}
		t = taken{max(t.weights, b.device.Weights(part.Program, l)), max(t.states, states), max(t.scratch, b.device.Scratch(part.Program, l))}
	}
	return taken{b.parts * t.weights, b.parts * t.states, b.parts * t.scratch}
}

// Weights implements [plan.Backend], for all parts.
func (b *Backend) Weights(p *plan.Program, l plan.Limits) int { return b.most(p, l).weights }

// Scratch implements [plan.Backend], for all parts, with what their states take beyond those of p:
// keys and values that several parts keep.
func (b *Backend) Scratch(p *plan.Program, l plan.Limits) int {
	whole, _ := l.StateBytes(p)
	if t := b.most(p, l); t.states > 0 {
		return t.states + t.scratch - whole
	}
	return 0
}

// Compile implements [plan.Backend]. Values cannot be observed, because no part has all of them.
func (b *Backend) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	if l.Observed {
		return nil, fmt.Errorf("mesh: values of a model in %d parts cannot be observed; use one device: %w", b.parts, errors.ErrUnsupported)
	}
	if l.Weights != 0 {
		return nil, fmt.Errorf("mesh: weights of a model in %d parts are not streamed; use more devices, or one: %w", b.parts, errors.ErrUnsupported)
	}
	parts, err := b.Partition(p, l)
	if err != nil {
		return nil, err
	}
	pages, err := layoutPages(p, parts, &l)
	if err != nil {
		return nil, err
	}
	g := group{p: p, lim: l, pages: pages, host: map[*byte][]byte{}}
	if err := g.compile(ctx, b.backends(), parts, loaded); err != nil {
		return nil, errors.Join(err, g.Close())
	}
	if b.pipeline() {
		return newPipeline(&g, parts), nil
	}
	return newExecutable(&g), nil
}

// pipeline reports whether parts run one after the other.
func (b *Backend) pipeline() bool { return b.split == ByLayer && b.parts > 1 }

// backends returns a backend for each part.
func (b *Backend) backends() []plan.Backend {
	if b.pipeline() {
		return b.device.Separate(b.parts)
	}
	return b.device.Connect(b.parts)
}

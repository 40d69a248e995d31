// Package mesh runs a program on several devices of one host at the same time, each of which does
// and holds a part of it. The results have the bits of one device: see [Partition] and [Layers].
package mesh

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	// Memories returns the memory of each of several devices, or of all together if they share it.
	Memories() []plan.MemoryInfo
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

// Shares returns which part of the model's memory each device has: as much as others, or by layer as
// the memory of the devices is.
func (b *Backend) Shares() []float64 {
	shares := Equal(b.parts)
	if b.split != ByLayer {
		return shares
	}
	all, sum := b.device.Memories(), int64(0)
	for _, m := range all {
		sum += m.Total
	}
	if len(all) != b.parts || slices.ContainsFunc(all, func(m plan.MemoryInfo) bool { return m.Total <= 0 }) {
		return shares
	}
	for i, m := range all {
		shares[i] = float64(m.Total) / float64(sum)
	}
	return shares
}

// Equal returns n shares of the same size.
func Equal(n int) []float64 {
	var shares []float64
	for range n {
		shares = append(shares, 1/float64(n))
	}
	return shares
}

// Memory implements [plan.Backend]: what the devices can have together if each has its share.
func (b *Backend) Memory() (m plan.MemoryInfo) {
	all, shares := b.device.Memories(), b.Shares()
	if len(all) != b.parts {
		return all[0]
	}
	for i, own := range all {
		free, total := int64(float64(own.Free)/shares[i]), int64(float64(own.Total)/shares[i])
		if i == 0 || free < m.Free {
			m.Free = free
		}
		if i == 0 || total < m.Total {
			m.Total = total
		}
	}
	return m
}

// Partition divides p as Compile does.
func (b *Backend) Partition(p *plan.Program, l plan.Limits) ([]Part, error) {
	if b.split == ByLayer {
		return Layers(p, b.Shares())
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

// takes returns the bytes of weights of all parts of p, and what all parts would take if each took as
// much for its share of the memory as the one that takes most. Compile returns the error of a program
// that cannot be divided.
func (b *Backend) takes(p *plan.Program, l plan.Limits) (weights, all int) {
	parts, err := b.Partition(p, l)
	if err != nil {
		return 0, 0
	}
	for i, share := range b.Shares() {
		own := parts[i].Limits(l)
		states, err := own.StateBytes(parts[i].Program)
		if err != nil {
			return 0, 0
		}
		w := b.device.Weights(parts[i].Program, own)
		weights += w
		all = max(all, int(float64(w+states+b.device.Scratch(parts[i].Program, own))/share))
	}
	return weights, all
}

// Weights implements [plan.Backend], for all parts.
func (b *Backend) Weights(p *plan.Program, l plan.Limits) int {
	weights, _ := b.takes(p, l)
	return weights
}

// Scratch implements [plan.Backend], for all parts, with what they take beyond their weights and the
// states of p: keys and values that several parts keep, and what some parts take less than others.
func (b *Backend) Scratch(p *plan.Program, l plan.Limits) int {
	states, _ := l.StateBytes(p)
	weights, all := b.takes(p, l)
	return max(0, all-weights-states)
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

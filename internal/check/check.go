// Package check looks at what a device computes while it does: whether the tokens that
// it chooses are those of its logits, and whether each operation gives what the
// reference makes of the same inputs. [Wrap] puts that around a backend; who runs steps
// sees nothing of it but errors.
//
// It knows operations by what they are called. What they mean is for the reference to
// say, and how a token is chosen for package sample.
package check

import (
	"context"
	"errors"

	"github.com/realizar/realizar/internal/plan"
)

// Options say what is checked.
type Options struct {
	Argmax    bool // the choice of tokens, in every step
	Reference int  // operations, in so many steps from the first on

	// NewReference makes what operations are compared with, where Reference asks for it.
	NewReference func(p *plan.Program, l plan.Limits) (Reference, error)
	// Seen, where not nil, is told of every value that was compared how far it was from
	// the reference's at most, in parts of what a sound device may be. nodes are the
	// operations that gave it, the last one its own.
	Seen func(nodes []*plan.Node, drift float64)
}

// A Reference does operations one at a time. Values stay until they are dropped.
type Reference interface {
	// Begin begins a step. tokens are those of b with those of earlier rows filled in.
	Begin(b *plan.Batch, tokens []int32) error
	// Run does an operation on the values of its inputs.
	Run(n *plan.Node) error
	// Set gives v the value x [rows, columns], which is copied.
	Set(v plan.Value, x []float32)
	// Rows is the number of rows of v in the step.
	Rows(v plan.Value) int
	// Row is row i of v and, unless it was set, how far a sound device of the same inputs
	// may be from each element.
	Row(v plan.Value, i int) (x, bound []float32)
	// Drop says that v is not needed any longer.
	Drop(v plan.Value)
	Close() error
}

// Wrap is b with checks. They take memory of the host that nobody plans: two copies of
// a row of logits, and the reference's keys and values of the steps that it looks at.
func Wrap(b plan.Backend, o Options) plan.Backend {
	if !o.Argmax && o.Reference <= 0 {
		return b
	}
	return &backend{b, o}
}

type backend struct {
	plan.Backend
	options Options
}

// limits are l with room for what is looked at.
func (b *backend) limits(l plan.Limits) plan.Limits {
	l.Observed = l.Observed || b.options.Reference > 0
	return l
}

// Weights implements [plan.Backend].
func (b *backend) Weights(p *plan.Program, l plan.Limits) int {
	return b.Backend.Weights(p, b.limits(l))
}

// Scratch implements [plan.Backend].
func (b *backend) Scratch(p *plan.Program, l plan.Limits) int {
	return b.Backend.Scratch(p, b.limits(l))
}

// Compile implements [plan.Backend].
func (b *backend) Compile(ctx context.Context, p *plan.Program, l plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	exe, err := b.Backend.Compile(ctx, p, b.limits(l), loaded)
	if err != nil {
		return nil, err
	}
	e := &executable{Executable: exe, program: p, limits: l, options: b.options, masks: map[int32][]uint32{}}
	if b.options.Reference > 0 {
		r, err := b.options.NewReference(p, l)
		if err != nil {
			return nil, errors.Join(err, exe.Close())
		}
		e.watch = newWatch(p, r, b.options.Seen)
	}
	return e, nil
}

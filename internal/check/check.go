// Package check verifies what a device computes, in its own steps: whether the tokens that it
// samples follow from their logits, and whether each operation agrees with the reference on the
// same inputs. [Wrap] adds the checks to a backend; callers see only the errors.
//
// The package knows operations only by name. The reference defines them, and package sample defines
// sampling.
package check

import (
	"context"
	"errors"

	"github.com/realizar/realizar/internal/plan"
)

// Options say what to check.
type Options struct {
	Argmax    bool // check sampled tokens, in every step
	Reference int  // check operations in this many first steps

	// NewReference returns the reference to compare with. It is needed if Reference is not 0.
	NewReference func(p *plan.Program, l plan.Limits) (Reference, error)
	// Seen, if not nil, is called for every value compared. drift is its largest distance from the
	// reference, as a fraction of the bound for a correct device. nodes are the operations that
	// computed it, the last one its own.
	Seen func(nodes []*plan.Node, drift float64)
}

// A Reference runs operations one at a time. Values stay until they are dropped.
type Reference interface {
	// Begin begins a step. tokens are those of b, with sampled tokens of the previous step filled
	// in.
	Begin(b *plan.Batch, tokens []int32) error
	// Run runs an operation on the values of its inputs.
	Run(n *plan.Node) error
	// Set sets v to a copy of x [rows, columns].
	Set(v plan.Value, x []float32)
	// Rows returns the number of rows of v in the step.
	Rows(v plan.Value) int
	// Row returns row i of v. bound says how far each element of a correct device may be from x,
	// given the same inputs; it is undefined if v was set.
	Row(v plan.Value, i int) (x, bound []float32)
	// Drop frees v.
	Drop(v plan.Value)
	Close() error
}

// Wrap returns b with checks. They use host memory that is not planned: two copies of a row of
// logits, and the reference's keys and values for the compared steps.
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

// limits returns l with room for observed values.
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

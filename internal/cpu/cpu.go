// Package cpu runs programs on the processor.
//
// It holds two backends with one face. [Reference] is the meaning of every
// operation: plain loops, float64 sums, one thread, made to be read. [New] is
// the one to run: its work is split over threads, its sums follow one fixed
// order per weight, so that a row's bits depend neither on the other rows of a
// step nor on the number of threads.
//
// The package knows operations and dtypes; it knows no architecture and no
// file format.
package cpu

import (
	"fmt"
	"runtime"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// Backend compiles programs for the processor.
type Backend struct {
	name    string
	threads int
	tier    tier
	lower   map[plan.Op]lowering
}

// New is the backend that splits its work over threads; 0 or less means as
// many as the process may run on.
func New(threads int) *Backend {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	return &Backend{name: "cpu", threads: threads, tier: tiers()[0], lower: parallel}
}

// Tiers names the sets of instructions that this processor has kernels for, the
// best first, "generic" last.
func Tiers() []string {
	var names []string
	for _, t := range tiers() {
		names = append(names, t.name)
	}
	return names
}

// WithTier is b with the kernels of one of [Tiers].
func (b *Backend) WithTier(name string) (*Backend, error) {
	for _, t := range tiers() {
		if t.name == name {
			other := *b
			other.tier = t
			return &other, nil
		}
	}
	return nil, fmt.Errorf("cpu: no kernels of tier %q here; there are %v", name, Tiers())
}

// Tier names the set of instructions that b's kernels use.
func (b *Backend) Tier() string { return b.tier.name }

// Reference is the backend that says what each operation means.
func Reference() *Backend {
	return &Backend{name: "cpu-reference", threads: 1, tier: generic, lower: reference}
}

// Name is "cpu" or "cpu-reference".
func (b *Backend) Name() string { return b.name }

// Memory is the machine's memory.
func (b *Backend) Memory() plan.MemoryInfo { return memory() }

// Compile makes p ready to run within lim.
func (b *Backend) Compile(p *plan.Program, lim plan.Limits) (plan.Executable, error) {
	if lim.Tokens <= 0 || lim.Seqs <= 0 || lim.Rows <= 0 || lim.PageTokens <= 0 || len(lim.Pages) != len(p.Groups) {
		return nil, fmt.Errorf("cpu: limits %+v do not fit a program of %d groups of states", lim, len(p.Groups))
	}
	if lim.Cache != tensor.F32 && lim.Cache != tensor.F16 {
		return nil, fmt.Errorf("cpu: no %v cache; use %v or %v", lim.Cache, tensor.F32, tensor.F16)
	}
	if _, err := lim.StateBytes(p); err != nil {
		return nil, err
	}
	e := &executable{p: p, lim: lim, tier: b.tier, scratch: plan.PlanScratch(p), desks: make([]desk, b.threads)}
	for i, w := range e.scratch.Widths {
		e.buffers = append(e.buffers, make([]float32, w*lim.Size(e.scratch.Dims[i])))
	}
	for _, s := range p.States {
		e.pools = append(e.pools, newKVPool(s, &lim))
	}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		lower, ok := b.lower[n.Op]
		if !ok {
			return nil, fmt.Errorf("cpu: no kernel for %s", n.Where())
		}
		ks, err := lower(e, n)
		if err != nil {
			return nil, fmt.Errorf("cpu: %s: %w", n.Where(), err)
		}
		e.kernels = append(e.kernels, ks)
	}
	e.workers = newWorkers(b.threads)
	return e, nil
}

// A lowering makes the kernels of one node. What does not change from step to
// step is done here.
type lowering func(e *executable, n *plan.Node) ([]kernel, error)

// A kernel is work on the items 0 <= i < size() of the step that an executable is
// running, shared by its workers. All of it is done before the next kernel begins.
type kernel struct {
	size  func() int               // items in this step
	grain int                      // items that are taken together; 0 means 1
	run   func(worker, lo, hi int) // items lo to hi
}

// one is work that is not shared.
func one(run func()) kernel {
	return kernel{size: func() int { return 1 }, run: func(_, _, _ int) { run() }}
}

// Package cpu runs programs on the processor.
//
// It has two backends. [Reference] defines every operation: plain loops, float64 sums, one thread,
// written to be read. [New] is the fast one: its work is split over threads, and its sums follow
// one fixed order per weight, so that a row's bits depend neither on the other rows of a step nor
// on the number of threads.
//
// The package knows operations and dtypes; it knows no architecture and no file format.
package cpu

import (
	"context"
	"fmt"
	"time"

	"github.com/realizar/realizar/internal/machine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// Backend compiles programs for the processor.
type Backend struct {
	name      string
	threads   int
	tier      tier
	reference bool // every node runs on the reference
	products  bool // supports 8-bit activations
	passes    bool

	// For a part of a program: see [Backend.Connect].
	link *link
	part int
}

// New returns the backend that splits its work over [Threads](threads) threads.
func New(threads int) *Backend {
	return &Backend{name: "cpu", threads: Threads(threads), tier: tiers()[0], products: true, passes: true}
}

// Tiers returns the names of the instruction sets for which this processor has kernels, best first,
// "generic" last.
func Tiers() []string {
	var names []string
	for _, t := range tiers() {
		names = append(names, t.name)
	}
	return names
}

// WithTier returns b with the kernels of one of [Tiers].
func (b *Backend) WithTier(name string) (*Backend, error) {
	for _, t := range tiers() {
		if t.name == name {
			other := *b
			other.tier = t
			return &other, nil
		}
	}
	return nil, fmt.Errorf("cpu: no kernels of tier %q for this processor; want one of %v", name, Tiers())
}

// Tier returns the name of the instruction set that b's kernels use.
func (b *Backend) Tier() string { return b.tier.name }

// Reference returns the backend that defines each operation.
func Reference() *Backend {
	return &Backend{name: "cpu-reference", threads: 1, tier: generic, reference: true}
}

// Name returns "cpu" or "cpu-reference".
func (b *Backend) Name() string { return b.name }

// Rounds is the format of rounded activations: bytes in blocks of 32 with a scale.
const Rounds = tensor.Q8_0

// Rounds implements [plan.Backend].
func (b *Backend) Rounds() tensor.DType { return Rounds }

// Memory returns the machine's memory.
func (b *Backend) Memory() plan.MemoryInfo {
	m := machine.ReadMemory()
	return plan.MemoryInfo{Free: m.Free, Total: m.Total}
}

// Compile implements [plan.Backend].
func (b *Backend) Compile(ctx context.Context, p *plan.Program, lim plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	if lim.Tokens <= 0 || lim.Seqs <= 0 || lim.Rows <= 0 || lim.PageTokens <= 0 || len(lim.Pages) != len(p.Groups) {
		return nil, fmt.Errorf("cpu: limits %+v do not fit a program of %d groups of states", lim, len(p.Groups))
	}
	if err := checkCache(p, lim.Cache); err != nil {
		return nil, err
	}
	if lim.Activations != tensor.F32 && lim.Activations != Rounds {
		return nil, fmt.Errorf("cpu: no %v activations; use %v or %v", lim.Activations, tensor.F32, Rounds)
	}
	if _, err := lim.StateBytes(p); err != nil {
		return nil, err
	}
	e := &executable{
		backend: b, p: p, lim: lim, tier: b.tier, desks: make([]desk, b.threads), code: b.layout(p, &lim, false),
		weights: b.interleaved(p, &lim), workers: newWorkers(b.threads),
	}
	e.copies = copies(p, e.weights)
	e.steps.New = func(p plan.PooledStep) *step {
		s := &step{PooledStep: p, e: e, chosen: make(chan struct{}, 1)}
		s.choose = s.rows
		return s
	}
	err := b.join(e)
	if err == nil {
		err = tensor.Guard(func() error { return b.prepare(ctx, e, loaded) })
	}
	if err != nil {
		e.port.giveUp()
		_ = e.Close()
		return nil, err
	}
	return e, nil
}

// prepare allocates and loads everything that e needs.
func (b *Backend) prepare(ctx context.Context, e *executable, loaded plan.Loaded) error {
	if err := e.makePools(); err != nil {
		return err
	}
	e.samplers = make([]sample.Sampler, min(b.threads, maxSamplers))
	for i := range e.samplers {
		e.samplers[i].Maxima = b.tier.vector.maxima
	}
	size := b.desk(e.p, &e.lim)
	for i := range e.desks {
		e.desks[i] = size.make()
	}
	e.code.allocate(e.p, &e.lim)
	e.seen = make([]float32, observedRoom(e.p, &e.lim))
	e.masks = make([]uint32, e.p.MaskWords()*e.lim.Masks)
	begun := time.Now()
	if err := e.load(ctx, loaded); err != nil {
		return err
	}
	e.setup.Load = time.Since(begun)
	begun = time.Now()
	err := b.lower(e)
	e.setup.Compile = time.Since(begun)
	return err
}

// Scratch returns the bytes that [Backend.Compile] allocates besides weights and states, except
// copies of norms, biases and rotary angles, and the results of steps.
func (b *Backend) Scratch(p *plan.Program, lim plan.Limits) int {
	desk := b.desk(p, &lim)
	return b.layout(p, &lim, false).bytes(p, &lim) + b.spaceBytes(p, &lim) + b.threads*desk.bytes() + 4*observedRoom(p, &lim) + 4*largestSlot(p) + lim.MaskBytes(p)
}

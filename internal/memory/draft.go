package memory

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// ErrDraft reports that the draft model has too little memory.
var ErrDraft = errors.New("the draft model does not fit")

// gapPart is which part of the time between tokens the steps of a draft model may take, while it
// catches up.
const gapPart = 8

// WithDraft plans the memory of a draft model beside that of p's model, on the same device, and
// leaves p what remains. Both caches share the memory by the bytes that a token takes in each; a
// draft model that has less than the context needs follows shorter texts only. made is the context
// that the draft model was made for.
func (p *Planner) WithDraft(program *plan.Program, made int) error {
	own := *p
	own.Program, own.Backend, own.Draft = program, p.Device, nil
	own.Made = min(made, cmp.Or(p.Options.Context, p.Made))
	o := &own.Options
	o.Context, o.HostCache, o.Drafts, o.StreamAll, o.StreamNone, o.Ample = 0, 0, engine.Drafts{}, false, true, false
	o.Follows, o.Reserved = true, p.Options.Reserved
	o.Gap = cmp.Or(p.Options.Gap, p.Device.Kind.Gap, engine.Gap) / gapPart
	if program.MisfitHead(o.Cache) > 0 {
		o.Cache = tensor.F16
	}
	free := p.Free()
	_, large, err := p.Least()
	if err != nil {
		return err
	}
	_, small, err := own.Least()
	if err != nil {
		return fmt.Errorf("%w: %w", ErrDraft, err)
	}
	if free > 0 {
		part := float64(program.RowBytes(o.Cache)) / float64(max(1, program.RowBytes(o.Cache)+p.Program.RowBytes(p.Options.Cache)))
		fixed := int64(small.Weights) + int64(small.Scratch)
		left := free - fixed - int64(large.Weights) - int64(large.Scratch)
		first := int64(small.States) // for one sequence
		spare := left - first - int64(large.States)
		if spare < 0 { // contexts are shorter, or weights stream
			first, spare = 0, max(left, (free-fixed)/8)
		}
		if p.Options.Limit == 0 {
			spare /= 2
		}
		o.Limit = max(1, fixed+first+int64(part*float64(max(0, spare))))
	}
	p.Draft = &DraftUse{Least: int64(small.Weights) + int64(small.States) + int64(small.Scratch)}
	if p.Draft.Config, err = own.Config(); err == nil {
		p.Draft.Memory, err = p.Draft.Config.Memory(program, own.Backend)
	}
	if err != nil { // Least does not depend on it
		p.unfit = fmt.Errorf("%w: %w", ErrDraft, err)
		return nil
	}
	p.Options.Reserved += p.Draft.Total()
	return nil
}

// A DraftUse is what a draft model takes beside the model.
type DraftUse struct {
	engine.Memory
	Config engine.Config
	Least  int64 // bytes with a cache for one sequence
}

// Total returns the bytes of all parts.
func (u *DraftUse) Total() int64 { return int64(u.Weights) + int64(u.States) + int64(u.Scratch) }

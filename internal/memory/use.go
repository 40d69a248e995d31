package memory

import (
	"cmp"
	"fmt"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
)

// A Use is the memory that a model takes on a device, in bytes.
type Use struct {
	engine.Memory
	Config engine.Config
	Limits plan.Limits // of Config
	Groups []GroupUse  // of the program

	// The cache has room for this many Sequences of Config.Context tokens each, or this many Tokens
	// of any sequences.
	Sequences, Tokens int
}

// A GroupUse is the memory that the states of a group take.
type GroupUse struct {
	plan.Group
	Layers int
	Bytes  int64

	// For states per sequence: how many there is room for, and how many of them are for checkpoints,
	// which prefixes are found by, beside those of running sequences.
	Slots, Checkpoints int
}

// Use returns the memory that the model takes with [Planner.Config]. On a host device it is the
// memory for the context that was asked for, or else the one that the model was made for, whether
// it fits or not.
func (p *Planner) Use() (*Use, error) {
	if p.unfit != nil {
		return nil, p.unfit
	}
	c, err := p.shown()
	if err != nil {
		return nil, err
	}
	u := &Use{Config: c, Limits: c.Limits(p.Program)}
	if u.Memory, err = c.Memory(p.Program, p.Backend); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTooLittle, err)
	}
	for g, group := range p.Program.Groups {
		page, err := u.Limits.PageBytes(p.Program, g)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrTooLittle, err)
		}
		of := GroupUse{Group: group, Bytes: int64(page) * int64(u.Limits.Pages[g])}
		if group.Kind == plan.PerSequence {
			of.Slots, of.Checkpoints = u.Limits.Pages[g], c.Checkpoints(p.Program)[g]
		}
		for _, state := range p.Program.States {
			if state.Group == g {
				of.Layers++
			}
		}
		u.Groups = append(u.Groups, of)
	}
	u.Sequences, u.Tokens = c.Holds(p.Program)
	return u, nil
}

func (p *Planner) shown() (engine.Config, error) {
	if !p.Device.Kind.Host {
		return p.Config()
	}
	asked := *p
	asked.Options.Context = cmp.Or(p.Options.Context, p.Made)
	c, _, _, err := asked.fit(asked.config(), placement{})
	if err != nil {
		return c, fmt.Errorf("%w: %w", ErrTooLittle, err)
	}
	return c, nil
}

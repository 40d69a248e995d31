package memory

import "github.com/realizar/realizar/internal/engine"

// A placement is a way to place weights. A planner tries some, one after the other.
type placement struct {
	weights int  // that the device may hold, as in [plan.Limits]: 0 for all, 1 for the fewest that work
	fill    bool // what the cache leaves is for more weights than the fewest
	least   int  // an automatic context is halved down to this
	brim    bool // the cache of this context may leave nothing free
}

// enough is the context for which an automatic choice lets weights stream.
const enough = 4096

// placements are the ways to place the weights of a model that c sizes, the best
// first.
func (p *Planner) placements(c engine.Config) ([]placement, error) {
	all := []placement{{least: smallest}}
	switch {
	case p.Device.Kind.Host || p.Options.StreamNone:
		return all, nil
	case p.Options.StreamAll:
		return []placement{{weights: 1, least: smallest, brim: true}}, nil
	}
	c.States, c.Weights, c.Pinned = 1, 0, 0
	whole, err := c.Memory(p.Program, p.Backend)
	if err != nil {
		return nil, err
	}
	c.Weights, c.Pinned = 1, p.Pinned()
	fewest, err := c.Memory(p.Program, p.Backend)
	if err != nil || fewest.Weights >= whole.Weights {
		return all, err // to stream would spare nothing
	}
	return []placement{{least: enough, brim: true}, {weights: 1, fill: true, least: smallest, brim: true}}, nil
}

// search is c as it fits, and whether it does; else it is what was tried last, which
// takes one. Weights that stream are slow, so they do only if that allows a larger
// context, up to what is enough, or if nothing else has room.
func (p *Planner) search(c engine.Config) (sized engine.Config, one engine.Memory, ok bool, err error) {
	ways, err := p.placements(c)
	if err != nil {
		return c, one, false, err
	}
	for _, w := range ways {
		if sized, one, ok, err = p.halve(c, w); err != nil {
			return sized, one, false, err
		}
		if ok && w.fill {
			resident, takes, fits, err := p.halve(c, placement{least: sized.Context, brim: true})
			if fits || err != nil {
				return resident, takes, fits, err
			}
		}
		if ok {
			break
		}
	}
	return sized, one, ok, nil
}

// halve is c with the largest context that fits if weights are placed as w says, and
// whether one does.
func (p *Planner) halve(c engine.Config, w placement) (sized engine.Config, one engine.Memory, ok bool, err error) {
	for ; ; c.Context = powerBelow(c.Context) {
		sized, one, ok, err = p.fit(c, w)
		if ok || err != nil || p.Options.Context > 0 || c.Context <= w.least {
			return sized, one, ok, err
		}
	}
}

// powerBelow is the largest power of two below n.
func powerBelow(n int) int {
	p := 1
	for p*2 < n {
		p *= 2
	}
	return p
}

package memory

import "github.com/realizar/realizar/internal/engine"

// A placement is a way to place weights. A planner tries several in order.
type placement struct {
	weights int  // limit of weights on the device, as in [plan.Limits]: 0 for none, 1 for the fewest that work
	fill    bool // more weights than the fewest take what the cache leaves
	least   int  // the smallest automatic context
	brim    bool // the cache of this context may leave no memory free
}

// enough is the context in tokens below which an automatic choice streams weights instead.
const enough = 4096

// placements returns the ways to place the weights of the model for c, best first.
func (p *Planner) placements(c engine.Config) ([]placement, error) {
	all, ample := []placement{{least: smallest}}, placement{least: enough, brim: true}
	switch {
	case p.Options.Ample:
		return []placement{ample}, nil
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
		return all, err // streaming would save nothing
	}
	return []placement{ample, {weights: 1, fill: true, least: smallest, brim: true}}, nil
}

// search returns c with a context and a placement that fit. If none fits, ok is false, and sized
// and one are those of the last attempt. one is what one sequence takes. Streamed weights are slow:
// search uses them only if that allows a larger context, up to enough, or if nothing else fits.
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

// halve returns c with the largest context that fits with placement w; ok reports whether one does.
func (p *Planner) halve(c engine.Config, w placement) (sized engine.Config, one engine.Memory, ok bool, err error) {
	for ; ; c.Context = powerBelow(c.Context) {
		sized, one, ok, err = p.fit(c, w)
		if ok || err != nil || p.Options.Context > 0 || c.Context <= w.least {
			return sized, one, ok, err
		}
	}
}

// powerBelow returns the largest power of two below n.
func powerBelow(n int) int {
	p := 1
	for p*2 < n {
		p *= 2
	}
	return p
}

package realizar

import (
	"context"
	"fmt"

	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/internal/mesh"
)

// MaxParts is the most devices for which [Description.Parts] divides a model.
const MaxParts = 64

// PartMemory is what one of several devices holds of a model that they run together, in bytes.
type PartMemory struct {
	Weights int64 `json:"weights"` // as stored in the file
	States  int64 `json:"states"`  // of one answer
}

// Parts divides the model among n devices and returns what each holds: some rows of most weights, the
// keys and values of some heads, and all of what each device computes for itself; or with SplitLayers
// all of some layers. Options are those of [Description.Least]; the states have room for one answer of
// Context tokens.
func (d *Description) Parts(ctx context.Context, o Options, n int) (parts []PartMemory, err error) {
	if n < 1 || n > MaxParts {
		return nil, wrap(fmt.Errorf("%d devices; want 1 to %d", n, MaxParts))
	}
	_, err = d.plan(ctx, o, func(p *memory.Planner) error {
		c, _, err := p.Least()
		if err != nil {
			return err
		}
		divide := func() ([]mesh.Part, error) { return mesh.Partition(p.Program, n, nil) }
		if o.Split == SplitLayers {
			divide = func() ([]mesh.Part, error) { return mesh.Layers(p.Program, mesh.Equal(n)) }
		}
		all, err := divide()
		if err != nil {
			return err
		}
		parts = nil
		for _, part := range all {
			l := part.Limits(c.Limits(p.Program))
			states, err := l.StateBytes(part.Program)
			if err != nil {
				return err
			}
			parts = append(parts, PartMemory{int64(part.Weights()), int64(states)})
		}
		return nil
	})
	return parts, err
}

//go:build !nocuda

package cuda

import (
	"context"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
)

// A group is several GPUs that run a model together.
type group struct {
	*mesh.Backend
	gpus  *cuda.Group
	parts int
}

func openGroup(o backends.Options) (backends.Backend, error) {
	numbers := append([]int{o.Index}, o.Others...)
	g, err := cuda.OpenGroup(cuda.Options{Tables: tables()}, numbers)
	if err != nil {
		return nil, present(err)
	}
	return &group{mesh.New(g, len(numbers)), g, len(numbers)}, nil
}

func (g *group) Name() string        { return g.gpus.Name() }
func (g *group) Description() string { return g.gpus.Names() }
func (g *group) Close() error        { return g.gpus.Close() }

// Kernels returns those of the first part.
func (g *group) Kernels(p *plan.Program, l plan.Limits) []string {
	parts, err := g.Partition(p, l)
	if err != nil {
		return []string{err.Error()}
	}
	return g.gpus.Kernels(parts[0].Program, l)
}

// Bandwidth returns that of all GPUs together, as if each were as fast as the first.
func (g *group) Bandwidth(ctx context.Context) (float64, error) {
	one, err := g.gpus.Bandwidth(ctx)
	return one * float64(g.parts), err
}

// Link returns that of the first GPU.
func (g *group) Link(ctx context.Context) (float64, error) { return g.gpus.Link(ctx) }

// Streaming says that all weights stay on the GPUs.
func (g *group) Streaming(p *plan.Program, l plan.Limits) plan.Streaming {
	return plan.Streaming{Resident: g.Weights(p, l)}
}

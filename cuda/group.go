//go:build !nocuda

package cuda

import (
	"context"
	"log/slog"

	"github.com/realizar/realizar/internal/backends"
	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/mesh"
	"github.com/realizar/realizar/internal/plan"
)

// A group is several GPUs that run a model together.
type group struct {
	*mesh.Backend
	gpus    *cuda.Group
	parts   int
	byLayer bool
}

func openGroup(o backends.Options) (backends.Backend, error) {
	numbers := append([]int{o.Index}, o.Others...)
	g, err := cuda.OpenGroup(cuda.Options{Tables: tables()}, numbers)
	if err != nil {
		return nil, present(err)
	}
	split := splitOf(o.Split, g.Apart())
	return &group{mesh.New(g, len(numbers), split), g, len(numbers), split == mesh.ByLayer}, nil
}

// splitOf returns how GPUs divide a model. apart is why they do not reach each other's memory, or nil:
// exchanges in every layer would go through the host's.
func splitOf(wanted mesh.Split, apart error) mesh.Split {
	switch {
	case wanted != mesh.Auto:
		return wanted
	case apart == nil:
		return mesh.ByTensor
	}
	slog.Warn("each GPU has some of the layers, because not all reach each other's memory; --split tensor gives each a share of every layer", slog.Any("error", apart))
	return mesh.ByLayer
}

func (g *group) Name() string { return g.gpus.Name() }
func (g *group) Close() error { return g.gpus.Close() }

func (g *group) Description() string {
	if g.byLayer {
		return g.gpus.Names() + " by layer"
	}
	return g.gpus.Names()
}

// Kernels returns those of the first part, or of all parts if these have different layers.
func (g *group) Kernels(p *plan.Program, l plan.Limits) (all []string) {
	parts, err := g.Partition(p, l)
	if err != nil {
		return []string{err.Error()}
	}
	if !g.byLayer {
		parts = parts[:1]
	}
	for i := range parts {
		all = append(all, g.gpus.Kernels(parts[i].Program, parts[i].Limits(l))...)
	}
	return all
}

// Bandwidth returns that of all GPUs that read weights for a token at the same time, as if each were
// as fast as the first.
func (g *group) Bandwidth(ctx context.Context) (float64, error) {
	one, err := g.gpus.Bandwidth(ctx)
	if g.byLayer {
		return one, err
	}
	return one * float64(g.parts), err
}

// Link returns that of the first GPU.
func (g *group) Link(ctx context.Context) (float64, error) { return g.gpus.Link(ctx) }

// Streaming says that all weights stay on the GPUs.
func (g *group) Streaming(p *plan.Program, l plan.Limits) plan.Streaming {
	return plan.Streaming{Resident: g.Weights(p, l)}
}

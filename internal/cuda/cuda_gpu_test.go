//go:build gpu

package cuda_test

import (
	"context"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/cuda"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// These tests need a GPU of capability 8.0 or later:
//
//	CGO_ENABLED=0 go test -tags gpu -c -o cuda.test ./internal/cuda

func open(t *testing.T, o cuda.Options) *cuda.Backend {
	t.Helper()
	b, err := cuda.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// A streamer leaves device memory for as few layers as possible.
type streamer struct {
	*cuda.Backend
	pinned int
}

func (s streamer) Compile(ctx context.Context, p *plan.Program, lim plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	lim.Weights, lim.Pinned = 1, s.pinned
	return s.Backend.Compile(ctx, layered(p), lim, loaded)
}

// layered gives every node of p a layer if p has no layers, because only layers stream.
func layered(p *plan.Program) *plan.Program {
	if p.Layers() > 0 {
		return p
	}
	q := *p
	q.Nodes = slices.Clone(p.Nodes)
	for i := range q.Nodes {
		q.Nodes[i].Layer = i
	}
	return &q
}

func TestProductBits(t *testing.T) {
	for name, o := range map[string]cuda.Options{"hopper": {}, "base": {Base: true}} {
		t.Run(name, func(t *testing.T) { plantest.ProductBits(t, open(t, o)) })
	}
}

// A rounder rounds activations to E4M3.
type rounder struct{ *cuda.Backend }

func (rounder) Rounds() tensor.DType { return tensor.F8_E4M3 }

func (r rounder) Compile(ctx context.Context, p *plan.Program, lim plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	return r.Backend.Compile(ctx, layered(p), lim, loaded)
}

// Products of activations in E4M3 have errors of a few per cent, and the same bits in every batch.
func TestFloat8(t *testing.T) {
	b := rounder{open(t, cuda.Options{})}
	t.Run("bits", func(t *testing.T) { plantest.ProductBits(t, b) })
	t.Run("plan", func(t *testing.T) { plantest.All(t, b) })
}

func TestPlan(t *testing.T) {
	t.Setenv("REALIZAR_LONG", "1") // a GPU has time for all of it
	for name, pinned := range map[string]int{"streamed": 1 << 40, "staged": 0} {
		t.Run(name, func(t *testing.T) { plantest.All(t, streamer{open(t, cuda.Options{}), pinned}) })
	}
	for name, o := range map[string]cuda.Options{"graphs": {PrefixBytes: 1}, "eager": {Eager: true, PrefixBytes: 1}, "base": {Base: true, PrefixBytes: 1}} {
		t.Run(name, func(t *testing.T) { plantest.All(t, open(t, o)) })
	}
}

package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// latentHeads is how many query heads a block of kernels/latent.cu serves, and latentColumns how many
// numbers of the values each of its warps.
const (
	latentHeads   = 16
	latentColumns = 64
)

// latentForm reports whether n has the kernels of kernels/latent.cu: all heads attend to one row of a
// float16 cache per position, and nothing but a window limits what they see.
func latentForm(n *plan.Node, lim *plan.Limits) bool {
	a := n.Attr.(plan.AttentionAttr)
	return a.Latent && a.KVHeads == 1 && lim.Cache == tensor.F16 && n.Weight == nil && a.Softcap == 0 && a.Chunk == 0 && a.First == 0 && a.Rate == 0 && a.Top == 0 &&
		a.HeadDim%32 == 0 && a.HeadDim <= anyKeyDim && a.Values()%latentColumns == 0 && a.Values() <= anyValueDim
}

// latentGroups returns the number of blocks that serve a token's heads.
func latentGroups(a *plan.AttentionAttr) int { return (a.Heads + latentHeads - 1) / latentHeads }

// latentPartials is the largest number of segments of all tokens, for each group of heads, of which
// different blocks compute the parts.
func latentPartials(a *plan.AttentionAttr) int {
	return max(anyPartials, 4*anyPartials/latentGroups(a))
}

// attendLatent returns the launches of a node with latentForm: attention, and joining the segments if
// several blocks share those of a token.
func (c *Compiler) attendLatent(s *fuse.Stage, a anyAttentionArgs) ([]Launch, error) {
	n := s.Node()
	attr := n.Attr.(plan.AttentionAttr)
	attend, err := c.Kernel("latent", "attend")
	if err != nil {
		return nil, err
	}
	join, err := c.Kernel("latent", "join")
	if err != nil {
		return nil, err
	}
	groups, kept := latentGroups(&attr), c.Layout.p.States[n.State].RowBytes(c.Layout.lim.Cache)
	read, written := c.read(s.Q.In, inFloats), c.written(n.Out)
	// blocks returns how many blocks share a token's segments.
	blocks := func(sh *Shape) int {
		if segments := anySegments(&attr, sh); sh.Tokens*segments <= latentPartials(&attr) {
			return segments
		}
		return 1
	}
	launch := func(f *driver.Function, st *driver.Stream, sh *Shape, grid driver.Dim3) error {
		if a.split, a.maxSegments = 0, int32(blocks(sh)); a.maxSegments > 1 {
			a.split = 1
		}
		return f.Launch(st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: 256}, Programmatic: c.Early}, device.Arguments(&a))
	}
	return []Launch{{
		Name: "latent attend", rows: plan.Tokens,
		Moves: func(b *plan.Batch) int { return len(b.Tokens)*(read+written) + anyAttended(&attr, b)*kept },
		begin: func(st *driver.Stream, sh *Shape) error {
			return launch(attend, st, sh, driver.Dim3{X: blocks(sh), Y: groups, Z: sh.Tokens})
		},
	}, {
		Name: "latent join", rows: plan.Tokens,
		Moves: func(b *plan.Batch) int { return len(b.Tokens) * written },
		runs: func(sh *Shape) string {
			if blocks(sh) == 1 {
				return ""
			}
			return "latent join"
		},
		begin: func(st *driver.Stream, sh *Shape) error {
			return launch(join, st, sh, driver.Dim3{X: 1, Y: attr.Heads, Z: sh.Tokens})
		},
	}}, nil
}

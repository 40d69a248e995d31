package lower

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// latentHeads is how many query heads of a token a block of kernels/latent.cuh serves, and
// latentColumns how many numbers of the values each of its warps. With many tokens of a sequence, a
// block serves latentTokens, and copies the keys of latentPiece positions at a time. The kernel for
// Hopper has parts of latentColumns numbers of these.
const (
	latentHeads   = 16
	latentColumns = 64
	latentTokens  = 2
	latentPiece   = 64

	wideLatentThreads = 512
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

// latentShared returns the shared memory in bytes of a block with several tokens: their queries,
// and two pieces; on Hopper, the weights of two pieces too.
func (c *Compiler) latentShared(a *plan.AttentionAttr) int {
	numbers := (a.HeadDim + latentColumns - 1) / latentColumns * latentColumns
	shared := 2*latentTokens*latentHeads*a.HeadDim + 2*2*latentPiece*numbers
	if c.latentWide() {
		shared += 2 * 2 * latentPiece * latentTokens * latentHeads
	}
	return shared
}

// latentWide reports whether blocks with several tokens run the kernel for Hopper. It copies whole
// runs.
func (c *Compiler) latentWide() bool { return c.Hopper && c.Layout.lim.PageTokens%runTokens == 0 }

// latentStatic is no less than the shared memory that such a block has besides.
const latentStatic = 6 << 10

// latentFits reports whether the device has the shared memory of such a block.
func (c *Compiler) latentFits(a *plan.AttentionAttr) bool {
	return c.SharedPerBlock == 0 || c.latentShared(a)+latentStatic <= c.SharedPerBlock
}

// latentMany reports whether blocks serve several tokens: if a sequence has many and there are so
// many such blocks that segments need not be divided among them.
func (c *Compiler) latentMany(a *plan.AttentionAttr, sh *Shape) bool {
	return c.latentFits(a) && sh.each == 0 && latentGroups(a)*sh.Tokens/latentTokens >= c.Multiprocessors/latentShare
}

// latentShare is the most multiprocessors per block of several tokens for which such blocks are
// chosen. On one multiprocessor of an H200 the kernel for Hopper is 3.4 times as fast as the others, and
// attend_many 1.4 times.
const latentShare = 4

// A latentKernel says what a block attends to.
type latentKernel int

const (
	ofSegments latentKernel = iota // segments of a token
	ofRun                          // a run of a token
	ofTokens                       // several tokens
)

// latentDivided returns what a block attends to in a step of shape sh, and how many blocks share a
// token's segments. Runs are for steps with so few that their blocks run at the same time.
func (c *Compiler) latentDivided(a *plan.AttentionAttr, sh *Shape) (of latentKernel, parts int) {
	const runs = contextSegment / runTokens
	segments := anySegments(a, sh)
	switch all := sh.Tokens * segments; {
	case c.latentMany(a, sh):
		return ofTokens, 1
	case runs*all <= latentPartials(a) && runs*all*latentGroups(a) <= latentRunBlocks*c.Multiprocessors:
		return ofRun, runs * segments
	case all <= latentPartials(a):
		return ofSegments, segments
	}
	return ofSegments, 1
}

// latentRunBlocks is the most blocks with a run each for a multiprocessor, which runs two of them.
const latentRunBlocks = 2

// attendLatent returns the launches of a node with latentForm: attention, and joining the segments if
// several blocks share those of a token.
func (c *Compiler) attendLatent(s *fuse.Stage, a anyAttentionArgs) ([]Launch, error) {
	n := s.Node()
	attr := n.Attr.(plan.AttentionAttr)
	attend, err := c.Kernel("latent", "attend")
	if err != nil {
		return nil, err
	}
	shared := 0
	if c.latentFits(&attr) {
		shared = c.latentShared(&attr)
	}
	family, name, threads := "latent", "attend_many", 256
	if c.latentWide() {
		family, name, threads = "wide_latent", "attend_512", wideLatentThreads
		if attr.Values() <= 256 {
			name = "attend_256"
		}
	}
	many, err := c.sharedKernel(family, name, shared)
	if err != nil {
		return nil, err
	}
	byRun, err := c.Kernel("latent", "attend_runs")
	if err != nil {
		return nil, err
	}
	join, err := c.Kernel("latent", "join")
	if err != nil {
		return nil, err
	}
	joinRuns, err := c.Kernel("latent", "join_runs")
	if err != nil {
		return nil, err
	}
	groups, kept := latentGroups(&attr), c.Layout.p.States[n.State].RowBytes(c.Layout.lim.Cache)
	read, written := c.read(s.Q.In, inFloats), c.written(n.Out)
	launch := func(name string, f *driver.Function, threads, shared int, grid func(sh *Shape) driver.Dim3) Launch {
		return Launch{Name: name, rows: plan.Tokens, begin: func(st *driver.Stream, sh *Shape) error {
			_, parts := c.latentDivided(&attr, sh)
			if a.split, a.maxSegments = 0, int32(parts); parts > 1 {
				a.split = 1
			}
			return c.queue(f, st, driver.LaunchConfig{Grid: grid(sh), Block: driver.Dim3{X: threads}, Shared: shared}, device.Arguments(&a))
		}}
	}
	sharedParts := func(sh *Shape) driver.Dim3 {
		_, parts := c.latentDivided(&attr, sh)
		return driver.Dim3{X: parts, Y: groups, Z: sh.Tokens}
	}
	attends := oneOf("latent attend, attend_runs, "+family+" "+name, []Launch{
		ofSegments: launch("latent attend", attend, 256, 0, sharedParts),
		ofRun:      launch("latent attend_runs", byRun, 256, 0, sharedParts),
		ofTokens: launch(family+" "+name, many, threads, shared, func(sh *Shape) driver.Dim3 {
			return driver.Dim3{X: groups, Y: (sh.Tokens + latentTokens - 1) / latentTokens}
		}),
	}, func(sh *Shape) int {
		of, _ := c.latentDivided(&attr, sh)
		return int(of)
	})
	ofHeads := func(sh *Shape) driver.Dim3 { return driver.Dim3{X: 1, Y: attr.Heads, Z: sh.Tokens} }
	joins := oneOf("latent join, join_runs", []Launch{launch("latent join", join, 256, 0, ofHeads), launch("latent join_runs", joinRuns, 256, 0, ofHeads)}, func(sh *Shape) int {
		if of, _ := c.latentDivided(&attr, sh); of == ofRun {
			return 1
		}
		return 0
	}).unless(func(sh *Shape) bool {
		_, parts := c.latentDivided(&attr, sh)
		return parts == 1
	})
	attends.Moves = func(b *plan.Batch) int { return len(b.Tokens)*(read+written) + anyAttended(&attr, b)*kept }
	joins.Moves = func(b *plan.Batch) int { return len(b.Tokens) * written }
	return []Launch{attends, joins}, nil
}

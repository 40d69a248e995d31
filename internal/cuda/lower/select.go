package lower

import (
	"fmt"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// selection implements [plan.Select]. It scores all keys of some tokens, then chooses for them.
type selection struct{ ordinary }

func (selection) check(n *plan.Node) error {
	if a := n.Attr.(plan.SelectAttr); a.HeadDim > anyKeyDim {
		return fmt.Errorf("no kernel for keys of %d values, of which %d is the most", a.HeadDim, anyKeyDim)
	}
	return nil
}

func (selection) writes(*fuse.Stage) bool { return false }

// scoreBytes bounds the memory for scores, which is that of one token at least.
const scoreBytes = 128 << 20

// selectRows returns for how many tokens there is room for scores, and the elements from a token's
// scores to those of the next.
func selectRows(p *plan.Program, lim *plan.Limits, n *plan.Node) (tokens, apart int) {
	rows := lim.Pages[p.States[n.State].Group] * lim.PageTokens / max(1, n.Attr.(plan.SelectAttr).Every)
	apart = (rows + 63) &^ 63
	return max(1, min(lim.Tokens, scoreBytes/(4*max(1, apart)), 65535)), apart
}

func (selection) scratch(p *plan.Program, lim *plan.Limits, n *plan.Node) []int {
	tokens, apart := selectRows(p, lim, n)
	return []int{4 * tokens * apart}
}

type scoreArgs struct {
	q, weights                        driver.DevicePtr
	qStride, weightStride, heads, top int32
	pool                              anyPoolArgs
	table                             tableArgs
	count, scores                     driver.DevicePtr
	apart                             int64
	first, _                          int32
}

type chooseArgs struct {
	scores                    driver.DevicePtr
	apart                     int64
	first, every, top, stride int32
	places, count, out        driver.DevicePtr
}

func (selection) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	attr, q, w, out := n.Attr.(plan.SelectAttr), c.forms(n.In[0]), c.forms(n.In[2]), c.forms(n.Out)
	every, lim := max(1, attr.Every), c.Layout.lim
	store, err := c.storeRows(n, n.State, fuse.Head{In: n.In[1]}, nil)
	if err != nil {
		return nil, err
	}
	room, apart := selectRows(c.Layout.p, lim, n)
	a := scoreArgs{
		q: q.F32, weights: w.F32, qStride: q.Stride, weightStride: w.Stride, heads: int32(attr.Heads), top: int32(attr.Top),
		pool: c.anyPool(n.State), table: c.pageTable(n.State), count: c.Step.counts + countTokens, scores: c.scratch(n)[0], apart: int64(apart),
	}
	b := chooseArgs{scores: a.scores, apart: a.apart, every: int32(every), top: a.top, stride: out.Stride, places: a.table.places, count: a.count, out: out.F32}
	family := "score_" + cacheNames[lim.Cache]
	score, err := c.Kernel(family, "score")
	if err != nil {
		return nil, err
	}
	choose, err := c.Kernel("choose", "choose")
	if err != nil {
		return nil, err
	}
	kept, row := c.Layout.p.States[n.State].RowBytes(lim.Cache), c.read(n.In[0], inFloats)+c.read(n.In[2], inFloats)+c.written(n.Out)
	return []Launch{store, {
		Name: family + " score, choose", rows: plan.Tokens,
		Moves: func(b *plan.Batch) int {
			return len(b.Tokens)*row + b.Attended(plan.Group{Kind: plan.PerToken})/every*kept
		},
		begin: func(st *driver.Stream, sh *Shape) error {
			seen := min(sh.segments*contextSegment/every, apart)
			for first := 0; first < sh.Tokens; first += room {
				tokens := min(room, sh.Tokens-first)
				a.first, b.first = int32(first), int32(first)
				if seen > attr.Top {
					grid := driver.Dim3{X: (seen + 255) / 256, Y: tokens}
					if err := c.queue(score, st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: 256}}, device.Arguments(&a)); err != nil {
						return err
					}
				}
				if err := c.queue(choose, st, driver.LaunchConfig{Grid: driver.Dim3{X: tokens}, Block: driver.Dim3{X: 512}}, device.Arguments(&b)); err != nil {
					return err
				}
			}
			return nil
		},
	}}, nil
}

package lower

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// maxHeadDim is the longest head.
const maxHeadDim = 256

// blockHeads is how many query heads of one key/value head a block of one token serves.
const blockHeads = 8

// splitPartials is how many segments of a context, over all tokens of a step, blocks may
// share; of more, a block does all of a token.
const splitPartials = 1024

// decodeBlocks is how many blocks of a decoding step find room at the same time. Fewer
// blocks than that could be more, with fewer heads each.
const decodeBlocks = 128

// attention is [plan.Attention]: it normalises and turns heads as they are stored.
type attention struct{ ordinary }

func (attention) writes(s *fuse.Stage) bool { return wholeBlocks(s.Node()) }

// wholeBlocks reports whether heads are whole blocks of what is written in bytes.
func wholeBlocks(n *plan.Node) bool { return n.Attr.(plan.AttentionAttr).HeadDim%32 == 0 }

// scratch is for segments that blocks share, and for tickets that say which block is the last.
func (attention) scratch(_ *plan.Program, lim *plan.Limits, n *plan.Node) []int {
	a := n.Attr.(plan.AttentionAttr)
	return []int{4 * headGroups(a) * blockHeads * (a.HeadDim + 2) * splitPartials, 4 * a.Heads * Power(lim.Tokens)}
}

type attentionArgs struct {
	q                           driver.DevicePtr
	stride, heads, kvHeads, dim int32
	scale, softcap              float32
	window, _                   int32
	sinks                       driver.DevicePtr
	pool                        poolArgs
	table                       tableArgs
	count, seqs, starts         driver.DevicePtr
	out                         device.Forms
	partial, tickets            driver.DevicePtr
	split, maxSegments          int32
}

func (o attention) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	attr := n.Attr.(plan.AttentionAttr)
	room := c.scratch(n)
	group := c.Layout.p.States[n.State].Group
	q, k, v := c.forms(s.Q.In), c.forms(s.K.In), c.forms(n.In[2])
	table := tableArgs{pages: c.Step.pages[group], places: c.Step.places[group]}

	t := turnArgs{
		q: q.F32, k: k.F32, v: v.F32, qStride: q.Stride, kStride: k.Stride, vStride: v.Stride,
		kvHeads: int32(attr.KVHeads), headDim: int32(attr.HeadDim), qOut: q.F32, qOutStride: q.Stride,
		pool: c.pool(n.State), table: table, layer: int32(max(n.Layer, 0)),
	}
	if s.Q.Rope != nil {
		t.heads = int32(attr.Heads)
		t.qAngles, t.qDims, t.qInterleaved = c.turned(s.Q.Rope)
	}
	t.kAngles, t.kDims, t.kInterleaved = c.turned(s.K.Rope)
	if m := s.Q.Norm; m != nil {
		t.qNorm, t.qEps = c.weight(m.Weight), float32(m.Attr.(plan.NormAttr).Eps)
	}
	if m := s.K.Norm; m != nil {
		t.kNorm, t.kEps = c.weight(m.Weight), float32(m.Attr.(plan.NormAttr).Eps)
	}
	store, err := c.turn(&t)
	if err != nil {
		return nil, err
	}

	a := attentionArgs{
		q: q.F32, stride: q.Stride, heads: int32(attr.Heads), kvHeads: int32(attr.KVHeads), dim: int32(attr.HeadDim),
		scale: float32(attr.Scale), softcap: float32(attr.Softcap), window: int32(attr.Window), sinks: c.weight(n.Weight),
		pool: c.pool(n.State), table: table, count: c.Step.counts + countTokens, seqs: c.Step.counts + countSeqs, starts: c.Step.starts,
		out: c.forms(n.Out), partial: room[0], tickets: room[1],
	}
	by := c.attentionBy(attr.HeadDim)
	decode, err := c.decode(by, &decodeArgs{turn: t, attention: a})
	if err != nil {
		return nil, err
	}
	attend, err := c.attend(by, &a)
	if err != nil {
		return nil, err
	}
	store.Moves, attend.Moves, decode.Moves = c.attentionMoves(s)
	return []Launch{store.unless(decodes), attend.unless(decodes), decode}, nil
}

// attentionMoves are what the launches of attention read and write: those that store and
// attend one after the other, and the one that does both.
func (c *Compiler) attentionMoves(s *fuse.Stage) (store, attend, both func(b *plan.Batch) int) {
	n := s.Node()
	a, kept := n.Attr.(plan.AttentionAttr), c.Pools[n.State].Bytes/c.Layout.lim.PageTokens // of a position
	q, out := c.read(s.Q.In, inFloats), c.written(n.Out)
	keys, turned := c.read(s.K.In, inFloats)+c.read(n.In[2], inFloats), 0
	if s.Q.Rope != nil {
		turned = 2 * q
	}
	store = func(b *plan.Batch) int { return len(b.Tokens) * (turned + keys + kept) }
	attend = func(b *plan.Batch) int { return len(b.Tokens)*(q+out) + b.Attended(a.Window)*kept }
	both = func(b *plan.Batch) int { return len(b.Tokens)*(q+keys+kept+out) + b.Attended(a.Window)*kept }
	return store, attend, both
}

// An attentionBy says which kernels attend: of a cache, and of heads of a length or of any.
// A cache of float32 has kernels of another arithmetic.
type attentionBy struct {
	cache, heads string
	floats       bool
	headDim      int // 0: any
}

// attentionLengths are the heads' lengths that have kernels of their own.
var attentionLengths = []int{64, 128}

func (c *Compiler) attentionBy(headDim int) attentionBy {
	by := attentionBy{cache: cacheNames[c.Layout.lim.Cache], heads: "any", floats: c.Layout.lim.Cache == tensor.F32}
	if slices.Contains(attentionLengths, headDim) {
		by.heads, by.headDim = strconv.Itoa(headDim), headDim
	}
	// The device has no room for a segment of long heads.
	if !by.floats && c.SharedPerBlock > 0 && by.decodeShared()+decodeStatic > c.SharedPerBlock {
		by.heads, by.headDim = "any", 0
	}
	return by
}

// Shared memory, in bytes: what decoding declares itself is less than decodeStatic.
const (
	decodeStatic  = 32 << 10
	bandOfAny     = 2 * contextSegment / 2 * maxHeadDim // half a segment
	pieceTokens   = 64                                  // see kernels/attention.cuh
	pieces        = 4
	tileRows      = 64
	tileRowsOfAny = 8
)

// decodeShared is what decoding takes: a segment's keys and values.
func (by attentionBy) decodeShared() int {
	if by.headDim == 0 {
		return bandOfAny
	}
	return 2 * 2 * contextSegment * by.headDim
}

// attend attends where tokens of a sequence may be several.
func (c *Compiler) attend(by attentionBy, a *attentionArgs) (Launch, error) {
	family := "attention_" + by.cache
	if !by.floats {
		family += "_" + by.heads
	}
	kvHeads := int(a.kvHeads)
	share := int(a.heads) / kvHeads
	rows, threads, shared := tileRows, 128, 2*by.headDim*(tileRows+pieces*pieceTokens)
	switch {
	case by.floats:
		rows, threads, shared = blockHeads, 256, 0
	case by.headDim == 0:
		rows, threads, shared = tileRowsOfAny, 256, bandOfAny
	}
	groups, tokens := kvHeads*((share+rows-1)/rows), rows/min(rows, share)
	a.split, a.maxSegments = 0, 0
	f, err := c.sharedKernel(family, "attend", shared)
	if err != nil {
		return Launch{}, err
	}
	return Launch{Name: family + " attend", rows: plan.Tokens, begin: func(st *driver.Stream, sh *Shape) error {
		// Each sequence may end within a tile; blocks take further ones in turn.
		grid := driver.Dim3{X: groups, Y: min(sh.Tokens, 2*((sh.Tokens+tokens-1)/tokens)), Z: 1}
		if by.floats {
			grid = driver.Dim3{X: 1, Y: groups, Z: sh.Tokens}
		}
		a.split, a.maxSegments = 0, 0
		if (by.floats || by.headDim > 0) && sh.Tokens*sh.segments <= splitPartials {
			a.split, a.maxSegments = 1, int32(sh.segments)
			if by.floats {
				grid.X = sh.segments
			} else {
				grid.Z = sh.segments
			}
		}
		return f.Launch(st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: threads}, Shared: shared, Programmatic: c.Early}, device.Arguments(a))
	}}, nil
}

// headGroups is how many blocks serve a token's heads.
func headGroups(a plan.AttentionAttr) int {
	return a.KVHeads * ((a.Heads/a.KVHeads + blockHeads - 1) / blockHeads)
}

// decodes says whether one kernel does what turn and attention do.
func decodes(sh *Shape) bool { return sh.single && sh.Tokens*sh.segments <= splitPartials }

type decodeArgs struct {
	turn      turnArgs
	attention attentionArgs
}

// decodeFloats are how many heads a block of each kernel serves where the cache is
// float32, by the heads' length; 0 stands for any other.
var decodeFloats = map[int][]int{64: {1, 2, 4}, 128: {1, 2, 4}, 0: {1, 4}}

func (c *Compiler) decode(of attentionBy, a *decodeArgs) (Launch, error) {
	family, shared, variants := "decode_"+of.cache+"_"+of.heads, of.decodeShared(), []int{blockHeads}
	if of.floats {
		shared, variants = 0, decodeFloats[of.headDim]
	}
	kvHeads := int(a.attention.kvHeads)
	share := int(a.attention.heads) / kvHeads
	var by []*driver.Function
	var names []string
	for i, n := range variants {
		if i > 0 && variants[i-1] >= share {
			break
		}
		name := fmt.Sprintf("decode_%d", n)
		f, err := c.sharedKernel(family, name, shared)
		if err != nil {
			return Launch{}, err
		}
		by, names = append(by, f), append(names, name)
	}
	// which says which kernel runs, on how many blocks.
	which := func(sh *Shape) (i int, grid driver.Dim3) {
		grid = driver.Dim3{X: sh.segments, Z: sh.Tokens}
		if w := int(a.attention.window); w > 0 {
			// A window of w positions begins anywhere in a segment.
			grid.X = min(grid.X, (w+2*contextSegment-2)/contextSegment)
		}
		for i = range by {
			if grid.Y = kvHeads * ((share + variants[i] - 1) / variants[i]); grid.X*grid.Y*grid.Z <= decodeBlocks {
				break
			}
		}
		return i, grid
	}
	return Launch{
		Name: family + " " + strings.Join(names, ", "), rows: plan.Tokens,
		runs: func(sh *Shape) string {
			if !decodes(sh) {
				return ""
			}
			i, _ := which(sh)
			return family + " " + names[i]
		},
		begin: func(st *driver.Stream, sh *Shape) error {
			i, grid := which(sh)
			a.attention.split, a.attention.maxSegments = 1, int32(grid.X)
			return by[i].Launch(st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: 256}, Shared: shared, Programmatic: c.Early}, device.Arguments(a))
		},
	}, nil
}

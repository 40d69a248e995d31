package cuda

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// maxHeadDim is the longest head.
const maxHeadDim = 256

// blockHeads is how many query heads of one key/value head a block serves.
const blockHeads = 8

// splitPartials is how many segments of a context, over all tokens of a step, blocks may
// share; of more, a block does all of a token.
const splitPartials = 1024

// decodeBlocks is how many blocks of a decoding step find room at the same time. Fewer
// blocks than that could be more, with fewer heads each.
const decodeBlocks = 128

// cacheNames are the kernels' names of what a cache keeps.
var cacheNames = map[tensor.DType]string{tensor.F32: "f32", tensor.F16: "f16", tensor.Q8_0: "q8"}

// A pool is where the pages of one state lie, see kernels/kv.cuh.
type pool struct {
	state plan.State
	base  driver.DevicePtr
	bytes int // of a page
	apart int // from a page to the next
}

// planPools says where the pools lie in one piece of memory, and how long that is.
func planPools(p *plan.Program, l *plan.Limits) (pools []pool, bytes int, err error) {
	if cacheNames[l.Cache] == "" {
		return nil, 0, fmt.Errorf("cuda: no %v cache; use %v, %v or %v", l.Cache, tensor.F32, tensor.F16, tensor.Q8_0)
	}
	for _, s := range p.States {
		if max(s.HeadDim, s.ValueDim) > maxHeadDim {
			return nil, 0, fmt.Errorf("cuda: no kernel for heads of %d values, of which %d is the most; use --device cpu", s.HeadDim, maxHeadDim)
		}
		if l.Cache == tensor.Q8_0 && (s.HeadDim%32 != 0 || s.ValueDim%32 != 0) {
			return nil, 0, fmt.Errorf("cuda: no %v cache for heads of %d values, which are no multiple of 32; use %v", l.Cache, s.HeadDim, tensor.F16)
		}
		n, err := l.PageOf(s)
		if err != nil {
			return nil, 0, fmt.Errorf("cuda: %w", err)
		}
		k := pool{state: s, base: driver.DevicePtr(bytes), bytes: n, apart: align(n)}
		pools = append(pools, k)
		bytes += k.apart * l.Pages[s.Group]
	}
	return pools, bytes, nil
}

type poolArgs struct {
	base                        driver.DevicePtr
	apart                       int64
	pageTokens, kvHeads, dim, _ int32
}

type tableArgs struct{ pages, places driver.DevicePtr }

// A place is where a token stands, see kernels/kv.cuh.
type place struct{ position, shift int32 }

// fillPlaces writes where the tokens of b stand, and up to the shape's size that there
// are no more.
func fillPlaces(all []place, b *plan.Batch, t *plan.PageTable) {
	for q := range b.Seqs() {
		for i := b.Start[q]; i < b.Start[q+1]; i++ {
			all[i] = place{position: b.Positions[i], shift: t.Start[q] - t.First[q]}
		}
	}
	for i := len(b.Tokens); i < power(len(b.Tokens)); i++ {
		all[i] = place{position: -1}
	}
}

func (c *compiler) pool(i int) poolArgs {
	k := &c.pools[i]
	return poolArgs{base: k.base, apart: int64(k.apart), pageTokens: int32(c.l.lim.PageTokens), kvHeads: int32(k.state.KVHeads), dim: int32(k.state.HeadDim)}
}

type anglesArgs struct {
	freqs, set, positions, count, out driver.DevicePtr
	pairs                             int32
	scale                             float32
}

// ropes are the distinct ropes of a program.
func ropes(p *plan.Program) []plan.RopeAttr {
	var all []plan.RopeAttr
	for i := range p.Nodes {
		if n := &p.Nodes[i]; n.Op == plan.Rope && ropeIndex(all, n) < 0 {
			all = append(all, n.Attr.(plan.RopeAttr))
		}
	}
	return all
}

func ropeIndex(all []plan.RopeAttr, n *plan.Node) int {
	a := n.Attr.(plan.RopeAttr)
	for i := range all {
		// The heads' length does not matter to the angles.
		b := all[i]
		b.HeadDim, b.Interleaved = a.HeadDim, a.Interleaved
		if reflect.DeepEqual(a, b) {
			return i
		}
	}
	return -1
}

// angles are those of every rope, for all layers.
func (c *compiler) angles() ([]launch, error) {
	var all []launch
	for i, r := range c.room.ropes {
		a := anglesArgs{
			freqs: c.scratchAt + driver.DevicePtr(c.room.freqs[i]), set: c.step.sets[i], positions: c.step.positions, count: c.step.counts + countTokens,
			out: c.scratchAt + driver.DevicePtr(c.room.angles[i]), pairs: int32(r.Dims / 2), scale: float32(r.Scale),
		}
		l, err := c.launch("rope", "angles", plan.Tokens, arguments(&a), 128, func(sh *shape) driver.Dim3 { return driver.Dim3{X: sh.tokens} })
		if err != nil {
			return nil, err
		}
		l.where, l.moves = "rotary angles", func(b *plan.Batch) int { return len(b.Tokens) * 8 * (r.Dims / 2) }
		all = append(all, l)
	}
	return all, nil
}

type turnArgs struct {
	q, k, v                                            driver.DevicePtr
	qStride, kStride, vStride, heads, kvHeads, headDim int32
	qNorm, kNorm                                       driver.DevicePtr
	qEps, kEps                                         float32
	qAngles, kAngles                                   driver.DevicePtr
	qDims, kDims, qInterleaved, kInterleaved           int32
	qOut                                               driver.DevicePtr
	qOutStride, _                                      int32
	pool                                               poolArgs
	table                                              tableArgs
	sequence, overflow                                 driver.DevicePtr
	layer, _                                           int32
	count                                              driver.DevicePtr
}

// turned says where a rope's angles are.
func (c *compiler) turned(n *plan.Node) (angles driver.DevicePtr, dims, interleaved int32) {
	if n == nil {
		return 0, 0, 0
	}
	r := n.Attr.(plan.RopeAttr)
	if r.Interleaved {
		interleaved = 1
	}
	return c.scratchAt + driver.DevicePtr(c.room.angles[ropeIndex(c.room.ropes, n)]), int32(r.Dims), interleaved
}

func (c *compiler) turn(a *turnArgs) (launch, error) {
	a.sequence, a.overflow, a.count = c.step.sequence, c.step.overflow, c.step.counts+countTokens
	heads := int(a.heads + 2*a.kvHeads)
	return c.launch("rope", "turn_"+cacheNames[c.l.lim.Cache], plan.Tokens, arguments(a), 128, func(sh *shape) driver.Dim3 {
		return driver.Dim3{X: (heads + 3) / 4, Y: sh.tokens}
	})
}

func (c *compiler) rope(n *plan.Node) ([]launch, error) {
	in, out := c.forms(n.In[0]), c.forms(n.Out)
	r := n.Attr.(plan.RopeAttr)
	a := turnArgs{q: in.f32, qStride: in.stride, heads: in.cols / int32(r.HeadDim), headDim: int32(r.HeadDim), qOut: out.f32, qOutStride: out.stride}
	a.qAngles, a.qDims, a.qInterleaved = c.turned(n)
	l, err := c.turn(&a)
	return []launch{l}, err
}

type attentionArgs struct {
	q                           driver.DevicePtr
	stride, heads, kvHeads, dim int32
	scale, softcap              float32
	window, _                   int32
	sinks                       driver.DevicePtr
	pool                        poolArgs
	table                       tableArgs
	count                       driver.DevicePtr
	out                         forms
	partial, tickets            driver.DevicePtr
	split, maxSegments          int32
}

func (c *compiler) attention(s *stage) ([]launch, error) {
	n := s.nodes[0]
	attr := n.Attr.(plan.AttentionAttr)
	group := c.l.p.States[n.State].Group
	q, k, v := c.forms(s.q.in), c.forms(s.k.in), c.forms(n.In[2])
	table := tableArgs{pages: c.step.pages[group], places: c.step.places[group]}

	t := turnArgs{
		q: q.f32, k: k.f32, v: v.f32, qStride: q.stride, kStride: k.stride, vStride: v.stride,
		kvHeads: int32(attr.KVHeads), headDim: int32(attr.HeadDim), qOut: q.f32, qOutStride: q.stride,
		pool: c.pool(n.State), table: table, layer: int32(max(n.Layer, 0)),
	}
	if s.q.rope != nil {
		t.heads = int32(attr.Heads)
		t.qAngles, t.qDims, t.qInterleaved = c.turned(s.q.rope)
	}
	t.kAngles, t.kDims, t.kInterleaved = c.turned(s.k.rope)
	if m := s.q.norm; m != nil {
		t.qNorm, t.qEps = c.weight(m.Weight), float32(m.Attr.(plan.NormAttr).Eps)
	}
	if m := s.k.norm; m != nil {
		t.kNorm, t.kEps = c.weight(m.Weight), float32(m.Attr.(plan.NormAttr).Eps)
	}
	store, err := c.turn(&t)
	if err != nil {
		return nil, err
	}

	name := "attention_" + cacheNames[c.l.lim.Cache]
	f, err := c.kernel(name, name)
	if err != nil {
		return nil, err
	}
	a := attentionArgs{
		q: q.f32, stride: q.stride, heads: int32(attr.Heads), kvHeads: int32(attr.KVHeads), dim: int32(attr.HeadDim),
		scale: float32(attr.Scale), softcap: float32(attr.Softcap), window: int32(attr.Window), sinks: c.weight(n.Weight),
		pool: c.pool(n.State), table: table, count: c.step.counts + countTokens,
		out: c.forms(n.Out), partial: c.scratchAt + driver.DevicePtr(c.room.partials), tickets: c.scratchAt + driver.DevicePtr(c.room.tickets),
	}
	groups := headGroups(attr)
	decode, err := c.decode(&decodeArgs{turn: t, attention: a})
	if err != nil {
		return nil, err
	}
	attend := launch{name: name + " " + name, rows: plan.Tokens, begin: func(st *driver.Stream, sh *shape) error {
		grid := driver.Dim3{X: 1, Y: groups, Z: sh.tokens}
		a.split, a.maxSegments = 0, 0
		if sh.tokens*sh.segments <= splitPartials {
			a.split, a.maxSegments, grid.X = 1, int32(sh.segments), sh.segments
		}
		return f.Launch(st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: 256}, Programmatic: c.early}, arguments(&a))
	}}
	store.moves, attend.moves, decode.moves = c.attentionMoves(s)
	return []launch{store.unless(decodes), attend.unless(decodes), decode}, nil
}

// headGroups is how many blocks serve a token's heads.
func headGroups(a plan.AttentionAttr) int {
	return a.KVHeads * ((a.Heads/a.KVHeads + blockHeads - 1) / blockHeads)
}

// decodes says whether one kernel does what turn and attention do.
func decodes(sh *shape) bool { return sh.single && sh.tokens*sh.segments <= splitPartials }

type decodeArgs struct {
	turn      turnArgs
	attention attentionArgs
}

// decodeHeads are how many heads a block of each kernel serves, by the heads' length; 0
// stands for any other.
var decodeHeads = map[int][]int{64: {1, 2, 4}, 128: {1, 2, 4}, 0: {1, 4}}

func (c *compiler) decode(a *decodeArgs) (launch, error) {
	dim, variants := "any", decodeHeads[0]
	if v := decodeHeads[int(a.turn.headDim)]; v != nil {
		dim, variants = strconv.Itoa(int(a.turn.headDim)), v
	}
	family := "decode_" + cacheNames[c.l.lim.Cache] + "_" + dim
	kvHeads := int(a.attention.kvHeads)
	share := int(a.attention.heads) / kvHeads
	var by []*driver.Function
	var names []string
	for i, n := range variants {
		if i > 0 && variants[i-1] >= share {
			break
		}
		name := fmt.Sprintf("decode_%d", n)
		f, err := c.kernel(family, name)
		if err != nil {
			return launch{}, err
		}
		by, names = append(by, f), append(names, name)
	}
	// which says which kernel runs, on how many blocks.
	which := func(sh *shape) (i int, grid driver.Dim3) {
		grid = driver.Dim3{X: sh.segments, Z: sh.tokens}
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
	return launch{
		name: family + " " + strings.Join(names, ", "), rows: plan.Tokens,
		runs: func(sh *shape) string {
			if !decodes(sh) {
				return ""
			}
			i, _ := which(sh)
			return family + " " + names[i]
		},
		begin: func(st *driver.Stream, sh *shape) error {
			i, grid := which(sh)
			a.attention.split, a.attention.maxSegments = 1, int32(grid.X)
			return by[i].Launch(st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: 256}, Programmatic: c.early}, arguments(a))
		},
	}, nil
}

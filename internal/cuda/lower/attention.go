package lower

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// maxHeadDim is the maximum head dimension.
const maxHeadDim = 256

// blockHeads is the number of query heads of one key/value head that a block serves for one token.
const blockHeads = 8

// splitPartials is the maximum number of context segments, over all tokens of a step, that blocks
// share. Beyond that, one block processes a whole token.
const splitPartials = 1024

// decodeTokens is the most tokens of a sequence in a step that decodes; see kernels/decode.cuh.
const decodeTokens = 8

// decodeBlocks is the number of blocks of a decoding step that fit on the GPU at a time. With fewer
// blocks, each can serve fewer heads.
const decodeBlocks = 128

// attention implements [plan.Attention]. It normalizes and rotates heads as they are stored.
type attention struct{ ordinary }

func (attention) writes(s *fuse.Stage) bool {
	a := s.Node().Attr.(plan.AttentionAttr)
	return a.Values()%32 == 0
}

func (attention) check(n *plan.Node) error {
	if a := n.Attr.(plan.AttentionAttr); a.HeadDim > anyKeyDim || a.Values() > anyValueDim {
		return fmt.Errorf("no kernel for heads of keys of %d values and values of %d, of which %d and %d are the most", a.HeadDim, a.Values(), anyKeyDim, anyValueDim)
	}
	return nil
}

// wholeBlocks reports whether a head consists of whole blocks of the byte format.
func wholeBlocks(n *plan.Node) bool { return n.Attr.(plan.AttentionAttr).HeadDim%32 == 0 }

// scratch holds segments that blocks share, and tickets that identify the last block.
func (attention) scratch(_ *plan.Program, lim *plan.Limits, n *plan.Node) []int {
	a := n.Attr.(plan.AttentionAttr)
	if anyForm(n) {
		return anyScratch(n, lim)
	}
	return []int{4 * headGroups(a) * blockHeads * (a.HeadDim + 2) * splitPartials, 4 * a.Heads * Power(lim.Tokens)}
}

type attentionArgs struct {
	q                           driver.DevicePtr
	stride, heads, kvHeads, dim int32
	scale, softcap              float32
	window, beside              int32
	sinks                       driver.DevicePtr
	pool                        poolArgs
	table                       tableArgs
	count, seqs, starts         driver.DevicePtr
	out                         device.Forms
	partial, tickets            driver.DevicePtr
	split, maxSegments          int32
	together, tokens            int32
}

func (o attention) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	if anyForm(n) {
		return c.attendAny(s)
	}
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
	by.prefixed = prefixed(n, c.Layout.lim) && (c.SharedPerBlock == 0 || by.tileShared() <= c.SharedPerBlock)
	decode, err := c.decode(by, &decodeArgs{turn: t, attention: a})
	if err != nil {
		return nil, err
	}
	attend, err := c.attend(by, &a)
	if err != nil {
		return nil, err
	}
	store.Moves, attend.Moves, decode.Moves = c.attentionMoves(s)
	all := []Launch{store.unless(func(sh *Shape) bool { return by.decodes(sh) && !by.prefixes(sh) })}
	if by.wideDim == 0 {
		all = append(all, attend.unless(by.decodes))
	} else {
		beside, err := c.beside(by, decodeArgs{turn: t, attention: a})
		if err != nil {
			return nil, err
		}
		tiles, both := attend.Moves, decode.Moves
		attend.Moves = func(b *plan.Batch) int {
			if sh := ShapeOf(b, &PrefixSet{}); sh.mixed() && c.usesWide(by, &a, &sh) {
				b = sequencesOf(b, false)
			}
			return tiles(b)
		}
		beside.Moves = func(b *plan.Batch) int { return both(sequencesOf(b, true)) }
		all = append(all, attend.unless(by.decodes), beside)
	}
	if !by.prefixed {
		return append(all, decode), nil
	}
	prefix, err := c.prefix(by, a)
	if err != nil {
		return nil, err
	}
	prefix.Moves, decode.Moves = c.prefixMoves(s)
	return append(all, prefix, decode), nil
}

// attentionMoves returns the bytes that the launches of attention read and write: the launch that
// stores, the launch that attends, and the launch that does both.
func (c *Compiler) attentionMoves(s *fuse.Stage) (store, attend, both func(b *plan.Batch) int) {
	n := s.Node()
	a, kept := n.Attr.(plan.AttentionAttr), c.Pools[n.State].Bytes/c.Layout.lim.PageTokens // bytes of one position
	q, out := c.read(s.Q.In, inFloats), c.written(n.Out)
	keys, turned := c.read(s.K.In, inFloats)+c.read(n.In[2], inFloats), 0
	if s.Q.Rope != nil {
		turned = 2 * q
	}
	store = func(b *plan.Batch) int { return len(b.Tokens) * (turned + keys + kept) }
	attend = func(b *plan.Batch) int { return len(b.Tokens)*(q+out) + b.Attended(a.Group())*kept }
	both = func(b *plan.Batch) int { return len(b.Tokens)*(q+keys+kept+out) + b.Attended(a.Group())*kept }
	return store, attend, both
}

// sequencesOf returns the tokens and positions of the sequences with one token if ones is set,
// otherwise those of the others.
func sequencesOf(b *plan.Batch, ones bool) *plan.Batch {
	some := &plan.Batch{Start: []int32{0}}
	for q := range b.Seqs() {
		if from, to := b.Start[q], b.Start[q+1]; (to-from == 1) == ones {
			some.Tokens, some.Positions = append(some.Tokens, b.Tokens[from:to]...), append(some.Positions, b.Positions[from:to]...)
			some.Start = append(some.Start, int32(len(some.Tokens)))
		}
	}
	return some
}

// prefixMoves returns the bytes that the launches of a decode step read and write: the launch that
// attends to prefixes, and the launch that decodes.
func (c *Compiler) prefixMoves(s *fuse.Stage) (prefix, decode func(b *plan.Batch) int) {
	kept, q := c.Pools[s.Node().State].Bytes/c.Layout.lim.PageTokens, c.read(s.Q.In, inFloats)
	_, _, both := c.attentionMoves(s)
	find := func(b *plan.Batch) (x PrefixSet) {
		c.Prefixes.Find(&x, b)
		return x
	}
	prefix = func(b *plan.Batch) int {
		x := find(b)
		once, _ := x.positions()
		return len(x.Members)*q + once*kept
	}
	decode = func(b *plan.Batch) int {
		x := find(b)
		_, seen := x.positions()
		return both(b) - seen*kept
	}
	return prefix, decode
}

// An attentionBy selects the attention kernels: by cache format, and by head dimension if it has
// special kernels. A float32 cache has kernels with different arithmetic.
type attentionBy struct {
	cache, heads string
	decodeHeads  string // heads for decoding
	floats       bool
	headDim      int  // 0 for any
	wideDim      int  // of the kernel for wide tiles; 0 for none
	prefixed     bool // decode steps with prefixes attend to them once
}

// attentionLengths are the head dimensions that have special kernels.
var attentionLengths = []int{64, 128}

// longHeads is the head dimension that has a kernel of its own for any number of segments when
// decoding.
const longHeads = 256

// wideLengths are those with kernels for wide tiles.
var wideLengths = []int{64, 128, 256}

func (c *Compiler) attentionBy(headDim int) attentionBy {
	by := attentionBy{cache: cacheNames[c.Layout.lim.Cache], heads: "any", floats: c.Layout.lim.Cache == tensor.F32}
	if slices.Contains(attentionLengths, headDim) {
		by.heads, by.headDim = strconv.Itoa(headDim), headDim
	}
	if by.decodeHeads = by.heads; headDim == longHeads && !by.floats {
		by.decodeHeads = strconv.Itoa(headDim)
	}
	if c.Hopper && c.Layout.lim.Cache == tensor.F16 && c.Layout.lim.PageTokens%runTokens == 0 && slices.Contains(wideLengths, headDim) {
		by.wideDim = headDim
	}
	return by
}

// decodes reports whether one kernel does both rotation and attention: no sequence has more than
// decodeTokens tokens, or with a float32 cache more than one.
func (by attentionBy) decodes(sh *Shape) bool {
	if by.floats {
		return sh.each == 1 && sh.Tokens*sh.segments <= splitPartials
	}
	return sh.each > 0
}

// warps reports whether there is a kernel for decoding with a warp for each key/value head.
func (by attentionBy) warps() bool { return by.decodeHeads != "any" && !by.floats }

// prefixes reports whether a step attends to prefixes before it decodes.
func (by attentionBy) prefixes(sh *Shape) bool { return by.prefixed && sh.prefix > 0 }

// Constants of attention to several tokens; see kernels/attention.cuh.
const (
	tileRows      = 64
	tileThreads   = 128
	tileRowsOfAny = 8
	ringPieces    = 4
	pieceTokens   = 64
	chunkBytes    = 16*pieceTokens + 64 // of 8 values of a piece; see kernels/band.cuh
)

// tileShared returns the shared memory in bytes of a tile's queries and pieces.
func (by attentionBy) tileShared() int {
	return 2*by.headDim*tileRows + ringPieces*by.headDim/8*chunkBytes
}

// Constants of prefill attention on Hopper; see kernels/attention_wide.cuh.
const (
	groupRows       = 64
	wideTileThreads = 384
	wideColumns     = 128       // the most of a group
	wideRing        = 128 << 10 // bytes of keys and values
	runTokens       = 32
)

// wide returns the rows of a wide tile, and the shared memory in bytes of the ring of keys and values,
// of the queries, and of the sums of both groups.
func (by attentionBy) wide() (rows, shared int) {
	rows, columns := 2*groupRows, by.wideDim
	if columns > wideColumns {
		rows, columns = groupRows, wideColumns
	}
	return rows, wideRing + 2*rows*by.wideDim + 2*4*groupRows*columns + 1024
}

// attend returns the launch of attention for steps that do not decode. It uses wide tiles where
// they have a kernel, but for steps with few of them, whose segments blocks share.
func (c *Compiler) attend(by attentionBy, a *attentionArgs) (Launch, error) {
	tiles, err := c.attendTiles(by, a)
	if err != nil || by.wideDim == 0 {
		return tiles, err
	}
	wide, err := c.attendWide(by, a)
	if err != nil {
		return Launch{}, err
	}
	return oneOf(tiles.Name+", "+by.wideFamily(), []Launch{tiles, wide}, func(sh *Shape) int {
		if c.usesWide(by, a, sh) {
			return 1
		}
		return 0
	}), nil
}

// usesWide reports whether a step has wide tiles.
func (c *Compiler) usesWide(by attentionBy, a *attentionArgs, sh *Shape) bool {
	if by.wideDim == 0 {
		return false
	}
	few := by.wideGrid(a, sh).Size() < c.Multiprocessors/fewWideTiles
	return !few || sh.Tokens*sh.segments > splitPartials
}

// attendWide is attend with wide tiles alone. They leave sequences of one token to [Compiler.beside].
func (c *Compiler) attendWide(by attentionBy, a *attentionArgs) (Launch, error) {
	_, shared := by.wide()
	family := by.wideFamily()
	f, err := c.sharedKernel(family, "attend", shared)
	if err != nil {
		return Launch{}, err
	}
	return Launch{Name: family + " attend", rows: plan.Tokens, begin: func(st *driver.Stream, sh *Shape) error {
		grid := driver.Dim3{X: min(by.wideGrid(a, sh).Size(), c.Multiprocessors)}
		if a.beside = 0; sh.mixed() {
			a.beside = 1
		}
		return c.queue(f, st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: wideTileThreads}, Shared: shared}, device.Arguments(a))
	}}, nil
}

// beside returns the launch that attends for the sequences of one token in a mixed step, if the tiles
// of the others are wide: theirs would be almost empty. Queries, keys and values are stored before;
// keys and values are computed again.
func (c *Compiler) beside(by attentionBy, a decodeArgs) (Launch, error) {
	if a.turn.heads > 0 {
		a.turn.qNorm, a.turn.qAngles = 0, 0
	}
	a.attention.starts = c.Step.singles
	kernels, err := c.decodeKernels(by)
	if err != nil {
		return Launch{}, err
	}
	args := &a
	// Parts of segments are those of the step's tokens, though few have some.
	divide := func(sh *Shape) division {
		return c.divide(by, &args.attention, &Shape{Tokens: sh.Tokens, segments: sh.segments, each: 1, seqs: sh.seqs})
	}
	return Launch{Name: kernels.family + " beside", rows: plan.Tokens, runs: func(sh *Shape) string {
		if !sh.mixed() || !c.usesWide(by, &args.attention, sh) {
			return ""
		}
		return kernels.family + " " + divide(sh).name(false)
	}, begin: func(st *driver.Stream, sh *Shape) error {
		return kernels.queue(c, st, divide(sh), false, args)
	}}, nil
}

func (by attentionBy) wideFamily() string {
	return fmt.Sprintf("wide_attention_%s_%d", by.cache, by.wideDim)
}

// wideGrid is tileGrid for wide tiles.
func (by attentionBy) wideGrid(a *attentionArgs, sh *Shape) driver.Dim3 {
	rows, _ := by.wide()
	return tileGrid(rows, int(a.kvHeads), int(a.heads/a.kvHeads), sh)
}

// A step has few wide tiles if there is less than one of the grid for each fewWideTiles
// multiprocessors. A grid has room for twice the tiles, as in [tileGrid].
const fewWideTiles = 5

// tileGrid returns a grid for tiles of so many rows, which are tokens of one sequence, or of sequences
// with one prefix, and the query heads of one key/value head. Each of these may end within a tile.
// Blocks process further tiles in turn.
func tileGrid(rows, kvHeads, share int, sh *Shape) driver.Dim3 {
	tokens := rows / min(rows, share)
	return driver.Dim3{X: kvHeads * ((share + rows - 1) / rows), Y: min(sh.Tokens, 2*((sh.Tokens+tokens-1)/tokens)), Z: 1}
}

// attendTiles is attend without wide tiles.
func (c *Compiler) attendTiles(by attentionBy, a *attentionArgs) (Launch, error) {
	// Tiles of long heads may exceed the device's shared memory.
	if c.SharedPerBlock > 0 && by.tileShared() > c.SharedPerBlock {
		by.heads, by.headDim = "any", 0
	}
	family := "attention_" + by.cache
	if !by.floats {
		family += "_" + by.heads
	}
	kvHeads := int(a.kvHeads)
	share := int(a.heads) / kvHeads
	rows, threads, shared := tileRows, tileThreads, by.tileShared()
	switch {
	case by.floats:
		rows, threads, shared = blockHeads, 256, 0
	case by.headDim == 0:
		rows, threads, shared = tileRowsOfAny, 256, 0
	}
	a.split, a.maxSegments = 0, 0
	f, err := c.sharedKernel(family, "attend", shared)
	if err != nil {
		return Launch{}, err
	}
	return Launch{Name: family + " attend", rows: plan.Tokens, begin: func(st *driver.Stream, sh *Shape) error {
		grid := tileGrid(rows, kvHeads, share, sh)
		if by.floats {
			grid = driver.Dim3{X: 1, Y: grid.X, Z: sh.Tokens}
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
		return c.queue(f, st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: threads}, Shared: shared}, device.Arguments(a))
	}}, nil
}

// headGroups returns the number of blocks that serve a token's heads.
func headGroups(a plan.AttentionAttr) int {
	return a.KVHeads * ((a.Heads/a.KVHeads + blockHeads - 1) / blockHeads)
}

type decodeArgs struct {
	turn      turnArgs
	attention attentionArgs
	prefix    driver.DevicePtr
	folded, _ int32
}

// floatHeads lists how many heads a block of each kernel serves with a float32 cache, by head
// dimension; 0 stands for any other.
var floatHeads = map[int][]int{64: {1, 2, 4}, 128: {1, 2, 4}, 0: {1, 4}}

func (c *Compiler) decode(by attentionBy, a *decodeArgs) (Launch, error) {
	if by.floats {
		return c.decodeFloats(by, a)
	}
	kernels, err := c.decodeKernels(by)
	if err != nil {
		return Launch{}, err
	}
	behind := *a // prefixes; queries are stored before these
	behind.prefix = c.Step.prefixes.segments
	if a.turn.heads > 0 {
		behind.turn.qNorm, behind.turn.qAngles = 0, 0
	}
	return Launch{Name: kernels.family + " " + strings.Join(slices.Sorted(maps.Keys(kernels.functions)), ", "), rows: plan.Tokens, runs: func(sh *Shape) string {
		if !by.decodes(sh) {
			return ""
		}
		return kernels.family + " " + c.divide(by, &a.attention, sh).name(sh.each == 1)
	}, begin: func(st *driver.Stream, sh *Shape) error {
		d, args := c.divide(by, &a.attention, sh), a
		if by.prefixes(sh) {
			args = &behind
			if args.folded = 0; d.folded {
				args.folded = 1
			}
		}
		return kernels.queue(c, st, d, sh.each == 1, args)
	}}, nil
}

// decodeKernels are the kernels of decode steps of one attentionBy.
type decodeKernels struct {
	family    string
	functions map[string]*driver.Function
}

func (c *Compiler) decodeKernels(by attentionBy) (decodeKernels, error) {
	k := decodeKernels{"decode_" + by.cache + "_" + by.decodeHeads, map[string]*driver.Function{}}
	names := []string{"decode_many", "several_many"}
	if by.headDim > 0 {
		names = append(names, "decode_4", "decode_8", "several_4", "several_8")
	}
	if by.warps() {
		names = append(names, "decode_warps")
	}
	for _, name := range names {
		f, err := c.Kernel(k.family, name)
		if err != nil {
			return decodeKernels{}, err
		}
		k.functions[name] = f
	}
	return k, nil
}

// queue queues the kernel of a division; ones is as in [division.name].
func (k *decodeKernels) queue(c *Compiler, st *driver.Stream, d division, ones bool, a *decodeArgs) error {
	a.attention.split, a.attention.together, a.attention.tokens, a.attention.maxSegments = 1, int32(d.together), int32(d.tokens), int32(d.parts)
	threads := 256
	if d.kernel == decodeWarps {
		threads = warpsTogether * 32
	}
	return c.queue(k.functions[d.name(ones)], st, driver.LaunchConfig{Grid: d.grid, Block: driver.Dim3{X: threads}}, device.Arguments(a))
}

// A division is how the blocks of a decode step divide its work.
type division struct {
	kernel   string
	together int // heads of a block, or of a warp
	tokens   int // of a sequence, of a block
	grid     driver.Dim3
	parts    int  // of a token: room for parts of segments that pass through memory
	folded   bool // what a token attends to of its prefix is one part
}

// Kernels of a decode step.
const (
	decodeMany  = "many" // a block attends to any number of segments
	decodeFour  = "4"    // and to one segment, with as many rows
	decodeEight = "8"
	decodeWarps = "warps" // a warp attends to all of a token
)

// name returns the name of the division's kernel. ones is set if all sequences of the step have one
// token.
func (d division) name(ones bool) string {
	if ones || d.kernel == decodeWarps {
		return "decode_" + d.kernel
	}
	return "several_" + d.kernel
}

// divide returns how a decode step of shape sh divides attention a. Fewer heads of a block are faster
// as long as there are few blocks, and so are fewer tokens. Parts are bounded by splitPartials: if a
// token and its prefix have too many segments, the prefix is one part; if a token has too many, it
// has one block.
func (c *Compiler) divide(by attentionBy, a *attentionArgs, sh *Shape) division {
	kvHeads := int(a.kvHeads)
	share := int(a.heads) / kvHeads
	segments, kept := windowSegments(sh, int(a.window), sh.each), 0
	d := division{together: 1, tokens: 1}
	if by.prefixes(sh) {
		segments, kept = sh.own, sh.prefix
		if d.folded = sh.Tokens*(kept+segments) > splitPartials; d.folded {
			kept = 1
		}
	}
	groups := func() int { return kvHeads * ((share + d.together - 1) / d.together) * (sh.each / d.tokens) }
	for groups()*sh.seqs*segments > c.Multiprocessors/fewBlocks {
		if d.together < min(share, blockHeads) {
			d.together *= 2
		} else if d.tokens < sh.each && 2*d.tokens*d.together <= blockHeads {
			d.tokens *= 2
		} else {
			break
		}
	}
	if by.warps() && sh.each == 1 && !by.prefixes(sh) && segments <= warpSegments && groups()*sh.seqs >= by.fewestWarps(segments)*c.Multiprocessors {
		d.kernel, d.grid = decodeWarps, driver.Dim3{X: (groups() + warpsTogether - 1) / warpsTogether, Y: sh.seqs}
		return d
	}
	d.grid = driver.Dim3{Y: groups(), Z: sh.seqs}
	d.grid.X = min(segments, max(1, decodeBlocksEach*c.Multiprocessors/(d.grid.Y*d.grid.Z)))
	if d.parts = kept + segments; sh.Tokens*d.parts > splitPartials {
		d.grid.X, d.parts = 1, kept
	}
	switch {
	case by.headDim == 0 || d.grid.X < segments:
		d.kernel = decodeMany
	case d.together*d.tokens <= 4:
		d.kernel = decodeFour
	default:
		d.kernel = decodeEight
	}
	return d
}

// fewBlocks is the number of multiprocessors per block below which a decoding step has few blocks.
const fewBlocks = 3

// warpsTogether is the number of warps of a block, where each warp attends to all of a token.
const warpsTogether = 4

// warpSegments is the maximum number of segments that one warp attends to: it takes some 2 us for 32
// positions.
const warpSegments = 16

// fewestWarps returns how many warps a multiprocessor needs for them to be faster than blocks. Blocks
// for one segment load all of it at once. Warps for short heads take almost as long as the others, and
// twice as many fit.
func (by attentionBy) fewestWarps(segments int) int {
	switch {
	case by.headDim == 64:
		return 8
	case segments == 1:
		return 6
	}
	return 3
}

// decodeBlocksEach is the number of blocks of a decoding step per multiprocessor before a block
// processes more than one segment.
const decodeBlocksEach = 2

// windowSegments returns the maximum number of segments that so many tokens of a sequence attend to.
// A window may begin anywhere in a segment.
func windowSegments(sh *Shape, window, tokens int) int {
	if window == 0 {
		return sh.segments
	}
	return min(sh.segments, (window+tokens-1+2*contextSegment-2)/contextSegment)
}

func (c *Compiler) decodeFloats(by attentionBy, a *decodeArgs) (Launch, error) {
	family, variants := "decode_"+by.cache+"_"+by.heads, floatHeads[by.headDim]
	kvHeads := int(a.attention.kvHeads)
	share := int(a.attention.heads) / kvHeads
	var functions []*driver.Function
	var names []string
	for i, n := range variants {
		if i > 0 && variants[i-1] >= share {
			break
		}
		name := fmt.Sprintf("decode_%d", n)
		f, err := c.Kernel(family, name)
		if err != nil {
			return Launch{}, err
		}
		functions, names = append(functions, f), append(names, name)
	}
	// which returns the kernel and the number of blocks.
	which := func(sh *Shape) (i int, grid driver.Dim3) {
		grid = driver.Dim3{X: windowSegments(sh, int(a.attention.window), 1), Z: sh.Tokens}
		for i = range functions {
			if grid.Y = kvHeads * ((share + variants[i] - 1) / variants[i]); grid.X*grid.Y*grid.Z <= decodeBlocks {
				break
			}
		}
		return i, grid
	}
	return Launch{
		Name: family + " " + strings.Join(names, ", "), rows: plan.Tokens,
		runs: func(sh *Shape) string {
			if !by.decodes(sh) {
				return ""
			}
			i, _ := which(sh)
			return family + " " + names[i]
		},
		begin: func(st *driver.Stream, sh *Shape) error {
			i, grid := which(sh)
			a.attention.split, a.attention.maxSegments = 1, int32(grid.X)
			return c.queue(functions[i], st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: 256}}, device.Arguments(a))
		},
	}, nil
}

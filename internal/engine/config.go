package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// The sizes of steps and pages.
const (
	pageTokens  = 32
	chunkTokens = 256 // default for the prompt tokens in one step, at most
	chunkRows   = 16  // outputs of prompts in one step, at most
	stepsAhead  = 2   // steps in flight: while one runs, the next is ready

	// wholeTokens is the room of a step, in tokens, for a program that reads sequences as a whole,
	// unless one sequence of the context needs more.
	wholeTokens = 1024
)

// A Config holds the sizes of an engine.
type Config struct {
	Context  int // positions of one sequence, at most
	Parallel int // sequences in one step, at most
	// States bounds the pools of pages, in bytes. If 0, there is room for Parallel sequences of
	// Context positions each. The pools always hold one sequence of Context positions.
	States int
	// Host bounds the host memory for evicted pages, in bytes. If 0, there is none.
	Host int
	// Kept keeps pages from the end of one engine to the start of the next; nil keeps none.
	Kept *Kept
	// Chunk is the most prompt tokens in a step; 0 means 256. A step of prompts alone has as many
	// as make the device fast, 256 or more.
	Chunk int
	// Gap is the longest time that a step with both decode and prefill should take: every decoding
	// sequence waits that long for its next token. Chunks of prompts are sized for it by the
	// measured time of steps, but not below 32 tokens. 0 means 100 ms.
	Gap   time.Duration
	Cache tensor.DType // of keys and values
	// Activations is the type that weights are multiplied with: F32, or the type that the backend
	// rounds to, see [plan.Backend].
	Activations tensor.DType

	Drafts Drafts
	// Follows says that sequences are those of followers, see [Engine.Follow].
	Follows bool

	Weights, Pinned int  // as in [plan.Limits]
	Observed        bool // likewise

	Watch *Watch // or nil

	// Events is called with each change of what is cached, in order, or is nil. The engine is locked
	// and waits for it. The event is valid until Events returns.
	Events func(*CacheEvent)
}

// check returns an error if c's values are out of range.
func (c Config) check() error {
	if c.Chunk < 0 || c.Chunk > math.MaxInt32/2 || c.Gap < 0 {
		return fmt.Errorf("engine: a chunk of %d tokens with a gap of %v does not exist", c.Chunk, c.Gap)
	}
	if c.Context < 1 || c.Parallel < 1 || c.Parallel > math.MaxInt32-c.chunk() {
		return fmt.Errorf("engine: a context of %d for %d sequences does not exist", c.Context, c.Parallel)
	}
	if c.States < 0 || c.Host < 0 {
		return fmt.Errorf("engine: %d bytes for pages and %d of the host's memory do not exist", c.States, c.Host)
	}
	return nil
}

func (c Config) chunk() int { return cmp.Or(c.Chunk, chunkTokens) }

// prompts returns the most prompt tokens in a step: the context of one sequence, or of all
// sequences if Chunk is above the default.
func (c Config) prompts() int {
	n := c.Context
	if c.chunk() > chunkTokens {
		n *= c.Parallel
	}
	return min(c.chunk(), n)
}

// Limits returns the limits for p. A step has room for a chunk of prompts and one token of every
// other sequence, and for outputs of prompts and one sampled token of every sequence, so that no
// sequence waits for another. Drafted tokens have room of their own.
//
// If the program reads sequences as a whole, a step has room for the longest, and for an output of
// every token.
func (c Config) Limits(p *plan.Program) plan.Limits {
	if p.Whole {
		tokens := max(c.Context, min(wholeTokens, c.Parallel*c.Context))
		l := plan.Limits{Tokens: tokens, Seqs: c.Parallel, Rows: tokens, PageTokens: pageTokens, Cache: c.Cache, Activations: c.Activations, Weights: c.Weights, Pinned: c.Pinned, Observed: c.Observed}
		l.Pages, _ = c.pages(p, &l)
		return l
	}
	others, drafted := c.Parallel-1, c.drafted(p)
	l := plan.Limits{
		Tokens: c.prompts() + others + drafted, Seqs: c.Parallel, Rows: min(chunkRows, c.Context) + c.Parallel + drafted,
		Masks:      stepsAhead * (c.Parallel + drafted),
		PageTokens: pageTokens, Cache: c.Cache, Activations: c.Activations, Weights: c.Weights, Pinned: c.Pinned, Observed: c.Observed,
	}
	l.Pages, _ = c.pages(p, &l)
	return l
}

// pages returns the number of pages of each group, and how many of them are slots for checkpoints.
// It finds the longest length that fits into c.States for Parallel
// sequences, and returns at least the pages of one sequence of Context positions.
func (c Config) pages(p *plan.Program, l *plan.Limits) (n, checkpoints []int) {
	n, checkpoints = make([]int, len(p.Groups)), make([]int, len(p.Groups))
	sizes, k := make([]float64, len(p.Groups)), newCheckpoints(p)
	for g := range sizes {
		size, err := l.PageBytes(p, g)
		if err != nil {
			size = math.MaxInt
		}
		sizes[g] = float64(size)
	}
	cost := func(each int) float64 {
		total, slots, often := 0.0, 0.0, 0.0
		for g, group := range p.Groups {
			n[g] = max(c.most(group, k.passing(group)), c.share(k, group, each))
			total += float64(n[g]) * sizes[g]
		}
		if k.every == 0 {
			return total
		}
		for _, g := range k.groups {
			if slots += sizes[g]; p.Groups[g].Every == 0 {
				often += sizes[g]
			}
		}
		// Slots of groups that every step writes are for the last checkpoints of running sequences
		// first; other groups have these in use. They get a quarter of the memory at most.
		useful := max(c.Context, c.Parallel*min(c.Context, each*pageTokens)) / k.every
		room, own := total/(checkpointPart-1), 0
		if often > 0 {
			own = int(min(room/4/often, float64(min(useful, ownCheckpoints*c.Parallel))))
		}
		most := int(min((room-float64(own)*often)/slots, float64(useful)))
		for _, g := range k.groups {
			if checkpoints[g] = most; p.Groups[g].Every == 0 {
				checkpoints[g] = max(min(most+own, useful), fewestCheckpoints)
			}
			n[g] += checkpoints[g]
			total += float64(checkpoints[g]) * sizes[g]
		}
		return total
	}
	all := pagesOf(c.Context) + 1 // no group has more for one sequence
	if c.States > 0 {
		all = sort.Search(all, func(each int) bool { return cost(each+1) > float64(c.States) })
	}
	cost(all)
	return n, checkpoints
}

// checkpoints returns where the sequences of p leave checkpoints. The grid is as dense as the slots
// for checkpoints allow if the pools are full of long histories.
func (c Config) checkpoints(p *plan.Program) checkpoints {
	l, k := c.Limits(p), newCheckpoints(p)
	if n := k.fewest(c.Checkpoints(p)); n > 0 {
		far := max(fewestGridTokens, c.tokens(p, &l)*gridPart/n)
		k.grid = min(never, (far+k.every-1)/k.every*k.every)
	}
	return k
}

// Checkpoints returns how many slots of each group are planned for checkpoints, beside those that
// running sequences need.
func (c Config) Checkpoints(p *plan.Program) []int {
	l := c.Limits(p)
	_, n := c.pages(p, &l)
	return n
}

// tokens returns of how many tokens the pools hold all keys and values.
func (c Config) tokens(p *plan.Program, l *plan.Limits) int {
	n := c.Parallel * c.Context
	for g, group := range p.Groups {
		if group.KeepsAll() {
			n = min(n, l.Pages[g]*pageTokens)
		}
	}
	return n
}

// Holds returns for how many sequences of Context tokens the pools have room, and for how many
// tokens of sequences of any length. Groups that keep only a part of each sequence do not bound the
// tokens if another group does.
func (c Config) Holds(p *plan.Program) (sequences, tokens int) {
	if len(p.Groups) == 0 {
		return 0, 0
	}
	l, k := c.Limits(p), newCheckpoints(p)
	checkpoints := c.Checkpoints(p)
	sequences = c.Parallel
	for g, group := range p.Groups {
		switch {
		case k.passing(group):
		case group.Kind == plan.PerSequence:
			sequences = min(sequences, (l.Pages[g]-checkpoints[g])/c.steady(group))
		default:
			sequences = min(sequences, l.Pages[g]/c.most(group, false))
		}
	}
	return sequences, max(sequences*c.Context, c.tokens(p, &l))
}

// hostTokens is for how many tokens of the pages in host memory there is a checkpoint there, if the
// device has fewer.
const hostTokens = 8192

// hostPages returns how many pages of each group fit into c.Host bytes: in the ratio of the pools'
// sizes, but of slots only those for checkpoints, and no pages that only pass.
func (c Config) hostPages(p *plan.Program, l *plan.Limits) ([]int, error) {
	if _, err := l.StateBytes(p); err != nil {
		return nil, err
	}
	n, total, k := make([]int, len(l.Pages)), 0.0, newCheckpoints(p)
	keys := slices.ContainsFunc(p.Groups, func(g plan.Group) bool { return g.Kind == plan.PerToken && !k.passing(g) })
	checkpoints := max(1, k.fewest(c.Checkpoints(p)), c.tokens(p, l)/hostTokens)
	for g, group := range p.Groups {
		switch {
		case k.passing(group):
		case group.Kind == plan.PerSequence && keys:
			n[g] = checkpoints
		default:
			n[g] = l.Pages[g]
		}
		size, err := l.PageBytes(p, g)
		if err != nil {
			return nil, err
		}
		total += float64(n[g]) * float64(size)
	}
	for g := range n {
		n[g] = int(float64(c.Host) / max(1, total) * float64(n[g]))
	}
	return n, nil
}

// Memory is what an engine needs on a backend, in bytes.
type Memory struct {
	Weights int // in addition to the program's own
	States  int
	Scratch int // of a step
}

// Memory returns the memory that p needs on b.
func (c Config) Memory(p *plan.Program, b plan.Backend) (m Memory, err error) {
	if err := c.check(); err != nil {
		return Memory{}, err
	}
	l := c.Limits(p)
	if m.States, err = l.StateBytes(p); err != nil {
		return Memory{}, err
	}
	m.Weights, m.Scratch = b.Weights(p, l), b.Scratch(p, l)
	return m, nil
}

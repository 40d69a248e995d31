package engine

import (
	"cmp"
	"fmt"
	"math"
	"sort"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// The shape of steps and pages.
const (
	pageTokens  = 32
	chunkTokens = 256 // of prompts, at most, in one step, where nothing else is said
	chunkRows   = 16  // outputs of prompts, at most, in one step
	stepsAhead  = 2   // steps under way at one time: while one runs, the next is ready

	// wholeTokens are those that have room in a step of a program that reads sequences
	// as a whole, where one sequence of the context does not need more.
	wholeTokens = 1024
)

// Config is what an engine is sized by.
type Config struct {
	Context  int // positions of one sequence, at most
	Parallel int // sequences in one step, at most
	// States are the bytes that pools of pages may take. 0: room for Parallel
	// sequences of Context positions each. What is less than one sequence of Context
	// positions takes counts as that.
	States int
	// Host are the bytes of host memory for pages that the pools have no room for. 0:
	// none.
	Host int
	// Kept keeps pages from the end of one engine to the beginning of the next; nil keeps none.
	Kept *Kept
	// Chunk is how many tokens of prompts a step takes at most. 0: 256.
	Chunk int
	// Gap is the longest time that a step of both decoding and prefill should take: every
	// decoding sequence waits so long for its next token. 0: 100 ms.
	Gap   time.Duration
	Cache tensor.DType // of keys and values
	// Activations are what weights are multiplied with: F32, or what the backend rounds
	// to, see [plan.Backend].
	Activations tensor.DType

	Weights, Pinned int  // as in [plan.Limits]
	Observed        bool // likewise

	Watch *Watch // nil: nobody
}

// check says whether c can be counted with.
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

// prompts is the most prompt tokens in a step: the context of one sequence, or of all sequences
// where Chunk is above the default.
func (c Config) prompts() int {
	n := c.Context
	if c.chunk() > chunkTokens {
		n *= c.Parallel
	}
	return min(c.chunk(), n)
}

// Limits are the sizes that c takes of p. Beside a chunk of prompts there is room
// for a token of every other sequence, and beside outputs of prompts for a token
// that each sequence chooses, so that none waits for another.
//
// Where the program reads sequences as a whole, a step has room for the longest, and
// for an output of every token.
func (c Config) Limits(p *plan.Program) plan.Limits {
	if p.Whole {
		tokens := max(c.Context, min(wholeTokens, c.Parallel*c.Context))
		l := plan.Limits{Tokens: tokens, Seqs: c.Parallel, Rows: tokens, PageTokens: pageTokens, Cache: c.Cache, Activations: c.Activations, Weights: c.Weights, Pinned: c.Pinned, Observed: c.Observed}
		l.Pages = c.pages(p, &l)
		return l
	}
	others := c.Parallel - 1
	l := plan.Limits{
		Tokens: c.prompts() + others, Seqs: c.Parallel, Rows: min(chunkRows, c.Context) + c.Parallel, Masks: stepsAhead * c.Parallel,
		PageTokens: pageTokens, Cache: c.Cache, Activations: c.Activations, Weights: c.Weights, Pinned: c.Pinned, Observed: c.Observed,
	}
	l.Pages = c.pages(p, &l)
	return l
}

// pages are those of each group: what the longest run of tokens takes for which
// Parallel sequences have room beside each other, and at least what one sequence of
// Context positions does.
func (c Config) pages(p *plan.Program, l *plan.Limits) []int {
	n := make([]int, len(p.Groups))
	cost := func(each int) float64 {
		total := 0.0
		for g, group := range p.Groups {
			n[g] = max(c.most(group), c.Parallel*c.share(group, each))
			size, err := l.PageBytes(p, g)
			if err != nil {
				size = math.MaxInt
			}
			total += float64(n[g]) * float64(size)
		}
		return total
	}
	all := pagesOf(c.Context) + 1 // no group has more of one sequence
	if c.States > 0 {
		all = sort.Search(all, func(each int) bool { return cost(each+1) > float64(c.States) })
	}
	cost(all)
	return n
}

// hostPages is how many pages of each group the host's memory has room for: of
// unlike groups as many as their pools are to each other.
func (c Config) hostPages(p *plan.Program, l *plan.Limits) ([]int, error) {
	total, err := l.StateBytes(p)
	if err != nil {
		return nil, err
	}
	n := make([]int, len(l.Pages))
	for g := range n {
		n[g] = int(float64(c.Host) / float64(max(1, total)) * float64(l.Pages[g]))
	}
	return n, nil
}

// Memory is what an engine takes on a backend, in bytes.
type Memory struct {
	Weights int // beside those of the program
	States  int
	Scratch int // of a step
}

// Memory is what p takes on b.
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

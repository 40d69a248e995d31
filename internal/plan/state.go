package plan

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/tensor"
)

// A StateKind says whether a state belongs to tokens or to a sequence, and so how long it is
// needed.
type StateKind uint8

// The kinds of state.
const (
	// PerToken keeps keys and values of the tokens of a sequence, in pages of [Limits.PageTokens]
	// tokens. A later token needs the pages of all tokens before it, or with a window those of the
	// tokens that it sees.
	PerToken StateKind = iota
	// PerSequence keeps a summary of all tokens of a sequence so far: a matrix, or the last inputs
	// of a convolution. Its pages are slots for one sequence each. A later token needs only the
	// slot with the state after the token before it, or with [State.Every] after the last multiple
	// of so many tokens. Where a sequence has no slot yet, its state is zeros.
	PerSequence
)

func (k StateKind) String() string { return [...]string{"kv", "sequence"}[k] }

// A State is memory that outlives a step, declared by the program that uses it.
type State struct {
	Name string
	Kind StateKind

	// For states per token.
	KVHeads  int
	HeadDim  int  // length of a head's key
	ValueDim int  // length of a head's value; 0: keys only, such as latent rows
	Window   int  // tokens that a token sees; 0: all
	Chunk    int  // a token at position p sees positions from p/Chunk*Chunk on; 0: all
	Exact    bool // values are float32, whatever [Limits.Cache] says

	// For states per sequence.
	Size int // number of float32 values

	// Every is a number of tokens. A state per sequence is that after the last multiple of it. A state
	// per token has a row of keys after each multiple of it, and no values; the rows of a page are
	// those that its tokens complete. 0: after every token.
	Every int

	Group int // index into Program.Groups
}

func (s State) String() string {
	what := fmt.Sprintf("size %d", s.Size)
	if s.Kind == PerToken {
		what = fmt.Sprintf("heads %d dim %d", s.KVHeads, s.HeadDim)
		if s.ValueDim != s.HeadDim {
			what += fmt.Sprintf(" value dim %d", s.ValueDim)
		}
		if s.Window > 0 {
			what += fmt.Sprintf(" window %d", s.Window)
		}
		if s.Chunk > 0 {
			what += fmt.Sprintf(" chunk %d", s.Chunk)
		}
		if s.Exact {
			what += " exact"
		}
	}
	if s.Every > 0 {
		what += fmt.Sprintf(" every %d", s.Every)
	}
	return fmt.Sprintf("%s %v %s group %d", s.Name, s.Kind, what, s.Group)
}

// Width returns the number of values of a row, per token unless there is [State.Every], or per
// sequence.
func (s State) Width() int {
	if s.Kind == PerSequence {
		return s.Size
	}
	return s.KVHeads * (s.HeadDim + s.ValueDim)
}

// exists reports whether the fields of s are consistent.
func (s State) exists() bool {
	if s.Kind == PerSequence {
		return s.Size > 0 && s.Every >= 0 && s.KVHeads == 0 && s.HeadDim == 0 && s.ValueDim == 0 && s.Window == 0 && s.Chunk == 0 && !s.Exact
	}
	return s.Kind == PerToken && s.KVHeads > 0 && s.HeadDim > 0 && s.ValueDim >= 0 && s.Window >= 0 && s.Chunk >= 0 &&
		(s.Window == 0 || s.Chunk == 0) && s.Size == 0 &&
		(s.Every == 0 || s.Every > 0 && s.ValueDim == 0 && s.Window == 0 && s.Chunk == 0)
}

// group returns the group of s.
func (s State) group() Group {
	g := Group{Kind: s.Kind, Window: s.Window, Chunk: s.Chunk}
	if s.Kind == PerSequence {
		g.Every = s.Every
	}
	return g
}

// Rows returns how many rows of s a page of that many tokens has.
func (s State) Rows(tokens int) int {
	if s.Every == 0 {
		return tokens
	}
	return (tokens + s.Every - 1) / s.Every
}

// Format returns the format of the values of s with a cache of format cache.
func (s State) Format(cache tensor.DType) tensor.DType {
	if s.Exact || s.Kind == PerSequence {
		return tensor.F32
	}
	return cache
}

// RowBytes returns the size of a row of s in bytes with a cache of format cache.
func (s State) RowBytes(cache tensor.DType) int {
	format := s.Format(cache)
	return s.Width()/format.BlockLen()*format.BlockBytes() + s.scaleBytes(cache)
}

// scaleBytes returns the size of the scales of a row that the format's blocks do not contain: a
// float16 for each key and each value of a head in F8_E4M3.
func (s State) scaleBytes(cache tensor.DType) int {
	if s.Format(cache) != tensor.F8_E4M3 {
		return 0
	}
	n := 2 * s.KVHeads
	if s.ValueDim > 0 {
		n *= 2
	}
	return n
}

// HeadUnit returns the number of which the widths of heads are multiples in a cache of format
// cache.
func HeadUnit(cache tensor.DType) int {
	if cache == tensor.F8_E4M3 {
		return 16
	}
	return cache.BlockLen()
}

// A Group is a set of states that a sequence fills and frees together: page p of a group is page p
// of every state in it, so that they share one page table. Each field is as in [State].
type Group struct {
	Kind   StateKind
	Window int
	Chunk  int
	Every  int
}

// FirstVisible returns the first position whose state a token at pos needs. For states per token it
// is the first position that the token sees; for states per sequence it is the last position of
// the state that the token continues from, or 0 if there is none.
func (g Group) FirstVisible(pos int) int {
	switch {
	case g.Kind == PerSequence:
		return max(0, g.Taken(pos)-1)
	case g.Chunk > 0:
		return pos / g.Chunk * g.Chunk
	case g.Window == 0:
		return 0
	}
	return max(0, pos+1-g.Window)
}

// KeepsAll reports whether every token needs the states of all tokens before it.
func (g Group) KeepsAll() bool { return g.Kind == PerToken && g.Window == 0 && g.Chunk == 0 }

// Taken returns after how many of the first n tokens of a sequence its state per sequence was last
// taken: n, or with Every the last multiple of it. If it is 0 there is no slot, and the state is
// zeros. A step from a to b tokens reads the slot of Taken(a), and writes one if Taken(b) is
// greater.
func (g Group) Taken(n int) int {
	if g.Every == 0 {
		return n
	}
	return n / g.Every * g.Every
}

// Width returns the number of values of one token, or of one sequence, in all states of group g.
func (p *Program) Width(g int) int {
	n := 0
	for _, s := range p.States {
		if s.Group == g {
			n += s.Width()
		}
	}
	return n
}

// RowBytes returns the size of a row of each of p's states in bytes with a cache of format cache.
func (p *Program) RowBytes(cache tensor.DType) int {
	n := 0
	for _, s := range p.States {
		n += s.RowBytes(cache)
	}
	return n
}

// MisfitHead returns the width of the first head of p's keys or values that is not a multiple of
// [HeadUnit]; 0 if all are.
func (p *Program) MisfitHead(cache tensor.DType) int {
	for _, s := range p.States {
		for _, dim := range []int{s.HeadDim, s.ValueDim} {
			if dim%HeadUnit(s.Format(cache)) != 0 {
				return dim
			}
		}
	}
	return 0
}

// Limits are the largest step and the memory of an executable.
type Limits struct {
	Tokens, Seqs, Rows int          // largest T, S and R of a step
	Masks              int          // masks in the table, see [Executable.SetMask]
	PageTokens         int          // tokens per page
	Pages              []int        // pages of each group; slots for states per sequence
	Cache              tensor.DType // format of states per token that are not exact: F32, F16, Q8_0 for 8 bits in blocks of 32 along the head, or F8_E4M3 with a scale for each key and value of a head
	Activations        tensor.DType // format of the inputs of products: F32, the backend's [Backend.Rounds], or F8_E4M3 if it has kernels for that

	// Weights is how many bytes of a device's memory the program's weights may take; 0 is
	// unlimited. Weights that do not fit are copied to the device when they are needed, see
	// [Streaming]. A value below the minimum that works counts as the minimum.
	Weights int
	// Pinned is how many bytes of pinned host memory streamed weights may take, besides the
	// program's own weights. Layers that do not fit are read from the program's weights in every
	// step.
	Pinned int

	Observed bool // batches may have a [Batch.Observe]
}

// InBytes reports whether products with weights of format d read their input in 8 bits if
// [Limits.Activations] is Q8_0. Products with other formats read floats. See [tensor.Format].
func InBytes(d tensor.DType) bool { return d.Format().InBytes }

// PageOf returns the size of one page of s in bytes. Slots and exact states are in float32, whatever
// the format of the cache.
func (l *Limits) PageOf(s State) (int, error) {
	w := s.Width()
	if s.Kind == PerSequence {
		return tensor.F32.Size(w)
	}
	if l.PageTokens <= 0 || w > math.MaxInt/2/l.PageTokens {
		return 0, fmt.Errorf("plan: a page of %d tokens of %d values does not exist", l.PageTokens, w)
	}
	rows := s.Rows(l.PageTokens)
	n, err := s.Format(l.Cache).Size(w * rows)
	if err != nil {
		return 0, err
	}
	return n + rows*s.scaleBytes(l.Cache), nil
}

// PageBytes returns the size of one page of group g in bytes, over all its states.
func (l *Limits) PageBytes(p *Program, g int) (int, error) {
	total := 0
	for _, s := range p.States {
		if s.Group != g {
			continue
		}
		n, err := l.PageOf(s)
		if err != nil {
			return 0, err
		}
		total += n
	}
	return total, nil
}

// StateBytes returns the size of all pools in bytes.
func (l *Limits) StateBytes(p *Program) (int, error) {
	total := 0
	for g := range p.Groups {
		n, err := l.PageBytes(p, g)
		if err != nil {
			return 0, err
		}
		if g >= len(l.Pages) || l.Pages[g] < 0 || (n > 0 && l.Pages[g] > (math.MaxInt-total)/n) {
			return 0, fmt.Errorf("plan: pools of %v pages of %d bytes do not fit the address space", l.Pages, n)
		}
		total += n * l.Pages[g]
	}
	return total, nil
}

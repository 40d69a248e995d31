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
	// slot with the state after the token before it. The first token of a sequence has no slot; its
	// state is zeros.
	PerSequence
)

func (k StateKind) String() string { return [...]string{"kv", "sequence"}[k] }

// A State is memory that outlives a step, declared by the program that uses it.
type State struct {
	Name string
	Kind StateKind

	// For states per token.
	KVHeads  int
	HeadDim  int // length of a head's key
	ValueDim int // length of a head's value; 0: keys only, such as latent rows
	Window   int // tokens that a token sees; 0: all

	// Size is the number of float32 values of a state per sequence.
	Size int

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
	}
	return fmt.Sprintf("%s %v %s group %d", s.Name, s.Kind, what, s.Group)
}

// Width returns the number of values per token, or per sequence.
func (s State) Width() int {
	if s.Kind == PerSequence {
		return s.Size
	}
	return s.KVHeads * (s.HeadDim + s.ValueDim)
}

// exists reports whether the fields of s are consistent.
func (s State) exists() bool {
	if s.Kind == PerSequence {
		return s.Size > 0 && s.KVHeads == 0 && s.HeadDim == 0 && s.ValueDim == 0 && s.Window == 0
	}
	return s.Kind == PerToken && s.KVHeads > 0 && s.HeadDim > 0 && s.ValueDim >= 0 && s.Window >= 0 && s.Size == 0
}

// A Group is a set of states that a sequence fills and frees together: page p of a group is page p
// of every state in it, so that they share one page table. The states per sequence of a program are
// one group.
type Group struct {
	Kind   StateKind
	Window int // for states per token; 0: the whole past is kept
}

// FirstVisible returns the first position whose state a token at pos needs: the first position that
// it sees for states per token, the position before it for states per sequence.
func (g Group) FirstVisible(pos int) int {
	switch {
	case g.Kind == PerSequence:
		return max(0, pos-1)
	case g.Window == 0:
		return 0
	}
	return max(0, pos+1-g.Window)
}

// KeepsAll reports whether every token needs the states of all tokens before it.
func (g Group) KeepsAll() bool { return g.Kind == PerToken && g.Window == 0 }

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

// MisfitHead returns the width of the first head of p's keys or values that is not a whole number
// of blocks of the cache's format; 0 if all are.
func (p *Program) MisfitHead(cache tensor.DType) int {
	for _, s := range p.States {
		for _, dim := range []int{s.HeadDim, s.ValueDim} {
			if dim%cache.BlockLen() != 0 {
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
	Cache              tensor.DType // format of states per token: F32, F16, or Q8_0 for 8 bits in blocks of 32 along the head
	Activations        tensor.DType // format of the inputs of products: F32, or the backend's [Backend.Rounds]

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

// PageOf returns the size of one page of s in bytes. A slot is in float32, whatever the format of
// the cache.
func (l *Limits) PageOf(s State) (int, error) {
	w := s.Width()
	if s.Kind == PerSequence {
		return tensor.F32.Size(w)
	}
	if l.PageTokens <= 0 || w > math.MaxInt/l.PageTokens {
		return 0, fmt.Errorf("plan: a page of %d tokens of %d values does not exist", l.PageTokens, w)
	}
	return l.Cache.Size(w * l.PageTokens)
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

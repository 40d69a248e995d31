package plan

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/tensor"
)

// A StateKind is what a state belongs to, and so how long it is needed.
type StateKind uint8

// The kinds of state.
const (
	// PerToken keeps keys and values of the tokens of a sequence, in pages of
	// [Limits.PageTokens] tokens. What comes after some tokens needs the pages of all of
	// them, or with a window those of the tokens that it can see.
	PerToken StateKind = iota
	// PerSequence keeps what all tokens of a sequence so far have come to: a matrix, or
	// the last inputs of a convolution. Its pages are slots for one sequence each. What
	// comes after some tokens needs the one slot with the state after the last of them;
	// where there is none before the first token, the state is zeros.
	PerSequence
)

func (k StateKind) String() string { return [...]string{"kv", "sequence"}[k] }

// A State is memory that outlives a step, declared by the program that uses it.
type State struct {
	Name string
	Kind StateKind

	// Of states per token.
	KVHeads  int
	HeadDim  int // values of a head's key
	ValueDim int // values of a head's value; 0: keys are all there is, such as latent rows
	Window   int // tokens that can be seen, 0: all

	// Of states per sequence: how many values there are, in float32.
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

// Width is the number of values kept per token, or per sequence.
func (s State) Width() int {
	if s.Kind == PerSequence {
		return s.Size
	}
	return s.KVHeads * (s.HeadDim + s.ValueDim)
}

// exists reports whether there can be such a state.
func (s State) exists() bool {
	if s.Kind == PerSequence {
		return s.Size > 0 && s.KVHeads == 0 && s.HeadDim == 0 && s.ValueDim == 0 && s.Window == 0
	}
	return s.Kind == PerToken && s.KVHeads > 0 && s.HeadDim > 0 && s.ValueDim >= 0 && s.Window >= 0 && s.Size == 0
}

// A Group is a set of states that a sequence fills and frees together: page p
// of a group is page p of every state in it, so that one page table serves them
// all. The states per sequence of a program are one group.
type Group struct {
	Kind   StateKind
	Window int // of states per token, 0: all of the past is kept
}

// FirstVisible is the first position whose state a token at pos needs: the first that
// it sees of states per token, the one before it of states per sequence.
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

// Width is the number of values that one token, or one sequence, takes in all states of
// group g.
func (p *Program) Width(g int) int {
	n := 0
	for _, s := range p.States {
		if s.Group == g {
			n += s.Width()
		}
	}
	return n
}

// MisfitHead is the width of the first head of p's keys or values that is no whole number of
// blocks of a cache's format; 0 if all are.
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

// Limits are the largest step and the memory that an executable is made for.
type Limits struct {
	Tokens, Seqs, Rows int          // T, S and R at most in one step
	Masks              int          // in the table that rows choose by, see [Executable.SetMask]
	PageTokens         int          // tokens of a page
	Pages              []int        // pages of each group; of states per sequence, slots
	Cache              tensor.DType // of states per token: F32, F16, or Q8_0 for 8 bits in blocks of 32 along the head
	Activations        tensor.DType // of what weights are multiplied with: F32, or what the backend rounds to, see [Backend.Rounds]

	// Weights is how many bytes of a device's memory the program's weights may take, 0
	// for as many as they need: what has no room there comes to the device when it is
	// needed, see [Streaming]. Less than the least that works counts as that.
	Weights int
	// Pinned is how many bytes of the host's memory weights that stream may take
	// beside those of the program. Layers that have no room there are read from the
	// program's weights in every step.
	Pinned int

	Observed bool // steps may have a [Batch.Observe]
}

// InBytes reports whether products of weights of d read their input in 8 bits where
// [Limits.Activations] are Q8_0. Those of other formats, of blocks or not, read
// floats. See [tensor.Format].
func InBytes(d tensor.DType) bool { return d.Format().InBytes }

// PageOf is the size of one page of s in bytes. A slot is in float32, whatever the cache
// is in.
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

// PageBytes is the size of one page of group g over all its states.
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

// StateBytes is the size of all pools.
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

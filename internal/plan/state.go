package plan

import (
	"fmt"
	"math"

	"github.com/realizar/realizar/tensor"
)

// A StateKind is a kind of memory that outlives a step.
type StateKind uint8

// The kinds of state.
const (
	// PagedKV keeps keys and values of the tokens of a sequence, in pages of
	// [Limits.PageTokens] tokens. With a window, pages that no coming token can
	// see may be given back.
	PagedKV StateKind = iota
)

func (k StateKind) String() string { return [...]string{"kv"}[k] }

// A State is memory that outlives a step, declared by the program that uses it.
type State struct {
	Name    string
	Kind    StateKind
	KVHeads int
	HeadDim int
	Window  int // tokens that can be seen, 0: all
	Group   int // index into Program.Groups
}

func (s State) String() string {
	w := ""
	if s.Window > 0 {
		w = fmt.Sprintf(" window %d", s.Window)
	}
	return fmt.Sprintf("%s %v heads %d dim %d%s group %d", s.Name, s.Kind, s.KVHeads, s.HeadDim, w, s.Group)
}

// Width is the number of values kept per token.
func (s State) Width() int { return 2 * s.KVHeads * s.HeadDim }

// A Group is a set of states that a sequence fills and frees together: page p
// of a group is page p of every state in it, so that one page table serves them
// all.
type Group struct {
	Kind   StateKind
	Window int // 0: all of the past is kept
}

// Width is the number of values that one token takes in all states of group g.
func (p *Program) Width(g int) int {
	n := 0
	for _, s := range p.States {
		if s.Group == g {
			n += s.Width()
		}
	}
	return n
}

// Limits are the largest step and the memory that an executable is made for.
type Limits struct {
	Tokens, Seqs, Rows int          // T, S and R at most in one step
	PageTokens         int          // tokens of a page
	Pages              []int        // pages of each group
	Cache              tensor.DType // of keys and values: F32, F16, or Q8_0 for 8 bits in blocks of 32 along the head
	Activations        tensor.DType // of what weights are multiplied with: F32, or Q8_0 for 8 bits, see InBytes

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
// [Limits.Activations] asks for them. Those of other formats, of blocks or not, read
// floats.
func InBytes(d tensor.DType) bool { return d.Format().InBytes }

// PageBytes is the size of one page of group g over all its states.
func (l *Limits) PageBytes(p *Program, g int) (int, error) {
	w := p.Width(g)
	if l.PageTokens <= 0 || w > math.MaxInt/l.PageTokens {
		return 0, fmt.Errorf("plan: a page of %d tokens of %d values does not exist", l.PageTokens, w)
	}
	return l.Cache.Size(w * l.PageTokens)
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

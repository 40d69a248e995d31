package plan

import "fmt"

// Select chooses the positions that a token attends to, see [Builder.Select].
var Select = &Op{Name: "select", Scope: BySequence}

// SelectAttr holds the parameters of [Select].
type SelectAttr struct {
	Heads, HeadDim int
	Top            int // positions chosen for a token
	Every          int // keys are rows after each multiple of so many tokens, which are chosen by their numbers; 0: keys of each token
}

func (a SelectAttr) String() string {
	s := fmt.Sprintf("{heads %d, dim %d, top %d", a.Heads, a.HeadDim, a.Top)
	if a.Every > 0 {
		s += fmt.Sprintf(", every %d", a.Every)
	}
	return s + "}"
}

// Seen returns from how many keys a token at position pos chooses.
func (a *SelectAttr) Seen(pos int) int { return (pos + 1) / max(1, a.Every) }

// MostSelected bounds [SelectAttr.Top]: each token of a step has a row of so many numbers.
const MostSelected = 1 << 16

// maxSelected is one past the largest position that [Select] chooses: its result is in float32.
const maxSelected = 1 << 24

// Select stores the step's keys k [T, HeadDim] in state and chooses positions for each token: those
// of the Top highest scores among itself and all tokens before it. With queries q [T,
// Heads*HeadDim] and weights w [T, Heads], position p has the score
//
//	sum over heads h of w_h * max(0, q_h·k_p)
//
// (DeepSeek-AI, "DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models", 2025, the
// lightning indexer). Of positions with equal scores the lower ones are chosen first. The result
// [T, Top] holds the positions in ascending order, then -1 where a token sees fewer than Top. A
// score that is NaN makes its token's row NaN.
//
// With Every, state has it too, and the positions are numbers of keys: key i is row (i+1)*Every-1
// of k, other rows are not read, and a token chooses among the keys of itself and tokens before it.
func (b *Builder) Select(q, k, w Value, state int, a SelectAttr) Value {
	if a.Heads <= 0 || a.HeadDim <= 0 || a.Top <= 0 || a.Top > MostSelected || b.Cols(q) != a.Heads*a.HeadDim || b.Cols(k) != a.HeadDim || b.Cols(w) != a.Heads {
		b.Failf("select %v does not fit q of %d, k of %d and w of %d columns", a, b.Cols(q), b.Cols(k), b.Cols(w))
	}
	if s := b.p.States[state]; s.KVHeads != 1 || s.HeadDim != a.HeadDim || s.ValueDim != 0 || max(1, s.Every) != max(1, a.Every) || !s.group().KeepsAll() || s.Exact {
		b.Failf("select %v does not fit state %v", a, s)
	}
	if b.p.Positions == 0 || b.p.Positions > maxSelected {
		b.p.Positions = maxSelected
	}
	return b.add(Node{Op: Select, In: []Value{q, k, w}, State: state, Attr: a}, Tokens, Dim(a.Top))
}

package plan

import "fmt"

// Select chooses the positions that a token attends to, see [Builder.Select].
var Select = &Op{Name: "select", Scope: BySequence}

// SelectAttr holds the parameters of [Select].
type SelectAttr struct {
	Heads, HeadDim int
	Top            int // positions chosen for a token
}

func (a SelectAttr) String() string {
	return fmt.Sprintf("{heads %d, dim %d, top %d}", a.Heads, a.HeadDim, a.Top)
}

// Chosen returns how many positions are chosen for a token at position pos.
func (a *SelectAttr) Chosen(pos int) int { return min(pos+1, a.Top) }

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
func (b *Builder) Select(q, k, w Value, state int, a SelectAttr) Value {
	if a.Heads <= 0 || a.HeadDim <= 0 || a.Top <= 0 || b.Cols(q) != a.Heads*a.HeadDim || b.Cols(k) != a.HeadDim || b.Cols(w) != a.Heads {
		b.Failf("select %v does not fit q of %d, k of %d and w of %d columns", a, b.Cols(q), b.Cols(k), b.Cols(w))
	}
	if s := b.p.States[state]; s.KVHeads != 1 || s.HeadDim != a.HeadDim || s.ValueDim != 0 || !s.group().KeepsAll() || s.Exact {
		b.Failf("select %v does not fit state %v", a, s)
	}
	if b.p.Positions == 0 || b.p.Positions > maxSelected {
		b.p.Positions = maxSelected
	}
	return b.add(Node{Op: Select, In: []Value{q, k, w}, State: state, Attr: a}, Tokens, Dim(a.Top))
}

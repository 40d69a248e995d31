package plan_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// states returns a program with states of every kind.
func states(t *testing.T) *plan.Program {
	t.Helper()
	p, err := plan.Build(func(b *plan.Builder) {
		b.State(plan.State{Name: "kv", KVHeads: 2, HeadDim: 6, ValueDim: 4})
		b.State(plan.State{Name: "tail", Kind: plan.PerSequence, Size: 9})
		b.State(plan.State{Name: "latent", KVHeads: 1, HeadDim: 5})
		b.State(plan.State{Name: "window", KVHeads: 1, HeadDim: 4, ValueDim: 4, Window: 3})
		b.State(plan.State{Name: "matrix", Kind: plan.PerSequence, Size: 16})
		x := b.Pick(b.Embed(matrix(3, 8)))
		b.Output(x, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestStateKinds(t *testing.T) {
	p := states(t)
	var groups []int
	text := ""
	for _, s := range p.States {
		groups, text = append(groups, s.Group), text+s.String()+"\n"
	}
	if want := []int{0, 1, 0, 2, 1}; !slices.Equal(groups, want) {
		t.Errorf("groups %v, want %v", groups, want)
	}
	const want = `kv kv heads 2 dim 6 value dim 4 group 0
tail sequence size 9 group 1
latent kv heads 1 dim 5 value dim 0 group 0
window kv heads 1 dim 4 window 3 group 2
matrix sequence size 16 group 1
`
	if text != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	l := plan.Limits{PageTokens: 16, Pages: []int{3, 2, 5}, Cache: tensor.F16}
	for g, c := range []struct{ width, bytes int }{{2*(6+4) + 5, 2 * 16 * 25}, {9 + 16, 4 * 25}, {8, 2 * 16 * 8}} {
		if n, err := l.PageBytes(p, g); p.Width(g) != c.width || err != nil || n != c.bytes {
			t.Errorf("group %d: a width of %d in %d bytes (%v), want %d in %d", g, p.Width(g), n, err, c.width, c.bytes)
		}
	}
	if n, err := l.StateBytes(p); err != nil || n != 3*800+2*100+5*256 {
		t.Errorf("%d bytes (%v)", n, err)
	}
	g := plan.Group{Kind: plan.PerSequence}
	if g.FirstVisible(0) != 0 || g.FirstVisible(9) != 8 || g.KeepsAll() || (plan.Group{Window: 3}).KeepsAll() || !(plan.Group{}).KeepsAll() {
		t.Error("a token needs the state of the one before it, and of others where its group keeps all")
	}
}

func TestStatesThatDoNotExist(t *testing.T) {
	for name, s := range map[string]plan.State{
		"no keys":            {KVHeads: 1, ValueDim: 4},
		"no heads":           {HeadDim: 4, ValueDim: 4},
		"negative values":    {KVHeads: 1, HeadDim: 4, ValueDim: -4},
		"negative window":    {KVHeads: 1, HeadDim: 4, ValueDim: 4, Window: -1},
		"keys and a size":    {KVHeads: 1, HeadDim: 4, ValueDim: 4, Size: 3},
		"no size":            {Kind: plan.PerSequence},
		"a size and heads":   {Kind: plan.PerSequence, Size: 4, KVHeads: 1, HeadDim: 4},
		"a size of a window": {Kind: plan.PerSequence, Size: 4, Window: 5},
		"no kind":            {Kind: 7, Size: 4},
	} {
		if _, err := plan.Build(func(b *plan.Builder) {
			b.State(s)
			x := b.Pick(b.Embed(matrix(3, 8)))
			b.Output(x, x)
		}); err == nil {
			t.Errorf("%s: built", name)
		}
	}
}

// A step reads a sequence's state from one slot and writes it to another.
func TestSlotsOfBatch(t *testing.T) {
	p := states(t)
	l := &plan.Limits{Tokens: 8, Seqs: 2, Rows: 8, PageTokens: 16, Pages: []int{4, 4, 4}, Cache: tensor.F16}
	batch := func() *plan.Batch {
		b := &plan.Batch{Tokens: []int32{1, 2, 0}, Positions: []int32{0, 1, 9}, Start: []int32{0, 2, 3}, Lengths: []int32{2, 10}, Tables: make([]plan.PageTable, 3)}
		for g := range b.Tables {
			b.Tables[g].Reset()
		}
		for _, g := range []int{0, 2} {
			b.Tables[g].Add(0, 0)
			b.Tables[g].Add(0, 1)
		}
		b.Tables[1].AddSlots(-1, 2)
		b.Tables[1].AddSlots(0, 1)
		return b
	}
	b := batch()
	if err := b.Validate(p, l, 0); err != nil {
		t.Fatal(err)
	}
	for s, want := range [][2]int32{{-1, 2}, {0, 1}} {
		if in, out := b.Tables[1].Slots(s); in != want[0] || out != want[1] {
			t.Errorf("sequence %d has the slots %d and %d, want %v", s, in, out, want)
		}
	}
	for name, spoil := range map[string]func(t *plan.PageTable){
		"a slot that is both":      func(t *plan.PageTable) { t.Pages[3] = 0 },
		"a slot to begin from":     func(t *plan.PageTable) { t.Pages[0] = 3 },
		"no slot to go on from":    func(t *plan.PageTable) { t.Pages[2] = -1 },
		"no slot to write":         func(t *plan.PageTable) { t.Pages[1] = -1 },
		"a slot outside":           func(t *plan.PageTable) { t.Pages[3] = 4 },
		"a slot outside to read":   func(t *plan.PageTable) { t.Pages[2] = 4 },
		"a slot below none":        func(t *plan.PageTable) { t.Pages[0] = -2 },
		"one slot and three":       func(t *plan.PageTable) { t.Start[1] = 1 },
		"slots that are not first": func(t *plan.PageTable) { t.First[1] = 1 },
		"no slots":                 func(t *plan.PageTable) { t.Reset() },
	} {
		b := batch()
		spoil(&b.Tables[1])
		if err := b.Validate(p, l, 0); !errors.Is(err, plan.ErrBatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

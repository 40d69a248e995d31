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

// A token of a chunk sees no earlier chunk, and a state that is taken at multiples of a number is
// needed from one multiple to the next.
func TestStatesInChunks(t *testing.T) {
	p, err := plan.Build(func(b *plan.Builder) {
		for _, s := range []plan.State{
			{Name: "rows", KVHeads: 2, HeadDim: 3, ValueDim: 5, Chunk: 8, Exact: true},
			{Name: "matrix", Kind: plan.PerSequence, Size: 16, Every: 8},
			{Name: "tail", Kind: plan.PerSequence, Size: 3, Every: 1},
			{Name: "local", KVHeads: 1, HeadDim: 32, ValueDim: 32, Chunk: 8},
			{Name: "exact", KVHeads: 1, HeadDim: 4, ValueDim: 4, Exact: true},
			{Name: "kv", KVHeads: 1, HeadDim: 32, ValueDim: 32},
			{Name: "longer", Kind: plan.PerSequence, Size: 4, Every: 16},
			{Name: "sums", Kind: plan.PerSequence, Size: 2},
		} {
			b.State(s)
		}
		x := b.Pick(b.Embed(matrix(3, 8)))
		b.Output(x, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, s := range p.States {
		text += s.String() + "\n"
	}
	const want = `rows kv heads 2 dim 3 value dim 5 chunk 8 exact group 0
matrix sequence size 16 every 8 group 1
tail sequence size 3 group 2
local kv heads 1 dim 32 chunk 8 group 0
exact kv heads 1 dim 4 exact group 3
kv kv heads 1 dim 32 group 3
longer sequence size 4 every 16 group 4
sums sequence size 2 group 2
`
	if text != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	l := plan.Limits{PageTokens: 16, Cache: tensor.Q8_0}
	for g, want := range []int{16 * (4*2*8 + 2*34), 4 * 16, 4 * 5, 16 * (4*8 + 2*34), 4 * 4} {
		if n, err := l.PageBytes(p, g); err != nil || n != want {
			t.Errorf("group %d: a page of %d bytes (%v), want %d", g, n, err, want)
		}
	}
	l.Cache = tensor.F8_E4M3
	for g, want := range []int{16 * (4*2*8 + 2*(32+2)), 4 * 16, 4 * 5, 16 * (4*8 + 2*(32+2)), 4 * 4} {
		if n, err := l.PageBytes(p, g); err != nil || n != want {
			t.Errorf("group %d: a page of E4M3 numbers of %d bytes (%v), want %d", g, n, err, want)
		}
	}
	if n := p.MisfitHead(tensor.Q8_0); n != 0 {
		t.Errorf("heads of %d values do not fit, but those are exact", n)
	}
	chunk, every := p.Groups[0], p.Groups[1]
	if chunk.KeepsAll() || every.KeepsAll() || !p.Groups[3].KeepsAll() {
		t.Error("chunks keep all")
	}
	for _, c := range []struct{ pos, chunk, every, taken int }{{0, 0, 0, 0}, {7, 0, 0, 0}, {8, 8, 7, 8}, {15, 8, 7, 8}, {16, 16, 15, 16}, {250, 248, 247, 248}} {
		if a, b, n := chunk.FirstVisible(c.pos), every.FirstVisible(c.pos), every.Taken(c.pos); a != c.chunk || b != c.every || n != c.taken {
			t.Errorf("position %d needs %d, and the state at %d after %d tokens, want %+v", c.pos, a, b, n, c)
		}
	}
	if n := p.Groups[2].Taken(9); n != 9 {
		t.Errorf("a state is taken after %d of 9 tokens", n)
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
		"negative chunk":     {KVHeads: 1, HeadDim: 4, ValueDim: 4, Chunk: -1},
		"window and chunk":   {KVHeads: 1, HeadDim: 4, ValueDim: 4, Chunk: 8, Window: 8},
		"keys taken":         {KVHeads: 1, HeadDim: 4, ValueDim: 4, Every: 8},
		"a size of a chunk":  {Kind: plan.PerSequence, Size: 4, Chunk: 8},
		"an exact size":      {Kind: plan.PerSequence, Size: 4, Exact: true},
		"negative every":     {Kind: plan.PerSequence, Size: 4, Every: -1},
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

// A step reads the state taken last before it, and writes a slot only if it goes on to the next one.
func TestSlotsTakenAtMultiples(t *testing.T) {
	p, err := plan.Build(func(b *plan.Builder) {
		b.State(plan.State{Name: "matrix", Kind: plan.PerSequence, Size: 4, Every: 8})
		b.State(plan.State{Name: "rows", KVHeads: 1, HeadDim: 4, Chunk: 8, Exact: true})
		x := b.Pick(b.Embed(matrix(3, 8)))
		b.Output(x, x)
	})
	if err != nil {
		t.Fatal(err)
	}
	l := &plan.Limits{Tokens: 40, Seqs: 1, Rows: 1, PageTokens: 4, Pages: []int{3, 20}, Cache: tensor.F16}
	for _, c := range []struct {
		from, to int
		in, out  int32
		ok       bool
	}{
		{0, 5, -1, -1, true}, {0, 7, -1, 0, false}, {0, 5, 1, -1, false},
		{0, 8, -1, 2, true}, {0, 8, -1, -1, false}, {5, 9, -1, 0, true}, {5, 9, 1, 0, false}, {0, 30, -1, 1, true},
		{8, 9, 2, -1, true}, {8, 9, -1, -1, false}, {8, 9, 2, 1, false}, {8, 9, 3, -1, false}, {8, 9, -2, -1, false},
		{15, 16, 0, 1, true}, {15, 16, 0, -1, false}, {15, 16, 0, 0, false}, {15, 16, 0, 3, false}, {15, 16, 0, -2, false},
		{17, 39, 1, 2, true}, {16, 23, 1, -1, true},
	} {
		for skipped := range 3 {
			first := c.from/8*8/4 - 1 + skipped // the first page that the chunk needs is the second
			if first < 0 {
				continue
			}
			b := &plan.Batch{Tokens: make([]int32, c.to-c.from), Start: []int32{0, int32(c.to - c.from)}, Lengths: []int32{40}, Tables: make([]plan.PageTable, 2)}
			for pos := c.from; pos < c.to; pos++ {
				b.Positions = append(b.Positions, int32(pos))
			}
			b.Tables[0].Reset()
			b.Tables[0].AddSlots(c.in, c.out)
			var pages []int32
			for i := first; i*4 < c.to; i++ {
				pages = append(pages, int32(i))
			}
			b.Tables[1].Reset()
			b.Tables[1].Add(first, pages...)
			if err, ok := b.Validate(p, l, 0), c.ok && skipped < 2; (err == nil) != ok || err != nil && !errors.Is(err, plan.ErrBatch) {
				t.Errorf("%+v with pages from %d on: %v", c, first, err)
			}
		}
	}
}

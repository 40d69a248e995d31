package mesh

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
)

func TestBounds(t *testing.T) {
	for _, c := range []struct {
		what   string
		start  []int32
		parts  int
		whole  bool
		timed  bool
		cut    int
		bounds []int
	}{
		{"one token", []int32{0, 1}, 2, false, false, 256, []int{0, 1}},
		{"a sequence is not worth cutting", []int32{0, 8}, 2, false, false, 256, []int{0, 8}},
		{"a long one is", []int32{0, 1000}, 2, false, false, 256, []int{0, 500, 1000}},
		{"unless it has to be whole", []int32{0, 1000}, 2, true, false, 256, []int{0, 1000}},
		{"or the step is measured", []int32{0, 1000}, 2, false, true, 256, []int{0, 1000}},
		{"rows", []int32{0, 1, 2, 3, 4, 5}, 2, false, false, 256, []int{0, 2, 5}},
		{"fewer rows than parts", []int32{0, 1, 2}, 4, false, false, 256, []int{0, 1, 2}},
		{"the nearest sequence", []int32{0, 60, 100}, 2, false, false, 256, []int{0, 60, 100}},
		{"of two, the first", []int32{0, 40, 60, 100}, 2, false, false, 256, []int{0, 40, 100}},
		{"a long one and short ones", []int32{0, 90, 91, 92, 93}, 4, false, false, 256, []int{0, 90, 93}},
	} {
		e := &pipeline{group: &group{parts: make([]*member, c.parts)}, whole: c.whole, cut: c.cut}
		b := &plan.Batch{Tokens: make([]int32, c.start[len(c.start)-1]), Start: c.start, Timed: c.timed}
		if got := e.bounds(nil, b); !slices.Equal(got, c.bounds) {
			t.Errorf("%s: %v is cut at %v, want %v", c.what, c.start, got, c.bounds)
		}
	}
}

// Micro-batches have each token, row and page of the step once, as they are in the step. Each is a
// valid batch.
func TestMicroBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	p := &plan.Program{Shapes: [][2]plan.Dim{{plan.Rows, 100}}, Groups: []plan.Group{{}, {Window: 40}}, Vocab: 100, Axes: [2]int{9, 0}}
	l := &plan.Limits{Tokens: 1000, Seqs: 100, Rows: 1000, PageTokens: 16, Pages: []int{100, 100}}
	for range 300 {
		b := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, 2)}
		for g := range b.Tables {
			b.Tables[g].Reset()
		}
		for range 1 + rng.IntN(9) {
			first := rng.IntN(100)
			n := 1 + rng.IntN(1+rng.IntN(40))
			for i := range n {
				at := int32(len(b.Tokens))
				b.Tokens, b.Positions, b.Axes = append(b.Tokens, rng.Int32N(100)), append(b.Positions, int32(first+i)), append(b.Axes, rng.Int32N(9), 0)
				if rng.IntN(3) == 0 {
					b.Rows = append(b.Rows, plan.Row{Token: at, Want: plan.WantToken})
				}
			}
			b.Start, b.Lengths = append(b.Start, int32(len(b.Tokens))), append(b.Lengths, int32(first+n))
			for g := range b.Tables {
				from := p.Groups[g].FirstVisible(first) / l.PageTokens
				var pages []int32
				for range (first+n+l.PageTokens-1)/l.PageTokens - from {
					pages = append(pages, rng.Int32N(100))
				}
				b.Tables[g].Add(from, pages...)
			}
		}
		if err := b.Validate(p, l, 0); err != nil {
			t.Fatal(err)
		}
		e := &pipeline{group: &group{parts: make([]*member, 1+rng.IntN(5))}, cut: rng.IntN(20)}
		s, m := &pipelined{e: e}, &microBatch{}
		s.Batch = b
		bounds := e.bounds(nil, b)
		tokens, rows := 0, 0
		for i := 1; i < len(bounds); i++ {
			m.take(s, bounds[i-1], bounds[i])
			own := &m.batch
			own.Rows = m.last
			if err := own.Validate(p, l, 0); err != nil {
				t.Fatalf("tokens %d to %d: %v", bounds[i-1], bounds[i], err)
			}
			if m.rows.Lo != rows || m.tokens.Lo != tokens {
				t.Fatalf("a micro-batch from token %d and row %d, want %d and %d", m.tokens.Lo, m.rows.Lo, tokens, rows)
			}
			for j, r := range own.Rows {
				if r.Token+int32(tokens) != b.Rows[rows+j].Token {
					t.Errorf("row %d is of token %d behind %d, want %d", rows+j, r.Token, tokens, b.Rows[rows+j].Token)
				}
			}
			for j := range own.Tokens {
				of, at := sequenceOf(b.Start, tokens+j), sequenceOf(own.Start, j)
				if of != m.sequences.Lo+at || own.Lengths[at] != b.Lengths[of] || own.Tokens[j] != b.Tokens[tokens+j] || own.Positions[j] != b.Positions[tokens+j] || own.Axis(1, j) != b.Axis(1, tokens+j) {
					t.Errorf("token %d is another one", tokens+j)
				}
				for g := range own.Tables {
					x, y := &own.Tables[g], &b.Tables[g]
					if !slices.Equal(x.Pages[x.Start[at]:x.Start[at+1]], y.Pages[y.Start[of]:y.Start[of+1]]) || x.First[at] != y.First[of] {
						t.Errorf("token %d has other pages", tokens+j)
					}
				}
			}
			tokens, rows = tokens+len(own.Tokens), rows+len(own.Rows)
		}
		if tokens != len(b.Tokens) || rows != len(b.Rows) {
			t.Errorf("%d tokens of %d and %d rows of %d", tokens, len(b.Tokens), rows, len(b.Rows))
		}
	}
}

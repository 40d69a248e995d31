package lower

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// prefixProgram returns a program with attention to a window and, unless windowed is true, to all
// positions, with heads of that dimension.
func prefixProgram(t *testing.T, headDim int, windowed bool) *plan.Program {
	t.Helper()
	p, err := plan.Build(func(b *plan.Builder) {
		w := func(rows, cols int) *tensor.Tensor {
			return &tensor.Tensor{Name: "w", DType: tensor.F32, Shape: []int{rows, cols}, Data: make([]byte, 4*rows*cols)}
		}
		x := b.Embed(w(8, headDim))
		for _, window := range []int{64, 0} {
			if window == 0 && windowed {
				break
			}
			a := plan.AttentionAttr{Heads: 1, KVHeads: 1, HeadDim: headDim, Scale: 1, Window: window}
			s := b.State(plan.State{Name: "kv", Kind: plan.PerToken, KVHeads: 1, HeadDim: headDim, ValueDim: headDim, Window: window})
			x = b.Attention(x, x, x, nil, s, a)
		}
		y := b.Pick(x)
		b.Output(y, y)
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A history is a sequence that decodes the token at a position. Pages lists runs of page numbers, first
// and count.
type history struct {
	position int
	pages    [][2]int32
}

// decoding returns a batch of a token of each sequence.
func decoding(p *plan.Program, all ...history) *plan.Batch {
	b := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, len(p.Groups))}
	for g := range b.Tables {
		b.Tables[g].Reset()
	}
	for _, h := range all {
		b.Tokens, b.Positions = append(b.Tokens, 0), append(b.Positions, int32(h.position))
		b.Start, b.Lengths = append(b.Start, int32(len(b.Tokens))), append(b.Lengths, 1)
		var pages []int32
		for _, r := range h.pages {
			for i := range r[1] {
				pages = append(pages, r[0]+i)
			}
		}
		for g := range b.Tables {
			b.Tables[g].Add(0, pages...)
		}
	}
	return b
}

// The prefixes of a decode step are those that save the most segments.
func TestPrefixes(t *testing.T) {
	p := prefixProgram(t, 64, false)
	lim := plan.Limits{PageTokens: 32, Cache: tensor.F16}
	one := func(n int) []history { // sequences with n pages in common
		var all []history
		for i := range int32(4) {
			all = append(all, history{position: 2000, pages: [][2]int32{{0, int32(n)}, {100 * (i + 1), 70}}})
		}
		return all
	}
	type prefix struct {
		segments int
		members  []int32
	}
	of := func(segments int, members ...int32) prefix { return prefix{segments, members} }
	for name, c := range map[string]struct {
		all     []history
		saved   int // segments that must be saved
		want    []prefix
		longest int
		own     int
	}{
		"no common page":             {all: one(0)},
		"7 pages":                    {all: one(7)},
		"8 pages":                    {all: one(8), want: []prefix{of(1, 0, 1, 2, 3)}, longest: 1, own: 7},
		"31 pages":                   {all: one(31), want: []prefix{of(3, 0, 1, 2, 3)}, longest: 3, own: 5},
		"as much as must be saved":   {all: one(16), saved: 6, want: []prefix{of(2, 0, 1, 2, 3)}, longest: 2, own: 6},
		"less than must be saved":    {all: one(16), saved: 7},
		"one sequence":               {all: one(31)[:1]},
		"all pages but no position":  {all: []history{{255, [][2]int32{{0, 9}}}, {256, [][2]int32{{0, 9}}}}},
		"the position after them":    {all: []history{{256, [][2]int32{{0, 8}, {20, 1}}}, {256, [][2]int32{{0, 8}, {30, 1}}}}, want: []prefix{of(1, 0, 1)}, longest: 1, own: 1},
		"the same pages later alone": {all: []history{{600, [][2]int32{{50, 1}, {1, 20}}}, {600, [][2]int32{{60, 1}, {1, 20}}}}},
		"two prefixes and a sequence without": {
			all: []history{
				{600, [][2]int32{{0, 16}, {100, 9}}}, {300, [][2]int32{{200, 8}, {300, 9}}}, {1100, [][2]int32{{400, 40}}},
				{700, [][2]int32{{0, 16}, {500, 9}}}, {300, [][2]int32{{200, 8}, {600, 9}}}, {800, [][2]int32{{0, 16}, {700, 12}}},
			},
			want: []prefix{of(2, 0, 3, 5), of(1, 1, 4)}, longest: 2, own: 5,
		},
		"a part of them goes on together": { // all save 4 segments, the part alone 2*5
			all: []history{
				{1300, [][2]int32{{0, 40}, {100, 9}}}, {1300, [][2]int32{{0, 40}, {200, 9}}}, {1300, [][2]int32{{0, 40}, {300, 9}}},
				{1300, [][2]int32{{0, 8}, {400, 40}}}, {1300, [][2]int32{{0, 8}, {500, 40}}},
			},
			want: []prefix{of(5, 0, 1, 2)}, longest: 5, own: 6,
		},
		"all rather than a part": { // all save 4*2 segments, the part alone 3
			all: []history{
				{1300, [][2]int32{{0, 24}, {100, 20}}}, {1300, [][2]int32{{0, 24}, {200, 20}}},
				{1300, [][2]int32{{0, 16}, {300, 40}}}, {1300, [][2]int32{{0, 16}, {400, 40}}}, {1300, [][2]int32{{0, 16}, {500, 40}}},
			},
			want: []prefix{of(2, 0, 1, 2, 3, 4)}, longest: 2, own: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			const segment = 2 * 2 * 64 * contextSegment
			f := NewPrefixes(p, &lim, max(1, c.saved*segment))
			var s PrefixSet
			f.Find(&s, decoding(p, one(31)...)) // whose memory is reused
			f.Find(&s, decoding(p, c.all...))
			var got []prefix
			for i := range len(s.Starts) - 1 {
				members := slices.Clone(s.Members[s.Starts[i]:s.Starts[i+1]])
				slices.Sort(members)
				got = append(got, of(int(s.Segments[members[0]]), members...))
			}
			slices.SortFunc(got, func(x, y prefix) int { return slices.Compare(x.members, y.members) })
			if fmt.Sprint(got) != fmt.Sprint(c.want) || s.longest != c.longest || s.own != c.own {
				t.Errorf("prefixes %v, of %d segments at most and %d behind them, want %v, %d and %d", got, s.longest, s.own, c.want, c.longest, c.own)
			}
			for q, n := range s.Segments {
				if n > 0 && !slices.Contains(s.Members, int32(q)) {
					t.Errorf("token %d has %d segments and no prefix", q, n)
				}
			}
			once, seen := s.positions()
			wantOnce, wantSeen := 0, 0
			for _, x := range c.want {
				wantOnce, wantSeen = wantOnce+x.segments*contextSegment, wantSeen+x.segments*len(x.members)*contextSegment
			}
			if once != wantOnce || seen != wantSeen {
				t.Errorf("%d positions, seen %d times, want %d and %d", once, seen, wantOnce, wantSeen)
			}
		})
	}
}

// Only decode steps have prefixes, and only of states that a kernel reads so.
func TestNoPrefixes(t *testing.T) {
	all := []history{{600, [][2]int32{{0, 20}}}, {600, [][2]int32{{0, 20}}}}
	for name, c := range map[string]struct {
		headDim  int
		windowed bool
		cache    tensor.DType
		tokens   int // of the second sequence
		want     bool
	}{
		"a decode step":                 {64, false, tensor.F16, 1, true},
		"heads of 128 in bytes":         {128, false, tensor.Q8_0, 1, true},
		"a prompt beside it":            {64, false, tensor.F16, 2, false},
		"attention to a window":         {64, true, tensor.F16, 1, false},
		"heads without such kernel":     {96, false, tensor.F16, 1, false},
		"a cache without such a kernel": {64, false, tensor.F32, 1, false},
	} {
		p := prefixProgram(t, c.headDim, c.windowed)
		f := NewPrefixes(p, &plan.Limits{PageTokens: 32, Cache: c.cache}, 1)
		b := decoding(p, all...)
		for range c.tokens - 1 {
			b.Tokens, b.Positions = append(b.Tokens, 0), append(b.Positions, 601)
			b.Start[2]++
		}
		var s PrefixSet
		if f.Find(&s, b); (len(s.Members) > 0) != c.want {
			t.Errorf("%s: prefixes of %v", name, s.Members)
		}
	}
}

// However sequences share pages, a prefix is what all of its members have, and each has one at most.
func TestPrefixesOfTrees(t *testing.T) {
	p := prefixProgram(t, 64, false)
	f := NewPrefixes(p, &plan.Limits{PageTokens: 32, Cache: tensor.F16}, 1)
	rng := rand.New(rand.NewPCG(1, 2))
	var s PrefixSet
	for range 300 {
		var all []history
		for range 1 + rng.IntN(20) {
			h := history{}
			for depth, node := 0, int32(0); depth < 1+rng.IntN(4); depth++ {
				node = 3*node + 1 + int32(rng.IntN(3))
				n := 5 * (1 + node%4)
				h.pages = append(h.pages, [2]int32{1000 * node, n})
			}
			for _, r := range h.pages {
				h.position += 32 * int(r[1])
			}
			h.position -= rng.IntN(h.position)
			all = append(all, h)
		}
		b := decoding(p, all...)
		f.Find(&s, b)
		pages := func(q int32) []int32 { g := &b.Tables[f.group]; return g.Pages[g.Start[q]:g.Start[q+1]] }
		var seen []int32
		for i := range len(s.Starts) - 1 {
			members := s.Members[s.Starts[i]:s.Starts[i+1]]
			n := int(s.Segments[members[0]]) * contextSegment
			for _, q := range members {
				if slices.Contains(seen, q) {
					t.Fatalf("token %d has two prefixes", q)
				}
				seen = append(seen, q)
				if n == 0 || n > int(b.Positions[q]) || !slices.Equal(pages(q)[:n/32], pages(members[0])[:n/32]) {
					t.Fatalf("token %d at %d does not have the prefix of %d positions of token %d", q, b.Positions[q], n, members[0])
				}
			}
		}
	}
}

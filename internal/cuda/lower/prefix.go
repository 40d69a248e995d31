package lower

import (
	"cmp"
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// PrefixBytes is the minimum number of bytes of keys and values of a layer that a decode step saves by
// attending to common prefixes once. The two additional launches, and the parts that pass through
// memory, take 10 to 20 µs of each layer; a GPU reads about so many bytes in that time.
const PrefixBytes = 96 << 20

// Prefixes finds common prefixes: the leading segments of attention that several sequences of a
// decode step have on the same pages.
type Prefixes struct {
	group      int // the group of states whose page tables are compared; -1 if no kernel attends to prefixes
	pageTokens int
	least      int // the minimum number of segments that a step saves
}

// NewPrefixes returns the Prefixes of p. bytes, at least 1, replaces [PrefixBytes].
func NewPrefixes(p *plan.Program, lim *plan.Limits, bytes int) Prefixes {
	f := Prefixes{group: -1, pageTokens: lim.PageTokens}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op != plan.Attention || !prefixed(n, lim) {
			continue
		}
		s := p.States[n.State]
		page, err := lim.PageOf(s)
		if err != nil {
			continue
		}
		segment := max(1, page*contextSegment/lim.PageTokens)
		f.group, f.least = s.Group, max(f.least, 1+(bytes-1)/segment)
	}
	return f
}

// prefixed reports whether kernels attend to prefixes for node n of [plan.Attention].
func prefixed(n *plan.Node, lim *plan.Limits) bool {
	a := n.Attr.(plan.AttentionAttr)
	return !anyForm(n) && a.Window == 0 && lim.Cache != tensor.F32 && slices.Contains(attentionLengths, a.HeadDim)
}

// A PrefixSet holds the prefixes of a step. Its memory is reused.
type PrefixSet struct {
	// Each sequence has one token. Segments [T] counts the segments of a token's prefix, 0 if it has
	// none. Prefix i is that of the tokens Members[Starts[i]:Starts[i+1]].
	Segments, Members, Starts []int32

	longest, own int // the most segments of a prefix, and of a token outside its prefix

	order  []int32 // tokens, by their pages
	common []int   // segments that a token has in common with the one before it in that order
	found  []prefixRange
}

// A prefixRange is a prefix of tokens order[from:to].
type prefixRange struct{ from, to, segments int }

// Find sets s to the prefixes of b, or to none if the step would save too little. Each sequence has
// at most one prefix.
func (f *Prefixes) Find(s *PrefixSet, b *plan.Batch) {
	s.Segments, s.Members, s.Starts, s.found = s.Segments[:0], s.Members[:0], append(s.Starts[:0], 0), s.found[:0]
	s.longest, s.own = 0, 0
	n := len(b.Tokens)
	if f.group < 0 || n != b.Seqs() || n < 2 || Power(n) > splitPartials {
		return
	}
	t := &b.Tables[f.group]
	pages := func(q int32) []int32 { return t.Pages[t.Start[q]:t.Start[q+1]] }
	s.order, s.common = s.order[:0], append(s.common[:0], 0)
	for q := range int32(n) {
		s.order = append(s.order, q)
	}
	slices.SortFunc(s.order, func(x, y int32) int { return cmp.Or(slices.Compare(pages(x), pages(y)), cmp.Compare(x, y)) })
	for i, q := range s.order[1:] {
		last := s.order[i]
		x, y, same := pages(last), pages(q), 0
		for same < min(len(x), len(y)) && x[same] == y[same] {
			same++
		}
		s.common = append(s.common, min(same*f.pageTokens, int(b.Positions[last]), int(b.Positions[q]))/contextSegment)
	}
	if s.divide(0, n) < f.least {
		return
	}
	s.Segments = slices.Grow(s.Segments, n)[:n]
	clear(s.Segments)
	for _, r := range s.found {
		for _, q := range s.order[r.from:r.to] {
			s.Segments[q] = int32(r.segments)
		}
		s.Members = append(s.Members, s.order[r.from:r.to]...)
		s.Starts = append(s.Starts, int32(len(s.Members)))
		s.longest = max(s.longest, r.segments)
	}
	for q, segments := range s.Segments {
		s.own = max(s.own, int(b.Positions[q])/contextSegment+1-int(segments))
	}
}

// divide finds the prefixes of tokens order[from:to] that save the most segments, and returns how
// many. These tokens have one prefix, or the prefixes of parts that have more in common.
func (s *PrefixSet) divide(from, to int) (saved int) {
	if to-from < 2 {
		return 0
	}
	common, before := slices.Min(s.common[from+1:to]), len(s.found)
	for i := from; i < to; {
		end := i + 1
		for end < to && s.common[end] > common {
			end++
		}
		saved += s.divide(i, end)
		i = end
	}
	if whole := (to - from - 1) * common; whole > saved {
		s.found = append(s.found[:before], prefixRange{from, to, common})
		return whole
	}
	return saved
}

// positions returns the number of positions of the prefixes, each counted once, and counted for each
// token that sees it.
func (s *PrefixSet) positions() (once, seen int) {
	for i, from := range s.Starts[:len(s.Starts)-1] {
		n := int(s.Segments[s.Members[from]]) * contextSegment
		once, seen = once+n, seen+n*int(s.Starts[i+1]-from)
	}
	return once, seen
}

// Fill writes the prefixes to a step's input, which begins at Room.Counts and already has the places
// of tokens.
func (s *PrefixSet) Fill(in []byte, r *Room) {
	at := func(offset int) []int32 { return device.Words[int32](in[offset-r.Counts:]) }
	n := len(s.Starts) - 1
	at(r.Counts)[countPrefixes/4] = int32(n)
	if n == 0 {
		return
	}
	segments := at(r.prefixes.segments)[:Power(len(s.Segments))]
	clear(segments[copy(segments, s.Segments):])
	copy(at(r.prefixes.members), s.Members)
	copy(at(r.prefixes.starts), s.Starts)
	tokens, places := device.Words[Place](in[r.Places[r.prefixes.group]-r.Counts:]), device.Words[Place](in[r.prefixes.places-r.Counts:])
	for i, q := range s.Members {
		places[i] = Place{position: s.Segments[q]*contextSegment - 1, shift: tokens[q].shift}
	}
}

// prefixRoom holds the offsets of a step's prefixes: of their segments by token, and of their
// members, places and starts; see kernels/prefix.cuh.
type prefixRoom struct {
	group                             int
	segments, members, places, starts int
}

// prefixAddresses are the addresses of what prefixRoom has.
type prefixAddresses struct{ segments, members, places, starts driver.DevicePtr }

type prefixArgs struct {
	attention attentionArgs
	members   driver.DevicePtr
}

// prefix returns the launch that attends to the prefixes of a decode step. a holds the arguments of
// attention to tokens.
func (c *Compiler) prefix(by attentionBy, a attentionArgs) (Launch, error) {
	family, shared := "prefix_"+by.cache+"_"+by.heads, by.tileShared()
	f, err := c.sharedKernel(family, "attend", shared)
	if err != nil {
		return Launch{}, err
	}
	at := c.Step.prefixes
	a.table.places, a.seqs, a.starts = at.places, c.Step.counts+countPrefixes, at.starts
	args := &prefixArgs{attention: a, members: at.members}
	name := family + " attend"
	return Launch{Name: name, rows: plan.Tokens, runs: func(sh *Shape) string {
		if !by.prefixes(sh) {
			return ""
		}
		return name
	}, begin: func(st *driver.Stream, sh *Shape) error {
		d := c.divide(by, &args.attention, sh)
		grid := tileGrid(tileRows, int(a.kvHeads), int(a.heads/a.kvHeads), sh)
		if args.attention.split = 1; d.folded {
			args.attention.split = 0
		} else {
			grid.Z = sh.prefix
		}
		args.attention.maxSegments, args.attention.together = int32(d.parts), int32(d.together)
		return c.queue(f, st, driver.LaunchConfig{Grid: grid, Block: driver.Dim3{X: tileThreads}, Shared: shared}, device.Arguments(args))
	}}, nil
}

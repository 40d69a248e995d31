package cuda

import (
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// An expertCache says where the experts of a program lie when the device has no room for
// all: each has an image in pinned memory of the host, laid out as on the device, and the
// hot ones have places on the device. A kernel decides after every router which they are,
// and another one fetches what is missing, so that a step is captured as any other.
//
// The places of a mixture follow those of the one before it; then come those that all
// share. A place has the gate, what it gates and the product back one after the other.
type expertCache struct {
	plan.ExpertCache

	mixtures []cachedExperts
	of       map[*tensor.Tensor]expertPart
	slots    int // of a step, at most
	at       int // of the places, in the memory of weights
}

// cachedExperts are those of one mixture.
type cachedExperts struct {
	experts int
	parts   [3]int // where gate, what it gates and product back begin in a place
	bytes   int    // of an expert
	kept    int    // places of this mixture that it can use
	first   int    // number of the first of them
	tables  int    // in the memory of weights: what the kernel keep knows, see tableBytes
}

// An expertPart is a matrix of a mixture.
type expertPart struct{ mixture, expert, part int }

// newExpertCache is a cache for the experts of p without places of their own; nil where
// that is no gain, because there are none, or a step's experts fill the places that
// mixtures share as much as the experts themselves would, or because a matrix of an
// expert is used elsewhere as well.
func newExpertCache(p *plan.Program, lim *plan.Limits) *expertCache {
	c := &expertCache{of: map[*tensor.Tensor]expertPart{}}
	uses := map[*tensor.Tensor]int{}
	all := 0 // bytes of all experts
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for _, t := range n.Tensors() {
			uses[t]++
		}
		a, ok := n.Attr.(plan.ExpertsAttr)
		if !ok {
			continue
		}
		m := cachedExperts{experts: len(a.Gate)}
		for part, list := range [][]*tensor.Tensor{a.Gate, a.Up, a.Down} {
			t := tilingOf(list[0], lim)
			m.parts[part] = m.bytes
			m.bytes += align(t.size())
			for e, w := range list {
				c.of[w] = expertPart{len(c.mixtures), e, part}
			}
		}
		c.mixtures = append(c.mixtures, m)
		c.Layers++
		c.Of, c.Used, c.Bytes = max(c.Of, m.experts), max(c.Used, a.Route.Used), max(c.Bytes, m.bytes)
		c.slots = max(c.slots, a.Route.Used*lim.Size(p.Shapes[n.Out][0]))
		all += m.experts * m.bytes
	}
	for t := range c.of {
		if uses[t] > 1 {
			return nil
		}
	}
	if c.keep(0); c.Layers == 0 || c.size() >= all {
		return nil
	}
	return c
}

// keep gives every mixture so many places of its own. Those that they share are as many
// as one may need of them: all of its experts that it does not keep, or as many as a step
// can choose.
func (c *expertCache) keep(n int) {
	c.Kept, c.Shared = n, max(1, min(c.Of-n, c.slots))
	for i := range c.mixtures {
		m := &c.mixtures[i]
		m.kept, m.first = min(n, m.experts), i*n
	}
}

// fill keeps as many experts as so many bytes have room for, none where they have no room
// for the cache.
func (c *expertCache) fill(bytes int) {
	for n := c.Of - 1; n >= 0; n-- {
		if c.keep(n); c.size() <= bytes {
			return
		}
	}
}

// size is the bytes of the device's memory that places and tables take.
func (c *expertCache) size() int {
	n := c.placeBytes()
	for i := range c.mixtures {
		n += align(c.mixtures[i].tableBytes())
	}
	return n
}

func (c *expertCache) placeBytes() int { return (c.Layers*c.Kept + c.Shared) * c.Bytes }

// tableBytes are those of what keep knows of a mixture, 4 for each entry: by expert, its
// place and its heat; by place, its expert.
func (m *cachedExperts) tableBytes() int { return 4 * (2*m.experts + m.kept) }

// putTables says that tables begin at an offset in the memory of weights, and returns
// where they end.
func (c *expertCache) putTables(at int) (end int) {
	for i := range c.mixtures {
		m := &c.mixtures[i]
		m.tables = at
		at += align(m.tableBytes())
	}
	return at
}

// putPlaces is putTables for places, and says where every matrix is laid out when it is
// loaded: in a place of its mixture while there are some, where it stays, or in one that
// all share.
func (c *expertCache) putPlaces(begin int, at map[*tensor.Tensor]int) (end int) {
	c.at = begin
	for t, x := range c.of {
		m := &c.mixtures[x.mixture]
		place := m.first + x.expert
		if x.expert >= m.kept {
			place = c.Layers*c.Kept + x.expert%c.Shared
		}
		at[t] = begin + place*c.Bytes + m.parts[x.part]
	}
	return begin + c.placeBytes()
}

// pinned is the bytes of the host's memory that the images of all experts take.
func (c *expertCache) pinned() int {
	n := 0
	for i := range c.mixtures {
		n += c.mixtures[i].images()
	}
	return n
}

// images is the bytes of the images of a mixture's experts, which follow each other.
func (m *cachedExperts) images() int { return m.experts * m.bytes }

// image is where the image of a matrix begins in those of its mixture, which are one of
// all; nil where it has none. c may be nil.
func (c *expertCache) image(all [][]byte, t *tensor.Tensor) []byte {
	if c == nil {
		return nil
	}
	x, cached := c.of[t]
	if !cached {
		return nil
	}
	m := &c.mixtures[x.mixture]
	return all[x.mixture][x.expert*m.bytes+m.parts[x.part]:]
}

// table is what keep knows of a mixture at first: of its experts the first n are in its
// first places, and none was used.
func (m *cachedExperts) table(n int) []byte {
	all := make([]byte, m.tableBytes())
	entries := words[int32](all)
	places, holders := entries[:m.experts], entries[2*m.experts:]
	for e := range places {
		places[e] = -1
	}
	for p := range holders {
		holders[p] = -1
	}
	for i := range min(n, m.kept) {
		places[i], holders[i] = int32(i), int32(i)
	}
	return all
}

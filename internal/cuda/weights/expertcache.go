package weights

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// An ExpertCache says where the experts of a program lie when the device has no room for
// all: each has an image in pinned memory of the host, laid out as on the device, and the
// hot ones have places on the device. A kernel decides after every router which they are,
// and another one fetches what is missing, so that a step is captured as any other.
//
// The places of a mixture follow those of the one before it; then come those that all
// share. A place has the gate, what it gates and the product back one after the other.
type ExpertCache struct {
	plan.ExpertCache

	Mixtures []CachedExperts
	PartOf   map[*tensor.Tensor]ExpertPart
	slots    int // of a step, at most
	At       int // of the places, in the memory of weights
}

// CachedExperts are those of one mixture.
type CachedExperts struct {
	Experts int
	Parts   [3]int // where gate, what it gates and product back begin in a place
	Bytes   int    // of an expert
	Kept    int    // places of this mixture that it can use
	First   int    // number of the first of them
	Tables  int    // in the memory of weights: what the kernel keep knows, see tableBytes
}

// An ExpertPart is a matrix of a mixture.
type ExpertPart struct{ Mixture, Expert, Part int }

// NewExpertCache is a cache for the experts of p without places of their own; nil where
// that is no gain, because there are none, or a step's experts fill the places that
// mixtures share as much as the experts themselves would, or because a matrix of an
// expert is used elsewhere as well.
func NewExpertCache(p *plan.Program, lim *plan.Limits) *ExpertCache {
	c := &ExpertCache{PartOf: map[*tensor.Tensor]ExpertPart{}}
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
		m := CachedExperts{Experts: len(a.Gate)}
		for part, list := range [][]*tensor.Tensor{a.Gate, a.Up, a.Down} {
			t := TilingOf(list[0], lim)
			m.Parts[part] = m.Bytes
			m.Bytes += Align(t.Size())
			for e, w := range list {
				c.PartOf[w] = ExpertPart{len(c.Mixtures), e, part}
			}
		}
		c.Mixtures = append(c.Mixtures, m)
		c.Layers++
		c.Of, c.Used, c.Bytes = max(c.Of, m.Experts), max(c.Used, a.Route.Used), max(c.Bytes, m.Bytes)
		c.slots = max(c.slots, a.Route.Used*lim.Size(p.Shapes[n.Out][0]))
		all += m.Experts * m.Bytes
	}
	for t := range c.PartOf {
		if uses[t] > 1 {
			return nil
		}
	}
	if c.Keep(0); c.Layers == 0 || c.size() >= all {
		return nil
	}
	return c
}

// Keep gives every mixture so many places of its own. Those that they share are as many
// as one may need of them: all of its experts that it does not keep, or as many as a step
// can choose.
func (c *ExpertCache) Keep(n int) {
	c.Kept, c.Shared = n, max(1, min(c.Of-n, c.slots))
	for i := range c.Mixtures {
		m := &c.Mixtures[i]
		m.Kept, m.First = min(n, m.Experts), i*n
	}
}

// fill keeps as many experts as so many bytes have room for, none where they have no room
// for the cache.
func (c *ExpertCache) fill(bytes int) {
	for n := c.Of - 1; n >= 0; n-- {
		if c.Keep(n); c.size() <= bytes {
			return
		}
	}
}

// size is the bytes of the device's memory that places and tables take.
func (c *ExpertCache) size() int {
	n := c.placeBytes()
	for i := range c.Mixtures {
		n += Align(c.Mixtures[i].TableBytes())
	}
	return n
}

func (c *ExpertCache) placeBytes() int { return (c.Layers*c.Kept + c.Shared) * c.Bytes }

// TableBytes are those of what keep knows of a mixture, 4 for each entry: by expert, its
// place and its heat; by place, its expert.
func (m *CachedExperts) TableBytes() int { return 4 * (2*m.Experts + m.Kept) }

// putTables says that tables begin at an offset in the memory of weights, and returns
// where they end.
func (c *ExpertCache) putTables(at int) (end int) {
	for i := range c.Mixtures {
		m := &c.Mixtures[i]
		m.Tables = at
		at += Align(m.TableBytes())
	}
	return at
}

// putPlaces is putTables for places, and says where every matrix is laid out when it is
// loaded: in a place of its mixture while there are some, where it stays, or in one that
// all share.
func (c *ExpertCache) putPlaces(begin int, at map[*tensor.Tensor]int) (end int) {
	c.At = begin
	for t, x := range c.PartOf {
		m := &c.Mixtures[x.Mixture]
		place := m.First + x.Expert
		if x.Expert >= m.Kept {
			place = c.Layers*c.Kept + x.Expert%c.Shared
		}
		at[t] = begin + place*c.Bytes + m.Parts[x.Part]
	}
	return begin + c.placeBytes()
}

// pinned is the bytes of the host's memory that the images of all experts take.
func (c *ExpertCache) pinned() int {
	n := 0
	for i := range c.Mixtures {
		n += c.Mixtures[i].Images()
	}
	return n
}

// Images is the bytes of the images of a mixture's experts, which follow each other.
func (m *CachedExperts) Images() int { return m.Experts * m.Bytes }

// image is where the image of a matrix begins in those of its mixture, which are one of
// all; nil where it has none. c may be nil.
func (c *ExpertCache) image(all [][]byte, t *tensor.Tensor) []byte {
	if c == nil {
		return nil
	}
	x, cached := c.PartOf[t]
	if !cached {
		return nil
	}
	m := &c.Mixtures[x.Mixture]
	return all[x.Mixture][x.Expert*m.Bytes+m.Parts[x.Part]:]
}

// Table is what keep knows of a mixture at first: of its experts the first n are in its
// first places, and none was used.
func (m *CachedExperts) Table(n int) []byte {
	all := make([]byte, m.TableBytes())
	entries := device.Words[int32](all)
	places, holders := entries[:m.Experts], entries[2*m.Experts:]
	for e := range places {
		places[e] = -1
	}
	for p := range holders {
		holders[p] = -1
	}
	for i := range min(n, m.Kept) {
		places[i], holders[i] = int32(i), int32(i)
	}
	return all
}

package weights

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// An ExpertCache describes where the experts of a program are if the device has no room for all of
// them. Every expert has an image in pinned host memory, with the same layout as on the device; the
// most used experts also have places on the device. After every router, one kernel decides which
// experts these are, and another one fetches the missing ones, so a step can be captured like any
// other.
//
// The places of the mixtures follow one another, and then come the places that all mixtures share.
// A place holds an expert's gate, up and down matrices, in this order.
type ExpertCache struct {
	plan.ExpertCache

	Mixtures []CachedExperts
	PartOf   map[*tensor.Tensor]ExpertPart
	slots    int // largest number of experts that a step can choose
	At       int // offset of the places in the weights' memory
}

// CachedExperts describes the experts of one mixture.
type CachedExperts struct {
	Experts int
	Parts   [3]int // offsets of the gate, up and down matrices in a place
	Bytes   int    // bytes of an expert
	Kept    int    // places reserved for this mixture
	First   int    // number of the first of these places
	Tables  int    // offset in the weights' memory of the tables of the kernel keep; see TableBytes
}

// An ExpertPart identifies a matrix of a mixture.
type ExpertPart struct{ Mixture, Expert, Part int }

// NewExpertCache returns a cache for the experts of p with shared places only. It returns nil if a
// cache is no gain: if p has no experts, if the shared places for a step's experts take as much
// memory as all experts, or if a matrix of an expert is also used elsewhere.
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

// Keep reserves n places for every mixture. The number of shared places is the most that one
// mixture may need: all experts without a reserved place, or as many as a step can choose.
func (c *ExpertCache) Keep(n int) {
	c.Kept, c.Shared = n, max(1, min(c.Of-n, c.slots))
	for i := range c.Mixtures {
		m := &c.Mixtures[i]
		m.Kept, m.First = min(n, m.Experts), i*n
	}
}

// fill reserves as many places as fit in the given number of bytes, or none if the cache does not
// fit.
func (c *ExpertCache) fill(bytes int) {
	for n := c.Of - 1; n >= 0; n-- {
		if c.Keep(n); c.size() <= bytes {
			return
		}
	}
}

// size returns the device memory in bytes for places and tables.
func (c *ExpertCache) size() int {
	n := c.placeBytes()
	for i := range c.Mixtures {
		n += Align(c.Mixtures[i].TableBytes())
	}
	return n
}

func (c *ExpertCache) placeBytes() int { return (c.Layers*c.Kept + c.Shared) * c.Bytes }

// TableBytes returns the size in bytes of a mixture's tables, of 4 bytes for each entry: by expert,
// its place and its heat; by place, its expert.
func (m *CachedExperts) TableBytes() int { return 4 * (2*m.Experts + m.Kept) }

// putTables places the tables from offset at in the weights' memory, and returns the end offset.
func (c *ExpertCache) putTables(at int) (end int) {
	for i := range c.Mixtures {
		m := &c.Mixtures[i]
		m.Tables = at
		at += Align(m.TableBytes())
	}
	return at
}

// putPlaces places the cache from offset begin, and returns the end offset. It also sets the offset
// at which each matrix is laid out during loading: in a reserved place of its mixture, where it
// stays, or in a shared place if the reserved ones are taken.
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

// pinned returns the pinned host memory in bytes for the images of all experts.
func (c *ExpertCache) pinned() int {
	n := 0
	for i := range c.Mixtures {
		n += c.Mixtures[i].Images()
	}
	return n
}

// Images returns the size in bytes of the images of a mixture's experts, which are contiguous.
func (m *CachedExperts) Images() int { return m.Experts * m.Bytes }

// image returns the image of a matrix, up to the end of its mixture's images. all has the images of
// each mixture. image returns nil if the matrix is not cached. c may be nil.
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

// Table returns a mixture's initial tables: its first n experts are in its first places, and no
// expert has been used.
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

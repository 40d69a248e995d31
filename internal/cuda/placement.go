package cuda

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A weightPlan says where the weights of a program lie in one piece of memory:
// matrices as tiles, vectors as float32. Those that stay come first. The matrices of
// layers that stream take turns in the slots after them, which are alike: a layer always
// has the same one, so that every weight has one address.
type weightPlan struct {
	order    []*tensor.Tensor
	matrices map[*tensor.Tensor]tiling
	at       map[*tensor.Tensor]int // offset

	resident  int     // bytes of what stays
	images    []image // in the order in which a step uses them; image i has slot i % slots
	slots     int
	slotBytes int
	experts   *expertCache // at the end; nil where experts lie as other weights do
	bytes     int          // of all
}

// An image is the matrices of a layer that streams, one behind the other as they lie in
// its slot, so that one copy brings them.
type image struct {
	layer   int
	weights []*tensor.Tensor // in the program's order
	bytes   int
	pinned  bool // the host's memory holds a copy; otherwise it is staged
}

// streamSlots is how many layers that stream have room at a time: one is at work, and
// the next one arrives.
const streamSlots = 2

// slotsFor is how many of so many slots n layers have: no layer has one for itself, as it
// could as well stay.
func slotsFor(n, slots int) int { return min(slots, n/2) }

func align(n int) int { return (n + 255) &^ 255 }

// planWeights places the weights of p. As many layers as [plan.Limits.Weights] has room
// for stay, and the others have at most so many slots. Before layers, experts give way:
// a step uses few of them.
func planWeights(p *plan.Program, lim *plan.Limits, slots int) *weightPlan {
	w := &weightPlan{order: p.Weights(), matrices: map[*tensor.Tensor]tiling{}, at: map[*tensor.Tensor]int{}}
	for i := range p.Nodes {
		for _, m := range p.Nodes[i].Matrices() {
			w.matrices[m] = tilingOf(m, lim)
		}
	}
	total := 0
	for _, t := range w.order {
		total += align(w.size(t))
	}
	if 0 < lim.Weights && lim.Weights < total {
		if c := newExpertCache(p, lim); c != nil && c.pinned() <= lim.Pinned {
			w.experts = c
			total -= c.pinned()
			c.fill(lim.Weights - total)
			total += c.size()
		}
	}
	w.images = chooseImages(w.layers(p), total, lim.Weights, slots)
	streams := map[*tensor.Tensor]bool{}
	for i := range w.images {
		m := &w.images[i]
		w.slotBytes = max(w.slotBytes, m.bytes)
		for _, t := range m.weights {
			streams[t] = true
		}
	}
	for _, t := range w.order {
		if !streams[t] && !w.caches(t) {
			w.at[t] = w.resident
			w.resident += align(w.size(t))
		}
	}
	w.slots = slotsFor(len(w.images), slots)
	pinned := 0
	if w.experts != nil {
		pinned = w.experts.pinned()
		w.resident = w.experts.putTables(w.resident)
	}
	for i := range w.images {
		m := &w.images[i]
		at := w.slot(i)
		for _, t := range m.weights {
			w.at[t] = at
			at += align(w.size(t))
		}
		if m.pinned = m.bytes <= lim.Pinned-pinned; m.pinned {
			pinned += m.bytes
		}
	}
	w.bytes = w.resident + w.slots*w.slotBytes
	if w.experts != nil {
		w.bytes = w.experts.putPlaces(w.bytes, w.at)
	}
	return w
}

// caches reports whether a weight is an expert's of which a cache has some.
func (w *weightPlan) caches(t *tensor.Tensor) bool {
	if w.experts == nil {
		return false
	}
	_, cached := w.experts.of[t]
	return cached
}

// size is how many bytes of the device's memory a weight takes.
func (w *weightPlan) size(t *tensor.Tensor) int {
	if m, ok := w.matrices[t]; ok {
		return m.size()
	}
	return 4 * t.Elems()
}

// slot is where the slot of image i is.
func (w *weightPlan) slot(i int) int { return w.resident + i%w.slots*w.slotBytes }

// layers are the images of the layers that may stream, in the order of their use. What
// belongs to no layer or to several stays, and so do tables, of which a step reads rows
// alone, and vectors, which are small.
func (w *weightPlan) layers(p *plan.Program) []image {
	const several = -2
	of := map[*tensor.Tensor]int{} // layer
	var all []image
	index := map[int]int{} // into all, by layer; -1 where others come in between of its operations
	last := plan.NoLayer
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for _, w := range n.Weights() {
			layer := n.Layer
			if l, seen := of[w.Tensor]; seen && l != layer || w.Role == plan.Table {
				layer = several
			}
			of[w.Tensor] = layer
		}
		if n.Layer == plan.NoLayer || n.Layer == last {
			continue
		}
		if _, seen := index[n.Layer]; seen {
			index[n.Layer] = -1
		} else {
			index[n.Layer] = len(all)
			all = append(all, image{layer: n.Layer})
		}
		last = n.Layer
	}
	for _, t := range w.order {
		_, matrix := w.matrices[t]
		if i, streams := index[of[t]]; matrix && streams && i >= 0 && !w.caches(t) {
			all[i].weights = append(all[i].weights, t)
			all[i].bytes += align(w.size(t))
		}
	}
	return slices.DeleteFunc(all, func(m image) bool { return m.bytes == 0 })
}

// chooseImages says which of all layers stream where the weights, which are total bytes
// with all of these, may take most, 0 for any number: as few as it takes, or those with
// which it is least. They lie at equal distances, so that each arrives while others
// that stay are at work. A layer so large that slots for it take more than it leaves
// stays.
func chooseImages(all []image, total, most, slots int) []image {
	if most == 0 || total <= most {
		return nil
	}
	var sizes []int // descending
	for i := range all {
		sizes = append(sizes, all[i].bytes)
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	var among [][]image // all, and those that are not larger than others
	for _, size := range slices.Compact(sizes) {
		among = append(among, slices.DeleteFunc(slices.Clone(all), func(m image) bool { return m.bytes > size }))
	}
	var best []image
	for n, least := 2, total; n <= len(all); n++ {
		for _, some := range among {
			if len(some) < n {
				break
			}
			var chosen []image
			largest, rest := 0, total
			for i := range n {
				m := some[(2*i+1)*len(some)/(2*n)]
				chosen = append(chosen, m)
				largest, rest = max(largest, m.bytes), rest-m.bytes
			}
			bytes := rest + slotsFor(n, slots)*largest
			if bytes <= most {
				return chosen
			}
			if bytes < least {
				best, least = chosen, bytes
			}
		}
	}
	return best
}

// phases are the weights, as indexes into order, that are loaded at a time: those of one
// image after another with what stays and comes before them, and in the end the rest.
func (w *weightPlan) phases() [][]int {
	phase := map[*tensor.Tensor]int{}
	for i := range w.images {
		for _, t := range w.images[i].weights {
			phase[t] = i + 1
		}
	}
	phases := make([][]int, len(w.images)+1)
	last := len(w.images)
	for i := len(w.order) - 1; i >= 0; i-- {
		at := last
		if p := phase[w.order[i]]; p > 0 {
			at, last = p-1, min(last, p-1)
		}
		phases[at] = append(phases[at], i)
	}
	for _, p := range phases {
		slices.Reverse(p)
	}
	return phases
}

// staged are the weights that every step reads again.
func (w *weightPlan) staged() map[*tensor.Tensor]bool {
	all := map[*tensor.Tensor]bool{}
	for i := range w.images {
		if !w.images[i].pinned {
			for _, t := range w.images[i].weights {
				all[t] = true
			}
		}
	}
	return all
}

// streaming describes the plan.
func (w *weightPlan) streaming() plan.Streaming {
	s := plan.Streaming{Resident: w.resident, Slots: w.slots, SlotBytes: w.slotBytes}
	for i := range w.images {
		m := &w.images[i]
		s.Layers = append(s.Layers, m.layer)
		s.Streamed += m.bytes
		if m.pinned {
			s.Pinned += m.bytes
		} else {
			s.Staged += m.bytes
		}
	}
	slices.Sort(s.Layers)
	if w.experts != nil {
		s.Experts = w.experts.ExpertCache
		s.Pinned += w.experts.pinned()
	}
	return s
}

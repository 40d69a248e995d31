// Package weights moves the weights of a program to a GPU: how matrices are laid out as tiles,
// which weights are resident and which are streamed (layers in turn, experts by use), how they are
// loaded, and how layers arrive in their slots step by step. It knows nothing about operations.
package weights

import (
	"slices"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Plan describes where the weights of a program are in one block of device memory: matrices as
// tiles, vectors as float32. Resident weights come first. The matrices of streamed layers take
// turns in the slots after them, which have equal sizes. A layer always uses the same slot, so
// every weight has one address.
type Plan struct {
	Order    []*tensor.Tensor
	Matrices map[*tensor.Tensor]Tiling
	At       map[*tensor.Tensor]int // offset

	Resident  int     // bytes of resident weights
	Images    []Image // in the order in which a step uses them; image i uses slot i % Slots
	Slots     int
	SlotBytes int
	Experts   *ExpertCache // at the end; nil if experts are placed like other weights
	Bytes     int          // total
}

// An Image holds the matrices of a streamed layer, contiguous as in its slot, so that a single copy
// transfers them.
type Image struct {
	Layer   int
	Weights []*tensor.Tensor // in the program's order
	Bytes   int
	Pinned  bool // host memory holds a copy; otherwise the image is staged
}

// StreamSlots is the number of slots for streamed layers: one layer computes while the next one
// arrives.
const StreamSlots = 2

// slotsFor returns how many of the given slots n layers use. No layer has a slot of its own,
// because then it could be resident.
func slotsFor(n, slots int) int { return min(slots, n/2) }

// Align rounds a number of bytes up to the alignment of matrices and values.
func Align(n int) int { return (n + 255) &^ 255 }

// NewPlan places the weights of p. As many layers as [plan.Limits.Weights] allows are resident; the
// others share at most the given number of slots. Experts are moved to the host before layers are,
// because a step uses few of them.
func NewPlan(p *plan.Program, lim *plan.Limits, slots int) *Plan {
	w := &Plan{Order: p.Weights(), Matrices: map[*tensor.Tensor]Tiling{}, At: map[*tensor.Tensor]int{}}
	for i := range p.Nodes {
		for _, m := range p.Nodes[i].Matrices() {
			w.Matrices[m] = TilingOf(m, lim)
		}
	}
	total := 0
	for _, t := range w.Order {
		total += Align(w.Size(t))
	}
	if 0 < lim.Weights && lim.Weights < total {
		if c := NewExpertCache(p, lim); c != nil && c.pinned() <= lim.Pinned {
			w.Experts = c
			total -= c.pinned()
			c.fill(lim.Weights - total)
			total += c.size()
		}
	}
	w.Images = chooseImages(w.layers(p), total, lim.Weights, slots)
	streams := map[*tensor.Tensor]bool{}
	for i := range w.Images {
		m := &w.Images[i]
		w.SlotBytes = max(w.SlotBytes, m.Bytes)
		for _, t := range m.Weights {
			streams[t] = true
		}
	}
	for _, t := range w.Order {
		if !streams[t] && !w.caches(t) {
			w.At[t] = w.Resident
			w.Resident += Align(w.Size(t))
		}
	}
	w.Slots = slotsFor(len(w.Images), slots)
	pinned := 0
	if w.Experts != nil {
		pinned = w.Experts.pinned()
		w.Resident = w.Experts.putTables(w.Resident)
	}
	for i := range w.Images {
		m := &w.Images[i]
		at := w.Slot(i)
		for _, t := range m.Weights {
			w.At[t] = at
			at += Align(w.Size(t))
		}
		if m.Pinned = m.Bytes <= lim.Pinned-pinned; m.Pinned {
			pinned += m.Bytes
		}
	}
	w.Bytes = w.Resident + w.Slots*w.SlotBytes
	if w.Experts != nil {
		w.Bytes = w.Experts.putPlaces(w.Bytes, w.At)
	}
	return w
}

// caches reports whether a weight belongs to a cached expert.
func (w *Plan) caches(t *tensor.Tensor) bool {
	if w.Experts == nil {
		return false
	}
	_, cached := w.Experts.PartOf[t]
	return cached
}

// Size returns the device memory that a weight takes, in bytes.
func (w *Plan) Size(t *tensor.Tensor) int {
	if m, ok := w.Matrices[t]; ok {
		return m.Size()
	}
	return 4 * t.Elems()
}

// Slot returns the offset of the slot of image i.
func (w *Plan) Slot(i int) int { return w.Resident + i%w.Slots*w.SlotBytes }

// layers returns the images of the layers that may be streamed, in order of use. Weights of no
// layer or of several are resident, and so are tables, of which a step reads only some rows, vectors,
// which are small, and those of a head, whose steps run no layers.
func (w *Plan) layers(p *plan.Program) []Image {
	const several = -2
	of := map[*tensor.Tensor]int{} // layer
	var all []Image
	index := map[int]int{} // index into all by layer; -1 if operations of other layers are in between
	last := plan.NoLayer
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for _, w := range n.Weights() {
			layer := n.Layer
			if l, seen := of[w.Tensor]; seen && l != layer || w.Role == plan.Table || p.Runs(i, true) {
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
			all = append(all, Image{Layer: n.Layer})
		}
		last = n.Layer
	}
	for _, t := range w.Order {
		_, matrix := w.Matrices[t]
		if i, streams := index[of[t]]; matrix && streams && i >= 0 && !w.caches(t) {
			all[i].Weights = append(all[i].Weights, t)
			all[i].Bytes += Align(w.Size(t))
		}
	}
	return slices.DeleteFunc(all, func(m Image) bool { return m.Bytes == 0 })
}

// chooseImages selects the layers to stream. With all layers resident, the weights take total
// bytes; the limit is most bytes, or 0 for none. It selects as few layers as fit the limit, or else
// the selection that takes the least memory. Streamed layers are evenly spaced, so that each
// arrives while resident layers compute. A layer is resident if it is so large that slots for it
// would take more memory than streaming it frees.
func chooseImages(all []Image, total, most, slots int) []Image {
	if most == 0 || total <= most {
		return nil
	}
	var sizes []int // descending
	for i := range all {
		sizes = append(sizes, all[i].Bytes)
	}
	slices.SortFunc(sizes, func(a, b int) int { return b - a })
	var among [][]Image // all layers, then without the largest ones
	for _, size := range slices.Compact(sizes) {
		among = append(among, slices.DeleteFunc(slices.Clone(all), func(m Image) bool { return m.Bytes > size }))
	}
	var best []Image
	for n, least := 2, total; n <= len(all); n++ {
		for _, some := range among {
			if len(some) < n {
				break
			}
			var chosen []Image
			largest, rest := 0, total
			for i := range n {
				m := some[(2*i+1)*len(some)/(2*n)]
				chosen = append(chosen, m)
				largest, rest = max(largest, m.Bytes), rest-m.Bytes
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

// phases returns groups of weights to load together, as indexes into Order: for each image, its
// weights and the resident ones before them, and at last the rest.
func (w *Plan) phases() [][]int {
	phase := map[*tensor.Tensor]int{}
	for i := range w.Images {
		for _, t := range w.Images[i].Weights {
			phase[t] = i + 1
		}
	}
	phases := make([][]int, len(w.Images)+1)
	last := len(w.Images)
	for i := len(w.Order) - 1; i >= 0; i-- {
		at := last
		if p := phase[w.Order[i]]; p > 0 {
			at, last = p-1, min(last, p-1)
		}
		phases[at] = append(phases[at], i)
	}
	for _, p := range phases {
		slices.Reverse(p)
	}
	return phases
}

// Staged returns the weights that every step reads again.
func (w *Plan) Staged() map[*tensor.Tensor]bool {
	all := map[*tensor.Tensor]bool{}
	for i := range w.Images {
		if !w.Images[i].Pinned {
			for _, t := range w.Images[i].Weights {
				all[t] = true
			}
		}
	}
	return all
}

// Streaming returns a description of the plan.
func (w *Plan) Streaming() plan.Streaming {
	s := plan.Streaming{Resident: w.Resident, Slots: w.Slots, SlotBytes: w.SlotBytes}
	for i := range w.Images {
		m := &w.Images[i]
		s.Layers = append(s.Layers, m.Layer)
		s.Streamed += m.Bytes
		if m.Pinned {
			s.Pinned += m.Bytes
		} else {
			s.Staged += m.Bytes
		}
	}
	slices.Sort(s.Layers)
	if w.Experts != nil {
		s.Experts = w.Experts.ExpertCache
		s.Pinned += w.Experts.pinned()
	}
	return s
}

// Package backendstest helps tests to replace a device: it places weights that stream, with the
// sizes that they have in files, and makes steps fail.
package backendstest

import (
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// slots is the number of buffers that layers take turns in.
const slots = 2

// Stream places the weights of p within l as a device does. All of them stay on the device if they
// fit. Otherwise experts are cached by use, if pinned host memory has room for all of them.
// Otherwise the matrices of some layers take turns, spread evenly over the depth.
func Stream(p *plan.Program, l plan.Limits) plan.Streaming {
	m := measure(p)
	all := m.rest + sum(m.layers) + m.cache.Layers*m.cache.Of*m.cache.Bytes
	if l.Weights == 0 || all <= l.Weights {
		return plan.Streaming{Resident: all}
	}
	room := l.Weights - m.rest
	s := plan.Streaming{Resident: m.rest}
	if x := &m.cache; x.Layers > 0 {
		x.Shared = x.Of
		if images := x.Layers * x.Of * x.Bytes; images <= l.Pinned {
			s.Experts, s.Pinned = *x, images
			for s.Experts.Kept+1 < x.Of && sum(m.layers)+experts(x, s.Experts.Kept+1) <= room {
				s.Experts.Kept++
				s.Experts.Shared--
			}
			room -= (s.Experts.Layers*s.Experts.Kept + s.Experts.Shared) * x.Bytes
		} else {
			for i := range m.layers {
				m.layers[i] += x.Of * x.Bytes
			}
		}
	}
	if sum(m.layers) <= room {
		s.Resident += sum(m.layers)
		return s
	}
	s.Slots = slots
	for _, n := range m.layers {
		s.SlotBytes = max(s.SlotBytes, n)
	}
	for streamed := 1; ; streamed++ {
		s.Layers, s.Streamed = nil, 0
		for i := range streamed {
			layer := i * len(m.layers) / streamed
			s.Layers, s.Streamed = append(s.Layers, layer), s.Streamed+m.layers[layer]
		}
		if stay := sum(m.layers) - s.Streamed; streamed == len(m.layers) || stay+s.Slots*s.SlotBytes <= room {
			s.Resident += stay
			break
		}
	}
	for _, layer := range s.Layers {
		if s.Pinned+m.layers[layer] > l.Pinned {
			s.Staged += m.layers[layer]
			continue
		}
		s.Pinned += m.layers[layer]
	}
	return s
}

// experts returns the size of the places if every mixture of x keeps kept experts of its own.
func experts(x *plan.ExpertCache, kept int) int {
	return (x.Layers*kept + x.Of - kept) * x.Bytes
}

// measured holds the sizes of weights in bytes.
type measured struct {
	rest   int
	layers []int // matrices of each layer, without experts
	cache  plan.ExpertCache
}

func measure(p *plan.Program) (m measured) {
	seen := map[*tensor.Tensor]bool{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		for len(m.layers) <= n.Layer {
			m.layers = append(m.layers, 0)
		}
		a, mixture := n.Attr.(plan.ExpertsAttr)
		if mixture {
			m.cache.Layers, m.cache.Of, m.cache.Used = m.cache.Layers+1, len(a.Gate), a.Route.Used
			m.cache.Bytes = max(m.cache.Bytes, a.Gate[0].Size()+a.Up[0].Size()+a.Down[0].Size())
		}
		for _, w := range n.Tensors() {
			switch {
			case seen[w] || mixture && len(w.Shape) == 2:
			case n.Layer >= 0 && len(w.Shape) == 2:
				m.layers[n.Layer] += w.Size()
			default:
				m.rest += w.Size()
			}
			seen[w] = true
		}
	}
	return m
}

func sum(all []int) (n int) {
	for _, x := range all {
		n += x
	}
	return n
}

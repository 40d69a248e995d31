package cpu

import (
	"strings"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// describe says what part i of the step that ran was, and what it moved.
func (e *executable) describe(i int, s *plan.Span) {
	p := e.p
	switch stages := e.code.stages; {
	case i < len(stages):
		g := &stages[i]
		s.Kernel, s.Where, s.Bytes = e.tier.name+" "+e.kernelOf(g), plan.Where(g.all()...), e.traffic(g)
	case i == len(stages):
		s.Kernel, s.Where = e.tier.name+" finite", "look at the residual"
		if p.Residual >= 0 {
			s.Bytes = e.valueBytes(p.Residual)
		}
	default:
		s.Kernel, s.Where, s.Bytes = e.tier.name+" sample", "choice of tokens", e.valueBytes(p.Logits)
	}
}

// kernelOf is what a stage's kernels are called.
func (e *executable) kernelOf(s *stage) string {
	n := s.nodes[0]
	name := n.Op.String()
	switch {
	case e.backend.product(n, &e.lim) && s.glu != nil:
		name = "gated"
	case e.backend.product(n, &e.lim):
		name = "products"
	}
	var formats []string
	add := func(w *tensor.Tensor) {
		if d := strings.ToLower(w.DType.String()); len(formats) == 0 || formats[len(formats)-1] != d {
			formats = append(formats, d)
		}
	}
	for _, m := range s.nodes {
		switch a, ok := m.Attr.(plan.ExpertsAttr); {
		case ok:
			add(a.Gate[0])
			add(a.Up[0])
			add(a.Down[0])
		case m.Op == plan.Linear || m.Op == plan.Embed || m.Op == plan.Position:
			add(m.Weight)
		}
	}
	return strings.TrimSpace(name + " " + strings.Join(formats, "+"))
}

// picksMean reports whether n picks means rather than rows.
func picksMean(n *plan.Node) bool {
	a, ok := n.Attr.(plan.PickAttr)
	return ok && a.Mean
}

// valueBytes is the size of a value in the step that ran.
func (e *executable) valueBytes(v plan.Value) int { return 4 * e.size(v) * int(e.p.Shapes[v][1]) }

// weightBytes is the size of a weight as it is read.
func (e *executable) weightBytes(w *tensor.Tensor) int {
	if packed := e.weights[w]; packed != nil {
		return packed.bytes()
	}
	if size, err := w.DType.Size(w.Elems()); err == nil {
		return size
	}
	return 0
}

// traffic is what a stage of the step that ran reads and writes, see [plan.Span].
func (e *executable) traffic(s *stage) int {
	n, io, bytes := s.nodes[0], s.io(), 0
	for _, v := range io.Out {
		bytes += e.valueBytes(v)
	}
	for _, v := range io.In {
		switch {
		case e.backend.product(n, &e.lim) && v == n.In[0]:
			bytes += e.size(v) * recordBytes(int(e.p.Shapes[v][1]))
		case n.Op == plan.Pick && !picksMean(n):
			bytes += e.valueBytes(n.Out) // of that many rows
		default:
			bytes += e.valueBytes(v)
		}
	}
	for _, m := range s.nodes {
		for _, w := range []*tensor.Tensor{m.Weight, m.Bias} {
			switch {
			case w == nil:
			case m.Op == plan.Embed || m.Op == plan.Position:
				bytes += e.size(m.Out) * e.weightBytes(w) / w.Rows()
			default:
				bytes += e.weightBytes(w)
			}
		}
		switch a := m.Attr.(type) {
		case plan.ExpertsAttr:
			used := min(a.Route.Used*e.size(n.Out), len(a.Gate))
			if e.experts != nil { // otherwise nobody counts them
				used = len(e.experts.active)
			}
			for _, list := range [][]*tensor.Tensor{a.Gate, a.Up, a.Down, a.GateBias, a.UpBias, a.DownBias} {
				if len(list) > 0 {
					bytes += used * e.weightBytes(list[0])
				}
			}
		case plan.AttentionAttr:
			if m.State == plan.NoState {
				continue
			}
			if kept, err := e.lim.Cache.Size(e.p.States[m.State].Width() * (e.batch.Attended(a.Window) + len(e.batch.Tokens))); err == nil {
				bytes += kept
			}
		}
	}
	return bytes
}

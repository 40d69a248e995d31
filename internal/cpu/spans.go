package cpu

import (
	"strings"

	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// describe sets the names and the bytes of part i of the last step.
func (e *executable) describe(i int, s *plan.Span) {
	lo, hi := e.code.part(e.batch.Head)
	residual, _, logits := e.p.Outputs(e.batch.Head)
	switch stages := e.code.stages[lo:hi]; {
	case i < len(stages):
		g := &stages[i]
		s.Kernel, s.Where, s.Bytes = e.tier.name+" "+e.kernelOf(g), plan.Where(g.All()...), e.traffic(g)
	case i == len(stages):
		s.Kernel, s.Where = e.tier.name+" finite", "look at the residual"
		if residual >= 0 {
			s.Bytes = e.valueBytes(residual)
		}
	default:
		s.Kernel, s.Where, s.Bytes = e.tier.name+" sample", "choice of tokens", e.valueBytes(logits)
	}
}

// kernelOf returns the name of a stage's kernels.
func (e *executable) kernelOf(s *fuse.Stage) string {
	n := s.Node()
	name := n.Op.String()
	switch {
	case e.backend.product(n, &e.lim) && s.GLU != nil:
		name = "gated"
	case e.backend.product(n, &e.lim):
		name = "products"
	}
	var formats []string
	for _, m := range s.Nodes {
		for _, w := range m.Matrices() {
			if d := strings.ToLower(w.DType.String()); len(formats) == 0 || formats[len(formats)-1] != d {
				formats = append(formats, d)
			}
		}
	}
	return strings.TrimSpace(name + " " + strings.Join(formats, "+"))
}

// valueBytes returns the size of a value in the last step.
func (e *executable) valueBytes(v plan.Value) int { return 4 * e.size(v) * int(e.p.Shapes[v][1]) }

// weightBytes returns the size of a weight in the form that is read.
func (e *executable) weightBytes(w *tensor.Tensor) int {
	if packed := e.weights[w]; packed != nil {
		return packed.bytes()
	}
	if size, err := w.DType.Size(w.Elems()); err == nil {
		return size
	}
	return 0
}

// traffic returns the bytes that a stage of the last step has read and written, see [plan.Span].
func (e *executable) traffic(s *fuse.Stage) int {
	n, io, bytes := s.Node(), s.IO(), 0
	for _, v := range io.Out {
		bytes += e.valueBytes(v)
	}
	for _, v := range io.In {
		if cols := int(e.p.Shapes[v][1]); e.backend.product(n, &e.lim) && v == n.In[0] {
			bytes += e.size(v) * recordBytes(cols)
		} else {
			bytes += 4 * operationOf(n).rows(e, n, v) * cols
		}
	}
	for _, m := range s.Nodes {
		o := operationOf(m)
		bytes += o.moved(e, m)
		for ws := m.Weights(); len(ws) > 0; ws = ws[ws[0].Of:] { // of a list of similar weights only the first is read
			if w := &ws[0]; w.Role == plan.Table {
				bytes += e.size(m.Out) * (e.weightBytes(w.Tensor) / w.Rows()) * int(e.p.Shapes[m.Out][1]) / w.Cols()
			} else {
				bytes += o.read(e, m, w) * e.weightBytes(w.Tensor)
			}
		}
	}
	return bytes
}

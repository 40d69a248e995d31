// Package describe says what a model is and costs, from its files and its program,
// without loading it.
package describe

import (
	"errors"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Program is a program whose weights have no data, so that it outlives their file:
// memory can be planned for it, and nothing can be run.
type Program struct {
	*plan.Program
	Read int64 // bytes of weights that every token reads
}

// NewProgram is p, whose weights it replaces.
func NewProgram(p *plan.Program) *Program {
	read := readByAll(p)
	for i := range p.Nodes {
		p.Nodes[i].Replace(withoutData)
	}
	return &Program{Program: p, Read: read}
}

func withoutData(w *tensor.Tensor) *tensor.Tensor {
	t := &tensor.Tensor{Name: w.Name, DType: w.DType, Shape: w.Shape}
	if w.Source != nil {
		t.Source = noRows{} // backends plan other memory for derived weights
	}
	return t
}

// noRows is the source of derived weights that are only planned with.
type noRows struct{}

func (noRows) ReadRows([]byte, int, int) error {
	return errors.New("the weight is described, not read")
}

func (noRows) Parts() []*tensor.Tensor { return nil }

// readByAll is the bytes of weights that every token reads: all but tables of
// embeddings that are not the head too, and of experts as many as a token has.
func readByAll(p *plan.Program) int64 {
	read := map[*tensor.Tensor]int64{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op == plan.Embed || n.Op == plan.Position {
			continue
		}
		used, of := active(n)
		for _, w := range n.Tensors() {
			read[w] = int64(w.Size()) * used / of
		}
	}
	var total int64
	for _, n := range read {
		total += n
	}
	return total
}

// TokenBytes is how many bytes choosing one token reads if its sequence holds past
// tokens before it, with a cache of this format.
func (p *Program) TokenBytes(past int, cache tensor.DType) int64 {
	total := p.Read
	for _, s := range p.States {
		seen := past
		if s.Window > 0 {
			seen = min(seen, s.Window)
		}
		total += int64(seen) * int64(s.Width()/cache.BlockLen()) * int64(cache.BlockBytes())
	}
	return total
}

// TokenProducts is how many multiply-adds one token of a prompt takes in the products
// with weights: quantized with 8-bit activations, if activations are Q8_0, and floats
// in float32. What is computed for chosen tokens alone does not count.
func (p *Program) TokenProducts(activations tensor.DType) (quantized, floats int64) {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if n.Op != plan.Linear && n.Op != plan.Experts || p.Shapes[n.Out][0] != plan.Tokens {
			continue
		}
		used, of := active(n)
		for _, w := range n.Tensors() {
			products := int64(w.Elems()) * used / of
			switch {
			case len(w.Shape) != 2: // a bias
			case plan.InBytes(w.DType) && activations == tensor.Q8_0:
				quantized += products
			default:
				floats += products
			}
		}
	}
	return quantized, floats
}

// active is how many of so many parts of n's weights a token reads: all, or its experts.
func active(n *plan.Node) (used, of int64) {
	if a, ok := n.Attr.(plan.ExpertsAttr); ok {
		return int64(a.Route.Used), int64(len(a.Gate))
	}
	return 1, 1
}

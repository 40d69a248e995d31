// Package describe says what a model is and costs, from its files and its program, without loading
// it.
package describe

import (
	"errors"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Program is a program whose weights have no data, so that it outlives their file. Memory can be
// planned for it, but it cannot run.
type Program struct {
	*plan.Program
	Read int64 // bytes of weights that every token reads
}

// NewProgram returns p after replacing its weights by ones without data.
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
		t.Source = noRows{} // backends plan memory for derived weights differently
	}
	return t
}

// noRows is the source of derived weights of a Program.
type noRows struct{}

func (noRows) ReadRows([]byte, int, int) error {
	return errors.New("the weight is described, not read")
}

func (noRows) Parts() []*tensor.Tensor { return nil }

// readByAll returns the bytes of weights that every token reads. Tables of embeddings that are not
// also the head do not count; of experts as many count as a token uses.
func readByAll(p *plan.Program) int64 {
	read := map[*tensor.Tensor]int64{}
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if !p.Runs(i, false) {
			continue
		}
		for _, w := range n.Weights() {
			if w.Role != plan.Table {
				read[w.Tensor] = int64(w.Size()) * int64(w.Used) / int64(w.Of)
			}
		}
	}
	var total int64
	for _, n := range read {
		total += n
	}
	return total
}

// TokenBytes returns how many bytes one decoded token reads after past tokens of its sequence, with
// a cache of this format: weights, keys and values, and states per sequence.
func (p *Program) TokenBytes(past int, cache tensor.DType) int64 {
	total := p.Read
	readers := make([]int64, len(p.States)) // by state: layers that read it
	chosen := make([]int, len(p.States))    // by state: rows of it that a token reads at most; 0: all
	for i := range p.Nodes {
		if at := p.Nodes[i].State; at != plan.NoState && p.Runs(i, false) {
			readers[at]++
		}
		if a, ok := p.Nodes[i].Attr.(plan.AttentionAttr); ok && a.Top > 0 {
			at := p.Nodes[i].State
			if a.Rate > 0 {
				at = a.Compressed
			}
			chosen[at] = a.Top
		}
	}
	for i, s := range p.States {
		if s.Kind == plan.PerSequence {
			total += 4 * int64(s.Size)
			continue
		}
		seen := past
		if s.Window > 0 {
			seen = min(seen, s.Window)
		}
		if s.Chunk > 0 && seen > s.Chunk {
			seen = s.Chunk / 2 // the mean
		}
		if s.Every > 0 {
			seen /= s.Every
		}
		if chosen[i] > 0 {
			seen = min(seen, chosen[i])
		}
		total += max(1, readers[i]) * int64(seen) * int64(s.RowBytes(cache))
	}
	return total
}

// TokenProducts returns the number of multiply-adds of one prompt token in products with weights.
// quantized counts the products with 8-bit activations, if activations is Q8_0, and floats the
// others. What is computed only for wanted rows does not count.
func (p *Program) TokenProducts(activations tensor.DType) (quantized, floats int64) {
	for i := range p.Nodes {
		n := &p.Nodes[i]
		if p.Shapes[n.Out][0] != plan.Tokens || !p.Runs(i, false) {
			continue
		}
		for _, w := range n.Weights() {
			products := int64(w.Elems()) * int64(w.Used) / int64(w.Of)
			switch {
			case w.Role != plan.Matrix:
			case plan.InBytes(w.DType) && activations == tensor.Q8_0:
				quantized += products
			default:
				floats += products
			}
		}
	}
	return quantized, floats
}

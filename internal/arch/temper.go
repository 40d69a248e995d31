package arch

import (
	"github.com/realizar/realizar/internal/plan"
)

// maxFactors bounds the table of factors of a context.
const maxFactors = 1 << 20

// growing makes queries grow by a factor and every so many tokens that the file has under these keys.
// def is for files without the latter; a negative def makes it required.
func (s *Spec) growing(c *config, by, every string, def int) {
	if n := c.optional(by); n > 0 {
		s.Temper = &plan.TemperAttr{By: n, Every: c.integer(every, def)}
	}
}

// tempered multiplies queries by the factors of their positions, if the model has them. The factors
// of a context of up to maxFactors tokens are a table of one column, which every backend reads; they
// are positive, so ReLU leaves them as they are. For a longer context, as Llama 4 Scout's, the table
// would be too large, and the operation temper computes the same factors, for which GPUs have no
// kernel.
func tempered(b *plan.Builder, s *Spec, w layer, q plan.Value) plan.Value {
	a := s.Temper
	switch {
	case a == nil:
		return q
	case s.Context > maxFactors:
		return b.Temper(q, *a)
	}
	if w.factorTable == nil {
		factors := make([]float32, s.Context)
		for p := range factors {
			factors[p] = float32(a.At(p))
		}
		w.factorTable = vectorOf("factors by position", factors)
		w.factorTable.Shape = []int{len(factors), 1}
	}
	return b.GLU(b.Position(w.factorTable, 0), q, plan.GLUAttr{Act: plan.ReLU})
}

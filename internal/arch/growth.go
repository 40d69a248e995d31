package arch

import (
	"math"

	"github.com/realizar/realizar/internal/plan"
)

// A growth says how queries grow with their position, so that attention over long contexts stays
// sharp (Nakanishi, "Scalable-Softmax Is Superior for Attention", 2025; Meta's Llama 4 and
// Mistral's Ministral 3 use this form): a query at position p is multiplied by
// 1 + Beta*ln(1 + floor(p/Every)).
type growth struct {
	Beta  float64 // 0: queries do not grow
	Every int
}

// maxGrown bounds the table of factors, and with it the context of a model that has one.
const maxGrown = 1 << 20

// grown multiplies queries by the factors of their positions. These are a table of one column. A
// factor is positive, so ReLU leaves it as it is.
func grown(b *plan.Builder, s *Spec, w layer, q plan.Value) plan.Value {
	g := s.Growth
	if g.Beta == 0 {
		return q
	}
	if w.growth == nil {
		factors := make([]float32, min(s.Context, maxGrown))
		for p := range factors {
			factors[p] = float32(1 + g.Beta*math.Log1p(float64(p/g.Every)))
		}
		w.growth = vectorOf("growth by position", factors)
		w.growth.Shape = []int{len(factors), 1}
	}
	return b.GLU(b.Position(w.growth, 0), q, plan.GLUAttr{Act: plan.ReLU})
}

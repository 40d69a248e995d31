package cpu

import (
	"cmp"
	"math"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A page's keys and values fill it without overlap, for any widths, also for keys without values.
func TestWidthsOfKeysAndValues(t *testing.T) {
	const tokens = 5
	for _, s := range []plan.State{
		{KVHeads: 2, HeadDim: 64, ValueDim: 64}, {KVHeads: 2, HeadDim: 96, ValueDim: 32}, {KVHeads: 3, HeadDim: 32, ValueDim: 64}, {KVHeads: 1, HeadDim: 96},
	} {
		for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.Q8_0} {
			l := &plan.Limits{PageTokens: tokens, Cache: d}
			size, err := l.PageOf(s)
			if err != nil {
				t.Fatal(err)
			}
			k := newKVPool(newPagePool(s, 1, size, &pageMemory{}), l)
			past := past{kvPool: k, pages: []int32{0}}
			k.page(0)
			value := func(kind, pos, head, i int) float32 { return float32((kind*31+pos*17+head*7+i)%64) - 31 }
			row := func(kind, pos, head, n int) []float32 {
				x := make([]float32, n)
				for i := range x {
					x[i] = value(kind, pos, head, i)
				}
				return x
			}
			each := func(f func(pos, head int)) {
				for pos := range tokens {
					for head := range s.KVHeads {
						f(pos, head)
					}
				}
			}
			each(func(pos, head int) {
				slot := past.slot(pos, head)
				if !slot.store(generic.attention, row(0, pos, head, s.HeadDim), row(1, pos, head, s.ValueDim), make([]uint16, s.HeadDim)) {
					t.Error("a page cannot hold small numbers")
				}
			})
			each(func(pos, head int) {
				slot := past.slot(pos, head)
				for kind, got := range [][]float32{slot.floatKey(make([]float32, s.HeadDim)), slot.floatValue(make([]float32, s.ValueDim))} {
					for i, x := range got {
						if want := value(kind, pos, head, i); math.Abs(float64(x-want)) > 0.2 || d != tensor.Q8_0 && x != want {
							t.Fatalf("%v, %v cache: number %d of position %d, head %d is %v, want %v", s, d, i, pos, head, x, want)
						}
					}
				}
			})
			scales := 0
			if d == tensor.Q8_0 {
				scales = tokens * s.KVHeads * cmp.Or(s.ValueDim, s.HeadDim) / cacheBlock * 2 // of the rows, which are keys if there are no values
			}
			if k.valueScales+scales != size {
				t.Errorf("%v, %v cache: a page ends after %d bytes of %d", s, d, k.valueScales+scales, size)
			}
		}
	}
}

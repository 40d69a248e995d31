package cpu

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A page's keys and values fill it without overlap, for any widths, also for keys without values.
func TestWidthsOfKeysAndValues(t *testing.T) {
	const tokens = 5
	grain := map[tensor.DType]float64{tensor.Q8_0: 0.2, tensor.F8_E4M3: 1} // of numbers up to 32
	for i, s := range []plan.State{
		{KVHeads: 1, HeadDim: 96}, // as columns
		{KVHeads: 2, HeadDim: 64, ValueDim: 64}, {KVHeads: 2, HeadDim: 96, ValueDim: 32}, {KVHeads: 3, HeadDim: 32, ValueDim: 64}, {KVHeads: 1, HeadDim: 96},
		{KVHeads: 2, HeadDim: 48, ValueDim: 16},
	} {
		for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.Q8_0, tensor.F8_E4M3} {
			if s.HeadDim%plan.HeadUnit(d) != 0 {
				continue
			}
			l := &plan.Limits{PageTokens: tokens, Cache: d}
			size, err := l.PageOf(s)
			if err != nil {
				t.Fatal(err)
			}
			pages := newPagePool(s, 1, size, &pageMemory{})
			pages.columns = i == 0
			k := newKVPool(pages, l)
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
				stored := [][]float32{slot.floatKey(make([]float32, s.HeadDim))}
				if s.ValueDim > 0 {
					stored = append(stored, slot.floatValue(make([]float32, s.ValueDim)))
				}
				for kind, got := range stored {
					for i, x := range got {
						if want := value(kind, pos, head, i); math.Abs(float64(x-want)) > grain[d] {
							t.Fatalf("%v, %v cache: number %d of position %d, head %d is %v, want %v", s, d, i, pos, head, x, want)
						}
					}
				}
			})
			scales, width := 0, cmp.Or(s.ValueDim, s.HeadDim) // of the rows, which are keys if there are no values
			switch d {
			case tensor.Q8_0:
				scales = tokens * s.KVHeads * width / cacheBlock * 2
			case tensor.F8_E4M3:
				scales = tokens * s.KVHeads * 2
			}
			if pages.columns {
				scales = 0 // they are before the values, of which there are none
			}
			if k.valueScales+scales != size {
				t.Errorf("%v, %v cache: a page ends after %d bytes of %d", s, d, k.valueScales+scales, size)
			}
		}
	}
}

// kept returns what an F8_E4M3 cache keeps of x, and whether it can hold x.
func kept(x []float32) ([]float32, bool) {
	codes, scale := make([]byte, len(x)), make([]uint16, 1)
	ok := roundHead(codes, scale, 1, x)
	y := make([]float32, len(x))
	for i, c := range codes {
		y[i] = halfOfE4M3(c) * tensor.F16ToF32(scale[0])
	}
	return y, ok
}

// An F8_E4M3 cache keeps numbers to half a step, in their order, and those that it holds exactly
// again. It never cuts off.
func TestRoundHead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) float32 {
			return rapid.Float32Range(-1, 1).Draw(t, "number") * float32(math.Exp2(float64(rapid.IntRange(-20, 0).Draw(t, "power"))))
		}), 1, 64).Draw(t, "x")
		size := float32(math.Exp2(float64(rapid.IntRange(-40, 15).Draw(t, "size"))))
		for i := range x {
			x[i] = min(max(x[i]*size, -57344), 57344)
		}
		y, ok := kept(x)
		if !ok {
			t.Fatalf("%v cannot be kept", x)
		}
		top := 0.0
		for _, v := range x {
			top = max(top, math.Abs(float64(v)))
		}
		unit := 0x1p-32
		for 448*unit < top {
			unit *= 2
		}
		for i, v := range x {
			// Half of the step of numbers with three bits after the first, or of the smallest ones.
			if diff := math.Abs(float64(y[i]) - float64(v)); diff > max(math.Abs(float64(v))*0x1p-4, unit*0x1p-10) {
				t.Fatalf("%v beside %v is kept as %v", v, top, y[i])
			}
			for j, w := range x {
				if v < w && y[i] > y[j] {
					t.Fatalf("%v and %v are kept as %v and %v", v, w, y[i], y[j])
				}
			}
		}
		if again, ok := kept(y); !ok || !slices.Equal(again, y) {
			t.Fatalf("%v, which is kept of %v, is kept as %v", y, x, again)
		}
	})
}

// A row with a number that is not finite, or too large to be kept, has no finite number. Every code
// of E4M3 is kept as it is.
func TestRoundHeadEnds(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	for _, c := range []struct {
		x  float32
		ok bool
	}{{inf, true}, {-inf, true}, {nan, true}, {-nan, true}, {57345, false}, {-65504, false}, {math.MaxFloat32, false}} {
		y, ok := kept([]float32{0, 1, c.x, 3})
		if ok != c.ok {
			t.Errorf("%v can be kept: %v", c.x, ok)
		}
		for i, v := range y {
			if v-v == 0 {
				t.Errorf("number %d beside %v is kept as %v", i, c.x, v)
			}
		}
	}
	for e := -32; e <= 7; e++ {
		var x []float32
		for code := range 256 {
			v := make([]float32, 1)
			if err := tensor.Dequantize(tensor.F8_E4M3, v, []byte{byte(code)}); err != nil {
				t.Fatal(err)
			}
			if v[0] == v[0] {
				x = append(x, float32(math.Ldexp(float64(v[0]), e)))
			}
		}
		if y, ok := kept(x); !ok || !slices.Equal(x, y) {
			t.Errorf("the numbers of E4M3 times 2^%d are kept as %v", e, y)
		}
	}
}

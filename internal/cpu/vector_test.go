package cpu

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// vectorLengths returns lengths with every remainder, and lengths of several pieces.
func vectorLengths() []int {
	var lengths []int
	for n := range 71 {
		lengths = append(lengths, n)
	}
	return append(lengths, 255, 256, 257, 1000, 1<<14, 1<<14+13, 1<<15+256)
}

// vectorTests calls f with every tier and with a function that makes rows of every length. Memory
// after a row must not be read; canaries before it are checked at the end.
func vectorTests(t *testing.T, f func(t *testing.T, k *vectorKernels, n int, row func(fill func(i int) float32) []float32)) {
	const most, canary = 1<<15 + 256, 12345
	room := make([][]float32, 6)
	for i := range room {
		b := guarded(t, 4*(most+16))
		room[i] = unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), most+16)
	}
	for _, tier := range tiers() {
		t.Run(tier.name, func(t *testing.T) {
			for _, n := range vectorLengths() {
				used := 0
				f(t, tier.vector, n, func(fill func(i int) float32) []float32 {
					all := room[used]
					used++
					x := all[len(all)-n:]
					for i := range x {
						x[i] = fill(i)
					}
					for i := range 16 {
						all[len(all)-n-1-i] = canary
					}
					return x
				})
				for _, r := range room[:used] {
					for i := range 16 {
						if r[len(r)-n-1-i] != canary {
							t.Fatalf("rows of %d: wrote %d before a row", n, i+1)
						}
					}
				}
			}
		})
	}
}

func normal(rng *rand.Rand, scale float64) func(int) float32 {
	return func(int) float32 { return float32(rng.NormFloat64() * scale) }
}

// closeTo fails unless got is within tol of want.
func closeTo(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if got != want && !(math.Abs(got-want) <= tol) && !(got != got && want != want) {
		t.Fatalf("%s: %v, want %v within %v", what, got, want, tol)
	}
}

func TestSums(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	vectorTests(t, func(t *testing.T, k *vectorKernels, n int, row func(func(int) float32) []float32) {
		scale := []float64{1e-30, 1, 1e18, 1e37}[n%4]
		center := rng.NormFloat64() * scale
		x := row(normal(rng, scale))
		var sum, size, squares float64
		for _, v := range x {
			sum, size = sum+float64(v), size+math.Abs(float64(v))
			squares += (float64(v) - center) * (float64(v) - center)
		}
		what := fmt.Sprintf("%d about %g", n, scale)
		closeTo(t, "sum of "+what, k.sum(x), sum, 1e-12*size)
		closeTo(t, "squares of "+what, k.squares(x, center), squares, 1e-12*squares)
		if n == 0 {
			return
		}
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
			x[rng.IntN(n)] = bad
			if s := k.squares(x, 0); s-s == 0 {
				t.Fatalf("squares of %d with %v: %v", n, bad, s)
			}
		}
	})
}

func TestScaleCenterAdd(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 2))
	vectorTests(t, func(t *testing.T, k *vectorKernels, n int, row func(func(int) float32) []float32) {
		x, w, b := row(normal(rng, 3)), row(normal(rng, 1)), row(normal(rng, 1))
		y := row(func(int) float32 { return 7 })
		k.scale(y, x, w, 0.37)
		for i, v := range y {
			want := float64(x[i]) * float64(float32(0.37)) * float64(w[i])
			closeTo(t, "scale", float64(v), want, 2e-7*math.Abs(want))
		}
		k.center(y, x, w, b, 0.5, 1.7)
		for i, v := range y {
			p := (float64(x[i]) - 0.5) * 1.7 * float64(w[i])
			closeTo(t, "center", float64(v), p+float64(b[i]), 3e-7*(math.Abs(p)+math.Abs(float64(b[i]))))
		}
		k.add(y, x, w)
		for i, v := range y {
			if v != x[i]+w[i] {
				t.Fatalf("add: element %d of %d is %v, want %v", i, n, v, x[i]+w[i])
			}
		}
	})
}

func TestFinite(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 3))
	vectorTests(t, func(t *testing.T, k *vectorKernels, n int, row func(func(int) float32) []float32) {
		x := row(func(i int) float32 { return [...]float32{math.MaxFloat32, -math.MaxFloat32, 0, 1e-45, 1}[i%5] })
		if !k.finite(x) {
			t.Fatalf("%d numbers are not finite", n)
		}
		for i := 0; i < n; i += 1 + rng.IntN(1+n/50) {
			old := x[i]
			for _, bits := range []uint32{0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001, 0xffffffff} {
				if x[i] = math.Float32frombits(bits); k.finite(x) {
					t.Fatalf("%v at %d of %d is finite", x[i], i, n)
				}
			}
			x[i] = old
		}
	})
}

func TestGLU(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	special := []float32{
		0, float32(math.Copysign(0, -1)), 1e-45, -1e-45, 1e-20, -1e-20, 1e-4, -1e-4, 0.5, -0.5, 8, -8, 13, -13, 87, -87, 89, -89, 103, -103, 104, -110,
		1e4, -1e4, 1e20, -1e20, math.MaxFloat32, -math.MaxFloat32, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()),
	}
	for _, act := range plan.Activations() {
		t.Run(act.String(), func(t *testing.T) {
			vectorTests(t, func(t *testing.T, k *vectorKernels, n int, row func(func(int) float32) []float32) {
				gate := row(func(i int) float32 {
					if rng.IntN(4) == 0 {
						return special[rng.IntN(len(special))]
					}
					return float32(rng.NormFloat64() * 3)
				})
				up := row(func(i int) float32 { return [...]float32{1, -2, 0.3}[i%3] })
				y := row(func(int) float32 { return 7 })
				k.glu(y, gate, up, act)
				for i, v := range y {
					x := float64(gate[i])
					f := activations[act](x)
					// The relative error of an exponential is that of its argument, which for the
					// error function is half the square of x.
					tol := 1e-6
					switch act {
					case plan.GELU:
						tol += 1e-7 * x * x
					case plan.GELUTanh:
						tol += 1e-7 * math.Abs(x*x*x)
					}
					want := float64(float32(f) * up[i])
					closeTo(t, fmt.Sprintf("%d: %v(%v)*%v", n, act, gate[i], up[i]), float64(v), want, min(tol, 1)*math.Abs(want)+1e-36)
				}
			})
		})
	}
}

// Assembly's exponentials are zero below the normal numbers, and correct above.
func TestExponentialsEndWithTheNormalNumbers(t *testing.T) {
	const least, below = 0x42aeac4f, 0x42aeac50 // bits of -x: the last with a result above 2^-126, and the next
	up := []float32{1, 1, 1, 1, 1, 1, 1, 1, 1}
	x, y := make([]float32, len(up)), make([]float32, len(up))
	for _, tier := range tiers() {
		if tier.name == "generic" {
			continue
		}
		for from := uint32(least - 100); from < below+100; from += 7 {
			for i := range x {
				x[i] = -math.Float32frombits(from + uint32(i))
			}
			tier.vector.glu(y, x, up, plan.Sigmoid)
			for i, v := range y {
				want := 0.0
				if from+uint32(i) <= least {
					want = math.Exp(float64(x[i]))
				}
				closeTo(t, fmt.Sprintf("%s: 1/(1+exp(%v))", tier.name, -x[i]), float64(v), want, 1e-6*want)
			}
		}
	}
}

func TestMaxima(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 5))
	vectorTests(t, func(t *testing.T, k *vectorKernels, n int, row func(func(int) float32) []float32) {
		x := row(func(i int) float32 {
			if i/sample.Block%2 == 1 {
				return float32(-1 - rng.IntN(3))
			}
			return float32(rng.NormFloat64() * 1e3)
		})
		blocks := (n + sample.Block - 1) / sample.Block
		got, want := make([]float32, blocks+1), make([]float32, blocks)
		got[blocks] = 12345
		if !sample.MaximaOf(want, x) || !k.maxima(got[:blocks], x) {
			t.Fatalf("%d numbers are not finite", n)
		}
		for b, v := range want {
			if got[b] != v {
				t.Fatalf("block %d of %d logits: %v, want %v", b, n, got[b], v)
			}
		}
		if got[blocks] != 12345 {
			t.Fatalf("%d logits: wrote more than %d maxima", n, blocks)
		}
		for i := 0; i < n; i += 1 + rng.IntN(1+n/20) {
			old := x[i]
			for _, bits := range []uint32{0x7f800000, 0xff800000, 0x7fc00000, 0xffc00000, 0x7f800001} {
				if x[i] = math.Float32frombits(bits); k.maxima(got[:blocks], x) {
					t.Fatalf("%v at %d of %d is finite", x[i], i, n)
				}
			}
			x[i] = old
		}
	})
}

func TestRotate(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 6))
	vectorTests(t, func(t *testing.T, k *vectorKernels, n int, row func(func(int) float32) []float32) {
		for _, a := range []plan.RopeAttr{
			{HeadDim: n, Dims: n}, {HeadDim: n, Dims: n, Interleaved: true},
			{HeadDim: n / 3, Dims: n / 6 * 2}, {HeadDim: n / 3, Dims: n / 6 * 2, Interleaved: true},
			{HeadDim: n / 40, Dims: n / 80 * 2},
		} {
			if a.HeadDim == 0 || a.Dims < 2 || a.Dims%2 != 0 || n%a.HeadDim != 0 || a.Dims > 512 {
				continue
			}
			x := make([]float32, n)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			rotations := rotations{width: a.Dims / 2}
			if a.Interleaved {
				rotations.width = a.Dims
			}
			rotations.cos, rotations.sin = make([]float32, rotations.width), make([]float32, rotations.width)
			frequencies := make([]float64, a.Dims/2)
			for i := range frequencies {
				frequencies[i] = rng.Float64()
			}
			a.Scale = 1.5
			rotations.set(0, 12345, frequencies, &a)
			y := make([]float32, n+8)
			for i := range y {
				y[i] = 12345
			}
			k.rotate(y[:n], x, rotations.cos, rotations.sin, &a)
			want := make([]float64, n+8)
			for i := range want {
				want[i] = 12345
			}
			for h := 0; h < n; h += a.HeadDim {
				for i, f := range frequencies {
					p, q := h+i, h+i+a.Dims/2
					if a.Interleaved {
						p, q = h+2*i, h+2*i+1
					}
					sin, cos := math.Sincos(12345 * f)
					u, v := float64(x[p])*1.5, float64(x[q])*1.5
					want[p], want[q] = u*cos-v*sin, v*cos+u*sin
				}
			}
			for i, v := range y {
				closeTo(t, fmt.Sprintf("%d of %d, %v", i, n, a), float64(v), want[i], 2e-6)
			}
		}
	})
}

func BenchmarkVector(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	const n = 2048
	x, y, w, z := random(rng, n), make([]float32, n), random(rng, n), random(rng, n)
	logits := random(rng, 151_936)
	maxima := make([]float32, len(logits)/sample.Block)
	a := plan.RopeAttr{HeadDim: 64, Dims: 64}
	near := a
	near.Interleaved = true
	for _, tier := range tiers() {
		k := tier.vector
		run := func(name string, bytes int64, f func()) {
			b.Run(name+"/"+tier.name, func(b *testing.B) {
				b.SetBytes(bytes)
				for b.Loop() {
					f()
				}
			})
		}
		run("RMSNorm", 8*n, func() { k.scale(y, x, w, float32(1/math.Sqrt(k.squares(x, 0)/n+1e-5))) })
		run("LayerNorm", 8*n, func() {
			mean := k.sum(x) / n
			k.center(y, x, w, z, mean, 1/math.Sqrt(k.squares(x, mean)/n+1e-5))
		})
		run("Add", 12*n, func() { k.add(y, x, z) })
		run("Finite", 4*n, func() { k.finite(x) })
		run("Maxima", 4*int64(len(logits)), func() { k.maxima(maxima, logits) })
		run("RopeHalves", 8*n, func() { k.rotate(y, x, w[:32], z[:32], &a) })
		run("RopeNeighbours", 8*n, func() { k.rotate(y, x, w[:64], z[:64], &near) })
		for _, act := range plan.Activations() {
			run("GLU "+act.String(), 12*n, func() { k.glu(y, x, z, act) })
		}
	}
}

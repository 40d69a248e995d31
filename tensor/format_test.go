package tensor_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/realizar/realizar/tensor"
)

// Every row of the table is complete and consistent.
func TestFormatsAreWhole(t *testing.T) {
	numbers := map[int]string{}
	for i, f := range tensor.Formats() {
		if f.DType != tensor.DType(i) || f.Name == "" || f.Name != f.DType.String() || f.BlockLen < 1 || f.BlockBytes < 1 {
			t.Errorf("row %d is %+v", i, f)
			continue
		}
		if other := numbers[f.GGML]; f.GGML >= 0 && other != "" {
			t.Errorf("%s and %s both have the number %d in GGUF", f.Name, other, f.GGML)
		}
		numbers[f.GGML] = f.Name
		if err := tensor.Dequantize(f.DType, make([]float32, f.BlockLen), make([]byte, f.BlockBytes)); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
		switch {
		case !f.DType.Weight(): // integers
			if f.BlockLen != 1 || f.NotFinite != 0 {
				t.Errorf("%s cannot be a weight", f.Name)
			}
		case f.BlockLen == 1:
			if f.NotFinite == 0 || f.Scale != tensor.NoScale || math.IsInf(f.Largest(), 0) || f.Largest() < 1 {
				t.Errorf("%s is a float and NotFinite is %#x, the largest number %v", f.Name, f.NotFinite, f.Largest())
			}
		default:
			checkBlocks(t, &f)
		}
		if f.InBytes && (f.Planes == nil || f.Group%16 != 0 || f.Scale != tensor.F16Scale && f.Scale != tensor.E8M0Scale || f.E4M3) {
			t.Errorf("%s is computed in bytes: it needs planes, integers as codes, groups of 16 or more, and a scale that kernels can read", f.Name)
		}
	}
}

func checkBlocks(t *testing.T, f *tensor.Format) {
	width := map[tensor.ScaleForm]int{tensor.F16Scale: 2, tensor.E8M0Scale: 1, tensor.F32Scale: 4, tensor.NibbleScale: 8}[f.Scale]
	scales := 1
	if f.Minimum != tensor.NoMinimum {
		scales = 2
	}
	if width == 0 || len(f.Scales) != scales || f.Factor == (tensor.Factor{}) || f.Group < 1 || f.BlockLen%f.Group != 0 {
		t.Errorf("%s: scale %v at %v, minimum %v, factor %v, groups of %d", f.Name, f.Scale, f.Scales, f.Minimum, f.Factor, f.Group)
	}
	for _, at := range f.Scales {
		if at < 0 || at+width > f.BlockBytes {
			t.Errorf("%s: a scale at byte %d", f.Name, at)
		}
	}
	if len(f.Levels()) == 0 {
		t.Errorf("%s: codes stand for nothing", f.Name)
	}
	if n := f.Narrow.BlockLen(); n >= f.BlockLen {
		t.Errorf("%s: rows that it cannot have become %v", f.Name, f.Narrow)
	}
	if f.Planes != nil && (f.Factor.Bits > 0) != (f.Packing != tensor.Unpacked) {
		t.Errorf("%s: groups have numbers of %d bits, packed as %d", f.Name, f.Factor.Bits, f.Packing)
	}
	bits := 0
	for _, p := range f.Planes {
		bits += p.Bits
	}
	if bits != f.Bits || f.Table != nil && len(f.Table) != 1<<bits {
		t.Errorf("%s: codes of %d bits, of which planes have %d, and a table of %d", f.Name, f.Bits, bits, len(f.Table))
	}
}

// Codes and Groups agree with Dequantize: planes are the places of codes, groups their factors, and
// levels their values.
func TestCodes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, f := range tensor.Formats() {
		if f.Planes == nil || f.E4M3 {
			continue
		}
		levels := map[float32]bool{}
		for _, v := range f.Levels() {
			levels[v] = true
		}
		for range 100 {
			block, want := make([]byte, f.BlockBytes), make([]float32, f.BlockLen)
			for i := range block {
				block[i] = byte(rng.Uint32())
			}
			if tensor.CheckFinite(f.DType, block) != nil {
				continue
			}
			if err := tensor.Dequantize(f.DType, want, block); err != nil {
				t.Fatal(err)
			}
			q := make([]int8, f.BlockLen)
			var scale, low [16]float32
			f.Codes(q, block)
			f.Groups(&scale, &low, block)
			for i, v := range want {
				if got := float32(scale[i/f.Group]*float32(q[i])) + low[i/f.Group]; got != v {
					t.Fatalf("%s: value %d is %v by code %d, scale %v and minimum %v, want %v", f.Name, i, got, q[i], scale[i/f.Group], low[i/f.Group], v)
				}
				if !levels[float32(q[i])] {
					t.Fatalf("%s: code %d is not a level", f.Name, q[i])
				}
				code, up := 0, 0
				for _, p := range f.Planes {
					at, shift := p.Place(i)
					code |= int(block[at]) >> shift & (1<<p.Bits - 1) << up
					up += p.Bits
				}
				switch {
				case f.Table != nil:
					code = int(f.Table[code])
				case f.Signed:
					code = int(int8(code))
				}
				if code-f.Offset != int(q[i]) {
					t.Fatalf("%s: the places of code %d say %d, want %d", f.Name, i, code-f.Offset, q[i])
				}
			}
		}
	}
}

// The zero Format describes an unknown DType.
func TestFormatOfNone(t *testing.T) {
	if f := tensor.DType(200).Format(); f.BlockLen != 0 || f.GGML != -1 || f.InBytes {
		t.Errorf("DType(200) is %+v", f)
	}
}

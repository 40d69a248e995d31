package tensor_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// quantizable are the formats that Quantize supports.
var quantizable = []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q4_0, tensor.Q8_0, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K}

// again quantizes v and dequantizes it.
func again(t testing.TB, d tensor.DType, v []float32) (data []byte, values []float32) {
	t.Helper()
	size, err := d.Size(len(v))
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Repeat([]byte{0xa5}, size) // every bit must be written
	if err := tensor.Quantize(d, data, v); err != nil {
		t.Fatal(err)
	}
	values = make([]float32, len(v))
	if err := tensor.Dequantize(d, values, data); err != nil {
		t.Fatal(err)
	}
	return data, values
}

// off returns the sum of squared differences.
func off(a, b []float32) (sum float64) {
	for i := range a {
		e := float64(a[i]) - float64(b[i])
		sum += e * e
	}
	return sum
}

// TestQuantizeConformance quantizes the weights of a model and compares the error with that of
// files that another program has made. It must not be larger for any weight.
func TestQuantizeConformance(t *testing.T) {
	folder := os.Getenv("REALIZAR_CONFORMANCE")
	if folder == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder with gguf-quants")
	}
	folder = filepath.Join(folder, "gguf-quants")
	exact := floats(t, filepath.Join(folder, "f16.gguf"))
	compared := map[tensor.DType]int{}
	for _, name := range []string{"q8_0", "q4_0", "q4_k_m", "q5_k_m", "q6_k"} {
		f := open(t, filepath.Join(folder, name+".gguf"))
		for _, theirs := range f.Tensors() {
			if !theirs.DType.Quantized() {
				continue
			}
			v, err := theirs.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			want := exact[theirs.Name]
			_, got := again(t, theirs.DType, want)
			if mine, other := off(got, want), off(v, want); mine > other {
				t.Errorf("%s: %s as %v: squared error %.6g, the file's %.6g", name, theirs.Name, theirs.DType, mine, other)
			} else {
				t.Logf("%s: %s as %v: %.4f of the file's squared error", name, theirs.Name, theirs.DType, mine/other)
			}
			compared[theirs.DType]++
		}
	}
	for _, d := range []tensor.DType{tensor.Q8_0, tensor.Q4_0, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K} {
		if compared[d] == 0 {
			t.Errorf("no tensor of %v was compared", d)
		}
	}
}

func open(t *testing.T, path string) *modelfile.File {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// floats returns the values of all tensors of a file by name.
func floats(t *testing.T, path string) map[string][]float32 {
	t.Helper()
	all := map[string][]float32{}
	for _, w := range open(t, path).Tensors() {
		v, err := w.Float32s()
		if err != nil {
			t.Fatal(err)
		}
		all[w.Name] = v
	}
	return all
}

// Two blocks of values that are symmetric about zero, shifted to one side, or all equal. No value
// is further off than half a step of the coarsest scale that its group can need.
func TestQuantizeIsNear(t *testing.T) {
	// steps is the number of steps from the smallest value to the largest, or to zero. Two more
	// allow for scales of few bits and the fit of a whole group.
	steps := map[tensor.DType]float64{tensor.Q4_0: 14, tensor.Q8_0: 254, tensor.Q4_K: 15, tensor.Q5_K: 31, tensor.Q6_K: 62}
	rapid.Check(t, func(r *rapid.T) {
		d := rapid.SampledFrom(quantizable).Draw(r, "format")
		size := math.Ldexp(1, rapid.IntRange(-8, 14).Draw(r, "exponent"))
		shift := rapid.Float64Range(-2, 2).Draw(r, "shift")
		v := make([]float32, 512)
		kind := rapid.IntRange(0, 2).Draw(r, "kind")
		for i := range v {
			switch kind {
			case 0:
				v[i] = float32(size * rapid.Float64Range(-1, 1).Draw(r, "value"))
			case 1:
				v[i] = float32(size * (shift + rapid.Float64Range(-1, 1).Draw(r, "value")))
			case 2:
				v[i] = float32(size * shift)
			}
		}
		_, got := again(t, d, v)
		block := max(d.BlockLen(), 1)
		for i := range v {
			var low, high float64
			for _, x := range v[i/block*block:][:block] {
				low, high = min(low, float64(x)), max(high, float64(x))
			}
			allowed := 0.0
			switch {
			case d == tensor.F16:
				allowed = max(math.Abs(float64(v[i]))/2048, 0x1p-25)
			case d == tensor.BF16:
				allowed = max(math.Abs(float64(v[i]))/256, 0x1p-134)
			case d == tensor.Q4_K || d == tensor.Q5_K:
				allowed = (high-low)/steps[d]*1.5 + 64*0x1p-24
			case d.Quantized():
				allowed = 2*max(high, -low)/steps[d]*1.5 + 128*0x1p-24
			}
			if e := math.Abs(float64(got[i]) - float64(v[i])); e > allowed {
				r.Fatalf("%v: value %d of %v is %v, %.3g off, %.3g is the most", d, i, v[i], got[i], e, allowed)
			}
		}
	})
}

// The bytes are the same on every machine: fused products and sums would sometimes choose other
// scales.
func TestQuantizeBytes(t *testing.T) {
	h := sha256.New()
	v := make([]float32, 1<<14)
	state := uint32(1)
	for i := range v {
		sum := int32(0)
		for range 4 {
			state = state*1664525 + 1013904223
			sum += int32(state >> 16)
		}
		v[i] = float32(sum-2*65535) * 0x1p-20
	}
	for _, d := range quantizable {
		data, _ := again(t, d, v)
		h.Write(data)
	}
	const want = "115a36f2d6325789cc49dc3c1eea5992a79e0de1e8c26b20c162fc848ba92226"
	if got := fmt.Sprintf("%x", h.Sum(nil)); got != want {
		t.Errorf("the bytes have changed: checksum %s, want %s", got, want)
	}
}

func TestQuantizeZeros(t *testing.T) {
	for _, d := range quantizable {
		_, got := again(t, d, make([]float32, 512))
		for i, v := range got {
			if v != 0 {
				t.Fatalf("%v: zero %d has become %v", d, i, v)
			}
		}
	}
}

// A block that the format can represent exactly stays exact, with a scale of whole steps.
func TestQuantizeExact(t *testing.T) {
	v := make([]float32, 256)
	for i := range v {
		v[i] = float32(i%16-8) / 4
	}
	for _, d := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q4_0, tensor.Q6_K} {
		if _, got := again(t, d, v); off(got, v) != 0 {
			t.Errorf("%v: %v has become %v", d, v[:32], got[:32])
		}
	}
}

func TestQuantizeRefuses(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, test := range []struct {
		dtype tensor.DType
		v     []float32
		bytes int
		want  error
	}{
		{tensor.Q8_0, make([]float32, 33), 34, tensor.ErrSize},
		{tensor.Q8_0, make([]float32, 32), 33, tensor.ErrSize},
		{tensor.Q4_K, make([]float32, 32), 18, tensor.ErrSize},
		{tensor.Q5_0, make([]float32, 32), 22, tensor.ErrDType},
		{tensor.IQ2_XS, make([]float32, 256), 74, tensor.ErrDType},
		{tensor.I8, make([]float32, 1), 1, tensor.ErrDType},
		{99, make([]float32, 1), 1, tensor.ErrDType},
		{tensor.F16, []float32{65519, 65520}, 4, tensor.ErrValue},
		{tensor.BF16, []float32{math.MaxFloat32}, 2, tensor.ErrValue},
		{tensor.F16, []float32{nan, inf}, 4, nil},
		{tensor.BF16, []float32{nan, inf}, 4, nil},
	} {
		if err := tensor.Quantize(test.dtype, make([]byte, test.bytes), test.v); !errors.Is(err, test.want) {
			t.Errorf("%d values to %d bytes of %v: %v, want %v", len(test.v), test.bytes, test.dtype, err, test.want)
		}
	}
	for _, d := range quantizable {
		if !d.Quantized() {
			continue
		}
		for _, value := range []float32{nan, inf, -inf, 65505, -1e6} {
			v := make([]float32, 256)
			v[77] = value
			size, _ := d.Size(len(v))
			if err := tensor.Quantize(d, make([]byte, size), v); !errors.Is(err, tensor.ErrValue) {
				t.Errorf("%v of %v: %v, want an error that wraps ErrValue", d, value, err)
			}
		}
	}
}

func TestQuantizeAllocates(t *testing.T) {
	src := make([]float32, 512)
	for i := range src {
		src[i] = float32(i)
	}
	for _, d := range quantizable {
		size, _ := d.Size(len(src))
		dst := make([]byte, size)
		if n := testing.AllocsPerRun(10, func() { _ = tensor.Quantize(d, dst, src) }); n != 0 {
			t.Errorf("%v: %v allocations", d, n)
		}
	}
}

// Values that a block format accepts come back finite, with a total error no larger than that of
// zeros.
func FuzzQuantize(f *testing.F) {
	f.Add(uint8(tensor.Q4_K), make([]byte, 512))
	f.Fuzz(func(t *testing.T, d uint8, raw []byte) {
		dtype := tensor.DType(d)
		v := make([]float32, 256)
		for i := range v {
			if 2*i+1 < len(raw) {
				v[i] = tensor.F16ToF32(uint16(raw[2*i]) | uint16(raw[2*i+1])<<8)
			}
		}
		size, err := dtype.Size(len(v))
		if err != nil {
			return
		}
		data, got := make([]byte, size), make([]float32, len(v))
		if tensor.Quantize(dtype, data, v) != nil || !dtype.Quantized() {
			return
		}
		if err := tensor.Dequantize(dtype, got, data); err != nil {
			t.Fatal(err)
		}
		if e, zeros := off(got, v), off(make([]float32, len(v)), v); !(e <= zeros*1.001) {
			t.Fatalf("%v: squared error %v of values whose squares are %v", dtype, e, zeros)
		}
	})
}

func BenchmarkQuantize(b *testing.B) {
	src := make([]float32, 4096)
	for i := range src {
		src[i] = float32(math.Sin(float64(i * i)))
	}
	for _, d := range quantizable {
		b.Run(d.String(), func(b *testing.B) {
			size, err := d.Size(len(src))
			if err != nil {
				b.Fatal(err)
			}
			dst := make([]byte, size)
			b.SetBytes(int64(4 * len(src)))
			for b.Loop() {
				if err := tensor.Quantize(d, dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

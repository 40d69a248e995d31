package tensor_test

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"pgregory.net/rapid"

	"github.com/realizar/realizar/tensor"
)

// quantFormats are the formats in the reference data.
var quantFormats = []tensor.DType{
	tensor.BF16, tensor.Q4_0, tensor.Q4_1, tensor.Q5_0, tensor.Q5_1, tensor.Q8_0,
	tensor.Q2_K, tensor.Q3_K, tensor.Q4_K, tensor.Q5_K, tensor.Q6_K,
	tensor.IQ4_NL, tensor.IQ4_XS, tensor.MXFP4,
	tensor.IQ1_S, tensor.IQ1_M, tensor.IQ2_XXS, tensor.IQ2_XS, tensor.IQ2_S, tensor.IQ3_XXS, tensor.IQ3_S,
	tensor.TQ1_0, tensor.TQ2_0,
}

// TestDequantizeReference compares with blocks that gguf-py dequantized, two of each format.
func TestDequantizeReference(t *testing.T) {
	compareQuants(t, filepath.Join("testdata", "quants.safetensors"))
}

// TestDequantizeConformance compares with all of that data.
func TestDequantizeConformance(t *testing.T) {
	folder := os.Getenv("REALIZAR_CONFORMANCE")
	if folder == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder with quants.safetensors")
	}
	compareQuants(t, filepath.Join(folder, "quants.safetensors"))
}

func compareQuants(t *testing.T, path string) {
	raw := safetensorsData(t, path)
	for _, d := range quantFormats {
		t.Run(d.String(), func(t *testing.T) {
			blocks, want := raw(d.String()+".blocks"), raw(d.String()+".values")
			got := make([]float32, len(want)/4)
			if err := tensor.Dequantize(d, got, blocks); err != nil {
				t.Fatal(err)
			}
			for i := range got {
				bits := binary.LittleEndian.Uint32(want[4*i:])
				if math.Float32bits(got[i]) != bits {
					t.Fatalf("element %d is %v, want %v", i, got[i], math.Float32frombits(bits))
				}
			}
		})
	}
}

// safetensorsData reads a file of the project's own test data. It cannot use modelfile, which
// imports this package.
func safetensorsData(t *testing.T, path string) func(name string) []byte {
	t.Helper()
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(file)
	var header map[string]struct {
		Offsets [2]int `json:"data_offsets"`
	}
	if err := json.Unmarshal(file[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	return func(name string) []byte {
		e, ok := header[name]
		if !ok {
			t.Fatalf("%s has no tensor %s", path, name)
		}
		return file[8+n:][e.Offsets[0]:e.Offsets[1]]
	}
}

// A block's values are proportional to its scale, to the bit: twice the scale gives twice the
// values, and the negated scale gives the negated values.
func TestDequantizeScales(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		format := rapid.SampledFrom([]struct {
			dtype tensor.DType
			at    int // offset of the scale
		}{
			{tensor.IQ1_S, 0}, {tensor.IQ2_XXS, 0}, {tensor.IQ2_XS, 0}, {tensor.IQ2_S, 0}, {tensor.IQ3_XXS, 0}, {tensor.IQ3_S, 0},
			{tensor.TQ1_0, 52}, {tensor.TQ2_0, 64},
		}).Draw(t, "format")
		size := format.dtype.BlockBytes()
		block := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "block")
		values := func(scale uint16) []float32 {
			binary.LittleEndian.PutUint16(block[format.at:], scale)
			v := make([]float32, 256)
			if err := tensor.Dequantize(format.dtype, v, block); err != nil {
				t.Fatal(err)
			}
			return v
		}
		scale := rapid.Uint16Range(0x0400, 0x77ff).Draw(t, "scale") // normal, and so is its double
		once, twice, negative := values(scale), values(scale+0x0400), values(scale^0x8000)
		for i := range once {
			if twice[i] != 2*once[i] || negative[i] != -once[i] {
				t.Fatalf("%v: value %d is %v, of twice the scale %v, of the other sign %v", format.dtype, i, once[i], twice[i], negative[i])
			}
		}
	})
}

func TestDequantizePlain(t *testing.T) {
	le := binary.LittleEndian
	for _, test := range []struct {
		dtype tensor.DType
		src   []byte
		want  []float32
	}{
		{tensor.F32, le.AppendUint32(nil, math.Float32bits(-1.5)), []float32{-1.5}},
		{tensor.F16, []byte{0x00, 0x3c, 0x01, 0x80}, []float32{1, -0x1p-24}},
		{tensor.F64, le.AppendUint64(nil, math.Float64bits(0.1)), []float32{0.1}},
		{tensor.I8, []byte{0xff, 0x7f}, []float32{-1, 127}},
		{tensor.I16, le.AppendUint16(nil, 0x8000), []float32{-32768}},
		{tensor.I32, le.AppendUint32(nil, 0xfffffffe), []float32{-2}},
		{tensor.I64, le.AppendUint64(nil, 1<<63), []float32{-0x1p63}},
		{tensor.U8, []byte{0xff}, []float32{255}},
		{tensor.U16, le.AppendUint16(nil, 0xffff), []float32{65535}},
		{tensor.U32, le.AppendUint32(nil, 0x80000000), []float32{0x1p31}},
		{tensor.U64, le.AppendUint64(nil, 1<<63), []float32{0x1p63}},
		{tensor.BOOL, []byte{0, 1}, []float32{0, 1}},
		{tensor.F8_E8M0, []byte{0, 1, 127, 130, 254}, []float32{0x1p-127, 0x1p-126, 1, 8, 0x1p127}},
	} {
		got := make([]float32, len(test.want))
		if err := tensor.Dequantize(test.dtype, got, test.src); err != nil {
			t.Errorf("%v: %v", test.dtype, err)
			continue
		}
		for i := range got {
			if got[i] != test.want[i] {
				t.Errorf("%v %x = %v, want %v", test.dtype, test.src, got, test.want)
				break
			}
		}
	}
}

// The extreme scales of MXFP4: 0 stands for 2^-127, which is subnormal, and 255 for NaN.
func TestDequantizeMXFP4Scales(t *testing.T) {
	for _, test := range []struct {
		scale byte
		want  float32 // value of the code for 0.5
	}{
		{0, 0x1p-128}, {1, 0x1p-127}, {2, 0x1p-126}, {127, 0.5}, {254, 0x1p126}, {255, float32(math.NaN())},
	} {
		block := make([]byte, 17)
		block[0], block[1] = test.scale, 1
		got := make([]float32, 32)
		if err := tensor.Dequantize(tensor.MXFP4, got, block); err != nil {
			t.Fatal(err)
		}
		if got[0] != test.want && got[0] == got[0] {
			t.Errorf("scale %d: %v, want %v", test.scale, got[0], test.want)
		}
	}
}

func TestDequantizeRefuses(t *testing.T) {
	for _, row := range allDTypes {
		d := row.dtype
		for _, test := range []struct{ elems, bytes int }{
			{d.BlockLen(), d.BlockBytes() - 1},
			{d.BlockLen(), d.BlockBytes() + 1},
			{0, d.BlockBytes()},
			{2 * d.BlockLen(), d.BlockBytes()},
		} {
			dst := make([]float32, test.elems)
			if err := tensor.Dequantize(d, dst, make([]byte, test.bytes)); !errors.Is(err, tensor.ErrSize) {
				t.Errorf("%v: %d elements of %d bytes: %v, want an error that wraps ErrSize", d, test.elems, test.bytes, err)
			}
		}
		if err := tensor.Dequantize(d, nil, nil); err != nil {
			t.Errorf("%v: nothing of nothing: %v", d, err)
		}
		dst, src := make([]float32, 2*d.BlockLen()), make([]byte, 2*d.BlockBytes())
		if n := testing.AllocsPerRun(10, func() { _ = tensor.Dequantize(d, dst, src) }); n != 0 {
			t.Errorf("%v: %v allocations", d, n)
		}
	}
	if err := tensor.Dequantize(99, make([]float32, 1), make([]byte, 4)); !errors.Is(err, tensor.ErrDType) {
		t.Errorf("unknown format: %v", err)
	}
}

func FuzzDequantize(f *testing.F) {
	for _, row := range allDTypes {
		f.Add(uint8(row.dtype), make([]byte, row.bytes))
	}
	f.Fuzz(func(t *testing.T, d uint8, src []byte) {
		dtype := tensor.DType(d)
		dst := make([]float32, 1)
		if n := dtype.BlockBytes(); n > 0 {
			dst = make([]float32, len(src)/n*dtype.BlockLen())
		}
		err := tensor.Dequantize(dtype, dst, src)
		if whole := dtype.BlockBytes() > 0 && len(src)%dtype.BlockBytes() == 0; whole != (err == nil) {
			t.Fatalf("%d bytes of %v: %v", len(src), dtype, err)
		}
	})
}

func BenchmarkDequantize(b *testing.B) {
	const elems = 4096
	for _, row := range allDTypes[:tensor.F8_E4M3_32+1] {
		b.Run(fmt.Sprint(row.dtype), func(b *testing.B) {
			size, err := row.dtype.Size(elems)
			if err != nil {
				b.Fatal(err)
			}
			dst, src := make([]float32, elems), make([]byte, size)
			b.SetBytes(elems * 4)
			for b.Loop() {
				if err := tensor.Dequantize(row.dtype, dst, src); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

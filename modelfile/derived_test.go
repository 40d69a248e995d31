package modelfile_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// writeQuantised writes a folder with tensors and a config.json with this quantization_config.
func writeQuantised(t fataler, folder string, quantization any, tensors ...*tensor.Tensor) {
	t.Helper()
	config, err := json.Marshal(map[string]any{"model_type": "llama", "quantization_config": quantization})
	if err != nil {
		t.Fatal(err)
	}
	var weights bytes.Buffer
	if err := modelfile.WriteSafetensors(&weights, tensors); err != nil {
		t.Fatal(err)
	}
	writeTo(t, folder, "config.json", config)
	writeTo(t, folder, "model.safetensors", weights.Bytes())
}

// spread returns random weights.
func spread(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	w := make([]float32, n)
	for i := range w {
		w[i] = float32(rng.NormFloat64() / 8)
	}
	return w
}

// stored returns a weight in a layout: the tensors of the file, and the values that they encode.
func stored(l *modeltest.Layout, name string, rows, cols int) ([]*tensor.Tensor, []float32) {
	return l.Store(name, rows, cols, spread(uint64(rows+cols), rows*cols))
}

func plainTensor(name string, d tensor.DType, n int) *tensor.Tensor {
	return &tensor.Tensor{Name: name, DType: d, Shape: []int{n}, Data: make([]byte, n*d.BlockBytes())}
}

func opened(t *testing.T, path string) *modelfile.File {
	t.Helper()
	f, err := modelfile.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// Stacked experts in FP8 have a scale each.
func TestStackedFP8(t *testing.T) {
	l := modeltest.LayoutOf(t, "fp8 static")
	codes := &tensor.Tensor{Name: "mlp.experts.gate_up_proj", DType: tensor.F8_E4M3, Shape: []int{3, 8, 64}}
	scales := &tensor.Tensor{Name: codes.Name + "_scale_inv", DType: tensor.F32, Shape: []int{3, 1, 1}}
	var want []float32
	for e := range 3 {
		parts, values := l.Store("x.weight", 8, 64, spread(uint64(e), 8*64))
		for _, p := range parts {
			switch {
			case p.DType == tensor.F8_E4M3:
				codes.Data = append(codes.Data, p.Data...)
			case strings.Contains(p.Name, "weight_scale"):
				one, err := p.Float32s()
				if err != nil {
					t.Fatal(err)
				}
				scales.Data = binary.LittleEndian.AppendUint32(scales.Data, math.Float32bits(one[0]))
			}
		}
		want = append(want, values...)
	}
	dir := t.TempDir()
	writeQuantised(t, dir, l.Config, codes, scales, plainTensor(codes.Name+"_activation_scale", tensor.F32, 3))
	f := opened(t, dir)
	x, ok := f.Tensor(codes.Name)
	if !ok || len(f.Tensors()) != 1 || !slices.Equal(x.Shape, codes.Shape) {
		t.Fatalf("%d tensors, %v", len(f.Tensors()), x)
	}
	if got, err := x.Float32s(); err != nil || !slices.Equal(got, want) {
		t.Errorf("other values than those stored (%v)", err)
	}
	scales.Shape, scales.Data = []int{2, 1, 1}, scales.Data[:8]
	writeQuantised(t, dir, l.Config, codes, scales)
	if _, err := modelfile.Open(dir); !errors.Is(err, modelfile.ErrFormat) {
		t.Errorf("two scales of three matrices: %v", err)
	}
}

// Blocks of rows may begin anew in each of as many parts of a weight's rows as config.json has
// key/value heads.
func TestFP8Parts(t *testing.T) {
	const parts, rows, cols = 4, 48, 64
	l := modeltest.LayoutOf(t, "compressed block")
	of := map[string]any{"quant_method": "fp8", "weight_block_size": []int{32, 32}}
	codes := &tensor.Tensor{Name: "x.weight", DType: tensor.F8_E4M3, Shape: []int{parts * rows, cols}}
	scales := &tensor.Tensor{Name: "x.weight_scale", DType: tensor.BF16, Shape: []int{2 * parts, 2}}
	var want []float32
	for i := range parts {
		pair, values := l.Store("x.weight", rows, cols, spread(uint64(i), rows*cols))
		codes.Data, scales.Data, want = append(codes.Data, pair[0].Data...), append(scales.Data, pair[1].Data...), append(want, values...)
	}
	dir := t.TempDir()
	writeQuantised(t, dir, of, codes, scales)
	_ = refused(t, dir, modelfile.ErrFormat, "x.weight_scale", "scales of shape [8 2]")
	config, err := json.Marshal(map[string]any{"num_key_value_heads": parts, "quantization_config": of})
	if err != nil {
		t.Fatal(err)
	}
	writeTo(t, dir, "config.json", config)
	x, _ := opened(t, dir).Tensor("x.weight")
	if got, err := x.Float32s(); err != nil || !slices.Equal(got, want) {
		t.Errorf("other values than those stored (%v)", err)
	}
}

// Parts of weights become the weights that they encode, bit by bit, at the position of their main
// parts. Other tensors do not change.
func TestDerived(t *testing.T) {
	sizes := [][2]int{{8, 32}, {136, 96}, {264, 320}}
	for _, l := range modeltest.Layouts() {
		t.Run(l.Name, func(t *testing.T) {
			all := []*tensor.Tensor{plainTensor("lm_head.weight", tensor.F16, 64), plainTensor("model.norm.weight", tensor.F32, 8)}
			values, parts := map[string][]float32{}, map[string][]string{}
			shapes := sizes
			if l.DType == tensor.F8_E4M3_32 || strings.HasPrefix(l.Name, "packed") {
				shapes = append(slices.Clone(shapes), [2]int{13, 64}, [2]int{1, 32})
			}
			for i, size := range shapes {
				name := fmt.Sprintf("layers.%d.proj.weight", i)
				raw, v := stored(l, name, size[0], size[1])
				values[name], all = v, append(all, raw...)
				for _, p := range raw {
					parts[name] = append(parts[name], p.Name)
				}
			}
			dir := t.TempDir()
			writeQuantised(t, dir, l.Config, all...)
			f := opened(t, dir)
			var names []string
			for _, x := range f.Tensors() {
				names = append(names, x.Name)
				if same, ok := f.Tensor(x.Name); !ok || same != x {
					t.Errorf("%s is in the list and not by its name", x.Name)
				}
				want, derived := values[x.Name]
				if !derived {
					if x.Source != nil {
						t.Errorf("%s has a source", x.Name)
					}
					continue
				}
				size := shapes[strings.Index("01234", strings.Split(x.Name, ".")[1])]
				if x.DType != l.DType || x.Source == nil || !slices.Equal(x.Shape, size[:]) {
					t.Errorf("%s is %v %v, want %v %v", x.Name, x.DType, x.Shape, l.DType, size)
				}
				for _, p := range x.Source.Parts() {
					if _, ok := f.Tensor(p.Name); ok && p.Name != x.Name || !slices.Contains(parts[x.Name], p.Name) {
						t.Errorf("%s is made of %s, which is a tensor of the file, or none of its parts", x.Name, p.Name)
					}
				}
				got, err := x.Float32s()
				if err != nil {
					t.Fatal(err)
				}
				for i := range want {
					if got[i] != want[i] {
						t.Fatalf("%s: value %d is %v, want %v", x.Name, i, got[i], want[i])
					}
				}
			}
			slices.Sort(names)
			want := []string{"lm_head.weight", "model.norm.weight"}
			for name := range values {
				want = append(want, name)
			}
			slices.Sort(want)
			if diff := cmp.Diff(want, names); diff != "" {
				t.Errorf("tensors (-want +got):\n%s", diff)
			}
			for _, raw := range all {
				if _, ok := f.Tensor(raw.Name); ok != slices.Contains(want, raw.Name) {
					t.Errorf("%s is there: %v", raw.Name, ok)
				}
			}
		})
	}
}

// Derived weights have the position of their main parts.
func TestDerivedOrder(t *testing.T) {
	l := modeltest.Layouts()[0]
	raw, _ := stored(l, "b.weight", 32, 32)
	dir := t.TempDir()
	writeQuantised(t, dir, l.Config, append(raw, plainTensor("a.weight", tensor.F8_E5M2, 0), plainTensor("c.weight", tensor.BOOL, 1), plainTensor("d.weight", tensor.F64, 1))...)
	var names []string
	f, err := modelfile.Open(dir)
	if err == nil {
		t.Fatalf("numbers of F8_E5M2 without a scale: %v", f.Close())
	}
	writeQuantised(t, dir, l.Config, append(raw, plainTensor("c.weight", tensor.BOOL, 1), plainTensor("d.weight", tensor.F64, 1))...)
	for _, x := range opened(t, dir).Tensors() {
		names = append(names, x.Name)
	}
	if diff := cmp.Diff([]string{"d.weight", "b.weight", "c.weight"}, names); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
}

// The bytes of a row depend neither on the rows read with it nor on concurrent readers.
func TestDerivedRanges(t *testing.T) {
	const rows, cols = 392, 96
	for _, l := range modeltest.Layouts() {
		t.Run(l.Name, func(t *testing.T) {
			raw, _ := stored(l, "x.weight", rows, cols)
			dir := t.TempDir()
			writeQuantised(t, dir, l.Config, raw...)
			x, _ := opened(t, dir).Tensor("x.weight")
			size := x.RowBytes()
			whole := make([]byte, rows*size)
			for r := range rows {
				if err := x.ReadRows(whole[r*size:(r+1)*size], r, r+1); err != nil {
					t.Fatal(err)
				}
			}
			rapid.Check(t, func(t *rapid.T) {
				from := rapid.IntRange(0, rows).Draw(t, "slice")
				part := x.RowSlice(from, rows)
				lo := rapid.IntRange(0, rows-from).Draw(t, "lo")
				hi := rapid.IntRange(lo, rows-from).Draw(t, "hi")
				got := make([]byte, (hi-lo)*size)
				if err := part.ReadRows(got, lo, hi); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(got, whole[(from+lo)*size:(from+hi)*size]) {
					t.Fatalf("rows %d to %d of those from %d on differ from the same rows read one by one", lo, hi, from)
				}
			})
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					got := make([]byte, len(whole))
					for lo := 0; lo < rows; lo += 50 + i {
						hi := min(rows, lo+50+i)
						if err := x.ReadRows(got[lo*size:hi*size], lo, hi); err != nil {
							t.Error(err)
						}
					}
					if !bytes.Equal(got, whole) {
						t.Error("goroutines together read something else")
					}
				})
			}
			all.Wait()
		})
	}
}

// Opening a checkpoint computes no weights. It allocates only their descriptions.
func TestDerivedOpenAllocates(t *testing.T) {
	const rows, cols = 1024, 2048
	for _, name := range []string{"fp8 blocks", "gptq symmetric", "awq", "packed"} {
		l := modeltest.LayoutOf(t, name)
		raw, _ := stored(l, "x.weight", rows, cols)
		dir := t.TempDir()
		writeQuantised(t, dir, l.Config, raw...)
		f, n, err := openMeasured(dir)
		if err != nil {
			t.Fatal(err)
		}
		if n > maxHostileAlloc {
			t.Errorf("%s: opening a weight of %d bytes allocates %d", name, f.Size(), n)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A derived tensor has its bytes in a file that it is written to.
func TestWriteDerived(t *testing.T) {
	l := modeltest.LayoutOf(t, "awq")
	raw, _ := stored(l, "x.weight", 136, 96)
	dir := t.TempDir()
	writeQuantised(t, dir, l.Config, raw...)
	f := opened(t, dir)
	x, _ := f.Tensor("x.weight")
	want := make([]byte, x.Size())
	if err := x.ReadRows(want, 0, x.Rows()); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if err := modelfile.WriteGGUF(&file, nil, []*tensor.Tensor{x}); err != nil {
		t.Fatal(err)
	}
	again, _ := opened(t, writeTo(t, dir, "x.gguf", file.Bytes())).Tensor("x.weight")
	if again.DType != tensor.Q5_0 || !bytes.Equal(again.Data, want) {
		t.Errorf("%v of %d bytes, which differ: want %v of %d", again.DType, len(again.Data), tensor.Q5_0, len(want))
	}
	file.Reset()
	plain := &tensor.Tensor{Name: "y", DType: tensor.F16, Shape: []int{3, 2}, Data: []byte("abcdefghijkl")}
	if err := modelfile.WriteSafetensors(&file, []*tensor.Tensor{{Name: "y", DType: tensor.F16, Shape: []int{3, 2}, Source: rows{plain}}}); err != nil {
		t.Fatal(err)
	}
	again, _ = opened(t, writeTo(t, dir, "y.safetensors", file.Bytes())).Tensor("y")
	if !bytes.Equal(again.Data, plain.Data) {
		t.Errorf("%q, want %q", again.Data, plain.Data)
	}
	for _, d := range []*tensor.Tensor{{Name: "z", DType: tensor.F8_E4M3_32, Shape: []int{32}, Data: make([]byte, 36)}} {
		if err := modelfile.WriteGGUF(&file, nil, []*tensor.Tensor{d}); !errors.Is(err, modelfile.ErrUnsupported) {
			t.Errorf("%v in GGUF: %v", d.DType, err)
		}
		if err := modelfile.WriteSafetensors(&file, []*tensor.Tensor{d}); !errors.Is(err, modelfile.ErrUnsupported) {
			t.Errorf("%v in safetensors: %v", d.DType, err)
		}
	}
}

// rows is a tensor as a source of rows.
type rows struct{ *tensor.Tensor }

func (r rows) Parts() []*tensor.Tensor { return nil }

// No file may use the internal format in which FP8 values and scales are read.
func TestDerivedFormatInFile(t *testing.T) {
	header := `{"x":{"dtype":"F8_E4M3_32","shape":[32],"data_offsets":[0,36]}}`
	data := append([]byte{byte(len(header)), 0, 0, 0, 0, 0, 0, 0}, header...)
	path := writeTo(t, t.TempDir(), "x.safetensors", append(data, make([]byte, 36)...))
	f, err := modelfile.Open(path)
	if !errors.Is(err, modelfile.ErrUnsupported) {
		t.Errorf("%v", err)
		if err == nil {
			t.Error(f.Close())
		}
	}
}

// All parts of a derived tensor can be released and read again.
func TestReleaseTensor(t *testing.T) {
	l := modeltest.LayoutOf(t, "gptq")
	raw, values := stored(l, "x.weight", 512, 512)
	dir := t.TempDir()
	writeQuantised(t, dir, l.Config, append(raw, plainTensor("y", tensor.F32, 5000))...)
	f := opened(t, dir)
	for _, x := range f.Tensors() {
		f.ReleaseTensor(x)
	}
	x, _ := f.Tensor("x.weight")
	f.ReleaseTensor(x.RowSlice(3, 9))
	got, err := x.Float32s()
	if err != nil || !slices.Equal(got, values) {
		t.Errorf("the values have changed; %v", err)
	}
}

func BenchmarkReadRows(b *testing.B) {
	const n, k, step = 4096, 4096, 128
	for _, name := range []string{"fp8 blocks", "compressed channel", "fp8 static", "gptq symmetric", "gptq", "awq symmetric", "awq", "packed symmetric", "packed"} {
		b.Run(strings.ReplaceAll(name, " ", "-"), func(b *testing.B) {
			l := modeltest.LayoutOf(b, name)
			raw, _ := stored(l, "x.weight", n, k)
			dir := b.TempDir()
			writeQuantised(b, dir, l.Config, raw...)
			f, err := modelfile.Open(dir)
			if err != nil {
				b.Fatal(err)
			}
			x, _ := f.Tensor("x.weight")
			dst := make([]byte, step*x.RowBytes())
			b.SetBytes(int64(x.Size()))
			for b.Loop() {
				for lo := 0; lo < n; lo += step {
					if err := x.ReadRows(dst, lo, lo+step); err != nil {
						b.Fatal(err)
					}
				}
			}
			if err := f.Close(); err != nil {
				b.Fatal(err)
			}
		})
	}
}

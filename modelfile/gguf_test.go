package modelfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// allValues has a value of every GGUF type, and an array of each.
var allValues = []modelfile.KeyValue{
	{Key: "u8", Value: uint8(math.MaxUint8)},
	{Key: "i8", Value: int8(math.MinInt8)},
	{Key: "u16", Value: uint16(math.MaxUint16)},
	{Key: "i16", Value: int16(math.MinInt16)},
	{Key: "u32", Value: uint32(math.MaxUint32)},
	{Key: "i32", Value: int32(math.MinInt32)},
	{Key: "u64", Value: uint64(math.MaxUint64)},
	{Key: "i64", Value: int64(math.MinInt64)},
	{Key: "f32", Value: float32(1.5)},
	{Key: "f64", Value: 0.1},
	{Key: "false", Value: false},
	{Key: "true", Value: true},
	{Key: "string", Value: "text\x00\xff"}, // bytes are kept
	{Key: "empty", Value: ""},
	{Key: "[]u8", Value: []uint8{0, 255}},
	{Key: "[]i8", Value: []int8{-1}},
	{Key: "[]u16", Value: []uint16{1, 2, 3}},
	{Key: "[]i16", Value: []int16{-300}},
	{Key: "[]u32", Value: []uint32{1 << 31}},
	{Key: "[]i32", Value: []int32{-1, 1}},
	{Key: "[]u64", Value: []uint64{1 << 63}},
	{Key: "[]i64", Value: []int64{-1 << 63}},
	{Key: "[]f32", Value: []float32{-0.5, 2}},
	{Key: "[]f64", Value: []float64{1e300}},
	{Key: "[]bool", Value: []bool{true, false}},
	{Key: "[]string", Value: []string{"a", "", "ccc"}},
	{Key: "[]string of none", Value: []string{}},
	{Key: "nested", Value: []any{[]uint8{1}, []string{"x", "y"}, []any{[]bool{true}, []any{}}}},
}

// smallTensors returns a few tensors whose sizes need padding.
func smallTensors() []*tensor.Tensor {
	fill := func(n int) []byte {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i * 7)
		}
		return b
	}
	return []*tensor.Tensor{
		{Name: "token_embd.weight", DType: tensor.F32, Shape: []int{3, 5}, Data: fill(60)},
		{Name: "blk.0.attn_q.weight", DType: tensor.Q8_0, Shape: []int{2, 32}, Data: fill(68)},
		{Name: "blk.0.ffn_up_exps.weight", DType: tensor.F16, Shape: []int{2, 1, 3, 2}, Data: fill(24)},
		{Name: "scalar", DType: tensor.I32, Shape: []int{}, Data: fill(4)},
	}
}

func ggufBytes(t testing.TB, meta []modelfile.KeyValue, tensors []*tensor.Tensor) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := modelfile.WriteGGUF(&b, meta, tensors); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// write writes data to a new file and returns its path.
func write(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t testing.TB, path string) *modelfile.File {
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

// sameTensors compares names, formats, shapes and bytes.
func sameTensors(t *testing.T, got, want []*tensor.Tensor) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tensors (-want +got):\n%s", diff)
	}
}

func TestGGUFRoundTrip(t *testing.T) {
	for _, alignment := range []uint32{0, 1, 2, 4, 8, 16, 24, 32, 64, 4096} {
		meta := allValues
		if alignment > 0 {
			meta = append([]modelfile.KeyValue{{Key: "general.alignment", Value: alignment}}, meta...)
		}
		data := ggufBytes(t, meta, smallTensors())
		path := write(t, "model.gguf", data)
		f := open(t, path)
		if f.Format() != modelfile.GGUF || f.Path() != path || f.Size() != int64(len(data)) {
			t.Errorf("%v %s of %d bytes, want GGUF %s of %d", f.Format(), f.Path(), f.Size(), path, len(data))
		}
		var got []modelfile.KeyValue
		for _, key := range f.Meta().Keys() {
			v, ok := f.Meta().Value(key)
			if !ok {
				t.Errorf("key %s has no value", key)
			}
			got = append(got, modelfile.KeyValue{Key: key, Value: v})
		}
		if diff := cmp.Diff(meta, got); diff != "" {
			t.Errorf("metadata with alignment %d (-want +got):\n%s", alignment, diff)
		}
		sameTensors(t, f.Tensors(), smallTensors())
		for _, want := range smallTensors() {
			if got, ok := f.Tensor(want.Name); !ok || got.Name != want.Name {
				t.Errorf("Tensor(%q) = %v, %v", want.Name, got, ok)
			}
		}
		if x, ok := f.Tensor("none"); ok || x != nil {
			t.Errorf(`Tensor("none") = %v, %v`, x, ok)
		}
	}
}

func TestGGUFVersions(t *testing.T) {
	data := ggufBytes(t, allValues, smallTensors())
	for _, version := range []uint32{2, 3} {
		binary.LittleEndian.PutUint32(data[4:], version)
		sameTensors(t, open(t, write(t, "model.gguf", data)).Tensors(), smallTensors())
	}
	for _, test := range []struct {
		version uint32
		want    string
	}{
		{0, "version 0"},
		{1, "version 1"},
		{4, "version 4"},
		{3 << 24, "version 3 in big-endian order"},
	} {
		binary.LittleEndian.PutUint32(data[4:], test.version)
		path := write(t, "model.gguf", data)
		_, err := modelfile.Open(path)
		wantError(t, err, modelfile.ErrUnsupported, path, test.want)
	}
}

func TestGGUFWithoutTensors(t *testing.T) {
	meta := append(slices.Clone(allValues), modelfile.KeyValue{Key: "last", Value: uint8(1)})
	data := ggufBytes(t, meta, nil)
	// With the padding before the data, and without it.
	for _, data := range [][]byte{data, bytes.TrimRight(data, "\x00")} {
		f := open(t, write(t, "vocabulary.gguf", data))
		if len(f.Tensors()) != 0 || len(f.Meta().Keys()) != len(meta) {
			t.Errorf("%d tensors and %d keys, want 0 and %d", len(f.Tensors()), len(f.Meta().Keys()), len(meta))
		}
	}
}

// wantError checks that err is of this kind and contains all of parts.
func wantError(t *testing.T, err, kind error, parts ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Errorf("error %v, want one that wraps %q", err, kind)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not name %q", err, part)
		}
	}
}

// A rawGGUF builds files that the writer refuses to write.
type rawGGUF struct{ b []byte }

func newRawGGUF(tensors, pairs uint64) *rawGGUF {
	r := &rawGGUF{b: []byte("GGUF\x03\x00\x00\x00")}
	return r.u64(tensors).u64(pairs)
}

func (r *rawGGUF) u32(v uint32) *rawGGUF {
	r.b = binary.LittleEndian.AppendUint32(r.b, v)
	return r
}

func (r *rawGGUF) u64(v uint64) *rawGGUF {
	r.b = binary.LittleEndian.AppendUint64(r.b, v)
	return r
}

func (r *rawGGUF) string(s string) *rawGGUF {
	r.u64(uint64(len(s)))
	r.b = append(r.b, s...)
	return r
}

func (r *rawGGUF) bytes(b ...byte) *rawGGUF {
	r.b = append(r.b, b...)
	return r
}

// tensor adds a description. dims are in the file's order, innermost first.
func (r *rawGGUF) tensor(name string, typ uint32, offset uint64, dims ...uint64) *rawGGUF {
	r.string(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r.u64(d)
	}
	return r.u32(typ).u64(offset)
}

// data pads to 32 bytes and adds n bytes of tensor data.
func (r *rawGGUF) data(n int) []byte {
	for len(r.b)%32 != 0 {
		r.b = append(r.b, 0)
	}
	return append(r.b, make([]byte, n)...)
}

// The ids of ggml's types (enum ggml_type in ggml.h) that a format corresponds to.
func TestGGUFTypes(t *testing.T) {
	for id, want := range map[uint32]tensor.DType{
		0: tensor.F32, 1: tensor.F16, 2: tensor.Q4_0, 3: tensor.Q4_1, 6: tensor.Q5_0, 7: tensor.Q5_1, 8: tensor.Q8_0,
		10: tensor.Q2_K, 11: tensor.Q3_K, 12: tensor.Q4_K, 13: tensor.Q5_K, 14: tensor.Q6_K,
		16: tensor.IQ2_XXS, 17: tensor.IQ2_XS, 18: tensor.IQ3_XXS, 19: tensor.IQ1_S, 20: tensor.IQ4_NL, 21: tensor.IQ3_S, 22: tensor.IQ2_S, 23: tensor.IQ4_XS,
		24: tensor.I8, 25: tensor.I16, 26: tensor.I32, 27: tensor.I64, 28: tensor.F64, 29: tensor.IQ1_M, 30: tensor.BF16,
		34: tensor.TQ1_0, 35: tensor.TQ2_0, 39: tensor.MXFP4,
	} {
		size, err := want.Size(256)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "model.gguf")
		if err := os.WriteFile(path, newRawGGUF(1, 0).tensor("w", id, 0, 256).data((size+31)&^31), 0o600); err != nil {
			t.Fatal(err)
		}
		f, err := modelfile.Open(path)
		if err != nil {
			t.Errorf("type %d: %v", id, err)
			continue
		}
		if got := f.Tensors()[0]; got.DType != want || len(got.Data) != size {
			t.Errorf("type %d is %v of %d bytes, want %v of %d", id, got.DType, len(got.Data), want, size)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestGGUFThatLies(t *testing.T) {
	const f32, q4_0, q8k, i8 = 0, 2, 15, 24
	alignment := func(v uint32) []byte {
		return newRawGGUF(1, 1).string("general.alignment").u32(4).u32(v).tensor("w", i8, 0, 4).data(64)
	}
	nested := newRawGGUF(0, 1).string("deep").u32(9)
	for range 100 {
		nested.u32(9).u64(1)
	}
	nested.u32(0).u64(0)
	for _, test := range []struct {
		name string
		data []byte
		kind error
		want []string
	}{
		{"more tensors than bytes", newRawGGUF(1<<60, 0).data(0), modelfile.ErrFormat, []string{"1152921504606846976 tensors"}},
		{"more pairs than bytes", newRawGGUF(0, math.MaxUint64).data(0), modelfile.ErrFormat, []string{"18446744073709551615 key/value pairs"}},
		{"long key", newRawGGUF(0, 1).u64(1 << 40).data(64), modelfile.ErrFormat, []string{"1099511627776 bytes of text"}},
		{"long string", newRawGGUF(0, 1).string("k").u32(8).u64(1 << 63).data(64), modelfile.ErrFormat, []string{`"k"`, "9223372036854775808"}},
		{"long array", newRawGGUF(0, 1).string("k").u32(9).u32(10).u64(1 << 61).data(64), modelfile.ErrFormat, []string{`"k"`, "2305843009213693952 elements"}},
		{"long array of strings", newRawGGUF(0, 1).string("k").u32(9).u32(8).u64(1 << 61).data(64), modelfile.ErrFormat, []string{`"k"`, "strings"}},
		{"long array of arrays", newRawGGUF(0, 1).string("k").u32(9).u32(9).u64(1 << 61).data(64), modelfile.ErrFormat, []string{`"k"`, "arrays"}},
		{"deep arrays", nested.data(64), modelfile.ErrFormat, []string{`"deep"`, "more than 16 deep"}},
		{"unknown value type", newRawGGUF(0, 1).string("k").u32(13).data(64), modelfile.ErrFormat, []string{`"k"`, "type 13"}},
		{"unknown element type", newRawGGUF(0, 1).string("k").u32(9).u32(77).u64(1).data(64), modelfile.ErrFormat, []string{`"k"`, "type 77"}},
		{"truth value 2", newRawGGUF(0, 1).string("k").u32(7).bytes(2).data(64), modelfile.ErrFormat, []string{`"k"`, "a bool of 2"}},
		{"key twice", newRawGGUF(0, 2).string("k").u32(0).bytes(1).string("k").u32(0).bytes(1).data(64), modelfile.ErrFormat, []string{`"k"`, "twice"}},
		{"tensor twice", newRawGGUF(2, 0).tensor("w", i8, 0, 1).tensor("w", i8, 32, 1).data(64), modelfile.ErrFormat, []string{`"w"`, "twice"}},
		{"alignment 0", alignment(0), modelfile.ErrFormat, []string{"general.alignment", "alignment 0"}},
		{"alignment 12", alignment(12), modelfile.ErrFormat, []string{"general.alignment", "alignment 12"}},
		{"alignment of 2 GiB", alignment(1 << 31), modelfile.ErrFormat, []string{"general.alignment", "2147483648"}},
		{"alignment beyond the file", alignment(1 << 30), modelfile.ErrFormat, []string{`"w"`, "beyond"}},
		{"alignment as string", newRawGGUF(0, 1).string("general.alignment").u32(8).string("32").data(0), modelfile.ErrFormat, []string{"general.alignment", "string"}},
		{"five dimensions", newRawGGUF(1, 0).tensor("w", i8, 0, 1, 1, 1, 1, 1).data(64), modelfile.ErrFormat, []string{`"w"`, "5 dimensions"}},
		{"billions of dimensions", newRawGGUF(1, 0).string("w").u32(math.MaxUint32).data(64), modelfile.ErrFormat, []string{`"w"`, "4294967295 dimensions"}},
		{"dimension 0", newRawGGUF(1, 0).tensor("w", i8, 0, 4, 0).data(64), modelfile.ErrFormat, []string{`"w"`, "dimension 1 of 0"}},
		{"dimension beyond int", newRawGGUF(1, 0).tensor("w", i8, 0, 1<<63).data(64), modelfile.ErrFormat, []string{`"w"`, "9223372036854775808"}},
		{"elements beyond int", newRawGGUF(1, 0).tensor("w", i8, 0, 1<<40, 1<<40).data(64), modelfile.ErrFormat, []string{`"w"`, "1099511627776"}},
		{"bytes beyond int", newRawGGUF(1, 0).tensor("w", f32, 0, 1<<62).data(64), modelfile.ErrFormat, []string{`"w"`}},
		{"row of half a block", newRawGGUF(1, 0).tensor("w", q4_0, 0, 16, 4).data(64), modelfile.ErrFormat, []string{`"w"`, "16", "32", "Q4_0"}},
		{"scalar of a block format", newRawGGUF(1, 0).tensor("w", q4_0, 0).data(64), modelfile.ErrFormat, []string{`"w"`, "Q4_0"}},
		{"format not read", newRawGGUF(1, 0).tensor("w", q8k, 0, 256).data(320), modelfile.ErrUnsupported, []string{`"w"`, "Q8_K"}},
		{"format of the past", newRawGGUF(1, 0).tensor("w", 31, 0, 256).data(512), modelfile.ErrUnsupported, []string{`"w"`, "Q4_0_4_4"}},
		{"unknown format", newRawGGUF(1, 0).tensor("w", 1234567, 0, 256).data(96), modelfile.ErrUnsupported, []string{`"w"`, "1234567"}},
		{"offset out of line", newRawGGUF(1, 0).tensor("w", i8, 8, 4).data(64), modelfile.ErrFormat, []string{`"w"`, "offset 8", "32"}},
		{"offset outside", newRawGGUF(1, 0).tensor("w", i8, 96, 1).data(64), modelfile.ErrFormat, []string{`"w"`, "96", "64"}},
		{"offset far outside", newRawGGUF(1, 0).tensor("w", i8, math.MaxUint64-31, 1).data(64), modelfile.ErrFormat, []string{`"w"`, "18446744073709551584"}},
		{"data reaches outside", newRawGGUF(1, 0).tensor("w", i8, 32, 33).data(64), modelfile.ErrFormat, []string{`"w"`, "33 bytes", "64"}},
		{"overlap", newRawGGUF(2, 0).tensor("w", i8, 32, 8).tensor("v", i8, 0, 33).data(64), modelfile.ErrFormat, []string{`"w"`, `"v"`, "overlaps"}},
		{"same place", newRawGGUF(2, 0).tensor("v", i8, 0, 8).tensor("w", i8, 0, 8).data(64), modelfile.ErrFormat, []string{`"w"`, `"v"`, "overlaps"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := write(t, "model.gguf", test.data)
			_, err := modelfile.Open(path)
			wantError(t, err, test.kind, append(test.want, path)...)
			var formatError *modelfile.FormatError
			if !errors.As(err, &formatError) || formatError.File != path {
				t.Errorf("error %#v is no FormatError of the file", err)
			}
		})
	}
}

// Tensors are in the order of their data, whatever the order of their descriptions. Gaps between
// them are allowed.
func TestGGUFOrderAndGaps(t *testing.T) {
	data := newRawGGUF(2, 0).tensor("b", 24, 64, 2).tensor("a", 24, 0, 3).data(66)
	copy(data[len(data)-66:], "aaa")
	copy(data[len(data)-2:], "bb")
	sameTensors(t, open(t, write(t, "model.gguf", data)).Tensors(), []*tensor.Tensor{
		{Name: "a", DType: tensor.I8, Shape: []int{3}, Data: []byte("aaa")},
		{Name: "b", DType: tensor.I8, Shape: []int{2}, Data: []byte("bb")},
	})
}

func TestWriteGGUFRefuses(t *testing.T) {
	one := func(d tensor.DType, n int, shape ...int) []*tensor.Tensor {
		return []*tensor.Tensor{{Name: "w", DType: d, Shape: shape, Data: make([]byte, n)}}
	}
	deep := any([]uint8{1})
	for range 16 {
		deep = []any{deep}
	}
	for _, test := range []struct {
		name    string
		meta    []modelfile.KeyValue
		tensors []*tensor.Tensor
	}{
		{"int", []modelfile.KeyValue{{Key: "k", Value: 1}}, nil},
		{"nil", []modelfile.KeyValue{{Key: "k"}}, nil},
		{"map", []modelfile.KeyValue{{Key: "k", Value: map[string]int{}}}, nil},
		{"scalar in []any", []modelfile.KeyValue{{Key: "k", Value: []any{uint8(1)}}}, nil},
		{"deep arrays", []modelfile.KeyValue{{Key: "k", Value: deep}}, nil},
		{"key twice", []modelfile.KeyValue{{Key: "k", Value: true}, {Key: "k", Value: true}}, nil},
		{"alignment 12", []modelfile.KeyValue{{Key: "general.alignment", Value: uint32(12)}}, nil},
		{"alignment of another type", []modelfile.KeyValue{{Key: "general.alignment", Value: int32(32)}}, nil},
		{"key that is not UTF-8", []modelfile.KeyValue{{Key: "\xff", Value: true}}, nil},
		{"key that is not printable", []modelfile.KeyValue{{Key: "k\x00", Value: true}}, nil},
		{"name that is not printable", nil, []*tensor.Tensor{{Name: "\x1b[2J", DType: tensor.I8, Shape: []int{1}, Data: []byte{0}}}},
		{"tensor twice", nil, append(one(tensor.I8, 1, 1), one(tensor.I8, 1, 1)...)},
		{"bytes missing", nil, one(tensor.I8, 1, 2)},
		{"no elements", nil, one(tensor.I8, 0, 0)},
		{"five dimensions", nil, one(tensor.I8, 1, 1, 1, 1, 1, 1)},
		{"format that ggml does not have", nil, one(tensor.U16, 2, 1)},
	} {
		var b bytes.Buffer
		if err := modelfile.WriteGGUF(&b, test.meta, test.tensors); err == nil {
			t.Errorf("%s: no error", test.name)
		}
		if b.Len() != 0 {
			t.Errorf("%s: %d bytes were written", test.name, b.Len())
		}
	}
}

// The deepest arrays that can be written can be read.
func TestGGUFDeepestArrays(t *testing.T) {
	deep := any([]uint8{1})
	for range 15 {
		deep = []any{deep}
	}
	f := open(t, write(t, "deep.gguf", ggufBytes(t, []modelfile.KeyValue{{Key: "k", Value: deep}}, nil)))
	got, _ := f.Meta().Value("k")
	if diff := cmp.Diff(deep, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Metadata is a copy that outlives the mapping.
func TestMetaOutlivesFile(t *testing.T) {
	f, err := modelfile.Open(write(t, "model.gguf", ggufBytes(t, allValues, smallTensors())))
	if err != nil {
		t.Fatal(err)
	}
	before := describe(f.Meta())
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, describe(f.Meta())); diff != "" {
		t.Errorf("(-open +closed):\n%s", diff)
	}
}

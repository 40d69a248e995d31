package modelfile_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// rawSafetensors returns a file with this header and n bytes of data.
func rawSafetensors(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	b = append(b, header...)
	return append(b, make([]byte, n)...)
}

func TestSafetensorsRoundTrip(t *testing.T) {
	plain := []tensor.DType{
		tensor.F32, tensor.F16, tensor.BF16, tensor.F8_E4M3, tensor.F8_E5M2, tensor.F64, tensor.I8, tensor.I16, tensor.I32, tensor.I64,
		tensor.U8, tensor.U16, tensor.U32, tensor.U64, tensor.BOOL, tensor.F8_E8M0,
	}
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		printable := rapid.StringOf(rapid.RuneFrom([]rune("\"\\/ :é😀"), unicode.GraphicRanges...))
		names := rapid.SliceOfNDistinct(printable, 0, 5, rapid.ID).Draw(t, "names")
		var tensors []*tensor.Tensor
		for _, name := range names {
			d := rapid.SampledFrom(plain).Draw(t, "dtype")
			shape := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 5).Draw(t, "shape")
			elems, err := tensor.Elems(shape)
			if err != nil {
				t.Fatal(err)
			}
			size, err := d.Size(elems)
			if err != nil {
				t.Fatal(err)
			}
			data := rapid.SliceOfN(rapid.Byte(), size, size).Draw(t, "data")
			tensors = append(tensors, &tensor.Tensor{Name: name, DType: d, Shape: shape, Data: data})
		}
		var b bytes.Buffer
		if err := modelfile.WriteSafetensors(&b, tensors); err != nil {
			t.Fatal(err)
		}
		if n := binary.LittleEndian.Uint64(b.Bytes()); n%8 != 0 {
			t.Fatalf("the header has %d bytes, which leaves the data unaligned", n)
		}
		path := writeTo(t, folder, "model.safetensors", b.Bytes())
		f, err := modelfile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close() //nolint:errcheck // only read
		if f.Format() != modelfile.Safetensors || f.Size() != int64(b.Len()) {
			t.Fatalf("%v of %d bytes", f.Format(), f.Size())
		}
		if len(f.Tensors()) != len(tensors) {
			t.Fatalf("%d tensors, want %d", len(f.Tensors()), len(tensors))
		}
		for _, want := range tensors {
			got, ok := f.Tensor(want.Name)
			if !ok {
				t.Fatalf("no tensor %q", want.Name)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Fatalf("tensor %q (-want +got):\n%s", want.Name, diff)
			}
		}
	})
}

// A header as the reference implementation writes it, but with members in any order, white space,
// metadata, unknown members, and escapes in names.
func TestSafetensorsHeader(t *testing.T) {
	data := rawSafetensors(` {"__metadata__": {"format":"pt"},
		"b\u00e9\ud83d\ude00": {"data_offsets":[4,10], "shape": [ 3 ], "dtype":"BF16", "new": [{"x": null}]},
		"none": {"dtype":"F32","shape":[0,7],"data_offsets":[4,4]},
		"scalar": {"dtype":"F32","shape":[],"data_offsets":[0,4]}}   `[1:], 10)
	sameTensors(t, open(t, write(t, "model.safetensors", data)).Tensors(), []*tensor.Tensor{
		{Name: "scalar", DType: tensor.F32, Shape: []int{}, Data: make([]byte, 4)},
		{Name: "none", DType: tensor.F32, Shape: []int{0, 7}, Data: []byte{}},
		{Name: "bé😀", DType: tensor.BF16, Shape: []int{3}, Data: make([]byte, 6)},
	})
	f := open(t, write(t, "empty.safetensors", rawSafetensors("{}", 0)))
	if len(f.Tensors()) != 0 {
		t.Errorf("%d tensors in an empty file", len(f.Tensors()))
	}
}

func TestSafetensorsThatLies(t *testing.T) {
	entry := func(dtype, shape, offsets string) string {
		return `{"w":{"dtype":"` + dtype + `","shape":` + shape + `,"data_offsets":` + offsets + `}}`
	}
	huge := rawSafetensors("{}", 64)
	binary.LittleEndian.PutUint64(huge, math.MaxUint64)
	long := rawSafetensors("{}", 64)
	binary.LittleEndian.PutUint64(long, 67)
	for _, test := range []struct {
		name string
		data []byte
		kind error
		want []string
	}{
		{"header of 2^64-1 bytes", huge, modelfile.ErrFormat, []string{"18446744073709551615"}},
		{"header longer than the file", long, modelfile.ErrFormat, []string{"67 bytes", "66"}},
		{"no object", rawSafetensors("[]", 0), modelfile.ErrFormat, []string{`'['`}},
		{"not JSON", rawSafetensors(`{"w"}`, 0), modelfile.ErrFormat, []string{"at byte 12"}},
		{"text after the object", rawSafetensors(`{} x`, 0), modelfile.ErrFormat, []string{"'x'"}},
		{"entry is a list", rawSafetensors(`{"w":[]}`, 0), modelfile.ErrFormat, []string{"'['"}},
		{"name twice", rawSafetensors(`{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}`, 0),
			modelfile.ErrFormat, []string{`"w"`, "twice"}},
		{"shape twice", rawSafetensors(`{"w":{"dtype":"U8","shape":[0],"shape":[0],"data_offsets":[0,0]}}`, 0), modelfile.ErrFormat, []string{`"w"`, "shape appears twice"}},
		{"no dtype", rawSafetensors(`{"w":{"shape":[0],"data_offsets":[0,0]}}`, 0), modelfile.ErrFormat, []string{`"w"`, "dtype is missing"}},
		{"no shape", rawSafetensors(`{"w":{"dtype":"U8","data_offsets":[0,0]}}`, 0), modelfile.ErrFormat, []string{`"w"`, "shape is missing"}},
		{"no offsets", rawSafetensors(`{"w":{"dtype":"U8","shape":[0]}}`, 0), modelfile.ErrFormat, []string{`"w"`, "data_offsets is missing"}},
		{"dtype not read", rawSafetensors(entry("F4", "[8]", "[0,4]"), 4), modelfile.ErrUnsupported, []string{`"w"`, "F4"}},
		{"dtype of another format", rawSafetensors(entry("Q8_0", "[32]", "[0,34]"), 34), modelfile.ErrUnsupported, []string{`"w"`, "Q8_0"}},
		{"dtype in small letters", rawSafetensors(entry("f32", "[1]", "[0,4]"), 4), modelfile.ErrUnsupported, []string{`"w"`, "f32"}},
		{"negative dimension", rawSafetensors(entry("U8", "[-4]", "[0,4]"), 4), modelfile.ErrFormat, []string{`"w"`, "-4"}},
		{"dimension with a fraction", rawSafetensors(entry("U8", "[4.0]", "[0,4]"), 4), modelfile.ErrFormat, []string{`"w"`}},
		{"dimension beyond int", rawSafetensors(entry("U8", "[18446744073709551615]", "[0,4]"), 4), modelfile.ErrFormat, []string{`"w"`}},
		{"elements beyond int", rawSafetensors(entry("U8", "[4294967296,4294967296]", "[0,4]"), 4), modelfile.ErrFormat, []string{`"w"`, "4294967296"}},
		{"bytes beyond int", rawSafetensors(entry("F64", "[4611686018427387904]", "[0,4]"), 4), modelfile.ErrFormat, []string{`"w"`}},
		{"three offsets", rawSafetensors(entry("U8", "[4]", "[0,4,4]"), 4), modelfile.ErrFormat, []string{`"w"`, "3 numbers"}},
		{"offsets backwards", rawSafetensors(entry("U8", "[4]", "[4,0]"), 4), modelfile.ErrFormat, []string{`"w"`, "4 to 0"}},
		{"offsets outside", rawSafetensors(entry("U8", "[4]", "[0,4]"), 3), modelfile.ErrFormat, []string{`"w"`, "0 to 4", "3 bytes"}},
		{"size unlike shape", rawSafetensors(entry("F32", "[2]", "[0,4]"), 4), modelfile.ErrFormat, []string{`"w"`, "takes 8 bytes"}},
		{"gap at the start", rawSafetensors(entry("U8", "[4]", "[2,6]"), 6), modelfile.ErrFormat, []string{`"w"`, "2 bytes"}},
		{"rest at the end", rawSafetensors(entry("U8", "[4]", "[0,4]"), 6), modelfile.ErrFormat, []string{"last 2 bytes"}},
		{"overlap", rawSafetensors(`{"v":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"w":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}`, 7),
			modelfile.ErrFormat, []string{`"w"`, `"v"`, "overlaps"}},
		{"deep values", rawSafetensors(`{"__metadata__":`+strings.Repeat("[", 1<<16), 0), modelfile.ErrFormat, []string{"deep"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := write(t, "model.safetensors", test.data)
			_, err := modelfile.Open(path)
			wantError(t, err, test.kind, append(test.want, path)...)
			var formatError *modelfile.FormatError
			if !errors.As(err, &formatError) || formatError.File != path {
				t.Errorf("error %#v is no FormatError of the file", err)
			}
		})
	}
}

func TestWriteSafetensorsRefuses(t *testing.T) {
	for name, tensors := range map[string][]*tensor.Tensor{
		"blocks":        {{Name: "w", DType: tensor.Q8_0, Shape: []int{32}, Data: make([]byte, 34)}},
		"bytes missing": {{Name: "w", DType: tensor.U8, Shape: []int{2}, Data: make([]byte, 1)}},
		"name twice":    {{Name: "w", DType: tensor.U8, Shape: []int{0}}, {Name: "w", DType: tensor.F32, Shape: []int{0}}},
		"reserved name": {{Name: "__metadata__", DType: tensor.U8, Shape: []int{0}}},
		"not printable": {{Name: "\x1b[2J", DType: tensor.U8, Shape: []int{0}}},
		"not UTF-8":     {{Name: "\xff", DType: tensor.U8, Shape: []int{0}}},
	} {
		var b bytes.Buffer
		if err := modelfile.WriteSafetensors(&b, tensors); err == nil {
			t.Errorf("%s: no error", name)
		}
		if b.Len() != 0 {
			t.Errorf("%s: %d bytes were written", name, b.Len())
		}
	}
}

package tensor_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/realizar/realizar/tensor"
)

// allDTypes are the formats in their order. A block's elements and bytes are those of
// ggml-common.h, if it has the format.
var allDTypes = []struct {
	dtype        tensor.DType
	name         string
	elems, bytes int
}{
	{tensor.F32, "F32", 1, 4},
	{tensor.F16, "F16", 1, 2},
	{tensor.BF16, "BF16", 1, 2},
	{tensor.Q4_0, "Q4_0", 32, 18},
	{tensor.Q4_1, "Q4_1", 32, 20},
	{tensor.Q5_0, "Q5_0", 32, 22},
	{tensor.Q5_1, "Q5_1", 32, 24},
	{tensor.Q8_0, "Q8_0", 32, 34},
	{tensor.Q2_K, "Q2_K", 256, 84},
	{tensor.Q3_K, "Q3_K", 256, 110},
	{tensor.Q4_K, "Q4_K", 256, 144},
	{tensor.Q5_K, "Q5_K", 256, 176},
	{tensor.Q6_K, "Q6_K", 256, 210},
	{tensor.IQ4_NL, "IQ4_NL", 32, 18},
	{tensor.IQ4_XS, "IQ4_XS", 256, 136},
	{tensor.MXFP4, "MXFP4", 32, 17},
	{tensor.IQ1_S, "IQ1_S", 256, 50},
	{tensor.IQ1_M, "IQ1_M", 256, 56},
	{tensor.IQ2_XXS, "IQ2_XXS", 256, 66},
	{tensor.IQ2_XS, "IQ2_XS", 256, 74},
	{tensor.IQ2_S, "IQ2_S", 256, 82},
	{tensor.IQ3_XXS, "IQ3_XXS", 256, 98},
	{tensor.IQ3_S, "IQ3_S", 256, 110},
	{tensor.TQ1_0, "TQ1_0", 256, 54},
	{tensor.TQ2_0, "TQ2_0", 256, 66},
	{tensor.F8_E4M3, "F8_E4M3", 1, 1},
	{tensor.F8_E5M2, "F8_E5M2", 1, 1},
	{tensor.F64, "F64", 1, 8},
	{tensor.F8_E4M3_32, "F8_E4M3_32", 32, 36},
	{tensor.I8, "I8", 1, 1},
	{tensor.I16, "I16", 1, 2},
	{tensor.I32, "I32", 1, 4},
	{tensor.I64, "I64", 1, 8},
	{tensor.U8, "U8", 1, 1},
	{tensor.U16, "U16", 1, 2},
	{tensor.U32, "U32", 1, 4},
	{tensor.U64, "U64", 1, 8},
	{tensor.BOOL, "BOOL", 1, 1},
	{tensor.F8_E8M0, "F8_E8M0", 1, 1},
}

func TestDTypeTable(t *testing.T) {
	for i, want := range allDTypes {
		d := want.dtype
		if int(d) != i {
			t.Errorf("%s is number %d, want %d", want.name, d, i)
		}
		if d.String() != want.name || d.BlockLen() != want.elems || d.BlockBytes() != want.bytes {
			t.Errorf("number %d is %v with blocks of %d elements in %d bytes, want %s, %d in %d",
				i, d, d.BlockLen(), d.BlockBytes(), want.name, want.elems, want.bytes)
		}
		if d.Quantized() != (want.elems > 1) {
			t.Errorf("%v.Quantized() = %v", d, d.Quantized())
		}
		for _, name := range []string{want.name, strings.ToLower(want.name)} {
			if got, err := tensor.ParseDType(name); err != nil || got != d {
				t.Errorf("ParseDType(%q) = %v, %v", name, got, err)
			}
		}
		size, err := d.Size(3 * want.elems)
		if err != nil || size != 3*want.bytes {
			t.Errorf("%v.Size(%d) = %d, %v, want %d", d, 3*want.elems, size, err, 3*want.bytes)
		}
		if size, err := d.Size(0); err != nil || size != 0 {
			t.Errorf("%v.Size(0) = %d, %v", d, size, err)
		}
	}
}

func TestDTypeRefuses(t *testing.T) {
	unknown := tensor.DType(len(allDTypes))
	if got := unknown.String(); got != "DType(39)" {
		t.Errorf("unknown format is called %q", got)
	}
	if unknown.BlockLen() != 0 || unknown.BlockBytes() != 0 || unknown.Quantized() {
		t.Error("an unknown format has a layout")
	}
	for _, name := range []string{"", "Q9_0", "F8_E3M4", "DType(39)"} {
		if d, err := tensor.ParseDType(name); !errors.Is(err, tensor.ErrDType) {
			t.Errorf("ParseDType(%q) = %v, %v", name, d, err)
		}
	}
	for _, test := range []struct {
		dtype tensor.DType
		elems int
		want  error
	}{
		{unknown, 1, tensor.ErrDType},
		{255, 0, tensor.ErrDType},
		{tensor.F32, -1, tensor.ErrSize},
		{tensor.F32, math.MinInt, tensor.ErrSize},
		{tensor.F32, math.MaxInt, tensor.ErrSize},
		{tensor.F16, math.MaxInt/2 + 1, tensor.ErrSize},
		{tensor.F64, math.MaxInt/4 + 1, tensor.ErrSize},
		{tensor.Q8_0, math.MaxInt - 31, tensor.ErrSize},
		{tensor.Q8_0, 33, tensor.ErrSize},
		{tensor.Q4_K, 32, tensor.ErrSize},
		{tensor.Q4_K, 255, tensor.ErrSize},
	} {
		if size, err := test.dtype.Size(test.elems); !errors.Is(err, test.want) || size != 0 {
			t.Errorf("%v.Size(%d) = %d, %v, want an error that wraps %q", test.dtype, test.elems, size, err, test.want)
		}
	}
	if size, err := tensor.U8.Size(math.MaxInt); err != nil || size != math.MaxInt {
		t.Errorf("U8.Size(MaxInt) = %d, %v", size, err)
	}
}

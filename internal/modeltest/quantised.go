package modeltest

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/realizar/realizar/tensor"
)

// A Layout is a convention by which checkpoints of a hub store quantised weights as
// several tensors.
type Layout struct {
	Name   string
	Config map[string]any // config.json's quantization_config
	DType  tensor.DType   // in which realizar reads the weights

	// Store quantises a weight called name, which ends in .weight. It returns what a
	// file holds, the main part first, and the values that it stands for by the
	// convention's formula.
	Store func(name string, rows, cols int, w []float32) (parts []*tensor.Tensor, values []float32)
}

// Quantised stores the projections of a folder's layers in a layout.
func Quantised(l *Layout) Option { return func(s *shape) { s.layout = l } }

// Dequantised stores in float32 the values that a layout's numbers stand for.
func Dequantised(l *Layout) Option {
	return func(s *shape) { s.layout, s.dequantised = l, true }
}

// LayoutOf is the layout of that name, one of [Layouts].
func LayoutOf(tb testing.TB, name string) *Layout {
	tb.Helper()
	for _, l := range Layouts() {
		if l.Name == name {
			return l
		}
	}
	tb.Fatalf("modeltest: there is no layout %q", name)
	return nil
}

// Layouts are those that realizar reads.
func Layouts() []*Layout {
	return []*Layout{
		{"fp8 blocks", map[string]any{"quant_method": "fp8", "fmt": "e4m3", "activation_scheme": "dynamic", "weight_block_size": []int{128, 128}},
			tensor.F8_E4M3_32, fp8Blocks("_scale_inv", tensor.F32, 128, 128)},
		{"fp8 small blocks", map[string]any{"quant_method": "fp8", "weight_block_size": []int{24, 64}},
			tensor.F8_E4M3_32, fp8Blocks("_scale_inv", tensor.BF16, 24, 64)},
		{"fp8 e8m0", map[string]any{"quant_method": "fp8", "fmt": "e4m3", "scale_fmt": "ue8m0", "weight_block_size": []int{32, 32}},
			tensor.F8_E4M3_32, fp8DeepSeekV4(32, 32)},
		{"fp4", map[string]any{"quant_method": "fp8", "fmt": "e4m3", "scale_fmt": "ue8m0", "weight_block_size": []int{128, 128}},
			tensor.MXFP4, storeFP4(tensor.I8, tensor.F8_E8M0, ".scale")},
		{"fp4 bytes", map[string]any{"quant_method": "fp8", "store_dtype": "mxfp4", "mxfp4_block_size": 32, "weight_block_size": []int{128, 128}},
			tensor.MXFP4, storeFP4(tensor.U8, tensor.U8, ".weight_scale")},
		{"fp8 static", map[string]any{"quant_method": "fp8", "activation_scheme": "static"}, tensor.F8_E4M3_32, fp8Static(nil)},
		{"fbgemm", map[string]any{"quant_method": "fbgemm_fp8", "activation_scale_ub": 1200.0},
			tensor.F8_E4M3_32, fp8Rows(tensor.F32, true)},
		{"modelopt", map[string]any{"quant_method": "modelopt", "quant_algo": "FP8"}, tensor.F8_E4M3_32, fp8Static(nil)},
		{"compressed tensor", compressed("float-quantized", "float", 8, "tensor", nil), tensor.F8_E4M3_32, fp8Static([]int{1})},
		{"compressed channel", compressed("float-quantized", "float", 8, "channel", nil), tensor.F8_E4M3_32, fp8Rows(tensor.BF16, true)},
		{"compressed vector", compressed("float-quantized", "float", 8, "channel", nil), tensor.F8_E4M3_32, fp8Rows(tensor.F16, false)},
		{"compressed block", compressed("float-quantized", "float", 8, "block", map[string]any{"block_structure": []int{32, 32}}),
			tensor.F8_E4M3_32, fp8Blocks("_scale", tensor.BF16, 32, 32)},
		{"compressed group", compressed("float-quantized", "float", 8, "group", map[string]any{"group_size": 32}),
			tensor.F8_E4M3_32, fp8Blocks("_scale", tensor.F32, 1, 32)},
		{"gptq symmetric", map[string]any{"quant_method": "gptq", "bits": 4, "group_size": 32, "desc_act": false, "sym": true},
			tensor.Q4_0, storeGPTQ(32, true, 1)},
		{"gptq", map[string]any{"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "gptq"},
			tensor.Q5_0, storeGPTQ(32, false, 1)},
		{"gptq whole rows", map[string]any{"quant_method": "gptq", "bits": 4, "group_size": -1, "desc_act": true},
			tensor.Q5_0, storeGPTQ(-1, false, 1)},
		{"gptq v2", map[string]any{"quant_method": "gptq", "bits": 4, "group_size": 64, "checkpoint_format": "gptq_v2"},
			tensor.Q5_0, storeGPTQ(64, false, 0)},
		{"gptq v2 symmetric", map[string]any{"quant_method": "gptq", "bits": 4, "group_size": 64, "checkpoint_format": "gptq_v2"},
			tensor.Q4_0, storeGPTQ(64, true, 0)},
		{"awq", map[string]any{"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemm", "zero_point": true},
			tensor.Q5_0, storeAWQ(32, false)},
		{"awq symmetric", map[string]any{"quant_method": "awq", "bits": 4, "group_size": 64, "version": "GEMM", "zero_point": false},
			tensor.Q4_0, storeAWQ(64, true)},
		{"packed symmetric", compressed("pack-quantized", "int", 4, "group", map[string]any{"group_size": 32}),
			tensor.Q4_0, storePacked(32, true)},
		{"packed", compressed("pack-quantized", "int", 4, "group", map[string]any{"group_size": 32}),
			tensor.Q5_0, storePacked(32, false)},
		{"packed channel", compressed("pack-quantized", "int", 4, "channel", nil), tensor.Q4_0, storePacked(-1, true)},
		{"mxfp4", map[string]any{"quant_method": "mxfp4", "modules_to_not_convert": []string{"lm_head"}}, tensor.MXFP4, storeMXFP4},
	}
}

// compressed is the configuration of compressed-tensors.
func compressed(format, kind string, bits int, strategy string, more map[string]any) map[string]any {
	weights := map[string]any{"num_bits": bits, "type": kind, "strategy": strategy, "symmetric": true, "dynamic": false, "actorder": nil}
	for k, v := range more {
		weights[k] = v
	}
	return map[string]any{
		"quant_method": "compressed-tensors", "format": format, "ignore": []string{"lm_head"}, "kv_cache_scheme": nil,
		"quantization_status": "compressed", "sparsity_config": map[string]any{}, "transform_config": map[string]any{},
		"config_groups": map[string]any{"group_0": map[string]any{
			"targets": []string{"Linear"}, "weights": weights, "input_activations": nil, "output_activations": nil,
		}},
	}
}

// floatsOf is a tensor of numbers that the format is given as it holds them; values
// are rounded to it.
func floatsOf(name string, d tensor.DType, shape []int, values []float32) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, DType: d, Shape: shape}
	le := binary.LittleEndian
	for i, v := range values {
		switch d {
		case tensor.F16:
			h := tensor.F32ToF16(v)
			t.Data, values[i] = le.AppendUint16(t.Data, h), tensor.F16ToF32(h)
		case tensor.BF16:
			h := tensor.F32ToBF16(v)
			t.Data, values[i] = le.AppendUint16(t.Data, h), tensor.BF16ToF32(h)
		case tensor.F8_E8M0:
			e := math.Ceil(math.Log2(max(float64(v), 0x1p-127)))
			t.Data, values[i] = append(t.Data, byte(e+127)), float32(math.Ldexp(1, int(e)))
		default:
			t.Data = le.AppendUint32(t.Data, math.Float32bits(v))
		}
	}
	return t
}

func integersOf(name string, shape []int, words []uint32) *tensor.Tensor {
	t := &tensor.Tensor{Name: name, DType: tensor.I32, Shape: shape}
	for _, w := range words {
		t.Data = binary.LittleEndian.AppendUint32(t.Data, w)
	}
	return t
}

func ceil(n, by int) int { return (n + by - 1) / by }

// e4m3 are the numbers of that format above 0 in order; number i has the code i+1.
var e4m3 = func() []float32 {
	codes, values := make([]byte, 126), make([]float32, 126)
	for i := range codes {
		codes[i] = byte(i + 1)
	}
	if err := tensor.Dequantize(tensor.F8_E4M3, values, codes); err != nil {
		panic(err)
	}
	return values
}()

// codeE4M3 is the code of a number near v, and the number.
func codeE4M3(v float32) (byte, float32) {
	size := float32(math.Abs(float64(v)))
	i := min(sort.Search(len(e4m3), func(i int) bool { return e4m3[i] >= size }), len(e4m3)-1)
	if v < 0 {
		return byte(i+1) | 0x80, -e4m3[i]
	}
	return byte(i + 1), e4m3[i]
}

// storeFP8 quantises in blocks of so many rows and columns.
func storeFP8(name string, rows, cols int, w []float32, scaleName string, d tensor.DType, shape []int, blockRows, blockCols int) (parts []*tensor.Tensor, values []float32) {
	across := ceil(cols, blockCols)
	scales := make([]float32, ceil(rows, blockRows)*across)
	for i, v := range w {
		at := &scales[i/cols/blockRows*across+i%cols/blockCols]
		*at = max(*at, v/400, -v/400)
	}
	scale := floatsOf(scaleName, d, shape, scales)
	codes := &tensor.Tensor{Name: name, DType: tensor.F8_E4M3, Shape: []int{rows, cols}}
	for i, v := range w {
		s := scales[i/cols/blockRows*across+i%cols/blockCols]
		code, q := codeE4M3(v / s)
		codes.Data = append(codes.Data, code)
		values = append(values, float32(float64(q)*float64(s)))
	}
	return []*tensor.Tensor{codes, scale}, values
}

func fp8Blocks(suffix string, d tensor.DType, blockRows, blockCols int) func(string, int, int, []float32) ([]*tensor.Tensor, []float32) {
	return func(name string, rows, cols int, w []float32) ([]*tensor.Tensor, []float32) {
		return storeFP8(name, rows, cols, w, name+suffix, d, []int{ceil(rows, blockRows), ceil(cols, blockCols)}, blockRows, blockCols)
	}
}

// fp8DeepSeekV4 has powers of two as scales.
func fp8DeepSeekV4(blockRows, blockCols int) func(string, int, int, []float32) ([]*tensor.Tensor, []float32) {
	return func(name string, rows, cols int, w []float32) ([]*tensor.Tensor, []float32) {
		base := name[:len(name)-len(".weight")]
		return storeFP8(name, rows, cols, w, base+".scale", tensor.F8_E8M0, []int{ceil(rows, blockRows), ceil(cols, blockCols)}, blockRows, blockCols)
	}
}

// storeFP4 has the numbers of [storeMXFP4] in rows of bytes.
func storeFP4(numbers, scales tensor.DType, suffix string) func(string, int, int, []float32) ([]*tensor.Tensor, []float32) {
	return func(name string, rows, cols int, w []float32) ([]*tensor.Tensor, []float32) {
		parts, values := storeMXFP4(name, rows, cols, w)
		parts[0].Name, parts[0].DType, parts[0].Shape = name, numbers, []int{rows, cols / 2}
		parts[1].Name, parts[1].DType = name[:len(name)-len(".weight")]+suffix, scales
		return parts, values
	}
}

// fp8Static has one scale, and one for activations.
func fp8Static(shape []int) func(string, int, int, []float32) ([]*tensor.Tensor, []float32) {
	return func(name string, rows, cols int, w []float32) ([]*tensor.Tensor, []float32) {
		parts, values := storeFP8(name, rows, cols, w, name+"_scale", tensor.F32, shape, rows, cols)
		base := name[:len(name)-len("weight")]
		return append(parts, floatsOf(base+"input_scale", tensor.F32, shape, []float32{3})), values
	}
}

// fp8Rows has a scale for each row, as a column or as a vector.
func fp8Rows(d tensor.DType, column bool) func(string, int, int, []float32) ([]*tensor.Tensor, []float32) {
	return func(name string, rows, cols int, w []float32) ([]*tensor.Tensor, []float32) {
		shape := []int{rows}
		if column {
			shape = []int{rows, 1}
		}
		parts, values := storeFP8(name, rows, cols, w, name+"_scale", d, shape, 1, cols)
		base := name[:len(name)-len("weight")]
		return append(parts, floatsOf(base+"input_scale_ub", tensor.F32, []int{1}, []float32{1200})), values
	}
}

// An int4 is a weight of 4-bit numbers before they are packed.
type int4 struct {
	rows, cols, groups int
	numbers            []uint32  // [rows][cols]
	zeros              []uint32  // [rows][groups]
	scales             []float32 // [rows][groups]
}

// quantise4 chooses scales that F16 and BF16 hold, and zero points from least to
// least+15, or 8.
func quantise4(rows, cols, group int, w []float32, symmetric bool, least uint32) (q *int4, values []float32) {
	if group < 0 {
		group = cols
	}
	q = &int4{rows: rows, cols: cols, groups: ceil(cols, group)}
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(cols)))
	for r := range rows {
		for g := range q.groups {
			top := float32(0)
			for _, v := range w[r*cols+g*group : r*cols+min(cols, (g+1)*group)] {
				top = max(top, v, -v)
			}
			zero := uint32(8)
			if !symmetric {
				// All of them occur, the highest in the first places.
				if zero = least + rng.Uint32N(16); r < 8 && g == 0 {
					zero = least + 15 - uint32(r)
				}
			}
			scale := tensor.BF16ToF32(tensor.F32ToBF16(top / 8))
			q.zeros, q.scales = append(q.zeros, zero), append(q.scales, scale)
			for _, v := range w[r*cols+g*group : r*cols+min(cols, (g+1)*group)] {
				n := min(15, max(0, math.Round(float64(v)/float64(scale))+float64(zero)))
				q.numbers = append(q.numbers, uint32(n))
				values = append(values, float32(float64(scale)*(n-float64(zero))))
			}
		}
	}
	return q, values
}

// pack packs eight values of get(line, i), i < n, a word.
func pack(lines, n int, order [8]int, get func(line, i int) uint32) []uint32 {
	words := make([]uint32, 0, lines*ceil(n, 8))
	for line := range lines {
		for i := 0; i < n; i += 8 {
			var word uint32
			for place, which := range order {
				if i+which < n {
					word |= get(line, i+which) << (4 * place)
				}
			}
			words = append(words, word)
		}
	}
	return words
}

// transposed are the columns of m [rows][cols] one after the other.
func transposed[T any](m []T, rows, cols int) []T {
	t := make([]T, 0, len(m))
	for c := range cols {
		for r := range rows {
			t = append(t, m[r*cols+c])
		}
	}
	return t
}

var (
	plainOrder = [8]int{0, 1, 2, 3, 4, 5, 6, 7}
	awqOrder   = [8]int{0, 2, 4, 6, 1, 3, 5, 7}
)

func storeGPTQ(group int, symmetric bool, less uint32) func(string, int, int, []float32) ([]*tensor.Tensor, []float32) {
	return func(name string, rows, cols int, w []float32) ([]*tensor.Tensor, []float32) {
		q, values := quantise4(rows, cols, group, w, symmetric, less)
		base := name[:len(name)-len("weight")]
		words := pack(rows, cols, plainOrder, func(r, k int) uint32 { return q.numbers[r*cols+k] })
		zeros := pack(q.groups, rows, plainOrder, func(g, r int) uint32 { return q.zeros[r*q.groups+g] - less })
		index := make([]uint32, cols)
		for k := range index {
			if group > 0 {
				index[k] = uint32(k / group)
			}
		}
		return []*tensor.Tensor{
			integersOf(base+"qweight", []int{cols / 8, rows}, transposed(words, rows, cols/8)),
			integersOf(base+"qzeros", []int{q.groups, rows / 8}, zeros),
			floatsOf(base+"scales", tensor.F16, []int{q.groups, rows}, transposed(q.scales, rows, q.groups)),
			integersOf(base+"g_idx", []int{cols}, index),
		}, values
	}
}

func storeAWQ(group int, symmetric bool) func(string, int, int, []float32) ([]*tensor.Tensor, []float32) {
	return func(name string, rows, cols int, w []float32) ([]*tensor.Tensor, []float32) {
		q, values := quantise4(rows, cols, group, w, symmetric, 0)
		base := name[:len(name)-len("weight")]
		words := pack(cols, rows, awqOrder, func(k, r int) uint32 { return q.numbers[r*cols+k] })
		zeros := pack(q.groups, rows, awqOrder, func(g, r int) uint32 { return q.zeros[r*q.groups+g] })
		return []*tensor.Tensor{
			integersOf(base+"qweight", []int{cols, rows / 8}, words),
			integersOf(base+"qzeros", []int{q.groups, rows / 8}, zeros),
			floatsOf(base+"scales", tensor.F16, []int{q.groups, rows}, transposed(q.scales, rows, q.groups)),
		}, values
	}
}

func storePacked(group int, symmetric bool) func(string, int, int, []float32) ([]*tensor.Tensor, []float32) {
	return func(name string, rows, cols int, w []float32) ([]*tensor.Tensor, []float32) {
		q, values := quantise4(rows, cols, group, w, symmetric, 0)
		shape := &tensor.Tensor{Name: name + "_shape", DType: tensor.I64, Shape: []int{2}}
		for _, n := range []int{rows, cols} {
			shape.Data = binary.LittleEndian.AppendUint64(shape.Data, uint64(n))
		}
		d := tensor.BF16
		if !symmetric {
			d = tensor.F16
		}
		parts := []*tensor.Tensor{
			integersOf(name+"_packed", []int{rows, cols / 8}, pack(rows, cols, plainOrder, func(r, k int) uint32 { return q.numbers[r*cols+k] })),
			floatsOf(name+"_scale", d, []int{rows, q.groups}, q.scales), shape,
		}
		if !symmetric {
			// Eight rows in a word: [rows/8][groups].
			zeros := pack(q.groups, rows, plainOrder, func(g, r int) uint32 { return q.zeros[r*q.groups+g] })
			parts = append(parts, integersOf(name+"_zero_point", []int{ceil(rows, 8), q.groups}, transposed(zeros, q.groups, ceil(rows, 8))))
		}
		return parts, values
	}
}

// e2m1 are the eight numbers of FP4 that have no sign; number i has the code i, and
// i+8 with one.
var e2m1 = [8]float64{0, 0.5, 1, 1.5, 2, 3, 4, 6}

// storeMXFP4 has two columns in a byte, and an exponent of two for each 32.
func storeMXFP4(name string, rows, cols int, w []float32) (parts []*tensor.Tensor, values []float32) {
	base := name[:len(name)-len(".weight")]
	blocks := &tensor.Tensor{Name: base + "_blocks", DType: tensor.U8, Shape: []int{rows, cols / 32, 16}}
	scales := &tensor.Tensor{Name: base + "_scales", DType: tensor.U8, Shape: []int{rows, cols / 32}}
	for at := 0; at < len(w); at += 32 {
		top := 0.0
		for _, v := range w[at : at+32] {
			top = max(top, math.Abs(float64(v)))
		}
		exponent := -127
		if top > 0 {
			exponent = max(exponent, math.Ilogb(top)-2)
		}
		scales.Data = append(scales.Data, byte(exponent+127))
		var codes [32]byte
		for i, v := range w[at : at+32] {
			size, best := math.Abs(float64(v))/math.Ldexp(1, exponent), 0
			for c, n := range e2m1 {
				if math.Abs(n-size) < math.Abs(e2m1[best]-size) {
					best = c
				}
			}
			codes[i] = byte(best)
			value := float32(math.Ldexp(e2m1[best], exponent))
			if v < 0 {
				codes[i], value = codes[i]|8, -value
			}
			values = append(values, value)
		}
		for i := range 16 {
			blocks.Data = append(blocks.Data, codes[2*i]|codes[2*i+1]<<4)
		}
	}
	return []*tensor.Tensor{blocks, scales}, values
}

package modelfile_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// refused opens a folder and expects an error of this kind that names a key or a tensor and
// contains the texts of says.
func refused(t *testing.T, dir string, kind error, names string, says ...string) *modelfile.FormatError {
	t.Helper()
	f, err := modelfile.Open(dir)
	if err == nil {
		t.Fatalf("it opens; closing it: %v", f.Close())
	}
	var e *modelfile.FormatError
	if !errors.Is(err, kind) || !errors.As(err, &e) {
		t.Fatalf("%v, want an error that wraps %v", err, kind)
	}
	if e.Key+e.Tensor != names {
		t.Errorf("%v names %q, want %q", err, e.Key+e.Tensor, names)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%v does not say %q", err, s)
		}
	}
	return e
}

// with returns a copy of a configuration with changed values; nil removes a key.
func with(config map[string]any, change map[string]any) map[string]any {
	c := maps.Clone(config)
	for k, v := range change {
		path := strings.Split(k, "/")
		into := c
		for _, p := range path[:len(path)-1] {
			inner := maps.Clone(into[p].(map[string]any))
			into[p] = inner
			into = inner
		}
		if into[path[len(path)-1]] = v; v == nil {
			delete(into, path[len(path)-1])
		}
	}
	return c
}

// An unsupported configuration is an error that names the key and the supported values.
func TestQuantizationConfig(t *testing.T) {
	const weights = "config_groups/group_0/weights/"
	key := func(s string) string { return "quantization_config." + strings.ReplaceAll(s, "/", ".") }
	for _, test := range []struct {
		layout string
		change map[string]any
		kind   error
		key    string
		says   string
	}{
		{"awq", map[string]any{"quant_method": "bitsandbytes"}, modelfile.ErrUnsupported, "quant_method", `"bitsandbytes"; supported are fp8, fbgemm_fp8`},
		{"awq", map[string]any{"quant_method": "aqlm"}, modelfile.ErrUnsupported, "quant_method", `"aqlm"`},
		{"awq", map[string]any{"quant_method": "hqq"}, modelfile.ErrUnsupported, "quant_method", `"hqq"`},
		{"awq", map[string]any{"quant_method": "AWQ2\x1b[2J"}, modelfile.ErrUnsupported, "quant_method", `"AWQ2\x1b[2J"`},
		{"awq", map[string]any{"quant_method": nil}, modelfile.ErrUnsupported, "quant_method", "missing"},
		{"awq", map[string]any{"quant_method": 4}, modelfile.ErrFormat, "quant_method", "int64, want a string"},
		{"awq", map[string]any{"bits": 8}, modelfile.ErrUnsupported, "bits", "numbers of 8 bits"},
		{"awq", map[string]any{"bits": nil}, modelfile.ErrFormat, "bits", "missing"},
		{"awq", map[string]any{"bits": "4"}, modelfile.ErrFormat, "bits", "string, want an integer"},
		{"awq", map[string]any{"version": "gemv"}, modelfile.ErrUnsupported, "version", `"gemv"; supported: gemm`},
		{"awq", map[string]any{"version": "exllama"}, modelfile.ErrUnsupported, "version", `"exllama"`},
		{"awq", map[string]any{"group_size": 16}, modelfile.ErrUnsupported, "group_size", "groups of 16 elements; supported are multiples of 32"},
		{"awq", map[string]any{"group_size": 0}, modelfile.ErrFormat, "group_size", "above 0, or -1"},
		{"awq", map[string]any{"group_size": -2}, modelfile.ErrFormat, "group_size", "above 0, or -1"},
		{"awq", map[string]any{"group_size": 1 << 40}, modelfile.ErrFormat, "group_size", "want an integer"},
		{"gptq", map[string]any{"bits": 3}, modelfile.ErrUnsupported, "bits", "3 bits"},
		{"gptq", map[string]any{"checkpoint_format": "marlin"}, modelfile.ErrUnsupported, "checkpoint_format", `"marlin"; supported: gptq, gptq_v2`},
		{"gptq", map[string]any{"is_marlin_format": true}, modelfile.ErrUnsupported, "is_marlin_format", "Marlin"},
		{"gptq", map[string]any{"desc_act": "yes"}, modelfile.ErrFormat, "desc_act", "true or false"},
		{"gptq", map[string]any{"group_size": 100}, modelfile.ErrUnsupported, "group_size", "multiples of 32"},
		{"fp8 blocks", map[string]any{"fmt": "e5m2"}, modelfile.ErrUnsupported, "fmt", `"e5m2"`},
		{"fp8 blocks", map[string]any{"weight_block_size": []int{128, 48}}, modelfile.ErrUnsupported, "weight_block_size", "48 columns; supported are multiples of 32"},
		{"fp8 blocks", map[string]any{"weight_block_size": []int{128}}, modelfile.ErrFormat, "weight_block_size", "the rows and the columns"},
		{"fp8 blocks", map[string]any{"weight_block_size": []int{0, 128}}, modelfile.ErrFormat, "weight_block_size", "the rows and the columns"},
		{"fp8 blocks", map[string]any{"weight_block_size": []int{1 << 62, 1 << 62}}, modelfile.ErrFormat, "weight_block_size", "the rows and the columns"},
		{"fp8 blocks", map[string]any{"weight_block_size": "128"}, modelfile.ErrFormat, "weight_block_size", "the rows and the columns"},
		{"modelopt", map[string]any{"quant_algo": "NVFP4"}, modelfile.ErrUnsupported, "quant_algo", `"nvfp4"; supported: fp8`},
		{"modelopt", map[string]any{"quant_algo": nil}, modelfile.ErrUnsupported, "quantization.quant_algo", "supported: fp8"},
		{"packed", map[string]any{"format": "marlin-24"}, modelfile.ErrUnsupported, "format", `"marlin-24"; supported: float-quantized, pack-quantized`},
		{"packed", map[string]any{"format": "int-quantized"}, modelfile.ErrUnsupported, "format", `"int-quantized"`},
		{"packed", map[string]any{"transform_config": map[string]any{"config_groups": map[string]any{"R1": map[string]any{"type": "hadamard"}}}}, modelfile.ErrUnsupported, "transform_config", "transformed"},
		{"packed", map[string]any{"sparsity_config": map[string]any{"format": "sparse-24-bitmask"}}, modelfile.ErrUnsupported, "sparsity_config.format", "sparse-24"},
		{"packed", map[string]any{"config_groups": map[string]any{}}, modelfile.ErrFormat, "config_groups", "no group"},
		{"packed", map[string]any{weights + "num_bits": 8}, modelfile.ErrUnsupported, weights + "num_bits", "8 bits"},
		{"packed", map[string]any{weights + "type": "float"}, modelfile.ErrUnsupported, weights + "type", `"float"`},
		{"packed", map[string]any{weights + "strategy": "tensor"}, modelfile.ErrUnsupported, weights + "strategy", `"tensor"`},
		{"packed", map[string]any{weights + "group_size": 24}, modelfile.ErrUnsupported, weights + "group_size", "24"},
		{"packed", map[string]any{"config_groups/group_1": map[string]any{"weights": map[string]any{"num_bits": 4, "type": "int", "group_size": 64}}},
			modelfile.ErrUnsupported, "config_groups.group_1", "differently from those of config_groups.group_0"},
		{"packed", map[string]any{"config_groups/group_0/format": "nvfp4-pack-quantized"}, modelfile.ErrUnsupported, "config_groups/group_0/format", "nvfp4"},
		{"compressed block", map[string]any{weights + "num_bits": 4}, modelfile.ErrUnsupported, weights + "num_bits", "4 bits"},
		{"compressed block", map[string]any{weights + "type": "int"}, modelfile.ErrUnsupported, weights + "type", `"int"`},
		{"compressed block", map[string]any{weights + "block_structure": nil}, modelfile.ErrFormat, weights + "block_structure", "missing"},
		{"compressed block", map[string]any{weights + "strategy": "token"}, modelfile.ErrUnsupported, weights + "strategy", `"token"`},
	} {
		t.Run(fmt.Sprint(test.layout, " ", test.change), func(t *testing.T) {
			l := modeltest.LayoutOf(t, test.layout)
			raw, _ := stored(l, "x.weight", 64, 64)
			dir := t.TempDir()
			writeQuantised(t, dir, with(l.Config, test.change), raw...)
			e := refused(t, dir, test.kind, key(test.key), test.says)
			if e.File != filepath.Join(dir, "config.json") {
				t.Errorf("the error is one of %s", e.File)
			}
		})
	}
	for name, q := range map[string]any{"null": nil, "an empty object": map[string]any{}} {
		dir := t.TempDir()
		writeQuantised(t, dir, q, plainTensor("x.weight", tensor.F32, 1))
		if f, err := modelfile.Open(dir); q == nil && err != nil || q != nil && !errors.Is(err, modelfile.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		} else if err == nil {
			t.Cleanup(func() { _ = f.Close() })
		}
	}
}

// Older versions of compressed-tensors use another key, and models with other parts beside the
// language model may have it with that model's.
func TestCompressionConfig(t *testing.T) {
	l := modeltest.LayoutOf(t, "packed symmetric")
	raw, _ := stored(l, "x.weight", 64, 64)
	dir := t.TempDir()
	writeQuantised(t, dir, nil, raw...)
	for _, c := range []map[string]any{
		{"quantization_config": nil, "compression_config": l.Config},
		{"text_config": map[string]any{"quantization_config": l.Config}},
	} {
		config, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		writeTo(t, dir, "config.json", config)
		if x, ok := opened(t, dir).Tensor("x.weight"); !ok || x.DType != tensor.Q4_0 {
			t.Errorf("%v: no weight of Q4_0: %v", c, x)
		}
	}
}

// change returns tensors with one of them replaced, or removed if by returns nil.
func change(tensors []*tensor.Tensor, name string, by func(x tensor.Tensor) *tensor.Tensor) []*tensor.Tensor {
	var all []*tensor.Tensor
	for _, x := range tensors {
		if x.Name != name {
			all = append(all, x)
		} else if other := by(*x); other != nil {
			all = append(all, other)
		}
	}
	return all
}

func missing(tensor.Tensor) *tensor.Tensor { return nil }

// shaped returns a function that replaces a tensor by zeros of another shape or format.
func shaped(d tensor.DType, shape ...int) func(x tensor.Tensor) *tensor.Tensor {
	return func(x tensor.Tensor) *tensor.Tensor {
		n, _ := tensor.Elems(shape)
		return &tensor.Tensor{Name: x.Name, DType: d, Shape: shape, Data: make([]byte, n*d.BlockBytes())}
	}
}

// number returns a function that sets the bits of element i.
func number(i int, bits uint32) func(x tensor.Tensor) *tensor.Tensor {
	return func(x tensor.Tensor) *tensor.Tensor {
		x.Data = bytes.Clone(x.Data)
		if x.DType.BlockBytes() == 2 {
			binary.LittleEndian.PutUint16(x.Data[2*i:], uint16(bits))
		} else {
			binary.LittleEndian.PutUint32(x.Data[4*i:], bits)
		}
		return &x
	}
}

func renamed(name string) func(x tensor.Tensor) *tensor.Tensor {
	return func(x tensor.Tensor) *tensor.Tensor {
		x.Name = name
		return &x
	}
}

// Parts that do not fit together are an error that names the file, the tensor and its offset.
func TestDerivedParts(t *testing.T) {
	nan, negative := math.Float32bits(float32(math.NaN())), math.Float32bits(-1)
	for _, test := range []struct {
		layout, part string
		by           func(x tensor.Tensor) *tensor.Tensor
		kind         error
		names        string
		at           int // byte offset in the tensor's data
		says         string
	}{
		{"fp8 blocks", "x.weight_scale_inv", missing, modelfile.ErrFormat, "x.weight", 0, "without a scale"},
		{"fp8 blocks", "x.weight", missing, modelfile.ErrFormat, "x.weight_scale_inv", 0, "a part without its weight"},
		{"fp8 blocks", "x.weight", shaped(tensor.BF16, 160, 320), modelfile.ErrFormat, "x.weight_scale_inv", 0, "not quantized"},
		{"fp8 blocks", "x.weight", shaped(tensor.F8_E5M2, 160, 320), modelfile.ErrUnsupported, "x.weight", 0, "F8_E5M2"},
		{"fp8 blocks", "x.weight", shaped(tensor.F8_E4M3, 160, 300), modelfile.ErrUnsupported, "x.weight", 0, "rows of 300 numbers; supported are multiples of 32"},
		{"fp8 blocks", "x.weight", shaped(tensor.F8_E4M3, 2, 80, 320), modelfile.ErrUnsupported, "x.weight", 0, "shape [2 80 320]"},
		{"fp8 blocks", "x.weight", renamed("x.weights"), modelfile.ErrUnsupported, "x.weights", 0, "end in .weight"},
		{"fp8 blocks", "x.weight_scale_inv", shaped(tensor.F32, 2, 2), modelfile.ErrFormat, "x.weight_scale_inv", 0, "scales of shape [2 2]"},
		{"fp8 blocks", "x.weight_scale_inv", shaped(tensor.F32, 3, 2), modelfile.ErrFormat, "x.weight_scale_inv", 0, "scales of shape [3 2]"},
		{"fp8 blocks", "x.weight_scale_inv", shaped(tensor.F32, 6), modelfile.ErrFormat, "x.weight_scale_inv", 0, "one for each block"},
		{"fp8 blocks", "x.weight_scale_inv", shaped(tensor.F32), modelfile.ErrFormat, "x.weight_scale_inv", 0, "one for each block"},
		{"fp8 blocks", "x.weight_scale_inv", shaped(tensor.U8, 2, 3), modelfile.ErrFormat, "x.weight_scale_inv", 0, "scales of U8"},
		{"fp8 blocks", "x.weight_scale_inv", number(5, nan), modelfile.ErrFormat, "x.weight_scale_inv", 20, "a scale of NaN"},
		{"fp8 blocks", "x.weight_scale_inv", number(4, 0x7f800000), modelfile.ErrFormat, "x.weight_scale_inv", 16, "a scale of +Inf"},
		{"fp8 blocks", "x.weight_scale_inv", number(0, 0x7e000000), modelfile.ErrFormat, "x.weight_scale_inv", 0, "a scale of 4.2"},
		{"fp8 blocks", "x.weight_scale_inv", number(1, negative), modelfile.ErrFormat, "x.weight_scale_inv", 4, "a scale of -1"},
		{"fp8 e8m0", "x.scale", missing, modelfile.ErrFormat, "x.weight", 0, `no "x.scale"`},
		{"fp8 e8m0", "x.scale", shaped(tensor.F8_E8M0, 5, 9), modelfile.ErrFormat, "x.scale", 0, "scales of shape [5 9]"},
		{"fp8 e8m0", "x.scale", func(x tensor.Tensor) *tensor.Tensor { x.Data = bytes.Repeat([]byte{255}, 50); return &x }, modelfile.ErrFormat, "x.scale", 0, "a scale of NaN"},
		{"fp4", "x.scale", shaped(tensor.F8_E8M0, 160, 20), modelfile.ErrFormat, "x.scale", 0, "want [160 10]"},
		{"fp4", "x.scale", shaped(tensor.U16, 160, 10), modelfile.ErrUnsupported, "x.scale", 0, "scales in U16 of packed numbers"},
		{"fp4", "x.weight", shaped(tensor.I8, 160, 40), modelfile.ErrUnsupported, "x.weight", 0, "packed numbers of shape [160 40]"},
		{"fp4 bytes", "x.weight_scale", shaped(tensor.F32, 160, 10), modelfile.ErrUnsupported, "x.weight_scale", 0, "scales in F32"},
		{"compressed channel", "x.weight_scale", number(159, 0xff80), modelfile.ErrFormat, "x.weight_scale", 318, "a scale of -Inf"},
		{"compressed channel", "x.weight_scale", shaped(tensor.BF16, 1, 160), modelfile.ErrFormat, "x.weight_scale", 0, "one for each of its rows"},
		{"compressed channel", "x.weight_scale", shaped(tensor.BF16, 0), modelfile.ErrFormat, "x.weight_scale", 0, "shape [0]"},
		{"fp8 static", "x.input_scale", renamed("x.weight_scale_inv"), modelfile.ErrFormat, "x.weight", 0, "two tensors of scales"},

		{"gptq", "x.qzeros", missing, modelfile.ErrFormat, "x.qweight", 0, `"x.qzeros", which belongs to it, is missing`},
		{"gptq", "x.scales", missing, modelfile.ErrFormat, "x.qweight", 0, `"x.scales"`},
		{"gptq", "x.qweight", missing, modelfile.ErrFormat, "x.g_idx", 0, "a part without its weight"},
		{"gptq", "x.qweight", shaped(tensor.I32, 40, 168), modelfile.ErrFormat, "x.qzeros", 0, "shape [10 20], want [10 21]"},
		{"gptq", "x.qweight", shaped(tensor.I32, 40, 161), modelfile.ErrFormat, "x.qweight", 0, "want a multiple of 8"},
		{"gptq", "x.qweight", shaped(tensor.I32, 41, 160), modelfile.ErrUnsupported, "x.qweight", 0, "rows of 328 numbers"},
		{"gptq", "x.qweight", shaped(tensor.I32, 44, 160), modelfile.ErrFormat, "x.qzeros", 0, "want [11 20]"},
		{"gptq", "x.qweight", shaped(tensor.F32, 40, 160), modelfile.ErrFormat, "x.qweight", 0, "packed numbers in F32"},
		{"gptq", "x.qweight", shaped(tensor.I32, 6400), modelfile.ErrUnsupported, "x.qweight", 0, "shape [6400]"},
		{"gptq", "x.qzeros", shaped(tensor.I64, 10, 20), modelfile.ErrFormat, "x.qzeros", 0, "packed numbers in I64"},
		{"gptq", "x.scales", shaped(tensor.F16, 5, 160), modelfile.ErrFormat, "x.scales", 0, "shape [5 160], want [10 160]"},
		{"gptq", "x.scales", shaped(tensor.F64, 10, 160), modelfile.ErrFormat, "x.scales", 0, "scales of F64"},
		{"gptq", "x.g_idx", number(33, 0), modelfile.ErrUnsupported, "x.g_idx", 132, "column 33 is in group 0, not 1"},
		{"gptq", "x.g_idx", number(0, 0xffffffff), modelfile.ErrUnsupported, "x.g_idx", 0, "group -1"},
		{"gptq", "x.g_idx", shaped(tensor.I32, 319), modelfile.ErrFormat, "x.g_idx", 0, "want I32 of shape [320]"},
		{"gptq", "x.g_idx", shaped(tensor.I64, 320), modelfile.ErrFormat, "x.g_idx", 0, "want I32 of shape [320]"},
		{"gptq", "x.g_idx", renamed("x.weight"), modelfile.ErrFormat, "x.qweight", 0, `the weight "x.weight", but a tensor of that name exists too`},
		{"gptq whole rows", "x.g_idx", missing, modelfile.ErrUnsupported, "x.qweight", 0, "desc_act"},
		{"gptq whole rows", "x.scales", shaped(tensor.F16, 2, 160), modelfile.ErrFormat, "x.scales", 0, "shape [2 160], want [1 160]"},

		{"awq", "x.qweight", shaped(tensor.I32, 40, 160), modelfile.ErrUnsupported, "x.qweight", 0, "rows of 40 numbers"},
		{"awq", "x.qzeros", shaped(tensor.I32, 20, 10), modelfile.ErrFormat, "x.qzeros", 0, "shape [20 10], want [10 20]"},
		{"awq", "x.qzeros", missing, modelfile.ErrFormat, "x.qweight", 0, `"x.qzeros"`},
		{"awq", "x.scales", shaped(tensor.F16, 160, 10), modelfile.ErrFormat, "x.scales", 0, "want [10 160]"},
		{"awq", "x.scales", renamed("y.scales"), modelfile.ErrFormat, "x.qweight", 0, `"x.scales"`},

		{"packed", "x.weight_scale", missing, modelfile.ErrFormat, "x.weight_packed", 0, `"x.weight_scale"`},
		{"packed", "x.weight_packed", missing, modelfile.ErrFormat, "x.weight_shape", 0, "a part without its weight"},
		{"packed", "x.weight_zero_point", shaped(tensor.I32, 160, 10), modelfile.ErrFormat, "x.weight_zero_point", 0, "want [20 10]"},
		{"packed", "x.weight_shape", shaped(tensor.I64, 2), modelfile.ErrFormat, "x.weight_shape", 0, "a weight of shape [0 0]"},
		{"packed", "x.weight_shape", shaped(tensor.I64, 20000), modelfile.ErrFormat, "x.weight_shape", 0, "160 rows and 320 columns"},

		{"mxfp4", "x_scales", missing, modelfile.ErrFormat, "x_blocks", 0, `"x_scales", which belongs to it, is missing`},
		{"mxfp4", "x_blocks", missing, modelfile.ErrFormat, "x_scales", 0, "a part without its weight"},
		{"mxfp4", "x_blocks", shaped(tensor.U8, 160, 160), modelfile.ErrFormat, "x_blocks", 0, "packed numbers of shape [160 160]"},
		{"mxfp4", "x_blocks", shaped(tensor.U8, 160, 20, 8), modelfile.ErrFormat, "x_blocks", 0, "16 bytes of a block"},
		{"mxfp4", "x_blocks", shaped(tensor.I32, 160, 10, 16), modelfile.ErrFormat, "x_blocks", 0, "packed numbers in I32"},
		{"mxfp4", "x_scales", shaped(tensor.U8, 160, 20), modelfile.ErrFormat, "x_scales", 0, "want U8 of shape [160 10]"},
		{"mxfp4", "x_scales", shaped(tensor.BF16, 160, 10), modelfile.ErrFormat, "x_scales", 0, "scales in BF16"},
	} {
		t.Run(test.layout+", "+test.part+", "+test.says, func(t *testing.T) {
			l := modeltest.LayoutOf(t, test.layout)
			raw, _ := stored(l, "x.weight", 160, 320)
			dir := t.TempDir()
			writeQuantised(t, dir, l.Config, change(raw, test.part, test.by)...)
			e := refused(t, dir, test.kind, test.names, test.says)
			_ = openHostile(t, dir)
			want := offsetIn(t, dir, test.names) + int64(test.at)
			if test.says == "shape [0]" {
				want = -1 // it has no offset
			}
			if e.Offset != want || e.File != filepath.Join(dir, "model.safetensors") {
				t.Errorf("byte %d of %s, want %d", e.Offset, e.File, want)
			}
		})
	}
}

// Weights without elements take no time, however many rows or columns they claim.
func TestDerivedNothing(t *testing.T) {
	const many = 1 << 40
	zeros := func(name string, d tensor.DType, shape ...int) *tensor.Tensor {
		return &tensor.Tensor{Name: name, DType: d, Shape: shape}
	}
	for layout, parts := range map[string][]*tensor.Tensor{
		"awq":        {zeros("x.qweight", tensor.I32, many, 0), zeros("x.qzeros", tensor.I32, many/32, 0), zeros("x.scales", tensor.F16, many/32, 0)},
		"gptq":       {zeros("x.qweight", tensor.I32, 0, many), zeros("x.qzeros", tensor.I32, 0, many/8), zeros("x.scales", tensor.F16, 0, many)},
		"packed":     {zeros("x.weight_packed", tensor.I32, many, 0), zeros("x.weight_scale", tensor.F16, many, 0)},
		"mxfp4":      {zeros("x_blocks", tensor.U8, many, 0, 16), zeros("x_scales", tensor.U8, many, 0)},
		"fp8 blocks": {zeros("x.weight", tensor.F8_E4M3, many, 0), zeros("x.weight_scale_inv", tensor.F32, many/128, 0)},
	} {
		dir := t.TempDir()
		writeQuantised(t, dir, modeltest.LayoutOf(t, layout).Config, parts...)
		x, ok := opened(t, dir).Tensor("x.weight")
		if !ok || x.Size() != 0 {
			t.Fatalf("%s: %+v", layout, x)
		}
		if v, err := x.Float32s(); err != nil || len(v) != 0 {
			t.Errorf("%s: %d values, %v", layout, len(v), err)
		}
		if err := x.ReadRows(nil, 0, x.Rows()); err != nil {
			t.Errorf("%s: %v", layout, err)
		}
	}
}

// offsetIn returns the offset of a tensor's data in its file.
func offsetIn(t *testing.T, dir, name string) int64 {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	n := binary.LittleEndian.Uint64(data)
	var header map[string]struct {
		Offsets [2]int64 `json:"data_offsets"`
	}
	if err := json.Unmarshal(data[8:8+n], &header); err != nil {
		t.Fatal(err)
	}
	return 8 + int64(n) + header[name].Offsets[0]
}

// Scales of 4-bit weights are checked when rows are read. A scale that no block can hold is an
// error that says where it is.
func TestDerivedScales(t *testing.T) {
	for _, test := range []struct {
		layout string
		d      tensor.DType
		bits   uint32
		kind   error
		says   string
	}{
		{"gptq", tensor.F16, 0x7c00, modelfile.ErrFormat, "a scale of +Inf"},
		{"awq", tensor.F16, 0xfe00, modelfile.ErrFormat, "a scale of NaN"},
		{"awq", tensor.BF16, 0x7f80, modelfile.ErrFormat, "a scale of +Inf"},
		{"gptq", tensor.BF16, 0x3301, modelfile.ErrUnsupported, "which F16 does not hold exactly"}, // below 2^-24
		{"gptq", tensor.BF16, 0x4780, modelfile.ErrUnsupported, "a scale of 65536, which F16 does not hold"},
		{"gptq", tensor.F32, 0x3f800001, modelfile.ErrUnsupported, "a scale of 1.0000001, which F16"},
		{"packed", tensor.F32, 0x7fc00000, modelfile.ErrFormat, "a scale of NaN"},
		{"gptq", tensor.F16, 0x8000, nil, ""},       // -0
		{"gptq", tensor.F16, 0x0001, nil, ""},       // 2^-24
		{"gptq", tensor.BF16, 0x3380, nil, ""},      // the same
		{"gptq", tensor.BF16, 0xbf80, nil, ""},      // -1
		{"packed", tensor.F32, 0x477fe000, nil, ""}, // 65504
	} {
		t.Run(fmt.Sprintf("%s, %v of bits %x", test.layout, test.d, test.bits), func(t *testing.T) {
			l := modeltest.LayoutOf(t, test.layout)
			raw, _ := stored(l, "x.weight", 160, 96)
			i := slices.IndexFunc(raw, func(x *tensor.Tensor) bool {
				return strings.HasSuffix(x.Name, "scale") || strings.HasSuffix(x.Name, "scales")
			})
			name := raw[i].Name
			raw[i] = shaped(test.d, raw[i].Shape...)(*raw[i])
			row, group := 150, 2
			at := group*160 + row
			if test.layout == "packed" {
				at = row*3 + group
			}
			raw[i] = number(at, test.bits)(*raw[i])
			dir := t.TempDir()
			writeQuantised(t, dir, l.Config, raw...)
			x, _ := opened(t, dir).Tensor("x.weight")
			good := make([]byte, row*x.RowBytes())
			if err := x.ReadRows(good, 0, row); err != nil {
				t.Errorf("the rows before: %v", err)
			}
			err := x.ReadRows(make([]byte, x.RowBytes()), row, row+1)
			if test.kind == nil {
				if err != nil {
					t.Error(err)
				}
				return
			}
			var e *modelfile.FormatError
			if !errors.Is(err, test.kind) || !errors.As(err, &e) || !strings.Contains(err.Error(), test.says) {
				t.Fatalf("%v, want one that wraps %v and says %q", err, test.kind, test.says)
			}
			if want := offsetIn(t, dir, name) + int64(at*test.d.BlockBytes()); e.Offset != want || e.Tensor != name {
				t.Errorf("byte %d of %s, want %d of %s", e.Offset, e.Tensor, want, name)
			}
			if _, err := x.Float32s(); !errors.Is(err, test.kind) {
				t.Errorf("values: %v", err)
			}
		})
	}
}

// NaN in an FP8 weight is also found when rows are read.
func TestDerivedNumbers(t *testing.T) {
	for _, layout := range []string{"fp8 blocks", "compressed channel"} {
		l := modeltest.LayoutOf(t, layout)
		raw, _ := stored(l, "x.weight", 160, 96)
		i := slices.IndexFunc(raw, func(x *tensor.Tensor) bool { return x.DType == tensor.F8_E4M3 })
		name, at := raw[i].Name, 100*96+7
		raw[i].Data[at] = 0xff
		dir := t.TempDir()
		writeQuantised(t, dir, l.Config, raw...)
		f := opened(t, dir)
		x, _ := f.Tensor("x.weight")
		if err := x.ReadRows(make([]byte, 60*x.RowBytes()), 0, 60); err != nil {
			t.Errorf("%s: the rows before: %v", layout, err)
		}
		err := f.Locate(x.ReadRows(make([]byte, 100*x.RowBytes()), 60, 160))
		var e *modelfile.FormatError
		if !errors.As(err, &e) || !errors.Is(err, modelfile.ErrFormat) || e.Tensor != name || e.Offset != offsetIn(t, dir, name)+int64(at) || !strings.Contains(e.Problem, "NaN") {
			t.Errorf("%s: %v, want one about %s, byte %d of it", layout, err, name, at)
		}
	}
}

// Exponents that encode no number are found when rows are read.
func TestDerivedExponents(t *testing.T) {
	l := modeltest.LayoutOf(t, "mxfp4")
	raw, _ := stored(l, "x.weight", 8, 96)
	const row, group = 6, 2
	raw[1].Data[row*3+group] = 0xff
	dir := t.TempDir()
	writeQuantised(t, dir, l.Config, raw...)
	x, _ := opened(t, dir).Tensor("x.weight")
	if err := x.ReadRows(make([]byte, row*x.RowBytes()), 0, row); err != nil {
		t.Errorf("the rows before: %v", err)
	}
	err := x.ReadRows(make([]byte, x.RowBytes()), row, row+1)
	var e *modelfile.FormatError
	if !errors.As(err, &e) || !errors.Is(err, modelfile.ErrFormat) || e.Tensor != "x_scales" || e.Offset != offsetIn(t, dir, "x_scales")+row*3+group {
		t.Errorf("%v, want one about byte %d of x_scales", err, row*3+group)
	}
}

// A single zero point other than 8, at any position, makes a weight Q5_0. Padding of the last word
// does not count.
func TestZeroPoints(t *testing.T) {
	for _, name := range []string{"gptq symmetric", "gptq v2 symmetric", "awq symmetric", "packed"} {
		l := modeltest.LayoutOf(t, name)
		rows := 24
		if name == "packed" {
			rows = 21
		}
		raw, _ := stored(l, "x.weight", rows, 128)
		i := slices.IndexFunc(raw, func(x *tensor.Tensor) bool { return strings.Contains(x.Name, "zero") })
		words := raw[i].Elems()
		if name == "packed" { // make it symmetric
			raw[i] = shaped(tensor.I32, raw[i].Shape...)(*raw[i])
			for w := range words {
				raw[i] = number(w, 0x88888888)(*raw[i])
			}
		}
		kind := func(zeros *tensor.Tensor) tensor.DType {
			dir := t.TempDir()
			writeQuantised(t, dir, l.Config, change(raw, raw[i].Name, func(tensor.Tensor) *tensor.Tensor { return zeros })...)
			x, _ := opened(t, dir).Tensor("x.weight")
			return x.DType
		}
		if d := kind(raw[i]); d != tensor.Q4_0 {
			t.Errorf("%s: all zero points are 8: %v", name, d)
		}
		for w := range words {
			for place := range 8 {
				before := binary.LittleEndian.Uint32(raw[i].Data[4*w:])
				want := tensor.Q5_0
				if name == "packed" && w/4 == 2 && place >= 5 {
					want = tensor.Q4_0 // rows 21 to 23 do not exist
				}
				if d := kind(number(w, before^1<<(4*place))(*raw[i])); d != want {
					t.Fatalf("%s: zero point %d of word %d is another one: %v, want %v", name, place, w, d, want)
				}
			}
		}
	}
}

// Scales for activations, keys and values are ignored, and only by their exact names.
func TestActivationScales(t *testing.T) {
	l := modeltest.LayoutOf(t, "compressed channel")
	raw, _ := stored(l, "x.weight", 64, 64)
	all := slices.Clone(raw)
	for _, name := range []string{"x.input_scale", "x.activation_scale", "attn.k_scale", "attn.v_scale", "scale", "attn.other_scale"} {
		all = append(all, plainTensor(name, tensor.F32, 1))
	}
	dir := t.TempDir()
	writeQuantised(t, dir, l.Config, all...)
	var names []string
	for _, x := range opened(t, dir).Tensors() {
		names = append(names, x.Name)
	}
	slices.Sort(names)
	if want := []string{"attn.other_scale", "scale", "x.weight"}; !slices.Equal(names, want) {
		t.Errorf("the tensors are %v, want %v", names, want)
	}
	// Without a configuration they are ordinary tensors.
	writeQuantised(t, dir, nil, all...)
	if n := len(opened(t, dir).Tensors()); n != len(all) {
		t.Errorf("%d tensors, want %d", n, len(all))
	}
}

// Whatever a checkpoint contains, opening it returns a documented kind of error, or weights whose
// rows can all be read.
func FuzzQuantised(f *testing.F) {
	for _, l := range modeltest.Layouts() {
		raw, _ := stored(l, "x.weight", 16, 64)
		dir := f.TempDir()
		writeQuantised(f, dir, l.Config, raw...)
		var files [2][]byte
		for i, name := range []string{"config.json", "model.safetensors"} {
			data, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				f.Fatal(err)
			}
			files[i] = data
		}
		f.Add(files[0], files[1])
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		writeTo(t, dir, "config.json", config)
		m, err := modelfile.Open(writeTo(t, dir, "model.safetensors", weights))
		if err != nil {
			if !errors.Is(err, modelfile.ErrFormat) && !errors.Is(err, modelfile.ErrUnsupported) && !errors.Is(err, modelfile.ErrNotModel) {
				t.Fatal(err)
			}
			return
		}
		for _, x := range m.Tensors() {
			if err := x.Validate(); err != nil {
				t.Error(err)
			}
			if _, err := x.Float32s(); err != nil && x.Source == nil {
				t.Error(err)
			}
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	})
}

package modelfile

import (
	"slices"
	"strings"

	"github.com/realizar/realizar/tensor"
)

// compressedTensors implements quant_method compressed-tensors in two of its formats:
// float-quantized (see scaled_fp8.go) and pack-quantized with 4-bit numbers. All groups of
// config_groups must store weights alike.
func compressedTensors(q *quantization) *convention {
	const floats, packed = "float-quantized", "pack-quantized"
	format := q.only("format", "", floats, packed)
	if q.any("transform_config.") {
		q.failf(ErrUnsupported, "transform_config", "weights that need transformed activations")
	}
	q.only("sparsity_config.format", "dense", "dense")
	groups := q.configGroups()
	if len(groups) == 0 {
		q.failf(ErrFormat, "config_groups", "no group describes how weights are quantized")
	}
	var first compressedGroup
	for i, name := range groups {
		g := q.compressedGroup(name, format == floats)
		q.only(name+"format", format, format)
		if i == 0 {
			first = g
		} else if g != first {
			q.failf(ErrUnsupported, strings.TrimSuffix(name, "."), "weights quantized differently from those of %s", strings.TrimSuffix(groups[0], "."))
		}
	}
	if format == floats {
		return fp8(&first.fp8)
	}
	p := packedWeights{group: first.group}
	return &convention{
		weight: p.weight, parts: []string{".weight_packed", ".weight_scale", ".weight_zero_point", ".weight_shape", ".weight_g_idx"},
		activations: activationScales,
	}
}

// configGroups returns the key prefixes of the groups that have weights.
func (q *quantization) configGroups() []string {
	var names []string
	prefix := q.prefix + "config_groups."
	for _, key := range q.meta.Keys() {
		rest, ok := strings.CutPrefix(key, prefix)
		name, what, _ := strings.Cut(rest, ".")
		if full := "config_groups." + name + "."; ok && strings.HasPrefix(what, "weights.") && !slices.Contains(names, full) {
			names = append(names, full)
		}
	}
	return names
}

// A compressedGroup describes how a group's weights are stored.
type compressedGroup struct {
	fp8   fp8Scales
	group int
}

// compressedGroup reads the description of a group of FP8 or 4-bit numbers.
func (q *quantization) compressedGroup(name string, floats bool) (g compressedGroup) {
	name += "weights."
	if floats {
		q.only(name+"type", "int", "float")
		if n := q.integer(name + "num_bits"); n != 8 {
			q.failf(ErrUnsupported, name+"num_bits", "floats of %d bits; supported are those of 8", n)
		}
		switch q.only(name+"strategy", "tensor", "tensor", "channel", "block", "group") {
		case "block":
			block, ok := q.block(name + "block_structure")
			if !ok {
				q.failf(ErrFormat, name+"block_structure", "missing")
			}
			g.fp8 = fp8Scales{blocks: true, block: block, parts: 1}
		case "group":
			if n := q.group(name + "group_size"); n != wholeGroup {
				g.fp8 = fp8Scales{blocks: true, block: [2]int{1, n}, parts: 1}
			}
		}
		return g
	}
	q.only(name+"type", "int", "int")
	q.bits(name + "num_bits")
	if g.group = wholeGroup; q.only(name+"strategy", "group", "group", "channel") == "group" {
		g.group = q.group(name + "group_size")
	}
	return g
}

// packedWeights reads weights of the format pack-quantized. A weight X.weight [N, K] is stored as
// X.weight_packed [N, K/8], with eight columns per word; X.weight_scale [N, K/g];
// X.weight_zero_point [N/8, K/g], with eight rows per word, rounded up, present if the zero points
// differ from 8; and X.weight_shape, which holds N and K.
type packedWeights struct{ group int }

func (p packedWeights) weight(a *assembly, t *tensor.Tensor) (*tensor.Tensor, error) {
	base, ok := strings.CutSuffix(t.Name, "_packed")
	if !ok || !strings.HasSuffix(base, ".weight") {
		return nil, nil
	}
	if len(t.Shape) != 2 || t.Shape[1] > maxPacked {
		return nil, a.file.errorIn(t, 0, ErrUnsupported, "packed numbers of shape %v; supported are matrices", t.Shape)
	}
	rows, cols := t.Shape[0], 8*t.Shape[1]
	group := inRow(p.group, cols)
	n := groups(cols, group)
	w := &int4{
		file: a.file, words: t, rows: rows, cols: cols, group: group,
		wordByRow: cols / 8, wordByCol: 1,
		zeroByRows: n, zeroByGroup: 1, places: &inOrder,
		scaleByRow: n, scaleByGroup: 1,
	}
	var err error
	if w.scales, err = a.needed(t, base+"_scale"); err != nil {
		return nil, err
	}
	w.zeros = a.part(base + "_zero_point")
	if err := w.check([2]int{rows, cols / 8}, [2]int{(rows + 7) / 8, n}, [2]int{rows, n}); err != nil {
		return nil, err
	}
	if err := w.inOrderOf(a.part(base+"_g_idx"), false); err != nil {
		return nil, err
	}
	if shape := a.part(base + "_shape"); shape != nil {
		var values []float32
		if shape.Elems() == 2 {
			if values, err = shape.Float32s(); err != nil {
				return nil, a.file.errorIn(shape, 0, ErrFormat, "%v", err)
			}
		}
		if !slices.Equal(values, []float32{float32(rows), float32(cols)}) {
			return nil, a.file.errorIn(shape, 0, ErrFormat, "a weight of shape %v, but the packed numbers have %d rows and %d columns", values, rows, cols)
		}
	}
	return w.tensor(base), nil
}

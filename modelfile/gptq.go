package modelfile

import (
	"strings"

	"github.com/realizar/realizar/tensor"
)

// gptq implements quant_method gptq, as AutoGPTQ and GPTQModel write it. A weight X.weight [N, K]
// is stored as X.qweight [K/8, N], with eight columns of the weight per word; X.scales [K/g, N];
// X.qzeros [K/g, N/8], with eight rows per word, which hold the zero point minus one unless
// checkpoint_format is gptq_v2; and X.g_idx [K], the group of every column.
func gptq(q *quantization) *convention {
	q.bits("bits")
	g := &gptqWeights{group: q.group("group_size"), added: 1, reordered: q.flag("desc_act")}
	if q.only("checkpoint_format", "gptq", "gptq", "gptq_v2") == "gptq_v2" {
		g.added = 0
	}
	if q.flag("is_marlin_format") {
		q.failf(ErrUnsupported, "is_marlin_format", "numbers in the order of Marlin's kernels; supported is the order of gptq")
	}
	return &convention{weight: g.weight, parts: []string{".qweight", ".qzeros", ".scales", ".g_idx"}}
}

type gptqWeights struct {
	group, added int
	reordered    bool // columns are sorted by activation, as g_idx describes
}

func (g *gptqWeights) weight(a *assembly, t *tensor.Tensor) (*tensor.Tensor, error) {
	base, ok := strings.CutSuffix(t.Name, ".qweight")
	if !ok {
		return nil, nil
	}
	if len(t.Shape) != 2 || t.Shape[0] > maxPacked {
		return nil, a.file.errorIn(t, 0, ErrUnsupported, "packed numbers of shape %v; supported are matrices", t.Shape)
	}
	rows, cols := t.Shape[1], 8*t.Shape[0]
	w := &int4{
		file: a.file, words: t, rows: rows, cols: cols, group: inRow(g.group, cols),
		wordByRow: 1, wordByCol: rows,
		zeroByRows: 1, zeroByGroup: rows / 8, places: &inOrder, added: g.added,
		scaleByRow: 1, scaleByGroup: rows,
	}
	var err error
	if w.zeros, err = a.needed(t, base+".qzeros"); err != nil {
		return nil, err
	}
	if w.scales, err = a.needed(t, base+".scales"); err != nil {
		return nil, err
	}
	n := groups(cols, w.group)
	if rows%8 != 0 {
		return nil, a.file.errorIn(t, 0, ErrFormat, "%d rows of the weight, want a multiple of 8", rows)
	}
	if err := w.check([2]int{cols / 8, rows}, [2]int{n, rows / 8}, [2]int{n, rows}); err != nil {
		return nil, err
	}
	if err := w.inOrderOf(a.part(base+".g_idx"), g.reordered); err != nil {
		return nil, err
	}
	return w.tensor(base + ".weight"), nil
}

// maxPacked exceeds the number of words in any row or column. The bound keeps a false length from
// overflowing when it is multiplied by eight.
const maxPacked = 1 << 27

// inOrderOf checks that column k is in group k/group, as block formats require. A missing index is
// valid unless the columns are reordered.
func (w *int4) inOrderOf(index *tensor.Tensor, reordered bool) error {
	if index == nil {
		if reordered {
			return w.file.errorIn(w.words, 0, ErrUnsupported, "columns sorted by activation (desc_act), but no g_idx with their order")
		}
		return nil
	}
	if index.DType != tensor.I32 || len(index.Shape) != 1 || index.Shape[0] != w.cols {
		return w.file.errorIn(index, 0, ErrFormat, "%v of shape %v, want I32 of shape [%d]", index.DType, index.Shape, w.cols)
	}
	for k := range w.cols {
		if g := int32(word(index, k)); int(g) != k/w.group {
			return w.file.errorIn(index, 4*k, ErrUnsupported,
				"column %d is in group %d, not %d: columns sorted by activation (act-order, desc_act); supported are columns in their natural order", k, g, k/w.group)
		}
	}
	return nil
}

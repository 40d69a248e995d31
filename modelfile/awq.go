package modelfile

import (
	"strings"

	"github.com/realizar/realizar/tensor"
)

// awq implements quant_method awq, version gemm, as AutoAWQ writes it. A weight X.weight [N, K] is
// stored as X.qweight [K, N/8], with eight rows of the weight per word; X.qzeros [K/g, N/8], packed
// alike; and X.scales [K/g, N]. From the lowest bits up, a word holds rows 0, 2, 4, 6, 1, 3, 5, 7.
func awq(q *quantization) *convention {
	q.bits("bits")
	q.only("version", "gemm", "gemm")
	a := awqWeights{group: q.group("group_size")}
	return &convention{weight: a.weight, parts: []string{".qweight", ".qzeros", ".scales"}}
}

// awqPlaces maps each of eight rows to its place in a word.
var awqPlaces = [8]int{0, 4, 1, 5, 2, 6, 3, 7}

type awqWeights struct{ group int }

func (g awqWeights) weight(a *assembly, t *tensor.Tensor) (*tensor.Tensor, error) {
	base, ok := strings.CutSuffix(t.Name, ".qweight")
	if !ok {
		return nil, nil
	}
	if len(t.Shape) != 2 || t.Shape[1] > maxPacked {
		return nil, a.file.errorIn(t, 0, ErrUnsupported, "packed numbers of shape %v; supported are matrices", t.Shape)
	}
	cols, packed := t.Shape[0], t.Shape[1]
	w := &int4{
		file: a.file, words: t, rows: 8 * packed, cols: cols, group: inRow(g.group, cols),
		across: true, wordByCol: packed,
		zeroByRows: 1, zeroByGroup: packed, places: &awqPlaces,
		scaleByRow: 1, scaleByGroup: 8 * packed,
	}
	var err error
	if w.zeros, err = a.needed(t, base+".qzeros"); err != nil {
		return nil, err
	}
	if w.scales, err = a.needed(t, base+".scales"); err != nil {
		return nil, err
	}
	n := groups(cols, w.group)
	if err := w.check([2]int{cols, packed}, [2]int{n, packed}, [2]int{n, w.rows}); err != nil {
		return nil, err
	}
	return w.tensor(base + ".weight"), nil
}

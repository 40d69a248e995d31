package cuda

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A tile has as many bytes as its rows have in a file, and its columns are whole blocks.
func TestTiles(t *testing.T) {
	for _, d := range plantest.Dtypes {
		d = laidAs(d, &plan.Limits{})
		cols, bytes := tileOf(d)
		size, err := d.Size(cols)
		if err != nil {
			t.Fatal(err)
		}
		if bytes != tileRows*size {
			t.Errorf("%v: a tile of %d bytes, %d rows of %d columns are %d", d, bytes, tileRows, cols, tileRows*size)
		}
		if cols%32 != 0 || bytes%16 != 0 {
			t.Errorf("%v: %d columns and %d bytes; want multiples of 32 and of 16, for what is read at a time", d, cols, bytes)
		}
	}
}

func TestTilings(t *testing.T) {
	for _, test := range []struct {
		d          tensor.DType
		rows, cols int
		want       tiling
		size       int
	}{
		{tensor.F32, 1, 1, tiling{format: tensor.F32, rows: 1, cols: 1, rowTiles: 1, colTiles: 1, bytes: 2048}, 2048},
		{tensor.F32, 17, 33, tiling{format: tensor.F32, rows: 17, cols: 33, rowTiles: 2, colTiles: 2, bytes: 2048}, 4 * 2048},
		{tensor.F16, 16, 128, tiling{format: tensor.F16, rows: 16, cols: 128, rowTiles: 1, colTiles: 1, bytes: 4096}, 4096},
		{tensor.BF16, 48, 129, tiling{format: tensor.BF16, rows: 48, cols: 129, rowTiles: 3, colTiles: 2, bytes: 4096}, 6 * 4096},
		{tensor.Q4_K, 15, 256, tiling{format: tensor.Q4_K, rows: 15, cols: 256, rowTiles: 1, colTiles: 1, bytes: 2304}, 2304},
		{tensor.Q4_K, 32, 512, tiling{format: tensor.Q4_K, rows: 32, cols: 512, rowTiles: 2, colTiles: 2, bytes: 2304}, 4 * 2304},
		{tensor.Q8_0, 16, 32, tiling{format: tensor.Q8_0, rows: 16, cols: 32, rowTiles: 1, colTiles: 1, bytes: 4352}, 4352},
		{tensor.TQ2_0, 17, 256, tiling{format: tensor.TQ2_0, rows: 17, cols: 256, rowTiles: 2, colTiles: 1, bytes: 1056}, 2 * 1056},
		{tensor.TQ1_0, 16, 256, tiling{format: tensor.F16, rows: 16, cols: 256, rowTiles: 1, colTiles: 2, bytes: 4096}, 2 * 4096},
		{tensor.F64, 17, 33, tiling{format: tensor.F32, rows: 17, cols: 33, rowTiles: 2, colTiles: 2, bytes: 2048}, 4 * 2048},
		{tensor.MXFP4, 33, 288, tiling{format: tensor.MXFP4, rows: 33, cols: 288, rowTiles: 3, colTiles: 2, bytes: 2176}, 6 * 2176},
	} {
		got := tilingOf(&tensor.Tensor{DType: test.d, Shape: []int{test.rows, test.cols}}, &plan.Limits{Activations: tensor.Q8_0})
		if got != test.want || got.size() != test.size {
			t.Errorf("%v [%d, %d]: %+v of %d bytes, want %+v of %d", test.d, test.rows, test.cols, got, got.size(), test.want, test.size)
		}
	}
}

// Weights lie beside each other at multiples of 256 bytes, and one that is used twice
// lies there once.
func TestWeightsAreApart(t *testing.T) {
	for _, p := range []*plan.Program{plantest.Model(t, nil), apart(t)} {
		w := planWeights(p, &plan.Limits{}, streamSlots)
		end := 0
		for _, x := range w.order {
			if at := w.at[x]; at != end || at%256 != 0 {
				t.Errorf("%s lies at %d, want %d", x.Name, at, end)
			}
			size := 4 * x.Elems()
			if m, ok := w.matrices[x]; ok {
				size = m.size()
			}
			end += align(size)
		}
		if end != w.bytes || len(w.order) != len(w.at) {
			t.Errorf("%d weights end at %d, planned are %d in %d bytes", len(w.order), end, len(w.at), w.bytes)
		}
	}
}

// Every row of every weight travels once, in whole tiles and no more at a time than there
// is room for.
func TestChunks(t *testing.T) {
	big := &tensor.Tensor{Name: "big", DType: tensor.F32, Shape: []int{5003, 4096}}
	big.Data = make([]byte, 4*big.Elems())
	wide := &tensor.Tensor{Name: "wide", DType: tensor.F16, Shape: []int{33, 1 << 20}}
	wide.Data = make([]byte, 2*wide.Elems())
	vector := &tensor.Tensor{Name: "vector", DType: tensor.BF16, Shape: []int{77}, Data: make([]byte, 154)}
	w := &weightPlan{
		order:    []*tensor.Tensor{big, vector, wide},
		matrices: map[*tensor.Tensor]tiling{big: tilingOf(big, &plan.Limits{}), wide: tilingOf(wide, &plan.Limits{})},
	}
	chunks, largest := w.chunks([]int{0, 1, 2}, loadBytes)
	row, weight := 0, 0
	for _, c := range chunks {
		if c.weight != weight {
			if m, ok := w.matrices[w.order[weight]]; ok && row != m.rows {
				t.Errorf("%s ends with row %d of %d", w.order[weight].Name, row, m.rows)
			}
			row, weight = 0, weight+1
		}
		if c.weight != weight || c.row != row || c.row%tileRows != 0 {
			t.Errorf("chunk %+v, want row %d of weight %d", c, row, weight)
		}
		row += c.rows
		x := w.order[c.weight]
		bytes := 4 * x.Elems()
		if m, ok := w.matrices[x]; ok {
			bytes = c.rows * len(x.Data) / m.rows
		}
		if bytes > largest {
			t.Errorf("chunk %+v has %d bytes, room is for %d", c, bytes, largest)
		}
	}
	if row != 33 || weight != 2 {
		t.Errorf("the chunks end with row %d of weight %d", row, weight)
	}
	// No less than a row of tiles travels, however wide it is.
	if want := tileRows * 2 << 20; largest != want {
		t.Errorf("room for %d bytes, want %d", largest, want)
	}
}

// Formats without kernels travel as floats of the format in which they lie; what that
// cannot hold is an error that names the weight and the way out.
func TestWeightsInOtherFormats(t *testing.T) {
	for _, d := range plantest.Dtypes {
		for _, activations := range []tensor.DType{tensor.F32, tensor.Q8_0} {
			w := plantest.Weight(newRand(), "w", d, 0.5, 40, 256)
			m := tilingOf(w, &plan.Limits{Activations: activations})
			want, err := w.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			x := berth{host: make([]byte, 24*m.rowBytes())}
			n, err := x.fill(w, &m, &chunk{row: 16, rows: 24})
			if err != nil || n != len(x.host) {
				t.Fatalf("%v: %d bytes of %d, %v", d, n, len(x.host), err)
			}
			got := make([]float32, 24*256)
			if err := tensor.Dequantize(m.format, got, x.host); err != nil {
				t.Fatal(err)
			}
			most := 0.0 // parts of a value
			if m.format == tensor.F16 && activations == tensor.Q8_0 {
				most = 0x1p-11
			}
			for i, v := range got {
				if e := math.Abs(float64(v - want[16*256+i])); e > most*math.Abs(float64(v))+most*0x1p-14 {
					t.Fatalf("%v with activations in %v: value %d is %v, want %v", d, activations, i, v, want[16*256+i])
				}
			}
		}
	}

	w := plantest.Weight(newRand(), "blk.0.attn_q.weight", tensor.IQ3_S, 1, 1, 256)
	copy(w.Data, []byte{0xff, 0x7b}) // 65504 as float16
	m := tilingOf(w, &plan.Limits{Activations: tensor.Q8_0})
	x := berth{host: make([]byte, m.rowBytes())}
	_, err := x.fill(w, &m, &chunk{rows: 1})
	if !errors.Is(err, tensor.ErrValue) {
		t.Fatalf("values beyond F16: %v", err)
	}
	for _, part := range []string{w.Name, "IQ3_S", "F16", "activations in float32"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %s", err, part)
		}
	}
}

// What travels of a weight whose rows are made is what travels of one with data.
func TestDerivedWeights(t *testing.T) {
	for _, d := range plantest.Dtypes {
		for _, activations := range []tensor.DType{tensor.F32, tensor.Q8_0} {
			w := plantest.Weight(newRand(), "w", d, 0.5, 75, 256)
			m := tilingOf(w, &plan.Limits{Activations: activations})
			for _, c := range []chunk{{row: 0, rows: 75}, {row: 16, rows: 32}, {row: 64, rows: 11}} {
				var sent [2][]byte
				for i, w := range []*tensor.Tensor{w, plantest.Derive(w)} {
					x := berth{host: make([]byte, 75*m.rowBytes())}
					n, err := x.fill(w, &m, &c)
					if err != nil {
						t.Fatal(err)
					}
					sent[i] = x.host[:n]
				}
				if len(sent[0]) != c.rows*m.rowBytes() || !bytes.Equal(sent[0], sent[1]) {
					t.Errorf("%v, %v activations: rows %d to %d differ", d, activations, c.row, c.row+c.rows)
				}
			}
		}
	}
}

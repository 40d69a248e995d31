package cuda

import (
	"testing"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A tile has as many bytes as its rows have in a file, and its columns are whole blocks.
func TestTiles(t *testing.T) {
	for _, d := range plantest.Dtypes {
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
		{tensor.F32, 1, 1, tiling{rows: 1, cols: 1, rowTiles: 1, colTiles: 1, bytes: 2048}, 2048},
		{tensor.F32, 17, 33, tiling{rows: 17, cols: 33, rowTiles: 2, colTiles: 2, bytes: 2048}, 4 * 2048},
		{tensor.F16, 16, 128, tiling{rows: 16, cols: 128, rowTiles: 1, colTiles: 1, bytes: 4096}, 4096},
		{tensor.BF16, 48, 129, tiling{rows: 48, cols: 129, rowTiles: 3, colTiles: 2, bytes: 4096}, 6 * 4096},
		{tensor.Q4_K, 15, 256, tiling{rows: 15, cols: 256, rowTiles: 1, colTiles: 1, bytes: 2304}, 2304},
		{tensor.Q4_K, 32, 512, tiling{rows: 32, cols: 512, rowTiles: 2, colTiles: 2, bytes: 2304}, 4 * 2304},
		{tensor.Q8_0, 16, 32, tiling{rows: 16, cols: 32, rowTiles: 1, colTiles: 1, bytes: 4352}, 4352},
		{tensor.MXFP4, 33, 288, tiling{rows: 33, cols: 288, rowTiles: 3, colTiles: 2, bytes: 2176}, 6 * 2176},
	} {
		got := tilingOf(&tensor.Tensor{DType: test.d, Shape: []int{test.rows, test.cols}})
		if got != test.want || got.size() != test.size {
			t.Errorf("%v [%d, %d]: %+v of %d bytes, want %+v of %d", test.d, test.rows, test.cols, got, got.size(), test.want, test.size)
		}
	}
}

// Weights lie beside each other at multiples of 256 bytes, and one that is used twice
// lies there once.
func TestWeightsAreApart(t *testing.T) {
	for _, p := range []*plan.Program{plantest.Model(t, nil), apart(t)} {
		w := planWeights(p)
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
		matrices: map[*tensor.Tensor]tiling{big: tilingOf(big), wide: tilingOf(wide)},
	}
	chunks, largest := w.chunks()
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

package cuda

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A tile has as many bytes as its rows have in a file, except for 6-bit scales and minima, which
// are stored as bytes, and for scales of E4M3 numbers, which are stored as float16. Its columns are
// whole blocks.
func TestTiles(t *testing.T) {
	for _, d := range plantest.Dtypes {
		d = weights.LaidAs(d, &plan.Limits{Activations: tensor.F16})
		cols, bytes := weights.TileOf(d)
		size, err := d.Size(cols)
		if err != nil {
			t.Fatal(err)
		}
		want := weights.TileRows * size
		if d == tensor.Q4_K || d == tensor.Q5_K {
			want += weights.TileRows * 4
		}
		if d == tensor.F8_E4M3_32 {
			want -= weights.TileRows * 8 * 2
		}
		if bytes != want {
			t.Errorf("%v: a tile of %d bytes, %d rows of %d columns are %d", d, bytes, weights.TileRows, cols, want)
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
		want       weights.Tiling
		size       int
	}{
		{tensor.F32, 1, 1, weights.Tiling{Format: tensor.F32, Rows: 1, Cols: 1, RowTiles: 1, ColTiles: 1, Bytes: 2048}, 2048},
		{tensor.F32, 17, 33, weights.Tiling{Format: tensor.F32, Rows: 17, Cols: 33, RowTiles: 2, ColTiles: 2, Bytes: 2048}, 4 * 2048},
		{tensor.F16, 16, 128, weights.Tiling{Format: tensor.F16, Rows: 16, Cols: 128, RowTiles: 1, ColTiles: 1, Bytes: 4096}, 4096},
		{tensor.BF16, 48, 129, weights.Tiling{Format: tensor.BF16, Rows: 48, Cols: 129, RowTiles: 3, ColTiles: 2, Bytes: 4096}, 6 * 4096},
		{tensor.Q4_K, 15, 256, weights.Tiling{Format: tensor.Q4_K, Rows: 15, Cols: 256, RowTiles: 1, ColTiles: 1, Bytes: 2368}, 2368 + 64},
		{tensor.Q4_K, 32, 512, weights.Tiling{Format: tensor.Q4_K, Rows: 32, Cols: 512, RowTiles: 2, ColTiles: 2, Bytes: 2368}, 4*2368 + 2*64},
		{tensor.Q8_0, 16, 32, weights.Tiling{Format: tensor.Q8_0, Rows: 16, Cols: 32, RowTiles: 1, ColTiles: 1, Bytes: 4352}, 4352 + 64},
		{tensor.TQ2_0, 17, 256, weights.Tiling{Format: tensor.TQ2_0, Rows: 17, Cols: 256, RowTiles: 2, ColTiles: 1, Bytes: 1056}, 2*1056 + 2*64},
		{tensor.TQ1_0, 16, 256, weights.Tiling{Format: tensor.F16, Rows: 16, Cols: 256, RowTiles: 1, ColTiles: 2, Bytes: 4096}, 2 * 4096},
		{tensor.F8_E4M3_32, 17, 288, weights.Tiling{Format: tensor.F8_E4M3_32, Rows: 17, Cols: 288, RowTiles: 2, ColTiles: 2, Bytes: 4352}, 4*4352 + 2*64},
		{tensor.F64, 17, 33, weights.Tiling{Format: tensor.F32, Rows: 17, Cols: 33, RowTiles: 2, ColTiles: 2, Bytes: 2048}, 4 * 2048},
		{tensor.MXFP4, 33, 288, weights.Tiling{Format: tensor.MXFP4, Rows: 33, Cols: 288, RowTiles: 3, ColTiles: 2, Bytes: 2176}, 6*2176 + 3*64},
	} {
		test.want.Whole = test.cols
		got := weights.TilingOf(&tensor.Tensor{DType: test.d, Shape: []int{test.rows, test.cols}}, &plan.Limits{Activations: tensor.F16})
		if got != test.want || got.Size() != test.size {
			t.Errorf("%v [%d, %d]: %+v of %d bytes, want %+v of %d", test.d, test.rows, test.cols, got, got.Size(), test.want, test.size)
		}
	}
}

// Weights are at distinct multiples of 256 bytes. A weight that is used twice is stored once.
func TestWeightsAreApart(t *testing.T) {
	for _, p := range []*plan.Program{plantest.Model(t, nil), apart(t)} {
		w := weights.NewPlan(p, &plan.Limits{}, weights.StreamSlots)
		end := 0
		for _, x := range w.Order {
			if at := w.At[x]; at != end || at%256 != 0 {
				t.Errorf("%s lies at %d, want %d", x.Name, at, end)
			}
			size := 4 * x.Elems()
			if m, ok := w.Matrices[x]; ok {
				size = m.Size()
			}
			end += weights.Align(size)
		}
		if end != w.Bytes || len(w.Order) != len(w.At) {
			t.Errorf("%d weights end at %d, planned are %d in %d bytes", len(w.Order), end, len(w.At), w.Bytes)
		}
	}
}

// Every row of every weight is copied once, in whole tiles and within the size of the staging
// buffer.
func TestChunks(t *testing.T) {
	big := &tensor.Tensor{Name: "big", DType: tensor.F32, Shape: []int{5003, 4096}}
	big.Data = make([]byte, 4*big.Elems())
	wide := &tensor.Tensor{Name: "wide", DType: tensor.F16, Shape: []int{33, 1 << 20}}
	wide.Data = make([]byte, 2*wide.Elems())
	vector := &tensor.Tensor{Name: "vector", DType: tensor.BF16, Shape: []int{77}, Data: make([]byte, 154)}
	w := &weights.Plan{
		Order:    []*tensor.Tensor{big, vector, wide},
		Matrices: map[*tensor.Tensor]weights.Tiling{big: weights.TilingOf(big, &plan.Limits{}), wide: weights.TilingOf(wide, &plan.Limits{})},
	}
	chunks, largest := w.Chunks([]int{0, 1, 2}, weights.LoadBytes)
	row, weight := 0, 0
	for _, c := range chunks {
		if c.Weight != weight {
			if m, ok := w.Matrices[w.Order[weight]]; ok && row != m.Rows {
				t.Errorf("%s ends with row %d of %d", w.Order[weight].Name, row, m.Rows)
			}
			row, weight = 0, weight+1
		}
		if c.Weight != weight || c.Row != row || c.Row%weights.TileRows != 0 {
			t.Errorf("chunk %+v, want row %d of weight %d", c, row, weight)
		}
		row += c.Rows
		x := w.Order[c.Weight]
		bytes := 4 * x.Elems()
		if m, ok := w.Matrices[x]; ok {
			bytes = c.Rows * len(x.Data) / m.Rows
		}
		if bytes > largest {
			t.Errorf("chunk %+v has %d bytes, room is for %d", c, bytes, largest)
		}
	}
	if row != 33 || weight != 2 {
		t.Errorf("the chunks end with row %d of weight %d", row, weight)
	}
	// At least one row of tiles is copied at a time, however wide it is.
	if want := weights.TileRows * 2 << 20; largest != want {
		t.Errorf("room for %d bytes, want %d", largest, want)
	}
}

// Formats without kernels are copied as floats in the format of their layout. A value that this
// format cannot hold is an error that names the weight and the way out.
func TestWeightsInOtherFormats(t *testing.T) {
	for _, d := range plantest.Dtypes {
		for _, activations := range []tensor.DType{tensor.F32, tensor.F16} {
			w := plantest.Weight(newRand(), "w", d, 0.5, 40, 256)
			m := weights.TilingOf(w, &plan.Limits{Activations: activations})
			want, err := w.Float32s()
			if err != nil {
				t.Fatal(err)
			}
			x := weights.Berth{Host: make([]byte, 24*m.RowBytes())}
			n, err := x.Fill(w, &m, &weights.Chunk{Row: 16, Rows: 24})
			if err != nil || n != len(x.Host) {
				t.Fatalf("%v: %d bytes of %d, %v", d, n, len(x.Host), err)
			}
			got := make([]float32, 24*256)
			if err := tensor.Dequantize(m.Format, got, x.Host); err != nil {
				t.Fatal(err)
			}
			most := 0.0 // relative error of a value
			if m.Format == tensor.F16 && activations == tensor.F16 {
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
	m := weights.TilingOf(w, &plan.Limits{Activations: tensor.F16})
	x := weights.Berth{Host: make([]byte, m.RowBytes())}
	_, err := x.Fill(w, &m, &weights.Chunk{Rows: 1})
	if !errors.Is(err, tensor.ErrValue) {
		t.Fatalf("values beyond F16: %v", err)
	}
	for _, part := range []string{w.Name, "IQ3_S", "F16", "activations in float32"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not say %s", err, part)
		}
	}
}

// A weight with derived rows is copied like one with data.
func TestDerivedWeights(t *testing.T) {
	for _, d := range plantest.Dtypes {
		for _, activations := range []tensor.DType{tensor.F32, tensor.F16} {
			w := plantest.Weight(newRand(), "w", d, 0.5, 75, 256)
			m := weights.TilingOf(w, &plan.Limits{Activations: activations})
			for _, c := range []weights.Chunk{{Row: 0, Rows: 75}, {Row: 16, Rows: 32}, {Row: 64, Rows: 11}} {
				var sent [2][]byte
				for i, w := range []*tensor.Tensor{w, plantest.Derive(w)} {
					x := weights.Berth{Host: make([]byte, 75*m.RowBytes())}
					n, err := x.Fill(w, &m, &c)
					if err != nil {
						t.Fatal(err)
					}
					sent[i] = x.Host[:n]
				}
				if len(sent[0]) != c.Rows*m.RowBytes() || !bytes.Equal(sent[0], sent[1]) {
					t.Errorf("%v, %v activations: rows %d to %d differ", d, activations, c.Row, c.Row+c.Rows)
				}
			}
		}
	}
}

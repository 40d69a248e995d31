package cuda

import (
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/cuda/driver/drivertest"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
	"github.com/realizar/realizar/tensor"
)

// A step in which no sequence has more than eight tokens has one launch of attention a layer, as a
// step of one token of each sequence has, in the grid of its largest sequence.
func TestSeveralLaunches(t *testing.T) {
	one, prefill := []string{"decode"}, []string{"turn", "attend"}
	for _, c := range []struct {
		name  string
		cache tensor.DType
		seqs  []int // tokens of each sequence
		want  []string
		grids []uint32 // of the last launch: y and z
	}{
		{"one token of each", tensor.F16, []int{1, 1}, one, []uint32{4, 2}},
		{"two tokens", tensor.F16, []int{2}, []string{"several"}, []uint32{8, 1}},
		{"one, five and two tokens", tensor.F16, []int{1, 5, 2}, []string{"several"}, []uint32{8, 4}},
		{"eight tokens of bytes", tensor.Q8_0, []int{8}, []string{"several"}, []uint32{32, 1}},
		{"nine tokens", tensor.F16, []int{1, 9}, prefill, nil},
		{"two tokens of a float32 cache", tensor.F32, []int{2}, prefill, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, f := openFake(t, drivertest.Options{}, Options{Eager: true})
			p := decoder(t, tensor.F16)
			e := compiled(t, b, p, plantest.LimitsFor(p, 16, len(c.seqs), 128, testPageTokens, plan.Limits{Cache: c.cache}))
			x := &plan.Batch{Start: []int32{0}, Tables: make([]plan.PageTable, len(p.Groups))}
			for g := range x.Tables {
				x.Tables[g].Reset()
			}
			for s, n := range c.seqs {
				const position = 20
				for i := range n {
					x.Tokens, x.Positions = append(x.Tokens, 1), append(x.Positions, int32(position+i))
				}
				x.Rows = append(x.Rows, plan.Row{Token: int32(len(x.Tokens) - 1), Want: plan.WantToken})
				x.Start, x.Lengths = append(x.Start, int32(len(x.Tokens))), append(x.Lengths, position)
				var pages []int32
				for i := range (position+n-1)/testPageTokens + 1 {
					pages = append(pages, int32(s*(128/testPageTokens)+i))
				}
				for g := range x.Tables {
					x.Tables[g].Add(0, pages...)
				}
			}
			before := len(f.Launches())
			if err := run(e, x); err != nil {
				t.Fatal(err)
			}
			var names []string
			var grid []uint32
			for _, l := range f.Launches()[before:] {
				if name, _, _ := strings.Cut(l.Kernel, "_"); slices.Contains([]string{"turn", "attend", "decode", "several"}, name) {
					names, grid = append(names, name), []uint32{uint32(l.Grid.Y), uint32(l.Grid.Z)}
				}
			}
			if !slices.Equal(names, c.want) {
				t.Errorf("attention launches %v, want %v", names, c.want)
			}
			if c.grids != nil && !slices.Equal(grid, c.grids) {
				t.Errorf("the grid is of %v blocks in y and z, want %v", grid, c.grids)
			}
			if m := f.Misfits(); len(m) > 0 {
				t.Errorf("arguments of the kernels %v", m)
			}
		})
	}
}

//go:build gpu

package cuda

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tensor"
)

// TestProfile says what each kind of kernel takes of a decoding step: the graph's time
// less that of the graph without them.
func TestProfile(t *testing.T) {
	if os.Getenv("MODELS") == "" {
		t.Skip("MODELS names no files")
	}
	for _, path := range strings.Split(os.Getenv("MODELS"), ",") {
		b, err := Open(Options{})
		if err != nil {
			t.Fatal(err)
		}
		f, err := modelfile.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := arch.Build(f)
		if err != nil {
			t.Fatal(err)
		}
		p := m.Program
		lim := plan.Limits{Tokens: 256, Seqs: 1, Rows: 1, PageTokens: 32, Cache: tensor.F16, Activations: tensor.Q8_0}
		for range p.Groups {
			lim.Pages = append(lim.Pages, 16)
		}
		x, err := b.Compile(context.Background(), p, lim, nil)
		if err != nil {
			t.Fatal(err)
		}
		e := x.(*executable)
		step := func(pos, n int) {
			bt := &plan.Batch{Start: []int32{0, int32(n)}, Lengths: []int32{200}, Rows: []plan.Row{{Token: int32(n - 1), Want: plan.WantToken}}}
			for i := range n {
				bt.Tokens = append(bt.Tokens, int32(i*31+7))
				bt.Positions = append(bt.Positions, int32(pos+i))
			}
			for range p.Groups {
				pt := plan.PageTable{Start: []int32{0, 16}, First: []int32{0}}
				for i := range 16 {
					pt.Pages = append(pt.Pages, int32(i))
				}
				bt.Tables = append(bt.Tables, pt)
			}
			s, err := e.Submit(bt)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Wait(context.Background()); err != nil {
				t.Fatal(err)
			}
			s.Release()
		}
		step(0, 190)
		step(190, 1)
		sh := shape{tokens: 1, rows: 1, segments: 1, single: true}
		measure := func(all []launch) float64 {
			var us float64
			err := b.main.Do(func() error {
				g, err := e.capture(&sh, all)
				if err != nil {
					return err
				}
				from, err := b.main.NewTimer()
				if err != nil {
					return err
				}
				to, err := b.main.NewTimer()
				if err != nil {
					return err
				}
				var runs []float64
				for range 7 {
					if err := from.Record(e.stream); err != nil {
						return err
					}
					for range 20 {
						if err := g.Launch(e.stream); err != nil {
							return err
						}
					}
					if err := to.Record(e.stream); err != nil {
						return err
					}
					if err := to.Synchronize(); err != nil {
						return err
					}
					ms, err := to.Since(from)
					if err != nil {
						return err
					}
					runs = append(runs, float64(ms)*1000/20)
				}
				sort.Float64s(runs)
				us = runs[len(runs)/2]
				return g.Destroy()
			})
			if err != nil {
				t.Fatal(err)
			}
			return us
		}
		all := slices.Concat(e.forward, e.sample)
		whole := measure(all)
		fmt.Printf("%s: %d launches, %.1f us (%.0f a second)\n", path, len(all), whole, 1e6/whole)
		var names []string
		for _, l := range all {
			if !slices.Contains(names, l.name) {
				names = append(names, l.name)
			}
		}
		for _, name := range names {
			var without, only []launch
			for _, l := range all {
				if l.name == name {
					only = append(only, l)
				} else {
					without = append(without, l)
				}
			}
			w, o := whole-measure(without), measure(only)
			fmt.Printf("  %-70s x%-3d takes %7.1f us, %5.2f each; alone %7.1f, %5.2f each\n", name, len(only), w, w/float64(len(only)), o, o/float64(len(only)))
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		_ = f.Close()
		_ = b.Close()
	}
}

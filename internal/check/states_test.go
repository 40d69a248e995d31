package check_test

import (
	"testing"

	"github.com/realizar/realizar/internal/check"
	"github.com/realizar/realizar/internal/cpu"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/plan/plantest"
)

// The reference follows pages that are saved to host memory, and pages that are not.
func TestPages(t *testing.T) {
	p := plantest.Model(t, nil)
	for _, cache := range plantest.Caches {
		exe := compile(t, check.Wrap(cpu.New(2), options(100)), p, plan.Limits{Cache: cache, Activations: cpu.Rounds})
		lim := plantest.LimitsFor(p, 16, 2, 32, 16, plan.Limits{Cache: cache})
		run := func(from, to int, page int32, ops ...plan.StateOp) {
			t.Helper()
			b := &plan.Batch{Start: []int32{0, int32(to - from)}, Lengths: []int32{16}, States: ops}
			for i := from; i < to; i++ {
				b.Tokens, b.Positions = append(b.Tokens, int32(i*13%97)), append(b.Positions, int32(i))
				b.Rows = append(b.Rows, plan.Row{Token: int32(i - from), Want: plan.WantToken})
			}
			for range p.Groups {
				b.Tables = append(b.Tables, plan.PageTable{Pages: []int32{page}, Start: []int32{0, 1}, First: []int32{0}})
			}
			if res := submit(t, exe, b); res.Err != nil {
				t.Errorf("%v cache, positions %d to %d: errors %v", cache, from, to, res.Err)
			}
		}
		run(0, 9, 2)
		var save, restore []plan.StateOp
		for g := range p.Groups {
			n, err := lim.PageBytes(p, g)
			if err != nil {
				t.Fatal(err)
			}
			both, err := exe.AllocHost(2 * n)
			if err != nil {
				t.Fatal(err)
			}
			host, zeros := both[:n], both[n:]
			clear(zeros)
			save = append(save, plan.StateOp{Kind: plan.SavePage, Group: g, Page: 2, Host: host}, plan.StateOp{Kind: plan.RestorePage, Group: g, Page: 2, Host: zeros})
			restore = append(restore, plan.StateOp{Kind: plan.RestorePage, Group: g, Page: 3, Host: host})
		}
		run(0, 3, 0, save...)
		run(9, 12, 3, restore...)
		run(12, 13, 3)
	}
}

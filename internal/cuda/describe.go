package cuda

import (
	"strings"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
)

// Kernels describes which kernels run p, in launch order: a line for each stage, and more for the
// work before and after all stages. Of several kernels for a stage, those for more rows come later;
// a choice that was measured on the device, or is estimated, says so.
func (b *Backend) Kernels(p *plan.Program, lim plan.Limits) []string {
	lines, err := b.kernels(p, lim)
	if err != nil {
		return []string{err.Error()}
	}
	return lines
}

func (b *Backend) kernels(p *plan.Program, lim plan.Limits) ([]string, error) {
	if err := lower.Check(p, &lim); err != nil {
		return nil, err
	}
	l := lower.NewLayout(p, &lim, false)
	pools, _, err := lower.PlanPools(p, &lim)
	if err != nil {
		return nil, err
	}
	r := lower.NewRoom(p, &lim, l.Bytes)
	c := &lower.Compiler{
		Layout: l, Weights: b.planWeights(p, &lim), Pools: pools, Room: r, Table: b.tuning.Table(), Hopper: b.Hopper(), Early: b.Early(), Carves: b.Carves(), Multiprocessors: b.Info.Multiprocessors, Clusters: b.Clusters, Step: r.Addresses(0, make([]driver.DevicePtr, len(p.Groups))), Peers: &lower.Peers{BoxPackets: lower.BoxPackets, Team: lower.Team},
		Kernel: func(string, string) (*driver.Function, error) { return nil, nil },
	}
	before, stages, err := c.Compile()
	if err != nil {
		return nil, err
	}
	lines := []string{"step: " + names(before, &lim)}
	for _, head := range headsOf(p) {
		from, to := l.Part(head)
		for i := from; i < to; i++ {
			lines = append(lines, l.Stages[i].String()+": "+names(stages[i], &lim))
		}
		after, err := c.Finite(head)
		if err != nil {
			return nil, err
		}
		lines = append(lines, "residual: "+names(after, &lim))
		for _, adjusted := range []bool{false, true} {
			sampling, err := c.Sampling(head, adjusted)
			if err != nil {
				return nil, err
			}
			what := "sampling: "
			if adjusted {
				what = "adjusted sampling: "
			}
			lines = append(lines, what+names(sampling, &lim))
		}
	}
	return lines, nil
}

func names(all []lower.Launch, lim *plan.Limits) string {
	var s []string
	for i := range all {
		s = append(s, all[i].Describe(lim))
	}
	return strings.Join(s, "; ")
}

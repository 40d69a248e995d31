package cuda

import (
	"strings"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// Kernels says, a line for each stage of p and more for what comes before and after
// all of them, which kernels do it, in the order in which they are launched. Of
// several, those for more rows come later.
func (b *Backend) Kernels(p *plan.Program, lim plan.Limits) []string {
	lines, err := b.kernels(p, lim)
	if err != nil {
		return []string{err.Error()}
	}
	return lines
}

func (b *Backend) kernels(p *plan.Program, lim plan.Limits) ([]string, error) {
	l := newLayout(p, &lim, false)
	pools, _, err := planPools(p, &lim)
	if err != nil {
		return nil, err
	}
	r := newRoom(p, &lim, l.bytes)
	c := &compiler{
		l: l, weights: b.planWeights(p, &lim), pools: pools, room: r, hopper: b.hopper(), early: b.early(), step: r.addresses(0, make([]driver.DevicePtr, len(p.Groups))),
		kernel: func(string, string) (*driver.Function, error) { return nil, nil },
	}
	before, stages, err := c.compile()
	if err != nil {
		return nil, err
	}
	lines := []string{"step: " + names(before)}
	for i := range stages {
		lines = append(lines, l.stages[i].String()+": "+names(stages[i]))
	}
	after, err := c.finite()
	if err != nil {
		return nil, err
	}
	lines = append(lines, "residual: "+names(after))
	for _, adjusted := range []bool{false, true} {
		sampling, err := c.sampling(adjusted)
		if err != nil {
			return nil, err
		}
		what := "sampling: "
		if adjusted {
			what = "adjusted sampling: "
		}
		lines = append(lines, what+names(sampling))
	}
	return lines, nil
}

func names(all []launch) string {
	var s []string
	for _, l := range all {
		s = append(s, l.name)
	}
	return strings.Join(s, "; ")
}

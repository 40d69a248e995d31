package cuda

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/plan"
)

// Kernels says, a line for each stage of p and one each for what comes before and after
// all of them, which kernels do it, in the order in which they are launched. Of
// several, those for more rows come later.
func (b *Backend) Kernels(p *plan.Program, lim plan.Limits) []string {
	var lines []string
	err := b.rehearse(p, lim, func(string) {}, func(what string, all []launch) {
		lines = append(lines, what+": "+names(all))
	})
	if err != nil {
		return []string{err.Error()}
	}
	return lines
}

// families are the families of kernels that a program uses.
func (b *Backend) families(p *plan.Program, lim plan.Limits) (all []string, err error) {
	used := map[string]bool{}
	for t := range planWeights(p).matrices {
		used[family(t.DType)] = true
	}
	err = b.rehearse(p, lim, func(family string) { used[family] = true }, func(string, []launch) {})
	return slices.Sorted(maps.Keys(used)), err
}

// rehearse compiles a program without a device: family is told of each kernel's, part of
// the launches of each stage and of what comes before and after all of them.
func (b *Backend) rehearse(p *plan.Program, lim plan.Limits, family func(string), part func(string, []launch)) error {
	l := newLayout(p, &lim, false)
	pools, _, err := planPools(p, &lim)
	if err != nil {
		return err
	}
	r := newRoom(p, &lim, l.bytes)
	c := &compiler{
		l: l, weights: planWeights(p), pools: pools, room: r, hopper: b.hopper(), step: r.addresses(0, make([]driver.DevicePtr, len(p.Groups))),
		kernel: func(f, _ string) (*driver.Function, error) {
			family(f)
			return nil, nil
		},
	}
	before, stages, err := c.compile()
	if err != nil {
		return err
	}
	part("step", before)
	for i := range stages {
		part(describe(&l.stages[i]), stages[i])
	}
	after, err := c.finite()
	if err != nil {
		return err
	}
	part("residual", after)
	sampling, err := c.sampling()
	if err != nil {
		return err
	}
	part("sampling", sampling)
	return nil
}

func names(all []launch) string {
	var s []string
	for _, l := range all {
		s = append(s, l.name)
	}
	return strings.Join(s, "; ")
}

// describe names the nodes of a stage by their values.
func describe(s *stage) string {
	var parts []string
	add := func(n *plan.Node) {
		if n != nil {
			parts = append(parts, fmt.Sprintf("%%%d %v", n.Out, n.Op))
		}
	}
	add(s.pick)
	for _, h := range []head{s.q, s.k} {
		add(h.norm)
		add(h.rope)
	}
	for _, n := range s.nodes {
		add(n)
	}
	add(s.glu)
	add(s.add)
	return strings.Join(parts, ", ")
}

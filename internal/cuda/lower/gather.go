package lower

import (
	"fmt"
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// gather implements [plan.Gather].
type gather struct{ ordinary }

func (gather) check(n *plan.Node) error { return checkCut(n) }

type allGatherArgs struct {
	x, outs                               driver.DevicePtr
	meeting                               meeting
	stride, first, cols, padded, width, _ int32
	count                                 driver.DevicePtr
	ends                                  [MostParts]int32
}

func (gather) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	return c.exchange(n, n.Attr.(plan.GatherAttr).Columns, c.forms(n.In[0]), c.forms(n.Out), c.count(n.Out), func(sh *Shape) int { return sh.Size(c.rows(n.Out)) })
}

// exchange returns the launches that join the columns of all parts. x is the part's columns in
// float32, out is the whole value, count is the address of the number of rows, of which there are at
// most rows(sh).
func (c *Compiler) exchange(n *plan.Node, columns plan.Cut, x, out device.Forms, count driver.DevicePtr, rows func(sh *Shape) int) ([]Launch, error) {
	m, outs, err := c.meeting(n)
	if err != nil {
		return nil, err
	}
	part := int(m.part)
	own := columns.New(part)
	a := allGatherArgs{
		x: x.F32 + driver.DevicePtr(4*(own.Lo-columns[part].Lo)), outs: outs, meeting: m, stride: x.Stride, count: count,
		first: int32(own.Lo), cols: int32(own.Len()),
	}
	silent := false // a part has no columns that it is the first to have
	for i, r := range columns {
		a.ends[i] = int32(r.Hi)
		silent = silent || columns.New(i).Len() == 0
	}
	few := func(m meeting) (Launch, error) {
		a := a
		a.meeting = m
		return c.launch("gather", "few", c.rows(n.Out), device.Arguments(&a), exchangeThreads, func(sh *Shape) driver.Dim3 {
			return exchangeGrid(min(rows(sh), int(m.rows)) * int(out.Stride) / 4)
		})
	}
	var direct []Launch
	if !c.Peers.Apart {
		if direct, err = c.gatherDirectly(n, a, out, rows); err != nil {
			return nil, err
		}
	}
	if silent { // it would send no packets, and nobody would wait for it
		if direct == nil {
			return nil, fmt.Errorf("columns %v of %d parts: a part has none of its own, and GPUs that do not reach each other's memory cannot gather them; use fewer GPUs", columns, len(columns))
		}
		return direct, nil
	}
	return c.byPackets("gather", m, int(out.Stride)/4, rows, few, direct)
}

// gatherDirectly returns the launches with which every part writes its columns into the memory of the
// others.
func (c *Compiler) gatherDirectly(n *plan.Node, a allGatherArgs, out device.Forms, rows func(sh *Shape) int) ([]Launch, error) {
	columns := cutOf(n)
	part := int(a.meeting.part)
	if a.padded = a.cols; part == len(columns)-1 {
		a.padded = out.Stride - a.first
	}
	if a.width = 4; a.first%4 != 0 || (int(a.first)-columns[part].Lo)%4 != 0 || a.padded%4 != 0 {
		a.width = 1
	}
	give := func(a allGatherArgs) (Launch, error) {
		units := int(a.padded / a.width)
		return c.launch("gather", "all_gather", c.rows(n.Out), device.Arguments(&a), exchangeThreads, func(sh *Shape) driver.Dim3 { return exchangeGrid(rows(sh) * units) })
	}
	join, err := give(a)
	if err != nil || !meetsFirst(c.Layout.p, n) {
		return []Launch{join}, err
	}
	a.cols, a.padded = 0, 0
	meet, err := give(a)
	return []Launch{meet, join}, err
}

// meetsFirst reports whether all parts meet before they write the columns of n. They do so before the
// first exchange of a step if its result may be read after the last one: a part that has done the
// last exchange would write the next step's columns into what another part still reads.
func meetsFirst(p *plan.Program, n *plan.Node) bool {
	all, from, to := exchanges(p), 0, len(p.Nodes)
	if h := p.Head; h != nil { // the exchanges of a step with the head are the head's
		head := n.Out >= p.Nodes[h.First].Out
		all = slices.DeleteFunc(all, func(other *plan.Node) bool { return (other.Out >= p.Nodes[h.First].Out) != head })
		if from, to = 0, h.First; head {
			from, to = h.First, len(p.Nodes)
		}
	}
	if n != all[0] {
		return false
	}
	if len(all) == 1 || slices.Contains(p.Kept(), n.Out) {
		return true
	}
	nodes := p.Nodes[from:to]
	last := slices.IndexFunc(nodes, func(other plan.Node) bool { return other.Out == all[len(all)-1].Out })
	return slices.ContainsFunc(nodes[last:], func(later plan.Node) bool { return slices.Contains(later.In, n.Out) })
}

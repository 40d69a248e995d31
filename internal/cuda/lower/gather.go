package lower

import (
	"errors"
	"fmt"
	"slices"
	"time"
	"unsafe"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/fuse"
	"github.com/realizar/realizar/internal/plan"
)

// gather implements [plan.Gather].
type gather struct{ ordinary }

// MostParts is the largest number of parts of a program; see kernels/gather.cu.
const MostParts = 8

// Peers are the parts of one program that run together, one on each device.
type Peers struct {
	Part, Parts int
	Patience    time.Duration // for how long a part waits for the others
}

// Mail is what a part hears from the others; see kernels/gather.cu.
type Mail struct {
	From    [MostParts]uint32
	Gathers uint32
	Blocks  int32
	Lost    uint32 // 0, or 1 + the part that has not answered in time
	_       uint32
}

const (
	mailBytes  = int(unsafe.Sizeof(Mail{}))
	formsBytes = int(unsafe.Sizeof(device.Forms{}))
)

type allGatherArgs struct {
	x, outs, mail                                   driver.DevicePtr
	stride, parts, part, first, cols, padded, width int32
	patience                                        int64
	count                                           driver.DevicePtr
}

const (
	gatherThreads = 256
	gatherBlocks  = 264 // the most, two for each multiprocessor of a large device
)

var errAlone = errors.New("the program is a part of one that is divided, and is not connected to the others")

func (gather) launches(c *Compiler, s *fuse.Stage) ([]Launch, error) {
	n := s.Node()
	return c.exchange(n, n.Attr.(plan.GatherAttr).Columns, c.forms(n.In[0]), c.forms(n.Out), c.count(n.Out), func(sh *Shape) int { return sh.Size(c.rows(n.Out)) })
}

// exchange returns the launches that join the columns of all parts. x is the part's columns in
// float32, out is the whole value, count is the address of the number of rows, of which there are at
// most rows(sh).
func (c *Compiler) exchange(n *plan.Node, columns plan.Cut, x, out device.Forms, count driver.DevicePtr, rows func(sh *Shape) int) ([]Launch, error) {
	if c.Peers == nil {
		return nil, errAlone
	}
	part := c.Peers.Part
	own := columns.New(part)
	r, at := c.Room, func(offset int) driver.DevicePtr { return c.ScratchAt + driver.DevicePtr(offset) }
	a := allGatherArgs{
		x: x.F32 + driver.DevicePtr(4*(own.Lo-columns[part].Lo)), stride: x.Stride, count: count,
		outs: at(r.outs + formsBytes*len(columns)*slices.Index(exchanges(c.Layout.p), n)), mail: at(r.mails),
		parts: int32(len(columns)), part: int32(part), first: int32(own.Lo), cols: int32(own.Len()), padded: int32(own.Len()),
		patience: int64(c.Peers.Patience),
	}
	if part == len(columns)-1 {
		a.padded = out.Stride - a.first
	}
	if a.width = 4; own.Lo%4 != 0 || (own.Lo-columns[part].Lo)%4 != 0 || a.padded%4 != 0 {
		a.width = 1
	}
	give := func(a allGatherArgs) (Launch, error) {
		units := int(a.padded / a.width)
		return c.launch("gather", "all_gather", c.rows(n.Out), device.Arguments(&a), gatherThreads, func(sh *Shape) driver.Dim3 {
			return driver.Dim3{X: min(gatherBlocks, max(1, (rows(sh)*units+gatherThreads-1)/gatherThreads))}
		})
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
	all := exchanges(p)
	if n != all[0] {
		return false
	}
	if len(all) == 1 || n.Out == p.Hidden || n.Out == p.Logits {
		return true
	}
	last := slices.IndexFunc(p.Nodes, func(other plan.Node) bool { return other.Out == all[len(all)-1].Out })
	return slices.ContainsFunc(p.Nodes[last:], func(later plan.Node) bool { return slices.Contains(later.In, n.Out) })
}

func (gather) check(n *plan.Node) error { return checkCut(n) }

// checkCut returns an error if the kernel cannot join the columns that the parts exchange in n.
func checkCut(n *plan.Node) error {
	if parts := len(cutOf(n)); parts > MostParts {
		return fmt.Errorf("%d parts of a program; a gather joins up to %d", parts, MostParts)
	}
	return nil
}

// exchanges returns the nodes of p with an exchange, in the order in which every part runs them.
func exchanges(p *plan.Program) (all []*plan.Node) {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; cutOf(n) != nil {
			all = append(all, n)
		}
	}
	return all
}

// cutOf returns the columns that the parts exchange in n, or nil.
func cutOf(n *plan.Node) plan.Cut {
	switch a := n.Attr.(type) {
	case plan.GatherAttr:
		return a.Columns
	case plan.ExpertsAttr:
		return a.Hidden
	}
	return nil
}

// takePeers reserves the memory in which parts find each other.
func (r *Room) takePeers(p *plan.Program, take func(bytes int) int) {
	if all := exchanges(p); len(all) > 0 {
		parts := len(cutOf(all[0]))
		r.outs, r.mails = take(formsBytes*parts*len(all)), take(8*parts)
	}
}

// Ends returns where the part has the results of its exchanges.
func (c *Compiler) Ends() (all []device.Forms) {
	for _, n := range exchanges(c.Layout.p) {
		if n.Op == plan.Experts {
			all = append(all, c.mixture(n).hidden())
		} else {
			all = append(all, c.forms(n.Out))
		}
	}
	return all
}

// Connect returns what a part needs to know of all parts: ends of each, and where each has its mail.
// They are copied to the returned offsets of the part's scratch memory.
func (r *Room) Connect(ends [][]device.Forms, mail []driver.DevicePtr) (outs, mails []byte, outsAt, mailsAt int) {
	parts := len(ends)
	outs, mails = make([]byte, formsBytes*parts*len(ends[0])), make([]byte, 8*parts)
	for part := range ends {
		for i, f := range ends[part] {
			device.Words[device.Forms](outs)[i*parts+part] = f
		}
	}
	copy(device.Words[driver.DevicePtr](mails), mail)
	return outs, mails, r.outs, r.mails
}

// early returns the stages for the planner of scratch memory. A part may be ahead of another one by
// up to a gather, and then writes what the other one has not come to. So the result of a gather has
// its memory from the gather before, and that of the first one for the whole step, because it may
// be written while another part still ends the step before.
func early(all []fuse.Stage, io []plan.Stage) []plan.Stage {
	io = slices.Clone(io)
	before := -1
	for i := range all {
		if all[i].Node().Op != plan.Gather {
			continue
		}
		out, last := io[i].Out, len(io)-1
		io[i].Out = nil
		io[i].In = slices.Concat(io[i].In, out)
		if before < 0 {
			before = 0
			io[last].In = slices.Concat(io[last].In, out)
		}
		io[before].Out = slices.Concat(io[before].Out, out)
		before = i
	}
	return io
}

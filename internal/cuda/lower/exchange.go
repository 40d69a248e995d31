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

// MostParts is the largest number of parts of a program; see kernels/mail.cuh.
const MostParts = 8

// Peers are the parts of one program that run together, one on each device.
type Peers struct {
	Part, Parts int
	Patience    time.Duration // for how long a part waits for the others
	Apart       bool          // the devices do not reach each other's memory
	BoxPackets  int           // the most that a part gets in a meeting, up to BoxPackets
	Team        int           // blocks that have a row of sums
}

// Mail is what a part hears from the others; see kernels/mail.cuh.
type Mail struct {
	From     [MostParts]uint32
	Meetings uint32
	Blocks   int32
	Lost     uint32 // 0, or 1 + the part that has not answered in time
	_        uint32
}

// A Peer is where a part has what the others read and write; see kernels/mail.cuh.
type Peer struct{ mail, sums, Box driver.DevicePtr }

const (
	mailBytes   = int(unsafe.Sizeof(Mail{}))
	formsBytes  = int(unsafe.Sizeof(device.Forms{}))
	peerBytes   = int(unsafe.Sizeof(Peer{}))
	packetBytes = 32 // of four numbers
)

// meeting is what an exchange knows of the parts; see kernels/mail.cuh.
type meeting struct {
	peers, mine, sums    driver.DevicePtr
	parts, part          int32
	patience, boxPackets int64
	first, rows          int32
}

const (
	exchangeThreads = 256
	exchangeBlocks  = 264 // the most, two for each multiprocessor of a large device
)

var errAlone = errors.New("the program is a part of one that is divided, and is not connected to the others")

// An exchangeRoom is the memory in which the parts find each other, as offsets.
type exchangeRoom struct {
	outs  int // of all exchanges: where each part has the result, and then its norm
	peers int
	sums  int // of the columns that a part has
	box   int // of two meetings
}

// takeExchanges reserves the memory in which parts find each other.
func (r *Room) takeExchanges(p *plan.Program, l *plan.Limits, take func(bytes int) int) {
	all := exchanges(p)
	if len(all) == 0 {
		return
	}
	x, parts := &r.exchange, len(cutOf(all[0]))
	x.outs, x.peers = take(formsBytes*parts*2*len(all)), take(peerBytes*parts)
	sums := 0
	for _, n := range all {
		if n.Summed() != nil {
			of := p.Shapes[n.Out]
			sums = max(sums, 4*rowStride(int(of[1]))*l.Size(of[0]))
		}
	}
	x.sums, x.box = take(sums), take(BoxBytes)
}

// BoxPackets is how many packets a part gets in a meeting at most. Rows of more are written to the
// other parts without packets, which are twice as large as the numbers in them.
const BoxPackets = 128 << 10

// BoxBytes is the size of a box, with room for two meetings.
const BoxBytes = 2 * packetBytes * BoxPackets

// byPackets returns the launches of an exchange of at most rows(sh) rows. few exchanges the rows that
// the given meeting has, with each packets a row in a box. If the rows have more packets than a box,
// direct runs, or if that is nil, few for some rows after the others.
func (c *Compiler) byPackets(name string, m meeting, each int, rows func(sh *Shape) int, few func(m meeting) (Launch, error), direct []Launch) ([]Launch, error) {
	if m.rows = int32(int(m.boxPackets) / each); m.rows == 0 {
		if direct == nil {
			return nil, fmt.Errorf("a row of %d packets, and GPUs that do not reach each other's memory exchange at most %d at a time; use fewer GPUs", each, m.boxPackets)
		}
		return direct, nil
	}
	most := 1 // turns
	if direct == nil {
		most = max(1, (rows(&Shape{Tokens: Power(c.Layout.lim.Tokens), Rows: Power(c.Layout.lim.Rows)})+int(m.rows)-1)/int(m.rows))
	}
	var turns []Launch
	for range most {
		l, err := few(m)
		if err != nil {
			return nil, err
		}
		turns = append(turns, l)
		m.first += m.rows
	}
	chosen := func(sh *Shape) []Launch {
		n := max(1, (rows(sh)+int(m.rows)-1)/int(m.rows))
		if n > 1 && direct != nil {
			return direct
		}
		return turns[:n]
	}
	return []Launch{{
		Name: name, rows: turns[0].rows,
		runs: func(sh *Shape) string { return chosen(sh)[0].Name },
		begin: func(st *driver.Stream, sh *Shape) error {
			for _, l := range chosen(sh) {
				if err := l.begin(st, sh); err != nil {
					return err
				}
			}
			return nil
		},
	}}, nil
}

// Peer returns where a part with its scratch memory at base has what the others read and write.
func (r *Room) Peer(base driver.DevicePtr) Peer {
	at := func(offset int) driver.DevicePtr { return base + driver.DevicePtr(offset) }
	return Peer{mail: at(r.Mail), sums: at(r.exchange.sums), Box: at(r.exchange.box)}
}

// meeting returns what the exchange of n knows of the parts, and the address of the results of all
// parts, which their norms follow.
func (c *Compiler) meeting(n *plan.Node) (m meeting, outs driver.DevicePtr, err error) {
	if c.Peers == nil {
		return m, 0, errAlone
	}
	x, parts := &c.Room.exchange, len(cutOf(n))
	at := func(offset int) driver.DevicePtr { return c.ScratchAt + driver.DevicePtr(offset) }
	m = meeting{peers: at(x.peers), mine: at(c.Room.Mail), sums: at(x.sums), parts: int32(parts), part: int32(c.Peers.Part), patience: int64(c.Peers.Patience), boxPackets: int64(c.Peers.BoxPackets)}
	return m, at(x.outs + formsBytes*parts*2*slices.Index(exchanges(c.Layout.p), n)), nil
}

// exchangeGrid returns the grid of an exchange in which threads have the given number of units.
func exchangeGrid(units int) driver.Dim3 {
	return driver.Dim3{X: min(exchangeBlocks, max(1, (units+exchangeThreads-1)/exchangeThreads))}
}

// checkCut returns an error if the kernels cannot join what the parts exchange in n.
func checkCut(n *plan.Node) error {
	if parts := len(cutOf(n)); parts > MostParts {
		return fmt.Errorf("%d parts of a program; an exchange joins up to %d", parts, MostParts)
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

// cutOf returns the columns of the parts in n if it has an exchange, or nil.
func cutOf(n *plan.Node) plan.Cut {
	switch a := n.Attr.(type) {
	case plan.GatherAttr:
		return a.Columns
	case plan.LinearAttr:
		return a.Columns
	case plan.ExpertsAttr:
		return a.Hidden
	}
	return nil
}

// Ends returns where the part has the results of its exchanges, each with its norm.
func (c *Compiler) Ends() (all []device.Forms) {
	for _, n := range exchanges(c.Layout.p) {
		var result, norm device.Forms
		if n.Op == plan.Experts {
			result = c.mixture(n).hidden()
		} else {
			s := c.Layout.stageOf(n)
			if result = c.forms(s.Out()); s.Norm != nil {
				norm = c.forms(s.Norm.Out)
			}
		}
		all = append(all, result, norm)
	}
	return all
}

// stageOf returns the stage whose first node is n.
func (l *Layout) stageOf(n *plan.Node) *fuse.Stage {
	i := slices.IndexFunc(l.Stages, func(s fuse.Stage) bool { return s.Node() == n })
	return &l.Stages[i]
}

// Connect returns what a part needs to know of all parts: ends of each, and each as a peer. They are
// copied to the returned offsets of the part's scratch memory.
func (r *Room) Connect(ends [][]device.Forms, peers []Peer) (outs, parts []byte, outsAt, partsAt int) {
	n := len(ends)
	outs, parts = make([]byte, formsBytes*n*len(ends[0])), make([]byte, peerBytes*n)
	for part := range ends {
		for i, f := range ends[part] {
			device.Words[device.Forms](outs)[i*n+part] = f
		}
	}
	copy(device.Words[Peer](parts), peers)
	return outs, parts, r.exchange.outs, r.exchange.peers
}

// early returns the stages for the planner of scratch memory, of which those from head on are the
// program's head. A part may be ahead of another one by up to a gather, and then writes what the other
// one has not come to. So the result of a gather has its memory from the gather before, and that of
// the first one of a step for all stages, because it may be written while another part still ends the
// step before, of the same stages or of the others.
func early(all []fuse.Stage, io []plan.Stage, head int) []plan.Stage {
	io = slices.Clone(io)
	before := -1
	for i := range all {
		if i == head {
			before = -1
		}
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

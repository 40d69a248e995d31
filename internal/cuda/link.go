package cuda

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Group is several devices of one host that run the parts of one program together; see package
// mesh. Each device's kernels write into the memory of the others.
type Group struct {
	*Backend // the first device
	all      []*Backend
	patience time.Duration
	apart    error // why devices do not reach each other's memory, and exchange through the host's; nil if they do
	packets  int   // the most that a device gets at a time
	team     int   // blocks that add the sums of a row
}

// linkPatience is how long a device waits for the others within a step. Devices do the same work,
// so one that is so late has failed, or waits for weights from a disk that has.
const linkPatience = 10 * time.Second

// OpenGroup opens the devices with the given numbers. o.Device is ignored.
func OpenGroup(o Options, numbers []int) (*Group, error) {
	if len(numbers) == 0 || len(numbers) > lower.MostParts {
		return nil, fmt.Errorf("cuda: %d devices for one model; want 1 to %d", len(numbers), lower.MostParts)
	}
	g := &Group{patience: linkPatience, packets: lower.BoxPackets, team: lower.Team}
	for i, n := range numbers {
		if slices.Contains(numbers[:i], n) {
			return nil, errors.Join(fmt.Errorf("cuda: device %d appears twice; name each device once", n), g.Close())
		}
		o.Device = n
		b, err := Open(o)
		if err != nil {
			return nil, errors.Join(err, g.Close())
		}
		g.all = append(g.all, b)
	}
	g.Backend = g.all[0]
	if err := g.reach(); err != nil {
		return nil, errors.Join(fmt.Errorf("cuda: %w", err), g.Close())
	}
	return g, nil
}

// reach lets each device reach the memory of the others, or notes that one cannot.
func (g *Group) reach() error {
	for _, b := range g.all {
		for _, peer := range g.all {
			err := b.Main.Do(func() error { return b.Main.Connect(peer.Main) })
			if errors.Is(err, driver.ErrNoPeer) {
				g.apart = err
				return nil
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Close closes all devices.
func (g *Group) Close() error {
	var errs []error
	for _, b := range g.all {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// Names returns the names of the devices: "2 x NVIDIA H100", or each with its own.
func (g *Group) Names() string {
	var names []string
	for _, b := range g.all {
		names = append(names, b.Description())
	}
	if distinct := slices.Compact(slices.Clone(names)); len(distinct) == 1 {
		return fmt.Sprintf("%d x %s", len(names), names[0])
	}
	return strings.Join(names, " and ")
}

// Memories implements [mesh.Device].
func (g *Group) Memories() []plan.MemoryInfo {
	var all []plan.MemoryInfo
	for _, b := range g.all {
		all = append(all, b.Memory())
	}
	return all
}

// Apart returns why the devices do not reach each other's memory; nil if they do.
func (g *Group) Apart() error { return g.apart }

// Connect implements [mesh.Device]. parts must be the number of devices.
func (g *Group) Connect(parts int) []plan.Backend {
	if g.apart != nil {
		slog.Warn("GPUs exchange through host memory, which is slower; --split layers needs few exchanges", slog.Any("error", g.apart))
	}
	l := &link{members: make([]*executable, parts), patience: g.patience, apart: g.apart != nil, packets: g.packets, team: g.team}
	var all []plan.Backend
	for i := range parts {
		b := *g.all[i]
		b.link, b.part = l, i
		all = append(all, &b)
	}
	return all
}

// Separate implements [mesh.Device]. parts must be the number of devices.
func (g *Group) Separate(int) []plan.Backend {
	var all []plan.Backend
	for _, b := range g.all {
		all = append(all, b)
	}
	return all
}

// Sums implements [mesh.Device].
func (g *Group) Sums(w *tensor.Tensor, parts int, l plan.Limits) bool {
	return lower.Sums(w, parts, &l)
}

// A link connects the executables of the parts of a program.
type link struct {
	patience time.Duration
	apart    bool
	packets  int
	team     int

	mu      sync.Mutex
	members []*executable  // by part; all are set before the first step
	open    sync.WaitGroup // members that are not closed
}

// peers returns what kernels know of the link.
func (b *Backend) peers() *lower.Peers {
	if b.link == nil {
		return nil
	}
	return &lower.Peers{Part: b.part, Parts: len(b.link.members), Patience: b.link.patience, Apart: b.link.apart, BoxPackets: b.link.packets, Team: b.link.team}
}

// join makes e a member. The last one connects all.
func (l *link) join(e *executable) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.members[e.b.part] != nil {
		return fmt.Errorf("cuda: part %d has been compiled already", e.b.part)
	}
	l.members[e.b.part] = e
	if !slices.Contains(l.members, nil) {
		if err := l.connect(); err != nil {
			return fmt.Errorf("cuda: %w", err)
		}
	}
	l.open.Add(1)
	return nil
}

// connect tells all members where the others are.
func (l *link) connect() error {
	var ends [][]device.Forms
	var peers []lower.Peer
	for _, m := range l.members {
		ends = append(ends, m.compiler().Ends())
		peers = append(peers, m.room.Peer(m.scratchAt))
	}
	if l.apart {
		for _, m := range l.members {
			if err := m.b.Main.Do(m.makeBox); err != nil {
				return err
			}
		}
	}
	for _, m := range l.members {
		mine := slices.Clone(peers)
		for i, peer := range l.members {
			if l.apart {
				mine[i].Box = m.b.Main.Reach(peer.box)
			}
		}
		if err := m.b.Main.Do(func() error { return m.connect(ends, mine) }); err != nil {
			return err
		}
	}
	return nil
}

// makeBox allocates the part's box in host memory.
func (e *executable) makeBox() (err error) {
	defer e.b.Main.Doing(e.b.Main.Doing("making room for what other GPUs send"))
	if e.box, err = e.b.Main.AllocHost(lower.BoxBytes); err == nil {
		clear(e.box)
	}
	return err
}

// connect tells the part's kernels where the other parts are.
func (e *executable) connect(ends [][]device.Forms, peers []lower.Peer) error {
	outs, parts, outsAt, partsAt := e.room.Connect(ends, peers)
	if len(outs) == 0 {
		return nil
	}
	c := e.b.Main
	return errors.Join(c.CopyToDevice(e.scratchAt+driver.DevicePtr(outsAt), outs), c.CopyToDevice(e.scratchAt+driver.DevicePtr(partsAt), parts))
}

// leave waits until all members have no steps left, so that none writes into memory that another one
// has freed.
func (l *link) leave() {
	if l != nil {
		l.open.Done()
		l.open.Wait()
	}
}

// lost returns the error of a step in which another part did not answer; nil if all did.
func (s *step) lost() error {
	l := s.e.b.link
	if l == nil {
		return nil
	}
	mail := device.Words[lower.Mail](s.out[s.e.room.Mail-s.e.room.Failed:])[0]
	if mail.Lost == 0 {
		return nil
	}
	return fmt.Errorf("%w: part %d of %d has not answered for %v; load the model again", plan.ErrPeer, mail.Lost-1, len(l.members), l.patience)
}

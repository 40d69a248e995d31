package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/plan"
)

// A Group is several devices of one host that run the parts of one program together; see package
// mesh. Each device's kernels write into the memory of the others.
type Group struct {
	*Backend // the first device
	all      []*Backend
	patience time.Duration
}

// linkPatience is how long a device waits for the others within a step. Devices do the same work,
// so one that is so late has failed, or waits for weights from a disk that has.
const linkPatience = 10 * time.Second

// OpenGroup opens the devices with the given numbers. o.Device is ignored.
func OpenGroup(o Options, numbers []int) (*Group, error) {
	if len(numbers) == 0 || len(numbers) > lower.MostParts {
		return nil, fmt.Errorf("cuda: %d devices for one model; want 1 to %d", len(numbers), lower.MostParts)
	}
	g := &Group{patience: linkPatience}
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
	return g, nil
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

// Memory implements [plan.Backend]. Parts have nearly the same size, so the memory is as many times
// that of the device with the least free memory as there are devices.
func (g *Group) Memory() plan.MemoryInfo {
	var least plan.MemoryInfo
	for i, b := range g.all {
		if m := b.Memory(); i == 0 || m.Free < least.Free {
			least = m
		}
	}
	n := int64(len(g.all))
	return plan.MemoryInfo{Free: n * least.Free, Total: n * least.Total}
}

// Connect implements [mesh.Device]. parts must be the number of devices.
func (g *Group) Connect(parts int) []plan.Backend {
	l := &link{members: make([]*executable, parts), patience: g.patience}
	var all []plan.Backend
	for i := range parts {
		b := *g.all[i]
		b.link, b.part = l, i
		all = append(all, &b)
	}
	return all
}

// A link connects the executables of the parts of a program.
type link struct {
	patience time.Duration

	mu      sync.Mutex
	members []*executable  // by part; all are set before the first step
	open    sync.WaitGroup // members that are not closed
}

// peers returns what kernels know of the link.
func (b *Backend) peers() *lower.Peers {
	if b.link == nil {
		return nil
	}
	return &lower.Peers{Part: b.part, Parts: len(b.link.members), Patience: b.link.patience}
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
	var mail []driver.DevicePtr
	for _, m := range l.members {
		ends = append(ends, m.compiler().Ends())
		mail = append(mail, m.scratchAt+driver.DevicePtr(m.room.Mail))
	}
	for _, m := range l.members {
		err := m.b.Main.Do(func() error {
			for _, peer := range l.members {
				if err := m.b.Main.Connect(peer.b.Main); err != nil {
					return err
				}
			}
			return m.connect(ends, mail)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// connect tells the part's kernels where the other parts are.
func (e *executable) connect(ends [][]device.Forms, mail []driver.DevicePtr) error {
	outs, mails, outsAt, mailsAt := e.room.Connect(ends, mail)
	if len(outs) == 0 {
		return nil
	}
	c := e.b.Main
	return errors.Join(c.CopyToDevice(e.scratchAt+driver.DevicePtr(outsAt), outs), c.CopyToDevice(e.scratchAt+driver.DevicePtr(mailsAt), mails))
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

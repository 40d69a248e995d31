package mesh

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A group is the executables of the parts of a program, with the host memory of their pages.
type group struct {
	p      *plan.Program
	lim    plan.Limits
	parts  []*member
	pages  pageLayout
	host   map[*byte][]byte // memory from AllocHost, by its begin
	freed  []freed          // memory that steps in flight may use
	wanted int              // number of rows of the step submitted last
	begun  uint64           // steps submitted
	done   atomic.Uint64    // steps that are done
	closed bool
}

// A member is the executable of a part. Its mutex is held during calls, because a part of a pipeline
// is called by several goroutines.
type member struct {
	plan.Executable
	sync.Mutex
}

// A freed is memory that FreeHost has been given.
type freed struct {
	memory []byte
	begun  uint64 // steps submitted before
}

// compile compiles each part on its backend.
func (g *group) compile(ctx context.Context, backends []plan.Backend, parts []Part, loaded plan.Loaded) error {
	pieces, read := map[*tensor.Tensor]int{}, map[*tensor.Tensor]bool{} // of each weight: how many are to be read, and whether a step reads it
	for i := range parts {
		for _, w := range parts[i].Program.Weights() {
			pieces[parts[i].origin[w]]++
		}
	}
	for i, b := range backends {
		part := &parts[i]
		exe, err := b.Compile(ctx, part.Program, part.Limits(g.lim), func(w *tensor.Tensor, spare bool) {
			of := part.origin[w]
			pieces[of]--
			read[of] = read[of] || !spare
			if pieces[of] == 0 && loaded != nil {
				loaded(of, !read[of])
			}
		})
		if err != nil {
			return fmt.Errorf("mesh: part %d of %d: %w", i, len(parts), err)
		}
		g.parts = append(g.parts, &member{Executable: exe})
	}
	return nil
}

// check returns an error if b cannot be submitted. late says that the step submitted last has had no
// Choose.
func (g *group) check(b *plan.Batch, late bool) error {
	switch {
	case g.closed:
		return errors.New("mesh: the executable is closed")
	case late:
		return errors.New("mesh: the previous step is late and needs Choose first")
	}
	return b.Validate(g.p, &g.lim, g.wanted)
}

// AllocHost implements [plan.Executable]. The memory is that of the first part; those of one kind of
// device share the host's.
func (g *group) AllocHost(n int) ([]byte, error) {
	if g.closed {
		return nil, errors.New("mesh: the executable is closed")
	}
	if err := g.reclaim(); err != nil {
		return nil, err
	}
	b, err := g.parts[0].allocHost(n)
	if err == nil {
		g.host[unsafe.SliceData(b)] = b
	}
	return b, err
}

// FreeHost implements [plan.Executable].
func (g *group) FreeHost(b []byte) error {
	start := unsafe.SliceData(b)
	memory, found := g.host[start]
	if !found {
		return fmt.Errorf("mesh: FreeHost of memory at %p, which AllocHost did not return", start)
	}
	delete(g.host, start)
	g.freed = append(g.freed, freed{memory, g.begun})
	return g.reclaim()
}

// reclaim frees memory for which FreeHost was called, once all parts are done with the steps
// submitted before; the rest is freed later, or by Close. Steps are done in their order, so n that are
// done are the first n.
func (g *group) reclaim() error {
	done := g.done.Load()
	for len(g.freed) > 0 && g.freed[0].begun <= done {
		if err := g.parts[0].freeHost(g.freed[0].memory); err != nil {
			return err
		}
		g.freed = g.freed[1:]
	}
	return nil
}

// Setup implements [plan.Executable]. Parts are made ready one after the other.
func (g *group) Setup() plan.Setup {
	var all plan.Setup
	for _, part := range g.parts {
		part.Lock()
		s := part.Setup()
		part.Unlock()
		all.Load, all.Compile, all.Capture = all.Load+s.Load, all.Compile+s.Compile, all.Capture+s.Capture
	}
	return all
}

// Close implements [plan.Executable].
func (g *group) Close() error {
	g.closed, g.host, g.freed = true, nil, nil
	return g.each(func(_ int, part *member) error { return part.Close() })
}

// each calls do for all parts at the same time: a part's call may wait for another part's.
func (g *group) each(do func(i int, part *member) error) error {
	errs := make([]error, len(g.parts))
	var all sync.WaitGroup
	for i, part := range g.parts {
		all.Go(func() {
			part.Lock()
			defer part.Unlock()
			if err := do(i, part); err != nil {
				errs[i] = fmt.Errorf("mesh: part %d of %d: %w", i, len(g.parts), err)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

func (m *member) allocHost(n int) ([]byte, error) {
	m.Lock()
	defer m.Unlock()
	return m.AllocHost(n)
}

func (m *member) freeHost(b []byte) error {
	m.Lock()
	defer m.Unlock()
	return m.FreeHost(b)
}

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/weights"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// planWeights places the weights of p.
func (b *Backend) planWeights(p *plan.Program, lim *plan.Limits) *weights.Plan {
	return weights.NewPlan(p, lim, b.slots)
}

// Weights implements [plan.Backend]. The result covers resident weights and slots for streamed
// ones.
func (b *Backend) Weights(p *plan.Program, lim plan.Limits) int { return b.planWeights(p, &lim).Bytes }

// Streaming reports where the weights of p are placed, and which of them are streamed.
func (b *Backend) Streaming(p *plan.Program, lim plan.Limits) plan.Streaming {
	return b.planWeights(p, &lim).Streaming()
}

// Scratch implements [plan.Backend].
func (b *Backend) Scratch(p *plan.Program, lim plan.Limits) int {
	l := lower.NewLayout(p, &lim, false)
	n := lower.NewRoom(p, &lim, l.Bytes).Bytes
	if lim.Weights != 0 {
		n += weights.StagingBytes(b.planWeights(p, &lim))
	}
	for g := range lim.Pages {
		n += 4 * lower.PageRoom(&lim, g)
	}
	// Pages are aligned to 256 bytes.
	if _, pools, err := lower.PlanPools(p, &lim); err == nil {
		if states, err := lim.StateBytes(p); err == nil {
			n += pools - states
		}
	}
	return n
}

// An executable is a compiled program with its memory. Device resources are used only on the
// backend's main thread.
type executable struct {
	b        *Backend
	p        *plan.Program
	lim      plan.Limits
	weights  *weights.Plan
	layout   *lower.Layout
	rotation *weights.Rotation
	room     *lower.Room
	pools    []lower.Pool
	prefixes lower.Prefixes

	weightsAt, statesAt, scratchAt driver.DevicePtr
	inputs                         []lower.InputCopy
	inputRow                       int                // bytes of a row of all inputs in host memory
	pages                          []driver.DevicePtr // by group: address of a step's page table
	box                            []byte             // what other parts send, if they do not reach the device's memory

	stream *driver.Stream
	parts  [2]launches // of steps, and of steps with [plan.Batch.Head]
	graphs map[piece]*driver.GraphExec

	expertImages [][]byte // by mixture; nil if the device has room for all experts
	torn         bool     // a step failed between its launches

	wanted int   // rows of the last submitted step
	late   *step // the last submitted step, if its Choose is due
	closed bool
	setup  setup
	masks  maskTable
	host   map[*byte][]byte // memory of AllocHost, by its start
	seen   []byte           // buffer for observed values
	steps  plan.StepPool[step]
	made   []*step // all steps

	mu      sync.Mutex
	queued  []*step    // steps to begin, in order; the first one is being begun
	pending []*step    // steps on the stream, in order
	used    expertUse  // by completed steps
	given   bool       // no more steps will become pending
	work    *sync.Cond // signals a change of these fields or of closed
	ended   chan struct{}
}

// launches are those of a step.
type launches struct {
	forward []lower.Launch
	sample  []lower.Launch // for ordinary rows
	adjust  []lower.Launch // for steps with adjusted rows
}

// part returns the launches of a step with that [plan.Batch.Head].
func (e *executable) part(head bool) *launches {
	if head {
		return &e.parts[1]
	}
	return &e.parts[0]
}

// Compile implements [plan.Backend].
func (b *Backend) Compile(ctx context.Context, p *plan.Program, lim plan.Limits, loaded plan.Loaded) (plan.Executable, error) {
	if !slices.Contains(b.activations(), lim.Activations) {
		if lim.Activations == tensor.F8_E4M3 {
			return nil, fmt.Errorf("cuda: FP8 activations need a GPU of compute capability 9.0, and %s has %v; leave out --activations f8", b.Info.Name, b.Info.Capability)
		}
		return nil, fmt.Errorf("cuda: no %v activations; use one of %v", lim.Activations, b.activations())
	}
	e := &executable{b: b, p: p, lim: lim, weights: b.planWeights(p, &lim), graphs: map[piece]*driver.GraphExec{}, host: map[*byte][]byte{}, ended: make(chan struct{})}
	e.masks.stale = make([]bool, lim.Masks)
	e.lim.Pages = slices.Clone(lim.Pages)
	e.work = sync.NewCond(&e.mu)
	e.steps.New = e.newStep
	if err := lower.Check(p, &lim); err != nil {
		return nil, err
	}
	if _, err := lim.StateBytes(p); err != nil {
		return nil, fmt.Errorf("cuda: %w", err)
	}
	pools, states, err := lower.PlanPools(p, &e.lim)
	if err != nil {
		return nil, err
	}
	e.pools, e.layout = pools, lower.NewLayout(p, &e.lim, false)
	e.room = lower.NewRoom(p, &e.lim, e.layout.Bytes)
	e.prefixes = lower.NewPrefixes(p, &e.lim, b.prefixBytes)
	if err := e.prepare(ctx, states, loaded); err != nil {
		_ = b.Main.Do(e.release)
		return nil, fmt.Errorf("cuda: %w", err)
	}
	if err := b.link.join(e); err != nil {
		_ = b.Main.Do(e.release)
		return nil, err
	}
	if e.rotation.Staging() {
		go e.conduct()
	} else {
		e.given = true
	}
	go e.finish()
	return e, nil
}

func (e *executable) prepare(ctx context.Context, states int, loaded plan.Loaded) error {
	c := e.b.Main
	begun, before := time.Now(), e.b.Compiling()
	err := c.Do(func() (err error) {
		if e.stream, err = c.NewStream(); err != nil {
			return err
		}
		if e.weightsAt, err = e.alloc(e.weights.Bytes, "weights"); err != nil {
			return err
		}
		if err := e.openExperts(); err != nil || len(e.weights.Images) == 0 {
			return err
		}
		e.rotation, err = weights.NewRotation(e.b.GPU, e.weights, e.weightsAt)
		return err
	})
	if err != nil {
		return err
	}
	landed := func(image int) error {
		if !e.weights.Images[image].Pinned {
			return nil
		}
		return c.Do(func() error { return e.rotation.Keep(c, image) })
	}
	if err := e.weights.Load(ctx, e.b.GPU, e.weightsAt, e.expertImages, e.stream, loaded, landed); err != nil {
		return err
	}
	compiled := e.b.Compiling() - before // time for the kernels that lay out weights
	e.setup.load = time.Since(begun) - compiled
	return c.Do(func() (err error) {
		if e.statesAt, err = e.alloc(states, "states"); err != nil {
			return err
		}
		for i := range e.pools {
			e.pools[i].Base += e.statesAt
		}
		if e.scratchAt, err = e.alloc(e.room.Bytes, "scratch"); err != nil {
			return err
		}
		if err := c.Memset8(e.scratchAt, 0, e.room.Bytes); err != nil {
			return err
		}
		e.inputs, e.inputRow = e.layout.Inputs(e.scratchAt)
		for g := range e.lim.Pages {
			at, err := e.alloc(4*lower.PageRoom(&e.lim, g), "page tables")
			if err != nil {
				return err
			}
			e.pages = append(e.pages, at)
		}
		if err := e.setConstants(e.scratchAt, e.room); err != nil {
			return err
		}
		begun := time.Now()
		err = e.compile()
		e.setup.compile = time.Since(begun) + compiled
		if err == nil && e.rotation != nil {
			err = e.rotation.Begin()
		}
		return err
	})
}

// alloc allocates device memory. It returns 0 if bytes is 0.
func (e *executable) alloc(bytes int, what string) (driver.DevicePtr, error) {
	if bytes == 0 {
		return 0, nil
	}
	defer e.b.Main.Doing(e.b.Main.Doing("making room for " + what))
	return e.b.Main.Alloc(bytes)
}

func (e *executable) compiler() *lower.Compiler {
	return &lower.Compiler{
		Layout: e.layout, Weights: e.weights, Rotation: e.rotation, Pools: e.pools, Prefixes: &e.prefixes, Room: e.room, Kernel: e.b.Function, Table: e.b.tuning.Table(), Hopper: e.b.Hopper(), Early: e.b.Early(), Carves: e.b.Carves(), Peers: e.b.peers(),
		ExpertImages: e.reachExperts(),
		WeightsAt:    e.weightsAt, ScratchAt: e.scratchAt, Multiprocessors: e.b.Info.Multiprocessors, Clusters: e.b.Clusters, SharedPerBlock: e.b.Info.SharedPerBlock, Shared: e.b.Shared, Step: e.room.Addresses(e.scratchAt, e.pages),
	}
}

// compile builds the launches of a step.
func (e *executable) compile() error {
	c := e.compiler()
	before, stages, err := c.Compile()
	if err != nil {
		return err
	}
	for _, head := range headsOf(e.p) {
		l := e.part(head)
		from, to := e.layout.Part(head)
		finite, err := c.Finite(head)
		if err != nil {
			return err
		}
		l.forward = slices.Concat(before, slices.Concat(stages[from:to]...), finite)
		if l.sample, err = c.Sampling(head, false); err != nil {
			return err
		}
		if l.adjust, err = c.Sampling(head, true); err != nil {
			return err
		}
	}
	return nil
}

// headsOf returns the values that [plan.Batch.Head] may have.
func headsOf(p *plan.Program) []bool {
	if p.Head == nil {
		return []bool{false}
	}
	return []bool{false, true}
}

// Close implements [plan.Executable].
func (e *executable) Close() error {
	if e.closed {
		return nil
	}
	e.mu.Lock()
	e.closed = true
	e.work.Broadcast()
	e.mu.Unlock()
	<-e.ended // all steps are done
	e.b.link.leave()
	return e.b.Main.Do(e.release)
}

// release frees the executable's resources.
func (e *executable) release() error {
	var all []error
	keep := func(err error) { all = append(all, err) }
	if e.stream != nil {
		keep(e.stream.Synchronize())
	}
	keep(e.dropGraphs())
	keep(e.rotation.Release(e.b.Main))
	for _, s := range e.made {
		keep(s.release())
	}
	for _, b := range e.host {
		keep(e.b.Main.FreeHost(b))
	}
	e.host = nil
	keep(device.FreeHost(e.b.Main, e.masks.host))
	keep(device.FreeHost(e.b.Main, e.box))
	for _, b := range e.expertImages {
		keep(e.b.Main.FreeHost(b))
	}
	for _, at := range append(e.pages, e.scratchAt, e.statesAt, e.weightsAt) {
		keep(e.b.Main.Free(at))
	}
	if e.stream != nil {
		keep(e.stream.Destroy())
	}
	for _, err := range all {
		// A lost device has already lost its memory.
		if err != nil && !errors.Is(err, driver.ErrDeviceLost) {
			return err
		}
	}
	return nil
}

func (e *executable) dropGraphs() error {
	var all error
	for _, g := range e.graphs {
		all = errors.Join(all, g.Destroy())
	}
	clear(e.graphs)
	return all
}

// A piece is a part of a step's launches that has its own graph. Pieces that sample have a separate
// shape, and serve steps of any number of tokens.
type piece struct {
	head     bool
	shape    lower.Shape
	sampling lower.SamplingShape
	from, to int
}

// run queues the program of a step on the stream.
func (e *executable) run(s *step) error {
	s.timers.Begin()
	if s.Batch.Spans {
		cost, err := e.b.timerCost(e.weightsAt, e.weights.Bytes)
		if err != nil {
			return err
		}
		s.timers.Cost = cost
	}
	head := s.Batch.Head
	return e.pieces(s, e.part(head).forward, piece{head: head, shape: s.sh})
}

// choose queues the sampling of a step on the stream.
func (e *executable) choose(s *step) error {
	if s.sh.Rows > 0 {
		sampling, part := samplingOf(s.Batch), e.part(s.Batch.Head)
		all := part.sample
		if sampling.Adjusted {
			all = part.adjust
		}
		if err := e.pieces(s, all, piece{head: s.Batch.Head, sampling: sampling}); err != nil {
			return err
		}
	}
	return s.timers.End(e.stream)
}

// pieces queues launches of a step, cut into pieces at timers and observers.
func (e *executable) pieces(s *step, all []lower.Launch, p piece) error {
	for p.to < len(all) {
		p.from, p.to = p.to, s.next(all, p.to)
		part := all[p.from:p.to]
		if !lower.Idle(part, &s.sh) {
			if p.from == 0 || s.cuts(&all[p.from-1], &part[0]) {
				if err := s.timers.Mark(e.stream, s.Batch, &part[0]); err != nil {
					return err
				}
			}
			if err := e.give(s, part, p); err != nil {
				return err
			}
		}
		if err := s.observe(&part[len(part)-1]); err != nil {
			return err
		}
	}
	return nil
}

// next returns the end of the piece that begins with all[from].
func (s *step) next(all []lower.Launch, from int) int {
	to := from + 1
	for to < len(all) && !s.cuts(&all[to-1], &all[to]) {
		to++
	}
	return to
}

// cuts reports whether a timer or an observer comes between two launches of the step, or one of
// them cannot be part of a graph.
func (s *step) cuts(before, l *lower.Launch) bool {
	b := s.Batch
	return before.Live || l.Live || b.Spans || b.Observe != nil && before.Last || b.Trace && before.Place != l.Place || b.Timed && before.Place == 0 && l.Place > 0
}

// give queues a piece: launch by launch if parts of the step are observed or the piece is live,
// otherwise as a graph.
func (e *executable) give(s *step, part []lower.Launch, p piece) error {
	if b := s.Batch; part[0].Live || b.Trace || b.Spans || b.Observe != nil || e.b.eager {
		return lower.Give(e.stream, &s.sh, part)
	}
	g := e.graphs[p]
	if g == nil {
		var err error
		if g, err = e.capture(&s.sh, part); err != nil {
			return err
		}
		e.graphs[p] = g
	}
	return g.Launch(e.stream)
}

func (e *executable) capture(sh *lower.Shape, all []lower.Launch) (*driver.GraphExec, error) {
	defer e.b.Main.Doing(e.b.Main.Doing(fmt.Sprintf("capturing a step of %d tokens", sh.Tokens)))
	begun := time.Now()
	g, err := e.stream.Capture(func() error { return lower.Give(e.stream, sh, all) })
	if err != nil {
		return nil, err
	}
	x, err := g.Instantiate()
	err = errors.Join(err, g.Destroy())
	e.setup.capture.Add(int64(time.Since(begun)))
	return x, err
}

// finish completes the steps in order.
func (e *executable) finish() {
	defer close(e.ended)
	for {
		e.mu.Lock()
		for len(e.pending) == 0 && (!e.closed || !e.given) {
			e.work.Wait()
		}
		if len(e.pending) == 0 {
			e.mu.Unlock()
			return
		}
		s := e.pending[0]
		e.pending = append(e.pending[:0], e.pending[1:]...)
		e.mu.Unlock()
		if err := e.b.Waiter.Do(s.await); err != nil {
			s.Err = fmt.Errorf("cuda: %w", err)
		} else if err := s.lost(); err != nil {
			s.Err = fmt.Errorf("cuda: %w", err)
		} else {
			s.collect()
		}
		s.Finish()
	}
}

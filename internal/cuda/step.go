package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
	"github.com/realizar/realizar/internal/cuda/measure"
	"github.com/realizar/realizar/internal/plan"
)

// none is the flag of a sequence without a failure.
const none = math.MaxInt32

// A step is in flight, or done and not yet released.
type step struct {
	plan.PooledStep
	e        *executable
	over     *driver.Event
	sh       lower.Shape // shape of the graphs that run it
	prefixes lower.PrefixSet

	start, then, await func() error // method values of begin, end and wait, which would otherwise allocate on each use

	// Pinned memory that the device copies from and to.
	in    []byte   // room.counts to room.flagsEnd
	pages [][]byte // by group
	out   []byte   // room.failed to room.resultsEnd
	wide  []byte   // logits and hidden states
	given []byte   // inputs
	freqs [][]byte // by rope: for sequences whose length matters
	lists []byte   // adjustments
	masks []int32  // masks to copy

	adjusted int // number of adjustments in lists
	roomy    int // of these, number copied to device memory

	timers measure.Timers

	logits, hidden []float32 // backing arrays of the result's rows
	failed         []error   // [S]
}

// release frees the step's memory.
func (s *step) release() error {
	c := s.e.b.Main
	errs := []error{device.DestroyEvent(s.over), device.FreeHost(c, s.in), device.FreeHost(c, s.out), device.FreeHost(c, s.wide), device.FreeHost(c, s.given), device.FreeHost(c, s.lists)}
	for _, p := range slices.Concat(s.pages, s.freqs) {
		errs = append(errs, device.FreeHost(c, p))
	}
	for _, t := range s.timers.Events {
		errs = append(errs, device.DestroyEvent(t))
	}
	return errors.Join(errs...)
}

// newStep creates a step for the executable's pool.
func (e *executable) newStep(p plan.PooledStep) *step {
	s := &step{PooledStep: p, e: e, pages: make([][]byte, len(e.pages)), freqs: make([][]byte, len(e.room.Ropes)), timers: measure.Timers{Context: e.b.Main}}
	s.start, s.then, s.await = s.begin, s.end, s.wait
	e.made = append(e.made, s)
	return s
}

// Submit implements [plan.Executable].
func (e *executable) Submit(b *plan.Batch) (plan.Step, error) {
	if e.closed {
		return nil, errors.New("cuda: the executable is closed")
	}
	if e.late != nil {
		return nil, errors.New("cuda: the step before has not chosen its tokens")
	}
	if err := b.Validate(e.p, &e.lim, e.wanted); err != nil {
		return nil, err
	}
	s := e.steps.Take()
	s.Batch = b
	if e.rotation.Staging() {
		e.enqueue(s)
	} else if err := e.b.Main.Do(s.start); err != nil {
		e.abandon(s)
		return nil, fmt.Errorf("cuda: %w", err)
	} else if !b.Late {
		e.begun(s)
	}
	if b.Late {
		e.late = s
	}
	e.wanted = len(b.Rows)
	return s, nil
}

// Choose implements [plan.Executable]. If layers are staged, it waits until the conductor has begun
// the step.
func (e *executable) Choose(of plan.Step) error {
	if of != e.late {
		return errors.New("cuda: only the step submitted last can choose its tokens")
	}
	s := e.late
	e.late = nil
	if e.rotation.Staging() {
		if e.conducted(); s.Err != nil {
			return nil //nolint:nilerr // the step's Wait returns the error
		}
	}
	if err := e.b.Main.Do(s.then); err != nil {
		e.abandon(s)
		return fmt.Errorf("cuda: %w", err)
	}
	e.begun(s)
	return nil
}

// begun marks a step as queued, so that finish completes it.
func (e *executable) begun(s *step) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pending = append(e.pending, s)
	e.work.Broadcast()
}

// abandon returns a step that failed to begin to the pool, after its queued launches have finished.
func (e *executable) abandon(s *step) {
	if e.b.Main.Do(e.stream.Synchronize) == nil {
		s.Abandon()
	}
}

// wait waits for the end of the step, on the backend's second thread.
func (s *step) wait() error {
	if err := s.over.In(s.e.b.Waiter).Synchronize(); err != nil {
		return err
	}
	return s.timers.Read(s.e.b.Waiter)
}

// grow makes *b at least n bytes of pinned memory.
func (s *step) grow(b *[]byte, n int) error {
	if len(*b) >= n {
		return nil
	}
	c := s.e.b.Main
	if err := device.FreeHost(c, *b); err != nil {
		return err
	}
	*b = nil
	var err error
	*b, err = c.AllocHost(n)
	return err
}

// begin queues the step on the stream, except for sampling if that is late.
func (s *step) begin() error {
	e, b, r := s.e, s.Batch, s.e.room
	defer e.b.Main.Doing(e.b.Main.Doing("beginning a step"))
	if s.over == nil {
		var err error
		if s.over, err = e.b.Main.NewEvent(); err != nil {
			return err
		}
	}
	if err := s.grow(&s.in, r.FlagsEnd-r.Counts); err != nil {
		return err
	}
	if err := s.grow(&s.out, r.ResultsEnd-r.Failed); err != nil {
		return err
	}
	if err := s.growPages(); err != nil {
		return err
	}
	if err := s.growAdjustments(); err != nil {
		return err
	}
	if err := e.mend(); err != nil {
		return err
	}
	if err := s.applyStates(); err != nil {
		return err
	}
	if b.OnlyStates() {
		s.timers.Begin()
		return s.over.Record(e.stream)
	}
	e.prefixes.Find(&s.prefixes, b)
	s.fill()
	if err := e.stream.CopyToDevice(e.scratchAt+driver.DevicePtr(r.Counts), s.in[:r.FlagsEnd-r.Counts]); err != nil {
		return err
	}
	if err := s.copyAdjustments(); err != nil {
		return err
	}
	if err := s.fillInputs(); err != nil {
		return err
	}
	if err := s.copyInputs(e.inputs); err != nil {
		return err
	}
	for g := range b.Tables {
		if err := e.stream.CopyToDevice(e.pages[g], s.pages[g][:4*len(b.Tables[g].Pages)]); err != nil {
			return err
		}
	}
	if err := s.dynamicFrequencies(); err != nil {
		return err
	}
	s.sh = lower.ShapeOf(b, &s.prefixes)
	if err := e.run(s); err != nil {
		e.torn = true
		return err
	}
	if b.Late {
		return nil
	}
	return s.end()
}

// end queues the step's sampling.
func (s *step) end() error {
	e := s.e
	defer e.b.Main.Doing(e.b.Main.Doing("choosing a step's tokens"))
	if err := s.copyMasks(); err != nil {
		return err
	}
	if err := e.choose(s); err != nil {
		e.torn = true
		return err
	}
	if err := s.copyBack(); err != nil {
		return err
	}
	return s.over.Record(e.stream)
}

// leastPages is the smallest room for pages in a step's host memory.
const leastPages = 1024

// growPages allocates host memory for the step's page tables.
func (s *step) growPages() error {
	for g := range s.Batch.Tables {
		if err := s.grow(&s.pages[g], 4*max(leastPages, lower.Power(len(s.Batch.Tables[g].Pages)))); err != nil {
			return err
		}
	}
	return nil
}

// fill writes the step's input.
func (s *step) fill() {
	e, b, r := s.e, s.Batch, s.e.room
	at := func(offset int) []int32 { return device.Words[int32](s.in[offset-r.Counts:]) }
	counts := at(r.Counts)
	counts[0], counts[1], counts[2] = int32(len(b.Tokens)), int32(len(b.Rows)), int32(b.Seqs())
	copy(at(r.Tokens), b.Tokens)
	from := at(r.From)[:len(b.Tokens)]
	for t := range from {
		if from[t] = -1; b.From != nil {
			from[t] = b.From[t]
		}
	}
	copy(at(r.Positions), b.Positions)
	starts := at(r.Starts)[:lower.Power(b.Seqs())+1]
	for i := copy(starts, b.Start); i < len(starts); i++ {
		starts[i] = int32(len(b.Tokens)) // no sequence
	}
	lower.FillSingles(at(r.Singles), b)
	for i, n := range e.p.Axes {
		if n == 0 {
			continue
		}
		for t, axis := 0, at(r.Axes[i]); t < len(b.Tokens); t++ {
			axis[t] = b.Axis(i+1, t)
		}
	}
	sequence := at(r.Sequence)
	for q := range b.Seqs() {
		for t := b.Start[q]; t < b.Start[q+1]; t++ {
			sequence[t] = int32(q)
		}
	}
	for i := range r.Ropes {
		s.chooseFrequencies(i, at(r.Sets[i]))
	}
	for g := range b.Tables {
		lower.FillPlaces(device.Words[lower.Place](s.in[r.Places[g]-r.Counts:]), b, &b.Tables[g])
		copy(device.Words[int32](s.pages[g]), b.Tables[g].Pages)
	}
	s.prefixes.Fill(s.in, r)
	s.adjusted, s.roomy = 0, 0
	rows := at(r.Rows)
	for i := range b.Rows {
		rows[i] = b.Rows[i].Token
		e.fillRow(s, b, i)
	}
	for _, flags := range [][]int32{at(r.Failed), at(r.Bad), at(r.Overflow)} {
		for q := range b.Seqs() {
			flags[q] = none
		}
	}
}

// copyBack queues the copies of the step's results.
func (s *step) copyBack() error {
	e, b, r := s.e, s.Batch, s.e.room
	if err := e.stream.CopyToHost(s.out, e.scratchAt+driver.DevicePtr(r.Failed)); err != nil {
		return err
	}
	logits, hidden := s.wideSizes()
	if err := s.grow(&s.wide, 4*(logits+hidden)); err != nil {
		return err
	}
	var next hostCopy
	to := s.wide
	_, hiddenAt, logitsAt := e.p.Outputs(b.Head)
	for i := range b.Rows {
		for _, w := range []struct {
			want plan.Want
			v    plan.Value
		}{{plan.WantLogits, logitsAt}, {plan.WantHidden, hiddenAt}} {
			if b.Rows[i].Want&w.want == 0 {
				continue
			}
			f := e.layout.Forms(e.scratchAt, w.v)
			n := 4 * int(f.Cols)
			if err := next.add(e.stream, to[:n], f.F32+driver.DevicePtr(4*i*int(f.Stride))); err != nil {
				return err
			}
			to = to[n:]
		}
	}
	return next.give(e.stream)
}

// A hostCopy is a copy from the device to the host that has not been queued.
type hostCopy struct {
	to   []byte
	from driver.DevicePtr
}

// add adds the copy of a row. Rows that follow each other on the device and on the host are one copy,
// because each copy is a call of the driver.
func (c *hostCopy) add(s *driver.Stream, to []byte, from driver.DevicePtr) error {
	n := len(c.to)
	if n > 0 && from == c.from+driver.DevicePtr(n) && cap(c.to) > n && &c.to[:n+1][n] == &to[0] {
		c.to = c.to[:n+len(to)]
		return nil
	}
	err := c.give(s)
	c.to, c.from = to, from
	return err
}

// give queues the copy of the added rows.
func (c *hostCopy) give(s *driver.Stream) error {
	if len(c.to) == 0 {
		return nil
	}
	return s.CopyToHost(c.to, c.from)
}

// wideSizes returns the number of requested logits and of requested hidden states.
func (s *step) wideSizes() (logits, hidden int) {
	p := s.e.p
	_, hiddenAt, logitsAt := p.Outputs(s.Batch.Head)
	for i := range s.Batch.Rows {
		if w := s.Batch.Rows[i].Want; w&plan.WantLogits != 0 {
			logits += int(p.Shapes[logitsAt][1])
		}
		if w := s.Batch.Rows[i].Want; w&plan.WantHidden != 0 {
			hidden += int(p.Shapes[hiddenAt][1])
		}
	}
	return logits, hidden
}

func fill[T any](s []T, n int, v T) []T {
	s = slices.Grow(s[:0], n)[:n]
	for i := range s {
		s[i] = v
	}
	return s
}

// collect builds the step's result from the copied data.
func (s *step) collect() {
	e, b, r := s.e, s.Batch, s.e.room
	if b.OnlyStates() {
		s.Result = plan.Result{}
		return
	}
	rows := len(b.Rows)
	s.Result = plan.Result{
		Tokens: fill(s.Result.Tokens, rows, -1), Logits: fill(s.Result.Logits, rows, nil), Hidden: fill(s.Result.Hidden, rows, nil),
		LogProbabilities: fill(s.Result.LogProbabilities, rows, 0),
	}
	s.failed = fill(s.failed, b.Seqs(), nil)
	fails := false
	fail := func(q int32, err error) {
		if s.failed[q] == nil && err != nil {
			s.failed[q], fails = err, true
		}
	}
	at := func(offset int) []int32 { return device.Words[int32](s.out[offset-r.Failed:]) }
	failed, bad, overflow := at(r.Failed), at(r.Bad), at(r.Overflow)
	for q := range int32(b.Seqs()) {
		if failed[q] != none {
			fail(q, errors.New("cuda: a row of the step before gave no token"))
		}
		if overflow[q] != none {
			fail(q, fmt.Errorf("cuda: layer %d: keys or values exceed the range of an %v cache; use an F32 cache (activations f32)", overflow[q], e.lim.Cache))
		}
		if bad[q] != none {
			fail(q, plan.ErrNotFinite)
		}
	}
	if e.weights.Experts != nil {
		e.mu.Lock()
		e.used = device.Words[expertUse](s.out[r.Uses-r.Failed:])[0]
		e.mu.Unlock()
	}
	logits, hidden := s.wideSizes()
	s.logits, s.hidden = slices.Grow(s.logits[:0], logits), slices.Grow(s.hidden[:0], hidden)
	results, wide := device.Words[lower.RowResult](s.out[r.Results-r.Failed:]), device.Words[float32](s.wide)
	sequence := device.Words[int32](s.in[r.Sequence-r.Counts:])
	keep := func(all *[]float32, v plan.Value) []float32 {
		n, cols := len(*all), int(e.p.Shapes[v][1])
		*all = append(*all, wide[:cols]...)
		wide = wide[cols:]
		return (*all)[n:len(*all):len(*all)]
	}
	_, hiddenAt, logitsAt := e.p.Outputs(b.Head)
	for i := range b.Rows {
		row := &b.Rows[i]
		if row.Want&plan.WantLogits != 0 {
			s.Result.Logits[i] = keep(&s.logits, logitsAt)
		}
		if row.Want&plan.WantHidden != 0 {
			s.Result.Hidden[i] = keep(&s.hidden, hiddenAt)
		}
		fail(sequence[row.Token], rowError(results[i].Status))
		if s.failed[sequence[row.Token]] == nil {
			s.Result.Tokens[i], s.Result.LogProbabilities[i] = results[i].Token, results[i].LogProbability
		}
	}
	s.timers.Measured(b, &s.sh, e.p.Layers(), &s.Result)
	if fails {
		s.diagnose()
		s.Result.Err = slices.Clone(s.failed)
	}
}

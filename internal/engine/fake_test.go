package engine_test

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
	"unsafe"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

var (
	errDamaged = errors.New("the sequence is damaged")
	errLost    = errors.New("the device was lost")
	errRefused = errors.New("the device took no step")
)

// A fake is a backend, its only executable and its device. It runs the steps of a [hashModel] on
// one goroutine, in the order of Submit. It checks that its caller follows the rules of
// [plan.Executable] and [plan.Step]. It does not know the owner of a page: a page of another
// sequence changes the tokens.
type fake struct {
	model  *hashModel
	broken func(format string, a ...any)      // called if a rule is broken
	pause  func(n int, hurry <-chan struct{}) // waits n nanoseconds, or until hurry
	verify func() error                       // called at every Submit, or nil
	lose   func(*plan.Batch) bool             // whether a step is lost; if nil, trouble decides
	room   int                                // bytes of host memory at most
	right  float64                            // probability that what the head predicts is what the model samples

	p   *plan.Program
	lim plan.Limits

	// Used by the device alone.
	pools   [][]uint64 // by group
	sampled []int32    // by the previous step
	outs    []uint64
	sums    []uint64
	delay   *rand.Rand // of steps

	busy    sync.Mutex // held by the caller that uses the executable
	writes  [][]writer // by group and page
	checked int

	mu              sync.Mutex
	rng             *rand.Rand
	trouble         int // one of that many steps is lost, and one refused; 0 for none
	queue           chan *fakeStep
	hurry           chan struct{} // closed when a caller waits for the end: callers may hold locks, which stop a test's time
	ended           chan struct{}
	closed          bool
	late            *fakeStep // submitted last, before it may sample
	steps           int
	heads           int // of steps
	tokens          int
	under           int     // steps not done
	troubled        int     // sequences of lost or refused steps
	rows            []int32 // by row of the last step: position of a row that samples, or -1
	masks           map[int32][]uint32
	masked          map[int32]int // by mask: rows of steps that were not waited for
	hosts           []*hostBlock
	bytes           int // of host memory
	left            int // bytes not freed at Close
	saves, restores int
	rowsOf          map[int64][]fakeRow // by traced step
}

// A fakeRow is a token that a step sampled.
type fakeRow struct {
	position int // of the token before it
	token    int32
}

// A writer is the number of the check whose sequence writes a page.
type writer struct{ check, sequence int }

// A hostBlock is memory from AllocHost.
type hostBlock struct {
	memory []byte
	saved  map[int]uint64 // checksum of a saved page by its offset; 0 while not known
	uses   int            // by steps that are not done
	freed  bool
}

type fakeStep struct {
	f        *fake
	batch    *plan.Batch
	number   int64  // from 1
	sum      uint64 // checksum of the batch when it was submitted
	hosts    []*hostBlock
	lost     bool
	refused  bool // must not sample
	waited   bool
	chosen   chan struct{} // closed when it may sample
	done     chan struct{}
	result   plan.Result
	err      error
	released bool // guarded by f.mu
}

func (f *fake) Name() string                           { return "fake" }
func (f *fake) Rounds() tensor.DType                   { return tensor.Q8_0 }
func (f *fake) Memory() plan.MemoryInfo                { return plan.MemoryInfo{} }
func (f *fake) Weights(*plan.Program, plan.Limits) int { return 0 }
func (f *fake) Scratch(*plan.Program, plan.Limits) int { return 0 }

func (f *fake) locked(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// Compile implements [plan.Backend].
func (f *fake) Compile(_ context.Context, p *plan.Program, l plan.Limits, _ plan.Loaded) (plan.Executable, error) {
	f.p, f.lim, f.masks, f.masked = p, l, map[int32][]uint32{}, map[int32]int{}
	for g := range p.Groups {
		pool := make([]uint64, l.Pages[g]*f.size(g))
		for i := range pool {
			pool[i] = f.rng.Uint64()
		}
		f.pools = append(f.pools, pool)
		f.writes = append(f.writes, make([]writer, l.Pages[g]))
	}
	f.delay = rand.New(rand.NewPCG(f.rng.Uint64(), 0))
	f.queue, f.hurry, f.ended = make(chan *fakeStep, 64), make(chan struct{}), make(chan struct{})
	go f.run()
	return f, nil
}

// size returns how many numbers a page of group g holds.
func (f *fake) size(g int) int {
	if f.p.Groups[g].Kind == plan.PerSequence {
		return f.p.Width(g) / 2
	}
	return f.lim.PageTokens
}

// Close implements [plan.Executable].
func (f *fake) Close() error {
	defer f.alone()()
	again := false
	f.locked(func() {
		if again = f.closed; !again {
			f.closed = true
			close(f.queue)
			close(f.hurry)
		}
	})
	<-f.ended
	f.locked(func() { f.left, f.bytes, f.hosts = f.bytes, 0, nil })
	return nil
}

// alone checks that the executable has one caller at a time.
func (f *fake) alone() func() {
	if !f.busy.TryLock() {
		f.broken("two goroutines use the executable at one time")
		return func() {}
	}
	return f.busy.Unlock
}

// AllocHost implements [plan.Executable].
func (f *fake) AllocHost(n int) ([]byte, error) {
	defer f.alone()()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bytes += n; f.closed || n < 1 || f.bytes > f.room {
		f.broken("%d bytes of the host's memory, %d in all, of %d; closed: %v", n, f.bytes, f.room, f.closed)
	}
	h := &hostBlock{memory: make([]byte, n), saved: map[int]uint64{}}
	f.scribble(h.memory)
	f.hosts = append(f.hosts, h)
	return h.memory, nil
}

// SetMask implements [plan.Executable].
func (f *fake) SetMask(id int32, words []uint32) error {
	defer f.alone()()
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.lim.ValidateMask(f.p, id, words); err != nil || f.closed || f.masked[id] > 0 {
		f.broken("mask %d is set, of %d words (%v), and %d rows under way use it; closed: %v", id, len(words), err, f.masked[id], f.closed)
	}
	f.masks[id] = slices.Clone(words)
	return nil
}

// use counts the masks of rows of a step in flight. The caller holds f.mu.
func (f *fake) use(b *plan.Batch, n int) {
	for i := range b.Rows {
		if id := b.Rows[i].Mask; id > 0 {
			f.masked[id] += n
		}
	}
}

// Setup implements [plan.Executable]: capturing a step takes as many milliseconds as the step's
// number.
func (f *fake) Setup() plan.Setup {
	defer f.alone()()
	f.mu.Lock()
	defer f.mu.Unlock()
	return plan.Setup{Load: 3, Compile: 4, Capture: time.Duration(f.steps*(f.steps+1)/2) * time.Millisecond}
}

// spent returns the times of step number n, if they are wanted.
func (f *fake) spent(b *plan.Batch, n int64) (t plan.Times, spans []plan.Span) {
	if b.Timed {
		t = plan.Times{Embed: time.Duration(n), Choose: 2, Total: time.Duration(n) + 5}
	}
	if b.Spans {
		spans = []plan.Span{{Kernel: "embed", Layer: plan.NoLayer, Time: time.Duration(n)}, {Kernel: "choose", Layer: plan.NoLayer, Begin: time.Duration(n) + 3, Time: 2}}
	}
	return t, spans
}

// FreeHost implements [plan.Executable].
func (f *fake) FreeHost(b []byte) error {
	defer f.alone()()
	f.mu.Lock()
	defer f.mu.Unlock()
	h, at := f.block(b)
	if h == nil || at != 0 || f.closed {
		f.broken("memory is given back that AllocHost did not return; closed: %v", f.closed)
		return errors.New("no such memory")
	}
	h.freed = true
	f.bytes -= len(h.memory)
	f.forget(h)
	return nil
}

// forget drops freed memory that no step uses. The caller holds f.mu.
func (f *fake) forget(h *hostBlock) {
	if h.freed && h.uses == 0 {
		f.scribble(h.memory)
		f.hosts = slices.DeleteFunc(f.hosts, func(x *hostBlock) bool { return x == h })
	}
}

// scribble fills b with garbage.
func (f *fake) scribble(b []byte) {
	for i := range b {
		b[i] ^= 0xa5
	}
}

// block returns the memory that contains b, and b's offset. The caller holds f.mu.
func (f *fake) block(b []byte) (*hostBlock, int) {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
	for _, h := range f.hosts {
		first := uintptr(unsafe.Pointer(unsafe.SliceData(h.memory)))
		if !h.freed && first <= at && at+uintptr(len(b)) <= first+uintptr(len(h.memory)) {
			return h, int(at - first)
		}
	}
	return nil, 0
}

// Submit implements [plan.Executable].
func (f *fake) Submit(b *plan.Batch) (plan.Step, error) {
	defer f.alone()()
	if f.verify != nil {
		if err := f.verify(); err != nil {
			f.broken("Check: %v", err)
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		f.broken("a step after Close")
		return nil, errLost
	}
	if err := b.Validate(f.p, &f.lim, len(f.rows)); err != nil {
		f.broken("%v", err)
		return nil, err
	}
	if f.under++; f.under > 2 {
		f.broken("%d steps under way", f.under)
	}
	f.check(b)
	if f.trouble > 0 && f.rng.IntN(f.trouble) == 0 {
		f.under--
		f.troubled += b.Seqs()
		return nil, errRefused
	}
	if f.late != nil {
		f.broken("a step before the one before could choose")
	}
	s := &fakeStep{f: f, batch: b, sum: checksum(b), chosen: make(chan struct{}), done: make(chan struct{})}
	s.lost = f.trouble > 0 && f.rng.IntN(f.trouble) == 0 || f.lose != nil && f.lose(b)
	s.hold()
	if b.Late {
		f.late = s
	} else {
		f.choose(s)
	}
	f.rows = f.rows[:0]
	for _, r := range b.Rows {
		pos := int32(-1)
		if r.Want&plan.WantToken != 0 {
			pos = b.Positions[r.Token]
		}
		f.rows = append(f.rows, pos)
	}
	if f.steps++; b.Head {
		f.heads++
	}
	s.number = int64(f.steps)
	f.tokens += len(b.Tokens)
	f.queue <- s
	return s, nil
}

// Choose implements [plan.Executable].
func (f *fake) Choose(s plan.Step) error {
	defer f.alone()()
	f.mu.Lock()
	defer f.mu.Unlock()
	if s != f.late {
		f.broken("a step chooses that is not late")
		return errLost
	}
	late := f.late
	f.late = nil
	if f.trouble > 0 && f.rng.IntN(f.trouble) == 0 {
		late.refused = true
		f.troubled += late.batch.Seqs()
		close(late.chosen)
		f.mu.Unlock()
		<-late.done
		f.mu.Lock()
		return errRefused
	}
	f.choose(late)
	return nil
}

// choose lets s sample its tokens. The caller holds f.mu.
func (f *fake) choose(s *fakeStep) {
	for _, r := range s.batch.Rows {
		if r.Mask > 0 && f.masks[r.Mask] == nil {
			f.broken("mask %d was never set", r.Mask)
		}
	}
	f.use(s.batch, 1)
	close(s.chosen)
}

// of returns the sequence of token t.
func of(b *plan.Batch, t int) int {
	s := 0
	for int(b.Start[s+1]) <= t {
		s++
	}
	return s
}

// check checks that the tokens before they run are where they belong, and that no sequence writes a
// page that another one reads or writes.
func (f *fake) check(b *plan.Batch) {
	for t, r := range b.From {
		if r >= 0 && f.rows[r]+1 != b.Positions[t] {
			f.broken("the token at position %d is chosen by a row of position %d", b.Positions[t], f.rows[r])
		}
	}
	f.checked++
	now, size := f.checked, f.lim.PageTokens
	for g := range b.Tables {
		table, writes := &b.Tables[g], f.writes[g]
		page := func(s, logical int) int32 {
			return table.Pages[int(table.Start[s])+logical-int(table.First[s])]
		}
		write := func(s int, page int32) {
			if w := &writes[page]; w.check == now {
				f.broken("group %d: sequences %d and %d write page %d", g, w.sequence, s, page)
			} else {
				*w = writer{now, s}
			}
		}
		read := func(s int, page int32) {
			if w := writes[page]; w.check == now && w.sequence != s {
				f.broken("group %d: sequence %d reads page %d, which sequence %d writes", g, s, page, w.sequence)
			}
		}
		if f.p.Groups[g].Kind == plan.PerSequence {
			for s := range b.Seqs() {
				if _, out := table.Slots(s); out >= 0 {
					write(s, out)
				}
			}
			for s := range b.Seqs() {
				if in, _ := table.Slots(s); in >= 0 {
					read(s, in)
				}
			}
			continue
		}
		for s := range b.Seqs() {
			first, last := int(b.Positions[b.Start[s]]), int(b.Positions[b.Start[s+1]-1])
			for p := first / size; p <= last/size; p++ {
				write(s, page(s, p))
			}
		}
		for s := range b.Seqs() {
			first := int(b.Positions[b.Start[s]])
			for p := f.p.Groups[g].FirstVisible(first) / size; p*size < first; p++ {
				read(s, page(s, p))
			}
		}
	}
}

// hold records the host memory that a step reads and fills. The caller holds f.mu.
func (s *fakeStep) hold() {
	f := s.f
	for i := range s.batch.States {
		op := &s.batch.States[i]
		h, at := f.block(op.Host)
		if h == nil {
			f.broken("a page is saved to or restored from memory that is not of AllocHost")
			continue
		}
		if op.Kind == plan.SavePage {
			h.saved[at] = 0
			f.saves++
		} else {
			f.restores++
			if _, ok := h.saved[at]; !ok {
				f.broken("a page is restored that was never saved")
			}
			for _, before := range s.batch.States[:i] {
				if before.Kind == plan.SavePage && unsafe.SliceData(before.Host) == unsafe.SliceData(op.Host) {
					f.broken("a page is restored in the step that saves it")
				}
			}
		}
		h.uses++
		s.hosts = append(s.hosts, h)
	}
}

var seed = maphash.MakeSeed()

// checksum returns a checksum of all of b that the engine makes.
func checksum(b *plan.Batch) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	all := [][]int32{b.Tokens, b.From, b.Positions, b.Start, b.Lengths}
	for _, t := range b.Tables {
		all = append(all, t.Pages, t.Start, t.First)
	}
	for _, x := range all {
		maphash.WriteComparable(&h, len(x))
		for _, v := range x {
			maphash.WriteComparable(&h, v)
		}
	}
	for _, r := range b.Rows {
		maphash.WriteComparable(&h, r.Token)
		maphash.WriteComparable(&h, r.Want)
		maphash.WriteComparable(&h, r.Sampling)
		maphash.WriteComparable(&h, r.Mask)
		for _, a := range r.Adjustments {
			maphash.WriteComparable(&h, a)
		}
	}
	for _, op := range b.States {
		maphash.WriteComparable(&h, op.Kind)
		maphash.WriteComparable(&h, [2]int{op.Group, int(op.Page)})
		maphash.WriteComparable(&h, unsafe.SliceData(op.Host))
	}
	maphash.WriteComparable(&h, [2]bool{b.Trace, b.Late})
	return h.Sum64()
}

// run runs the device.
func (f *fake) run() {
	defer close(f.ended)
	for s := range f.queue {
		f.pause(1+f.delay.IntN(40_000), f.hurry)
		s.run()
		if checksum(s.batch) != s.sum {
			f.broken("a batch was changed while its step was under way")
		}
		f.locked(func() {
			if f.under--; s.lost {
				f.troubled += s.batch.Seqs()
			}
			for _, h := range s.hosts {
				h.uses--
				f.forget(h)
			}
		})
		close(s.done)
	}
}

// run runs all sequences of a step at once, as devices do: a layer stores all positions before it
// reads any.
func (s *fakeStep) run() {
	f, b := s.f, s.batch
	n := len(b.Rows)
	s.result = plan.Result{Tokens: slices.Repeat([]int32{-1}, n), Logits: make([][]float32, n), Hidden: make([][]float32, n), LogProbabilities: make([]float32, n)}
	if s.lost {
		<-s.chosen
		s.err = errLost
		f.sampled = append(f.sampled[:0], s.result.Tokens...)
		return
	}
	s.result.Times, s.result.Spans = f.spent(b, s.number)
	fill := s.move()
	ids := slices.Clone(b.Tokens)
	for t, r := range b.From {
		if r >= 0 {
			ids[t] = f.sampled[r]
		}
	}
	f.layers(b, ids)
	if s.number%8 == 0 { // as if a developer inspected it
		f.layers(b, ids)
	}
	for q := range b.Seqs() {
		for t := b.Start[q]; t < b.Start[q+1]; t++ {
			if ids[t] < 0 || fails(f.outs[t]) {
				s.fail(q, errDamaged)
			}
		}
	}
	if <-s.chosen; s.refused {
		f.sampled = append(f.sampled[:0], s.result.Tokens...)
		return
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		q := of(b, int(r.Token))
		if s.result.Err != nil && s.result.Err[q] != nil {
			continue
		}
		own := int32(-1)
		if b.From != nil && b.From[r.Token] >= 0 {
			own = ids[r.Token]
		}
		s.give(i, q, f.outs[r.Token], own)
		if b.Head && f.delay.Float64() >= f.right && s.result.Tokens[i] >= 0 {
			s.result.Tokens[i] = (s.result.Tokens[i] + 1) % vocab
		}
	}
	f.sampled = append(f.sampled[:0], s.result.Tokens...)
	if b.Trace {
		s.trace()
	}
	fill()
}

// trace makes up a step's times by layer, which identify the step: 1, and for each layer a multiple
// of the step's number.
func (s *fakeStep) trace() {
	f, b := s.f, s.batch
	s.result.Layers = append(s.result.Layers, 1)
	for i := range f.p.Layers() {
		s.result.Layers = append(s.result.Layers, time.Duration(int64(i+1)*s.number))
	}
	var rows []fakeRow
	for i, r := range b.Rows {
		if r.Want&plan.WantToken != 0 {
			rows = append(rows, fakeRow{int(b.Positions[r.Token]), s.result.Tokens[i]})
		}
	}
	f.locked(func() {
		if f.rowsOf == nil {
			f.rowsOf = map[int64][]fakeRow{}
		}
		f.rowsOf[s.number] = rows
	})
}

// fail ends sequence q. Its stored values mean nothing.
func (s *fakeStep) fail(q int, err error) {
	f, b := s.f, s.batch
	if s.result.Err == nil {
		s.result.Err = make([]error, b.Seqs())
	}
	if s.result.Err[q] != nil {
		return
	}
	s.result.Err[q] = err
	for g := range b.Tables {
		if f.p.Groups[g].Kind == plan.PerSequence {
			if _, out := b.Tables[g].Slots(q); out >= 0 {
				f.slot(g, out)[0] ^= 0xdead
			}
			continue
		}
		for t := b.Start[q]; t < b.Start[q+1]; t++ {
			*f.at(b, g, q, int(b.Positions[t])) ^= 0xdead
		}
	}
}

// give computes row i of sequence q from the output of its position. own is the row's token if it
// has not run yet.
func (s *fakeStep) give(i, q int, out uint64, own int32) {
	r := &s.batch.Rows[i]
	if r.Want&plan.WantToken != 0 {
		var known adjusted
		for _, a := range r.Adjustments {
			known[a.Token].bias, known[a.Token].count, known[a.Token].prompt = a.Bias, a.Count, a.Prompt
		}
		if own >= 0 {
			known[own].count++
		}
		var mask []uint32
		s.f.locked(func() { mask = s.f.masks[r.Mask] })
		token, p, ok := choose(out, &r.Sampling, mask, &known)
		if !ok {
			s.fail(q, sample.ErrEmptyMask)
			return
		}
		if s.result.Tokens[i] = token; r.Want&plan.WantLogProbability != 0 {
			s.result.LogProbabilities[i] = p
		}
	}
	if r.Want&plan.WantLogits != 0 {
		s.result.Logits[i] = numbers(out, vocab)
	}
	if r.Want&plan.WantHidden != 0 {
		s.result.Hidden[i] = numbers(out, deep)
	}
}

// at returns the place of position pos of sequence q in group g.
func (f *fake) at(b *plan.Batch, g, q, pos int) *uint64 {
	table, size := &b.Tables[g], f.lim.PageTokens
	page := int(table.Pages[int(table.Start[q])+pos/size-int(table.First[q])])
	return &f.pools[g][page*size+pos%size]
}

// layers computes outs from the step's tokens, and fills the pages.
func (f *fake) layers(b *plan.Batch, ids []int32) {
	f.outs = slices.Grow(f.outs[:0], len(ids))[:len(ids)]
	for q := range b.Seqs() {
		for t := b.Start[q]; t < b.Start[q+1]; t++ {
			f.outs[t] = hash(uint64(ids[t]), uint64(b.Positions[t]), uint64(f.model.class(b.Length(q, int(t)))))
		}
	}
	g := 0
	for _, w := range f.model.windows {
		switch w {
		case recurrent:
			f.recur(b, g)
		case delta:
			f.recurInChunks(b, g, g+1)
			g++
		default:
			f.layer(b, g)
		}
		g++
	}
}

// slot returns a slot of group g.
func (f *fake) slot(g int, i int32) []uint64 {
	n := f.size(g)
	return f.pools[g][int(i)*n:][:n]
}

// load returns the number in slot i of group g, or 0 if there is no slot.
func (f *fake) load(g int, i int32) uint64 {
	if i < 0 {
		return 0
	}
	all := f.slot(g, i)
	h := all[0]
	for _, x := range all {
		if x != h {
			h = hash(h, x) // of several states
		}
	}
	return h
}

func (f *fake) store(g int, i int32, h uint64) {
	all := f.slot(g, i)
	for k := range all {
		all[k] = h
	}
}

// recurInChunks computes outs from the slots of group g and the pages of group rows, and stores the
// step's rows and the new states.
func (f *fake) recurInChunks(b *plan.Batch, g, rows int) {
	group := f.p.Groups[g]
	for q := range b.Seqs() {
		for t := b.Start[q]; t < b.Start[q+1]; t++ {
			*f.at(b, rows, q, int(b.Positions[t])) = f.outs[t]
		}
	}
	for q := range b.Seqs() {
		first, end := int(b.Positions[b.Start[q]]), int(b.Positions[b.Start[q+1]-1])+1
		in, out := b.Tables[g].Slots(q)
		h, chunk := f.load(g, in), uint64(0)
		for pos := group.Taken(first); pos < end; pos++ {
			x := *f.at(b, rows, q, pos)
			chunk += hash(x, uint64(pos))
			if pos >= first {
				f.outs[int(b.Start[q])+pos-first] = hash(h, x, chunk)
			}
			if group.Taken(pos+1) != pos+1 {
				continue
			}
			h, chunk = hash(h, chunk), 0
			if pos+1 == group.Taken(end) {
				f.store(g, out, h)
			}
		}
	}
}

// recur computes outs from the slots of group g, and stores the new states.
func (f *fake) recur(b *plan.Batch, g int) {
	for q := range b.Seqs() {
		in, out := b.Tables[g].Slots(q)
		h := f.load(g, in)
		for t := b.Start[q]; t < b.Start[q+1]; t++ {
			h = hash(h, f.outs[t])
			f.outs[t] = hash(f.outs[t], h)
		}
		f.store(g, out, h)
	}
}

// layer stores outs in the pages of group g, and computes from each token's visible positions the
// next outs.
func (f *fake) layer(b *plan.Batch, g int) {
	size := f.lim.PageTokens
	for q := range b.Seqs() {
		for t := b.Start[q]; t < b.Start[q+1]; t++ {
			*f.at(b, g, q, int(b.Positions[t])) = f.outs[t]
		}
	}
	for q := range b.Seqs() {
		lo, hi := int(b.Start[q]), int(b.Start[q+1])
		first, end := f.p.Groups[g].FirstVisible(int(b.Positions[lo])), int(b.Positions[hi-1])+1
		f.sums = append(f.sums[:0], 0) // [i] sums the positions from first up to first+i
		sum := uint64(0)
		for pos := first; pos < end; {
			page := unsafe.Slice(f.at(b, g, q, pos), min(size-pos%size, end-pos))
			for _, x := range page {
				sum += hash(x, uint64(pos))
				f.sums = append(f.sums, sum)
				pos++
			}
		}
		for t := lo; t < hi; t++ {
			pos := int(b.Positions[t])
			f.outs[t] = hash(f.outs[t], f.sums[pos+1-first]-f.sums[f.p.Groups[g].FirstVisible(pos)-first])
		}
	}
}

// move runs the page operations. Saved pages are garbage until fill is called, at the end of the
// step.
func (s *fakeStep) move() (fill func()) {
	f := s.f
	var fills []func()
	for i := range s.batch.States {
		op := &s.batch.States[i]
		size := f.size(op.Group)
		page := f.pools[op.Group][int(op.Page)*size:][:size]
		switch op.Kind {
		case plan.SavePage:
			was := slices.Clone(page)
			f.scribble(op.Host)
			fills = append(fills, func() {
				for i, x := range was {
					binary.LittleEndian.PutUint64(op.Host[8*i:], x)
				}
				f.locked(func() {
					if h, at := f.block(op.Host); h != nil {
						h.saved[at] = sum(op.Host)
					}
				})
			})
		case plan.RestorePage:
			f.locked(func() {
				if h, at := f.block(op.Host); h != nil && h.saved[at] != 0 && h.saved[at] != sum(op.Host) {
					f.broken("a saved page was changed in the host's memory")
				}
			})
			for i := range page {
				page[i] = binary.LittleEndian.Uint64(op.Host[8*i:])
			}
		}
	}
	return func() {
		for _, fill := range fills {
			fill()
		}
	}
}

// sum returns a checksum of b, which is not 0.
func sum(b []byte) uint64 { return maphash.Bytes(seed, b) | 1 }

// Wait implements [plan.Step].
func (s *fakeStep) Wait(ctx context.Context) (*plan.Result, error) {
	s.f.locked(func() {
		if s.released {
			s.f.broken("waiting for a step that was released")
		}
	})
	select {
	case <-s.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.f.locked(func() {
		if !s.waited {
			s.waited = true
			s.f.use(s.batch, -1)
		}
	})
	if s.err != nil {
		return nil, s.err
	}
	return &s.result, nil
}

// Release implements [plan.Step]. It destroys the memory of the result.
func (s *fakeStep) Release() {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	if s.released {
		s.f.broken("a step was released twice")
	}
	s.released = true
	select {
	case <-s.done:
	default:
		return // an abandoned step continues
	}
	for i := range s.result.Tokens {
		s.result.Tokens[i] = -2
		for _, x := range [][]float32{s.result.Logits[i], s.result.Hidden[i]} {
			for k := range x {
				x[k] = -1
			}
		}
	}
}

package engine_test

import (
	"context"
	"errors"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

// The model that the fake device runs has one layer that sees all of the past and
// one that sees a window of it. Both keep a number for each position:
//
//	all[p]  = hash(id, p, length)
//	near[p] = hash(all[p], sum of hash(all[q], q) over all q up to p)
//	out[p]  = hash(near[p], sum of hash(near[q], q) over the window's q up to p)
//
// so that every position that is missing, foreign, old or in the wrong place
// changes all that comes after it. An id is the number of the sequence that it is
// of and, below it, ownBits of its own: no two sequences have a common history,
// and no page may ever be in the tables of two.
const (
	ownBits = 16
	vocab   = 1 << 28 // 4096 sequences
	columns = 4       // of logits
	deep    = 2       // columns of a hidden state
)

// hash mixes xs, in order.
func hash(xs ...uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, x := range xs {
		h = (h ^ x) * 0xd6e8feb86659fd93
		h ^= h >> 32
	}
	return h
}

// fails says whether the model cannot compute the position that gave out.
func fails(out uint64) bool { return out>>40%8192 == 0 }

// choose is the token after id, which gave out, and its log-probability.
func choose(out uint64, id int32, o *plan.Row) (int32, float32) {
	h := hash(out, o.Sampling.Seed, uint64(o.Sampling.Choice))
	for _, word := range o.Mask {
		h = hash(h, uint64(word))
	}
	return id>>ownBits<<ownBits | int32(h>>20&(1<<ownBits-1)), -float32(h >> 44)
}

// numbers are n that stand for out.
func numbers(out uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(hash(out, uint64(n), uint64(i)) >> 40)
	}
	return x
}

func program(window int) *plan.Program {
	return &plan.Program{
		Shapes: [][2]plan.Dim{{plan.Rows, deep}, {plan.Rows, columns}},
		States: []plan.State{{Name: "all", KVHeads: 1, HeadDim: 1}, {Name: "near", KVHeads: 1, HeadDim: 1, Window: window, Group: 1}},
		Groups: []plan.Group{{}, {Window: window}},
		Hidden: 0, Logits: 1, Vocab: vocab,
	}
}

var (
	errDamaged = errors.New("the sequence is damaged")
	errLost    = errors.New("the device was lost")
	errRefused = errors.New("the device took no step")
)

// A fake is a backend, its only executable and its device, which runs steps on a
// goroutine of its own in the order of Submit. It checks that whoever drives it
// keeps to what [plan.Executable] and [plan.Step] ask for.
type fake struct {
	p      *plan.Program
	lim    plan.Limits
	broken func(format string, a ...any)      // tells of a rule that was broken
	pause  func(n int, hurry <-chan struct{}) // n nanoseconds, or until hurry

	// The device's own.
	pools   [][]uint64 // by group
	sampled []int32    // by the step before
	sums    []uint64
	outs    []uint64
	delay   *rand.Rand // how long steps take

	busy sync.Mutex // held by who submits or closes

	mu      sync.Mutex
	rng     *rand.Rand
	trouble int // of so many steps one is lost and one refused; 0: none
	queue   chan *fakeStep
	hurry   chan struct{} // closed when somebody waits for the end: they may hold locks, which stop a test's time
	ended   chan struct{}
	closed  bool
	steps   int
	tokens  int
	under   int       // steps not done
	rows    []int32   // owners of the rows of the step submitted last
	holder  [][]int32 // owner by group and page
	pages   []int32   // of a step
	owners  map[int32]*owner
}

// An owner is a sequence as the device knows it.
type owner struct {
	stage  stage
	end    int // position after the last one submitted
	first  []int
	pages  [][]int32 // by group
	missed bool      // a step of its was lost or refused
	late   int       // steps after it was closed: one may have been ready
}

// A stage is how far a sequence is. While it leaves, its pages may be its own or
// another's.
type stage uint8

const (
	living stage = iota
	leaving
	gone
)

type fakeStep struct {
	f        *fake
	batch    *plan.Batch
	sum      uint64 // of the batch when it was submitted
	owners   []int32
	lost     bool
	done     chan struct{}
	result   plan.Result
	err      error
	released bool // guarded by f.mu
}

func (f *fake) Name() string                           { return "fake" }
func (f *fake) Memory() plan.MemoryInfo                { return plan.MemoryInfo{} }
func (f *fake) Weights(*plan.Program, plan.Limits) int { return 0 }
func (f *fake) Scratch(*plan.Program, plan.Limits) int { return 0 }

func (f *fake) locked(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

// enter says that who was let in, where at most parallel may be.
func (f *fake) enter(who int32, parallel int) {
	f.locked(func() {
		f.owners[who] = &owner{first: make([]int, len(f.p.Groups)), pages: make([][]int32, len(f.p.Groups))}
		n := 0
		for _, o := range f.owners {
			if o.stage == living {
				n++
			}
		}
		if n > parallel {
			f.broken("%d sequences hold state at one time, want %d at most", n, parallel)
		}
	})
}

// leave calls end, which closes who.
func (f *fake) leave(who int32, end func()) {
	f.locked(func() { f.owners[who].stage = leaving })
	end()
	f.locked(func() { f.owners[who].stage = gone })
}

// missed says whether a step of who was lost or refused.
func (f *fake) missed(who int32) (yes bool) {
	f.locked(func() { yes = f.owners[who].missed })
	return yes
}

// Compile implements [plan.Backend].
func (f *fake) Compile(_ context.Context, p *plan.Program, l plan.Limits, _ plan.Loaded) (plan.Executable, error) {
	f.p, f.lim, f.owners = p, l, map[int32]*owner{}
	for g := range p.Groups {
		pool := make([]uint64, l.Pages[g]*l.PageTokens)
		for i := range pool {
			pool[i] = f.rng.Uint64()
		}
		f.pools = append(f.pools, pool)
		f.holder = append(f.holder, make([]int32, l.Pages[g]))
	}
	f.delay = rand.New(rand.NewPCG(f.rng.Uint64(), 0))
	f.queue, f.hurry, f.ended = make(chan *fakeStep, 64), make(chan struct{}), make(chan struct{})
	go f.run()
	return f, nil
}

func (f *fake) AllocHost(n int) ([]byte, error) { return make([]byte, n), nil }
func (f *fake) FreeHost([]byte) error           { return nil }

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

// Submit implements [plan.Executable].
func (f *fake) Submit(b *plan.Batch) (plan.Step, error) {
	defer f.alone()()
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
	owners := f.check(b)
	if f.trouble > 0 && f.rng.IntN(f.trouble) == 0 {
		f.under--
		f.miss(owners)
		return nil, errRefused
	}
	s := &fakeStep{f: f, batch: b, sum: checksum(b), owners: owners, done: make(chan struct{})}
	s.lost = f.trouble > 0 && f.rng.IntN(f.trouble) == 0
	f.rows = f.rows[:0]
	for _, r := range b.Rows {
		f.rows = append(f.rows, owners[of(b, int(r.Token))])
	}
	f.steps++
	f.tokens += len(b.Tokens)
	f.queue <- s
	return s, nil
}

// miss says that a step of owners came to nothing.
func (f *fake) miss(owners []int32) {
	for _, who := range owners {
		if o := f.owners[who]; o != nil {
			o.missed = true
		}
	}
}

// of is the sequence of token t.
func of(b *plan.Batch, t int) int {
	s := 0
	for int(b.Start[s+1]) <= t {
		s++
	}
	return s
}

// check says whose the sequences of b are, and whether their pages and positions
// can be theirs.
func (f *fake) check(b *plan.Batch) []int32 {
	owners := make([]int32, b.Seqs())
	for s := range owners {
		for t := b.Start[s]; t < b.Start[s+1]; t++ {
			who := b.Tokens[t] >> ownBits
			if b.From != nil && b.From[t] >= 0 {
				who = f.rows[b.From[t]]
			}
			if t > b.Start[s] && who != owners[s] {
				f.broken("tokens of %d and %d in one sequence", owners[s], who)
			}
			owners[s] = who
		}
		if slices.Contains(owners[:s], owners[s]) {
			f.broken("sequence %d is in one step twice", owners[s])
		}
	}
	for g := range b.Tables {
		f.pages = append(f.pages[:0], b.Tables[g].Pages...)
		slices.Sort(f.pages)
		if len(slices.Compact(f.pages)) < len(f.pages) {
			f.broken("group %d: a page is in one step twice", g)
		}
	}
	for s, who := range owners {
		o := f.owners[who]
		if o == nil {
			f.broken("a step of sequence %d, which was never opened", who)
			continue
		}
		if o.stage == gone {
			if o.late++; o.late > 1 {
				f.broken("sequence %d is given steps after it was closed", who)
			}
		}
		start, end := int(b.Positions[b.Start[s]]), int(b.Positions[b.Start[s+1]-1])+1
		if chained := b.From != nil && b.From[b.Start[s]] >= 0; start > o.end || chained && start != o.end {
			f.broken("sequence %d goes on at position %d after %d", who, start, o.end)
		}
		o.end = end
		for g := range b.Tables {
			table := &b.Tables[g]
			o.first[g] = int(table.First[s])
			o.pages[g] = append(o.pages[g][:0], table.Pages[table.Start[s]:table.Start[s+1]]...)
			f.hold(who, g)
		}
	}
	return owners
}

// hold takes note of the pages of group g that who has now.
func (f *fake) hold(who int32, g int) {
	for _, page := range f.owners[who].pages[g] {
		before := f.holder[g][page]
		f.holder[g][page] = who
		o := f.owners[before]
		if before == who || o == nil || o.stage != living {
			continue
		}
		at := slices.Index(o.pages[g], page)
		if at >= 0 && o.first[g]+at >= f.p.Groups[g].FirstVisible(o.end)/f.lim.PageTokens {
			f.broken("group %d: sequence %d has page %d, which sequence %d still sees", g, who, page, before)
		}
	}
}

var seed = maphash.MakeSeed()

// checksum is of all of b that the engine makes.
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
		for _, word := range r.Mask {
			maphash.WriteComparable(&h, word)
		}
	}
	return h.Sum64()
}

// run is the device.
func (f *fake) run() {
	defer close(f.ended)
	for s := range f.queue {
		f.pause(1+f.delay.IntN(40_000), f.hurry)
		f.step(s)
		if checksum(s.batch) != s.sum {
			f.broken("a batch was changed while its step was under way")
		}
		f.locked(func() {
			if f.under--; s.lost {
				f.miss(s.owners)
			}
		})
		close(s.done)
	}
}

// step does what a step is for, all of its sequences at once, as devices do: a
// layer's positions are stored before any is read.
func (f *fake) step(s *fakeStep) {
	b := s.batch
	n := len(b.Rows)
	s.result = plan.Result{Tokens: slices.Repeat([]int32{-1}, n), Logits: make([][]float32, n), Hidden: make([][]float32, n), LogProbabilities: make([]float32, n)}
	if s.lost {
		s.err = errLost
		f.sampled = append(f.sampled[:0], s.result.Tokens...)
		return
	}
	ids := slices.Clone(b.Tokens)
	for t, r := range b.From {
		if r >= 0 {
			ids[t] = f.sampled[r]
		}
	}
	f.outs = slices.Grow(f.outs[:0], len(ids))[:len(ids)]
	for t, id := range ids {
		q := of(b, t)
		f.outs[t] = hash(uint64(id), uint64(b.Positions[t]), uint64(b.Length(q, t)))
	}
	for g := range f.p.Groups {
		f.layer(b, g)
	}
	for q := range b.Seqs() {
		for t := b.Start[q]; t < b.Start[q+1]; t++ {
			if ids[t] < 0 || fails(f.outs[t]) {
				if s.result.Err == nil {
					s.result.Err = make([]error, b.Seqs())
				}
				s.result.Err[q] = errDamaged
			}
		}
	}
	for i := range b.Rows {
		r := &b.Rows[i]
		out, q := f.outs[r.Token], of(b, int(r.Token))
		if s.result.Err != nil && s.result.Err[q] != nil {
			continue
		}
		if r.Want&plan.WantToken != 0 {
			token, p := choose(out, ids[r.Token], r)
			if s.result.Tokens[i] = token; r.Want&plan.WantLogProbability != 0 {
				s.result.LogProbabilities[i] = p
			}
		}
		if r.Want&plan.WantLogits != 0 {
			s.result.Logits[i] = numbers(out, columns)
		}
		if r.Want&plan.WantHidden != 0 {
			s.result.Hidden[i] = numbers(out, deep)
		}
	}
	f.sampled = append(f.sampled[:0], s.result.Tokens...)
}

// layer stores outs in the pages of group g, and makes of them what each token
// sees there.
func (f *fake) layer(b *plan.Batch, g int) {
	size := f.lim.PageTokens
	at := func(q, page int) []uint64 {
		n := int(b.Tables[g].Pages[int(b.Tables[g].Start[q])+page-int(b.Tables[g].First[q])])
		return f.pools[g][n*size:][:size]
	}
	for q := range b.Seqs() {
		for t := b.Start[q]; t < b.Start[q+1]; t++ {
			pos := int(b.Positions[t])
			at(q, pos/size)[pos%size] = f.outs[t]
		}
	}
	for q := range b.Seqs() {
		lo, hi := int(b.Start[q]), int(b.Start[q+1])
		first, end := f.p.Groups[g].FirstVisible(int(b.Positions[lo])), int(b.Positions[hi-1])+1
		f.sums = append(f.sums[:0], 0) // [i] of the positions from first up to first+i
		sum := uint64(0)
		for pos := first; pos < end; {
			page := at(q, pos/size)
			for i := pos % size; i < size && pos < end; i++ {
				sum += hash(page[i], uint64(pos))
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
	if s.err != nil {
		return nil, s.err
	}
	return &s.result, nil
}

// Release implements [plan.Step]. What the result held is wrong from now on.
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
		return // an abandoned step goes on
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

// What the fake device computes of many sequences in one step, in pages that lie
// about, is what each is alone.
func TestFakeDevice(t *testing.T) {
	const window, size, seqs, length = 5, 4, 3, 40
	rng := rand.New(rand.NewPCG(7, 7))
	f := &fake{broken: t.Errorf, pause: func(int, <-chan struct{}) {}, rng: rng}
	p := program(window)
	l := plan.Limits{Tokens: seqs * length, Seqs: seqs, Rows: seqs, PageTokens: size, Pages: []int{seqs * length / size, seqs * length / size}}
	exe, err := f.Compile(t.Context(), p, l, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer exe.Close()
	free := [][]int{rng.Perm(l.Pages[0]), rng.Perm(l.Pages[1])}
	var pages [2][seqs][]int32
	for g := range pages {
		for s := range seqs {
			for _, page := range free[g][s*length/size:][:length/size] {
				pages[g][s] = append(pages[g][s], int32(page))
			}
		}
	}
	var past [seqs]reader
	for s := range past {
		past[s] = reader{prompt: 3, window: window}
		f.enter(int32(s+1), seqs)
	}
	before := map[int]int32{} // rows of the step before, by sequence
	var chosen [seqs]int32
	for range 10 {
		b := &plan.Batch{Start: []int32{0}, Tables: []plan.PageTable{{Start: []int32{0}}, {Start: []int32{0}}}}
		rows := map[int]int32{}
		var want []int32
		for _, s := range rng.Perm(seqs)[:1+rng.IntN(seqs)] {
			m := &past[s]
			ids := []int32{int32(s+1)<<ownBits | rng.Int32N(1<<ownBits), int32(s+1)<<ownBits | rng.Int32N(1<<ownBits)}[:1+rng.IntN(2)]
			start := len(m.terms)
			for i, id := range ids {
				from := int32(-1)
				if row, ok := before[s]; ok && i == 0 {
					from, id = row, chosen[s]
					b.Tokens = append(b.Tokens, 0)
				} else {
					b.Tokens = append(b.Tokens, id)
				}
				b.From = append(b.From, from)
				b.Positions = append(b.Positions, int32(start+i))
				m.read(id)
			}
			b.Start = append(b.Start, int32(len(b.Tokens)))
			b.Lengths = append(b.Lengths, int32(m.prompt))
			for g := range b.Tables {
				table := &b.Tables[g]
				first := p.Groups[g].FirstVisible(start) / size
				table.First = append(table.First, int32(first))
				table.Pages = append(table.Pages, pages[g][s][first:]...)
				table.Start = append(table.Start, int32(len(table.Pages)))
			}
			if rng.IntN(3) > 0 {
				o := engine.Output{Token: int32(len(b.Tokens) - 1), Want: plan.WantToken, Sampling: sample.Params{Seed: rng.Uint64()}}
				rows[s] = int32(len(b.Rows))
				b.Rows = append(b.Rows, o)
				chosen[s], _ = choose(m.out, m.id, &o)
				want = append(want, chosen[s])
			}
		}
		step, err := exe.Submit(b)
		if err != nil {
			t.Fatal(err)
		}
		res, err := step.Wait(t.Context())
		if err != nil || res.Err != nil {
			t.Fatal(err, res)
		}
		if !slices.Equal(res.Tokens, want) {
			t.Errorf("%v, want %v", res.Tokens, want)
		}
		step.Release()
		before = rows
	}
}

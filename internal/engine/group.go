package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/tensor"
)

// A Group is engines that run the same program with the same arithmetic, each on a device of its
// own. Answers have the same bits on each, so a request may run on any.
//
// A request goes to the engine with the least cost, in tokens: those that the engine still has to
// run for requests of the same or a higher priority, and twice those of the prompt that it has
// neither cached nor in its queue. They count twice because they delay this request and those after
// it. A request that waits moves as soon as another engine has a place for it and the lower cost.
//
// An engine that loses a step fails: its waiting requests move, and it gets no others until it has
// run a step of its own again.
type Group struct {
	engines []*Engine
	events  func(engine int, out bool)
	wakes   chan struct{} // a request has ended, or an engine has failed
	stop    context.CancelFunc
	running sync.WaitGroup

	working atomic.Int32 // engines that have not failed

	mu      sync.Mutex // held while an engine is chosen; taken before the mutex of an engine
	members []member
	given   uint64 // requests so far
}

// A member is an engine of a group.
type member struct {
	last    uint64        // number of the request that it got last
	out     bool          // it has failed, and the group has told so
	asking  bool          // it is being asked whether it works again
	patient time.Duration // until it is asked
	again   time.Time     // when it is asked
}

// An engine that fails is asked whether it works after firstAsk, and then each time after twice as
// long, up to lastAsk.
const (
	firstAsk = time.Second
	lastAsk  = time.Minute
)

// answerTokens is the most tokens that an answer is expected to have left.
const answerTokens = 128

// movable is the most waiting requests of an engine that are compared at a time.
const movable = 64

// NewGroup returns the group of engines, which it closes. They must be new. out, if not nil, is
// called when an engine is taken out because it failed, and when it is back.
func NewGroup(engines []*Engine, out func(engine int, out bool)) *Group {
	g := &Group{engines: engines, events: out, wakes: make(chan struct{}, 1), members: make([]member, len(engines))}
	if len(engines) == 1 {
		return g
	}
	g.working.Store(int32(len(engines)))
	ctx, stop := context.WithCancel(context.Background())
	g.stop = stop
	for _, e := range engines {
		e.mu.Lock()
		e.group = g
		e.mu.Unlock()
	}
	g.running.Go(func() { g.watch(ctx) })
	return g
}

// wake has the group compare its engines. It does not wait.
func (g *Group) wake() {
	select {
	case g.wakes <- struct{}{}:
	default:
	}
}

// Engines returns the engines.
func (g *Group) Engines() []*Engine { return g.engines }

// Context returns the most positions of one sequence.
func (g *Group) Context() int { return g.engines[0].Context() }

// Close closes the engines.
func (g *Group) Close() error {
	if g.stop != nil {
		g.stop()
	}
	errs := make([]error, len(g.engines))
	var closing sync.WaitGroup
	for i, e := range g.engines {
		closing.Go(func() { errs[i] = e.Close() })
	}
	closing.Wait()
	g.running.Wait()
	return errors.Join(errs...)
}

// Setup returns the longest times that making an engine ready has taken.
func (g *Group) Setup() (s plan.Setup) {
	for _, e := range g.engines {
		own := e.Setup()
		s.Load, s.Compile, s.Capture = max(s.Load, own.Load), max(s.Compile, own.Compile), max(s.Capture, own.Capture)
	}
	return s
}

// Metrics returns those of each engine.
func (g *Group) Metrics() (all []Metrics) {
	for _, e := range g.engines {
		all = append(all, e.Metrics())
	}
	return all
}

// Run is as [Engine.Run], on the engine with the least cost. Constrain may be called again for an
// answer that has not begun.
func (g *Group) Run(ctx context.Context, r *Request, yield func(*Result) (more bool, err error)) (Stats, error) {
	if len(g.engines) == 1 {
		return g.engines[0].Run(ctx, r, yield)
	}
	if err := r.check(g.engines[0].config, g.engines[0].program); err != nil {
		return Stats{}, err
	}
	own := *r
	own.arrived = time.Now()
	a := g.choose(&own)
	for {
		stats, next, err := a.engine.run(ctx, &own, a, yield)
		if !errors.Is(err, errMoved) {
			if next != nil {
				next.leave()
			}
			return stats, err
		}
		if a = next; a == nil {
			a = g.choose(&own)
		}
	}
}

// Export is as [Engine.Export], of the engine that has most of the prompt cached.
func (g *Group) Export(ctx context.Context, prompt []int32, salt string) (*Export, error) {
	best, most := 0, -1
	for i, e := range g.engines {
		e.mu.Lock()
		if pages, _ := e.match(e.prefixOf(prompt, salt)); pages > most && !e.out {
			best, most = i, pages
		}
		e.mu.Unlock()
	}
	return g.engines[best].Export(ctx, prompt, salt)
}

// Import is as [Engine.Import], to the engine with the least cost.
func (g *Group) Import(ctx context.Context, prompt []int32, salt string, tokens int, fill func(ctx context.Context, skip int, pages [][]byte) error) error {
	e := g.engines[0]
	if len(g.engines) > 1 && len(prompt) > 0 {
		a := g.choose(&Request{Prompt: prompt, Salt: salt})
		a.leave()
		e = a.engine
	}
	return e.Import(ctx, prompt, salt, tokens, fill)
}

// An entrant is a request that an engine was chosen for and that is not in its queue yet. The
// engine's mutex guards it.
type entrant struct {
	engine *Engine
	fresh  int       // tokens of the prompt that the engine has neither cached nor in its queue
	like   *sequence // the first answer
	anyway bool      // the engine takes it even if it fails
}

// errMoved ends the run of a request that goes on in another engine.
var errMoved = errors.New("the request has moved")

// leave forgets a, whose request is in the queue or has ended.
func (a *entrant) leave() {
	a.engine.mu.Lock()
	defer a.engine.mu.Unlock()
	a.engine.forget(a)
}

// forget is leave for a caller that holds e.mu.
func (e *Engine) forget(a *entrant) {
	if i := slices.Index(e.arriving, a); i >= 0 {
		e.arriving = slices.Delete(e.arriving, i, i+1)
	}
}

// expected returns how many tokens the request will run.
func (a *entrant) expected() int {
	return a.fresh + a.like.run.Request.answers()*min(a.like.run.Tokens, answerTokens)
}

// choose returns r as an entrant of the engine with the least cost. Of equal engines it is the one that
// has had no request for longest.
func (g *Group) choose(r *Request) *entrant {
	g.mu.Lock()
	defer g.mu.Unlock()
	i, all := g.cheapest(r)
	return g.arrive(r, i, all)
}

// cheapest returns the engine for r. all says that every engine has failed, so any is chosen.
func (g *Group) cheapest(r *Request) (best int, all bool) {
	all = g.working.Load() == 0
	least := -1
	for i, e := range g.engines {
		cost, out := e.costOf(r)
		if out && !all {
			continue
		}
		if least < 0 || cost < least || cost == least && g.members[i].last < g.members[best].last {
			best, least = i, cost
		}
	}
	return best, all
}

// arrive adds r to the requests on their way to engine i. The engine takes it though it fails if
// anyway is set.
func (g *Group) arrive(r *Request, i int, anyway bool) *entrant {
	g.given++
	g.members[i].last = g.given
	e := g.engines[i]
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.likeness(r)
	a := &entrant{engine: e, fresh: e.fresh(s), like: s, anyway: anyway}
	e.arriving = append(e.arriving, a)
	return a
}

// watch moves requests and asks engines that have failed, until ctx ends.
func (g *Group) watch(ctx context.Context) {
	timer := time.NewTimer(lastAsk)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wakes:
		case <-timer.C:
		}
		timer.Reset(g.attend(ctx))
	}
}

// attend tells of engines that have failed, asks them whether they work again, and moves requests.
// It returns how long the next call may wait.
func (g *Group) attend(ctx context.Context) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	now, next := time.Now(), lastAsk
	for i, e := range g.engines {
		m := &g.members[i]
		if out := e.isOut(); out && !m.out {
			m.out, m.patient, m.again = true, firstAsk, now.Add(firstAsk)
			g.tell(i, true)
		}
		switch {
		case !m.out || m.asking:
		case now.Before(m.again):
			next = min(next, m.again.Sub(now))
		default:
			m.asking = true
			g.running.Go(func() { g.ask(ctx, i) })
		}
	}
	g.move()
	return next
}

func (g *Group) tell(i int, out bool) {
	if g.events != nil {
		g.events(i, out)
	}
}

// ask has engine i run a step of its own, and takes it back if it does.
func (g *Group) ask(ctx context.Context, i int) {
	e := g.engines[i]
	_, err := e.Run(ctx, &Request{Prompt: []int32{0}}, func(*Result) (bool, error) { return true, nil })
	g.mu.Lock()
	defer g.mu.Unlock()
	m := &g.members[i]
	m.asking = false
	if err != nil {
		m.patient = min(2*m.patient, lastAsk)
		m.again = time.Now().Add(m.patient)
	} else {
		m.out = false
		g.tell(i, false)
		e.comeBack()
	}
	g.wake()
}

// move moves waiting requests to engines that have places for them, at a lower cost.
func (g *Group) move() {
	for to, e := range g.engines {
		room := e.room()
		for i, from := range g.engines {
			if i == to || room <= 0 {
				continue
			}
			for _, w := range from.untouched(movable) {
				if room <= 0 {
					break
				}
				if cost, out := e.costOf(w.run.Request); !out && cost < w.cost && g.transfer(w.run, from, to) {
					room -= w.run.Request.answers()
				}
			}
		}
	}
}

// transfer moves w to an engine, unless it has begun or ended. It reports whether it did.
func (g *Group) transfer(w *run, from *Engine, to int) bool {
	a := g.arrive(w.Request, to, false)
	if !from.withdraw(w, a) {
		a.leave()
		return false
	}
	return true
}

// withdraw ends w, which goes on at a, unless it has begun or ended.
func (e *Engine) withdraw(w *run, a *entrant) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !w.untouched() {
		return false
	}
	e.sendOn(w, a)
	return true
}

// untouched reports whether w waits and may move to another engine.
func (w *run) untouched() bool { return w.movable && !w.placed && !w.over }

// sendOn ends w, which goes on at a, or where its caller chooses if a is nil.
func (e *Engine) sendOn(w *run, a *entrant) {
	w.next = a
	for _, s := range w.answers {
		s.share.end -= float64(w.total())
	}
	e.stop(w, moved)
	w.results <- result{err: errMoved}
}

// A waiting run has no pages and has had none.
type waiting struct {
	run  *run
	cost int
}

// untouched returns up to n waiting runs, in the order of the queue, with their costs.
func (e *Engine) untouched(n int) (all []waiting) {
	e.mu.Lock()
	defer e.mu.Unlock()
	ahead := 0
	for _, s := range slices.Concat(e.queue.active, e.queue.waiting) {
		if len(all) == n {
			break
		}
		w := s.run
		if w.untouched() && s.choice == 0 {
			all = append(all, waiting{w, ahead + 2*e.fresh(s)})
		}
		ahead += s.expected()
	}
	return all
}

// room returns how many answers more the engine has places for at once.
func (e *Engine) room() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.out {
		return 0
	}
	n := e.queue.most - len(e.queue.waiting)
	for _, s := range e.queue.active {
		if n--; !s.placed {
			return 0
		}
	}
	for _, a := range e.arriving {
		n -= a.like.run.Request.answers()
	}
	return n
}

// failed takes e out of its group because a step has failed, and sends its waiting requests to the
// other engines. If the model's file is damaged, the others cannot run the step either, and e stays.
func (e *Engine) failed(err error) {
	var fault *tensor.FaultError
	if e.group == nil || errors.As(err, &fault) {
		return
	}
	if !e.out {
		e.out = true
		e.group.working.Add(-1)
	}
	e.group.wake()
	if e.group.working.Load() == 0 {
		return
	}
	for _, s := range slices.Concat(e.queue.active, e.queue.waiting) {
		if s.run.untouched() {
			e.sendOn(s.run, nil)
		}
	}
}

func (e *Engine) isOut() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.out
}

// comeBack undoes failed.
func (e *Engine) comeBack() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.out {
		e.out = false
		e.group.working.Add(1)
	}
}

// costOf returns the cost of r, see [Group], and whether e has failed.
func (e *Engine) costOf(r *Request) (cost int, out bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, all := range [][]*sequence{e.queue.active, e.queue.waiting} {
		for _, s := range all {
			if s.run.Priority >= r.Priority {
				cost += s.expected()
			}
		}
	}
	for _, a := range e.arriving {
		if a.like.run.Priority >= r.Priority {
			cost += a.expected()
		}
	}
	return cost + 2*e.fresh(e.likeness(r)), e.out
}

// likeness returns a sequence with the tokens of r's first answer.
func (e *Engine) likeness(r *Request) *sequence {
	s := e.prefixOf(r.Prompt, r.Salt)
	s.run.Request, s.whole = r, e.program.Whole
	return s
}

// fresh returns how many tokens of the prompt of s, which has no pages, are neither cached nor those
// of a sequence in the queue.
func (e *Engine) fresh(s *sequence) int {
	if s.whole {
		return s.prompt()
	}
	best, _ := e.match(s)
	common := func(o *sequence) {
		if o.run == s.run || o.run.Salt != s.run.Salt || o.class != s.class {
			return
		}
		// Most sequences are as long as the best one in what they have in common with s, or shorter.
		if most := min(s.reusable(), len(o.tokens)) / pageTokens; best < most && slices.Equal(s.page(best), o.page(best)) {
			best = max(best, s.common(o))
		}
	}
	for _, o := range e.queue.active {
		common(o)
	}
	for _, o := range e.queue.waiting {
		if o.number >= s.number && s.number > 0 { // it is behind s
			continue
		}
		common(o)
	}
	for _, a := range e.arriving {
		common(a.like)
	}
	return len(s.tokens) - best*pageTokens
}

// expected returns how many tokens s is expected to run.
func (s *sequence) expected() int {
	n := min(s.run.Tokens-s.chosen(), answerTokens)
	switch {
	case s.placed:
		n += max(0, s.prompt()-s.sent)
	case s.places > 0: // it was preempted
		n += len(s.tokens)
	case s.choice == 0:
		n += s.run.fresh
	}
	return max(0, n)
}

// Package pool shares the memory of devices among models. A [Pool] has a list of models. A
// caller acquires one by its name, which loads it if need be, and releases it after use.
//
// A pool reserves memory before it loads a model and frees it after it has closed the model, so
// the models of a device never exceed its limit. If a model does not fit, idle models are
// unloaded for it, or its load waits. A pool knows nothing of HTTP, and nothing of models but
// what a [Loader] says.
package pool

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Need is bytes by device.
type Need map[string]int64

// A Loader loads models. Its methods may be called for several models at once, and for one
// load of a model at a time. A panic is an error of the load.
type Loader[M io.Closer] interface {
	// Estimate returns how much of each device the model of that name takes while it is
	// loaded. It does not load the model.
	Estimate(ctx context.Context, name string) (Need, error)
	// Load loads the model, within what Estimate returned. It returns soon after ctx ends.
	Load(ctx context.Context, name string, need Need) (M, error)
}

// A Spec describes a model that a pool may load.
type Spec struct {
	Name    string
	Aliases []string // other names
	// Version is anything that differs when the model does: see [Pool.Set].
	Version string
	// Pinned keeps the model, once it is loaded, until [Pool.Unload]: it is not evicted, and TTL
	// does not apply.
	Pinned bool
	// TTL is how long the model stays loaded while idle. 0: until others need its memory.
	TTL time.Duration
}

// A Config configures a pool.
type Config[M io.Closer] struct {
	Models []Spec
	Loader Loader[M]
	// Limits are what all models together may take of each device.
	Limits Need
	// Stay is how long a model in use stays before it must make room for loads that wait. It
	// also stays at least as long as its own load took.
	Stay time.Duration
	// MaxWaiting is how many callers may wait for models at one time.
	MaxWaiting int
	// MaxWait is how long a caller may wait for a load to begin. 0: as long as its context lasts.
	MaxWait time.Duration
}

// Validate returns what is wrong with c.
func (c *Config[M]) Validate() error {
	if err := validate(c.Models, c.Loader); err != nil {
		return err
	}
	for device, n := range c.Limits {
		if n < 0 {
			return fmt.Errorf("pool: a limit of %d bytes of %s; want 0 or more", n, device)
		}
	}
	switch {
	case c.Stay < 0:
		return fmt.Errorf("pool: models in use are to stay for %v; want 0 or more", c.Stay)
	case c.MaxWaiting < 1:
		return fmt.Errorf("pool: %d may wait for models; want 1 or more", c.MaxWaiting)
	case c.MaxWait < 0:
		return fmt.Errorf("pool: a longest wait of %v; want 0 or more", c.MaxWait)
	}
	return nil
}

// validate returns what is wrong with a list of models and its loader.
func validate[M io.Closer](models []Spec, loader Loader[M]) error {
	known := map[string]bool{}
	for _, s := range models {
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			switch {
			case strings.TrimSpace(name) == "":
				return errors.New("pool: the name of a model is empty")
			case known[name]:
				return fmt.Errorf("pool: two models are called %.100q; give one of them another name", name)
			}
			known[name] = true
		}
		if s.TTL < 0 {
			return fmt.Errorf("pool: a TTL of %v of model %.100q; want more than 0, or 0 for none", s.TTL, s.Name)
		}
	}
	if loader == nil {
		return errors.New("pool: there is no loader")
	}
	return nil
}

// A Pool shares the memory of devices among models. Its methods may be called by many
// goroutines at once.
type Pool[M io.Closer] struct {
	config Config[M]      // but for Models and Loader
	work   sync.WaitGroup // estimates, loads and closings under way

	mu      sync.Mutex
	loader  Loader[M]
	entries []*entry[M]          // in the order of the list, then those that Set removed
	names   map[string]*entry[M] // with aliases, without those that Set removed
	used    Need                 // reserved
	queue   []*load[M]           // that wait for memory
	waiting int                  // callers that wait for models
	wake    *time.Timer          // when a model in use may be drained for others
	wakes   time.Time            // the time of wake
	closed  bool
	failed  []error // of closing models, since New
	events  events
}

// An entry is a model of the pool, loaded or not.
type entry[M io.Closer] struct {
	Spec
	state   State
	removed bool          // by Set: it is deleted when its memory is free
	load    *load[M]      // wanted or under way; nil if there is none
	need    Need          // reserved: while it is loading, ready or draining
	gone    chan struct{} // closed when need is free again
	model   M             // while it is ready or draining
	holds   int           // of model
	looks   int           // at model
	ready   time.Time     // since when
	used    time.Time     // last
	took    time.Duration // by the last load
	ttl     time.Duration // that applies; less than 0: none
	expires time.Time     // zero: never
	timer   *time.Timer   // for expires
	err     error         // of the last load; nil if it succeeded
	again   time.Time     // when a load may be tried after err
	fails   int           // failed loads since the last that succeeded
	counts  Counts
}

// A load lasts from the first caller that wants the model to the model or an error. It belongs
// to its entry until then, or until all callers have left before it began.
type load[M io.Closer] struct {
	entry   *entry[M]
	name    string // of entry
	loader  Loader[M]
	waiters []*waiter[M]
	need    Need // nil: not estimated yet
	begun   bool // has its memory
	ctx     context.Context
	cancel  context.CancelFunc
}

// A waiter is a caller that waits for a load.
type waiter[M io.Closer] struct {
	load *load[M]      // nil: the model was ready
	done chan struct{} // closed when hold or err is set
	hold *Hold[M]
	err  error
}

// New makes a pool. It loads nothing.
func New[M io.Closer](c Config[M]) (*Pool[M], error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.Limits = maps.Clone(c.Limits)
	p := &Pool[M]{config: c, used: Need{}}
	p.events.more = make(chan struct{})
	return p, p.Set(c.Models, c.Loader)
}

// A Hold is the use of a model by a caller. The model stays loaded until Release.
type Hold[M io.Closer] struct {
	Model M
	Name  string // the first of its names

	pool  *Pool[M]
	entry *entry[M]
	look  bool // see [Pool.Look]
	over  bool // guarded by the pool's mu
}

// Acquire returns a hold of the model of that name, and loads the model if need be. The caller must
// release the hold, and must not wait for another model meanwhile.
//
// The error is an [*UnknownError], a [*MemoryError], a [*QueueError], a [*LoadError],
// [ErrUnloaded], [ErrClosed] or the cause of ctx.
func (p *Pool[M]) Acquire(ctx context.Context, name string) (*Hold[M], error) {
	return p.acquire(ctx, name, false)
}

// Load loads the model of that name, which then counts as just used. It tries at once, even if the
// last attempt failed a moment ago.
func (p *Pool[M]) Load(ctx context.Context, name string) error {
	h, err := p.acquire(ctx, name, true)
	if err == nil {
		h.Release()
	}
	return err
}

func (p *Pool[M]) acquire(ctx context.Context, name string, insist bool) (*Hold[M], error) {
	w, err := p.ask(name, insist)
	if err != nil {
		return nil, err
	}
	var late <-chan time.Time
	if p.config.MaxWait > 0 {
		t := time.NewTimer(p.config.MaxWait)
		defer t.Stop()
		late = t.C
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		p.leave(w, context.Cause(ctx), true)
	case <-late:
		p.leave(w, nil, false)
		select {
		case <-w.done:
		case <-ctx.Done():
			p.leave(w, context.Cause(ctx), true)
		}
	}
	return w.hold, w.err
}

// ask returns a waiter for the model of that name, which may be served already.
func (p *Pool[M]) ask(name string, insist bool) (*waiter[M], error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.names[name]
	switch {
	case p.closed:
		return nil, ErrClosed
	case e == nil:
		return nil, p.unknown(name)
	}
	w := &waiter[M]{done: make(chan struct{})}
	wait := time.Until(e.again)
	switch {
	case e.state == Ready:
		w.serve(p.hold(e), nil)
		return w, nil
	case e.load == nil && e.err != nil && wait > 0 && !insist:
		return nil, &LoadError{Model: e.Name, Err: e.err, Again: wait}
	case p.waiting >= p.config.MaxWaiting:
		return nil, &QueueError{Model: e.Name, Waiting: p.waiting, Limit: p.config.MaxWaiting}
	case e.load == nil:
		p.want(e)
	}
	w.load = e.load
	p.waiting++
	w.load.waiters = append(w.load.waiters, w)
	return w, nil
}

// want begins to plan a load of e.
func (p *Pool[M]) want(e *entry[M]) {
	l := &load[M]{entry: e, name: e.Name, loader: p.loader}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	e.load = l
	p.work.Go(func() { p.plan(l) })
}

// leave ends the waiting of w with err, or with a [*MemoryError] if err is nil. It does nothing if w
// has been served, or if the load has begun and always is false.
func (p *Pool[M]) leave(w *waiter[M], err error, always bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := w.load
	if l == nil {
		return
	}
	at := slices.Index(l.waiters, w)
	if at < 0 || l.begun && !always {
		return
	}
	if err == nil {
		err = p.late(l)
	}
	l.waiters = slices.Delete(l.waiters, at, at+1)
	p.waiting--
	w.serve(nil, err)
	if len(l.waiters) == 0 && !l.begun {
		p.drop(l)
		p.schedule() // other loads may have waited for l alone
	}
}

// drop removes a load that has not begun.
func (p *Pool[M]) drop(l *load[M]) {
	l.cancel()
	l.entry.load = nil
	p.queue = slices.DeleteFunc(p.queue, func(other *load[M]) bool { return other == l })
}

// serve ends the waiting of w with a hold or an error.
func (w *waiter[M]) serve(h *Hold[M], err error) {
	w.hold, w.err = h, err
	close(w.done)
}

// serveAll ends the waiting for l: with a hold of its model, or with err.
func (p *Pool[M]) serveAll(l *load[M], err error) {
	for _, w := range l.waiters {
		p.waiting--
		if err != nil {
			w.serve(nil, err)
			continue
		}
		w.serve(p.hold(l.entry), nil)
	}
	l.waiters = nil
}

// hold returns one more hold of a model that is ready.
func (p *Pool[M]) hold(e *entry[M]) *Hold[M] {
	e.holds++
	e.used = time.Now()
	e.stay()
	return &Hold[M]{Model: e.model, Name: e.Name, pool: p, entry: e}
}

// KeepAlive sets how long the model stays loaded while idle, until it is unloaded or another hold
// sets it: 0 unloads it as soon as it is idle, less than 0 keeps it until others need its memory.
func (h *Hold[M]) KeepAlive(d time.Duration) {
	h.pool.mu.Lock()
	defer h.pool.mu.Unlock()
	if !h.over && !h.look {
		h.entry.ttl = d
	}
}

// Release ends the use of the model. A second Release does nothing.
func (h *Hold[M]) Release() {
	p, e := h.pool, h.entry
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case h.over:
		return
	case h.look:
		e.looks--
	default:
		e.holds--
		e.used = time.Now()
	}
	h.over = true
	switch {
	case e.state == Draining:
		p.left(e)
	case e.holds == 0 && !h.look:
		p.idle(e)
		p.schedule()
	}
}

// Look returns a hold of the model of that name if the model is ready. It delays the closing of the
// model until it is released, but does not count as use: an idle model stays idle.
func (p *Pool[M]) Look(name string) (*Hold[M], bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.names[name]
	if e == nil || e.state != Ready {
		return nil, false
	}
	e.looks++
	return &Hold[M]{Model: e.model, Name: e.Name, pool: p, entry: e, look: true}, true
}

// left closes a draining model if it has no hold.
func (p *Pool[M]) left(e *entry[M]) {
	if e.holds == 0 && e.looks == 0 {
		p.work.Go(func() { p.close(e) })
	}
}

// idle has e, which is ready and has no hold, unloaded when its time to live ends.
func (p *Pool[M]) idle(e *entry[M]) {
	switch {
	case e.Pinned || e.ttl < 0:
	case e.ttl == 0:
		p.drain(e, "it was not to stay idle")
	default:
		e.expire(time.Now().Add(e.ttl), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if !e.expires.IsZero() && !time.Now().Before(e.expires) {
				p.drain(e, fmt.Sprintf("it was idle for %v", e.ttl))
			}
		})
	}
}

// expire calls f at that time.
func (e *entry[M]) expire(at time.Time, f func()) {
	e.stay()
	e.expires = at
	e.timer = time.AfterFunc(time.Until(at), f)
}

// stay cancels expire.
func (e *entry[M]) stay() {
	if e.timer != nil {
		e.timer.Stop()
	}
	e.timer, e.expires = nil, time.Time{}
}

// Unload unloads the model of that name after its holds are released, and returns then, or when ctx
// ends. It ends a load that has begun: callers that wait for it get [ErrUnloaded]. A load that waits
// for memory goes on waiting.
func (p *Pool[M]) Unload(ctx context.Context, name string) error {
	p.mu.Lock()
	e := p.names[name]
	if e == nil {
		defer p.mu.Unlock()
		return p.unknown(name)
	}
	gone := e.gone
	p.unload(e, ErrUnloaded)
	p.mu.Unlock()
	if gone == nil {
		return nil
	}
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// unload drains e if it is ready, or ends its load with err.
func (p *Pool[M]) unload(e *entry[M], err error) {
	switch e.state {
	case Ready:
		p.drain(e, "it was unloaded")
	case Loading:
		l := e.load
		l.cancel()
		e.load = nil
		p.serveAll(l, err)
		p.set(e, Draining, "it was unloaded")
	}
}

// withdraw unloads e, and ends the waiting for it with err.
func (p *Pool[M]) withdraw(e *entry[M], err error) {
	p.unload(e, err)
	if l := e.load; l != nil {
		p.drop(l)
		p.serveAll(l, err)
	}
}

// Close unloads all models, ends the waiting of callers with [ErrClosed], and returns when all
// memory is free: it waits until all holds are released. Its error joins those of closing models
// since New.
func (p *Pool[M]) Close() error {
	p.mu.Lock()
	p.closed = true
	for _, e := range slices.Clone(p.entries) {
		p.withdraw(e, ErrClosed)
	}
	p.schedule()
	var gone []chan struct{}
	for _, e := range p.entries {
		if e.gone != nil {
			gone = append(gone, e.gone)
		}
	}
	p.mu.Unlock()
	for _, c := range gone {
		<-c
	}
	p.work.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.failed...)
}

// guarded calls f and returns its error, or its panic as one.
func guarded(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}
	}()
	return f()
}

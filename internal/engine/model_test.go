package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
	"github.com/realizar/realizar/tensor"
)

// A reader is the model of the fake device without pages, steps or other
// sequences.
type reader struct {
	prompt, window int
	id             int32
	all, near      uint64
	terms          []uint64 // of near, by position
	out            uint64   // of the last position
	damaged        bool
}

// read goes on by one token.
func (m *reader) read(id int32) {
	pos := len(m.terms)
	x := hash(uint64(id), uint64(pos), uint64(max(m.prompt, pos+1)))
	m.all += hash(x, uint64(pos))
	x = hash(x, m.all)
	m.terms = append(m.terms, hash(x, uint64(pos)))
	if m.near += m.terms[pos]; pos >= m.window {
		m.near -= m.terms[pos-m.window]
	}
	m.id, m.out = id, hash(x, m.near)
	m.damaged = m.damaged || fails(m.out)
}

// differs says how r is not what o wants after what m has read, or nothing.
func (m *reader) differs(r engine.Result, o *engine.Output) string {
	want := engine.Result{Token: -1}
	if o.Want&plan.WantToken != 0 {
		token, p := choose(m.out, m.id, o)
		if want.Token = token; o.Want&plan.WantLogProbability != 0 {
			want.LogProbability = p
		}
	}
	if o.Want&plan.WantLogits != 0 {
		want.Logits = numbers(m.out, columns)
	}
	if o.Want&plan.WantHidden != 0 {
		want.Hidden = numbers(m.out, deep)
	}
	switch {
	case m.damaged:
		return "a result of a damaged sequence"
	case r.Token != want.Token:
		return "the token differs"
	case r.LogProbability != want.LogProbability:
		return "the log-probability differs"
	case !slices.Equal(r.Logits, want.Logits):
		return "the logits differ"
	case !slices.Equal(r.Hidden, want.Hidden):
		return "the hidden state differs"
	}
	return ""
}

// A trial is one engine and its clients, all from one seed.
type trial struct {
	seed    uint64
	pause   func(n int, hurry <-chan struct{}) // n nanoseconds, or until hurry
	broken  func(format string, a ...any)
	config  engine.Config
	window  int
	device  *fake
	engine  *engine.Engine
	closing atomic.Bool
	seen    *ends
}

// ends counts how calls ended, and the results that were compared.
type ends struct{ results, whole, damaged, lost, closed, cancelled atomic.Int64 }

// errEnough is what a client ends a call with.
var errEnough = errors.New("enough")

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// run is the whole trial.
func (r *trial) run() {
	rng := rand.New(rand.NewPCG(r.seed, 1))
	r.window = pick(rng, 1, 2, 20, 32, 33, 100, 300)
	r.config = engine.Config{Context: pick(rng, 1, 40, 64, 255, 257, 400, 700, 1024), Parallel: 1 + rng.IntN(8), Cache: tensor.F16}
	r.device = &fake{broken: r.broken, pause: r.pause, rng: rand.New(rand.NewPCG(r.seed, 2)), trouble: pick(rng, 0, 0, 300)}
	var err error
	r.engine, err = engine.New(context.Background(), program(r.window), r.device, r.config, nil)
	if err != nil {
		r.broken("%v", err)
		return
	}
	clients := r.config.Parallel + 1 + rng.IntN(25)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			defer r.named()
			r.client(int32(i + 1)).live()
		})
	}
	early := rng.IntN(4) == 0
	if early {
		n := rng.IntN(20e6)
		all.Go(func() {
			r.pause(n, nil)
			r.closing.Store(true)
			r.close()
		})
	}
	all.Wait()
	if !early {
		r.device.locked(func() { r.device.trouble = 0 })
		r.fill(int32(clients + 1))
		r.closing.Store(true)
		r.close()
	}
	if _, err := r.engine.NewSequence(context.Background(), 1); !errors.Is(err, engine.ErrClosed) {
		r.broken("after Close: %v", err)
	}
}

// named says in which trial a panic was.
func (r *trial) named() {
	if p := recover(); p != nil {
		panic(fmt.Sprintf("REALIZAR_ENGINE_SEED=%d: %v", r.seed, p))
	}
}

func (r *trial) close() {
	if err := r.engine.Close(); err != nil {
		r.broken("closing: %v", err)
	}
	select {
	case <-r.device.ended:
	default:
		r.broken("Close left the device running")
	}
}

// fill has as many sequences as there can be hold the whole context at one time,
// for which no page may be missing.
func (r *trial) fill(who int32) {
	var all, full sync.WaitGroup
	full.Add(r.config.Parallel)
	for i := range r.config.Parallel {
		all.Go(func() {
			defer r.named()
			c := r.client(who + int32(i))
			var ids []int32
			for m := (reader{damaged: true}); m.damaged; {
				ids = c.ids(r.config.Context)
				m = reader{prompt: len(ids), window: r.window}
				for _, id := range ids {
					m.read(id)
				}
			}
			if c.open(context.Background(), len(ids)) {
				c.append(context.Background(), ids, c.outputs(len(ids)))
				full.Done()
				full.Wait()
				c.close()
			} else {
				full.Done()
			}
		})
	}
	all.Wait()
}

// A client is one sequence and who uses it.
type client struct {
	*trial
	who  int32
	rng  *rand.Rand
	past reader
	s    *engine.Sequence
}

func (r *trial) client(who int32) *client {
	return &client{trial: r, who: who, rng: rand.New(rand.NewPCG(r.seed, 100+uint64(who)))}
}

func (c *client) open(ctx context.Context, prompt int) bool {
	s, err := c.engine.NewSequence(ctx, prompt)
	if err != nil {
		c.judge(ctx, err)
		return false
	}
	c.s, c.past = s, reader{prompt: prompt, window: c.window}
	c.device.enter(c.who, c.config.Parallel)
	return true
}

func (c *client) close() {
	c.device.leave(c.who, c.s.Close)
	if c.rng.IntN(4) == 0 {
		c.s.Close() // does nothing
	}
}

// length is up to about most, and often beside the end of a page or a chunk.
func (c *client) length(most int) int {
	n := 1 + c.rng.IntN(most)
	if c.rng.IntN(3) == 0 {
		n = (n+31)/32*32 + c.rng.IntN(3) - 1
	}
	return n
}

func (c *client) ids(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = c.who<<ownBits | c.rng.Int32N(1<<ownBits)
	}
	return ids
}

func (c *client) output() engine.Output {
	o := engine.Output{Want: plan.Want(c.rng.IntN(16)), Sampling: sample.Params{Seed: c.rng.Uint64(), Choice: c.rng.Uint32()}}
	if c.rng.IntN(3) == 0 {
		o.Mask = []uint32{c.rng.Uint32()}
	}
	return o
}

// outputs are of some of n tokens.
func (c *client) outputs(n int) []engine.Output {
	var all []engine.Output
	often := pick(c.rng, 1, 3, 20, 300)
	for i := range n {
		if c.rng.IntN(often) == 0 {
			o := c.output()
			o.Token = int32(i)
			all = append(all, o)
		}
	}
	return all
}

// leaving is a context that ends by itself now and then.
func (c *client) leaving() (context.Context, func()) {
	ctx, cancel := context.WithCancel(context.Background())
	if c.rng.IntN(6) > 0 {
		return ctx, cancel
	}
	n := c.rng.IntN(3e6)
	var left sync.WaitGroup
	left.Go(func() {
		c.pause(n, nil)
		cancel()
	})
	return ctx, left.Wait
}

// live is all that a client does.
func (c *client) live() {
	c.pause(c.rng.IntN(4e6), nil)
	ctx, done := c.leaving()
	defer done()
	n := min(c.length(700), c.config.Context)
	if !c.open(ctx, n) {
		return
	}
	defer c.close()
	for range 1 + c.rng.IntN(4) {
		held := len(c.past.terms)
		room := c.config.Context - held
		if c.rng.IntN(8) == 0 {
			c.tooMuch(room)
		}
		n = min(n, room)
		if n == 0 || !c.round(n, room-n+1) || c.past.damaged {
			return
		}
		n = c.length(40)
	}
}

// round appends n tokens or decodes up to most after them, and says whether the
// sequence can be used further.
func (c *client) round(n, most int) bool {
	ctx, done := c.leaving()
	defer done()
	if c.rng.IntN(4) == 0 {
		return c.append(ctx, c.ids(n), c.outputs(n))
	}
	tokens := 1 + c.rng.IntN(min(most, 90))
	if most < 200 && c.rng.IntN(3) == 0 {
		tokens = most
	}
	return c.decode(ctx, c.ids(n), tokens)
}

// tooMuch asks for one position more than there are.
func (c *client) tooMuch(room int) {
	yield := func(engine.Result) (bool, error) {
		c.broken("sequence %d: a result beyond the context", c.who)
		return false, nil
	}
	n := 1 + c.rng.IntN(room+1)
	if err := c.s.Decode(context.Background(), c.ids(n), room-n+2, c.output(), yield); err == nil {
		c.broken("sequence %d: the context was exceeded by decoding", c.who)
	}
	if err := c.s.Append(context.Background(), c.ids(room+1), nil, nil); err == nil {
		c.broken("sequence %d: the context was exceeded", c.who)
	}
}

func (c *client) append(ctx context.Context, ids []int32, outputs []engine.Output) bool {
	after := make([]reader, len(outputs))
	next := 0
	for i, id := range ids {
		c.past.read(id)
		if next < len(outputs) && int(outputs[next].Token) == i {
			after[next] = c.past
			next++
		}
	}
	enough := -1
	if c.rng.IntN(20) == 0 && len(outputs) > 0 && ctx != context.Background() {
		enough = c.rng.IntN(len(outputs))
	}
	next = 0
	err := c.s.Append(ctx, ids, outputs, func(r engine.Result) error {
		if c.rng.IntN(50) == 0 {
			c.pause(c.rng.IntN(200e3), nil)
		}
		if next >= len(outputs) || r.Index != int(outputs[next].Token) {
			c.broken("sequence %d: result %d of %d is of token %d", c.who, next, len(outputs), r.Index)
			return errEnough
		}
		c.seen.results.Add(1)
		if d := after[next].differs(r, &outputs[next]); d != "" {
			c.broken("sequence %d after %d tokens, appending: %s", c.who, len(after[next].terms), d)
		}
		if next++; next == enough+1 {
			return errEnough
		}
		return nil
	})
	c.scribble(ids, outputs)
	if err == nil && next < len(outputs) {
		c.broken("sequence %d: %d of %d results", c.who, next, len(outputs))
	}
	if errors.Is(err, errEnough) && next == enough+1 {
		return false
	}
	return c.judge(ctx, err) && err == nil
}

// decode goes on after ids for n tokens or fewer.
func (c *client) decode(ctx context.Context, ids []int32, n int) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	last := n
	how := "" // the client ends it early
	if c.rng.IntN(2) == 0 {
		last, how = 1+c.rng.IntN(n), pick(c.rng, "stop", "stop", "stop", "cancel", "error")
	}
	for _, id := range ids {
		c.past.read(id)
	}
	o := c.output()
	o.Token = c.rng.Int32N(7) // means nothing
	wanted := o
	wanted.Want |= plan.WantToken
	wanted.Mask = slices.Clone(o.Mask)
	slow := c.rng.IntN(5) == 0
	got := 0
	var token int32
	err := c.s.Decode(ctx, ids, n, o, func(r engine.Result) (bool, error) {
		if got > 0 {
			c.past.read(token)
		}
		c.seen.results.Add(1)
		if d := c.past.differs(r, &wanted); d != "" || r.Index != got || got == last {
			c.broken("sequence %d after %d tokens, decoding %d of %d as %d: %s", c.who, len(c.past.terms), got, last, r.Index, d)
			return false, errEnough
		}
		if slow {
			c.pause(c.rng.IntN(200e3), nil)
		}
		token = r.Token
		if got++; got < last {
			return true, nil
		}
		switch how {
		case "stop":
			return false, nil
		case "cancel":
			cancel()
		case "error":
			return true, errEnough
		}
		return true, nil
	})
	c.scribble(ids, []engine.Output{o})
	switch {
	case err == nil && got < last || err == nil && how == "error":
		c.broken("sequence %d: %d of %d tokens (%s) and no error", c.who, got, last, how)
	case errors.Is(err, errEnough) && how == "error" && got == last:
		return true
	case errors.Is(err, errDamaged) && got > 0:
		c.past.read(token)
	}
	return c.judge(ctx, err) && got > 0
}

// scribble over what a call was given: it is the caller's again.
func (c *client) scribble(ids []int32, outputs []engine.Output) {
	for i := range ids {
		ids[i] = -1
	}
	for _, o := range outputs {
		for i := range o.Mask {
			o.Mask[i] ^= 0x55555555
		}
	}
}

// judge says whether the sequence can be used after a call that ended with err,
// for which there must have been a reason.
func (c *client) judge(ctx context.Context, err error) bool {
	var reason, usable bool
	var count *atomic.Int64
	switch {
	case err == nil:
		reason, usable, count = !c.past.damaged, true, &c.seen.whole
	case errors.Is(err, errDamaged):
		reason, count = c.past.damaged, &c.seen.damaged
	case errors.Is(err, errLost), errors.Is(err, errRefused):
		reason, count = c.device.missed(c.who), &c.seen.lost
	case errors.Is(err, engine.ErrClosed):
		reason, count = c.closing.Load(), &c.seen.closed
	case errors.Is(err, errEnough):
		return false // the reason was told
	case errors.Is(err, context.Canceled):
		reason, usable, count = ctx.Err() != nil, true, &c.seen.cancelled
	}
	if !reason {
		c.broken("sequence %d ended with %v after %d tokens", c.who, err, len(c.past.terms))
		return false
	}
	count.Add(1)
	return usable
}

// trials runs one trial after the other until the device has been given as many
// steps as asked for. REALIZAR_ENGINE_STEPS asks for another number, and
// REALIZAR_ENGINE_SEED for the one trial of that seed.
func trials(t *testing.T, steps int, run func(r *trial)) {
	number := func(name string, other uint64) uint64 {
		if s := os.Getenv(name); s != "" {
			n, err := strconv.ParseUint(s, 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return n
		}
		return other
	}
	steps = int(number("REALIZAR_ENGINE_STEPS", uint64(steps)))
	first := number("REALIZAR_ENGINE_SEED", 0)
	if first > 0 {
		steps = 1
	}
	var errs atomic.Int64
	var seen ends
	var done, tokens int
	seed := max(1, first)
	for ; done < steps; seed++ {
		r := &trial{seed: seed, seen: &seen}
		r.broken = func(format string, a ...any) {
			if errs.Add(1) <= 5 {
				t.Errorf("REALIZAR_ENGINE_SEED=%d: "+format, append([]any{seed}, a...)...)
			}
		}
		func() {
			defer r.named()
			run(r)
		}()
		done, tokens = done+r.device.steps, tokens+r.device.tokens
		if errs.Load() > 0 {
			t.FailNow()
		}
	}
	t.Logf("seeds %d to %d: %d steps of %d tokens; %d results; calls: %d whole, %d damaged, %d lost, %d closed, %d cancelled", max(1, first), seed-1, done, tokens,
		seen.results.Load(), seen.whole.Load(), seen.damaged.Load(), seen.lost.Load(), seen.closed.Load(), seen.cancelled.Load())
}

// Whatever others do, each sequence's results are those of its tokens alone, and
// nothing is left of it when it ends. Time is that of the test, so that a seed's
// arrivals, ends and steps come in the same order each time.
func TestModel(t *testing.T) {
	steps := 100_000
	if testing.Short() {
		steps = 10_000
	}
	trials(t, steps, func(r *trial) {
		synctest.Test(t, func(*testing.T) {
			r.pause = func(n int, hurry <-chan struct{}) {
				select {
				case <-time.After(time.Duration(n)):
				case <-hurry:
				}
			}
			r.run()
		})
	})
}

// The same with the scheduler's own order of things, for the race detector.
func TestModelRaces(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	trials(t, 10_000, func(r *trial) {
		r.pause = func(n int, _ <-chan struct{}) {
			for range n >> 14 {
				runtime.Gosched()
			}
		}
		r.run()
	})
}

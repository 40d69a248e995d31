package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/plan"
	"github.com/realizar/realizar/internal/sample"
)

var (
	// errEnough is the error that a client ends a request with.
	errEnough = errors.New("enough")
	// errMask is the error of a client's mask function.
	errMask = errors.New("nothing is known of what may follow")
)

// A client sends several requests.
type client struct {
	*trial
	who  uint64
	rng  *rand.Rand
	last history // its own last question and answer

	within *client // the client whose results it is called in, or nil
}

func (r *trial) client(who uint64) *client {
	return &client{trial: r, who: who, rng: rand.New(rand.NewPCG(r.seed, 100+who))}
}

// live makes all requests of the client.
func (c *client) live() {
	together := c.rng.IntN(4) == 0 // with other requests
	if !together {
		c.pause(c.rng.IntN(4e6), nil)
	}
	salt := pick(c.rng, c.salts...)
	for range 1 + c.rng.IntN(4) {
		r := c.request(salt)
		if together {
			r.Prompt, r.Outputs = slices.Clone(c.burst), nil
			c.room(r)
			together = false
		}
		if c.rng.IntN(8) == 0 {
			c.tooMuch(*r)
		}
		if !c.ask(r) {
			return
		}
		c.pause(c.rng.IntN(200e3), nil)
	}
}

// fill asks for as many tokens as fit, so that no page may be missing.
func (c *client) fill() {
	for {
		r := &engine.Request{Prompt: ids(c.rng, c.config.Context), Tokens: 1, Salt: "the last"}
		if e := c.model.expect(r, nil); !e.damaged && e.answers[0].err == nil {
			c.ask(r)
			return
		}
	}
}

// length returns a length up to about most, often next to the end of a page or a chunk.
func (c *client) length(most int) int {
	n := 1 + c.rng.IntN(most)
	if c.rng.IntN(3) == 0 {
		n = (n+31)/32*32 + c.rng.IntN(3) - 1
	}
	return n
}

// prompt returns a new prompt, or one with a common beginning.
func (c *client) prompt(salt string) []int32 {
	var p []int32
	switch c.rng.IntN(6) {
	case 0:
	case 1: // an application's common beginning
		p = pick(c.rng, c.system...)
	case 2: // another request's prompt, from some position on
		c.mu.Lock()
		if len(c.past) > 0 {
			p = pick(c.rng, c.past...).tokens
			p = p[:c.rng.IntN(len(p)+1)]
		}
		c.mu.Unlock()
	case 3: // the same prompt again
		c.mu.Lock()
		if len(c.past) > 0 {
			h := pick(c.rng, c.past...)
			p = h.tokens[:h.prompt]
		}
		c.mu.Unlock()
		if len(p) > 0 {
			return slices.Clone(p)
		}
	default: // the conversation continues
		p = c.last.tokens
	}
	p = p[:min(len(p), c.config.Context-1)]
	n := 700
	if len(p) > 0 {
		n = 50
	}
	return slices.Concat(p, ids(c.rng, min(c.length(n), c.config.Context-len(p))))
}

// request returns a request of any kind.
func (c *client) request(salt string) *engine.Request {
	rng := c.rng
	r := &engine.Request{Prompt: c.prompt(salt), Salt: salt, Priority: pick(rng, 0, 0, 0, 1, -1)}
	r.Sampling = sample.Params{Seed: rng.Uint64(), Choice: uint32(rng.IntN(3)), Temperature: pick[float32](rng, 0, 0.7)}
	if rng.IntN(3) == 0 {
		r.Sampling.Repetition = pick[float32](rng, 0, 1, 1.2)
		r.Sampling.Frequency, r.Sampling.Presence = pick[float32](rng, 0, 0.5), pick[float32](rng, 0, -0.25)
	}
	if rng.IntN(4) == 0 {
		for id := range int32(vocab) {
			if rng.IntN(10) == 0 {
				r.Bias = append(r.Bias, sample.Adjustment{Token: id, Bias: pick(rng, 3, -2.5, float32(math.Inf(-1))), Count: rng.Int32N(3), Prompt: rng.IntN(2) == 0})
			}
		}
	}
	if rng.IntN(2) == 0 {
		r.Stop = ids(rng, 1+rng.IntN(4))
		r.MinTokens = pick(rng, 0, 0, 1, 5, 40)
	}
	if rng.IntN(5) == 0 {
		r.Want = plan.Want(rng.IntN(8) << 1)
	}
	if rng.IntN(3) == 0 {
		r.Choices = 1 + rng.IntN(4)
	}
	r.Trace = rng.IntN(4) == 0
	r.Ends = r.Trace || len(r.Stop) > 1 // this says nothing about what the client does
	if rng.IntN(3) == 0 {
		r.Allowed = pick(rng, c.allowed...)
	}
	c.room(r)
	often := pick(rng, 0, 0, 0, 1, 3, 20, 300)
	from := pick(rng, 0, rng.IntN(len(r.Prompt)), rng.IntN(len(r.Prompt))/32*32)
	for i := from; often > 0 && i < len(r.Prompt)-min(1, r.Tokens); i++ {
		if rng.IntN(often) == 0 {
			r.Outputs = append(r.Outputs, engine.Output{Token: int32(i), Want: pick(rng, plan.WantLogits, plan.WantHidden, plan.WantLogits|plan.WantHidden)})
		}
	}
	return r
}

// room makes r ask for tokens that fit into the context.
func (c *client) room(r *engine.Request) {
	most := c.config.Context - len(r.Prompt) + 1
	switch c.rng.IntN(8) {
	case 0:
		r.Tokens = 0
	case 1:
		if r.Tokens = most; most > 200 {
			r.Tokens = 200
		}
	default:
		r.Tokens = 1 + c.rng.IntN(min(most, 90))
	}
}

// tooMuch makes r ask for one position too many.
func (c *client) tooMuch(r engine.Request) {
	r.Tokens, r.Outputs = c.config.Context-len(r.Prompt)+2, nil
	_, err := c.engine.Run(context.Background(), &r, func(*engine.Result) (bool, error) {
		c.broken("client %d: a result beyond the context", c.who)
		return false, nil
	})
	if err == nil {
		c.broken("client %d: the context was exceeded", c.who)
	}
}

// leaving returns a context that sometimes ends by itself.
func (c *client) leaving() (context.Context, func()) {
	if c.rng.IntN(8) > 0 {
		return context.WithCancel(context.Background())
	}
	n := c.rng.IntN(3e6)
	if c.rng.IntN(3) == 0 {
		return context.WithTimeout(context.Background(), time.Duration(n))
	}
	ctx, cancel := context.WithCancel(context.Background())
	var left sync.WaitGroup
	left.Go(func() {
		c.pause(n, nil)
		cancel()
	})
	return ctx, func() { left.Wait(); cancel() }
}

// rule returns the tokens that a constraint allows, or nil.
func (c *client) rule() rule {
	if c.rng.IntN(4) > 0 {
		return nil
	}
	key, often, single := c.rng.Uint64(), pick[uint64](c.rng, 0, 0, 40), pick[uint64](c.rng, 0, 0, 2, 1)
	return func(choice, n int, last int32) (uint64, error) {
		h := hash(key, uint64(choice), uint64(n), uint64(last))
		if single > 0 && h>>20%4 >= single {
			return 1 << (h % vocab), nil
		}
		if often > 0 {
			switch h >> 40 % often {
			case 0:
				return 0, nil
			case 1:
				return 0, errMask
			}
		}
		return h | hash(h), nil
	}
}

// An asking is a request while it runs.
type asking struct {
	*client
	r       *engine.Request
	want    *expected
	rule    rule
	forces  bool
	outputs int   // given
	given   []int // tokens, by answer
	ended   []bool
	quit    []int // by answer: after how many tokens the client ends it; 0 for never
	enough  int   // results after which the request ends
	how     string
	cancel  context.CancelFunc
	slow    bool
	results int
	over    bool // no more results are wanted
}

// ask runs r and reports whether its answer can be continued.
func (c *client) ask(r *engine.Request) bool {
	a := &asking{client: c, r: r, rule: c.rule()}
	if a.rule != nil {
		a.forces = c.rng.IntN(2) == 0
		far := c.rng.IntN(3) > 0
		r.Constrain = func(choice int) engine.Constraint {
			m := &masked{f: a.mask, choice: choice, forces: a.forces}
			if far {
				return farMasked{m, a.ahead}
			}
			return m
		}
	}
	a.want = c.model.expect(r, a.rule)
	if c.wanted != nil {
		r.Drafts = pick(c.rng, 0, 0, 0, -1, 1, 5)
		c.mu.Lock()
		c.wanted[r] = a.want
		c.mu.Unlock()
	}
	a.given, a.quit, a.ended = make([]int, max(1, r.Choices)), make([]int, max(1, r.Choices)), make([]bool, max(1, r.Choices))
	if c.who < 1<<20 {
		a.slow = c.rng.IntN(5) == 0
		for i := range a.quit {
			if c.rng.IntN(5) == 0 {
				a.quit[i] = 1 + c.rng.IntN(max(1, r.Tokens))
			}
		}
		if c.rng.IntN(6) == 0 {
			a.enough, a.how = 1+c.rng.IntN(max(1, r.Tokens+len(r.Outputs))), pick(c.rng, "cancel", "error", "close the prompt")
		}
	}
	first := c.note(r.Salt, r.Prompt, a.want)
	ctx, done := c.leaving()
	if c.who >= 1<<20 {
		ctx = context.Background()
	}
	ctx, a.cancel = context.WithCancel(ctx)
	troubled := 0
	c.device.locked(func() { troubled = c.device.troubled })
	stats, err := c.engine.Run(ctx, r, a.yield)
	a.over = true
	c.statistics(r, &stats, c.shared(r, first))
	ok := a.judge(ctx, err, troubled)
	a.cancel()
	done()
	if ok && len(a.want.answers) > 0 {
		i := c.rng.IntN(len(a.want.answers))
		c.last = history{salt: r.Salt, tokens: slices.Concat(r.Prompt, a.want.answers[i].tokens[:a.given[i]])}
	}
	// r belongs to the client again.
	for _, x := range [][]int32{r.Prompt, r.Stop} {
		for i := range x {
			x[i] = -1
		}
	}
	clear(r.Outputs)
	clear(r.Bias)
	return ok
}

// statistics checks the Stats of r's results.
func (c *client) statistics(r *engine.Request, s *engine.Stats, shared int) {
	most := min(shared, len(r.Prompt)-1)
	if len(r.Outputs) > 0 && r.Choices <= 1 { // otherwise an answer without outputs may begin first
		most = min(most, int(r.Outputs[0].Token))
	}
	every := 32
	if c.model.hasSlots() {
		every = c.model.checkpoints()
	}
	if s.Cached > most || s.Cached%every != 0 || s.Queue < 0 || s.Preemptions < 0 {
		c.broken("client %d: %+v, and %d tokens of %d were asked for before", c.who, *s, most, len(r.Prompt))
	}
	c.mu.Lock()
	c.preempt += uint64(s.Preemptions)
	c.mu.Unlock()
	c.seen.preemptions.Add(int64(s.Preemptions))
	if s.Cached > 0 {
		c.seen.hits.Add(1)
		if c.model.hasSlots() {
			c.seen.checkpoints.Add(1)
		}
	}
	if s.Queue > 0 {
		c.seen.waits.Add(1)
	}
}

// mask is the request's function.
func (a *asking) mask(choice int, chosen []int32, mask []uint32) error {
	if len(mask) != 2 || mask[0]|mask[1] != 0 {
		a.broken("client %d: a mask of %x is asked for", a.who, mask)
		return errMask
	}
	if a.want.damaged {
		if len(chosen) > 0 {
			a.broken("client %d: tokens were chosen after a damaged prompt", a.who)
		}
		mask[0] = 1
		return nil
	}
	want := a.want.answers[choice].tokens
	if len(chosen) > len(want) || !slices.Equal(chosen, want[:len(chosen)]) {
		if len(chosen) > len(want) && slices.Equal(chosen[:len(want)], want) {
			mask[0] = 3 // forced tokens go beyond the answer's end
			return nil
		}
		a.broken("client %d: a mask is asked for after %d, answer %d is %d", a.who, chosen, choice, want)
		return errMask
	}
	last := int32(-1)
	if len(chosen) > 0 {
		last = chosen[len(chosen)-1]
	}
	open, err := a.rule(choice, len(chosen), last)
	mask[0], mask[1] = uint32(open), uint32(open>>32)
	return err
}

// yield checks every result. Forced tokens count as if they were sampled one by one.
func (a *asking) yield(got *engine.Result) (bool, error) {
	for i, id := range got.Forced {
		one := *got
		one.Forced, one.Token, one.Final, one.Stopped, one.Index = nil, id, false, false, got.Index+i
		a.seen.forced.Add(1)
		if more, err := a.one(&one); !more || err != nil {
			return more, err
		}
	}
	last := *got
	last.Index += len(got.Forced)
	last.Forced = nil
	return a.one(&last)
}

// one checks a token, or an output of the prompt.
func (a *asking) one(got *engine.Result) (bool, error) {
	a.seen.results.Add(1)
	if got.Choice < 0 || got.Choice >= len(a.given) || a.over || a.want.damaged && got.Chosen || a.ended[got.Choice] && got.Chosen {
		a.broken("client %d: a result of answer %d, of %d; over: %v", a.who, got.Choice, len(a.given), a.over)
		return false, errEnough
	}
	n := &a.outputs
	if got.Chosen {
		n = &a.given[got.Choice]
		if w := &a.want.answers[got.Choice]; a.forces && *n == len(w.tokens) && errors.Is(w.err, errDamaged) {
			a.ended[got.Choice] = got.Final
			return true, nil // forced tokens need not have run
		}
	}
	if d := a.want.differs(a.r, got, *n); d != "" {
		a.broken("client %d: after %d tokens of a prompt of %d, answer %d, %d tokens: %s: %+v", a.who, a.given, len(a.r.Prompt), got.Choice, *n, d, *got)
		return false, errEnough
	}
	if d := a.misattributed(got); d != "" {
		a.broken("client %d: token %d of answer %d: %s", a.who, got.Index, got.Choice, d)
	}
	*n++
	if got.Final && got.Stopped {
		a.seen.stops.Add(1)
	}
	if a.slow || a.rng.IntN(100) == 0 {
		a.pause(a.rng.IntN(200e3), nil)
	}
	if a.within == nil && a.who < 1<<20 && a.rng.IntN(300) == 0 {
		// Make another request first.
		other := &client{trial: a.trial, who: a.who, rng: a.rng, within: a.client, last: a.last}
		other.ask(other.request(a.r.Salt))
	}
	if a.results++; a.results == a.enough {
		switch {
		case a.how == "cancel":
			a.cancel()
			return true, nil
		case a.how == "error":
			return true, errEnough
		case !got.Chosen:
			for i := range a.ended {
				a.ended[i] = true
			}
			a.over = true
			return false, nil
		}
	}
	if got.Chosen {
		a.ended[got.Choice] = got.Final || *n == a.quit[got.Choice]
		return *n != a.quit[got.Choice], nil
	}
	return true, nil
}

// misattributed describes how a result's times by layer differ from those of its steps, as far as
// the sum determines one step.
func (a *asking) misattributed(got *engine.Result) string {
	if wanted := a.r.Trace && got.Chosen; (got.Trace != nil) != wanted {
		return fmt.Sprintf("%+v; wanted: %v", got.Trace, wanted)
	} else if !wanted {
		return ""
	}
	times := got.Trace.Layers
	if len(times) != len(a.model.windows)+1 || times[0] < 1 {
		return fmt.Sprintf("times %v of %d layers", times, len(a.model.windows))
	}
	for i, d := range times[1:] {
		if d != times[1]*time.Duration(i+1) {
			return fmt.Sprintf("times %v, of unlike steps", times)
		}
	}
	if times[0] > 1 {
		if got.Index > 0 && got.Stats.Preemptions == 0 {
			return fmt.Sprintf("times %v of several steps", times)
		}
		return ""
	}
	var rows []fakeRow
	a.device.locked(func() { rows = a.device.rowsOf[int64(times[1])] })
	if want := (fakeRow{len(a.r.Prompt) + got.Index - 1, got.Token}); !slices.Contains(rows, want) {
		return fmt.Sprintf("times %v of a step that chose %v, not %v", times, rows, want)
	}
	a.seen.traced.Add(1)
	return ""
}

// judge checks whether a request that ended with err had a reason to.
func (a *asking) judge(ctx context.Context, err error, troubled int) bool {
	c := a.client
	for i := range a.given { // the answers that ended by themselves
		if len(a.want.answers) > 0 && a.want.answers[i].err == nil && a.given[i] == len(a.want.answers[i].tokens) {
			a.ended[i] = true
		}
	}
	// fails reports whether an answer that the client did not end fails with an error after all its
	// tokens.
	fails := func(err error) bool {
		for i := range a.want.answers {
			w := &a.want.answers[i]
			if !a.ended[i] && errors.Is(w.err, err) && a.given[i] == len(w.tokens) {
				return true
			}
		}
		return false
	}
	var reason, usable bool
	var count *atomic.Int64
	switch {
	case err == nil:
		reason, usable, count = !a.want.damaged && !slices.Contains(a.ended, false) || a.r.Tokens == 0 && !a.want.damaged, true, &c.seen.whole
		if early := a.how == "close the prompt" && a.results >= a.enough; early && a.outputs > 0 {
			reason, count = true, &c.seen.left
		} else if a.outputs != len(a.r.Outputs) && a.results > 0 && slices.Max(a.quit) == 0 {
			reason = false
		}
		if count == &c.seen.whole && slices.ContainsFunc(a.quit, func(n int) bool { return n > 0 }) {
			count = &c.seen.left
		}
	case errors.Is(err, errDamaged):
		reason, count = a.want.damaged || fails(errDamaged), &c.seen.damaged
	case errors.Is(err, sample.ErrEmptyMask), errors.Is(err, sample.ErrNotFinite):
		reason, count = fails(sample.ErrEmptyMask), &c.seen.nothing
	case errors.Is(err, errMask):
		reason, count = fails(errMask), &c.seen.refused
	case errors.Is(err, errLost), errors.Is(err, errRefused):
		c.device.locked(func() { reason = c.device.troubled > troubled })
		c.mu.Lock()
		c.lost++
		c.mu.Unlock()
		usable, count = true, &c.seen.lost
	case errors.Is(err, engine.ErrClosed):
		reason, count = c.closing.Load(), &c.seen.closed
	case errors.Is(err, errEnough):
		reason, usable, count = a.how == "error" && a.results == a.enough, true, &c.seen.left
	case errors.Is(err, context.DeadlineExceeded):
		reason, usable, count = ctx.Err() != nil, true, &c.seen.late
	case errors.Is(err, context.Canceled):
		reason, usable, count = ctx.Err() != nil, true, &c.seen.cancelled
	}
	if !reason {
		c.broken("client %s: a request for %d tokens after %d ended with %v after %d tokens (%v ended) and %d outputs of %d", strconv.FormatUint(c.who, 10),
			a.r.Tokens, len(a.r.Prompt), err, a.given, a.ended, a.outputs, len(a.r.Outputs))
		return false
	}
	count.Add(1)
	return usable
}

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
	"github.com/realizar/realizar/internal/longtest"
	"github.com/realizar/realizar/tensor"
)

// A trial is one engine and its clients, all derived from one seed.
type trial struct {
	seed    uint64
	pause   func(n int, hurry <-chan struct{}) // waits n nanoseconds, or until hurry
	broken  func(format string, a ...any)
	config  engine.Config
	model   *hashModel
	device  *fake
	engine  *engine.Engine
	closing atomic.Bool
	seen    *ends
	index   *cacheIndex

	salts  []string
	system [][]int32 // common beginnings of prompts
	burst  []int32   // a prompt that several clients send at the same time

	allowed []*engine.Mask // of many requests

	right float64 // probability that a drafted token is right

	mu          sync.Mutex
	wanted      map[*engine.Request]*expected
	foretellers uint64
	past        []history // earlier requests
	lost        int       // requests that failed with a lost step
	preempt     uint64    // as reported by requests
}

// A history is the tokens of an answer, and what they are cached under.
type history struct {
	salt   string
	class  int
	tokens []int32
	prompt int
	first  int // number of its request's first answer
}

// ends counts how requests ended.
type ends struct {
	results, whole, damaged, nothing, refused, lost, closed, cancelled, left atomic.Int64
	forced                                                                   atomic.Int64

	drafts, accepted, wrong                                                     atomic.Int64
	hits, checkpoints, preemptions, saves, restores, waits, stops, late, traced atomic.Int64
}

func pick[T any](rng *rand.Rand, of ...T) T { return of[rng.IntN(len(of))] }

// ids returns n tokens.
func ids(rng *rand.Rand, n int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = rng.Int32N(vocab)
	}
	return x
}

// prepare chooses what all clients share.
func (r *trial) prepare() bool {
	rng := rand.New(rand.NewPCG(r.seed, 1))
	w := pick(rng, 1, 2, 20, 32, 33, 100, 300)
	r.model = &hashModel{windows: pick(rng, []int{0}, []int{0, w}, []int{0, w}, []int{w}, []int{w, 0, 40})}
	if own := rand.New(rand.NewPCG(r.seed, 4)); own.IntN(3) == 0 {
		r.model.windows = pick(own, []int{recurrent}, []int{0, recurrent}, []int{recurrent, w}, []int{w, recurrent, 0})
	}
	if own := rand.New(rand.NewPCG(r.seed, 6)); own.IntN(2) == 0 {
		r.model.windows = pick(own, []int{delta}, []int{delta, 0}, []int{recurrent, delta}, []int{recurrent, delta, 0}, []int{recurrent, delta, 0},
			[]int{delta, w, recurrent, 0}, []int{chunked(w)}, []int{chunked(64), 0}, []int{0, chunked(100), recurrent, delta}, []int{recurrent, delta, recurrent, delta})
		r.model.every, r.model.numbers = pick(own, 0, 0, 0, 1, 32, 48, 128), pick(own, 0, 1, 7, 70, 600)
	}
	r.config = engine.Config{Context: pick(rng, 1, 40, 64, 255, 257, 400, 700, 1024), Parallel: 1 + rng.IntN(8), Cache: tensor.F32}
	own := rand.New(rand.NewPCG(r.seed, 5)) // the number of prompt tokens in a step changes no result
	r.config.Chunk = pick(own, 0, 0, 5, 40, 256, 300, 1000, 3000)
	r.config.Gap = pick(own, 0, 0, 1, time.Microsecond, 100*time.Microsecond, time.Hour)
	if own := rand.New(rand.NewPCG(r.seed, 7)); own.IntN(3) > 0 {
		r.wanted = map[*engine.Request]*expected{}
		r.config.Drafts = engine.Drafts{New: r.propose, Tokens: pick(own, 0, 0, 1, 3, 16), Always: own.IntN(2) == 0}
		if own.IntN(2) == 0 {
			r.config.Drafts.Prepare = prepare
		}
		r.right = pick(own, 0, 0.5, 0.9, 0.98, 1)
		if slices.Min(r.model.windows) >= 0 && own.IntN(2) == 0 {
			r.model.head, r.config.Drafts.Head, r.config.Drafts.New, r.config.Drafts.Prepare = true, true, nil, nil
		}
	}
	if rng.IntN(3) == 0 {
		r.model.longFrom, r.model.dynamic = 1+rng.IntN(r.config.Context), rng.IntN(3) == 0
	}
	p := r.model.program()
	r.device = &fake{model: r.model, broken: r.broken, pause: r.pause, rng: rand.New(rand.NewPCG(r.seed, 2)), trouble: pick(rng, 0, 0, 300, 30)}
	whole, err := r.config.Memory(p, r.device)
	if err != nil {
		r.broken("%v", err)
		return false
	}
	least := r.config
	least.States = 1
	one, err := least.Memory(p, r.device)
	if err != nil || one.States > whole.States {
		r.broken("one sequence takes %d bytes (%v), all take %d", one.States, err, whole.States)
		return false
	}
	r.config.States = pick(rng, 0, 1, 1, one.States+one.States/3, 1+rng.IntN(whole.States))
	r.config.Host = pick(rng, 0, 100, whole.States/8, 3*whole.States)
	r.device.room, r.device.right = r.config.Host, r.right
	m, err := r.config.Memory(p, r.device)
	if most := max(one.States, r.config.States); err != nil || r.config.States > 0 && m.States > most {
		r.broken("states take %d bytes (%v), want %d at most", m.States, err, most)
		return false
	}
	r.salts = pick(rng, []string{""}, []string{"", "a", "b"})
	for range 2 {
		r.system = append(r.system, ids(rng, 1+rng.IntN(300)))
	}
	r.burst = ids(rng, min(r.config.Context, 1+rng.IntN(400)))
	for range pick(rng, 1, 3, 40) {
		r.allowed = append(r.allowed, &engine.Mask{Words: []uint32{rng.Uint32(), rng.Uint32()}})
	}
	if rng.IntN(4) == 0 {
		r.allowed = append(r.allowed, &engine.Mask{Words: make([]uint32, 2)})
	}
	r.index = &cacheIndex{pages: map[cachedPage]bool{}}
	r.config.Events = r.index.apply
	if r.engine, err = engine.New(context.Background(), p, r.device, r.config, nil); err != nil {
		r.broken("%v", err)
		return false
	}
	r.device.busy.Lock()
	r.device.verify = func() error {
		if err := r.engine.Check(); err != nil {
			return err
		}
		return r.index.equals(r.engine)
	}
	r.device.busy.Unlock()
	return true
}

// run runs the trial.
func (r *trial) run() {
	if !r.prepare() {
		return
	}
	rng := rand.New(rand.NewPCG(r.seed, 3))
	clients := r.config.Parallel + 1 + rng.IntN(25)
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			defer r.named()
			r.client(uint64(i)).live()
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
		r.client(1 << 20).fill()
		r.rest()
		r.closing.Store(true)
		r.close()
	}
	if _, err := r.engine.Run(context.Background(), &engine.Request{Prompt: []int32{1}}, nil); !errors.Is(err, engine.ErrClosed) {
		r.broken("after Close: %v", err)
	}
}

// named adds the trial to a panic.
func (r *trial) named() {
	if p := recover(); p != nil {
		panic(fmt.Sprintf("REALIZAR_ENGINE_SEED=%d: %v", r.seed, p))
	}
}

// rest checks the engine while there are no requests.
func (r *trial) rest() {
	if err := r.device.verify(); err != nil {
		r.broken("at rest: %v", err)
	}
	m := r.engine.Metrics()
	if m.Running != 0 || m.Waiting != 0 {
		r.broken("at rest, %d are running and %d waiting", m.Running, m.Waiting)
	}
	for g, group := range m.Groups {
		if group.Used != 0 {
			r.broken("group %d: at rest, %d of %d pages are used", g, group.Used, group.Pages)
		}
	}
	if m.AcceptedTokens > m.DraftedTokens || m.Drafts > m.DraftedTokens || r.config.Drafts.New == nil && !r.config.Drafts.Head && m.Drafts > 0 {
		r.broken("%d drafts of %d tokens, %d of them right", m.Drafts, m.DraftedTokens, m.AcceptedTokens)
	}
	r.seen.drafts.Add(int64(m.Drafts))
	r.seen.accepted.Add(int64(m.AcceptedTokens))
	r.seen.wrong.Add(int64(m.DraftedTokens - m.AcceptedTokens))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.device.locked(func() {
		if m.Steps != uint64(r.device.steps-r.device.heads) || m.Preemptions != r.preempt || m.Saves < uint64(r.device.saves) || m.Restores < uint64(r.device.restores) {
			r.broken("%d steps, %d preemptions, %d saves, %d restores are counted, there were %d, %d, %d, %d",
				m.Steps, m.Preemptions, m.Saves, m.Restores, r.device.steps-r.device.heads, r.preempt, r.device.saves, r.device.restores)
		}
		if r.lost > r.device.troubled {
			r.broken("%d requests ended since a step was lost, in which %d sequences were", r.lost, r.device.troubled)
		}
		r.seen.saves.Add(int64(r.device.saves))
		r.seen.restores.Add(int64(r.device.restores))
	})
}

func (r *trial) close() {
	if err := r.engine.Close(); err != nil {
		r.broken("closing: %v", err)
	}
	if n := len(r.index.pages); n > 0 || r.index.err != nil {
		r.broken("after Close, events leave %d pages (%v)", n, r.index.err)
	}
	select {
	case <-r.device.ended:
	default:
		r.broken("Close left the device running")
	}
	r.device.locked(func() {
		if r.device.left > 0 {
			r.broken("Close left %d bytes of the host's memory", r.device.left)
		}
	})
}

// note records a request, and returns the number of its first answer.
func (r *trial) note(salt string, prompt []int32, e *expected) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := len(r.past)
	own := history{salt: salt, class: r.model.class(len(prompt)), tokens: slices.Clone(prompt), prompt: len(prompt), first: first}
	r.past = append(r.past, own)
	for i := range e.answers {
		own.tokens = slices.Concat(prompt, e.answers[i].tokens)
		r.past = append(r.past, own)
	}
	return first
}

// shared returns the longest common beginning of a prompt with earlier requests. first is the
// number of its own first answer.
func (r *trial) shared(q *engine.Request, first int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	most := 0
	for _, h := range r.past {
		if h.salt == q.Salt && h.class == r.model.class(len(q.Prompt)) && h.first != first {
			n := 0
			for n < min(len(q.Prompt), len(h.tokens)) && q.Prompt[n] == h.tokens[n] {
				n++
			}
			most = max(most, n)
		}
	}
	return most
}

// trials runs trials until the device has run as many steps as asked for. REALIZAR_ENGINE_STEPS
// sets another number; REALIZAR_ENGINE_SEED selects the one trial of that seed.
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
		done, tokens = done+max(1, r.device.steps), tokens+r.device.tokens
		if errs.Load() > 0 {
			t.FailNow()
		}
	}
	t.Logf("seeds %d to %d: %d steps of %d tokens; %d results", max(1, first), seed-1, done, tokens, seen.results.Load())
	var points []string
	for _, c := range []struct {
		what string
		n    *atomic.Int64
	}{
		{"whole", &seen.whole}, {"damaged", &seen.damaged}, {"with nothing allowed", &seen.nothing}, {"refused by masks", &seen.refused}, {"lost", &seen.lost},
		{"closed", &seen.closed}, {"cancelled", &seen.cancelled}, {"too late", &seen.late}, {"left", &seen.left}, {"answers stopped", &seen.stops},
		{"prefix hits", &seen.hits}, {"checkpoint hits", &seen.checkpoints}, {"preemptions", &seen.preemptions}, {"saves", &seen.saves}, {"restores", &seen.restores}, {"waits", &seen.waits}, {"traced tokens", &seen.traced},
		{"drafts", &seen.drafts}, {"right drafted tokens", &seen.accepted}, {"wrong ones", &seen.wrong},
	} {
		points = append(points, fmt.Sprintf("%d %s", c.n.Load(), c.what))
		if first == 0 && steps >= 10_000 && c.n.Load() == 0 {
			t.Errorf("%s: there was none, so that nothing is known of them", c.what)
		}
	}
	t.Log(points)
}

// Whatever other requests do, the answers to a request depend on its tokens alone, and nothing
// remains when it ends. The test's bubble has its own clock, so a seed's arrivals, ends and steps
// come in the same order each time.
func TestModel(t *testing.T) {
	trials(t, longtest.Cases(100_000, 10_000), func(r *trial) {
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

// The same in real time, for the race detector.
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

package pool_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/pool"
)

// schedules is how many random ones there are: REALIZAR_POOL_SCHEDULES, or some.
func schedules(t *testing.T) uint64 {
	text := os.Getenv("REALIZAR_POOL_SCHEDULES")
	if text == "" {
		return 300
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestRandom: whatever clients, times and faults there are, memory stays within the limits, no
// model is there twice or closed while it is held, and everyone gets a model or an error that
// says why not. The loader and its models look at the first two; when the bubble ends no
// goroutine is left.
func TestRandom(t *testing.T) {
	for seed := range schedules(t) {
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { randomSchedule(t, seed) })
		}) {
			return
		}
	}
}

// A dice is a source of random numbers that goroutines share.
type dice struct {
	mu sync.Mutex
	r  *rand.Rand
}

func (d *dice) n(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.r.IntN(n)
}

// time is a random time, most of them short, up to most.
func (d *dice) time(most time.Duration) time.Duration {
	return most >> d.n(12) * time.Duration(d.n(8)) / 8
}

func randomSchedule(t *testing.T, seed uint64) {
	d := &dice{r: rand.New(rand.NewPCG(seed, 27))}
	limits := pool.Need{"cpu": int64(4 + d.n(12))}
	if d.n(2) == 0 {
		limits["gpu"] = int64(4 + d.n(12))
	}
	needs := map[string]pool.Need{}
	l := newLoader(t, limits, needs)
	l.loading = func(string) time.Duration { return d.time(10 * time.Second) }
	l.closing = d.time(time.Second)
	if d.n(2) == 0 {
		l.fail = func(string) error {
			switch d.n(6) {
			case 0:
				return errDamaged
			case 1:
				return errPanic
			}
			return nil
		}
		l.unknown = func(string) error {
			if d.n(10) == 0 {
				return errDamaged
			}
			return nil
		}
	}
	c := pool.Config[*model]{Loader: l, Limits: limits, Stay: d.time(20 * time.Second), MaxWaiting: 1 + d.n(16)}
	if d.n(2) == 0 {
		c.MaxWait = d.time(time.Minute) + 1
	}
	var names []string
	for i := range 2 + d.n(5) {
		name := fmt.Sprint("m", i)
		names = append(names, name)
		needs[name] = pool.Need{}
		for device, limit := range limits {
			if d.n(3) > 0 {
				needs[name][device] = int64(d.n(int(limit) + 2)) // one too many, now and then
			}
		}
		c.Models = append(c.Models, pool.Spec{Name: name, TTL: d.time(time.Minute), Pinned: d.n(8) == 0})
	}
	p, err := pool.New(c)
	if err != nil {
		t.Fatal(err)
	}
	sets := d.n(2) == 0
	var all sync.WaitGroup
	for range 1 + d.n(12) {
		all.Go(func() {
			for range 1 + d.n(8) {
				time.Sleep(d.time(20 * time.Second))
				client(t, p, d, names[d.n(len(names))], sets)
			}
		})
	}
	stop := make(chan struct{})
	var manager sync.WaitGroup
	manager.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(d.time(30*time.Second) + time.Millisecond):
			}
			if sets && d.n(3) == 0 {
				setRandom(t, p, d, c)
			}
			ctx, cancel := context.WithTimeout(t.Context(), d.time(30*time.Second))
			if name := names[d.n(len(names))]; d.n(2) == 0 {
				_ = p.Unload(ctx, name)
			} else {
				_ = p.Load(ctx, name)
			}
			cancel()
			p.Models()
			if h, ok := p.Look(names[d.n(len(names))]); ok {
				h.Model.users.Add(1)
				time.Sleep(d.time(time.Second))
				h.Model.users.Add(-1)
				h.Release()
			}
		}
	})
	if d.n(4) > 0 {
		all.Wait()
	} else {
		time.Sleep(d.time(time.Minute)) // it is closed while clients are at work
	}
	close(stop)
	(&bench{t, l, p}).close()
	all.Wait()
	manager.Wait()
	for _, s := range p.Models() {
		if s.Holds != 0 || s.Waiting != 0 || s.Need != nil || s.State != pool.Absent && s.State != pool.Failed {
			t.Errorf("at the end: %+v", s)
		}
	}
}

// setRandom removes some of c's models from the list of p and changes others.
func setRandom(t *testing.T, p *pool.Pool[*model], d *dice, c pool.Config[*model]) {
	models := slices.Clone(c.Models)
	for len(models) > 1 && d.n(2) == 0 {
		at := d.n(len(models))
		models = slices.Delete(models, at, at+1)
	}
	for i := range models {
		models[i].Version = fmt.Sprint(d.n(3))
		if d.n(4) == 0 {
			models[i].TTL, models[i].Pinned = d.time(time.Minute), d.n(4) == 0
		}
	}
	if err := p.Set(models, c.Loader); err != nil && !errors.Is(err, pool.ErrClosed) {
		t.Error(err)
	}
}

// client has a model for a while, or is told why not. The list of models changes if sets is true.
func client(t *testing.T, p *pool.Pool[*model], d *dice, name string, sets bool) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if d.n(3) == 0 {
		ctx, cancel = context.WithTimeout(t.Context(), d.time(30*time.Second))
		defer cancel()
	}
	h, err := p.Acquire(ctx, name)
	var (
		memory  *pool.MemoryError
		queue   *pool.QueueError
		load    *pool.LoadError
		unknown *pool.UnknownError
	)
	switch {
	case err == nil:
	case sets && errors.As(err, &unknown):
		return
	case errors.As(err, &memory):
		if memory.Model != name || memory.Forever() && memory.Needs <= memory.Limit-memory.Pinned {
			t.Errorf("%+v", memory)
		}
		return
	case errors.As(err, &queue), errors.As(err, &load), errors.Is(err, pool.ErrClosed), errors.Is(err, pool.ErrUnloaded), errors.Is(err, ctx.Err()):
		return
	default:
		t.Error(err)
		return
	}
	if h.Name != name || h.Model.name != name || h.Model.closed.Load() {
		t.Errorf("%s is %s, closed: %v", name, h.Model.name, h.Model.closed.Load())
	}
	h.Model.users.Add(1)
	time.Sleep(d.time(10 * time.Second))
	if d.n(4) == 0 {
		h.KeepAlive(d.time(time.Minute) - time.Second)
	}
	h.Model.users.Add(-1)
	h.Release()
	if d.n(4) == 0 {
		h.Release()
	}
}

// TestFair: of five models in the memory of two, which all clients want all the time, each
// client gets what it asks for within a turn of each of the models.
func TestFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const answer, load = 3 * time.Second, time.Second
		b := newBench(t, 4, map[string]int64{"a": 2, "b": 2, "c": 2, "d": 2, "e": 2}, func(c *pool.Config[*model], l *loader) {
			c.Stay = 5 * time.Second
		})
		d := &dice{r: rand.New(rand.NewPCG(1, 2))}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		var all sync.WaitGroup
		var longest time.Duration
		var answers [5]int
		var mu sync.Mutex
		for range 32 {
			all.Go(func() {
				for ctx.Err() == nil {
					i, begun := d.n(5), time.Now()
					h := b.get(string(rune('a' + i)))
					mu.Lock()
					longest = max(longest, time.Since(begun))
					answers[i]++
					mu.Unlock()
					time.Sleep(d.time(answer))
					h.Release()
				}
			})
		}
		all.Wait()
		turn := 5*time.Second + answer + load + 10*time.Millisecond
		if longest > 5*turn {
			t.Errorf("somebody waited for %v; a turn is %v", longest, turn)
		}
		t.Logf("answers %v, %d loads, the longest wait %v", answers, len(b.begun), longest)
		b.close()
	})
}

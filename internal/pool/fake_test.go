package pool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/pool"
)

// A model is one of a fake loader.
type model struct {
	name   string
	loader *loader
	need   pool.Need
	users  atomic.Int32 // who hold it, as they see it
	closed atomic.Bool
}

// Close takes its time, and looks whether somebody still has it.
func (m *model) Close() error {
	if n := m.users.Load(); n != 0 {
		m.loader.t.Errorf("%s is closed while %d hold it", m.name, n)
	}
	if m.closed.Swap(true) {
		m.loader.t.Errorf("%s is closed again", m.name)
	}
	time.Sleep(m.loader.closing)
	m.loader.mu.Lock()
	defer m.loader.mu.Unlock()
	m.loader.take(m.need, -1)
	m.loader.there[m.name]--
	if m.loader.stuck {
		return errStuck
	}
	return nil
}

var (
	errDamaged = errors.New("tensor blk.0.ffn_up ends beyond the file")
	errStuck   = errors.New("the device is stuck")
)

// A loader is a fake one, with memory of its own to compare with.
type loader struct {
	t       *testing.T
	needs   map[string]pool.Need
	limits  pool.Need
	loading func(name string) time.Duration
	closing time.Duration
	fail    func(name string) error // of loads; nil: none fails
	unknown func(name string) error // of estimates; nil: none fails
	stuck   bool                    // closing fails

	mu    sync.Mutex
	used  pool.Need
	there map[string]int // models, with those that are being loaded
	begun []string       // loads
}

func newLoader(t *testing.T, limits pool.Need, needs map[string]pool.Need) *loader {
	return &loader{t: t, needs: needs, limits: limits, loading: func(string) time.Duration { return time.Second }, closing: time.Millisecond, used: pool.Need{}, there: map[string]int{}}
}

func (l *loader) Estimate(_ context.Context, name string) (pool.Need, error) {
	time.Sleep(time.Millisecond)
	if l.unknown != nil {
		if err := l.unknown(name); err != nil {
			return nil, err
		}
	}
	return maps.Clone(l.needs[name]), nil
}

// take takes memory, with mu held.
func (l *loader) take(need pool.Need, sign int64) {
	for device, n := range need {
		l.used[device] += sign * n
		if l.used[device] > l.limits[device] || l.used[device] < 0 {
			l.t.Errorf("%d bytes of %s are taken, and %d may be", l.used[device], device, l.limits[device])
		}
	}
}

func (l *loader) Load(ctx context.Context, name string, need pool.Need) (*model, error) {
	m := &model{name: name, loader: l, need: need}
	l.mu.Lock()
	l.begun = append(l.begun, name)
	if l.there[name]++; l.there[name] != 1 {
		l.t.Errorf("%s is there %d times", name, l.there[name])
	}
	l.take(need, 1)
	l.mu.Unlock()
	var err error
	defer func() {
		if err != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.take(need, -1)
			l.there[name]--
		}
	}()
	select {
	case <-time.After(l.loading(name)):
	case <-ctx.Done():
		err = context.Cause(ctx)
		return nil, err
	}
	if l.fail != nil {
		err = l.fail(name)
	}
	if errors.Is(err, errPanic) {
		panic(err)
	}
	return m, err
}

var errPanic = errors.New("index out of range")

// gigabytes are needs of the only device, "cpu".
func gigabytes(of map[string]int64) map[string]pool.Need {
	needs := map[string]pool.Need{}
	for name, n := range of {
		needs[name] = pool.Need{"cpu": n << 30}
	}
	return needs
}

// A bench is a pool with a loader, for tests in a bubble.
type bench struct {
	*testing.T
	*loader
	pool *pool.Pool[*model]
}

// newBench has models of so many GiB in limit, named by letters, that stay a second when they
// are in use.
func newBench(t *testing.T, limit int64, of map[string]int64, change func(*pool.Config[*model], *loader)) *bench {
	t.Helper()
	limits := pool.Need{"cpu": limit << 30}
	l := newLoader(t, limits, gigabytes(of))
	c := pool.Config[*model]{Loader: l, Limits: limits, Stay: time.Second, MaxWaiting: 100}
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if _, ok := of[name]; ok {
			c.Models = append(c.Models, pool.Spec{Name: name, Aliases: []string{name + name}})
		}
	}
	if change != nil {
		change(&c, l)
	}
	p, err := pool.New(c)
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, l, p}
}

// get is a hold of the model of that name.
func (b *bench) get(name string) *pool.Hold[*model] {
	b.Helper()
	h, err := b.pool.Acquire(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	return h
}

// use has the model of that name for a while.
func (b *bench) use(name string, d time.Duration) {
	b.Helper()
	h := b.get(name)
	h.Model.users.Add(1)
	time.Sleep(d)
	h.Model.users.Add(-1)
	h.Release()
}

// states are the models with their states, "a ready, b absent".
func (b *bench) states() (all string) {
	for i, s := range b.pool.Models() {
		if i > 0 {
			all += ", "
		}
		all += fmt.Sprint(s.Name, " ", s.State)
	}
	return all
}

// want says what the states should be.
func (b *bench) want(states string) {
	b.Helper()
	if got := b.states(); got != states {
		b.Errorf("%s; want %s", got, states)
	}
}

// close closes the pool, and looks whether anything is left.
func (b *bench) close() {
	b.Helper()
	if err := b.pool.Close(); err != nil {
		b.Error(err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for name, n := range b.there {
		if n != 0 {
			b.Errorf("%s is still there", name)
		}
	}
	used, _ := b.pool.Memory()
	for device, n := range used {
		if n != 0 || b.used[device] != 0 {
			b.Errorf("%d bytes of %s are still reserved, and %d taken", n, device, b.used[device])
		}
	}
}

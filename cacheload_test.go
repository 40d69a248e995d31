package realizar_test

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/kvevents"
	"github.com/realizar/realizar/internal/kvevents/kveventstest"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/synth"
	"github.com/realizar/realizar/internal/synth/synthtest"
	"github.com/realizar/realizar/internal/zmtp/zmtptest"
)

const cacheTopic = "kv@10.0.0.7:8080@model"

// A cacheSubscriber keeps an index of a model's cache by the published events. It loses one of lose
// messages, if lose is not 0, and asks for a replay when it notices.
type cacheSubscriber struct {
	sub, dealer *zmtptest.Client
	lose        int
	reading     sync.WaitGroup

	mu      sync.Mutex
	index   kveventstest.Index
	next    uint64
	replays int
	err     error
	changed chan struct{} // closed with the next message
}

// subscribe connects a subscriber to the publisher at an address.
func subscribe(address string, lose int) (*cacheSubscriber, error) {
	s := &cacheSubscriber{lose: lose, index: kveventstest.Index{}, changed: make(chan struct{})}
	var err error
	if s.sub, err = zmtptest.Dial(address, "SUB", "PUB"); err != nil {
		return nil, err
	}
	if s.dealer, err = zmtptest.Dial(address, "DEALER", "ROUTER"); err != nil {
		return nil, errors.Join(err, s.sub.Close())
	}
	s.reading.Go(s.read)
	if err := s.sub.Send("\x01kv@"); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

func (s *cacheSubscriber) close() error {
	err := errors.Join(s.sub.Close(), s.dealer.Close())
	s.reading.Wait()
	return err
}

// read applies messages until the connection ends.
func (s *cacheSubscriber) read() {
	for {
		seq, payload, err := kveventstest.Receive(s.sub, cacheTopic)
		s.mu.Lock()
		if err == nil {
			err = s.apply(seq, payload)
		}
		if s.err == nil {
			s.err = err
		}
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *cacheSubscriber) apply(seq uint64, payload []byte) (err error) {
	switch {
	case s.lose > 0 && rand.IntN(s.lose) == 0 || seq < s.next:
		return nil
	case s.lose > 0 && seq > s.next:
		return s.replay()
	}
	s.next = seq + 1
	return s.index.Apply(payload)
}

func (s *cacheSubscriber) replay() (err error) {
	s.replays++
	s.next, err = s.index.Replay(s.dealer, s.next)
	return err
}

// await waits until the index has the page mark, and returns an error if it then has others than
// want.
func (s *cacheSubscriber) await(mark kveventstest.Page, want kveventstest.Index) error {
	for {
		s.mu.Lock()
		if s.lose > 0 && s.err == nil {
			s.err = s.replay()
		}
		have, err, changed := maps.Clone(s.index), s.err, s.changed
		s.mu.Unlock()
		switch {
		case err != nil:
			return err
		case have[mark] == "":
			<-changed
			continue
		case !maps.Equal(have, want):
			return fmt.Errorf("the index has %d pages, the model %d", len(have), len(want))
		}
		return nil
	}
}

// A cacheLoad compares the indexes of subscribers with the lists of models that are opened and closed
// under random load.
type cacheLoad struct {
	*testing.T
	publisher    *kvevents.Publisher
	address      string
	early, lossy *cacheSubscriber

	requests, checks, pages, unloads int
	cancelled, preemptions           uint64
	evictions, saves, hits           uint64
}

// check compares all indexes with what m has cached, also that of a subscriber that comes now.
func (l *cacheLoad) check(m *realizar.Model) {
	m.Cached(func(pages []realizar.CacheEvent) {
		want := kveventstest.Index{}
		for i := range pages {
			want.Store(&pages[i])
		}
		if len(want) != len(pages) {
			l.Errorf("the model lists %d pages, of which %d differ", len(pages), len(want))
		}
		l.compare(want)
	})
}

// compare compares all indexes with want, when they have all events so far: a page that is published
// last, and then removed, shows it.
func (l *cacheLoad) compare(want kveventstest.Index) {
	mark := realizar.CacheEvent{Hash: uint64(l.checks + 1), Tokens: make([]int32, 32), Pools: 1}
	l.publisher.Add(mark)
	want.Store(&mark)
	late, err := subscribe(l.address, 0)
	if err != nil {
		l.Error(err)
		return
	}
	// Once the first has all messages, a replay has them too.
	for _, s := range []struct {
		what string
		*cacheSubscriber
	}{{"the first", l.early}, {"one that loses messages", l.lossy}, {"one that comes late", late}} {
		if err := s.await(kveventstest.Page{Hash: mark.Hash}, want); err != nil {
			l.Errorf("subscriber: %s: %v", s.what, err)
		}
	}
	if err := late.close(); err != nil {
		l.Error(err)
	}
	mark.Change = realizar.CacheRemoved
	l.publisher.Add(mark)
	l.checks++
	l.pages = max(l.pages, len(want)-1)
}

// life opens a model, checks its cache while it answers random requests, and closes it. Each client
// sends each requests.
func (l *cacheLoad) life(path string, kept *realizar.KeptCache, each int, seed uint64) {
	o := realizar.Options{Device: "cpu", Context: 512, Parallel: 2}
	memory, err := describe(l.T, path).Memory(o)
	if err != nil {
		l.Fatal(err)
	}
	o.Memory, o.Parallel, o.HostCache, o.Kept, o.CacheEvents = memory.Total, 6, 256<<10, kept, l.publisher.Add
	m, err := realizar.Open(l.Context(), path, o)
	if err != nil {
		l.Fatal(err)
	}
	const clients = 8
	var load sync.WaitGroup
	var mu sync.Mutex
	past := [][]int32{{1}}
	for i := range clients {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		load.Go(func() {
			for range each {
				mu.Lock()
				prompt := past[max(0, len(past)-1-rng.IntN(30))]
				prompt = append([]int32(nil), prompt[:1+rng.IntN(len(prompt))]...)
				for n := rng.IntN(150); n >= 0 && len(prompt) < 400; n-- {
					prompt = append(prompt, rng.Int32N(250))
				}
				past = append(past, prompt)
				mu.Unlock()
				r := &realizar.Request{PromptTokens: prompt, Generation: realizar.Generation{
					MaxTokens: new(1 + rng.IntN(60)), IgnoreEnd: true, Priority: rng.IntN(3), Salt: []string{"", "", "", "salt"}[rng.IntN(4)], Choices: 1 + rng.IntN(8)/7,
				}}
				leave := rng.IntN(200) // events
				for _, err := range m.Generate(l.Context(), r) {
					if err != nil {
						l.Error(err)
						break
					}
					if leave--; leave < 0 {
						mu.Lock()
						l.cancelled++
						mu.Unlock()
						break
					}
				}
				mu.Lock()
				l.requests++
				mu.Unlock()
				if rng.IntN(10) == 0 {
					mu.Lock()
					l.check(m)
					mu.Unlock()
				}
			}
		})
	}
	load.Wait()
	l.check(m)
	metrics := m.Metrics()
	l.preemptions += metrics.Preemptions
	l.evictions += metrics.Evictions
	l.saves += metrics.Saves
	l.hits += metrics.CacheHits
	if err := m.Close(); err != nil {
		l.Fatal(err)
	}
	l.compare(kveventstest.Index{}) // all pages are gone
	l.unloads++
}

// While a model answers random requests, which preempt each other, evict pages, leave and are
// followed by an unload, indexes built from published events alone equal the model's own list of
// cached pages. This goes on for as long as REALIZAR_EVENTS_LOAD says.
func TestPublishedEventsUnderLoad(t *testing.T) {
	var length time.Duration // one life of each model
	if s := os.Getenv("REALIZAR_EVENTS_LOAD"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatalf("REALIZAR_EVENTS_LOAD: %v", err)
		}
	}
	models := []string{
		modeltest.Llama(t, modeltest.Context(512)),
		modeltest.Llama(t, modeltest.Context(512), modeltest.Window(40)),
		modeltest.Mamba(t, true, modeltest.Context(512)),
		synthtest.File(t, &synth.Shape{
			Name: "hybrid", Architecture: "lfm2", Layers: 3, Hidden: 64, FFN: 64, Heads: 2, KVHeads: 1, HeadDim: 32, Vocab: 600, Context: 512,
			Attending: []int{1}, Taps: 3, RopeBase: 1e4, Eps: 1e-5, QKNorm: true,
		}, "Q8_0"),
	}
	kept := make([]realizar.KeptCache, len(models))
	listener, err := kvevents.Listen("tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &cacheLoad{T: t, address: listener.Addr().String(), publisher: kvevents.New(listener, cacheTopic, slog.New(slog.DiscardHandler))}
	defer func() {
		if err := l.publisher.Close(); err != nil {
			t.Error(err)
		}
	}()
	if l.early, err = subscribe(l.address, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.early.close() }()
	if l.lossy, err = subscribe(l.address, 5); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.lossy.close() }()
	begun := time.Now()
	for n := uint64(0); !t.Failed() && (n < uint64(len(models)) || time.Since(begun) < length); n++ {
		i, round := n%uint64(len(models)), n/uint64(len(models))
		l.life(models[i], &kept[i], 10<<(round%5), n)
	}
	t.Logf("%d requests, %d cancelled, %d preemptions, %d evictions, %d pages saved, %d tokens found, %d unloads; %d checks of up to %d pages, %d messages, %d replays",
		l.requests, l.cancelled, l.preemptions, l.evictions, l.saves, l.hits, l.unloads, l.checks, l.pages, l.early.next, l.lossy.replays)
	for what, n := range map[string]uint64{"cancelled": l.cancelled, "preemptions": l.preemptions, "evictions": l.evictions, "saves": l.saves, "hits": l.hits} {
		if n == 0 {
			t.Errorf("%s: 0", what)
		}
	}
}

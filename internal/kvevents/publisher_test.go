package kvevents

import (
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/kvevents/kveventstest"
	"github.com/realizar/realizar/internal/zmtp/zmtptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A cache makes random events and knows what they leave cached.
type cache struct {
	rng   *rand.Rand
	add   func(realizar.CacheEvent)
	pages map[page]event
	index kveventstest.Index
	last  uint64
}

// change makes an event.
func (c *cache) change(several bool) {
	if c.rng.IntN(500) == 0 {
		clear(c.pages)
		clear(c.index)
		c.add(event{Change: realizar.CacheCleared})
		return
	}
	if len(c.pages) > 0 && c.rng.IntN(3) == 0 {
		for p, e := range c.pages { // any
			delete(c.pages, p)
			delete(c.index, kveventstest.Page{Hash: p.hash, Pool: p.pool, Host: p.host})
			e.Change, e.Tokens = realizar.CacheRemoved, []int32{1}
			c.add(e)
			return
		}
	}
	c.last++
	e := event{Hash: c.last<<20 | c.rng.Uint64N(1<<10), Tokens: make([]int32, 32), Host: c.rng.IntN(4) == 0, Pools: 1}
	if several {
		e.Pools = 3
		if e.Pool = c.rng.IntN(3); e.Pool == 1 {
			e.Window = 512
		} else if e.Pool == 2 {
			e.Recurrent = true
		}
	}
	for i := range e.Tokens {
		e.Tokens[i] = c.rng.Int32N(200_000) >> c.rng.IntN(16)
	}
	for p, before := range c.pages {
		if c.rng.IntN(2) == 0 && p.pool == e.Pool && p.host == e.Host {
			e.Parent = before.Hash
		}
		break
	}
	if e.Parent == 0 && c.rng.IntN(4) == 0 {
		e.Salt = strings.Repeat("s", 1+c.rng.IntN(300))
	}
	p := page{e.Hash, e.Pool, e.Host}
	kept := e
	kept.Tokens = nil
	c.pages[p] = kept
	c.index.Store(&e)
	c.add(e)
	clear(e.Tokens) // they are the publisher's own
}

func open(t *testing.T, b bounds) *Publisher {
	t.Helper()
	l, err := Listen("tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return newPublisher(l, Topic("10.0.0.7:8080", "demo"), slog.New(slog.DiscardHandler), newLog(b))
}

// receive applies the messages that a subscriber gets, up to number last of those.
func receive(c *zmtptest.Client, x kveventstest.Index, last uint64) error {
	for {
		seq, payload, err := kveventstest.Receive(c, "kv@10.0.0.7:8080@demo")
		if err != nil {
			return err
		}
		if err := x.Apply(payload); err != nil || seq == last {
			return err
		}
	}
}

// An index of events equals what is cached: that of a subscriber from the first message on, of one
// that comes late, and of one that lost messages and asks for a replay; also if messages are no
// longer kept.
func TestIndexesEqualTheCache(t *testing.T) {
	for i, b := range []bounds{defaultBounds, {messages: 3, events: 1 << 20, pending: 100}, {messages: 100, events: 70, pending: 7}, {messages: 1, events: 1, pending: 1}} {
		p := open(t, b)
		address := p.listener.Addr().String()
		c := &cache{rng: rand.New(rand.NewPCG(1, uint64(i))), add: p.Add, pages: map[page]event{}, index: kveventstest.Index{}}
		dial := func(socket, peer string) *zmtptest.Client {
			client, err := zmtptest.Dial(address, socket, peer)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			return client
		}
		early, lossy := dial("SUB", "PUB"), dial("DEALER", "ROUTER")
		if err := early.Send("\x01kv@"); err != nil {
			t.Fatal(err)
		}
		first, lost := kveventstest.Index{}, kveventstest.Index{}
		cached := 0 // rounds that end with pages cached; each may end with a cleared cache
		for round := range 20 {
			from := p.log.end()
			for range c.rng.IntN(300) {
				if c.change(i%2 == 1); c.rng.IntN(50) == 0 {
					p.log.seal()
				}
			}
			p.log.seal()
			last := p.log.end() - 1
			if last >= from {
				if err := receive(early, first, last); err != nil {
					t.Fatal(err)
				}
			}
			if round == 0 {
				from = 0
			}
			if _, err := lost.Replay(lossy, from); err != nil {
				t.Fatal(err)
			}
			late := kveventstest.Index{}
			if round%5 == 0 {
				sub := dial("SUB", "PUB")
				if err := sub.Send("\x01kv@10.0.0.7:8080@"); err != nil {
					t.Fatal(err)
				}
				if err := receive(sub, late, last); err != nil {
					t.Fatal(err)
				}
			} else {
				late = c.index
			}
			for what, x := range map[string]kveventstest.Index{"a subscriber's": first, "a late subscriber's": late, "a replay's": lost} {
				if !maps.Equal(x, c.index) {
					t.Fatalf("bounds %+v, round %d: %s index has %d pages, the cache %d", b, round, what, len(x), len(c.index))
				}
			}
			if len(c.index) > 0 {
				cached++
			}
		}
		if cached < 10 {
			t.Errorf("in %d of 20 rounds something is cached, want it in most", cached)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A subscriber that reads nothing delays neither events nor others, and learns all when it reads. Its
// last message is the last event before Close.
func TestSlowSubscriber(t *testing.T) {
	p := open(t, bounds{messages: 50, events: 1000, pending: 100})
	c := &cache{rng: rand.New(rand.NewPCG(2, 2)), add: p.Add, pages: map[page]event{}, index: kveventstest.Index{}}
	slow, err := zmtptest.Dial(p.listener.Addr().String(), "SUB", "PUB")
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	if err := slow.Send("\x01"); err != nil {
		t.Fatal(err)
	}
	for range 100_000 {
		c.change(false)
	}
	p.log.seal()
	x := kveventstest.Index{}
	if err := receive(slow, x, p.log.end()-1); err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(x, c.index) {
		t.Errorf("the index has %d pages, the cache %d", len(x), len(c.index))
	}
	p.Add(event{Change: realizar.CacheCleared})
	var reading sync.WaitGroup
	reading.Go(func() {
		if err := receive(slow, x, math.MaxUint64); err == nil || len(x) > 0 { // to the end of the connection
			t.Errorf("after Close the index has %d pages (%v)", len(x), err)
		}
	})
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	reading.Wait()
}

// A subscriber to other topics gets nothing, also after it cancels a subscription; a subscriber to
// too many is cut off.
func TestTopics(t *testing.T) {
	p := open(t, defaultBounds)
	defer p.Close()
	other, err := zmtptest.Dial(p.listener.Addr().String(), "SUB", "PUB")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, topic := range []string{"\x01other", "\x01kv@10.0.0.7:8080@demo-2", "\x00kv", "\x01"} {
		if err := other.Send(topic); err != nil {
			t.Fatal(err)
		}
	}
	if err := receive(other, kveventstest.Index{}, 0); err != nil {
		t.Fatal(err)
	}
	for i := range mostTopics + 1 {
		if err := other.Send(fmt.Sprintf("\x01%d", i)); err != nil {
			break
		}
	}
	if frames, err := other.Receive(); err == nil {
		t.Errorf("after too many topics there are %q", frames)
	}
}

// Peers that do not shake hands are cut off by Close, and those beyond the bound at once.
func TestConnectionsAreBounded(t *testing.T) {
	p := open(t, defaultBounds)
	for range mostConnections {
		c, err := net.Dial("tcp", p.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, err := c.Read(make([]byte, 1)); err != nil { // it was accepted
			t.Fatal(err)
		}
	}
	c, err := net.Dial("tcp", p.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if n, err := c.Read(make([]byte, 1)); err == nil {
		t.Errorf("connection %d gets %d bytes", mostConnections+1, n)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// The bytes are those of vLLM's arrays.
func TestEncode(t *testing.T) {
	stored := event{Hash: 1 << 40, Tokens: []int32{1, 200}, Pools: 1}
	next := event{Hash: 2, Parent: 1 << 40, Tokens: []int32{3, 70_000}, Pools: 1}
	salted := event{Hash: 3, Salt: "s", Tokens: []int32{5}, Pools: 2, Pool: 1, Window: 512, Host: true}
	removed := event{Change: realizar.CacheRemoved, Hash: 2, Pools: 1}
	text := func(s string) string { return hex.EncodeToString([]byte(s)) }
	for _, test := range []struct {
		events []event
		want   string
	}{
		{[]event{stored, next}, "9198ab" + text("BlockStored") + "92cf000001000000000002" + "c0" + "9401ccc803ce00011170" + "02" + "c0" + "a3" + text("GPU") + "c0"},
		{[]event{next}, "9198ab" + text("BlockStored") + "9102" + "cf0000010000000000" + "9203ce00011170" + "02" + "c0" + "a3" + text("GPU") + "c0"},
		{[]event{salted}, "919cab" + text("BlockStored") + "9103" + "c0" + "9105" + "01" + "c0" + "a3" + text("CPU") + "c0" + "9191a1" + text("s") + "01" + "ae" + text("sliding_window") + "cd0200"},
		{[]event{removed, {Change: realizar.CacheCleared}}, "9293ac" + text("BlockRemoved") + "9102" + "a3" + text("GPU") + "91b0" + text("AllBlocksCleared")},
	} {
		if got := hex.EncodeToString(encode(1.5, test.events)); got != "93cb3ff8000000000000"+test.want+"00" {
			t.Errorf("%+v:\n%s, want\n%s", test.events, got, "93cb3ff8000000000000"+test.want+"00")
		}
	}
}

// Add takes time in proportion to a page, whether or not somebody subscribes.
func BenchmarkAdd(b *testing.B) {
	l, err := Listen("tcp://127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	p := New(l, "kv@", slog.New(slog.DiscardHandler))
	defer p.Close()
	e := event{Tokens: make([]int32, 32), Pools: 1}
	for range b.N {
		e.Hash++
		p.Add(e)
	}
}

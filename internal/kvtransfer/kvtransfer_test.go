package kvtransfer_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/big"
	mathrand "math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/realizar/realizar/internal/kvtransfer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// key is a key that peers share.
var key = bytes.Repeat([]byte("k"), 32)

// held are pages in memory. Those of the first skip tokens are skip/32 pages.
type held struct {
	pages    [][]byte
	released atomic.Int32
	read     atomic.Int32
	ended    chan struct{} // closed when they are released, unless it is nil
}

func (h *held) Read(ctx context.Context, skip int, do func(ctx context.Context, pages [][]byte) error) error {
	h.read.Add(1)
	return do(ctx, h.pages[skip/32:])
}

func (h *held) Release() {
	if h.released.Add(1) == 1 && h.ended != nil {
		close(h.ended)
	}
}

// random returns pages of random bytes.
func random(sizes ...int) [][]byte {
	rng := mathrand.NewChaCha8([32]byte{1})
	pages := make([][]byte, len(sizes))
	for i, n := range sizes {
		pages[i] = make([]byte, n)
		_, _ = rng.Read(pages[i])
	}
	return pages
}

// blank returns memory of the same sizes.
func blank(pages [][]byte) [][]byte {
	all := make([][]byte, len(pages))
	for i := range pages {
		all[i] = make([]byte, len(pages[i]))
	}
	return all
}

func same(a, b [][]byte) bool {
	for i := range a {
		if !bytes.Equal(a[i], b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

// open returns a peer on the loopback interface.
func open(t testing.TB, c kvtransfer.Config) *kvtransfer.Peer {
	t.Helper()
	l, err := kvtransfer.Listen("tcp://127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if c.Key == nil {
		c.Key = key
	}
	if c.Port == 0 {
		c.Port = l.Addr().(*net.TCPAddr).Port
	}
	c.Host = "127.0.0.1"
	p := kvtransfer.New(l, c)
	t.Cleanup(func() { _ = p.Close() })
	return p
}

func certificate(t *testing.T) *tls.Config {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, form, form, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert}, PrivateKey: private}}, MinVersion: tls.VersionTLS13}
}

// Pages of any sizes arrive as they were, without those that the receiver has, once.
func TestTransfer(t *testing.T) {
	name := kvtransfer.Name{7}
	for _, secured := range []bool{false, true} {
		for _, sizes := range [][]int{nil, {1}, {100, 100, 100}, {1 << 20}, {1<<20 + 1, 3}, {700 << 10, 700 << 10, 1, 2 << 20}} {
			for _, skip := range []int{0, 1, len(sizes)} {
				if skip > len(sizes) {
					continue
				}
				t.Run(fmt.Sprint(secured, sizes, skip), func(t *testing.T) {
					c := kvtransfer.Config{}
					if secured {
						c.TLS = certificate(t)
					}
					from, to := open(t, c), open(t, kvtransfer.Config{})
					h := &held{pages: random(sizes...), ended: make(chan struct{})}
					o, err := from.Offer(h, name, 32*len(sizes))
					if err != nil {
						t.Fatal(err)
					}
					if n := from.Stats().Held; n != 1 {
						t.Errorf("%d offers are held", n)
					}
					pages := blank(h.pages[skip:])
					if err := to.Fetch(t.Context(), o, name, 32*skip, pages); err != nil {
						t.Fatal(err)
					}
					if !same(pages, h.pages[skip:]) {
						t.Error("the pages differ")
					}
					if err := to.Fetch(t.Context(), o, name, 32*skip, pages); err == nil {
						t.Error("the offer is used twice")
					}
					<-h.ended
					_ = from.Close() // waits for the sender
					want := kvtransfer.Transfers{Done: 1, Failed: 1}
					for _, p := range h.pages[skip:] {
						want.Bytes += uint64(len(p))
					}
					for what, got := range map[string]kvtransfer.Transfers{"sent": from.Stats().Sent, "received": to.Stats().Received} {
						if got.Time == 0 {
							t.Errorf("%s in no time", what)
						}
						if got.Time = 0; got != want {
							t.Errorf("%s: %+v, want %+v", what, got, want)
						}
					}
					if h.released.Load() != 1 || from.Stats().Held != 0 {
						t.Errorf("the pages are released %d times", h.released.Load())
					}
				})
			}
		}
	}
}

// A receiver connects only for offers that are signed, as they are, for pages of the name.
func TestForgedOffers(t *testing.T) {
	from, to := open(t, kvtransfer.Config{}), open(t, kvtransfer.Config{})
	name := kvtransfer.Name{7}
	h := &held{pages: random(10)}
	o, err := from.Offer(h, name, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Check(o, name); err != nil {
		t.Error(err)
	}
	for what, change := range map[string]func(o *kvtransfer.Offer, n *kvtransfer.Name){
		"host":   func(o *kvtransfer.Offer, _ *kvtransfer.Name) { o.Host = "127.0.0.2" },
		"port":   func(o *kvtransfer.Offer, _ *kvtransfer.Name) { o.Port++ },
		"tokens": func(o *kvtransfer.Offer, _ *kvtransfer.Name) { o.Tokens += 32 },
		"tls":    func(o *kvtransfer.Offer, _ *kvtransfer.Name) { o.TLS = true },
		"name":   func(_ *kvtransfer.Offer, n *kvtransfer.Name) { n[3]++ },
		"id":     func(o *kvtransfer.Offer, _ *kvtransfer.Name) { o.ID = "A" + o.ID[1:] + "x" },
		"no id":  func(o *kvtransfer.Offer, _ *kvtransfer.Name) { o.ID = "" },
		"base64": func(o *kvtransfer.Offer, _ *kvtransfer.Name) { o.ID = strings.Repeat("*", len(o.ID)) },
		"mac":    func(o *kvtransfer.Offer, _ *kvtransfer.Name) { o.ID = o.ID[:len(o.ID)-2] + "zz" },
	} {
		own, n := *o, name
		change(&own, &n)
		if err := errors.Join(to.Check(&own, n), to.Fetch(t.Context(), &own, n, 0, blank(h.pages))); !errors.Is(err, kvtransfer.ErrOffer) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if s := from.Stats(); s.Sent.Failed != 0 || s.Held != 1 {
		t.Errorf("the sender was asked: %+v", s)
	}
	from.Withdraw(o)
	from.Withdraw(&kvtransfer.Offer{ID: "*"})
	if h.released.Load() != 1 {
		t.Errorf("a withdrawn offer is released %d times", h.released.Load())
	}
}

// A peer with another key gets nothing, and nothing is told to it.
func TestOtherKey(t *testing.T) {
	other := bytes.Repeat([]byte("x"), 32)
	from, to := open(t, kvtransfer.Config{}), open(t, kvtransfer.Config{Key: other})
	name := kvtransfer.Name{7}
	h := &held{pages: random(1000)}
	o, err := from.Offer(h, name, 32)
	if err != nil {
		t.Fatal(err)
	}
	// An offer of the same address that the receiver accepts.
	forger := open(t, kvtransfer.Config{Key: other, Port: o.Port})
	forged, err := forger.Offer(&held{}, name, 32)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Fetch(t.Context(), forged, name, 0, blank(h.pages)); !errors.Is(err, kvtransfer.ErrKey) {
		t.Errorf("%v", err)
	}
	if h.read.Load() != 0 || from.Stats().Held != 1 {
		t.Error("the pages were read")
	}
}

// An offer that nobody wants is released when its lease ends, and all are when the peer closes.
func TestLease(t *testing.T) {
	p := open(t, kvtransfer.Config{Lease: time.Millisecond})
	h := &held{}
	released := make(chan struct{})
	o, err := p.Offer(releasing{h, released}, kvtransfer.Name{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	<-released
	to := open(t, kvtransfer.Config{})
	if err := to.Fetch(t.Context(), o, kvtransfer.Name{}, 0, nil); err == nil {
		t.Error("an offer outlives its lease")
	}
	p = open(t, kvtransfer.Config{})
	h = &held{}
	if _, err := p.Offer(h, kvtransfer.Name{}, 0); err != nil {
		t.Fatal(err)
	}
	_ = p.Close()
	if h.released.Load() != 1 {
		t.Error("a closed peer holds pages")
	}
	if _, err := p.Offer(h, kvtransfer.Name{}, 0); !errors.Is(err, kvtransfer.ErrClosed) {
		t.Errorf("a closed peer takes an offer: %v", err)
	}
}

type releasing struct {
	kvtransfer.Pages
	released chan struct{}
}

func (r releasing) Release() { close(r.released) }

// The number of offers is bounded.
func TestManyOffers(t *testing.T) {
	p := open(t, kvtransfer.Config{})
	h := &held{}
	for range 1024 {
		if _, err := p.Offer(h, kvtransfer.Name{}, 0); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := p.Offer(h, kvtransfer.Name{}, 0); err == nil || p.Stats().Refused != 1 {
		t.Errorf("too many offers: %v, %+v", err, p.Stats())
	}
	_ = p.Close()
	if h.released.Load() != 1024 {
		t.Errorf("%d of 1024 are released", h.released.Load())
	}
}

// Transfers in both directions at the same time do not disturb each other.
func TestManyTransfers(t *testing.T) {
	a, b := open(t, kvtransfer.Config{}), open(t, kvtransfer.Config{})
	var working sync.WaitGroup
	for i := range 24 {
		from, to := a, b
		if i%2 == 1 {
			from, to = b, a
		}
		working.Go(func() {
			h := &held{pages: random(1000*i, 400<<10)}
			h.pages[1][0] = byte(i)
			o, err := from.Offer(h, kvtransfer.Name{byte(i)}, 64)
			if err != nil {
				t.Error(err)
				return
			}
			pages := blank(h.pages)
			if err := to.Fetch(t.Context(), o, kvtransfer.Name{byte(i)}, 0, pages); err != nil || !same(pages, h.pages) {
				t.Errorf("transfer %d: %v", i, err)
			}
		})
	}
	working.Wait()
}

// A transfer ends with its context.
func TestCancelled(t *testing.T) {
	from, to := open(t, kvtransfer.Config{}), open(t, kvtransfer.Config{})
	h := &waiting{begun: make(chan struct{})}
	o, err := from.Offer(h, kvtransfer.Name{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-h.begun
		cancel()
	}()
	if err := to.Fetch(ctx, o, kvtransfer.Name{}, 0, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	h = &waiting{begun: make(chan struct{})}
	if o, err = from.Offer(h, kvtransfer.Name{}, 0); err != nil {
		t.Fatal(err)
	}
	go func() {
		<-h.begun
		_ = to.Close()
	}()
	if err := to.Fetch(t.Context(), o, kvtransfer.Name{}, 0, nil); !errors.Is(err, kvtransfer.ErrClosed) {
		t.Errorf("%v", err)
	}
}

// waiting are pages whose Read waits for its context.
type waiting struct {
	held
	begun chan struct{}
}

func (w *waiting) Read(ctx context.Context, _ int, _ func(ctx context.Context, pages [][]byte) error) error {
	close(w.begun)
	<-ctx.Done()
	return ctx.Err()
}

// A sender that has other pages than the receiver expects is an error.
func TestOtherPages(t *testing.T) {
	from, to := open(t, kvtransfer.Config{}), open(t, kvtransfer.Config{})
	for _, n := range []int{0, 99, 101} {
		o, err := from.Offer(&held{pages: random(100)}, kvtransfer.Name{}, 32)
		if err != nil {
			t.Fatal(err)
		}
		if err := to.Fetch(t.Context(), o, kvtransfer.Name{}, 0, [][]byte{make([]byte, n)}); err == nil {
			t.Errorf("%d bytes are filled with 100", n)
		}
	}
	o, err := from.Offer(&held{}, kvtransfer.Name{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := to.Fetch(t.Context(), o, kvtransfer.Name{}, -1, nil); err == nil {
		t.Error("a negative number of tokens is skipped")
	}
}

// A key is long enough, and an address has its form.
func TestKeysAndAddresses(t *testing.T) {
	file := func(data string) string {
		path := filepath.Join(t.TempDir(), "key")
		if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	if got, err := kvtransfer.ReadKey(file("\n" + string(key) + " \n")); err != nil || !bytes.Equal(got, key) {
		t.Errorf("%q: %v", got, err)
	}
	for _, data := range []string{"", "short", strings.Repeat(" ", 100), strings.Repeat("k", 5000)} {
		if _, err := kvtransfer.ReadKey(file(data)); err == nil {
			t.Errorf("a key of %d bytes is read", len(data))
		}
	}
	if _, err := kvtransfer.ReadKey(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	for _, address := range []string{"", "127.0.0.1:1", "tcp://", "tcp://127.0.0.1", "http://127.0.0.1:1"} {
		if l, err := kvtransfer.Listen(address); err == nil {
			_ = l.Close()
			t.Errorf("%q is an address", address)
		}
	}
	l, err := kvtransfer.Listen("tcp://*:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}

// A fault changes what one side of a connection sends.
type fault struct {
	name string
	// do gets a message from the sender to the receiver, or back, and returns what to pass on and
	// whether to cut the connection then.
	do    func(b []byte, at int) (_ []byte, cut bool)
	stall time.Duration // until the other side notices, if it waits for more
}

var faults = []fault{
	{"none", func(b []byte, _ int) ([]byte, bool) { return b, false }, time.Minute},
	{"cut before", func(b []byte, _ int) ([]byte, bool) { return nil, true }, time.Minute},
	{"cut inside", func(b []byte, at int) ([]byte, bool) { return b[:at], true }, time.Minute},
	{"one bit", func(b []byte, at int) ([]byte, bool) {
		b = bytes.Clone(b)
		b[at] ^= 1 << (at % 8)
		return b, false
	}, time.Minute},
	{"a byte less", func(b []byte, at int) ([]byte, bool) { return append(bytes.Clone(b[:at]), b[at+1:]...), false }, 100 * time.Millisecond},
	{"a byte more", func(b []byte, at int) ([]byte, bool) {
		return append(append(bytes.Clone(b[:at]), 0), b[at:]...), false
	}, time.Minute},
	{"dropped", func(b []byte, _ int) ([]byte, bool) { return nil, false }, 100 * time.Millisecond},
	{"twice", func(b []byte, _ int) ([]byte, bool) { return append(bytes.Clone(b), b...), false }, time.Minute},
	{"zeros", func(b []byte, _ int) ([]byte, bool) { return make([]byte, len(b)), false }, time.Minute},
	{"silence", func(b []byte, at int) ([]byte, bool) { return b[:at], false }, 100 * time.Millisecond},
}

// messages are the lengths of what each side sends in a transfer of pages, in order: the handshake,
// and frames of a header and a payload.
func messages(bytes int) (sender, receiver []int) {
	sender, receiver = []int{40, 32, 16 + 8}, []int{72, 16 + 20}
	for ; bytes > 0; bytes -= 1 << 20 {
		sender = append(sender, 16+min(bytes, 1<<20))
	}
	return append(sender, 16+32), append(receiver, 16)
}

// A proxy passes one connection on, with a fault in one message.
func proxy(t *testing.T, to string, side, message int, lengths [2][]int, at int, f fault) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		s, err := net.Dial("tcp", to)
		if err != nil {
			return
		}
		defer s.Close()
		var working sync.WaitGroup
		pass := func(own int, from, to net.Conn) {
			defer to.(*net.TCPConn).CloseWrite() //nolint:errcheck // it may be closed
			for i, n := range lengths[own] {
				b := make([]byte, n)
				if n, err := io.ReadFull(from, b); err != nil {
					_, _ = to.Write(b[:n])
					return
				}
				cut := false
				if own == side && i == message {
					b, cut = f.do(b, at%len(b))
				}
				if _, err := to.Write(b); err != nil || cut {
					_, _ = c.Close(), s.Close()
					return
				}
			}
			_, _ = io.Copy(to, from)
		}
		working.Go(func() { pass(0, s, c) })
		pass(1, c, s)
		working.Wait()
	}()
	return l
}

// Whatever happens to a message at any place, a transfer is right or an error, and the sender
// releases the pages once.
func TestFaults(t *testing.T) {
	name := kvtransfer.Name{7}
	pages := random(1000, 1<<20, 10)
	bytes := 0
	for _, p := range pages {
		bytes += len(p)
	}
	var lengths [2][]int
	lengths[0], lengths[1] = messages(bytes)
	places := []int{0, 9, 13, 1 << 20}
	for _, f := range faults {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			failures, right := 0, 0
			for side := range 2 {
				for message := range lengths[side] {
					for _, at := range places {
						h := &held{pages: pages}
						c := kvtransfer.Config{Stall: f.stall}
						if testing.Short() && at > 0 {
							continue
						}
						l, err := kvtransfer.Listen("tcp://127.0.0.1:0")
						if err != nil {
							t.Fatal(err)
						}
						between := proxy(t, l.Addr().String(), side, message, lengths, at, f)
						c.Key, c.Host, c.Port = key, "127.0.0.1", between.Addr().(*net.TCPAddr).Port
						from, to := kvtransfer.New(l, c), open(t, c)
						o, err := from.Offer(h, name, 96)
						if err != nil {
							t.Fatal(err)
						}
						got := blank(pages)
						if err := to.Fetch(t.Context(), o, name, 0, got); err != nil {
							failures++
						} else if right++; !same(got, pages) {
							t.Errorf("side %d, message %d, at %d: the pages are wrong and no error is reported", side, message, at)
						}
						_, _, _ = from.Close(), to.Close(), between.Close()
						if n := h.released.Load(); n != 1 {
							t.Errorf("side %d, message %d, at %d: the pages are released %d times", side, message, at, n)
						}
					}
				}
			}
			if (f.name == "none") != (failures == 0) {
				t.Errorf("%d transfers fail", failures)
			}
			t.Logf("%d transfers fail, %d are right", failures, right)
		})
	}
}

// What the receiver sends first, and the sender's answers, can be anything: neither side fails
// otherwise than with an error.
func FuzzSender(f *testing.F) {
	hello := binary.BigEndian.AppendUint32([]byte("RZKV"), 1)
	f.Add(append(hello, make([]byte, 64)...))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := open(t, kvtransfer.Config{Stall: time.Second})
		h := &held{pages: random(10)}
		o, err := p.Offer(h, kvtransfer.Name{}, 32)
		if err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", o.Port))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = c.Write(b)
		_ = c.(*net.TCPConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
		_ = p.Close()
		if h.read.Load() != 0 || h.released.Load() != 1 {
			t.Errorf("%d reads, %d releases", h.read.Load(), h.released.Load())
		}
	})
}

func FuzzReceiver(f *testing.F) {
	hello := binary.BigEndian.AppendUint32([]byte("RZKV"), 1)
	f.Add(append(hello, make([]byte, 64)...))
	f.Add([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(b)
			_ = c.(*net.TCPConn).CloseWrite()
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}()
		p := open(t, kvtransfer.Config{Stall: time.Second, Port: l.Addr().(*net.TCPAddr).Port})
		o, err := p.Offer(&held{}, kvtransfer.Name{}, 32)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Fetch(t.Context(), o, kvtransfer.Name{}, 0, random(10)); err == nil {
			t.Error("a peer without the key sends pages")
		}
		_ = l.Close()
		<-served
	})
}

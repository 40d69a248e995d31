// Package kvtransfer moves pages of KV caches from a process that has run a prompt to the process
// that generates the answer, over TCP.
//
// The sender offers pages that it holds. The offer travels with the request's kv_transfer_params,
// through whoever routes the request, so it is signed: the receiver connects to no address that a
// holder of the shared key has not written. The receiver connects, both prove that they have the key
// (see handshake.go), and one transfer follows in frames (see frame.go):
//
//	receiver   want: the offer's id, tokens that it has already
//	sender     give: the number of bytes of the other pages; or refuse
//	sender     data, as often as needed
//	sender     end: a MAC of all frames so far
//	receiver   done
//
// The first connection that wants an offer uses it up. Pages go from the memory that the sender
// holds to the memory that the receiver fills; beyond these, either end needs the memory of a frame's
// header. TCP holds back a sender that is faster than the receiver.
package kvtransfer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"
)

// Pages are exported pages of a KV cache.
type Pages interface {
	// Read calls do with the pages that are not of the first skip tokens. They stay as they are
	// until do returns. The context of do ends when the pages' memory is needed.
	Read(ctx context.Context, skip int, do func(ctx context.Context, pages [][]byte) error) error
	// Release gives the pages up. It is called once.
	Release()
}

// A Name identifies the contents of pages: two processes use equal names for pages that are equal,
// bit for bit.
type Name [32]byte

// A Config says how to transfer pages.
type Config struct {
	// Key is the secret that all peers share, see [ReadKey].
	Key []byte
	// Host and Port are where peers reach the listener.
	Host string
	Port int
	// TLS, if not nil, has the certificate of the listener. Peers check the key, not the certificate:
	// each proof of the key is bound to its TLS session.
	TLS *tls.Config
	// Lease is how long an offer is held. 0 means one minute.
	Lease time.Duration
	// Stall is the time limit for connecting, for each part of the handshake and for each frame. 0
	// means 10 seconds.
	Stall  time.Duration
	Logger *slog.Logger
}

const (
	defaultLease = time.Minute
	defaultStall = 10 * time.Second
	// A transfer takes at most leastTime and the time of its bytes at leastRate a second.
	leastTime = 30 * time.Second
	leastRate = 16 << 20

	// acceptPause follows a failure to accept a connection, such as too many open files.
	acceptPause = 100 * time.Millisecond

	mostConnections = 64
	mostOffers      = 1024
)

// limit returns the time limit of a transfer of n bytes.
func limit(n int64) time.Duration {
	return leastTime + time.Duration(float64(n)/leastRate*float64(time.Second))
}

// A Peer sends and receives pages. Its methods are safe for concurrent use.
type Peer struct {
	config   Config
	listener net.Listener
	counters counters

	ctx    context.Context // ends when the peer closes
	stop   context.CancelFunc
	work   sync.WaitGroup
	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool
	offers map[offerID]*offer
}

// ErrClosed reports that the peer was closed.
var ErrClosed = errors.New("the transfer of KV caches has ended")

// Listen listens at an address such as tcp://127.0.0.1:7777; tcp://*:7777 is all addresses of the
// machine.
func Listen(address string) (net.Listener, error) {
	host, port, err := split(address)
	if err != nil {
		return nil, err
	}
	if host == "*" {
		host = ""
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

func split(address string) (host, port string, err error) {
	const scheme = "tcp://"
	if len(address) > len(scheme) && address[:len(scheme)] == scheme {
		if host, port, err = net.SplitHostPort(address[len(scheme):]); err == nil {
			return host, port, nil
		}
	}
	return "", "", fmt.Errorf("the address %q; want one such as tcp://127.0.0.1:7777 or tcp://*:7777", address)
}

// New sends what is offered to those who connect to l, until Close.
func New(l net.Listener, c Config) *Peer {
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.Stall == 0 {
		c.Stall = defaultStall
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	p := &Peer{config: c, listener: l, conns: map[net.Conn]bool{}, offers: map[offerID]*offer{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.work.Go(p.accept)
	return p
}

// Close releases all offers, ends all transfers and waits for them.
func (p *Peer) Close() error {
	p.mu.Lock()
	p.closed = true
	for c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.stop()
	err := p.listener.Close()
	p.releaseAll()
	p.work.Wait()
	return err
}

func (p *Peer) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			p.config.Logger.Warn("no connection is accepted", slog.String("error", err.Error()))
			select {
			case <-time.After(acceptPause):
			case <-p.ctx.Done():
			}
			continue
		}
		if !p.enter(c) {
			_ = c.Close()
			continue
		}
		p.work.Go(func() {
			defer p.leave(c)
			p.serve(c)
		})
	}
}

// enter counts a connection, unless there are too many or the peer is closed.
func (p *Peer) enter(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.conns) == mostConnections {
		return false
	}
	p.conns[c] = true
	return true
}

func (p *Peer) leave(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

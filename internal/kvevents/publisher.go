// Package kvevents tells routers which blocks of tokens a server has cached. It publishes the
// changes of a model's KV cache as vLLM does: over ZeroMQ, in messages of three frames, which are the
// topic, a sequence number (8 bytes, big-endian), and MessagePack of [time, events, rank].
//
// One address takes two kinds of sockets. SUB gets messages, from those on that say what is cached
// when it subscribes. DEALER or REQ asks with a sequence number (8 bytes) for the messages from there
// on, and gets an empty frame and the three frames of each, as from vLLM since its pull request 45177;
// at last an empty topic, the number -1 and an empty payload. A socket that falls behind the messages that are kept gets one that clears the cache and stores all
// that is cached instead of those.
package kvevents

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/zmtp"
)

// A Publisher publishes the events of one model's cache.
type Publisher struct {
	listener net.Listener
	topic    string
	logger   *slog.Logger
	log      *log

	ctx    context.Context // ends when messages are no longer made
	stop   func()
	work   sync.WaitGroup
	mu     sync.Mutex
	closed bool
	conns  map[net.Conn]bool // whether it subscribes
}

const (
	mostConnections = 64
	mostTopics      = 64 // of a subscriber
	// Events are collected for batchTime before they are sent.
	batchTime = 5 * time.Millisecond
	// closeTime is how long Close waits for subscribers to take the last messages.
	closeTime = time.Second
)

// Listen listens at an address such as tcp://127.0.0.1:5557; tcp://*:5557 is all addresses of the
// machine.
func Listen(address string) (net.Listener, error) {
	rest, ok := strings.CutPrefix(address, "tcp://")
	host, port, err := net.SplitHostPort(rest)
	if !ok || err != nil {
		return nil, fmt.Errorf("the address %q of KV events; want one such as tcp://127.0.0.1:5557 or tcp://*:5557", address)
	}
	if host == "*" {
		host = ""
	}
	return net.Listen("tcp", net.JoinHostPort(host, port))
}

// Topic returns the topic for a model of the server that routers know by an address and a port.
func Topic(server, model string) string { return "kv@" + server + "@" + model }

// New publishes at l, under the given topic, until Close.
func New(l net.Listener, topic string, logger *slog.Logger) *Publisher {
	return newPublisher(l, topic, logger, newLog(defaultBounds))
}

func newPublisher(l net.Listener, topic string, logger *slog.Logger, log *log) *Publisher {
	p := &Publisher{listener: l, topic: topic, logger: logger, log: log, conns: map[net.Conn]bool{}}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.work.Go(p.batch)
	p.work.Go(p.accept)
	return p
}

// Add publishes an event. It does not wait for subscribers.
func (p *Publisher) Add(e realizar.CacheEvent) { p.log.add(e) }

// batch makes messages of events.
func (p *Publisher) batch() {
	for {
		select {
		case <-p.log.arrived:
		case <-p.ctx.Done():
			return
		}
		select {
		case <-time.After(batchTime):
		case <-p.ctx.Done():
		}
		p.log.seal()
	}
}

func (p *Publisher) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			var temporary net.Error
			if errors.As(err, &temporary) && temporary.Timeout() {
				continue
			}
			return
		}
		if !p.admit(c) {
			_ = c.Close()
			continue
		}
		p.work.Go(func() {
			defer p.leave(c)
			err := p.serve(c)
			p.logger.Info("a client of KV events left", slog.String("address", c.RemoteAddr().String()), slog.String("reason", err.Error()))
		})
	}
}

func (p *Publisher) admit(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.conns) == mostConnections {
		return false
	}
	p.conns[c] = false
	return true
}

func (p *Publisher) leave(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
	_ = c.Close()
}

// sockets maps the accepted types of clients' sockets to the types that serve them.
var sockets = map[string]string{"SUB": "PUB", "XSUB": "PUB", "DEALER": "ROUTER", "REQ": "ROUTER"}

func (p *Publisher) serve(c net.Conn) error {
	z, err := zmtp.Accept(c, sockets)
	if err != nil {
		return err
	}
	if sockets[z.Peer()] == "ROUTER" {
		return p.replay(z)
	}
	p.mu.Lock()
	p.conns[c] = !p.closed
	p.mu.Unlock()
	topics := make(chan bool)
	ended := make(chan error, 1)
	ctx, cancel := context.WithCancel(p.ctx)
	p.work.Go(func() { ended <- p.subscriptions(ctx, z, topics) })
	err = p.publish(ctx, z, topics, ended)
	cancel()
	_ = c.Close()
	return err
}

// subscriptions reads a subscriber's topics and sends whether one of them is ours, when that
// changes.
func (p *Publisher) subscriptions(ctx context.Context, z *zmtp.Conn, subscribed chan<- bool) error {
	topics, has := map[string]int{}, false
	for {
		frames, err := z.Read()
		if err != nil {
			return err
		}
		if len(frames) != 1 || len(frames[0]) == 0 || frames[0][0] > 1 {
			continue // a message to a publisher has no meaning
		}
		topic := string(frames[0][1:])
		switch {
		case frames[0][0] == 1:
			topics[topic]++
		case topics[topic] > 1:
			topics[topic]--
		default:
			delete(topics, topic)
		}
		if len(topics) > mostTopics {
			return fmt.Errorf("it subscribes to more than %d topics", mostTopics)
		}
		now := false
		for topic := range topics {
			now = now || strings.HasPrefix(p.topic, topic)
		}
		if now == has {
			continue
		}
		has = now
		select {
		case subscribed <- now:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// publish sends messages while the subscriber wants them. After Close it sends those that are left.
func (p *Publisher) publish(ctx context.Context, z *zmtp.Conn, subscribed <-chan bool, ended <-chan error) error {
	wanted := false
	next := uint64(0)
	for {
		m, ok, changed := message{}, false, (<-chan struct{})(nil)
		if wanted {
			m, ok, changed = p.log.read(next)
		}
		if ok {
			if err := z.Write([]byte(p.topic), binary.BigEndian.AppendUint64(nil, m.seq), m.payload); err != nil {
				return err
			}
			next = m.seq + 1
			continue
		}
		select {
		case wanted = <-subscribed:
		case <-changed:
		case err := <-ended:
			return err
		case <-ctx.Done():
			if wanted && next < p.log.end() {
				continue
			}
			return errors.New("the server ends")
		}
	}
}

// replay answers requests for messages from a sequence number on.
func (p *Publisher) replay(z *zmtp.Conn) error {
	for {
		frames, err := z.Read()
		if err != nil {
			return err
		}
		last := frames[len(frames)-1]
		if len(last) != 8 {
			return fmt.Errorf("it asks for % x, which is no sequence number of 8 bytes", last)
		}
		// REQ puts an empty frame before its message and expects it before the answer.
		envelope := [][]byte{{}}
		if i := slices.IndexFunc(frames[:len(frames)-1], func(b []byte) bool { return len(b) == 0 }); i >= 0 {
			envelope = frames[:i+1]
		}
		send := func(topic string, seq uint64, payload []byte) error {
			return z.Write(append(envelope[:len(envelope):len(envelope)], []byte(topic), binary.BigEndian.AppendUint64(nil, seq), payload)...)
		}
		end := p.log.end()
		for next := binary.BigEndian.Uint64(last); next < end; {
			m, ok, _ := p.log.read(next)
			if !ok {
				break
			}
			if err := send(p.topic, m.seq, m.payload); err != nil {
				return err
			}
			next = m.seq + 1
		}
		if err := send("", 1<<64-1, nil); err != nil {
			return err
		}
	}
}

// Close sends subscribers the events that are left, and ends the publisher. It waits a second for
// subscribers at most.
func (p *Publisher) Close() error {
	p.log.seal()
	err := p.listener.Close()
	p.stop()
	p.disconnect(false)
	slow := time.AfterFunc(closeTime, func() { p.disconnect(true) })
	defer slow.Stop()
	p.work.Wait()
	return err
}

// disconnect closes connections, of subscribers too if all is set.
func (p *Publisher) disconnect(all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for c, subscribes := range p.conns {
		if all || !subscribes {
			_ = c.Close()
		}
	}
}

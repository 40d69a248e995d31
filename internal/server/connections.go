package server

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"
)

// Connections bound those that clients have at one time. Where there are as many as there
// may be, a new one takes the place of one that waits for its client: for a request, the
// rest of one, or nothing. So whoever opens connections and says nothing keeps nobody out.
type Connections struct {
	now  func() time.Time
	wait func(context.Context, time.Duration) // or until the context ends

	mu        sync.Mutex
	most      int
	each      int // of one address
	open      map[*connection]struct{}
	addresses map[string]int
	turn      int64 // counts beginnings of waiting
	refused   int64
	evicted   int64
	costly    int64
}

// NewConnections bounds them to most in all, and for each address.
func NewConnections(most, perAddress int) (*Connections, error) {
	c := &Connections{now: time.Now, wait: wait, open: map[*connection]struct{}{}, addresses: map[string]int{}}
	return c, c.Bound(most, perAddress)
}

// Bound sets how many there may be, in all and for an address. Those beyond stay until they
// end, or wait when a new one comes.
func (c *Connections) Bound(most, perAddress int) error {
	if most < 1 || perAddress < 1 {
		return errors.New("server: connections are bounded to 1 or more, in all and for an address")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most, c.each = most, perAddress
	return nil
}

// ConnectionStats say how connections stand.
type ConnectionStats struct {
	Open, Most int
	Refused    int64 // as all others were at work
	Evicted    int64 // as they waited, and others came
	Costly     int64 // that cost more than they may
}

// Stats is how they stand.
func (c *Connections) Stats() ConnectionStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ConnectionStats{Open: len(c.open), Refused: c.refused, Evicted: c.evicted, Costly: c.costly, Most: c.most}
}

// Listen accepts connections of l within the bounds.
func (c *Connections) Listen(l net.Listener) net.Listener { return &boundListener{l, c} }

type boundListener struct {
	net.Listener
	of *Connections
}

// Accept waits for the next connection for which there is room.
func (l *boundListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if a := l.of.admit(c); a != nil {
			return a, nil
		}
		_ = c.Close()
	}
}

// A connection is one of a client.
type connection struct {
	net.Conn
	of      *Connections
	address string

	// guarded by of.mu
	since  int64 // the turn in which it began to wait
	busy   int   // requests that are at work
	closed bool
	cost   cost
}

// admit is c as a connection, or nil where there is no room for it.
func (c *Connections) admit(n net.Conn) *connection {
	host, _, err := net.SplitHostPort(n.RemoteAddr().String())
	if err != nil {
		host = n.RemoteAddr().String()
	}
	a := &connection{Conn: n, of: c, address: host}
	c.mu.Lock()
	defer c.mu.Unlock()
	a.cost.at = c.now()
	for len(c.open) >= c.most || c.addresses[host] >= c.each {
		of := ""
		if c.addresses[host] >= c.each {
			of = host
		}
		other := c.waiter(of)
		if other == nil {
			c.refused++
			return nil
		}
		c.evicted++
		other.remove()
		_ = other.Conn.Close()
	}
	c.open[a] = struct{}{}
	c.addresses[host]++
	c.turn++
	a.since = c.turn
	return a
}

// waiter is the connection that waits the longest, of that address or, if it is empty, of
// those that have the most; nil if all are at work.
func (c *Connections) waiter(address string) *connection {
	var found *connection
	for a := range c.open {
		if a.busy > 0 || address != "" && a.address != address {
			continue
		}
		if found != nil {
			if n, most := c.addresses[a.address], c.addresses[found.address]; n < most || n == most && a.since > found.since {
				continue
			}
		}
		found = a
	}
	return found
}

// remove takes a from the books.
func (a *connection) remove() {
	if a.closed {
		return
	}
	a.closed = true
	delete(a.of.open, a)
	if a.of.addresses[a.address]--; a.of.addresses[a.address] == 0 {
		delete(a.of.addresses, a.address)
	}
}

// Close closes it.
func (a *connection) Close() error {
	a.of.mu.Lock()
	a.remove()
	a.of.mu.Unlock()
	return a.Conn.Close()
}

// CloseWrite ends what the client reads. net/http asks for it before it closes a connection
// whose client still sends, so that the answer is not lost.
func (a *connection) CloseWrite() error {
	if c, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// work notes that a request begins to be worked on, or with -1 that one is done.
func (a *connection) work(n int) {
	if a == nil {
		return
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.of.turn++
	a.busy, a.since = a.busy+n, a.of.turn
}

type connectionKey struct{}

// ConnContext is for [http.Server.ConnContext]: requests know their connection by it.
func (c *Connections) ConnContext(ctx context.Context, n net.Conn) context.Context {
	if t, ok := n.(*tls.Conn); ok {
		n = t.NetConn()
	}
	if a, ok := n.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, a)
	}
	return ctx
}

// connectionOf is that of a request; nil where they are not bounded.
func connectionOf(r *http.Request) *connection {
	a, _ := r.Context().Value(connectionKey{}).(*connection)
	return a
}

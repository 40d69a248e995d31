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

// Connections bounds the number of open client connections. At the bound, a new connection replaces
// one that waits for its client: for a request, or for the rest of one. So idle connections cannot
// keep other clients out.
type Connections struct {
	now  func() time.Time
	wait func(context.Context, time.Duration) // waits for the duration, or until the context ends

	mu        sync.Mutex
	most      int
	each      int // per address
	open      map[*connection]struct{}
	addresses map[string]int
	turn      int64 // counts the times that a connection began to wait
	refused   int64
	evicted   int64
	costly    int64
}

// NewConnections returns a bound of most connections in all, and of perAddress for each address.
func NewConnections(most, perAddress int) (*Connections, error) {
	c := &Connections{now: time.Now, wait: wait, open: map[*connection]struct{}{}, addresses: map[string]int{}}
	return c, c.Bound(most, perAddress)
}

// Bound sets the number of connections allowed, in all and per address. Connections beyond it stay
// until they end, or until a new one replaces them while they wait.
func (c *Connections) Bound(most, perAddress int) error {
	if most < 1 || perAddress < 1 {
		return errors.New("server: connections are bounded to 1 or more, in all and for an address")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.most, c.each = most, perAddress
	return nil
}

// ConnectionStats counts connections.
type ConnectionStats struct {
	Open, Most int
	Refused    int64 // because all others were busy
	Evicted    int64 // while they waited for their client, for a new connection
	Costly     int64 // whose requests cost more than allowed
}

// Stats returns the current counts.
func (c *Connections) Stats() ConnectionStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ConnectionStats{Open: len(c.open), Refused: c.refused, Evicted: c.evicted, Costly: c.costly, Most: c.most}
}

// Listen returns a listener that accepts connections of l within the bounds.
func (c *Connections) Listen(l net.Listener) net.Listener { return &boundListener{l, c} }

type boundListener struct {
	net.Listener
	of *Connections
}

// Accept waits for the next connection that is admitted.
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

// A connection is a client's connection.
type connection struct {
	net.Conn
	of      *Connections
	address string

	// Guarded by of.mu:
	since  int64 // the turn at which it began to wait
	busy   int   // number of running requests
	closed bool
	unread bool // its last request was answered before all of its body was read
	cost   cost
}

// admit returns n as a connection, or nil if there is no place for it.
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

// waiter returns the connection of the address that has waited the longest. If address is empty, it
// chooses among the addresses with the most connections. It returns nil if all connections are
// busy.
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

// remove removes a from the open connections.
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

// lingering is how long a connection stays open for reading after an answer that came before all of
// the request's body was read.
const lingering = 500 * time.Millisecond

// Close closes the connection and frees its place. If its client may still send a body, only the
// writing side closes at once, so that the answer is not lost by a reset (RFC 9112, 9.6); the rest
// closes later, or when a new connection needs the place. net/http does so before it calls Close,
// unless the request or the answer has "Connection: close".
func (a *connection) Close() error {
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	if !a.unread || a.closed || a.CloseWrite() != nil {
		a.remove()
		return a.Conn.Close()
	}
	a.unread = false
	go func() {
		a.of.wait(context.Background(), lingering)
		_ = a.Close()
	}()
	return nil
}

// CloseWrite closes the writing side of the connection. net/http calls it before it closes a
// connection whose client still sends, so that the answer is not lost.
func (a *connection) CloseWrite() error {
	if c, ok := a.Conn.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return errors.ErrUnsupported
}

// answered notes that a request was answered, and whether its body was read to the end.
func (a *connection) answered(read bool) {
	if a == nil {
		return
	}
	a.of.mu.Lock()
	defer a.of.mu.Unlock()
	a.unread = !read
}

// work notes that a request starts, or with n = -1 that one has ended.
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

// ConnContext is for [http.Server.ConnContext]. It stores the connection in the context of its
// requests.
func (c *Connections) ConnContext(ctx context.Context, n net.Conn) context.Context {
	if t, ok := n.(*tls.Conn); ok {
		n = t.NetConn()
	}
	if a, ok := n.(*connection); ok {
		return context.WithValue(ctx, connectionKey{}, a)
	}
	return ctx
}

// connectionOf returns the connection of a request; nil if connections are not bounded.
func connectionOf(r *http.Request) *connection {
	a, _ := r.Context().Value(connectionKey{}).(*connection)
	return a
}

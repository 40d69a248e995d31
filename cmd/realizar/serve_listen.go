package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"

	"github.com/realizar/realizar/internal/server"
)

// A hearing is what is listened on, first for a model that is being loaded.
type hearing struct {
	listeners []net.Listener
	http      *http.Server
	loading   server.Loading
	ended     chan error // why it ended before it was told to
	alone     bool       // the address is one of the machine's own alone
}

// listen listens on the ports of the flags. Where the address is one of the machine's own
// alone, config then says so.
func (c *serveCommand) listen(config *server.Config) (*hearing, error) {
	ports := []int{c.Port}
	if c.OllamaPort != nil {
		ports = append(ports, *c.OllamaPort)
	}
	h := &hearing{ended: make(chan error, len(ports)), loading: server.Loading{Dialects: config.Dialects, Deadlines: config.Deadlines}}
	for _, port := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(c.Host, strconv.Itoa(port)))
		if err != nil {
			h.close()
			if errors.Is(err, syscall.EADDRINUSE) {
				err = fmt.Errorf("port %d of %s is in use; --port takes another one, and 0 a free one", port, c.Host)
			}
			return nil, err
		}
		h.listeners = append(h.listeners, config.Connections.Listen(l))
	}
	tcp, ok := h.listeners[0].Addr().(*net.TCPAddr)
	h.alone = ok && tcp.IP.IsLoopback()
	config.Hosts = hostsOf(config.Hosts, h.alone)
	h.loading.Hosts, h.loading.Page = config.Hosts, config.Page
	h.http = server.HTTP(&h.loading, config.Connections, config.Deadlines, config.Logger)
	return h, nil
}

// hostsOf are the names that requests may call a server by, where its address is one of the
// machine's own alone or not: without any, addresses and localhost, or any name.
func hostsOf(names []string, alone bool) []string {
	if len(names) == 0 && alone {
		return []string{}
	}
	return names
}

// close ends listening that has not begun.
func (h *hearing) close() {
	for _, l := range h.listeners {
		_ = l.Close()
	}
}

// addresses are those that are listened on.
func (h *hearing) addresses() []net.Addr {
	all := make([]net.Addr, len(h.listeners))
	for i, l := range h.listeners {
		all[i] = l.Addr()
	}
	return all
}

// begin listens, with TLS where there is a certificate.
func (h *hearing) begin(c *certificate) {
	serve := h.http.Serve
	if c != nil {
		h.http.TLSConfig = c.config()
		serve = func(l net.Listener) error { return h.http.ServeTLS(l, "", "") }
	}
	for _, l := range h.listeners {
		go func() {
			err := serve(l)
			if errors.Is(err, http.ErrServerClosed) {
				err = nil
			}
			h.ended <- err
		}()
	}
}

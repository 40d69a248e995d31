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

// A hearing is the server's listeners and what answers on them: while the model is being loaded,
// that is loading.
type hearing struct {
	listeners []net.Listener
	http      *http.Server
	loading   server.Loading
	ended     chan error // errors that ended it early
	alone     bool       // the address is reachable only from this machine
}

// listen listens on the ports of the flags. If the address is reachable only from this machine, it
// says so in config.
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

// hostsOf returns the host names that requests may use, for server.Config. If names is empty, these
// are IP addresses and localhost if alone is set, and otherwise any name.
func hostsOf(names []string, alone bool) []string {
	if len(names) == 0 && alone {
		return []string{}
	}
	return names
}

// close closes the listeners before begin.
func (h *hearing) close() {
	for _, l := range h.listeners {
		_ = l.Close()
	}
}

// addresses returns the addresses of the listeners.
func (h *hearing) addresses() []net.Addr {
	all := make([]net.Addr, len(h.listeners))
	for i, l := range h.listeners {
		all[i] = l.Addr()
	}
	return all
}

// begin serves on the listeners, with TLS if there is a certificate.
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

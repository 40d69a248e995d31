package server

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/budget"
	"github.com/realizar/realizar/internal/server/fields"
)

// middleware returns the handler that every request passes through on its way to next.
func (s *Server) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		set := s.settings.Load()
		x, w, r := newExchange(w, r, s.config.Dialects[0], &set.deadlines, s.stopped)
		defer s.end(x)
		x.settings = set
		x.memory = s.memory.Open(r.RemoteAddr, x.giveWay)
		x.work = budget.With(x.work, x.memory)
		s.follow(x)
		if s.admission.isDraining() {
			w.Header().Set("Connection", "close")
		}
		switch answered, err := set.origins.admit(w, r); {
		case err != nil:
			x.fail(err)
		case !answered:
			next.ServeHTTP(w, r)
		}
	})
}

// end logs a request that was answered.
func (s *Server) end(x *Exchange) {
	defer x.linger(x.close())
	for _, f := range s.ended {
		f(x)
	}
	level := slog.LevelInfo
	var failure *panicError
	switch {
	case x.status >= 500 && x.status != http.StatusServiceUnavailable:
		level = slog.LevelError
	case slices.Contains([]string{"GET /health", "GET /ready", "GET /metrics"}, x.Pattern):
		level = slog.LevelDebug // monitoring asks every few seconds
	}
	attrs := append([]slog.Attr{
		slog.String("request_id", x.id), slog.String("method", x.Method), slog.String("path", fields.Short([]byte(x.URL.Path))),
		slog.Int("status", x.status), slog.Duration("duration", time.Since(x.begun)), slog.Int64("bytes", x.bytes),
		slog.String("client", x.RemoteAddr),
	}, x.attrs...)
	if x.err != nil {
		attrs = append(attrs, slog.String("error", x.logged()))
		if as(x.err, &failure) {
			attrs = append(attrs, slog.String("stack", string(failure.stack)))
			level = slog.LevelError
		}
	}
	s.config.Logger.LogAttrs(x.Context(), level, "request", attrs...)
}

// origins are the web pages whose scripts may use the server.
type origins struct {
	all   bool
	list  []string
	other *http.CrossOriginProtection // refuses requests of other pages
	keys  bool                        // keys are needed, which other pages do not know
	hosts hosts
}

func newOrigins(list, names []string, keys bool) (*origins, error) {
	o := &origins{all: slices.Contains(list, "*"), list: list, other: http.NewCrossOriginProtection(), keys: keys, hosts: newHosts(names)}
	for _, origin := range list {
		if origin == "*" {
			continue
		}
		if err := o.other.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("server: an origin is * or like https://example.org: %w", err)
		}
	}
	return o, nil
}

// hostOf returns the host of an address, without its port.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return strings.Trim(address, "[]")
}

// plainHost reports whether an address is an IP address or localhost. Any other name may belong to
// a stranger, whose DNS record points to this machine (DNS rebinding).
func plainHost(address string) bool {
	host := strings.TrimSuffix(hostOf(address), ".")
	return strings.EqualFold(host, "localhost") || net.ParseIP(host) != nil
}

// hosts are the names of the server besides IP addresses and localhost; nil allows any name.
type hosts []string

func newHosts(names []string) hosts {
	if slices.Contains(names, "*") {
		return nil
	}
	return names
}

// admit returns an error if address is not one of the server's. Browsers always send one.
func (h hosts) admit(address string) error {
	if h == nil || address == "" || h.own(address) {
		return nil
	}
	return &Error{Status: http.StatusForbidden, Code: "host_not_allowed",
		Message: fmt.Sprintf("the server does not answer to the name %.100q; --allow-host adds names to localhost and IP addresses", hostOf(address))}
}

// own reports whether an address is certainly the server's: an IP address, localhost, or a
// configured name.
func (h hosts) own(address string) bool {
	return plainHost(address) || slices.ContainsFunc(h, func(name string) bool { return strings.EqualFold(name, hostOf(address)) })
}

// plainOrigin reports whether a page comes from a program on the reader's own machine: by http or
// https, from any port of localhost.
func plainOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Path != "" || u.User != nil {
		return false
	}
	name := u.Hostname()
	return name == "localhost" || name == "127.0.0.1" || name == "::1"
}

// admit sets the CORS headers with which browsers let a page read the answer, answers preflight
// requests, and refuses requests that another page sends without a preflight.
func (o *origins) admit(w http.ResponseWriter, r *http.Request) (answered bool, err error) {
	if err := o.hosts.admit(r.Host); err != nil {
		return false, err
	}
	origin := r.Header.Get("Origin")
	if !o.all {
		w.Header().Add("Vary", "Origin")
	}
	if origin == "" {
		return false, nil
	}
	switch {
	case o.all:
		w.Header().Set("Access-Control-Allow-Origin", "*")
	case slices.Contains(o.list, origin), len(o.list) == 0 && plainOrigin(origin) && o.hosts.own(r.Host):
		w.Header().Set("Access-Control-Allow-Origin", origin)
	default:
		if o.other.Check(r) != nil || !o.keys && !o.hosts.own(r.Host) {
			return false, &Error{Status: http.StatusForbidden, Code: "origin_not_allowed",
				Message: fmt.Sprintf("web pages of %s may not use this server; --cors allows others", origin)}
		}
		return false, nil
	}
	w.Header().Set("Access-Control-Expose-Headers", "X-Request-Id, X-Trace-Id, Retry-After, "+leftOutHeader)
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false, nil
	}
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	if asked := r.Header.Get("Access-Control-Request-Headers"); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked)
	}
	h.Set("Access-Control-Max-Age", "86400")
	w.WriteHeader(http.StatusNoContent)
	return true, nil
}

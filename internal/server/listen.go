package server

import (
	"log/slog"
	"net/http"
	"sync/atomic"
)

// maxHeader is the longest header of a request.
const maxHeader = 64 << 10

// HTTP is a server of net/http for h, with limits against clients that are slow or say
// too much before they come to the point.
// Its listener is to be one of [Connections.Listen] for c.
func HTTP(h http.Handler, c *Connections, times Deadlines, logger *slog.Logger) *http.Server {
	_ = times.complete() // what is wrong with them is said where they come from
	return &http.Server{
		Handler: h, ConnContext: c.ConnContext, ReadHeaderTimeout: times.Header, MaxHeaderBytes: maxHeader, IdleTimeout: times.Idle,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // of connections, which clients break at will
	}
}

// Loading stands for a server while its model is being loaded: it says that the process
// is there, shows the page, which waits, and answers everything else with 503.
type Loading struct {
	// These are those of the server that is to come.
	Dialects  []Dialect
	Deadlines Deadlines
	Hosts     []string
	Page      Page

	loaded atomic.Pointer[http.Handler]
}

// Loaded makes h answer from now on.
func (l *Loading) Loaded(h http.Handler) { l.loaded.Store(&h) }

func (l *Loading) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := l.loaded.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	times := l.Deadlines
	_ = times.complete()
	x, w, r := newExchange(w, r, l.Dialects[0], &times, nil)
	defer func() { x.linger(x.close()) }()
	if err := newHosts(l.Hosts).admit(r.Host); err != nil {
		x.fail(err)
		return
	}
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		switch {
		case r.URL.Path == "/health":
			writeJSON(w, http.StatusOK, []byte(`{"status":"loading"}`))
			return
		case l.Page != nil && (r.URL.Path != "/" || acceptsHTML(r)) && l.Page.Serve(w, r):
			return
		}
	}
	x.fail(errLoading)
}

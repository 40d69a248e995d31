package server

import (
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server/promtext"
)

// maxHeader is the maximum size of a request's header in bytes.
const maxHeader = 64 << 10

// HTTP returns a server of net/http for h, with limits against clients that are slow or send large
// headers. Its listener must come from [Connections.Listen] of c.
func HTTP(h http.Handler, c *Connections, times Deadlines, logger *slog.Logger) *http.Server {
	_ = times.complete() // errors in times are reported by their source
	return &http.Server{
		Handler: h, ConnContext: c.ConnContext, ReadHeaderTimeout: times.Header, MaxHeaderBytes: maxHeader, IdleTimeout: times.Idle,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // errors of connections, which clients break at will
	}
}

// Loading stands in for a server while its model is being loaded: it answers that the process is
// alive, serves the page, which waits, and the state of the models as a metric, and answers
// everything else with 503.
type Loading struct {
	// The same values as those of the server to come.
	Dialects  []Dialect
	Deadlines Deadlines
	Hosts     []string
	Page      Page
	Models    []string // the names of the models that are being loaded

	loaded atomic.Pointer[http.Handler]
}

// Loaded passes all requests to h from now on.
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
		case r.URL.Path == "/metrics":
			l.showState(w)
			return
		case l.Page != nil && (r.URL.Path != "/" || acceptsHTML(r)) && l.Page.Serve(w, r):
			return
		}
	}
	x.fail(errLoading)
}

// showState writes the metric of the models' state: a server whose scrapes fail counts as down.
func (l *Loading) showState(w http.ResponseWriter) {
	b := modelState.AppendHead(nil)
	for _, name := range l.Models {
		b = appendState(b, name, pool.Loading)
	}
	w.Header().Set("Content-Type", promtext.ContentType)
	_, _ = w.Write(b) // a client that is gone needs none
}

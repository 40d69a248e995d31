package server

import (
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// The limits of what comes before a request's body.
const (
	headerTimeout = 10 * time.Second
	maxHeader     = 64 << 10
	idleTimeout   = 2 * time.Minute
)

// HTTP is a server of net/http for h, with limits against clients that are slow or say
// too much before they come to the point.
func HTTP(h http.Handler, logger *slog.Logger) *http.Server {
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, MaxHeaderBytes: maxHeader, IdleTimeout: idleTimeout,
		ErrorLog: slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // of connections, which clients break at will
	}
}

// Loading stands for a server while its model is being loaded: it says that the process
// is there, and answers everything else with 503.
type Loading struct {
	// Dialects are those of the server that is to come.
	Dialects []Dialect

	loaded atomic.Pointer[http.Handler]
}

// Loaded makes h answer from now on.
func (l *Loading) Loaded(h http.Handler) { l.loaded.Store(&h) }

func (l *Loading) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h := l.loaded.Load(); h != nil {
		(*h).ServeHTTP(w, r)
		return
	}
	x, w, r := newExchange(w, r, l.Dialects[0], defaultWriteTimeout)
	if r.URL.Path == "/health" && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
		writeJSON(w, http.StatusOK, []byte(`{"status":"loading"}`))
		return
	}
	x.fail(errLoading)
}

// Package watch reads a server's metrics again and again, and says what went on
// between two readings: rates, shares and percentiles. It knows the names that
// realizar's server shows, most of which are vLLM's, so that it can watch such servers,
// too. The server is hostile: what it sends is bounded, and every number is one that
// makes sense or is none (NaN).
package watch

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/load"
)

// maxBody is the largest page of metrics that is read, in bytes. A page of realizar's
// has 20 kB for each model.
const maxBody = 8 << 20

// A Watcher reads the metrics of one server.
type Watcher struct{ client *load.Client }

// New watches the server at an address such as http://127.0.0.1:8080, with or without
// the path of its API (/v1) or that of its metrics. What is no address is an error that
// is [load.ErrOptions].
func New(address, key string) (*Watcher, error) {
	c, err := load.NewClient(strings.TrimSuffix(strings.TrimRight(address, "/"), "/metrics"), key, http.DefaultTransport)
	if err != nil {
		return nil, err
	}
	return &Watcher{c}, nil
}

// Read is the server's metrics as they are now.
func (w *Watcher) Read(ctx context.Context) (*Sample, error) {
	header, body, err := w.client.Get(ctx, "/metrics", maxBody)
	if err != nil {
		return nil, err
	}
	now := time.Now()
	s, err := Parse(body, now)
	if err != nil {
		return nil, fmt.Errorf("what is at /metrics cannot be read: %w", err)
	}
	clock, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		clock = now // as good as the server's, where that is of this machine
	}
	s.Up = s.up(clock)
	return s, nil
}

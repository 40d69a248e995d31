// Package watch reads a server's metrics repeatedly, and computes rates, shares and percentiles for
// the time between two readings. It knows the names of realizar's metrics, most of which are
// vLLM's, so it can watch such servers, too. The server is hostile: what it sends is bounded, and a
// number that makes no sense is NaN.
package watch

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/realizar/realizar/internal/load"
)

// maxBody is the largest page of metrics that is read, in bytes. A page of realizar's has 20 kB for
// each model.
const maxBody = 8 << 20

// A Watcher reads the metrics of one server.
type Watcher struct{ client *load.Client }

// New returns a watcher of the server at an address such as http://127.0.0.1:8080, with or without
// the path of its API (/v1) or of its metrics. A malformed address gives an error that wraps
// [load.ErrOptions].
func New(address, key string) (*Watcher, error) {
	c, err := load.NewClient(strings.TrimSuffix(strings.TrimRight(address, "/"), "/metrics"), key, http.DefaultTransport)
	if err != nil {
		return nil, err
	}
	return &Watcher{c}, nil
}

// Read returns the server's present metrics.
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
		clock = now // as good as the server's clock, if both are on one machine
	}
	s.Up = s.up(clock)
	return s, nil
}

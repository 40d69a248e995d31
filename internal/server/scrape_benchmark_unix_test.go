//go:build unix

package server_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/pool"
	"github.com/realizar/realizar/internal/server"
)

// BenchmarkScrape measures GET /metrics of an idle server, of one with 64 running requests, whose
// clients read nothing, and of one with 16 loaded models.
func BenchmarkScrape(b *testing.B) {
	b.Run("idle", func(b *testing.B) {
		serveNamed(b, []string{"m"}, server.Config{}, realizar.Options{}, modeltest.Llama(b)).scrape(b)
	})
	b.Run("requests", func(b *testing.B) {
		const running = 64
		s := serveNamed(b, []string{"m"}, server.Config{Parallel: running}, realizar.Options{Parallel: running}, modeltest.Llama(b, modeltest.Context(256)))
		started, ended, finish := make(chan error), make(chan struct{}), make(chan struct{})
		for range running {
			go func() {
				defer func() { ended <- struct{}{} }()
				answer := s.model.Generate(context.Background(), &realizar.Request{Prompt: "hello", Generation: realizar.Generation{MaxTokens: new(200), IgnoreEnd: true}})
				for _, err := range answer {
					started <- err
					<-finish
					return
				}
			}()
		}
		for range running {
			if err := <-started; err != nil {
				b.Fatal(err)
			}
		}
		for last := uint64(0); s.model.Metrics().Steps != last; time.Sleep(50 * time.Millisecond) { // until all wait for their clients
			last = s.model.Metrics().Steps
		}
		if m := s.model.Metrics(); m.Running != running {
			b.Fatalf("%d answers are running, want %d", m.Running, running)
		}
		s.scrape(b)
		close(finish)
		for range running {
			<-ended
		}
	})
	b.Run("models", func(b *testing.B) {
		path := modeltest.Llama(b)
		c := pool.Config[*server.Model]{Loader: sameFile(path), Limits: pool.Need{"cpu": 1 << 30}, MaxWaiting: 1}
		for i := range 16 {
			c.Models = append(c.Models, pool.Spec{Name: fmt.Sprintf("org/model-%d", i)})
		}
		models, err := pool.New(c)
		if err != nil {
			b.Fatal(err)
		}
		s := serveModels(b, models, server.Config{})
		b.Cleanup(func() { _ = models.Close() })
		for _, m := range c.Models {
			if err := s.postWith(b.Context(), "/v1/completions", fmt.Sprintf(`{"model": %q, "prompt": "hello", "max_tokens": 3}`, m.Name)); err != nil {
				b.Fatal(err)
			}
		}
		s.scrape(b)
	})
}

// A sameFile loads every model from one file.
type sameFile string

func (f sameFile) Estimate(context.Context, string) (pool.Need, error) {
	return pool.Need{"cpu": 1}, nil
}

func (f sameFile) Load(ctx context.Context, _ string, _ pool.Need) (*server.Model, error) {
	m, err := realizar.Open(ctx, string(f), realizar.Options{Device: "cpu"})
	return &server.Model{Model: m}, err
}

// scrape measures GET /metrics, through the handler. cpu-ns/op is the processor time of a scrape,
// which other programs of the machine disturb less than ns/op.
func (s *service) scrape(b *testing.B) {
	b.ReportAllocs()
	begun := processorTime(b)
	for b.Loop() {
		w := unread{http.Header{}, http.StatusOK}
		s.server.Handler().ServeHTTP(&w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if w.status != http.StatusOK {
			b.Fatal(w.status)
		}
	}
	b.ReportMetric(float64(processorTime(b)-begun)/float64(b.N), "cpu-ns/op")
}

// An unread is an answer whose body nobody reads.
type unread struct {
	header http.Header
	status int
}

func (u *unread) Header() http.Header         { return u.header }
func (u *unread) WriteHeader(status int)      { u.status = status }
func (u *unread) Write(p []byte) (int, error) { return len(p), nil }

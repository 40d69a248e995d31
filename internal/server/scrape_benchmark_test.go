package server_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// BenchmarkScrape measures GET /metrics.
func BenchmarkScrape(b *testing.B) {
	s := serveNamed(b, []string{"m"}, server.Config{}, realizar.Options{}, modeltest.Llama(b))
	for b.Loop() {
		w := httptest.NewRecorder()
		s.server.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		if w.Code != http.StatusOK {
			b.Fatal(w.Code, w.Body)
		}
	}
}

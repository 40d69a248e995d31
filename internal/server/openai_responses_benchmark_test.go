package server

import (
	"io"
	"net/http/httptest"
	"testing"

	"github.com/realizar/realizar"
)

// What a token of a response takes of the server on its way to a client over the
// network.
func BenchmarkStreamedResponseToken(b *testing.B) {
	s := benchmarked(b)
	e := &realizar.Event{Text: " word", Tokens: []int32{5}}
	s.handle("GET /test", func(x *exchange) error {
		r := &responsesRequest{settings: s.newSettings()}
		a := &responseAnswer{server: s, object: s.newResponse(r)}
		a.stream = &responseStream{stream: s.stream(x), object: a.object}
		b.ResetTimer()
		for range b.N {
			if err := a.take(x, e); err != nil {
				return err
			}
		}
		b.StopTimer()
		return nil
	})
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	b.ReportAllocs()
	resp, err := server.Client().Get(server.URL + "/test")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < int64(b.N)*100 {
		b.Fatal(n, err)
	}
}

package openai

import (
	"fmt"
	"io"
	"net/http/httptest"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/servertest"
)

// A testDialect is OpenAI's with an endpoint of a test.
type testDialect struct {
	Dialect
	handle server.Handler
}

func (d testDialect) Routes() []server.Route {
	return []server.Route{{Pattern: "GET /test", Handle: servertest.Held(d.handle)}}
}

// benchmarkDeltas sends the same Delta again and again by a writer to a client over the
// network.
func benchmarkDeltas(b *testing.B, d *server.Delta, newWriter func(x *server.Exchange) server.Writer) {
	m, err := realizar.Open(b.Context(), modeltest.Llama(b), realizar.Options{Device: "cpu"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close() })
	s, err := server.New(servertest.One(b, m, "m"), server.Config{Parallel: 16, Dialects: []server.Dialect{testDialect{handle: func(x *server.Exchange) error {
		w := newWriter(x)
		if err := w.Begin([][]int32{{1}}); err != nil {
			return err
		}
		b.ResetTimer()
		for range b.N {
			if err := w.Delta(d); err != nil {
				return err
			}
		}
		b.StopTimer()
		return nil
	}}}})
	if err != nil {
		b.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	b.ReportAllocs()
	resp, err := h.Client().Get(h.URL + "/test")
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	if n, err := io.Copy(io.Discard, resp.Body); err != nil || n < int64(b.N)*100 {
		b.Fatal(n, err)
	}
}

// What a token takes of the server on its way to a client over the network.
func BenchmarkStreamedToken(b *testing.B) {
	for _, scores := range []bool{false, true} {
		b.Run(fmt.Sprintf("logprobs=%v", scores), func(b *testing.B) {
			d := &server.Delta{Text: " word"}
			if scores {
				score := realizar.TokenLogProb{Token: 5, LogProb: -1.25}
				for id := range int32(5) {
					score.Top = append(score.Top, realizar.TopLogProb{Token: id, LogProb: -float64(id) / 3})
				}
				d.LogProbs = []realizar.TokenLogProb{score}
			}
			benchmarkDeltas(b, d, func(x *server.Exchange) server.Writer {
				r := &chatRequest{settings: newSettings(x), logProbs: scores}
				r.stream = true
				return &chatWriter{writer: newWriter(x, &r.settings, "chatcmpl-", "chat.completion.chunk", appendChatUsage), request: r}
			})
		})
	}
}

// The same of a response.
func BenchmarkStreamedResponseToken(b *testing.B) {
	benchmarkDeltas(b, &server.Delta{Text: " word"}, func(x *server.Exchange) server.Writer {
		r := &responsesRequest{settings: newSettings(x)}
		r.stream = true
		return newResponsesWriter(x, r)
	})
}

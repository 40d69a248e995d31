package server

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
)

func benchmarked(b *testing.B) *Server {
	b.Helper()
	m, err := realizar.Open(b.Context(), modeltest.Llama(b), realizar.Options{Device: "cpu"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = m.Close() })
	s, err := New(m, Config{Names: []string{"m"}, Parallel: 16})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

// What a short request takes of the server beside the model's work, its chat template
// and its tokenizer: server-µs.
func BenchmarkRequest(b *testing.B) {
	s := benchmarked(b)
	const body = `{"model":"m","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"hello"}],"max_tokens":1,"temperature":0,"stream":%v}`
	messages := []chat.Message{{Role: "system", Content: "You are a helpful assistant."}, {Role: "user", Content: "hello"}}
	for _, stream := range []bool{false, true} {
		b.Run(fmt.Sprintf("stream=%v", stream), func(b *testing.B) {
			text := fmt.Sprintf(body, stream)
			var served, model time.Duration
			for b.Loop() {
				begun := time.Now()
				w := httptest.NewRecorder()
				s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(text)))
				if w.Code != 200 {
					b.Fatal(w.Code, w.Body)
				}
				served += time.Since(begun)
				begun = time.Now()
				r := &realizar.ChatRequest{Messages: messages, Generation: realizar.Generation{MaxTokens: new(1)}}
				for _, err := range s.model.Chat(b.Context(), r) {
					if err != nil {
						b.Fatal(err)
					}
				}
				model += time.Since(begun)
			}
			b.ReportMetric(float64((served-model).Microseconds())/float64(b.N), "server-µs")
		})
	}
}

// What a token takes of the server on its way to a client over the network.
func BenchmarkStreamedToken(b *testing.B) {
	for _, scores := range []bool{false, true} {
		b.Run(fmt.Sprintf("logprobs=%v", scores), func(b *testing.B) {
			s := benchmarked(b)
			e := &realizar.Event{Text: " word", Tokens: []int32{5}}
			r := &chatRequest{settings: s.newSettings(), logProbs: scores}
			if scores {
				score := realizar.TokenLogProb{Token: 5, LogProb: -1.25}
				for id := range int32(5) {
					score.Top = append(score.Top, realizar.TopLogProb{Token: id, LogProb: -float64(id) / 3})
				}
				e.LogProbs = []realizar.TokenLogProb{score}
			}
			s.handle("GET /test", func(x *exchange) error {
				a := &chatAnswer{server: s, request: r, id: newID("chatcmpl-"), created: time.Now().Unix(), stream: s.stream(x)}
				a.prepare()
				b.ResetTimer()
				for range b.N {
					if err := a.take(e); err != nil {
						return err
					}
				}
				b.StopTimer()
				return a.finish()
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
		})
	}
}

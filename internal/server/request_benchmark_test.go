package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// What a short request takes of the server beside the model's work, its chat template
// and its tokenizer: server-µs.
func BenchmarkRequest(b *testing.B) {
	s := serveNamed(b, []string{"m"}, server.Config{}, realizar.Options{}, modeltest.Llama(b))
	const body = `{"model":"m","messages":[{"role":"system","content":"You are a helpful assistant."},{"role":"user","content":"hello"}],"max_tokens":1,"temperature":0,"stream":%v}`
	messages := []chat.Message{{Role: "system", Content: "You are a helpful assistant."}, {Role: "user", Content: "hello"}}
	for _, stream := range []bool{false, true} {
		b.Run(fmt.Sprintf("stream=%v", stream), func(b *testing.B) {
			text := fmt.Sprintf(body, stream)
			var served, model time.Duration
			for b.Loop() {
				begun := time.Now()
				w := httptest.NewRecorder()
				s.server.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(text)))
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

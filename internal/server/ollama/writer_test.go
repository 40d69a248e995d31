package ollama

import (
	"errors"
	"flag"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/servertest"
)

var golden = flag.Bool("golden", false, "write testdata anew")

// A testDialect is Ollama's with an endpoint of a test.
type testDialect struct {
	Dialect
	handle server.Handler
}

func (d testDialect) Routes() []server.Route {
	return []server.Route{{Pattern: "GET /test", Handle: servertest.Held(d.handle)}}
}

// handled is what a client is sent of a handler.
func handled(tb testing.TB, handle server.Handler) string {
	tb.Helper()
	m, err := realizar.Open(tb.Context(), modeltest.Llama(tb), realizar.Options{Device: "cpu"})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = m.Close() })
	s, err := server.New(servertest.One(tb, m, "m"), server.Config{Parallel: 16, Dialects: []server.Dialect{testDialect{handle: handle}}})
	if err != nil {
		tb.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	resp, err := h.Client().Get(h.URL + "/test")
	if err != nil {
		tb.Fatal(err)
	}
	defer resp.Body.Close()
	defer h.Client().CloseIdleConnections()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

func call(n int, id, name, arguments string) []realizar.ToolCallPart {
	return []realizar.ToolCallPart{{Call: n, ID: id, Name: name, Arguments: arguments}}
}

func ended(reason realizar.FinishReason) *realizar.Finish {
	return &realizar.Finish{Reason: reason, Timings: realizar.Timings{Prefill: 2 * time.Millisecond, Decode: 3 * time.Millisecond}}
}

// What changes from one run to the next.
var changes = regexp.MustCompile(`("created_at":")[^"]*|("total_duration":)\d+`)

// TestGolden: streams, line for line.
func TestGolden(t *testing.T) {
	score := realizar.TokenLogProb{Token: 65, LogProb: -1.25, Top: []realizar.TopLogProb{{Token: 65, LogProb: -1.25}, {Token: 66, LogProb: -2}}}
	for name, test := range map[string]struct {
		shape  shape
		logs   bool
		deltas []server.Delta
		fails  bool
	}{
		"chat":     {chatShape, false, []server.Delta{{Text: "Hi"}, {}, {Text: " \"you\"\n\u2028<"}, {Finish: ended(realizar.FinishStop)}}, false},
		"generate": {generateShape, false, []server.Delta{{Reasoning: "hm"}, {Text: "Hi"}, {Text: " there", Finish: ended(realizar.FinishLength)}}, false},
		"thought":  {chatShape, false, []server.Delta{{Reasoning: "hm"}, {Reasoning: ".", Text: "Hi"}, {Finish: ended(realizar.FinishStop)}}, false},
		"calls": {chatShape, false, []server.Delta{
			{Text: "Look: "}, {ToolCalls: call(0, "a1", "f", "")}, {ToolCalls: call(0, "", "", "{\n \"x\": ")}, {ToolCalls: call(0, "", "", "[1, 2]}")},
			{ToolCalls: call(1, "b2", "g", "{}")}, {ToolCalls: []realizar.ToolCallPart{{Call: 2, ID: "c3", Name: "h"}, {Call: 2, Arguments: `{"a":"}`}, {Call: 2, Broken: true}}},
			{Text: "<h>"}, {ToolCalls: call(2, "d4", "k", `{"z":"\u00e9"}`), Finish: ended(realizar.FinishCalls)},
		}, false},
		"cut":      {chatShape, false, []server.Delta{{ToolCalls: call(0, "a1", "f", `{"x":`)}, {Finish: ended(realizar.FinishLength)}}, false},
		"logprobs": {generateShape, true, []server.Delta{{Text: "A", LogProbs: []realizar.TokenLogProb{score}}, {LogProbs: []realizar.TokenLogProb{{Token: 66}, {Token: 67}}}, {Finish: ended(realizar.FinishStop)}}, false},
		"error":    {chatShape, false, []server.Delta{{Text: "Hi"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got := handled(t, func(x *server.Exchange) error {
				s := newSettings(x)
				s.model, s.logProbs = "m", test.logs
				w := newWriter(x, &s, test.shape).begin()
				if err := w.Begin([][]int32{{1}}); err != nil {
					return err
				}
				for i := range test.deltas {
					if err := w.Delta(&test.deltas[i]); err != nil {
						return err
					}
				}
				if test.fails {
					return &server.Error{Status: 500, Message: "it breaks"}
				}
				return w.End(&server.Result{Usage: realizar.Usage{PromptTokens: 11, CompletionTokens: 7}})
			})
			got = changes.ReplaceAllString(got, "${1}${2}0")
			path := filepath.Join("testdata", name+".jsonl")
			if *golden {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("%s (-want +got); -golden writes it\n%s", path, diff)
			}
		})
	}
}

// A request that holds too much ends with an error.
func TestReserve(t *testing.T) {
	got := handled(t, func(x *server.Exchange) error {
		s := newSettings(x)
		w := newWriter(x, &s, chatShape).begin()
		d := &server.Delta{ToolCalls: call(0, "", "", string(make([]byte, 1<<20)))}
		for range 1 << 10 {
			if err := w.Delta(d); err != nil {
				return err
			}
		}
		return errors.New("nothing refuses it")
	})
	if want := `{"error":"there is no memory for the request`; len(got) < len(want) || got[:len(want)] != want {
		t.Errorf("%s", got)
	}
}

// What a token takes of the server on its way to a client over the network.
func BenchmarkStreamedToken(b *testing.B) {
	b.ReportAllocs()
	handled(b, func(x *server.Exchange) error {
		s := newSettings(x)
		w := newWriter(x, &s, chatShape).begin()
		d := &server.Delta{Text: " word"}
		b.ResetTimer()
		for range b.N {
			if err := w.Delta(d); err != nil {
				return err
			}
		}
		b.StopTimer()
		return nil
	})
}

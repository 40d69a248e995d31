package openai

import (
	"encoding/json"
	"flag"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/servertest"
)

var update = flag.Bool("golden", false, "write the files of testdata anew")

// changing is what differs from one answer to the next: ids and times.
var changing = regexp.MustCompile(`(chatcmpl-|resp_|msg_|rs_|fc_)[A-Z2-7]+|("(?:created|created_at|completed_at)":)\d+`)

// turns are answers as events of the model.
var turns = map[string][]*server.Delta{
	"text": {{Text: "a"}, {Text: "b\n"}, {Finish: finish(realizar.FinishStop)}},
	"calls": {
		{Reasoning: "so"}, {Reasoning: " it", Text: "I look."},
		called(realizar.ToolCallPart{ID: "aaaaaaaaa", Name: "f"}), called(realizar.ToolCallPart{Arguments: `{"a":`}),
		called(realizar.ToolCallPart{Arguments: `1}`}, realizar.ToolCallPart{Call: 1, ID: "bbbbbbbbb", Name: "g", Arguments: "{"}),
		called(realizar.ToolCallPart{Call: 1, Arguments: `}`}), {Finish: finish(realizar.FinishCalls)},
	},
	"broken": {
		called(realizar.ToolCallPart{ID: "aaaaaaaaa", Name: "f", Arguments: "{"}),
		{Text: "<call>{x", ToolCalls: []realizar.ToolCallPart{{Broken: true}}}, {Text: "."}, {Finish: finish(realizar.FinishStop)},
	},
	"cut":    {{Reasoning: "so"}, {Finish: finish(realizar.FinishLength)}},
	"scores": {scored(1, ""), {Reasoning: "so", LogProbs: scored(2, "").LogProbs}, scored(3, ""), scored(4, "a"), {Finish: finish(realizar.FinishStop)}},
	"empty":  {{Finish: finish(realizar.FinishStop)}},
}

func finish(reason realizar.FinishReason) *realizar.Finish { return &realizar.Finish{Reason: reason} }

func called(parts ...realizar.ToolCallPart) *server.Delta { return &server.Delta{ToolCalls: parts} }

func scored(id int32, text string) *server.Delta {
	return &server.Delta{Text: text, LogProbs: []realizar.TokenLogProb{{Token: id, LogProb: -1}}}
}

// TestGolden: streams and whole answers are, to the byte, what testdata has.
func TestGolden(t *testing.T) {
	m, err := realizar.Open(t.Context(), modeltest.Llama(t), realizar.Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	writers := map[string]func(x *server.Exchange, stream, scores bool) server.Writer{
		"chat": func(x *server.Exchange, stream, scores bool) server.Writer {
			r := &chatRequest{settings: newSettings(x), logProbs: scores}
			r.stream, r.options.usage = stream, stream
			return &chatWriter{writer: newWriter(x, &r.settings, "chatcmpl-", "chat.completion.chunk", appendChatUsage), request: r}
		},
		"functions": func(x *server.Exchange, stream, scores bool) server.Writer {
			r := &chatRequest{settings: newSettings(x), logProbs: scores, functions: true}
			r.stream = stream
			return &chatWriter{writer: newWriter(x, &r.settings, "chatcmpl-", "chat.completion.chunk", appendChatUsage), request: r}
		},
		"response": func(x *server.Exchange, stream, scores bool) server.Writer {
			r := &responsesRequest{settings: newSettings(x), logProbs: scores}
			r.stream = stream
			return newResponsesWriter(x, r)
		},
		"summary": func(x *server.Exchange, stream, scores bool) server.Writer {
			r := &responsesRequest{settings: newSettings(x), logProbs: scores, summary: new("auto"), toolChoice: json.RawMessage(`"required"`)}
			r.stream = stream
			return newResponsesWriter(x, r)
		},
	}
	for kind, newWriter := range writers {
		for name, deltas := range turns {
			for suffix, stream := range map[string]bool{"": false, "-stream": true} {
				got := written(t, m, deltas, stream, func(x *server.Exchange) server.Writer { return newWriter(x, stream, name == "scores") })
				path := filepath.Join("testdata", kind+"-"+name+suffix+".txt")
				if *update {
					if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("%s (-want +got); go test ./internal/server/openai -run TestGolden -golden writes it\n%s", path, diff)
				}
			}
		}
	}
}

// written is what a writer makes of Deltas.
func written(t *testing.T, m *realizar.Model, deltas []*server.Delta, stream bool, newWriter func(x *server.Exchange) server.Writer) string {
	t.Helper()
	s, err := server.New(servertest.One(t, m, "m"), server.Config{Parallel: 1, Dialects: []server.Dialect{testDialect{handle: func(x *server.Exchange) error {
		w := newWriter(x)
		if err := w.Begin([][]int32{{1}}); err != nil {
			return err
		}
		var r server.Result
		r.Usage = realizar.Usage{PromptTokens: 3, CachedTokens: 1, CompletionTokens: 9, ReasoningTokens: 2}
		if !stream {
			var a server.Answer
			for _, d := range deltas {
				a.Add(d)
			}
			r.Answers = []server.Answer{a}
			return w.End(&r)
		}
		for _, d := range deltas {
			if err := w.Delta(d); err != nil {
				return err
			}
		}
		return w.End(&r)
	}}}})
	if err != nil {
		t.Fatal(err)
	}
	h := httptest.NewServer(s.Handler())
	defer h.Close()
	resp, err := h.Client().Get(h.URL + "/test")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%d %s %v", resp.StatusCode, body, err)
	}
	return changing.ReplaceAllString(string(body), "$1${2}0")
}

package anthropic

import (
	"errors"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/servertest"
)

// A testDialect is Anthropic's with an endpoint of a test.
type testDialect struct {
	Dialect
	handle server.Handler
}

func (d testDialect) Routes() []server.Route {
	return []server.Route{{Pattern: "GET /test", Handle: servertest.Held(d.handle)}}
}

// written is what a client gets of an answer that handle writes.
func written(t testing.TB, handle server.Handler) string {
	t.Helper()
	m, err := realizar.Open(t.Context(), modeltest.Llama(t), realizar.Options{Device: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close() //nolint:errcheck // the test is over
	s, err := server.New(servertest.One(t, m, "m"), server.Config{Parallel: 16, Dialects: []server.Dialect{testDialect{handle: handle}}})
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
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// streamer is a writer of a stream of at most ten tokens.
func streamer(x *server.Exchange, display string) *writer {
	return newWriter(x, &request{maxTokens: new(10), stream: true, thinking: thinking{display: display}})
}

// What a model can do to a stream: go from anything to anything, break calls off, and fail.
func TestEvents(t *testing.T) {
	calls := func(parts ...realizar.ToolCallPart) server.Delta { return server.Delta{ToolCalls: parts} }
	finish := func(reason realizar.FinishReason, tokens int) server.Delta {
		return server.Delta{Finish: &realizar.Finish{Reason: reason, Usage: realizar.Usage{CompletionTokens: tokens}}}
	}
	for _, test := range []struct {
		name, display string
		deltas        []server.Delta
		err           error
		want          string
	}{
		{"all", "", []server.Delta{{Reasoning: "a"}, {Reasoning: "b", Text: "c"}, {Text: "d"}, calls(realizar.ToolCallPart{ID: "1", Name: "f"}, realizar.ToolCallPart{Arguments: "{"}), calls(realizar.ToolCallPart{Arguments: "}"},
			realizar.ToolCallPart{Call: 1, ID: "2", Name: "g", Arguments: "{}"}), finish(realizar.FinishCalls, 9)}, nil,
			`+thinking thinking_delta thinking_delta signature_delta -0 +text text_delta text_delta -1 +tool_use input_json_delta input_json_delta -2 +tool_use input_json_delta -3 tool_use`},
		{"nothing", "", []server.Delta{finish(realizar.FinishStop, 1)}, nil, `end_turn`},
		{"a broken call", "", []server.Delta{{Text: "a"}, calls(realizar.ToolCallPart{ID: "1", Name: "f", Arguments: "{"}), {Text: "{x", ToolCalls: []realizar.ToolCallPart{{Broken: true}}}, calls(realizar.ToolCallPart{Arguments: "late"}), finish(realizar.FinishStop, 4)}, nil,
			`+text text_delta -0 +tool_use input_json_delta -1 +text text_delta -2 end_turn`},
		{"a call that is broken where it ends", "", []server.Delta{calls(realizar.ToolCallPart{ID: "1", Name: "f", Arguments: "{"}), calls(realizar.ToolCallPart{Broken: true}), finish(realizar.FinishLength, 10)}, nil,
			`+tool_use input_json_delta -0 max_tokens`},
		{"thoughts again", "omitted", []server.Delta{{Reasoning: "a"}, {Text: "b"}, {Reasoning: "c"}, {Text: "d"}, finish(realizar.FinishLength, 4)}, nil,
			`+thinking signature_delta -0 +text text_delta -1 +thinking signature_delta -2 +text text_delta -3 model_context_window_exceeded`},
		{"an error", "", []server.Delta{{Text: "a"}}, errors.New("boom"), `+text text_delta error`},
	} {
		text := written(t, func(x *server.Exchange) error {
			w := streamer(x, test.display)
			if err := w.Begin([][]int32{{1, 2}}); err != nil {
				return err
			}
			for i := range test.deltas {
				if err := w.Delta(&test.deltas[i]); err != nil {
					return err
				}
			}
			if test.err != nil {
				return test.err
			}
			return w.End(&server.Result{Usage: realizar.Usage{PromptTokens: 2}})
		})
		if diff := cmp.Diff(test.want, shape(text)); diff != "" {
			t.Errorf("%s (-want +got)\n%s\n%s", test.name, diff, text)
		}
	}
}

// shape is what a stream has, in short.
func shape(text string) string {
	var all []string
	after := func(data, mark string) string {
		_, rest, _ := strings.Cut(data, mark)
		rest, _, _ = strings.Cut(rest, "\"")
		return strings.Trim(rest, ":}")
	}
	for event := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		name, data, _ := strings.Cut(strings.TrimPrefix(event, "event: "), "\ndata: ")
		switch name {
		case "content_block_start":
			all = append(all, "+"+after(data, `"content_block":{"type":"`))
		case "content_block_delta":
			all = append(all, after(data, `"delta":{"type":"`))
		case "content_block_stop":
			all = append(all, "-"+after(data, `"index"`))
		case "message_delta":
			all = append(all, after(data, `"stop_reason":"`))
		case "error":
			all = append(all, "error")
		}
	}
	return strings.Join(all, " ")
}

// A whole answer has the blocks of its parts, and JSON for the input of every call.
func TestWhole(t *testing.T) {
	answer := server.Answer{
		Text: []byte("b"), Reasoning: []byte(strings.Repeat("a", 100<<10)), Finish: &realizar.Finish{Reason: realizar.FinishStop, StopString: "</s>"},
		ToolCalls: []server.ToolCall{{ID: "1", Name: "f", Arguments: []byte(`{"x": 1}`)}, {ID: "2", Name: "g"}, {ID: "3", Name: "h", Arguments: []byte(`{"x": "`)}},
	}
	for _, display := range []string{"", "omitted"} {
		got := written(t, func(x *server.Exchange) error {
			w := streamer(x, display)
			w.stream, w.id = nil, "msg_1"
			return w.End(&server.Result{Answers: []server.Answer{answer}, Usage: realizar.Usage{PromptTokens: 9, CachedTokens: 4, CompletionTokens: 3, ReasoningTokens: 1}})
		})
		thought := `{"type":"thinking","thinking":"` + string(answer.Reasoning) + `","signature":"realizar"}`
		if display == "omitted" {
			thought = `{"type":"thinking","thinking":"","signature":"` + string(appendSignature(nil, answer.Reasoning, true)) + `"}`
		}
		want := `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[` + thought + `,{"type":"text","text":"b"},` +
			`{"type":"tool_use","id":"1","name":"f","input":{"x": 1}},{"type":"tool_use","id":"2","name":"g","input":{}},{"type":"tool_use","id":"3","name":"h","input":{}}],` +
			`"stop_reason":"stop_sequence","stop_sequence":"</s>","stop_details":null,"usage":{"input_tokens":5,"cache_creation_input_tokens":0,"cache_read_input_tokens":4,"output_tokens":3,"output_tokens_details":{"thinking_tokens":1},"service_tier":"standard"}}`
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("display %q (-want +got)\n%s", display, diff)
		}
	}
}

// What a token takes of the server on its way to a client over the network.
func BenchmarkStreamedToken(b *testing.B) {
	d := server.Delta{Text: " word"}
	b.ReportAllocs()
	text := written(b, func(x *server.Exchange) error {
		w := streamer(x, "")
		if err := w.Begin([][]int32{{1}}); err != nil {
			return err
		}
		b.ResetTimer()
		for range b.N {
			if err := w.Delta(&d); err != nil {
				return err
			}
		}
		b.StopTimer()
		return nil
	})
	if len(text) < 100*b.N {
		b.Fatal(len(text))
	}
}

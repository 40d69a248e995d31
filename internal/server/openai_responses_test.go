package server_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// response is the part of the answer of POST /v1/responses that the tests check.
type response struct {
	ID         string  `json:"id"`
	Object     string  `json:"object"`
	CreatedAt  float64 `json:"created_at"`
	Completed  *int64  `json:"completed_at"`
	Status     string  `json:"status"`
	Error      *struct{ Code, Message string }
	Incomplete *struct{ Reason string } `json:"incomplete_details"`
	Model      string
	Output     []outputItem
	Metadata   map[string]string
	Store      *bool
	Tools      []json.RawMessage
	ToolChoice any `json:"tool_choice"`
	Truncation string
	Usage      *struct {
		Input   int `json:"input_tokens"`
		Output  int `json:"output_tokens"`
		Total   int `json:"total_tokens"`
		Details struct {
			Cached int `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		OutputDetails struct {
			Reasoning int `json:"reasoning_tokens"`
		} `json:"output_tokens_details"`
	}
	Timings json.RawMessage
}

type outputItem struct {
	Type, ID, Status, Role string
	Content, Summary       []outputPart
	CallID                 string `json:"call_id"`
	Name, Arguments        string
}

type outputPart struct {
	Type, Text  string
	Annotations []json.RawMessage
	LogProbs    []outputLogProb
}

type outputLogProb struct {
	Token   string
	Bytes   []int
	LogProb float64
	Top     []outputLogProb `json:"top_logprobs"`
}

// respond sends a request for a response, with the given fields and the model.
func (s *service) respond(fields string) (r response) {
	s.t.Helper()
	got := s.post("/v1/responses", `{"model": "small", `+fields+`}`)
	if got.status != 200 {
		s.t.Fatalf("%s: %d %s", fields, got.status, got.body)
	}
	if err := json.Unmarshal([]byte(got.body), &r); err != nil {
		s.t.Fatal(err)
	}
	if r.Object != "response" || r.Model != name || !strings.HasPrefix(r.ID, "resp_") || r.Store == nil || *r.Store || r.Error != nil || r.Truncation != "disabled" {
		s.t.Errorf("%s: %s", fields, got.body)
	}
	return r
}

// said returns the model's greedy answer to messages, without the server.
func (s *service) said(n int, tools []chat.Tool, messages ...chat.Message) (text string, finish realizar.Finish) {
	s.t.Helper()
	for e, err := range s.model.Chat(s.t.Context(), &realizar.ChatRequest{
		Messages: messages, Tools: tools, Generation: realizar.Generation{MaxTokens: &n},
	}) {
		if err != nil {
			s.t.Fatal(err)
		}
		text += e.Text
		if e.Finish != nil {
			finish = *e.Finish
		}
	}
	return text, finish
}

const greedy = `"temperature": 0, "max_output_tokens": 12`

func TestResponses(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Template(toolTemplate))
	user := func(text string) chat.Message { return chat.Message{Role: "user", Content: text} }
	system := func(text string) chat.Message { return chat.Message{Role: "system", Content: text} }
	assistant := func(text string) chat.Message { return chat.Message{Role: "assistant", Content: text} }
	calls := chat.Message{Role: "assistant", Content: "wait", ToolCalls: []chat.ToolCall{
		{ID: "c1", Name: "f", Arguments: json.RawMessage(`{"a":1}`)}, {ID: "c2", Name: "g", Arguments: json.RawMessage(`{}`)},
	}}
	for _, test := range []struct {
		fields   string
		messages []chat.Message
	}{
		{`"input": "hello"`, []chat.Message{user("hello")}},
		{`"input": "hello", "instructions": "be kind"`, []chat.Message{system("be kind"), user("hello")}},
		{`"input": [{"role": "user", "content": "hello"}]`, []chat.Message{user("hello")}},
		{`"input": [{"type": "message", "role": "developer", "content": "be kind"}, {"role": "user", "content": [{"type": "input_text", "text": "hello"}, {"type": "input_text", "text": "world"}]},
			{"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "yes", "annotations": [], "logprobs": []}]}, {"role": "user", "content": "no"}]`,
			[]chat.Message{system("be kind"), user("hello\nworld"), assistant("yes"), user("no")}},
		{`"input": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "wait"}, {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"a\":1}"},
			{"type": "function_call", "id": "fc_2", "call_id": "c2", "name": "g", "arguments": "{}", "status": "completed"},
			{"type": "function_call_output", "call_id": "c1", "output": "one"}, {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]}]`,
			[]chat.Message{user("hello"), calls, {Role: "tool", Content: "one", ToolCallID: "c1"}, {Role: "tool", Content: "two", ToolCallID: "c2"}}},
	} {
		want, finish := s.said(12, nil, test.messages...)
		r := s.respond(test.fields + "," + greedy)
		if len(r.Output) != 1 || r.Output[0].Type != "message" || r.Output[0].Role != "assistant" || !strings.HasPrefix(r.Output[0].ID, "msg_") || len(r.Output[0].Content) != 1 {
			t.Fatalf("%s: output %+v", test.fields, r.Output)
		}
		if p := r.Output[0].Content[0]; p.Text != want || p.Type != "output_text" || p.Annotations == nil {
			t.Errorf("%s: %+v, want %q", test.fields, p, want)
		}
		if r.Usage == nil || r.Usage.Input != finish.Usage.PromptTokens || r.Usage.Output != 12 || r.Usage.Total != finish.Usage.PromptTokens+12 {
			t.Errorf("%s: usage %+v, want %+v", test.fields, r.Usage, finish.Usage)
		}
		if r.Status != "incomplete" || r.Output[0].Status != "incomplete" || r.Incomplete == nil || r.Incomplete.Reason != "max_output_tokens" || r.Completed != nil {
			t.Errorf("%s: an answer that was cut is %q, %q for %+v", test.fields, r.Status, r.Output[0].Status, r.Incomplete)
		}
	}
}

// toolTemplate accepts any role, and tools.
const toolTemplate = `{% if tools %}{% for t in tools %}[{{ t.function.name }}: {{ t.function.parameters | tojson }}]{% endfor %}{% endif %}` +
	`{% for m in messages %}<|im_start|>{{ m.role }} {{ m.content }}{% for c in m.tool_calls %}({{ c.id }} {{ c.function.name }} {{ c.function.arguments | tojson }}){% endfor %}{{ m.tool_call_id }}<|im_end|>{% endfor %}` +
	`{% if add_generation_prompt %}<|im_start|>assistant {% endif %}`

func TestResponseFields(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Template(toolTemplate))
	r := s.respond(`"input": "hello", "metadata": {"a": "b"}, "store": false, "user": "u", "text": {"format": {"type": "text"}}, "reasoning": {"effort": null},
		"include": ["reasoning.encrypted_content"], "truncation": "disabled", "parallel_tool_calls": true, "background": false, "service_tier": "auto",
		"previous_response_id": null, "top_logprobs": 0, "tools": [], "stream": false, "stream_options": null, ` + greedy)
	if diff := cmp.Diff(map[string]string{"a": "b"}, r.Metadata); diff != "" {
		t.Errorf("metadata (-want +got)\n%s", diff)
	}
	if r.ToolChoice != "auto" || len(r.Tools) != 0 || r.Tools == nil {
		t.Errorf("tools %s, choice %v", r.Tools, r.ToolChoice)
	}
	tools := `"tools": [{"type": "function", "name": "f", "description": "d", "parameters": {"type": "object"}, "strict": false}]`
	want, _ := s.said(12, []chat.Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type": "object"}`)}}, chat.Message{Role: "user", Content: "hello"})
	without, _ := s.said(12, nil, chat.Message{Role: "user", Content: "hello"})
	if want == without {
		t.Fatal("the tools do not matter")
	}
	if r := s.respond(`"input": "hello", ` + tools + "," + greedy); r.Output[0].Content[0].Text != want || len(r.Tools) != 1 {
		t.Errorf("with tools %q (%s), want %q", r.Output[0].Content[0].Text, r.Tools, want)
	}
	if r := s.respond(`"input": "hello", "tool_choice": "none", ` + tools + "," + greedy); r.Output[0].Content[0].Text != without || r.ToolChoice != "none" {
		t.Errorf("with tools that may not be called %q, want %q", r.Output[0].Content[0].Text, without)
	}
	first := s.respond(`"input": "hello", "seed": 7, "max_output_tokens": 12`).Output[0].Content[0].Text
	if again := s.respond(`"input": "hello", "seed": 7, "max_output_tokens": 12`).Output[0].Content[0].Text; again != first {
		t.Errorf("the same seed gives %q and %q", first, again)
	}
	end := string([]rune(without)[5])
	quoted, err := json.Marshal(end)
	if err != nil {
		t.Fatal(err)
	}
	want, _, _ = strings.Cut(without, end)
	stopped := s.respond(`"input": "hello", "stop": ` + string(quoted) + "," + greedy)
	if stopped.Status != "completed" || stopped.Output[0].Status != "completed" || stopped.Completed == nil || stopped.Incomplete != nil {
		t.Errorf("stopped: %+v", stopped)
	}
	if got := stopped.Output[0].Content[0].Text; got != want {
		t.Errorf("stopped at %q: %q, want %q", end, got, want)
	}
}

func TestResponseLogProbs(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	r := s.respond(`"input": "hello", "include": ["message.output_text.logprobs"], "top_logprobs": 3, ` + greedy)
	part := r.Output[0].Content[0]
	if len(part.LogProbs) != 12 {
		t.Fatalf("%d tokens have a log-probability, want 12", len(part.LogProbs))
	}
	var text []byte
	for i, p := range part.LogProbs {
		for _, b := range p.Bytes {
			text = append(text, byte(b))
		}
		if len(p.Top) != 3 || p.LogProb > 0 || p.LogProb != p.Top[0].LogProb || p.Token != p.Top[0].Token || p.Top[1].LogProb > p.Top[0].LogProb {
			t.Errorf("token %d: %+v", i, p)
		}
	}
	if got := strings.ToValidUTF8(string(text), "\uFFFD"); got != part.Text {
		t.Errorf("the tokens say %q, the text %q", got, part.Text)
	}
	if r := s.respond(`"input": "hello", ` + greedy); len(r.Output[0].Content[0].LogProbs) != 0 {
		t.Error("log-probabilities that nobody asked for")
	}
}

// A responseEvent is an event of a stream.
type responseEvent struct {
	Type     string
	Sequence *int `json:"sequence_number"`
	Response *response
	ItemID   string `json:"item_id"`
	Output   *int   `json:"output_index"`
	Content  *int   `json:"content_index"`
	Item     *outputItem
	Part     *outputPart
	Delta    *string
	Text     *string
	LogProbs *[]outputLogProb
}

// responseEvents reads the events of a response.
func (s *service) responseEvents(body string) (events []responseEvent) {
	s.t.Helper()
	got := s.post("/v1/responses", body)
	if got.status != http.StatusOK || !strings.HasPrefix(got.header.Get("Content-Type"), "text/event-stream") {
		s.t.Fatalf("%d %s", got.status, got.body)
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(got.body, "\n\n"), "\n\n") {
		head, data, _ := strings.Cut(block, "\n")
		var e responseEvent
		if err := json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &e); err != nil {
			s.t.Fatalf("%q: %v", block, err)
		}
		if head != "event: "+e.Type {
			s.t.Errorf("%q is of type %q", head, e.Type)
		}
		if e.Sequence == nil || *e.Sequence != len(events) {
			s.t.Errorf("event %d, %s, has the number %v", len(events), e.Type, e.Sequence)
		}
		events = append(events, e)
	}
	return events
}

func TestResponseStream(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{})
	for _, more := range []string{"", `, "include": ["message.output_text.logprobs"], "top_logprobs": 2`} {
		want := s.respond(`"input": "hello"` + more + "," + greedy)
		events := s.responseEvents(`{"model": "small", "input": "hello", "stream": true, "metadata": {"a": "b"}` + more + "," + greedy + "}")
		if len(events) < 10 {
			t.Fatalf("%d events", len(events))
		}
		part := want.Output[0].Content[0]
		kinds := []string{"response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"}
		deltas := len(events) - len(kinds) - 4
		for range deltas {
			kinds = append(kinds, "response.output_text.delta")
		}
		kinds = append(kinds, "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.incomplete")
		text, scores := "", []outputLogProb{}
		last := events[len(events)-1].Response
		for i, e := range events {
			if e.Type != kinds[i] {
				t.Fatalf("event %d is %s, want %s", i, e.Type, kinds[i])
			}
			switch e.Type {
			case "response.created", "response.in_progress":
				if e.Response == nil || e.Response.Status != "in_progress" || e.Response.Output == nil || len(e.Response.Output) != 0 || e.Response.Usage != nil || e.Response.Metadata["a"] != "b" {
					t.Errorf("%s: %+v", e.Type, e.Response)
				}
				continue
			case "response.output_item.added":
				if e.Item == nil || e.Item.Status != "in_progress" || len(e.Item.Content) != 0 || e.Item.ID != last.Output[0].ID {
					t.Errorf("%s: %+v", e.Type, e.Item)
				}
			case "response.output_text.delta":
				if e.Delta == nil || e.LogProbs == nil {
					t.Fatalf("%s: %+v", e.Type, e)
				}
				text += *e.Delta
				scores = append(scores, *e.LogProbs...)
			case "response.output_text.done":
				if e.Text == nil || *e.Text != part.Text || e.LogProbs == nil {
					t.Errorf("%s: %+v", e.Type, e)
				}
			case "response.content_part.added":
				if e.Part == nil || e.Part.Text != "" || e.Part.Type != "output_text" {
					t.Errorf("%s: %+v", e.Type, e.Part)
				}
			case "response.content_part.done":
				if diff := cmp.Diff(&part, e.Part); diff != "" {
					t.Errorf("%s (-want +got)\n%s", e.Type, diff)
				}
			case "response.output_item.done":
				if diff := cmp.Diff(&last.Output[0], e.Item); diff != "" {
					t.Errorf("%s (-want +got)\n%s", e.Type, diff)
				}
			}
			if e.Response == nil && (e.Output == nil || *e.Output != 0) {
				t.Errorf("%s: output index %v", e.Type, e.Output)
			}
			if strings.Contains(e.Type, "content_part") || strings.Contains(e.Type, "output_text") {
				if e.ItemID != last.Output[0].ID || e.Content == nil || *e.Content != 0 {
					t.Errorf("%s: content %v of %q", e.Type, e.Content, e.ItemID)
				}
			}
		}
		if text != part.Text || len(scores) != len(part.LogProbs) {
			t.Errorf("the deltas are %q with %d scores, want %q with %d", text, len(scores), part.Text, len(part.LogProbs))
		}
		if diff := cmp.Diff(part, last.Output[0].Content[0]); diff != "" || last.Usage == nil || last.Usage.Output != 12 || last.Status != "incomplete" {
			t.Errorf("the last response has %+v (-want +got)\n%s", last, diff)
		}
	}
}

// TestResponseStreamFailure checks that an error after the first event is the last event.
func TestResponseStreamFailure(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{}, modeltest.Context(4096))
	r, err := http.NewRequest(http.MethodPost, s.URL+"/v1/responses", strings.NewReader(`{"model": "small", "input": "hello", "stream": true, "ignore_eos": true}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	// Some text precedes the error.
	var begun []byte
	for piece := make([]byte, 512); !strings.Contains(string(begun), "event: response.output_text.delta\ndata: "); {
		n, err := resp.Body.Read(piece)
		if begun = append(begun, piece[:n]...); err != nil {
			t.Fatalf("after %q: %v", begun, err)
		}
	}
	s.server.Stop()
	rest, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(strings.TrimSpace(string(begun)+string(rest)), "\n\n")
	last := blocks[len(blocks)-1]
	var text string
	for _, block := range blocks {
		var e responseEvent
		if _, data, ok := strings.Cut(block, "event: response.output_text.delta\ndata: "); ok && json.Unmarshal([]byte(data), &e) == nil {
			text += *e.Delta
		}
	}
	var e responseEvent
	if _, data, ok := strings.Cut(last, "event: response.failed\ndata: "); !ok {
		t.Fatalf("the last event is %q", last)
	} else if err := json.Unmarshal([]byte(data), &e); err != nil {
		t.Fatal(err)
	}
	if e.Response.Status != "failed" || e.Response.Error == nil || e.Response.Error.Message == "" || e.Response.Error.Code != "server_error" ||
		text == "" || e.Response.Output[0].Content[0].Text != text {
		t.Errorf("%s", last)
	}
}

func TestResponseErrors(t *testing.T) {
	s := serve(t, server.Config{}, realizar.Options{Context: 64})
	const bad, unsupported, missing = "invalid_value", "unsupported_parameter", "missing_required_parameter"
	for _, test := range []struct{ fields, param, code string }{
		{``, "input", missing},
		{`"input": null`, "input", missing},
		{`"input": []`, "input", bad},
		{`"input": 1`, "input", bad},
		{`"input": [1]`, "input[0]", bad},
		{`"input": ["a"]`, "input[0]", bad},
		{`"input": [{}]`, "input[0].role", missing},
		{`"input": [{"role": "user"}]`, "input[0].content", missing},
		{`"input": [{"role": "tool", "content": "a"}]`, "input[0].role", bad},
		{`"input": [{"role": "user", "content": 1}]`, "input[0].content", bad},
		{`"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]`, "input[0].content[0].type", unsupported},
		{`"input": [{"role": "user", "content": [{"text": "a"}]}]`, "input[0].content[0].type", missing},
		{`"input": [{"role": "user", "content": [{"type": "input_text", "text": "a", "font": 1}]}]`, "input[0].content[0].font", "unknown_parameter"},
		{`"input": [{"role": "user", "content": "a", "name": "b"}]`, "input[0].name", "unknown_parameter"},
		{`"input": [{"type": "item_reference", "id": "msg_1"}]`, "input[0].id", bad},
		{`"input": [{"type": "item_reference"}]`, "input[0].id", missing},
		{`"input": [{"type": "reasoning", "id": "rs_1", "summary": []}]`, "input", bad},
		{`"input": [{"type": "reasoning", "summary": [{"type": "text", "text": "a"}]}]`, "input[0].summary[0].type", unsupported},
		{`"input": [{"type": "reasoning", "encrypted_content": "a"}]`, "input[0].encrypted_content", unsupported},
		{`"input": [{"type": "function_call", "call_id": "a", "arguments": "{}"}]`, "input[0].name", missing},
		{`"input": [{"type": "function_call", "name": "a", "arguments": "{}"}]`, "input[0].call_id", missing},
		{`"input": [{"type": "function_call_output", "call_id": "a"}]`, "input[0].output", missing},
		{`"input": "a", "store": true`, "store", unsupported},
		{`"input": "a", "previous_response_id": "resp_1"`, "previous_response_id", unsupported},
		{`"input": "a", "conversation": "conv_1"`, "conversation", unsupported},
		{`"input": "a", "background": true`, "background", unsupported},
		{`"input": "a", "truncation": "auto"`, "truncation", unsupported},
		{`"input": "a", "prompt": {"id": "p"}`, "prompt", unsupported},
		{`"input": "a", "n": 2`, "n", "unknown_parameter"},
		{`"input": "a", "max_output_tokens": 0`, "max_output_tokens", bad},
		{`"input": "a", "temperature": 3`, "temperature", bad},
		{`"input": "a", "include": ["file_search_call.results"]`, "include", unsupported},
		{`"input": "a", "top_logprobs": 2`, "top_logprobs", bad},
		{`"input": "a", "text": {"format": {"type": "json_schema", "name": "a"}}`, "text.format.schema", missing},
		{`"input": "a", "text": {"format": {"type": "json_schema", "name": "a", "schema": {"type": "what"}}}`, "text.format.schema", bad},
		{`"input": "a", "text": {"format": {"type": "structural_tag"}}`, "text.format.type", unsupported},
		{`"input": "a", "reasoning": {"effort": "great"}`, "reasoning.effort", bad},
		{`"input": "a", "reasoning": {"summary": "concise"}`, "reasoning.summary", unsupported},
		{`"input": "a", "text": {"verbosity": "low"}`, "text.verbosity", unsupported},
		{`"input": "a", "reasoning": {"effort": "high"}`, "reasoning.effort", bad},
		{`"input": "a", "metadata": {"a": 1}`, "metadata", bad},
		{`"input": "a", "metadata": {"a": null}`, "metadata", bad},
		{`"input": "a", "metadata": {"` + strings.Repeat("k", 65) + `": "b"}`, "metadata", bad},
		{`"input": "a", "tools": [{"type": "function"}]`, "tools[0].name", missing},
		{`"input": "a", "tools": [{"type": "function", "name": "f", "strict": 1}]`, "tools[0].strict", bad},
		{`"input": "a", "tools": [{"type": "function", "name": "f"}]`, "tools", bad}, // the template has no tools
		{`"input": "a", "tool_choice": "required"`, "tool_choice", bad},
		{`"input": "a", "tool_choice": {"type": "web_search"}`, "tool_choice.type", unsupported},
		{`"input": "` + strings.Repeat("a", 80) + `"`, "input", "context_length_exceeded"},
		{`"input": "` + strings.Repeat("a", 80) + `", "stream": true`, "input", "context_length_exceeded"},
	} {
		body := `{"model": "small"}`
		if test.fields != "" {
			body = `{"model": "small", ` + test.fields + "}"
		}
		s.post("/v1/responses", body).fails(t, 400, test.param, test.code)
	}
	s.post("/v1/responses", `{"input": "a", "model": "other"}`).fails(t, 404, "model", "model_not_found")
}

package anthropic_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/anthropic"
)

// fails checks that r is an error with the status, type, code and field, and returns its message.
func (r reply) fails(t testing.TB, status int, kind, code, param string) string {
	t.Helper()
	var e struct {
		Type  string
		Error struct {
			Type, Message string
			Details       struct {
				Code  string `json:"error_code"`
				Param string
			}
		}
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal([]byte(r.body), &e); err != nil || e.Type != "error" || e.Error.Message == "" || e.RequestID == "" || e.RequestID != r.header.Get("Request-Id") {
		t.Fatalf("%d %s is not an error (%v)", r.status, r.body, err)
	}
	if r.status != status || e.Error.Type != kind || e.Error.Details.Code != code || e.Error.Details.Param != param {
		t.Errorf("%d %s, want %d %s, %s of %q", r.status, r.body, status, kind, code, param)
	}
	return e.Error.Message
}

func TestBadRequests(t *testing.T) {
	s := serve(t, server.Config{MaxBody: 1 << 20}, modeltest.Template(plainTemplate), modeltest.Context(256))
	const five = `, "max_tokens": 5`
	user := func(blocks string) string {
		return `"messages": [{"role": "user", "content": [` + blocks + `]}]` + five
	}
	assistant := func(blocks string) string {
		return `"messages": [{"role": "assistant", "content": [` + blocks + `]}, {"role": "user", "content": "a"}]` + five
	}
	for _, test := range []struct{ fields, param, code, says string }{
		{hello, "max_tokens", "missing_required_parameter", ""},
		{`"max_tokens": 5`, "messages", "missing_required_parameter", ""},
		{`"messages": []` + five, "messages", "invalid_value", "want one at least"},
		{`"messages": "hello"` + five, "messages", "invalid_value", ""},
		{`"messages": [{"role": "user"}]` + five, "messages[0].content", "missing_required_parameter", ""},
		{`"messages": [{"role": "user", "content": null}]` + five, "messages[0].content", "missing_required_parameter", ""},
		{`"messages": [{"role": "user", "content": 5}]` + five, "messages[0].content", "invalid_value", "want a string, or a list of blocks"},
		{`"messages": [{"role": "tool", "content": "a"}]` + five, "messages[0].role", "invalid_value", "user, assistant or system"},
		{`"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]}]` + five, "messages", "invalid_value", "end with a message of role user"},
		{`"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "thinking": {"type": "enabled", "budget_tokens": 5}` + five, "thinking", "invalid_value", "end with a message of role user"},
		{`"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "output_config": {"format": {"type": "json_schema", "schema": {}}}` + five, "output_config.format.schema", "invalid_value", "leave one out"},
		{`"messages": [{"role": "user", "content": "a", "name": "b"}]` + five, "messages[0].name", "unknown_parameter", ""},
		{`"messages": [{"role": "user", "content": "a", "clear_at": "next_user_message"}]` + five, "messages[0].clear_at", "invalid_value", "role system"},
		{`"messages": [{"role": "system", "content": "a", "clear_at": "soon"}]` + five, "messages[0].clear_at", "invalid_value", ""},
		{`"messages": [{"role": "system", "content": "a", "output_config": {"effort": "low"}}]` + five, "messages[0].output_config", "unsupported_parameter", ""},
		{user(`5`), "messages[0].content[0]", "invalid_value", ""},
		{user(`{"text": "a"}`), "messages[0].content[0].type", "missing_required_parameter", ""},
		{user(`{"type": "text"}`), "messages[0].content[0].text", "missing_required_parameter", ""},
		{user(`{"type": "text", "text": 5}`), "messages[0].content[0].text", "invalid_value", ""},
		{user(`{"type": "text", "text": "a", "TEXT": "b"}`), "messages[0].content[0].TEXT", "unknown_parameter", ""},
		{user(`{"type": "image", "source": {}}`), "messages[0].content[0].type", "unsupported_parameter", `"image" is not supported: the model reads text alone`},
		{user(`{"type": "document", "source": {}}`), "messages[0].content[0].type", "unsupported_parameter", `"document" is not supported`},
		{user(`{"type": "search_result"}`), "messages[0].content[0].type", "unsupported_parameter", "want text, tool_result"},
		{user(`{"type": "tool_use", "id": "a", "name": "f", "input": {}}`), "messages[0].content[0].type", "invalid_value", "not allowed in user content"},
		{user(`{"type": "tool_result", "content": "a"}`), "messages[0].content[0].tool_use_id", "missing_required_parameter", ""},
		{user(`{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]}`), "messages[0].content[0].content[0].type", "unsupported_parameter", "text alone"},
		{user(`{"type": "tool_result", "tool_use_id": "a", "content": 5}`), "messages[0].content[0].content", "invalid_value", ""},
		{user(`{"type": "tool_result", "tool_use_id": "a", "is_error": 1}`), "messages[0].content[0].is_error", "invalid_value", ""},
		{assistant(`{"type": "server_tool_use"}`), "messages[0].content[0].type", "unsupported_parameter", "no tools of its own"},
		{assistant(`{"type": "web_search_tool_result"}`), "messages[0].content[0].type", "unsupported_parameter", "no tools of its own"},
		{assistant(`{"type": "tool_use", "name": "f", "input": {}}`), "messages[0].content[0].id", "missing_required_parameter", ""},
		{assistant(`{"type": "tool_use", "id": "f", "input": {}}`), "messages[0].content[0].name", "missing_required_parameter", ""},
		{assistant(`{"type": "tool_use", "id": "f", "name": "f"}`), "messages[0].content[0].input", "missing_required_parameter", ""},
		{assistant(`{"type": "tool_use", "id": "f", "name": "f", "input": "{}"}`), "messages[0].content[0].input", "invalid_value", ""},
		{assistant(`{"type": "thinking", "signature": "f"}`), "messages[0].content[0].thinking", "missing_required_parameter", ""},
		{hello + five + `, "system": 5`, "system", "invalid_value", ""},
		{hello + five + `, "system": [{"type": "image"}]`, "system[0].type", "unsupported_parameter", ""},
		{hello + five + `, "frobnicate": 1`, "frobnicate", "unknown_parameter", ""},
		{hello + five + `, "temperature": 2.5`, "temperature", "invalid_value", ""},
		{hello + five + `, "top_p": 0`, "top_p", "invalid_value", ""},
		{hello + five + `, "top_k": -1`, "top_k", "invalid_value", ""},
		{hello + `, "max_tokens": -1`, "max_tokens", "invalid_value", ""},
		{hello + five + `, "stop_sequences": [""]`, "stop_sequences", "invalid_value", ""},
		{hello + five + `, "stop_sequences": "a"`, "stop_sequences", "invalid_value", ""},
		{hello + five + `, "stop_sequences": [` + strings.Repeat(`"a",`, 64) + `"a"]`, "stop_sequences", "invalid_value", "64 at most"},
		{hello + five + `, "service_tier": "batch"`, "service_tier", "unsupported_parameter", ""},
		{hello + five + `, "mcp_servers": [{}]`, "mcp_servers", "unsupported_parameter", ""},
		{hello + five + `, "thread": {"type": "create"}`, "thread", "thread_unsupported_request", "send the one so far"},
		{hello + five + `, "container": "c"`, "container", "unsupported_parameter", ""},
		{hello + five + `, "context_management": {"edits": [{"type": "clear_tool_uses_20250919"}]}`, "context_management.edits[0].type", "unsupported_parameter", "clear_tool_uses_20250919"},
		{hello + five + `, "tools": [{"type": "web_search_20250305", "name": "web_search"}]`, "tools[0].type", "unsupported_parameter", "web_search_20250305"},
		{hello + five + `, "tools": [{"name": "f"}]`, "tools[0].input_schema", "missing_required_parameter", ""},
		{hello + five + `, "tools": [{"input_schema": {}}]`, "tools[0].name", "missing_required_parameter", ""},
		{hello + five + `, "tools": [{"name": "f", "input_schema": {}, "input_examples": []}]`, "tools[0].input_examples", "unsupported_parameter", ""},
		{hello + five + `, "tools": [{"name": "f", "input_schema": {"type": "wrong"}, "strict": true}]`, "tools[0].input_schema", "invalid_value", ""},
		{hello + five + `, "tool_choice": {"type": "any"}`, "tool_choice", "invalid_value", "no tools"},
		{hello + five + `, "tool_choice": {"type": "required"}`, "tool_choice.type", "invalid_value", ""},
		{hello + five + `, "tool_choice": {"disable_parallel_tool_use": true}`, "tool_choice.type", "missing_required_parameter", ""},
		{hello + five + `, "tool_choice": {"type": "tool"}`, "tool_choice.name", "missing_required_parameter", ""},
		{hello + five + `, "tool_choice": {"type": "auto", "name": "f"}`, "tool_choice.name", "invalid_value", "leave it out"},
		{hello + five + `, "tool_choice": {"type": "tool", "name": "f"}`, "tool_choice.name", "invalid_value", "one of tools"},
		{hello + five + `, "thinking": {"type": "between_tools"}`, "thinking.type", "invalid_value", "adaptive"},
		{hello + five + `, "thinking": {"budget_tokens": 5}`, "thinking.type", "missing_required_parameter", ""},
		{hello + five + `, "thinking": {"type": "disabled", "budget_tokens": 5}`, "thinking.budget_tokens", "invalid_value", ""},
		{hello + five + `, "thinking": {"type": "enabled", "budget_tokens": 0}`, "thinking.budget_tokens", "invalid_value", ""},
		{hello + five + `, "output_config": {"effort": "none"}`, "output_config.effort", "invalid_value", ""},
		{hello + five + `, "output_config": {"format": {"type": "json_object"}}`, "output_config.format.type", "invalid_value", ""},
		{hello + five + `, "output_config": {"format": {"type": "json_schema"}}`, "output_config.format.schema", "missing_required_parameter", ""},
		{hello + five + `, "output_config": {"format": {"type": "json_schema", "schema": {"type": "wrong"}}}`, "output_config.format.schema", "invalid_value", ""},
		{hello + five + `, "output_config": {"format": {"type": "json_schema", "schema": {}}}, "output_format": {"type": "json_schema", "schema": {}}`, "output_format.schema", "invalid_value", "leave one out"},
		{hello + five + `, "output_config": {"task_budget": {}}`, "output_config.task_budget", "unsupported_parameter", ""},
	} {
		for _, stream := range []string{"", `, "stream": true`} {
			message := s.post("/v1/messages", body(test.fields+stream)).fails(t, 400, "invalid_request_error", test.code, test.param)
			if !strings.Contains(message, test.says) {
				t.Errorf("%s: %q, want %q in it", test.fields, message, test.says)
			}
		}
	}
	s.post("/v1/messages", `{`).fails(t, 400, "invalid_request_error", "invalid_json", "")
	if r := s.post("/v1/messages", `{`+hello+five+`}`); r.status != 200 || !strings.Contains(r.body, `"model":"small"`) {
		t.Errorf("a request that names no model: %d %s, want an answer of the only one", r.status, r.body)
	}
	s.post("/v1/messages", `{"model": "large", `+hello+five+`}`).fails(t, 404, "not_found_error", "model_not_found", "model")
	s.post("/v1/messages/count_tokens", `{"model": "large", `+hello+`}`).fails(t, 404, "not_found_error", "model_not_found", "model")
	s.post("/v1/messages/count_tokens", body(hello+five)).fails(t, 400, "invalid_request_error", "unknown_parameter", "max_tokens")
	s.post("/v1/messages", body(`"system": "`+strings.Repeat("a", 1<<20)+`"`)).fails(t, 413, "request_too_large", "body_too_large", "")
	long := `"messages": [{"role": "user", "content": "` + strings.Repeat("a", 400) + `"}]`
	if message := s.post("/v1/messages", body(long+five)).fails(t, 400, "invalid_request_error", "context_length_exceeded", "messages"); !strings.HasPrefix(message, "prompt is too long: ") || !strings.Contains(message, "256") {
		t.Error(message)
	}
	if r := s.post("/v1/messages/count_tokens", body(long)); r.status != 200 {
		t.Errorf("a prompt that is too long is not counted: %d %s", r.status, r.body)
	}
	get, err := s.Client().Get(s.URL + "/v1/messages")
	if err != nil {
		t.Fatal(err)
	}
	if get.Body.Close(); get.StatusCode != 405 || get.Header.Get("Allow") != "POST" {
		t.Errorf("GET: %d", get.StatusCode)
	}
}

func TestKeys(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys")
	if err := os.WriteFile(file, []byte("sesame\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys, err := server.ReadKeys(file)
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, server.Config{Keys: keys}, modeltest.Template(plainTemplate), modeltest.Context(256))
	ask := func(headers ...string) reply {
		return s.post("/v1/messages", body(hello+`, "max_tokens": 1`), headers...)
	}
	ask().fails(t, 401, "authentication_error", "missing_api_key", "")
	ask("Authorization", "Basic sesame").fails(t, 401, "authentication_error", "missing_api_key", "")
	ask("X-Api-Key", "wrong").fails(t, 401, "authentication_error", "invalid_api_key", "")
	ask("X-Api-Key", "wrong", "Authorization", "Bearer sesame").fails(t, 401, "authentication_error", "invalid_api_key", "")
	for _, header := range [][]string{{"X-Api-Key", "sesame"}, {"Authorization", "Bearer sesame"}, {"Authorization", "bearer sesame", "X-Api-Key", ""}} {
		ask(header...).whole(t)
	}
}

// A holder is a dialect with an answer that takes up a place until letGo is closed.
type holder struct {
	anthropic.Dialect
	held, letGo chan struct{}
}

func (h holder) Routes() []server.Route {
	return []server.Route{{Pattern: "POST /hold", Handle: func(x *server.Exchange) error {
		_, done, err := x.Begin(1)
		if err != nil {
			return err
		}
		defer done()
		h.held <- struct{}{}
		<-h.letGo
		return x.JSON("held")
	}}}
}

// TestOverload checks the statuses of a server that is overloaded, is stopping, or takes too long.
func TestOverload(t *testing.T) {
	h := holder{held: make(chan struct{}), letGo: make(chan struct{})}
	s := serve(t, server.Config{Parallel: 1, Dialects: []server.Dialect{anthropic.Dialect{}, h}}, modeltest.Template(plainTemplate), modeltest.Context(2048))
	ask := func() reply { return s.post("/v1/messages", body(hello+`, "max_tokens": 1`)) }
	ended := make(chan reply)
	go func() { ended <- s.post("/hold", "") }()
	<-h.held
	r := ask()
	r.fails(t, 429, "rate_limit_error", "queue_full", "")
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	close(h.letGo)
	if r := <-ended; r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	ask().whole(t)
	s.server.Drain()
	r = ask()
	r.fails(t, 529, "overloaded_error", "draining", "")
	if r.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	s = serve(t, server.Config{Deadlines: server.Deadlines{Request: time.Nanosecond}}, modeltest.Template(plainTemplate), modeltest.Context(2048))
	long := `, "max_tokens": 2000, "output_config": {"format": {"type": "json_schema", "schema": {"type": "array", "items": {"type": "boolean"}, "minItems": 2000}}}`
	s.post("/v1/messages", body(hello+long)).fails(t, 504, "timeout_error", "request_timeout", "")
}

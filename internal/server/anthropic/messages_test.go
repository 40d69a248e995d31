package anthropic_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// toolTemplate has tools, calls and thinking in the form of Hermes and Qwen.
const toolTemplate = `{%- if tools %}<|im_start|>system
{%- for t in tools %}
{{ t | tojson }}{% endfor %}<|im_end|>
{% endif %}
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content or '' }}
{%- for c in m.tool_calls or [] %}{% if not loop.first or m.content %}
{% endif %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}{% if m.role == 'tool' %} [{{ m.name }} {{ m.tool_call_id }}]{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% else %}<think>
{% endif %}{% endif %}`

// plainTemplate has no thinking.
var plainTemplate = toolTemplate[:strings.Index(toolTemplate, "{% if enable_thinking")] + "{% endif %}"

// effortTemplate writes reasoning_effort into the prompt.
var effortTemplate = strings.Replace(plainTemplate, "{%- if tools", "{{ reasoning_effort }}{%- if tools", 1)

const (
	weather = `{"name": "weather", "description": "says it", "input_schema": {"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["city"], "additionalProperties": false}}`
	stop    = `{"type": "custom", "name": "stop", "cache_control": {"type": "ephemeral"}, "input_schema": {"type": "object", "properties": {}, "additionalProperties": false}}`
	hello   = `"messages": [{"role": "user", "content": "hello"}]`
	greedy  = `"temperature": 0, "max_tokens": 12`
)

// expected returns the model's greedy answer to messages, without the server.
func (s *service) expected(n int, messages ...chat.Message) (text string, f realizar.Finish) {
	s.t.Helper()
	for e, err := range s.model.Chat(s.t.Context(), &realizar.ChatRequest{Messages: messages, Continue: server.Continues(messages), Generation: realizar.Generation{MaxTokens: &n}}) {
		if err != nil {
			s.t.Fatal(err)
		}
		text += e.Text + e.Reasoning
		if e.Finish != nil {
			f = *e.Finish
		}
	}
	return text, f
}

func TestConversations(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(plainTemplate), modeltest.Context(2048))
	message := func(role, content string) chat.Message { return chat.Message{Role: role, Content: content} }
	for _, test := range []struct {
		fields   string
		messages []chat.Message
	}{
		{hello, []chat.Message{message("user", "hello")}},
		{`"messages": [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "ttl": "1h"}}, {"type": "text", "text": "b", "citations": null}]}]`, []chat.Message{message("user", "a\nb")}},
		{`"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}, {"role": "assistant", "content": "c"}, {"role": "assistant", "content": [{"type": "text", "text": "d"}]}, {"role": "user", "content": "e"}]`,
			[]chat.Message{message("user", "a\nb"), message("assistant", "c\nd"), message("user", "e")}},
		{`"system": "be kind", ` + hello, []chat.Message{message("system", "be kind"), message("user", "hello")}},
		{`"system": [{"type": "text", "text": "be kind"}, {"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}], "messages": [{"role": "system", "content": "be good"}, {"role": "user", "content": "hello"}, {"role": "system", "content": [{"type": "text", "text": "now"}]}, {"role": "user", "content": "so?"}]`,
			[]chat.Message{message("system", "be kind\nbe brief\nbe good"), message("user", "hello"), message("system", "now"), message("user", "so?")}},
		{`"system": [{"type": "text", "text": "x-anthropic-billing-header: cc_version=1; cch=5f3a1;"}, {"type": "text", "text": "be kind"}], ` + hello, []chat.Message{message("system", "be kind"), message("user", "hello")}},
		{`"system": "x-anthropic-billing-header: cch=5f3a2;\nbe kind", ` + hello, []chat.Message{message("system", "be kind"), message("user", "hello")}},
		{`"system": "x-anthropic-billing-header: cch=5f3a2;", ` + hello, []chat.Message{message("user", "hello")}},
		{`"system": "be kind\nx-anthropic-billing-header: a", ` + hello, []chat.Message{message("system", "be kind\nx-anthropic-billing-header: a"), message("user", "hello")}},
		{`"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "well", "signature": "x"}, {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "wait"},
			{"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}, "caller": {"type": "direct"}}, {"type": "tool_use", "id": "c2", "name": "g", "input": {}}]},
			{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "one"}, {"type": "tool_result", "tool_use_id": "c2", "is_error": true, "content": [{"type": "text", "text": "two"}, {"type": "text", "text": "three"}]},
			{"type": "tool_result", "tool_use_id": "c3"}, {"type": "tool_result", "tool_use_id": "c1", "is_error": true}, {"type": "text", "text": "and?"}]}]`,
			[]chat.Message{message("user", "go"), {Role: "assistant", Content: "wait", Reasoning: "well", ToolCalls: []chat.ToolCall{{ID: "c1", Name: "f", Arguments: json.RawMessage(`{"a": 1}`)}, {ID: "c2", Name: "g", Arguments: json.RawMessage(`{}`)}}},
				{Role: "tool", Content: "one", ToolCallID: "c1", Name: "f"}, {Role: "tool", Content: "Error: two\nthree", ToolCallID: "c2", Name: "g"}, {Role: "tool", ToolCallID: "c3"}, {Role: "tool", Content: "Error", ToolCallID: "c1", Name: "f"}, message("user", "and?")}},
		// System messages that pass remain until the user speaks.
		{`"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "system", "content": "gone", "clear_at": "next_user_message"}, {"role": "assistant", "content": "c"},
			{"role": "system", "content": "gone, too", "clear_at": "next_user_message"}, {"role": "user", "content": "d"}, {"role": "system", "content": "kept", "clear_at": "never"},
			{"role": "system", "content": "here", "clear_at": "next_user_message"}]`, []chat.Message{message("user", "a"), message("assistant", "b\nc"), message("user", "d"), message("system", "kept\nhere")}},
		// A signature brings omitted thinking back.
		{`"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "realizar.d2VsbA"}, {"type": "text", "text": "no"}]}, {"role": "user", "content": "hm"}]`,
			[]chat.Message{message("user", "go"), {Role: "assistant", Reasoning: "well", Content: "no"}, message("user", "hm")}},
		{`"messages": [{"role": "user", "content": "go"}, {"role": "assistant", "content": "the world"}], "thinking": {"type": "adaptive"}`,
			[]chat.Message{message("user", "go"), message("assistant", "the world")}}, // the answer continues the last message
	} {
		want, finish := s.expected(12, test.messages...)
		m := s.say(test.fields + ", " + greedy)
		if len(m.Content) != 1 || m.Content[0].Type != "text" || m.Content[0].Text != want || value(m.StopReason) != "max_tokens" || m.StopSequence != nil {
			t.Errorf("%s: %+v, want %q", test.fields, m, want)
		}
		if u := m.Usage; u.prompt() != finish.Usage.PromptTokens || u.Output != 12 || u.Created != 0 || u.Input < 1 {
			t.Errorf("%s: usage %+v, want %+v", test.fields, u, finish.Usage)
		}
		var count struct {
			Input int `json:"input_tokens"`
		}
		r := s.post("/v1/messages/count_tokens", body(test.fields))
		if err := json.Unmarshal([]byte(r.body), &count); err != nil || r.status != 200 || count.Input != finish.Usage.PromptTokens {
			t.Errorf("%s: %d %s, want %d", test.fields, r.status, r.body, finish.Usage.PromptTokens)
		}
	}
}

// TestCountEnds checks that a counted conversation may end with any block of the assistant.
func TestCountEnds(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(plainTemplate), modeltest.Context(2048))
	for _, blocks := range []string{`"b"`, `[]`, `[{"type": "thinking", "thinking": "b", "signature": "x"}]`, `[{"type": "tool_use", "id": "c", "name": "f", "input": {}}]`} {
		r := s.post("/v1/messages/count_tokens", body(`"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": `+blocks+`}], "thinking": {"type": "enabled", "budget_tokens": 5}`))
		if r.status != 200 {
			t.Errorf("%s: %d %s", blocks, r.status, r.body)
		}
	}
}

// TestSystemAmid checks that if a template takes a system message only at the beginning, later ones
// become the user's.
func TestSystemAmid(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(strings.Replace(plainTemplate, "<|im_start|>{{ m.role }}", "{% if m.role == 'system' and not loop.first %}{{ raise_exception('the system is first') }}{% endif %}<|im_start|>{{ m.role }}", 1)), modeltest.Context(2048))
	want, _ := s.expected(12, chat.Message{Role: "system", Content: "be kind"}, chat.Message{Role: "user", Content: "hello\nnow\nso?"})
	m := s.say(`"system": "be kind", "messages": [{"role": "user", "content": "hello"}, {"role": "system", "content": "now"}, {"role": "user", "content": "so?"}], ` + greedy)
	if len(m.Content) != 1 || m.Content[0].Text != want {
		t.Errorf("%+v, want %q", m.Content, want)
	}
}

func TestEnds(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(plainTemplate), modeltest.Context(512))
	all, _ := s.expected(12, chat.Message{Role: "user", Content: "hello"})
	runes := []rune(all)
	end := string(runes[4:6])
	before, _, _ := strings.Cut(all, end)
	m := s.say(hello + `, ` + greedy + `, "stop_sequences": ["never there", ` + encoded(t, end) + `]`)
	if m.Content[0].Text != before || value(m.StopReason) != "stop_sequence" || value(m.StopSequence) != end {
		t.Errorf("%+v, want %q before %q", m, before, end)
	}
	if m = s.say(hello + `, "temperature": 0, "max_tokens": 5000`); value(m.StopReason) != "model_context_window_exceeded" && value(m.StopReason) != "end_turn" {
		t.Errorf("an answer until the context is full ends by %q", value(m.StopReason))
	}
	if m = s.say(hello + `, "max_tokens": 0`); len(m.Content) != 0 || value(m.StopReason) != "max_tokens" {
		t.Errorf("an answer of no tokens is %+v", m)
	}
}

func TestSampling(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(plainTemplate), modeltest.Context(2048))
	want, _ := s.expected(8, chat.Message{Role: "user", Content: "hello"})
	for more, same := range map[string]bool{
		`"temperature": 0`: true, `"top_k": 1`: true, `"top_p": 0.0001`: true, `"temperature": 2, "top_k": 0`: false,
		`"temperature": 0, "metadata": {"user_id": "u"}, "service_tier": "auto", "cache_control": {"type": "ephemeral"}, "inference_geo": "eu", "thinking": null, "mcp_servers": [], "speed": "standard", "container": null, "cache_salt": "s", "diagnostics": {"previous_message_id": null}`: true,
		`"temperature": 0, "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}, "output_config": {"effort": "max"}, "tool_choice": {"type": "auto"}, "tools": []`:                                                                                           true,
	} {
		m := s.post("/v1/messages", body(hello+`, "max_tokens": 8, `+more), "Anthropic-Version", "2023-06-01", "Anthropic-Beta", "anything-2030-01-01").whole(t)
		got := ""
		if len(m.Content) > 0 { // a sampled answer may be empty
			got = m.Content[0].Text
		}
		if (got == want) != same {
			t.Errorf("%s: %q, the greedy answer is %q", more, got, want)
		}
	}
}

// TestTools checks that calls match the schemas of their tools.
func TestTools(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(plainTemplate), modeltest.Context(4096))
	tools := `"tools": [` + weather + `, ` + stop + `], "max_tokens": 400, ` + hello
	calls := func(m messageJSON) (names []string) {
		t.Helper()
		for _, b := range m.Content {
			if b.Type != "tool_use" {
				t.Errorf("a call was required, and there is %+v", b)
				continue
			}
			names = append(names, b.Name)
			if b.Name == "weather" && !regexp.MustCompile(`^\{\s*"city"\s*:\s*"(Oslo|Rome)"`).Match(b.Input) || b.Name == "stop" && strings.Trim(string(b.Input), "{} \n\t") != "" {
				t.Errorf("a call of %s with %s", b.Name, b.Input)
			}
		}
		return names
	}
	m := s.say(tools + `, "temperature": 0, "tool_choice": {"type": "any", "disable_parallel_tool_use": true}`)
	if n := calls(m); len(n) != 1 || value(m.StopReason) != "tool_use" {
		t.Errorf("%+v", m)
	}
	m = s.say(tools + `, "temperature": 0, "tool_choice": {"type": "tool", "name": "weather", "disable_parallel_tool_use": true}`)
	if n := calls(m); len(n) != 1 || n[0] != "weather" || value(m.StopReason) != "tool_use" {
		t.Errorf("%+v", m)
	}
	// Parallel calls are allowed.
	m = s.say(`"tools": [` + weather + `], "temperature": 0, "max_tokens": 200, "tool_choice": {"type": "any"}, ` + hello)
	if len(m.Content) == 0 || value(m.StopReason) != "max_tokens" && value(m.StopReason) != "tool_use" {
		t.Errorf("%+v", m)
	}
	// If no tool can be called, the prompt has none.
	want, finish := s.expected(12, chat.Message{Role: "user", Content: "hello"})
	m = s.say(hello + `, "tools": [` + weather + `], "tool_choice": {"type": "none"}, ` + greedy)
	if m.Content[0].Text != want || m.Usage.prompt() != finish.Usage.PromptTokens {
		t.Errorf("%+v, want %q", m, want)
	}
}

// TestCutCalls checks that a call that is cut off in its input has an empty input, and one that is
// cut off before its name is left out.
func TestCutCalls(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(plainTemplate), modeltest.Context(2048))
	ask := func(tokens int) messageJSON {
		return s.say(fmt.Sprintf(`"tools": [%s], "temperature": 0, "max_tokens": %d, "tool_choice": {"type": "tool", "name": "weather", "disable_parallel_tool_use": true}, %s`, weather, tokens, hello))
	}
	all := ask(400)
	if value(all.StopReason) != "tool_use" {
		t.Fatalf("%+v", all)
	}
	cut := 0
	for n := 1; n < all.Usage.Output; n++ {
		m := ask(n)
		if value(m.StopReason) != "max_tokens" || len(m.Content) > 1 {
			t.Errorf("%d tokens: %+v", n, m)
		}
		for _, b := range m.Content {
			if b.Type == "tool_use" && string(b.Input) == "{}" {
				cut++
			} else if b.Type == "tool_use" && string(b.Input) != string(all.Content[0].Input) || b.Type == "text" && b.Text[0] != '<' {
				t.Errorf("%d tokens: %+v", n, b)
			}
		}
	}
	if cut < 3 {
		t.Errorf("%d lengths cut the input of the call", cut)
	}
}

// TestForms checks that a schema binds the answer.
func TestForms(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(plainTemplate), modeltest.Context(2048))
	const schema = `{"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["a"], "additionalProperties": false}`
	for _, field := range []string{
		`"output_config": {"format": {"type": "json_schema", "schema": ` + schema + `}, "effort": null}`,
		`"output_format": {"type": "json_schema", "schema": ` + schema + `}`,
	} {
		m := s.say(hello + `, "temperature": 0, "max_tokens": 100, ` + field)
		var got struct{ A int }
		if err := json.Unmarshal([]byte(m.Content[0].Text), &got); err != nil || got.A < 1 || got.A > 9 || value(m.StopReason) != "end_turn" {
			t.Errorf("%s: %+v (%v)", field, m, err)
		}
	}
}

func TestThinking(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(toolTemplate), modeltest.Context(2048))
	const some = `"temperature": 0, "max_tokens": 60, ` + hello
	for _, test := range []struct{ thinking, kinds string }{
		{`{"type": "enabled", "budget_tokens": 10}`, "thinking text"},
		{`{"type": "adaptive", "budget_tokens": 10, "display": "summarized"}`, "thinking text"},
		{`{"type": "adaptive", "display": null}`, "thinking"},
		{`null`, "thinking"},
		{`{"type": "enabled", "budget_tokens": 10, "display": "omitted"}`, "thinking text"},
		{`{"type": "disabled"}`, "text"},
	} {
		m := s.say(some + `, "thinking": ` + test.thinking)
		var kinds []string
		for _, b := range m.Content {
			if kinds = append(kinds, b.Type); b.Type != "thinking" {
				continue
			}
			if omitted := strings.Contains(test.thinking, "omitted"); b.Signature == "" || (b.Thinking == "") != omitted || (b.Signature != "realizar") != omitted {
				t.Errorf("%s: %+v", test.thinking, b)
			}
		}
		if got := strings.Join(kinds, " "); got != test.kinds || (m.Usage.Details.Thinking > 0) != strings.HasPrefix(got, "thinking") {
			t.Errorf("%s: %+v, want %s", test.thinking, m, test.kinds)
		}
	}
	// Omitted thinking comes back by its signature.
	count := func(thinking string) string {
		m := s.post("/v1/messages", body(some+`, "thinking": `+thinking)).whole(t)
		return s.post("/v1/messages/count_tokens", body(`"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": `+encoded(t, m.Content)+`}, {"role": "user", "content": "so?"}]`)).body
	}
	m := s.post("/v1/messages", body(some+`, "thinking": {"type": "enabled", "budget_tokens": 10, "display": "omitted"}`)).whole(t)
	back := encoded(t, m.Content)
	back = strings.Replace(back, `{"type":"thinking",`, `{"type":"thinking","thinking":"",`, 1)
	omitted := s.post("/v1/messages/count_tokens", body(`"messages": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": `+back+`}, {"role": "user", "content": "so?"}]`)).body
	if shown := count(`{"type": "enabled", "budget_tokens": 10}`); shown != omitted {
		t.Errorf("with the thought %s, without it %s", shown, omitted)
	}
	// A budget for thinking does not affect the answer's format.
	m = s.say(hello + `, "temperature": 0, "max_tokens": 200, "thinking": {"type": "enabled", "budget_tokens": 8}, "output_config": {"format": {"type": "json_schema", "schema": {"enum": ["yes", "no"]}}}`)
	if last := m.Content[len(m.Content)-1]; last.Type != "text" || last.Text != `"yes"` && last.Text != `"no"` {
		t.Errorf("%+v", m)
	}
}

// TestOtherThinking checks that if a template cannot disable thinking, it is ended where it begins,
// and that a template without thinking is left alone.
func TestOtherThinking(t *testing.T) {
	always := strings.Replace(toolTemplate, "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% else %}<think>\n{% endif %}", "<think>\n", 1)
	s := serve(t, server.Config{}, modeltest.Template(always), modeltest.Context(2048))
	m := s.say(hello + `, "temperature": 0, "max_tokens": 40, "thinking": {"type": "disabled"}`)
	if u := m.Usage.Details.Thinking; len(m.Content) == 0 || m.Content[len(m.Content)-1].Type != "text" || u > 12 {
		t.Errorf("%+v", m)
	}
	s = serve(t, server.Config{}, modeltest.Template(plainTemplate), modeltest.Context(2048))
	want, _ := s.expected(12, chat.Message{Role: "user", Content: "hello"})
	for _, thinking := range []string{`{"type": "enabled", "budget_tokens": 1024}`, `{"type": "adaptive"}`, `{"type": "disabled"}`} {
		if m := s.say(hello + `, ` + greedy + `, "output_config": {"effort": "high"}, "thinking": ` + thinking); len(m.Content) != 1 || m.Content[0].Text != want {
			t.Errorf("%s: %+v, want %q", thinking, m, want)
		}
	}
	// A template that knows efforts gets them.
	s = serve(t, server.Config{}, modeltest.Template(effortTemplate), modeltest.Context(2048))
	sizes := map[string]int{}
	for _, more := range []string{``, `, "output_config": {"effort": "low"}`, `, "output_config": {"effort": "max"}, "thinking": {"type": "adaptive"}`, `, "thinking": {"type": "enabled"}`} {
		sizes[more] = s.post("/v1/messages", body(hello+`, `+greedy+more)).whole(t).Usage.prompt()
	}
	if diff := fmt.Sprint(sizes[`, "output_config": {"effort": "low"}`]-sizes[``], sizes[`, "output_config": {"effort": "max"}, "thinking": {"type": "adaptive"}`]-sizes[``], sizes[`, "thinking": {"type": "enabled"}`]-sizes[``]); diff != "3 3 6" {
		t.Errorf("efforts make the prompt longer by %s", diff)
	}
}

// names matches what differs from one run to the next.
var names = regexp.MustCompile(`msg_[A-Z0-9]{26}|"id":"[A-Z0-9]{9}"`)

// TestGoldenStreams compares streams with testdata, byte by byte.
func TestGoldenStreams(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(toolTemplate), modeltest.Context(2048))
	for name, fields := range map[string]string{
		"text":    hello + `, "temperature": 0, "max_tokens": 6, "thinking": {"type": "disabled"}`,
		"thought": hello + `, "temperature": 0, "max_tokens": 24, "thinking": {"type": "enabled", "budget_tokens": 4}`,
		"omitted": hello + `, "temperature": 0, "max_tokens": 24, "thinking": {"type": "enabled", "budget_tokens": 4, "display": "omitted"}`,
		"call":    hello + `, "temperature": 0, "max_tokens": 400, "thinking": {"type": "disabled"}, "tools": [` + stop + `], "tool_choice": {"type": "any", "disable_parallel_tool_use": true}`,
	} {
		s.post("/v1/messages", body(fields)) // puts the prompt into the cache
		_, text := s.stream(body(fields + `, "stream": true`))
		got := names.ReplaceAllStringFunc(text, func(n string) string {
			if strings.HasPrefix(n, "msg_") {
				return "msg_1"
			}
			return `"id":"call"`
		})
		file := filepath.Join("testdata", name+".sse")
		if flag.Lookup("update").Value.String() == "true" { // fieldstest registers the flag
			if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || got != string(want) {
			t.Errorf("%s (%v): the stream is\n%s\nwant\n%s", name, err, got, want)
		}
	}
}

// TestTimings checks that answers have timings if a request asks for them.
func TestTimings(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(plainTemplate), modeltest.Context(2048))
	if m := s.post("/v1/messages", body(hello+", "+greedy), "X-Trace-Level", "brick").whole(t); len(m.Timings) == 0 {
		t.Errorf("%+v", m)
	}
	if m, err := added(s.post("/v1/messages", body(hello+`, "stream": true, `+greedy), "X-Trace-Level", "brick").body); err != nil || len(m.Timings) == 0 {
		t.Errorf("%+v: %v", m, err)
	}
	if r := s.post("/v1/messages/count_tokens", body(hello), "X-Trace-Level", "brick"); r.status != 400 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

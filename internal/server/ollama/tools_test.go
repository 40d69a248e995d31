package ollama_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/demo"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// hermesTemplate has tools, calls and reasoning in the form of Hermes and Qwen.
const hermesTemplate = `{%- if tools %}<|im_start|>system
{%- for t in tools %}
{{ t | tojson }}{% endfor %}<|im_end|>
{% endif %}
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.tool_call_id }}{{ m.content or '' }}
{%- for c in m.tool_calls or [] %}{% if not loop.first or m.content %}
{% endif %}<tool_call>
{"name": "{{ c.function.name }}", "arguments": {{ c.function.arguments | tojson }}}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is not defined or enable_thinking %}<think>
{% else %}<think>

</think>

{% endif %}{% endif %}`

const weather = `"tools":[{"type":"function","function":{"name":"get_weather","description":"Get the weather of a city","parameters":{"type":"object",
	"properties":{"city":{"type":"string","description":"The city"}},"required":["city"]}}},
	{"type":"function","function":{"name":"set_volume","description":"Set the volume","parameters":{"type":"object","properties":{"level":{"type":"integer"}},"required":["level"]}}}]`

// TestTools checks that the built-in model calls a tool and uses its result.
func TestTools(t *testing.T) {
	s := serveFile(t, server.Config{}, demo.Name)
	ask := `{"model":"small","options":{"temperature":0},` + weather + `,"messages":[{"role":"user","content":"what is the weather in Oslo?"}`
	a := s.post("/api/chat", ask+`],"stream":false}`).whole(t)
	if len(a.Message.ToolCalls) != 1 || a.text() != "" || a.DoneReason != "stop" {
		t.Fatalf("%+v", a.Message)
	}
	c := a.Message.ToolCalls[0]
	if c.ID == "" || c.Function.Index != 0 || c.Function.Name != "get_weather" || fmt.Sprint(c.Function.Arguments) != "map[city:Oslo]" {
		t.Errorf("%+v", c)
	}
	all, text := s.post("/api/chat", ask+`]}`).lines(t)
	n := 0
	for _, l := range all {
		for _, streamed := range l.Message.ToolCalls {
			if n++; fmt.Sprint(streamed.Function) != fmt.Sprint(c.Function) || l.Done {
				t.Errorf("%+v", l)
			}
		}
	}
	if n != 1 || text != "" {
		t.Errorf("%d calls and %q in %+v", n, text, all)
	}
	history := `,{"role":"assistant","content":"","tool_calls":[{"function":{"index":0,"name":"get_weather","arguments":{"city":"Oslo"}}}]},` +
		`{"role":"tool","tool_name":"get_weather","content":"{\"temperature\": 7, \"condition\": \"rainy\"}"}]`
	if a := s.post("/api/chat", ask+history+`,"stream":false}`).whole(t); !strings.Contains(a.text(), "7") || !strings.Contains(a.text(), "rainy") || a.Message.ToolCalls != nil {
		t.Errorf("%+v", a.Message)
	}
	// A call that is cut off is left out.
	for _, stream := range []string{"true", "false"} {
		r := s.post("/api/chat", strings.Replace(ask, `"temperature":0`, `"temperature":0,"num_predict":6`, 1)+`],"stream":`+stream+`}`)
		if strings.Contains(r.body, "tool_calls") || !strings.Contains(r.body, `"done_reason":"length"`) {
			t.Errorf("%s", r.body)
		}
	}
}

// TestToolHistory checks that a tool's result names its tool, and that a call has the id of the
// request or a generated one.
func TestToolHistory(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(hermesTemplate), modeltest.Context(2048))
	for id, member := range map[string]string{"abc": `"id":"abc",`, "call00000": ""} {
		history := fmt.Sprintf(`{"role":"assistant","content":"","thinking":"hm","tool_calls":[{%s"function":{"index":0,"name":"f","arguments":{"x":1}}}]},{"role":"tool","tool_name":"f","content":"rain"}]`, member)
		messages := []chat.Message{
			{Role: "assistant", Reasoning: "hm", ToolCalls: []chat.ToolCall{{ID: id, Name: "f", Arguments: json.RawMessage(`{"x":1}`)}}},
			{Role: "tool", Content: "rain", Name: "f", ToolCallID: id},
		}
		want, err := s.model.ChatPrompt(t.Context(), &realizar.ChatRequest{Messages: messages}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if a := s.post("/api/chat", `{"model":"small","stream":false,"options":{"num_predict":1},"messages":[`+history+`}`).whole(t); a.Prompt != len(want.Tokens) {
			t.Errorf("a prompt of %d tokens, want %d", a.Prompt, len(want.Tokens))
		}
	}
}

func TestThinking(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(hermesTemplate), modeltest.Context(1024))
	for _, think := range []string{"", `,"think":true`, `,"think":"low"`, `,"think":null`} {
		more := `"options":{"temperature":0,"num_predict":8}` + think
		a := s.post("/api/chat", chatBody(more+`,"stream":false`)).whole(t)
		if a.Message.Thinking == "" || a.text() != "" {
			t.Errorf("%s: %+v", think, a)
		}
		all, _ := s.post("/api/chat", chatBody(more)).lines(t)
		thought := ""
		for _, l := range all {
			thought += l.Message.Thinking
		}
		if thought != a.Message.Thinking {
			t.Errorf("%q, want %q", thought, a.Message.Thinking)
		}
		if g := s.post("/api/generate", `{"model":"small","prompt":"hello","stream":false,`+more+`}`).whole(t); g.Thinking == nil || *g.Thinking != thought || len(g.Context) == 0 {
			t.Errorf("%+v", g)
		}
	}
	if a := s.post("/api/chat", chatBody(`"think":false,"stream":false,"options":{"temperature":0,"num_predict":8}`)).whole(t); a.Message.Thinking != "" || a.text() == "" {
		t.Errorf("%+v", a)
	}
}

func TestMessages(t *testing.T) {
	s := serve(t, server.Config{}, modeltest.Template(hermesTemplate), modeltest.Context(1024))
	for messages, says := range map[string]string{
		`[{"content":"a"}]`:                 "messages[0].role is missing",
		`[{"role":"user"}]`:                 "messages[0].content is missing",
		`[{"role":"user","content":["a"]}]`: `messages[0].content is ["a"]; want a string`,
		`[{"role":"user","content":"a","tool_calls":[{"function":{"name":"f"}}]}]`:         "only an assistant calls tools",
		`[{"role":"user","content":"a","thinking":"b"}]`:                                   "messages[0].thinking",
		`[{"role":"user","content":"a","tool_name":"b"}]`:                                  "messages[0].tool_name",
		`[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}]`: `messages[0].tool_calls[0].function.arguments is "{}"; want a JSON object`,
		`[{"role":"assistant","tool_calls":[{"function":{}}]}]`:                            "messages[0].tool_calls[0].function.name is missing",
		`[{"role":"assistant","tool_calls":[{"type":"code","function":{"name":"f"}}]}]`:    `tool_calls[0].type "code" is not supported`,
		`5`: "messages is 5; want a list of messages",
	} {
		s.post("/api/chat", `{"model":"small","messages":`+messages+`}`).fails(t, 400, says)
	}
	for tools, says := range map[string]string{
		`[{"type":"web","function":{"name":"f"}}]`:                              `tools[0].type is "web"; want function`,
		`[{"type":"function","function":{}}]`:                                   "tools[0].function.name is missing",
		`[{"function":{"name":"f","parameters":5}}]`:                            "tools[0].function.parameters is 5; want a JSON schema",
		`[{"function":{"name":"f","strict":true,"parameters":{"type":"odd"}}}]`: "tools[0].function.parameters",
	} {
		s.post("/api/chat", chatBody(`"tools":`+tools)).fails(t, 400, says)
	}
	// Two calls are answered in order, or by name, or by id.
	calls := `{"role":"assistant","content":"","tool_calls":[{"function":{"name":"f","arguments":{}}},{"function":{"name":"g","arguments":{}}}]}`
	counts := []int{}
	for _, answers := range []string{
		`{"role":"tool","content":"1"},{"role":"tool","content":"2"}`,
		`{"role":"tool","tool_name":"f","content":"1"},{"role":"tool","tool_name":"g","content":"2"}`,
		`{"role":"tool","tool_call_id":"call00000","content":"1"},{"role":"tool","tool_call_id":"call00001","content":"2"}`,
	} {
		a := s.post("/api/chat", `{"model":"small","stream":false,"options":{"num_predict":1},"messages":[{"role":"user","content":"a","images":[]},`+calls+`,`+answers+`]}`).whole(t)
		counts = append(counts, a.Prompt)
	}
	if slices.Min(counts) != slices.Max(counts) {
		t.Errorf("prompts of %v tokens", counts)
	}
}

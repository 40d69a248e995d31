package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/modeltest"
	"github.com/realizar/realizar/internal/server"
)

// turnTemplate is the template of a model that calls tools and can reason. If reasoning is enabled,
// the template begins it, so that a model with random weights has some.
const turnTemplate = `{%- if tools %}{{ '<|im_start|>system\n' }}{% for t in tools %}{{ t.function | tojson }}{{ '\n' }}{% endfor %}{{ '<|im_end|>\n' }}{% endif %}
{%- for m in messages %}
{%- if m.role == 'tool' %}{{ '<|im_start|>user\n<tool_response>\n' ~ m.tool_call_id ~ ' ' ~ m.content ~ '\n</tool_response><|im_end|>\n' }}
{%- else %}{{ '<|im_start|>' ~ m.role ~ '\n' }}
{%- if m.reasoning_content %}{{ '<think>\n' ~ m.reasoning_content ~ '\n</think>\n\n' }}{% endif %}
{{- m.content }}
{%- for c in m.tool_calls %}{{ '\n<tool_call>\n{"name": "' ~ c.function.name ~ '", "arguments": ' }}{{ c.function.arguments | tojson }}{{ '}\n</tool_call>' }}{% endfor %}
{{- '<|im_end|>\n' }}{% endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% if enable_thinking %}{{ '<think>\n' }}{% else %}{{ '<think>\n\n</think>\n\n' }}{% endif %}{% endif %}`

// serveTurns serves a model with random weights and turnTemplate.
func serveTurns(t testing.TB, c server.Config) *service {
	t.Helper()
	return serve(t, c, realizar.Options{}, modeltest.Template(turnTemplate), modeltest.Context(8192))
}

// The schemas of an answer and of calls. They are short, so that answers of random tokens are
// short.
const (
	shapeSchema = `{"type":"object","properties":{"colour":{"enum":["red","blue"]},"size":{"type":"integer","minimum":-9,"maximum":99},"name":{"type":"string","maxLength":6},"tags":{"type":"array","items":{"type":"boolean"},"maxItems":3}},
		"required":["colour","size","name","tags"],"additionalProperties":false}`
	paintTool = `{"type":"function","function":{"name":"paint","description":"Paints.","parameters":` + shapeSchema + `}}`
	waitTool  = `{"type":"function","function":{"name":"wait","parameters":{"type":"object","properties":{"seconds":{"type":"integer","minimum":0,"maximum":60}},"required":["seconds"],"additionalProperties":false}}}`
	bothTools = `"tools":[` + paintTool + `,` + waitTool + `]`
)

var toolSchemas = map[string]string{
	"paint": shapeSchema,
	"wait":  `{"type":"object","properties":{"seconds":{"type":"integer","minimum":0,"maximum":60}},"required":["seconds"],"additionalProperties":false}`,
}

// fits validates a JSON text against a schema, with a package other than the one that enforces it.
func fits(t testing.TB, schema, text string) {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%q is not JSON: %v", text, err)
	}
	if err := compiled.Validate(value); err != nil {
		t.Errorf("%q: %v", text, err)
	}
}

// A callJSON is a call in a chat's answer.
type callJSON struct {
	Index    *int
	ID, Type string
	Function struct{ Name, Arguments string }
}

// A turnJSON is an answer with all its parts.
type turnJSON struct {
	Content          *string
	ReasoningContent string      `json:"reasoning_content"`
	Reasoning        string      `json:"reasoning"`
	ToolCalls        []callJSON  `json:"tool_calls"`
	FunctionCall     *calledJSON `json:"function_call"`
	finish           string      // of the choice
	raw              string      // the whole answer
	usage            turnUsage   // of the whole answer
	scores           int         // log-probabilities
}

type calledJSON struct{ Name, Arguments string }

type turnUsage struct {
	Completion int `json:"completion_tokens"`
	Details    struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// turn returns the answer to a chat of one message.
func (s *service) turn(more string) turnJSON {
	s.t.Helper()
	r := s.post("/v1/chat/completions", chatBody("hi", more))
	var a struct {
		Choices []struct {
			Message      turnJSON
			FinishReason string      `json:"finish_reason"`
			LogProbs     *scoresJSON `json:"logprobs"`
		}
		Usage turnUsage
	}
	if err := json.Unmarshal([]byte(r.body), &a); err != nil || r.status != http.StatusOK || len(a.Choices) != 1 {
		s.t.Fatalf("%s: %d %s (%v)", more, r.status, r.body, err)
	}
	m := a.Choices[0].Message
	m.finish, m.raw, m.usage = a.Choices[0].FinishReason, r.body, a.Usage
	if a.Choices[0].LogProbs != nil {
		m.scores = len(a.Choices[0].LogProbs.Content)
	}
	return m
}

// streamedTurn returns the same as a stream, put together as clients do.
func (s *service) streamedTurn(more string) turnJSON {
	s.t.Helper()
	r := s.post("/v1/chat/completions", chatBody("hi", more+`,"stream":true,"stream_options":{"include_usage":true}`))
	if r.status != http.StatusOK || !strings.HasSuffix(r.body, "data: [DONE]\n\n") {
		s.t.Fatalf("%s: %d %s", more, r.status, r.body)
	}
	all := turnJSON{raw: r.body}
	for line := range strings.SplitSeq(strings.TrimSuffix(r.body, "data: [DONE]\n\n"), "\n\n") {
		if line == "" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Delta        turnJSON
				FinishReason *string     `json:"finish_reason"`
				LogProbs     *scoresJSON `json:"logprobs"`
			}
			Usage *turnUsage
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &chunk); err != nil {
			s.t.Fatalf("%s: %v", line, err)
		}
		if chunk.Usage != nil {
			all.usage = *chunk.Usage
		}
		for _, c := range chunk.Choices {
			if all.finish != "" {
				s.t.Errorf("%s comes after the end", line)
			}
			all.add(s.t, &c.Delta)
			if c.LogProbs != nil {
				all.scores += len(c.LogProbs.Content)
			}
			if c.FinishReason != nil {
				all.finish = *c.FinishReason
			}
		}
	}
	if all.Content != nil && *all.Content == "" && (len(all.ToolCalls) > 0 || all.FunctionCall != nil) {
		all.Content = nil
	}
	return all
}

// add adds a delta of a stream.
func (m *turnJSON) add(t testing.TB, d *turnJSON) {
	t.Helper()
	if d.Content != nil {
		if m.Content == nil {
			m.Content = new("")
		}
		*m.Content += *d.Content
	}
	m.ReasoningContent += d.ReasoningContent
	m.Reasoning += d.Reasoning
	for _, c := range d.ToolCalls {
		switch {
		case c.Index == nil || *c.Index > len(m.ToolCalls):
			t.Fatalf("a piece of a call %+v after %d", c, len(m.ToolCalls))
		case *c.Index == len(m.ToolCalls):
			if c.ID == "" || c.Type != "function" || c.Function.Name == "" || c.Function.Arguments != "" {
				t.Errorf("the first piece of a call is %+v", c)
			}
			m.ToolCalls = append(m.ToolCalls, c)
		default:
			if c.ID != "" || c.Type != "" || c.Function.Name != "" || c.Function.Arguments == "" {
				t.Errorf("a later piece of a call is %+v", c)
			}
			m.ToolCalls[*c.Index].Function.Arguments += c.Function.Arguments
		}
	}
	if f := d.FunctionCall; f != nil {
		if m.FunctionCall == nil {
			m.FunctionCall = new(calledJSON)
		}
		m.FunctionCall.Name += f.Name
		m.FunctionCall.Arguments += f.Arguments
	}
}

// like reports whether two answers are equal except for ids.
func (m turnJSON) like(o turnJSON) bool {
	calls := func(m turnJSON) string {
		var b bytes.Buffer
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, "%s %s;", c.Function.Name, c.Function.Arguments)
		}
		if m.FunctionCall != nil {
			fmt.Fprint(&b, *m.FunctionCall)
		}
		return b.String()
	}
	return value(m.Content) == value(o.Content) && m.ReasoningContent == o.ReasoningContent && calls(m) == calls(o) &&
		m.finish == o.finish && m.usage == o.usage && m.scores == o.scores
}

// TestTurnCalls checks that an answer with calls is well-formed at any temperature, whole and as a
// stream.
func TestTurnCalls(t *testing.T) {
	s := serveTurns(t, server.Config{})
	for _, test := range []struct {
		more  string
		names []string // of the tools that may be called
		calls int      // at most; 0 means that none is required
		old   bool
	}{
		{`"tool_choice":"required","parallel_tool_calls":false,` + bothTools, []string{"paint", "wait"}, 1, false},
		{`"tool_choice":"required",` + bothTools, []string{"paint", "wait"}, 1 << 10, false},
		{`"tool_choice":{"type":"function","function":{"name":"wait"}},` + bothTools, []string{"wait"}, 1, false},
		{`"tool_choice":{"type":"function","name":"paint"},` + bothTools, []string{"paint"}, 1, false},
		{`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"wait"}}]}},"parallel_tool_calls":false,` + bothTools, []string{"wait"}, 1, false},
		{`"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"wait"}]},"parallel_tool_calls":false,` + bothTools, []string{"wait"}, 1, false},
		{`"function_call":{"name":"wait"},"functions":[{"name":"paint"},{"name":"wait","parameters":` + toolSchemas["wait"] + `}]`, []string{"wait"}, 1, true},
	} {
		for _, temperature := range []string{"0", "1", "2"} {
			more := fmt.Sprintf(`%s,"temperature":%s,"seed":7,"max_tokens":3000`, test.more, temperature)
			got := s.turn(more)
			if streamed := s.streamedTurn(more); !got.like(streamed) {
				t.Errorf("%s: %s\nas a stream %s", more, got.raw, streamed.raw)
			}
			if test.old {
				if f := got.FunctionCall; f == nil || f.Name != test.names[0] || got.finish != "function_call" || got.ToolCalls != nil || got.Content != nil {
					t.Errorf("%s: %s", more, got.raw)
				} else {
					fits(t, toolSchemas[f.Name], f.Arguments)
				}
				continue
			}
			if got.finish == "length" && test.calls > 1 {
				got.ToolCalls = got.ToolCalls[:len(got.ToolCalls)-1] // the last one was cut off
			} else if got.finish != "tool_calls" || len(got.ToolCalls) == 0 || len(got.ToolCalls) > test.calls || got.Content != nil {
				t.Errorf("%s: %s", more, got.raw)
			}
			ids := map[string]bool{}
			for _, c := range got.ToolCalls {
				if ids[c.ID] = true; c.ID == "" || c.Type != "function" || c.Index != nil || !slices.Contains(test.names, c.Function.Name) {
					t.Fatalf("%s: a call %+v", more, c)
				}
				fits(t, toolSchemas[c.Function.Name], c.Function.Arguments)
			}
			if len(ids) != len(got.ToolCalls) {
				t.Errorf("two calls have the same id: %s", got.raw)
			}
		}
	}
}

// TestTurnCut checks that a call that is cut off by the length is returned as far as it came, and
// not as text.
func TestTurnCut(t *testing.T) {
	s := serveTurns(t, server.Config{})
	const more = `"tool_choice":{"type":"function","name":"paint"},"temperature":1,"seed":9,` + bothTools
	all := s.turn(more)
	if len(all.ToolCalls) != 1 {
		t.Fatal(all.raw)
	}
	partly := 0
	for n := 1; n < all.usage.Completion; n++ {
		got := s.turn(fmt.Sprintf(`%s,"max_tokens":%d`, more, n))
		if streamed := s.streamedTurn(fmt.Sprintf(`%s,"max_tokens":%d`, more, n)); !got.like(streamed) {
			t.Errorf("%s\nas a stream %s", got.raw, streamed.raw)
		}
		if len(got.ToolCalls) == 0 {
			continue
		}
		arguments := strings.TrimSuffix(got.ToolCalls[0].Function.Arguments, "\uFFFD") // a character may be cut, too
		if value(got.Content) != "" || !strings.HasPrefix(all.ToolCalls[0].Function.Arguments, arguments) || got.finish != "length" {
			t.Errorf("%s, the whole is %s", got.raw, all.raw)
		} else if arguments != "" {
			partly++
		}
	}
	if partly < 5 {
		t.Errorf("%d lengths have a part of the arguments", partly)
	}
}

// TestTurnThoughts checks that reasoning is separated from the answer and ends at its budget, and
// that a schema binds the answer after it.
func TestTurnThoughts(t *testing.T) {
	s := serveTurns(t, server.Config{})
	const format = `"response_format":{"type":"json_schema","json_schema":{"name":"shape","strict":true,"schema":` + shapeSchema + `}}`
	for _, thinks := range []string{`"chat_template_kwargs":{"enable_thinking":true}`, `"reasoning_effort":"high"`} {
		for _, scores := range []string{"false", "true"} {
			more := thinks + `,"thinking_token_budget":7,"temperature":1.5,"seed":3,"max_tokens":3000,"logprobs":` + scores + "," + format
			got := s.turn(more)
			if got.ReasoningContent == "" || got.Reasoning != got.ReasoningContent || got.finish != "stop" || got.usage.Details.Reasoning == 0 || got.usage.Details.Reasoning > 16 {
				t.Errorf("%s: %s", more, got.raw)
			}
			fits(t, shapeSchema, value(got.Content))
			if streamed := s.streamedTurn(more); !got.like(streamed) || streamed.Reasoning != got.Reasoning {
				t.Errorf("%s: %s\nas a stream %s", more, got.raw, streamed.raw)
			}
			if want := got.usage.Completion - 1; scores == "true" && got.scores != want { // without the end token
				t.Errorf("%s: %d scores, want %d", more, got.scores, want)
			}
		}
	}
	for _, more := range []string{`"reasoning_effort":"none"`, `"chat_template_kwargs":{"enable_thinking":false}`} {
		if got := s.turn(more + `,"max_tokens":20,"temperature":1,"seed":2`); got.ReasoningContent != "" || value(got.Content) == "" || got.usage.Details.Reasoning != 0 || strings.Contains(got.raw, "reasoning_content") {
			t.Errorf("%s: %s", more, got.raw)
		}
	}
	// Calls after reasoning.
	more := `"reasoning_effort":"low","thinking_token_budget":0,"tool_choice":{"type":"function","function":{"name":"wait"}},"temperature":2,"seed":5,"max_tokens":3000,` + bothTools
	got := s.turn(more)
	if len(got.ToolCalls) != 1 || got.finish != "tool_calls" {
		t.Fatalf("%s", got.raw)
	}
	fits(t, toolSchemas["wait"], got.ToolCalls[0].Function.Arguments)
}

// TestTurnHistory checks that earlier calls, results and reasoning are part of the prompt, in the
// older and the newer form alike.
func TestTurnHistory(t *testing.T) {
	s := serveTurns(t, server.Config{})
	render := func(messages string) string {
		t.Helper()
		r := s.post("/v1/chat/completions/render", `{"model":"small","messages":[`+messages+`],`+bothTools+`}`)
		var got struct{ Prompt string }
		if err := json.Unmarshal([]byte(r.body), &got); err != nil || r.status != 200 {
			t.Fatalf("%d %s (%v)", r.status, r.body, err)
		}
		return got.Prompt
	}
	newer := render(`{"role":"user","content":"hi"},{"role":"assistant","content":null,"reasoning_content":"so","tool_calls":[{"id":"call00001","type":"function","function":{"name":"wait","arguments":"{\"seconds\":5}"}}]},{"role":"tool","tool_call_id":"call00001","content":"done"}`)
	older := render(`{"role":"user","content":"hi"},{"role":"assistant","content":null,"reasoning":"so","function_call":{"name":"wait","arguments":"{\"seconds\":5}"}},{"role":"function","name":"wait","content":"done"}`)
	if newer != older || !strings.Contains(newer, `{"name": "wait", "arguments": {"seconds": 5}}`) || !strings.Contains(newer, "<think>\nso\n</think>") || !strings.Contains(newer, "call00001 done") {
		t.Errorf("%q\n%q", newer, older)
	}
	r := s.post("/tokenize", `{"messages":[{"role":"user","content":"hi"}],`+bothTools+`}`)
	var got struct{ Count int }
	if err := json.Unmarshal([]byte(r.body), &got); err != nil || got.Count < 100 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

// TestTurnErrors checks that what is not supported is an error that names its field.
func TestTurnErrors(t *testing.T) {
	s := serveTurns(t, server.Config{})
	plain := serve(t, server.Config{}, realizar.Options{}, modeltest.Template(toolTemplate))
	const bad, unsupported, missing, unknown = "invalid_value", "unsupported_parameter", "missing_required_parameter", "unknown_parameter"
	strict := func(schema string) string {
		return `"tools":[` + waitTool + `,{"type":"function","function":{"name":"f","strict":true,"parameters":` + schema + `}}]`
	}
	for _, test := range []struct{ more, param, code, says string }{
		{`"tool_choice":"required"`, "tool_choice", bad, "no tools"},
		{`"tool_choice":"perhaps",` + bothTools, "tool_choice", bad, "required"},
		{`"tool_choice":{},` + bothTools, "tool_choice.type", missing, ""},
		{`"tool_choice":{"type":"custom","custom":{"name":"a"}},` + bothTools, "tool_choice.type", unsupported, "allowed_tools"},
		{`"tool_choice":{"type":"function"},` + bothTools, "tool_choice.function.name", missing, ""},
		{`"tool_choice":{"type":"function","function":{"name":"dance"}},` + bothTools, "tool_choice", bad, "dance"},
		{`"tool_choice":{"type":"function","function":{"names":"wait"}},` + bothTools, "tool_choice.function.names", unknown, ""},
		{`"tool_choice":{"type":"allowed_tools"},` + bothTools, "tool_choice.allowed_tools.tools", missing, ""},
		{`"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"dance"}]},` + bothTools, "tool_choice", bad, "dance"},
		{`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"none","tools":[]}},` + bothTools, "tool_choice.allowed_tools.mode", bad, "required"},
		{`"tool_choice":{"type":"allowed_tools","mode":"required","tools":[]},` + bothTools, "tool_choice", bad, ""},
		{`"tool_choice":{"type":"allowed_tools","tools":[1]},` + bothTools, "tool_choice.tools[0]", "invalid_json", ""},
		{`"parallel_tool_calls":1`, "parallel_tool_calls", bad, ""},
		{`"functions":[{"name":"f"}],` + bothTools, "functions", bad, "older"},
		{`"functions":[{"name":"f"}],"tool_choice":"auto"`, "functions", bad, "older"},
		{`"functions":[{}]`, "functions[0].name", missing, ""},
		{`"functions":[{"name":"f"}],"function_call":{"name":"g"}`, "function_call", bad, "g"},
		{`"functions":[{"name":"f"}],"function_call":"required"`, "function_call", bad, ""},
		{`"functions":[{"name":"f"}],"function_call":{}`, "function_call.name", missing, ""},
		{strict(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`), "tools[1].function.parameters", bad, "required"},
		{strict(`{"type":"what"}`), "tools[1].function.parameters", bad, "what"},
		{`"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"f"}]},` + strict(`{"type":"what"}`), "tools[1].function.parameters", bad, "what"},
		{`"functions":[{"name":"f","strict":true,"parameters":{"type":"what"}}]`, "functions[0].parameters", bad, "what"},
		{`"reasoning_effort":"great"`, "reasoning_effort", bad, "minimal"},
		{`"thinking_token_budget":-1`, "thinking_token_budget", bad, ""},
		{`"include_reasoning":false`, "include_reasoning", unsupported, ""},
	} {
		e := s.post("/v1/chat/completions", chatBody("hi", test.more)).fails(t, 400, test.param, test.code)
		if !strings.Contains(e.Message, test.says) {
			t.Errorf("%s: %q does not say %q", test.more, e.Message, test.says)
		}
	}
	for _, test := range []struct{ more, param string }{
		{`"reasoning_effort":"high"`, "reasoning_effort"},
		{`"thinking_token_budget":5`, "thinking_token_budget"},
		{`"tool_choice":"required",` + bothTools, ""},
	} {
		r := plain.post("/v1/chat/completions", chatBody("hi", test.more))
		if test.param != "" {
			r.fails(t, 400, test.param, bad)
		}
	}
	none := serve(t, server.Config{}, realizar.Options{})
	none.post("/v1/chat/completions", chatBody("hi", `"tool_choice":"required",`+bothTools)).fails(t, 400, "tools", bad)
	for _, test := range []struct{ message, param, code string }{
		{`{"role":"user","content":"a","function_call":{"name":"f"}}`, "messages[0].function_call", bad},
		{`{"role":"assistant","function_call":{"name":"f"},"tool_calls":[{"function":{"name":"f"}}]}`, "messages[0].function_call", bad},
		{`{"role":"assistant","function_call":{"arguments":"{}"}}`, "messages[0].function_call.name", missing},
		{`{"role":"function","content":"a"}`, "messages[0].name", missing},
		{`{"role":"function","name":"f"}`, "messages[0].content", missing},
	} {
		s.post("/v1/chat/completions", `{"model":"small","messages":[`+test.message+`]}`).fails(t, 400, test.param, test.code)
	}
}

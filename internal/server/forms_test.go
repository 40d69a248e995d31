package server_test

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// A formTest is a form of an answer, and a check of a text for it.
type formTest struct {
	more string
	fits func(t testing.TB, text string)
}

func formTests() []formTest {
	matches := func(pattern string) func(testing.TB, string) {
		return func(t testing.TB, text string) {
			t.Helper()
			if !regexp.MustCompile("^(?:" + pattern + ")$").MatchString(text) {
				t.Errorf("%q does not match %s", text, pattern)
			}
		}
	}
	one := func(of ...string) func(testing.TB, string) {
		return func(t testing.TB, text string) {
			t.Helper()
			if !slices.Contains(of, text) {
				t.Errorf("%q is none of %q", text, of)
			}
		}
	}
	shape := func(t testing.TB, text string) { t.Helper(); fits(t, shapeSchema, text) }
	compact := func(t testing.TB, text string) {
		t.Helper()
		fits(t, shapeSchema, text)
		if strings.Contains(text, `": `) || strings.ContainsAny(text, "\n\t") {
			t.Errorf("%q has white space", text)
		}
	}
	const small = `{"type":"object","properties":{"a":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`
	const tag = `{"type":"tag","begin":"<a>","content":{"type":"json_schema","json_schema":` + small + `},"end":"</a>"}`
	tagText, _ := json.Marshal(`{"type":"structural_tag","format":` + tag + `}`)
	tagged := func(t testing.TB, text string) {
		t.Helper()
		text, begun := strings.CutPrefix(text, "<a>")
		text, ended := strings.CutSuffix(text, "</a>")
		if fits(t, small, text); !begun || !ended {
			t.Errorf("%q has no tag around it", text)
		}
	}
	quoted, _ := json.Marshal(shapeSchema)

	const gbnf, lark = `"root ::= [a-c]+ \"!\""`, `"start: /[a-c]{1,9}/ \"!\""`
	return []formTest{
		{`"response_format":{"type":"json_schema","json_schema":{"name":"shape","description":"a shape","strict":true,"schema":` + shapeSchema + `}}`, shape},
		{`"response_format":{"type":"json_object","schema":` + shapeSchema + `}`, shape},
		{`"structured_outputs":{"json":` + shapeSchema + `}`, shape},
		{`"structured_outputs":{"json":` + string(quoted) + `,"disable_any_whitespace":true}`, compact},
		{`"guided_json":` + string(quoted) + `,"guided_decoding_backend":"xgrammar"`, shape},
		{`"guided_json":` + shapeSchema, shape},
		{`"json_schema":` + shapeSchema, shape},
		{`"structured_outputs":{"json":` + small + `,"json_object":false,"regex":null}`, func(t testing.TB, text string) { t.Helper(); fits(t, small, text) }},
		{`"structured_outputs":{"regex":"[a-f]{3}-\\d{2}"}`, matches(`[a-f]{3}-\d{2}`)},
		{`"guided_regex":"(yes|no)[.!]?"`, matches(`(yes|no)[.!]?`)},
		{`"structured_outputs":{"choice":["red","green \"x\"","übergrün"]}`, one("red", `green "x"`, "übergrün")},
		{`"guided_choice":["a","ab"]`, one("a", "ab")},
		{`"structured_outputs":{"grammar":` + gbnf + `}`, matches(`[a-c]+!`)},
		{`"structured_outputs":{"grammar":` + lark + `}`, matches(`[a-c]{1,9}!`)},
		{`"guided_grammar":` + gbnf, matches(`[a-c]+!`)},
		{`"guided_grammar":` + lark, matches(`[a-c]{1,9}!`)},
		{`"grammar":` + gbnf, matches(`[a-c]+!`)},
		{`"response_format":{"type":"structural_tag","format":` + tag + `}`, tagged},
		{`"structural_tag":{"type":"structural_tag","format":` + tag + `}`, tagged},
		{`"structured_outputs":{"structural_tag":` + string(tagText) + `}`, tagged},
	}
}

// TestForms checks that an answer has the requested form: by every field name, in chats and
// completions, whole and as a stream, at any temperature, alone and with others.
func TestForms(t *testing.T) {
	s := serveTurns(t, server.Config{MaxQueue: 1000})
	for i, test := range formTests() {
		for _, temperature := range []string{"0", "1.3", "2"} {
			t.Run(fmt.Sprint(i, " ", temperature), func(t *testing.T) {
				t.Parallel()
				s := &service{s.Server, t, s.model, s.server}
				more := fmt.Sprintf(`%s,"temperature":%s,"seed":%d,"max_tokens":3000`, test.more, temperature, i)
				got := s.turn(more)
				if got.finish != "stop" {
					t.Errorf("%s: %s", more, got.raw)
				}
				test.fits(t, value(got.Content))
				if streamed := s.streamedTurn(more); !got.like(streamed) {
					t.Errorf("%s: %s\nas a stream %s", more, got.raw, streamed.raw)
				}
				a := s.post("/v1/completions", `{"model":"small","prompt":"hi",`+more+`,"n":2}`).whole(t)
				for _, c := range a.Choices {
					test.fits(t, c.Text)
				}
			})
		}
	}
}

// TestFormFree checks requests for no form and for any object.
func TestFormFree(t *testing.T) {
	s := serveTurns(t, server.Config{})
	free := s.turn(`"temperature":0,"max_tokens":12`)
	for _, more := range []string{`"response_format":{"type":"text"}`, `"structured_outputs":{}`, `"structured_outputs":{"json_object":false,"disable_additional_properties":false}`, `"guided_decoding_backend":"x"`} {
		if got := s.turn(more + `,"temperature":0,"max_tokens":12`); !got.like(free) {
			t.Errorf("%s: %s, want %s", more, got.raw, free.raw)
		}
	}
	for _, more := range []string{`"response_format":{"type":"json_object"}`, `"structured_outputs":{"json_object":true}`} {
		got := s.turn(more + `,"temperature":1,"seed":1,"max_tokens":400`)
		if text := value(got.Content); !strings.HasPrefix(strings.TrimSpace(text), "{") || got.finish == "stop" && !json.Valid([]byte(text)) {
			t.Errorf("%s: %s", more, got.raw)
		}
	}
}

// TestFormSpace checks that the server's setting determines the white space in JSON.
func TestFormSpace(t *testing.T) {
	s := serveTurns(t, server.Config{JSON: realizar.JSONOptions{Space: realizar.JSONSpaceNone}})
	for seed := range 5 {
		got := s.turn(fmt.Sprintf(`"seed":%d,"temperature":2,"max_tokens":3000,"guided_json":%s`, seed, shapeSchema))
		var b strings.Builder
		if err := json.Unmarshal([]byte(value(got.Content)), new(any)); err != nil {
			t.Fatalf("%s: %v", got.raw, err)
		}
		if b.WriteString(value(got.Content)); strings.Contains(b.String(), `": `) || strings.Contains(b.String(), "{ ") {
			t.Errorf("%q has white space", b.String())
		}
	}
}

// TestFormResponses checks the format of a response, and its tools.
func TestFormResponses(t *testing.T) {
	s := serveTurns(t, server.Config{})
	const format = `"text":{"format":{"type":"json_schema","name":"shape","strict":true,"schema":` + shapeSchema + `}}`
	const tools = `"tools":[{"type":"function","name":"wait","strict":true,"parameters":{"type":"object","properties":{"seconds":{"type":"integer","minimum":0,"maximum":60}},"required":["seconds"],"additionalProperties":false}}]`
	const settings = `"temperature":2,"seed":11,"max_output_tokens":3000`
	for _, more := range []string{
		format,
		format + `,"chat_template_kwargs":{"enable_thinking":false}`,
		tools + `,"tool_choice":"required","parallel_tool_calls":false`,
		tools + `,"tool_choice":{"type":"function","name":"wait"}`,
		tools + `,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"wait"}]},"parallel_tool_calls":false`,
	} {
		r := s.respond(`"input":"hi",` + more + `,` + settings)
		if len(r.Output) != 1 || r.Status != "completed" || r.Output[0].Status != "completed" {
			t.Fatalf("%s: %+v", more, r)
		}
		switch item := r.Output[0]; item.Type {
		case "message":
			fits(t, shapeSchema, item.Content[0].Text)
		case "function_call":
			if item.CallID == "" || item.Name != "wait" || !strings.HasPrefix(item.ID, "fc_") {
				t.Errorf("%s: %+v", more, item)
			}
			fits(t, toolSchemas["wait"], item.Arguments)
		default:
			t.Errorf("%s: %+v", more, item)
		}
		events := s.responseEvents(`{"model":"small","input":"hi","stream":true,` + more + `,` + settings + `}`)
		last := events[len(events)-1]
		if last.Type != "response.completed" || last.Response.Output[0].Arguments != r.Output[0].Arguments {
			t.Errorf("%s: a stream ends with %s %+v", more, last.Type, last.Response)
		}
		var deltas strings.Builder
		for _, e := range events {
			if e.Type == "response.function_call_arguments.delta" {
				deltas.WriteString(*e.Delta)
			}
		}
		if deltas.String() != r.Output[0].Arguments {
			t.Errorf("%s: the deltas are %q, want %q", more, deltas.String(), r.Output[0].Arguments)
		}
	}
	// Reasoning comes first, with its summary. If it is cut off, it is the only item.
	cut := s.respond(`"input":"hi","reasoning":{"effort":"high","summary":"auto"},"temperature":1,"seed":4,"max_output_tokens":9`)
	if len(cut.Output) != 1 || cut.Output[0].Type != "reasoning" || cut.Output[0].Status != "incomplete" || cut.Output[0].Content[0].Text == "" ||
		len(cut.Output[0].Summary) != 1 || cut.Output[0].Summary[0].Text != cut.Output[0].Content[0].Text || cut.Usage.OutputDetails.Reasoning == 0 {
		t.Errorf("%+v", cut)
	}
	// Items of the output can be items of an input.
	thought, _ := json.Marshal(cut.Output[0].Content[0].Text)
	again := s.respond(`"input":[{"role":"user","content":"hi"},{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":` + string(thought) + `}]},
		{"type":"function_call","call_id":"abcdefghi","name":"wait","arguments":"{\"seconds\":5}"},{"type":"function_call_output","call_id":"abcdefghi","output":"done"},
		{"type":"reasoning","summary":[{"type":"summary_text","text":"ah"}]}],` + tools + `,"max_output_tokens":5`)
	if again.Usage.Input < 100 {
		t.Errorf("%+v", again.Usage)
	}
}

// TestFormErrors checks that a form that is not supported, and two forms in one request, are errors
// that name their fields.
func TestFormErrors(t *testing.T) {
	s := serveTurns(t, server.Config{})
	const bad, unsupported, missing, unknown = "invalid_value", "unsupported_parameter", "missing_required_parameter", "unknown_parameter"
	for _, test := range []struct{ more, param, code, says string }{
		{`"response_format":1`, "response_format", bad, ""},
		{`"response_format":{}`, "response_format.type", missing, ""},
		{`"response_format":{"type":"xml"}`, "response_format.type", unsupported, "json_schema"},
		{`"response_format":{"type":"json_schema"}`, "response_format.json_schema.schema", missing, ""},
		{`"response_format":{"type":"json_schema","json_schema":{"name":"a"}}`, "response_format.json_schema.schema", missing, ""},
		{`"response_format":{"type":"json_schema","json_schema":{"schema":1}}`, "response_format.json_schema.schema", bad, "a JSON schema"},
		{`"response_format":{"type":"json_schema","json_schema":{"schema":{},"strictly":true}}`, "response_format.json_schema.strictly", unknown, ""},
		{`"response_format":{"type":"json_schema","schema":{}}`, "response_format.schema", unknown, ""},
		{`"response_format":{"type":"json_schema","json_schema":{"strict":true,"schema":{"type":"object","properties":{"a":{"type":"string"}}}}}`, "response_format.json_schema.schema", bad, "additionalProperties"},
		{`"response_format":{"type":"json_schema","json_schema":{"schema":{"properties":{"a":{"$ref":"#/nowhere"}}}}}`, "response_format.json_schema.schema", bad, "nowhere"},
		{`"response_format":{"type":"json_object","schema":{"type":"what"}}`, "response_format.schema", bad, "what"},
		{`"structured_outputs":{"json":5}`, "structured_outputs.json", bad, ""},
		{`"structured_outputs":{"json":"{"}`, "structured_outputs.json", bad, ""},
		{`"structured_outputs":{"regex":"("}`, "structured_outputs.regex", bad, ""},
		{`"structured_outputs":{"regex":5}`, "structured_outputs.regex", bad, ""},
		{`"structured_outputs":{"choice":[]}`, "structured_outputs.choice", bad, "1 to"},
		{`"structured_outputs":{"choice":[1]}`, "structured_outputs.choice", bad, "strings"},
		{`"structured_outputs":{"grammar":"root ::= nothing"}`, "structured_outputs.grammar", bad, "nothing"},
		{`"structured_outputs":{"json_object":1}`, "structured_outputs.json_object", bad, ""},
		{`"structured_outputs":{"whitespace_pattern":" ?"}`, "structured_outputs.whitespace_pattern", unsupported, "--json-whitespace"},
		{`"structured_outputs":{"disable_additional_properties":true}`, "structured_outputs.disable_additional_properties", unsupported, ""},
		{`"structured_outputs":{"xml":1}`, "structured_outputs.xml", unknown, ""},
		{`"structured_outputs":{"json":{},"regex":"a"}`, "structured_outputs.regex", bad, "structured_outputs.json"},
		{`"structured_outputs":{"json":{}},"response_format":{"type":"json_object"}`, "response_format", bad, "structured_outputs.json"},
		{`"guided_json":{},"grammar":"root ::= \"a\""`, "grammar", bad, "guided_json"},
		{`"guided_grammar":"start: nothing"`, "guided_grammar", bad, "nothing"},
		{`"guided_whitespace_pattern":" ?"`, "guided_whitespace_pattern", unsupported, "--json-whitespace"},
		{`"grammar":"start: \"a\""`, "grammar", bad, ""},
		{`"json_schema":"{}"`, "json_schema", bad, ""},
		{`"structural_tag":{"type":"structural_tag","format":{"type":"what"}}`, "structural_tag", bad, "what"},
		{`"response_format":{"type":"structural_tag","structures":[]}`, "response_format", bad, ""},
		{`"structural_tag":5`, "structural_tag", bad, ""},
		{`"guided_regex":"a","ignore_eos":true`, "ignore_eos", bad, "guided_regex"},
	} {
		for _, body := range []struct{ path, text string }{
			{"/v1/chat/completions", chatBody("hi", test.more)}, {"/v1/completions", `{"model":"small","prompt":"hi",` + test.more + `}`},
		} {
			e := s.post(body.path, body.text).fails(t, 400, test.param, test.code)
			if !strings.Contains(e.Message, test.says) {
				t.Errorf("%s: %q does not say %q", test.more, e.Message, test.says)
			}
		}
	}
}

// TestFormBounds checks that compiling a grammar is bounded by the time limit of its phase and by
// the memory of requests.
func TestFormBounds(t *testing.T) {
	s := serveTurns(t, server.Config{Deadlines: server.Deadlines{Prepare: time.Millisecond}, RequestMemory: 8 << 20})
	release := s.server.HoldGrammars()
	s.post("/v1/chat/completions", chatBody("hi", `"guided_regex":"a"`)).fails(t, 503, "", "prepare_timeout")
	release()
	long := strings.Repeat("a", 1<<18)
	s.post("/v1/chat/completions", chatBody("hi", `"guided_choice":["`+long+`"]`)).fails(t, 413, "", "request_too_large")
}

// TestFormTooLarge checks that a grammar that takes too much memory during the answer is an error
// of the request, and not of the model.
func TestFormTooLarge(t *testing.T) {
	s := serveTurns(t, server.Config{})
	var rules strings.Builder
	rules.WriteString(`root ::= (`)
	for i := range 5000 {
		sum := sha256.Sum256([]byte{byte(i), byte(i >> 8)})
		fmt.Fprintf(&rules, `"%x" | `, sum[:10])
	}
	rules.WriteString(`"a")+`)
	quoted, err := json.Marshal(rules.String())
	if err != nil {
		t.Fatal(err)
	}
	s.post("/v1/chat/completions", chatBody("hi", `"structured_outputs":{"grammar":`+string(quoted)+`}`)).fails(t, 400, "structured_outputs.grammar", "grammar_too_large")
	s.post("/v1/completions", `{"model":"small","prompt":"hi","grammar":`+string(quoted)+`}`).fails(t, 400, "grammar", "grammar_too_large")
	if r := s.get("/ready"); r.status != 200 {
		t.Errorf("the server is not ready: %s", r.body)
	}
}

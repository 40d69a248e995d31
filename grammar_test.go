package realizar_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/modeltest"
)

// schemas are of many kinds. A model with random weights completes a text of each.
var schemas = []string{
	`{"type": "object", "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0, "maximum": 120}}, "required": ["name", "age"], "additionalProperties": false}`,
	`{"enum": ["red", "green", {"blue": [1, null, true]}]}`,
	`{"type": "array", "items": {"type": "number", "minimum": -5, "maximum": 5}, "minItems": 1, "maxItems": 4}`,
	`{"type": "string", "pattern": "^[a-z]{2,5}-[0-9]{1,3}$"}`,
	`{"type": "string", "format": "date"}`,
	`{"oneOf": [{"type": "integer", "multipleOf": 3, "minimum": 0, "maximum": 99}, {"type": "integer", "multipleOf": 5, "minimum": 0, "maximum": 99}]}`,
	`{"type": "object", "properties": {"kind": {"const": "leaf"}, "value": {"type": "boolean"}}, "required": ["kind", "value"], "additionalProperties": false, "minProperties": 2}`,
	`{"$defs": {"tree": {"type": "object", "properties": {"left": {"anyOf": [{"$ref": "#/$defs/tree"}, {"type": "null"}]}}, "required": ["left"], "additionalProperties": false}}, "$ref": "#/$defs/tree"}`,
	`{"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": true, "maxItems": 3}`,
	`{"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}, "type": "object", "properties": {"a": {"enum": [1, 2]}, "b": {"type": "null"}}, "additionalProperties": false}`,
}

// validator returns a function that validates a JSON text under a schema with an independent
// library.
func validator(t *testing.T, schema string) func(text string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		return s.Validate(value)
	}
}

// manyAnswers returns the number of answers of TestSchemas: REALIZAR_ANSWERS, or a few.
func manyAnswers() int {
	if n, err := strconv.Atoi(os.Getenv("REALIZAR_ANSWERS")); err == nil {
		return n
	}
	return 300
}

// At every temperature, alone or with others, a complete answer is valid under its schema, and an
// answer that ends by its length is the beginning of a valid text.
func TestSchemas(t *testing.T) {
	m := open(t, realizar.Options{Parallel: 64}, modeltest.Context(512))
	type kind struct {
		grammar *realizar.Grammar
		valid   func(string) error
	}
	var kinds []kind
	for _, schema := range schemas {
		g, err := realizar.JSONSchema([]byte(schema), realizar.JSONOptions{})
		if err != nil {
			t.Fatalf("%s: %v", schema, err)
		}
		kinds = append(kinds, kind{g, validator(t, schema)})
	}
	var working sync.WaitGroup
	var mu sync.Mutex
	ended, n := 0, manyAnswers()
	free := realizar.Request{Prompt: "free", Generation: realizar.Generation{MaxTokens: new(60), IgnoreEnd: true, Sampling: realizar.Sampling{Temperature: 1, Seed: 3}}}
	alone := generateAll(t, m, free)[0]
	room := make(chan struct{}, 64)
	for i := range n {
		room <- struct{}{}
		working.Go(func() {
			defer func() { <-room }()
			if i%32 == 0 {
				if a := generateAll(t, m, free)[0]; a.text != alone.text {
					t.Errorf("a free answer is %q beside others, alone %q", a.text, alone.text)
				}
			}
			k := kinds[i%len(kinds)]
			r := realizar.Request{Prompt: "x", Generation: realizar.Generation{MaxTokens: new(200), Grammar: k.grammar, Sampling: realizar.Sampling{Temperature: []float32{0, 0.7, 1.3, 2}[i/len(kinds)%4], Seed: uint64(i)}}}
			a, err := collect(m.Generate(t.Context(), &r))
			if err != nil {
				t.Error(err)
				return
			}
			if a.finish.Reason == realizar.FinishLength {
				if fit, err := k.grammar.Check([]byte(strings.TrimRight(a.text, "\ufffd"))); err != nil || fit.Bytes < len(strings.TrimRight(a.text, "\ufffd")) {
					t.Errorf("%s: the cut answer %q fits for %d bytes (%v)", schemas[i%len(kinds)], a.text, fit.Bytes, err)
				}
				return
			}
			if err := k.valid(a.text); err != nil {
				t.Errorf("%s: %q: %v", schemas[i%len(kinds)], a.text, err)
			}
			mu.Lock()
			defer mu.Unlock()
			ended++
		})
	}
	working.Wait()
	if ended < n/2 {
		t.Errorf("%d answers of %d have ended", ended, n)
	}
}

// The other kinds of grammar constrain an answer too.
func TestGrammars(t *testing.T) {
	m := open(t, realizar.Options{})
	for what, make := range map[string]func() (*realizar.Grammar, error){
		"regexp": func() (*realizar.Grammar, error) { return realizar.Regexp(`(yes|no), [a-c]{3,9}\.`) },
		"choice": func() (*realizar.Grammar, error) { return realizar.OneOf("yes, abc.", "no, cab.") },
		"gbnf": func() (*realizar.Grammar, error) {
			return realizar.GBNF("root ::= (\"yes\" | \"no\") \", \" [a-c]{3,9} \".\"")
		},
		"lark": func() (*realizar.Grammar, error) {
			return realizar.Lark("start: (\"yes\" | \"no\") \", \" ABC \".\"\nABC: /[a-c]{3,9}/\n")
		},
	} {
		g, err := make()
		if err != nil {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, logProbs := range []*int{nil, new(0)} {
			a, err := collect(m.Generate(t.Context(), &realizar.Request{Prompt: "x", Generation: realizar.Generation{MaxTokens: new(50), Grammar: g, LogProbs: logProbs, Sampling: realizar.Sampling{Temperature: 2, Seed: 1}}}))
			if err != nil || a.finish.Reason != realizar.FinishStop {
				t.Errorf("%s: %q, %v (%v)", what, a.text, a.finish, err)
				continue
			}
			if fit, err := g.Check([]byte(a.text)); err != nil || !fit.Whole || !strings.HasSuffix(a.text, ".") {
				t.Errorf("%s: %q fits %+v (%v)", what, a.text, fit, err)
			}
		}
	}
	for what, err := range map[string]error{
		"realizar: invalid request: a choice of no texts; want one at least": second(realizar.OneOf()),
		"(": second(realizar.Regexp("(")),
	} {
		if err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want an error with %q", err, what)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// toolTemplate has tools, calls and reasoning in the form of Hermes and Qwen.
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
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}{% endif %}`

var weather = []chat.Tool{
	{Name: "weather", Parameters: json.RawMessage(`{"type": "object", "properties": {"city": {"enum": ["Oslo", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["city"], "additionalProperties": false}`)},
	{Name: "stop", Parameters: json.RawMessage(`{"type": "object", "properties": {}, "additionalProperties": false}`)},
}

// An answer obeys the tool choice at every temperature.
func TestToolChoice(t *testing.T) {
	m := open(t, realizar.Options{Parallel: 8}, modeltest.Template(toolTemplate), modeltest.Context(2048))
	ask := func(change func(r *realizar.ChatRequest), seed int) (answer, error) {
		r := &realizar.ChatRequest{Messages: []chat.Message{{Role: "user", Content: "hello"}}, Tools: weather}
		r.MaxTokens, r.Sampling = new(400), realizar.Sampling{Temperature: 1, Seed: uint64(seed)}
		change(r)
		return collect(m.Chat(t.Context(), r))
	}
	for seed := range 12 {
		a, err := ask(func(r *realizar.ChatRequest) {
			r.ToolChoice.Mode, r.SingleCall = realizar.ToolRequired, seed%2 == 0
		}, seed)
		if err != nil {
			t.Fatal(err)
		}
		if a.finish.Reason == realizar.FinishCalls && (len(a.calls) == 0 || a.text != "" || seed%2 == 0 && len(a.calls) > 1) {
			t.Errorf("required: %q and %d calls: %v", a.text, len(a.calls), a.calls)
		}
		for _, c := range a.calls {
			if len(c.ID) != 9 || c.Name != "weather" && c.Name != "stop" {
				t.Errorf("a call %+v", c)
			}
			if c.Name == "weather" && a.finish.Reason == realizar.FinishCalls {
				if err := validator(t, string(weather[0].Parameters))(string(c.Arguments)); err != nil {
					t.Errorf("%s: %v", c.Arguments, err)
				}
			}
		}
		if a, err = ask(func(r *realizar.ChatRequest) {
			r.ToolChoice = realizar.ToolChoice{Mode: realizar.ToolNamed, Name: "stop"}
		}, seed); err != nil {
			t.Fatal(err)
		}
		for _, c := range a.calls {
			if c.Name != "stop" {
				t.Errorf("a call of %q where stop was named", c.Name)
			}
		}
		if a, err = ask(func(r *realizar.ChatRequest) { r.ToolChoice.Mode = realizar.ToolNone; r.MaxTokens = new(20) }, seed); err != nil || len(a.calls) > 0 {
			t.Errorf("none: %v (%v)", a.calls, err)
		}
	}
	for what, change := range map[string]func(r *realizar.ChatRequest){
		`a call of "x" is required, which is not in the tools`: func(r *realizar.ChatRequest) { r.ToolChoice = realizar.ToolChoice{Mode: realizar.ToolNamed, Name: "x"} },
		"there are no tools": func(r *realizar.ChatRequest) { r.Tools, r.ToolChoice.Mode = nil, realizar.ToolRequired },
		"want none, minimal": func(r *realizar.ChatRequest) { r.Effort = "much" },
	} {
		if _, err := ask(change, 0); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v, want an error with %q", err, what)
		}
	}
}

// Required calls match the schemas of their tools at every temperature, alone or with others.
func TestToolAnswers(t *testing.T) {
	m := open(t, realizar.Options{Parallel: 64}, modeltest.Template(toolTemplate), modeltest.Context(2048))
	var tools []chat.Tool
	valid := map[string]func(string) error{}
	for i, schema := range schemas {
		if strings.Contains(schema, "$ref") { // references are relative to the whole schema
			continue
		}
		name := fmt.Sprintf("tool%d", i)
		whole := `{"type": "object", "properties": {"of": ` + schema + `}, "required": ["of"], "additionalProperties": false}`
		tools = append(tools, chat.Tool{Name: name, Parameters: json.RawMessage(whole)})
		valid[name] = validator(t, whole)
	}
	var working sync.WaitGroup
	var mu sync.Mutex
	calls, n := 0, manyAnswers()
	room := make(chan struct{}, 64)
	for i := range n {
		room <- struct{}{}
		working.Go(func() {
			defer func() { <-room }()
			at := i % (len(tools) - 1)
			r := &realizar.ChatRequest{Messages: []chat.Message{{Role: "user", Content: "hello"}}, Tools: tools[at : at+2], ToolChoice: realizar.ToolChoice{Mode: realizar.ToolRequired}, SingleCall: i%2 == 0}
			r.MaxTokens, r.Sampling = new(200), realizar.Sampling{Temperature: []float32{0, 0.7, 1.3, 2}[i/len(tools)%4], Seed: uint64(i)}
			a, err := collect(m.Chat(t.Context(), r))
			if err != nil {
				t.Error(err)
				return
			}
			if a.finish.Reason != realizar.FinishCalls {
				if a.finish.Reason != realizar.FinishLength {
					t.Errorf("a call was required, and the answer %q ended: %v", a.text, a.finish)
				}
				return
			}
			if len(a.calls) == 0 || a.text != "" || r.SingleCall && len(a.calls) > 1 {
				t.Errorf("%q beside %d calls", a.text, len(a.calls))
			}
			for _, c := range a.calls {
				if v := valid[c.Name]; v == nil {
					t.Errorf("a call of %q", c.Name)
				} else if err := v(string(c.Arguments)); err != nil {
					t.Errorf("%s: %s: %v", c.Name, c.Arguments, err)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			calls += len(a.calls)
		})
	}
	working.Wait()
	if t.Logf("%d calls of %d answers", calls, n); calls < n/4 {
		t.Errorf("%d calls in %d answers", calls, n)
	}
}

// A schema constrains the text after the reasoning. ThinkingTokens ends the reasoning.
func TestThought(t *testing.T) {
	m := open(t, realizar.Options{}, modeltest.Template(strings.Replace(toolTemplate, "{% if enable_thinking is defined", "{% if enable_thinking is not defined or enable_thinking %}<think>\n{% elif enable_thinking is defined", 1)), modeltest.Context(2048))
	g, err := realizar.JSONSchema([]byte(schemas[1]), realizar.JSONOptions{})
	if err != nil {
		t.Fatal(err)
	}
	valid := validator(t, schemas[1])
	for _, logProbs := range []*int{nil, new(0)} {
		for seed := range 6 {
			r := &realizar.ChatRequest{Messages: []chat.Message{{Role: "user", Content: "hello"}}, ThinkingTokens: new(10 * seed)}
			r.MaxTokens, r.Grammar, r.LogProbs, r.Sampling = new(300), g, logProbs, realizar.Sampling{Temperature: 1.5, Seed: uint64(seed)}
			a, err := collect(m.Chat(t.Context(), r))
			if err != nil {
				t.Fatal(err)
			}
			if err := valid(a.text); err != nil || a.finish.Reason != realizar.FinishStop {
				t.Errorf("after a thought %q the answer is %q: %v", a.reasoning, a.text, err)
			}
			if n := a.finish.Usage.ReasoningTokens; n > 10*seed+12 {
				t.Errorf("a thought of %d tokens, want %d and the mark that ends it", n, 10*seed)
			}
		}
	}
	// With effort "none" there is no reasoning.
	r := &realizar.ChatRequest{Messages: []chat.Message{{Role: "user", Content: "hello"}}, Effort: "none"}
	r.MaxTokens, r.Grammar = new(100), g
	if a, err := collect(m.Chat(t.Context(), r)); err != nil || a.reasoning != "" || valid(a.text) != nil {
		t.Errorf("with no effort the answer is %q after %q (%v)", a.text, a.reasoning, err)
	}
}

// A prepared prompt runs unchanged.
func TestPrepared(t *testing.T) {
	m := open(t, realizar.Options{}, modeltest.Template(toolTemplate), modeltest.Context(2048))
	r := &realizar.ChatRequest{Messages: []chat.Message{{Role: "user", Content: "hello"}}, Tools: weather, ToolChoice: realizar.ToolChoice{Mode: realizar.ToolRequired}}
	r.MaxTokens = new(200)
	p, err := m.ChatPrompt(context.Background(), r, 0)
	if err != nil {
		t.Fatal(err)
	}
	want, err := collect(m.Chat(t.Context(), r))
	if err != nil {
		t.Fatal(err)
	}
	got, err := collect(m.Generate(t.Context(), &realizar.Request{Prepared: &p, Generation: r.Generation}))
	if err != nil || fmt.Sprint(got.tokens) != fmt.Sprint(want.tokens) || len(got.calls) != len(want.calls) || !bytes.Equal(got.calls[0].Arguments, want.calls[0].Arguments) {
		t.Errorf("a prepared prompt gives %v (%v), want %v", got.tokens, err, want.tokens)
	}
}

// A grammar that many requests share does not grow without limit.
func TestGrammarLasts(t *testing.T) {
	for _, schema := range []string{
		`{"type": "object"}`,
		`{"type": "object", "properties": {"a": {"type": "integer"}}}`,
	} {
		for _, o := range []realizar.JSONOptions{{}, {AnyOrder: true}} {
			g, err := realizar.JSONSchema([]byte(schema), o)
			if err != nil {
				t.Fatal(err)
			}
			for n := range 20000 { // enough to exceed the limit of rules
				text := fmt.Sprintf(`{"b%d": 1, "c%d": {"d": 2, "e": 3, "f": 4}, "g": [], "h%d": 5}`, n, n, n)
				if fit, err := g.Check([]byte(text)); err != nil || !fit.Whole {
					t.Fatalf("%s, text %d: %+v (%v)", schema, n, fit, err)
				}
			}
		}
	}
}

package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func fixedTime() time.Time { return time.Date(2025, 6, 15, 12, 34, 56, 0, time.UTC) }

func mustParse(t testing.TB, source string) *Template {
	t.Helper()
	tmpl, err := ParseTemplate(source)
	if err != nil {
		t.Fatal(err)
	}
	return tmpl
}

// marked writes a text with the caller's spans in «».
func marked(t Text) string {
	var b strings.Builder
	for _, s := range t {
		if s.Caller {
			b.WriteString("«" + s.Text + "»")
		} else {
			b.WriteString(s.Text)
		}
	}
	return b.String()
}

// TestConformance renders the chat templates of real models by RenderJSON, and
// those cases that a Request can express by Render as well.
func TestConformance(t *testing.T) {
	dir := os.Getenv("REALIZAR_CONFORMANCE")
	if dir == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder of conformance data")
	}
	dir = filepath.Join(dir, "templates")
	readJSON := func(name string, into any) {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = json.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	var cases map[string]json.RawMessage
	readJSON("cases.json", &cases)
	var expected map[string]map[string]struct {
		OK   bool
		Text string
	}
	readJSON("expected.json", &expected)
	if len(expected) == 0 {
		t.Fatal("no templates")
	}
	for name, wants := range expected {
		source, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		tmpl, parseErr := ParseTemplate(string(source))
		// transformers has no from_json. With it, arguments that are text read as those that are
		// objects.
		if strings.Contains(string(source), "from_json") {
			wants["tools_strargs"] = wants["tools_full"]
		}
		for c, want := range wants {
			check := func(how string, got Text, err error) {
				if (err == nil) != want.OK {
					t.Errorf("%s, %s, by %s: ok = %v, want %v; error: %v", name, c, how, err == nil, want.OK, err)
				} else if diff := cmp.Diff(want.Text, got.String()); want.OK && diff != "" {
					t.Errorf("%s, %s, by %s (-want +got):\n%s", name, c, how, diff)
				}
			}
			if parseErr != nil {
				check("ParseTemplate", nil, parseErr)
				continue
			}
			got, err := tmpl.RenderJSON(t.Context(), cases[c], fixedTime)
			check("RenderJSON", got, err)
			if r := asRequest(t, cases[c]); r != nil && tmpl.reasoning == "reasoning_content" {
				got, err := tmpl.Render(t.Context(), r)
				check("Render", got, err)
			}
		}
	}
}

// asRequest translates the variables of a case, or returns nil when they have
// another form than a Request gives them.
func asRequest(t *testing.T, data []byte) *Request {
	var vars struct {
		Tools []struct {
			Function Tool
		}
		Messages []struct {
			Role, Name, Tool_call_id, Reasoning_content string
			Content                                     json.RawMessage
			Tool_calls                                  []struct {
				ID       string
				Function ToolCall
			}
		}
		Add_generation_prompt bool
		Enable_thinking       json.RawMessage
	}
	if err := json.Unmarshal(data, &vars); err != nil {
		t.Fatal(err)
	}
	var special map[string]json.RawMessage
	if err := json.Unmarshal(data, &special); err != nil {
		t.Fatal(err)
	}
	r := &Request{
		NoGenerationPrompt: !vars.Add_generation_prompt,
		Special:            map[string]string{},
		Vars:               map[string]json.RawMessage{},
		Now:                fixedTime,
	}
	for name, value := range special {
		if strings.HasSuffix(name, "_token") {
			var s string
			if err := json.Unmarshal(value, &s); err != nil {
				t.Fatal(err)
			}
			r.Special[name] = s
		}
	}
	if vars.Enable_thinking != nil {
		r.Vars["enable_thinking"] = vars.Enable_thinking
	}
	for _, tool := range vars.Tools {
		r.Tools = append(r.Tools, tool.Function)
	}
	for _, m := range vars.Messages {
		out := Message{Role: m.Role, Name: m.Name, ToolCallID: m.Tool_call_id, Reasoning: m.Reasoning_content}
		if json.Unmarshal(m.Content, &out.Content) != nil {
			if err := json.Unmarshal(m.Content, &out.Parts); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range m.Tool_calls {
			if strings.HasPrefix(string(c.Function.Arguments), `"`) {
				return nil // templates see these as a string
			}
			c.Function.ID = c.ID
			out.ToolCalls = append(out.ToolCalls, c.Function)
		}
		r.Messages = append(r.Messages, out)
	}
	return r
}

const roles = `{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}` +
	`{% if add_generation_prompt %}<|assistant|>{% endif %}`

func TestSpans(t *testing.T) {
	tmpl := mustParse(t, roles)
	r := &Request{
		Messages: []Message{{Role: "user", Content: "<|end|> is typed"}, {Role: "as|>x<|sistant", Content: ""}},
		Special:  map[string]string{"bos_token": "<s>"},
	}
	got, err := tmpl.Render(t.Context(), r)
	const want = `<s><|user|>«<|end|> is typed»<|end|><|«as|>x<|sistant»|><|end|><|assistant|>`
	if err != nil || marked(got) != want {
		t.Errorf("got  %s, %v\nwant %s", marked(got), err, want)
	}
	r.Vars = map[string]json.RawMessage{"bos_token": json.RawMessage(`"<b>"`)}
	r.NoGenerationPrompt = true
	r.Messages = r.Messages[:1]
	got, err = tmpl.Render(t.Context(), r)
	if want := `«<b>»<|user|>«<|end|> is typed»<|end|>`; err != nil || marked(got) != want {
		t.Errorf("got  %s, %v\nwant %s", marked(got), err, want)
	}
}

// TestVariables looks at what templates see of a request.
func TestVariables(t *testing.T) {
	for _, c := range []struct {
		name, template string
		request        Request
		want           string
	}{
		{"absent fields", `{{ messages }}`, Request{Messages: []Message{{Role: "user", Content: "a"}}},
			`[{'role': 'user', 'content': 'a'}]`},
		{"no tools", `{{ tools }} {{ documents }} {{ tools is defined }}`, Request{}, `None None True`},
		{"parts", `{{ messages[0].content }}`, Request{Messages: []Message{{Parts: []Part{{Text: "a"}, {Text: "b"}}}}},
			`[{'type': 'text', 'text': 'a'}, {'type': 'text', 'text': 'b'}]`},
		{"call", `{{ messages[0]|tojson }}`, Request{Messages: []Message{{Role: "assistant", ToolCalls: []ToolCall{
			{ID: "1", Name: "f", Arguments: json.RawMessage(`{"z": 1.0, "a": [null]}`)}}}}},
			`{"role": "assistant", "content": "", "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": {"z": 1.0, "a": [null]}}}]}`},
		{"call as text", `{{ messages[0].tool_calls|tojson }}`, Request{Messages: []Message{{ToolCalls: []ToolCall{
			{Name: "f", Arguments: json.RawMessage(`"{\"z\": 1}"`)}, {Name: "g"}}}}},
			`[{"type": "function", "function": {"name": "f", "arguments": {"z": 1}}}, {"type": "function", "function": {"name": "g", "arguments": {}}}]`},
		{"result", `{{ messages[0]|tojson }}`, Request{Messages: []Message{{Role: "tool", Content: "r", ToolCallID: "1", Name: "f"}}},
			`{"role": "tool", "content": "r", "tool_call_id": "1", "name": "f"}`},
		{"tool", `{{ tools|tojson }}`, Request{Tools: []Tool{{Name: "f", Description: "d", Parameters: json.RawMessage(`{"type": "object", "a": 1}`)}, {Name: "g"}}},
			`[{"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object", "a": 1}}}, {"type": "function", "function": {"name": "g"}}]`},
		{"documents", `{{ documents[0].title }}`, Request{Documents: []json.RawMessage{json.RawMessage(`{"title": "T"}`)}}, `T`},
		{"variables", `{{ x }}{{ add_generation_prompt }}`, Request{Vars: map[string]json.RawMessage{"x": json.RawMessage(`[1]`)}}, `[1]True`},
		{"reasoning_content", `{{ messages[0].reasoning_content }}{{ messages[0].thinking }}`, Request{Messages: []Message{{Reasoning: "r"}}}, `r`},
		{"reasoning", `{{ messages[0]['reasoning'] }}{{ messages[0].thinking }}`, Request{Messages: []Message{{Reasoning: "r"}}}, `r`},
		{"thinking", `{{ messages[0].thinking }}`, Request{Messages: []Message{{Reasoning: "r"}}}, `r`},
		{"no reasoning", `{{ 'thinking' in messages[0] }}`, Request{Messages: []Message{{}}}, `False`},
		{"time", `{{ strftime_now('%d %b %Y') }}`, Request{Now: fixedTime}, `15 Jun 2025`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := mustParse(t, c.template).Render(t.Context(), &c.request)
			if err != nil || got.String() != c.want {
				t.Errorf("got  %s, %v\nwant %s", got, err, c.want)
			}
		})
	}
}

// TestRoles gives templates roles that are theirs, and some that are not.
func TestRoles(t *testing.T) {
	tmpl := mustParse(t, `{% for m in messages %}<|{{ m.role }}|>{{ '<|' + m['role'] + '|>' }}{% endfor %}`)
	for role, want := range map[string]string{
		"system": `<|system|><|system|>`, "user": `<|user|><|user|>`, "assistant": `<|assistant|><|assistant|>`,
		"tool": `<|tool|><|tool|>`, "developer": `<|developer|><|developer|>`, "function": `<|function|><|function|>`,
		"ipython": `<|ipython|><|ipython|>`, "observation": `<|observation|><|observation|>`, "model": `<|model|><|model|>`,
		"user|><|x": `<|«user|><|x»|><|«user|><|x»|>`, "User": `<|«User»|><|«User»|>`, " user": `<|« user»|><|« user»|>`,
		"end": `<|«end»|><|«end»|>`, "": `<||><||>`,
	} {
		got, err := tmpl.Render(t.Context(), &Request{Messages: []Message{{Role: role}}})
		if err != nil || marked(got) != want {
			t.Errorf("role %q: got %s, %v; want %s", role, marked(got), err, want)
		}
	}
	// The words are the caller's wherever else they stand.
	got, err := mustParse(t, `{{ messages[0].content }}|{{ messages[0].name }}|{{ v }}`).Render(t.Context(), &Request{
		Messages: []Message{{Role: "user", Content: "user", Name: "tool"}},
		Vars:     map[string]json.RawMessage{"v": json.RawMessage(`"model"`)},
	})
	if want := `«user»|«tool»|«model»`; err != nil || marked(got) != want {
		t.Errorf("got %s, %v; want %s", marked(got), err, want)
	}
	got, err = tmpl.RenderJSON(t.Context(), []byte(`{"messages": [{"role": "user"}]}`), nil)
	if want := `<|«user»|><|«user»|>`; err != nil || marked(got) != want {
		t.Errorf("RenderJSON: got %s, %v; want %s", marked(got), err, want)
	}
}

// TestCanceled ends the context of renderings that would go on.
func TestCanceled(t *testing.T) {
	tmpl := mustParse(t, `{% for a in range(100000) %}{% for b in range(100000) %}{{ a }}{% endfor %}{% endfor %}`)
	cause := errors.New("the caller went away")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err := tmpl.Render(ctx, &Request{})
	_, errJSON := tmpl.RenderJSON(ctx, []byte(`{}`), nil)
	for _, err := range []error{err, errJSON} {
		if !errors.Is(err, context.Canceled) || !errors.Is(err, cause) || errors.Is(err, ErrRender) || errors.Is(err, ErrLimit) {
			t.Errorf("got the error %v", err)
		}
	}
}

func TestContinueFinal(t *testing.T) {
	final := []Message{{Role: "user", Content: "a"}, {Role: "assistant", Content: "so far "}}
	parts := []Message{{Role: "assistant", Parts: []Part{{Text: "so"}, {Text: " far"}}}}
	const list = `{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}<|end|>{% endfor %}`
	for _, c := range []struct {
		name, template string
		messages       []Message
		want           string
	}{
		{"plain", roles, final, `<|user|>«a»<|end|><|assistant|>«so far »`},
		{"stripped", strings.ReplaceAll(roles, "m.content", "m.content|trim"), final, `<|user|>«a»<|end|><|assistant|>«so far»`},
		{"parts", list, parts, `«so far»`},
	} {
		got, err := mustParse(t, c.template).Render(t.Context(), &Request{Messages: c.messages, ContinueFinal: true})
		if err != nil || marked(got) != c.want {
			t.Errorf("%s: got %s, %v; want %s", c.name, marked(got), err, c.want)
		}
	}
	if final[1].Content != "so far " || parts[0].Parts[1].Text != " far" {
		t.Error("the messages of the request were changed")
	}
	if _, err := mustParse(t, "x").Render(t.Context(), &Request{Messages: final, ContinueFinal: true}); !errors.Is(err, ErrRender) {
		t.Errorf("a template without messages: %v", err)
	}
}

func TestErrors(t *testing.T) {
	call := func(arguments string) Request {
		return Request{Messages: []Message{{ToolCalls: []ToolCall{{Name: "f", Arguments: json.RawMessage(arguments)}}}}}
	}
	for _, c := range []struct {
		name, template string
		request        Request
		want           error
	}{
		{"refusal", `{{ raise_exception('roles must alternate') }}`, Request{}, ErrRefused},
		{"failure", `{{ messages[0].content + 1 }}`, Request{}, ErrRender},
		{"endless", `{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`, Request{}, ErrLimit},
		{"arguments", `x`, call(`{`), ErrRequest},
		{"arguments of another kind", `x`, call(`[1]`), ErrRequest},
		{"arguments as text of another kind", `x`, call(`"a"`), ErrRequest},
		{"parameters", `x`, Request{Tools: []Tool{{Parameters: json.RawMessage(`nope`)}}}, ErrRequest},
		{"document", `x`, Request{Documents: []json.RawMessage{json.RawMessage(`nope`)}}, ErrRequest},
		{"variable", `x`, Request{Vars: map[string]json.RawMessage{"v": json.RawMessage(`nope`)}}, ErrRequest},
		{"content twice", `x`, Request{Messages: []Message{{Content: "a", Parts: []Part{}}}}, ErrRequest},
		{"calls to continue", `x`, Request{Messages: []Message{{ToolCalls: []ToolCall{{Name: "f"}}}}, ContinueFinal: true}, ErrRequest},
		{"nothing to continue", `x`, Request{Messages: []Message{{Parts: []Part{}}}, ContinueFinal: true}, ErrRequest},
	} {
		if got, err := mustParse(t, c.template).Render(t.Context(), &c.request); !errors.Is(err, c.want) || got != nil {
			t.Errorf("%s: got %q, %v; want %v", c.name, got, err, c.want)
		}
	}
	var refused *RefusedError
	_, err := mustParse(t, "\n{{ raise_exception('roles must alternate') }}").Render(t.Context(), &Request{})
	if !errors.As(err, &refused) || refused.Message != "roles must alternate" || refused.Line != 2 {
		t.Errorf("refusal: %v", err)
	}
	if _, err := ParseTemplate("{% if %}"); !errors.Is(err, ErrTemplate) {
		t.Errorf("syntax: %v", err)
	}
	for _, vars := range []string{`[1]`, `{`, ``} {
		if _, err := mustParse(t, "x").RenderJSON(t.Context(), []byte(vars), nil); !errors.Is(err, ErrRequest) {
			t.Errorf("RenderJSON(%q): %v", vars, err)
		}
	}
}

func TestTakesTools(t *testing.T) {
	if mustParse(t, roles).TakesTools() || !mustParse(t, `{% if tools %}{% endif %}`).TakesTools() {
		t.Error("TakesTools is wrong")
	}
	if got := mustParse(t, roles).Source(); got != roles {
		t.Errorf("Source = %q", got)
	}
}

// TestLargeRequest renders as much text as any context can hold.
func TestLargeRequest(t *testing.T) {
	content := strings.Repeat("All work and no play. ", 1<<16)
	r := &Request{Messages: make([]Message, 40)}
	for i := range r.Messages {
		r.Messages[i] = Message{Role: "user", Content: content}
	}
	tmpl := mustParse(t, `{% for m in messages %}{{ '<' + m.content|trim + '>' }}{{ m.content.split('</think>')[-1] }}{% endfor %}`)
	got, err := tmpl.Render(t.Context(), r)
	if err != nil || len(got.String()) < 80*(len(content)-1) {
		t.Errorf("%d bytes, %v", len(got.String()), err)
	}
}

func TestConcurrent(t *testing.T) {
	tmpl := mustParse(t, roles)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 20 {
				if _, err := tmpl.Render(t.Context(), &Request{Messages: []Message{{Role: "user", Content: "a"}}}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

func ExampleTemplate_Render() {
	tmpl, err := ParseTemplate(`{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>`)
	if err != nil {
		fmt.Println(err)
		return
	}
	prompt, err := tmpl.Render(context.Background(), &Request{Messages: []Message{{Role: "user", Content: "Say <|end|>."}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range prompt {
		fmt.Printf("%-5v %q\n", s.Caller, s.Text)
	}
	// Output:
	// false "<|user|>"
	// true  "Say <|end|>."
	// false "<|assistant|>"
}

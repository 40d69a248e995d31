package turn

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/realizar/realizar/chat"
)

// byName returns the form of a template in testdata.
func byName(t testing.TB, name string) *Form {
	for _, tm := range templatesOf(t, "testdata/templates/"+name+".jinja") {
		return testForm(t, tm)
	}
	t.Fatalf("no template %s", name)
	return nil
}

func TestParse(t *testing.T) {
	call := func(id, name, arguments string) chat.ToolCall {
		return chat.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(arguments)}
	}
	for _, c := range []struct {
		name, form, text string
		want             Message
	}{
		{"keys in another order", "hermes", `<tool_call>{"arguments": {"a": [1, {"b": "}"}]}, "name": "f"}</tool_call>`,
			Message{Calls: []chat.ToolCall{call("", "f", `{"a":[1,{"b":"}"}]}`)}}},
		{"arguments in a string", "hermes", `<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>`,
			Message{Calls: []chat.ToolCall{call("", "f", `{"a": 1}`)}}},
		{"no arguments at all", "hermes", `<tool_call>{"name": "f"}</tool_call>`,
			Message{Calls: []chat.ToolCall{call("", "f", `{}`)}}},
		{"null for arguments", "hermes", `<tool_call>{"name": "f", "arguments": null}</tool_call>`,
			Message{Calls: []chat.ToolCall{call("", "f", `{}`)}}},
		{"the mark in a string", "hermes", `<tool_call>{"name": "f", "arguments": {"a": "</tool_call><tool_call>"}}</tool_call>`,
			Message{Calls: []chat.ToolCall{call("", "f", `{"a":"</tool_call><tool_call>"}`)}}},
		{"no end", "hermes", `<tool_call>{"name": "f", "arguments": {"a": 1}}`,
			Message{Calls: []chat.ToolCall{call("", "f", `{"a":1}`)}}},
		{"text behind", "hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {}}</tool_call>\nDone.",
			Message{Content: "\nDone.", Calls: []chat.ToolCall{call("", "f", `{}`)}}},
		{"a real line end in a string", "hermes", "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": \"x\ny\"}}</tool_call>",
			Message{Calls: []chat.ToolCall{call("", "f", `{"a":"x\ny"}`)}}},
		{"malformed arguments", "hermes", `A <tool_call>{"name": "f", "arguments": {"a" 1}}</tool_call>`,
			Message{Content: `A <tool_call>{"name": "f", "arguments": {"a" 1}}</tool_call>`}},
		{"malformed name", "hermes", `<tool_call>{"name": 1}</tool_call>`, Message{Content: `<tool_call>{"name": 1}</tool_call>`}},
		{"no object", "hermes", `Write <tool_call>f()</tool_call>.`, Message{Content: `Write <tool_call>f()</tool_call>.`}},
		{"a mark alone", "hermes", "A <tool_call>", Message{Content: "A <tool_call>"}},
		{"a part of a mark", "hermes", "A <tool_ca", Message{Content: "A <tool_ca"}},
		{"a good call behind a bad one", "hermes", `<tool_call>x<tool_call>{"name": "f", "arguments": {}}</tool_call>`,
			Message{Content: `<tool_call>x`, Calls: []chat.ToolCall{call("", "f", `{}`)}}},
		{"cut off", "hermes", `<tool_call>{"name": "f", "arguments": {"a": `,
			Message{Content: `<tool_call>{"name": "f", "arguments": {"a": `}},
		{"an empty thought", "hermes", "<think>\n\n</think>\n\nHello", Message{Content: "Hello"}},
		{"a thought without an end", "hermes", "<think>\nI think", Message{Reasoning: "I think"}},
		{"an end of a thought alone", "hermes", "</think>Hello", Message{Content: "Hello"}},
		{"the mark of a thought in the text", "hermes", "The tag <think> opens", Message{Content: "The tag <think> opens"}},
		{"id behind", "mistral-old", `[TOOL_CALLS][{"name": "f", "arguments": {}, "id": "abcdefghi"}]`,
			Message{Calls: []chat.ToolCall{call("abcdefghi", "f", `{}`)}}},
		{"id between", "mistral-id", `[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{}`,
			Message{Calls: []chat.ToolCall{call("abcdefghi", "f", `{}`)}}},
		{"id left out", "mistral-id", `[TOOL_CALLS]f[ARGS]{}`, Message{Calls: []chat.ToolCall{call("", "f", `{}`)}}},
		{"id of name and index", "kimi-k2", `<|tool_calls_section_begin|><|tool_call_begin|>functions.f:3<|tool_call_argument_begin|>{}<|tool_call_end|><|tool_calls_section_end|>`,
			Message{Calls: []chat.ToolCall{call("functions.f:3", "f", `{}`)}}},
		{"a JSON answer is no call", "llama-3", `{"answer": {"name": "now"}}`, Message{Content: `{"answer": {"name": "now"}}`}},
		{"a name nobody knows", "llama-3", `{"name": "f", "parameters": {}}`, Message{Content: `{"name": "f", "parameters": {}}`}},
		{"a mark that says nothing", "llama-3", `<|python_tag|>{"type": "function", "name": "now", "parameters": {}}`,
			Message{Calls: []chat.ToolCall{call("", "now", `{}`)}}},
		{"a list is no call", "llama-4", `[1, 2] and [now]`, Message{Content: `[1, 2] and [now]`}},
		{"python", "llama-4", `[get_weather(location='it\'s', list=['a', True, None, {'k': 1,},], days=-1)]`,
			Message{Calls: []chat.ToolCall{call("", "get_weather", `{"location":"it's","list":["a",true,null,{"k":1}],"days":-1}`)}}},
		{"types by the schema", "qwen3-coder", "<tool_call>\n<function=get_weather>\n<parameter=location>\n12\n</parameter>\n<parameter=days>\n12\n</parameter>\n<parameter=other>\n12\n</parameter>\n<parameter=flag>\nTrue\n</parameter>\n<parameter=list>\n['a', None]\n</parameter>\n</function>\n</tool_call>",
			Message{Calls: []chat.ToolCall{call("", "get_weather", `{"location":"12","days":12,"other":12,"flag":true,"list":["a",null]}`)}}},
		{"another type than the schema's", "qwen3-coder", "<tool_call>\n<function=get_weather>\n<parameter=days>\nthree\n</parameter>\n</function>\n</tool_call>",
			Message{Calls: []chat.ToolCall{call("", "get_weather", `{"days":"three"}`)}}},
		{"recipient first", "harmony", "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant to=functions.f<|channel|>commentary json<|message|>{\"a\": \"<|call|>\"}<|call|>",
			Message{Reasoning: "Hm.", Calls: []chat.ToolCall{call("", "f", `{"a":"<|call|>"}`)}}},
		{"plain text", "harmony", "Just text.", Message{Content: "Just text."}},
		{"text after the call", "gemma-4", `<|tool_call>call:f{a:<|"|>x}<|"|>}<tool_call|>Done.<|tool_response>`,
			Message{Content: "Done.", Calls: []chat.ToolCall{call("", "f", `{"a":"x}"}`)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := byName(t, c.form)
			o := ParserOptions{Tools: testTools, Calls: true}
			if got := f.Parse(c.text, o); !reflect.DeepEqual(got, c.want) {
				t.Errorf("%s\n got %+v\nwant %+v", c.text, got, c.want)
			}
			p := f.NewParser(o)
			var all Collector
			for i := range len(c.text) {
				all.Add(p.Write(c.text[i:i+1], false))
			}
			all.Add(p.Close())
			if got := all.Message(); !reflect.DeepEqual(got, c.want) {
				t.Errorf("byte by byte: %s\n got %+v\nwant %+v", c.text, got, c.want)
			}
		})
	}
}

// TestStream checks which events follow which text.
func TestStream(t *testing.T) {
	f := byName(t, "hermes")
	p := f.NewParser(ParserOptions{Calls: true, Tail: "<think>\n"})
	for _, step := range []struct {
		text string
		want []Event
	}{
		{"Hm", []Event{{Kind: Reasoning, Text: "Hm"}}},
		{" <", []Event{{Kind: Reasoning, Text: " "}}},
		{"b>\n", []Event{{Kind: Reasoning, Text: "<b>"}}},
		{"</think>\n\nI", []Event{{Kind: Text, Text: "I"}}},
		{" look\n", []Event{{Kind: Text, Text: " look"}}},
		{"<tool_call>\n{\"name\": \"f", nil},
		{"\", \"arguments\": {", []Event{{Kind: CallBegin, Name: "f"}, {Kind: CallArguments, Text: "{"}}},
		{"\"a\": \"x", []Event{{Kind: CallArguments, Text: `"a":"x`}}},
		{"\"}", []Event{{Kind: CallArguments, Text: `"}`}}},
		{"}", []Event{{Kind: CallEnd}}},
		{"\n</tool_call>", nil},
	} {
		if got := p.Write(step.text, false); !reflect.DeepEqual(got, step.want) {
			t.Errorf("after %q: %+v, want %+v", step.text, got, step.want)
		}
	}
	if got := p.Close(); got != nil {
		t.Errorf("at the end: %+v", got)
	}
}

func TestLimit(t *testing.T) {
	f := byName(t, "hermes")
	text := `<tool_call>{"arguments": {"a": "` + strings.Repeat("x", 10000)
	p := f.NewParser(ParserOptions{Calls: true, Limit: 1000})
	var c Collector
	for i := range len(text) {
		c.Add(p.Write(text[i:i+1], false))
	}
	if held := len(p.in) + len(p.source) + len(p.call.held); held > 3000 {
		t.Errorf("%d bytes are held", held)
	}
	c.Add(p.Close())
	if got := c.Message().Content; got != text {
		t.Errorf("%d bytes of %d came back", len(got), len(text))
	}
}

func TestSpecial(t *testing.T) {
	f := byName(t, "hermes")
	o := ParserOptions{Calls: true, Special: isTag}
	p := f.NewParser(o)
	var c Collector
	c.Add(p.Write(`<tool_call>{"name": "f", "arguments": {}}</tool_call>`, false))
	c.Add(p.Close())
	if m := c.Message(); len(m.Calls) > 0 {
		t.Errorf("ordinary text was taken for special tokens: %+v", m)
	}
	want := []string{"<think>", "</think>", "<tool_call>", "</tool_call>"}
	if got := f.Specials(isTag); !reflect.DeepEqual(got, want) {
		t.Errorf("special tokens %q, want %q", got, want)
	}
}

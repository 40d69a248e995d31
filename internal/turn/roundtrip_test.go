package turn

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/realizar/realizar/chat"
)

// conformance returns a pattern of the templates of real models, which are not part of the project:
// REALIZAR_CONFORMANCE names the folder of conformance data.
func conformance() string {
	return os.Getenv("REALIZAR_CONFORMANCE") + "/templates/*.jinja"
}

type template struct {
	name string
	*chat.Template
}

// templates returns the templates of testdata, and those of the conformance data if there are any.
func templates(t testing.TB) []template {
	return append(templatesOf(t, "testdata/templates/*.jinja"), templatesOf(t, conformance())...)
}

func templatesOf(t testing.TB, pattern string) []template {
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	var all []template
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := chat.ParseTemplate(string(source))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, template{strings.TrimSuffix(filepath.Base(file), ".jinja"), parsed})
	}
	return all
}

var testSpecial = map[string]string{"bos_token": "<s>", "eos_token": "</s>"}

func testForm(t testing.TB, tm template) *Form {
	f, err := Find(tm.Template, testSpecial)
	if err != nil {
		t.Fatalf("%s: %v", tm.name, err)
	}
	return &f
}

var testTools = []chat.Tool{
	{Name: "get_weather", Description: "d", Parameters: json.RawMessage(`{"type":"object","properties":{
		"location":{"type":"string","description":"d"},"days":{"type":"integer","description":"d"},"ratio":{"type":"number","description":"d"},
		"flag":{"type":"boolean","description":"d"},"none":{"type":"null","description":"d"},"list":{"type":"array","description":"d","items":{"type":"string"}},"nested":{"type":"object","description":"d","additionalProperties":{"type":"string"}},
		"code":{"type":"string","description":"d"}},"required":["location"]}`)},
	{Name: "now", Description: "d", Parameters: json.RawMessage(`{"type":"object","properties":{"p":{"type":"string","description":"d"}},"required":[]}`)},
}

// marksOf lists texts that are likely to confuse the form's parser.
func marksOf(f *Form) []string {
	out := []string{`</tool_call>`, `{"name": "x", "arguments": {}}`}
	for _, m := range []string{f.Reasoning.Begin, f.Reasoning.End, f.Calls.Begin, f.Calls.End} {
		if word(m) != "" {
			out = append(out, word(m))
		}
	}
	for _, p := range append(pieces(f.Calls.Call), pieces(f.Calls.Argument)...) {
		if word(p.text) != "" {
			out = append(out, word(p.text))
		}
	}
	return out
}

type sample struct {
	name    string
	message chat.Message
	// raw is true if strings contain what a tagged form cannot contain without marks.
	raw bool
}

func quoteJSON(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return strings.TrimSpace(b.String())
}

func samples(f *Form) []sample {
	call := func(name, arguments string) chat.ToolCall {
		return chat.ToolCall{ID: fmt.Sprintf("abcdefg%02d", len(arguments)%100), Name: name, Arguments: json.RawMessage(arguments)}
	}
	simple := call("get_weather", `{"location":"Paris, \"FR\" é中😀 <&> {x} [y] it's\\ ","days":3}`)
	none := call("now", `{}`)
	types := call("get_weather", `{"days":-12,"ratio":0.25,"flag":true,"none":null,"list":[1,"a",[],{}],"nested":{"z":1,"a":{"b":[true,null,"é'\""]}},"location":""}`)
	long := call("get_weather", `{"location":"line one\n\tline two\n\n","code":"def f(a=\"x\"):\n    return {\"k\": [a]}\n"}`)
	all := []sample{
		{name: "text", message: assistant("Hello, world. é中😀", "")},
		{name: "text with space", message: assistant("One.\n\n  Two {a: [1]} <b>\nThree", "")},
		{name: "thought", message: assistant("The answer.", "I think.\n\nIt is so. é")},
		{name: "call", message: assistant("", "", simple)},
		{name: "no arguments", message: assistant("", "", none)},
		{name: "types", message: assistant("", "", types)},
		{name: "lines", message: assistant("", "", long)},
		{name: "two", message: assistant("", "", simple, types)},
		{name: "three", message: assistant("", "", none, long, none)},
		{name: "text and call", message: assistant("I look it up.", "", simple)},
		{name: "all", message: assistant("I look it up.", "Let me see.", simple, none)},
		{name: "thought and call", message: assistant("", "Let me see.", types)},
	}
	for i, m := range marksOf(f) {
		inside := call("get_weather", `{"location":`+quoteJSON("a"+m+"b")+`,"list":[`+quoteJSON(m)+`]}`)
		all = append(all, sample{name: fmt.Sprintf("mark %d %s", i, m), message: assistant("", "", inside, none), raw: true})
	}
	return all
}

// A stretch is a piece of text as a model produces it: ordinary text, or a special token.
type stretch struct {
	text    string
	special bool
}

var tags = regexp.MustCompile(`<[^<>\s]{2,}>|\[/?[A-Z_]{4,}\]`)

// isTag is a vocabulary in which every tag is a special token.
func isTag(s string) bool { return tags.FindString(s) == s && s != "" }

// turnOf renders a message and returns its turn in stretches, with the tags of the template as
// special tokens. ok is false if the template cannot render the message.
func turnOf(tm template, f *Form, m chat.Message) ([]stretch, bool) {
	for _, tools := range [][]chat.Tool{testTools, testTools[1:], nil} {
		vars := map[string]json.RawMessage{"functions": json.RawMessage(`"[]"`), "datetime": json.RawMessage(`"today"`)}
		for k, v := range thinking {
			vars[k] = v
		}
		text, err := tm.Render(context.Background(), &chat.Request{
			Messages: []chat.Message{{Role: "user", Content: probeUser}, m}, Tools: tools,
			NoGenerationPrompt: true, Special: testSpecial, Vars: vars,
			Now: func() time.Time { return time.Unix(0, 0) },
		})
		if err != nil {
			continue
		}
		whole := text.String()
		i := strings.LastIndex(whole, probeUser)
		if i < 0 {
			return nil, false
		}
		j := strings.Index(whole[i:], f.Start)
		from := i + j + len(f.Start)
		if j < 0 {
			start := strings.TrimRight(f.Start, spaces)
			j = strings.Index(whole[i:], start)
			if j < 0 {
				return nil, false
			}
			from = i + j + len(start)
		}
		to := len(whole)
		if end := word(f.End); end != "" {
			if k := strings.LastIndex(whole[from:], end); k >= 0 {
				to = from + k
			}
		}
		if tag := word(firstTag.FindString(f.Start)); tag != "" && f.Calls.Syntax != SyntaxHarmony {
			if k := strings.Index(whole[from:to], tag); k >= 0 {
				to = from + k // another turn follows
				if end := word(f.End); end != "" {
					to = from + len(strings.TrimSuffix(strings.TrimRight(whole[from:to], spaces), end))
				}
			}
		}
		var out []stretch
		at := 0
		for _, span := range text {
			lo, hi := max(from-at, 0), min(to-at, len(span.Text))
			at += len(span.Text)
			if lo >= hi {
				continue
			}
			piece := span.Text[lo:hi]
			if span.Caller {
				out = append(out, stretch{piece, false})
				continue
			}
			for piece != "" {
				tag := tags.FindStringIndex(piece)
				if tag == nil {
					out = append(out, stretch{piece, false})
					break
				}
				if tag[0] > 0 {
					out = append(out, stretch{piece[:tag[0]], false})
				}
				out = append(out, stretch{piece[tag[0]:tag[1]], true})
				piece = piece[tag[1]:]
			}
		}
		return out, true
	}
	return nil, false
}

func join(in []stretch) string {
	var b strings.Builder
	for _, s := range in {
		b.WriteString(s.text)
	}
	return b.String()
}

// compact returns JSON without white space, and with uniform escapes in strings.
func compact(t testing.TB, raw json.RawMessage) string {
	if len(raw) == 0 {
		return "{}"
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("arguments are no JSON: %v: %s", err, raw)
	}
	b, _ := json.Marshal(v)
	return string(b)
}

type plainMessage struct {
	Content, Reasoning string
	Calls              []string
}

func plainOf(t testing.TB, content, reasoning string, calls []chat.ToolCall) plainMessage {
	m := plainMessage{Content: content, Reasoning: reasoning}
	for _, c := range calls {
		m.Calls = append(m.Calls, c.Name+compact(t, c.Arguments))
	}
	return m
}

// expected returns the part of a message that the rendered turn contains.
func expected(t testing.TB, f *Form, m chat.Message, turn string) (plainMessage, bool) {
	content, reasoning, calls := m.Content, m.Reasoning, m.ToolCalls
	if !strings.Contains(turn, content) {
		content = ""
	}
	if !strings.Contains(turn, reasoning) {
		reasoning = ""
	}
	if strings.Contains(turn, "analysis"+harmonyMessage+content) && len(calls) > 0 && content != "" {
		content, reasoning = reasoning, content
	}
	if !strings.Contains(turn, "get_weather") && !strings.Contains(turn, "now") {
		calls = nil
	}
	if !f.Calls.Several && len(calls) > 1 || f.Calls.Syntax == SyntaxHarmony && len(calls) > 1 {
		return plainMessage{}, false
	}
	if len(m.ToolCalls) > 0 && calls == nil {
		return plainMessage{}, false
	}
	return plainOf(t, content, reasoning, calls), true
}

func tailFor(f *Form, m plainMessage, turn string) string {
	if f.Reasoning.Open && m.Reasoning != "" && !strings.Contains(turn, word(f.Reasoning.Begin)) {
		return f.Reasoning.Default
	}
	return ""
}

func collect(t testing.TB, p *Parser, in []stretch) plainMessage {
	var c Collector
	for _, s := range in {
		c.Add(p.Write(s.text, s.special))
	}
	c.Add(p.Close())
	m := c.Message()
	return plainOf(t, m.Content, m.Reasoning, m.Calls)
}

func TestRoundTrip(t *testing.T) {
	shown := map[string]int{}
	for _, tm := range templates(t) {
		t.Run(tm.name, func(t *testing.T) {
			f := testForm(t, tm)
			for _, s := range samples(f) {
				turn, ok := turnOf(tm, f, s.message)
				if !ok {
					continue
				}
				text := join(turn)
				want, ok := expected(t, f, s.message, text)
				if !ok {
					continue
				}
				if len(want.Calls) > 0 {
					shown[tm.name]++
				}
				t.Run(s.name, func(t *testing.T) {
					o := ParserOptions{Tools: testTools, Calls: true, Tail: tailFor(f, want, text)}
					marked := o
					marked.Special = isTag
					check := func(how string, o ParserOptions, in []stretch) bool {
						got := collect(t, f.NewParser(o), in)
						if !reflect.DeepEqual(got, want) {
							t.Errorf("%s:\nturn %q\n got %+q\nwant %+q", how, text, got, want)
							return false
						}
						return true
					}
					if !s.raw || f.Calls.Syntax != SyntaxBraces {
						if !check("whole", o, []stretch{{text, false}}) {
							return
						}
						for _, in := range cuts([]stretch{{text, false}}) {
							if !check("cut", o, in) {
								return
							}
						}
					}
					for _, tail := range []string{f.Reasoning.Default, f.Reasoning.On, f.Reasoning.Off} {
						if rest, ok := strings.CutPrefix(text, tail); ok && tail != "" && !s.raw {
							o := o
							o.Tail = tail
							check("after the prompt's end", o, []stretch{{rest, false}})
						}
					}
					if !check("special", marked, turn) {
						return
					}
					for _, in := range cuts(turn) {
						if !check("special, cut", marked, in) {
							return
						}
					}
				})
			}
		})
	}
	if os.Getenv("SHOW") != "" {
		for _, tm := range templates(t) {
			fmt.Println(tm.name, shown[tm.name])
		}
	}
}

// cuts returns ways to cut the ordinary text of a turn: into single bytes, short texts at every
// position, and at random.
func cuts(in []stretch) [][]stretch {
	r := rand.New(rand.NewPCG(1, 2))
	cut := func(every func() int) []stretch {
		var out []stretch
		for _, s := range in {
			for !s.special && len(s.text) > 0 {
				n := min(max(every(), 1), len(s.text))
				out = append(out, stretch{s.text[:n], false})
				s.text = s.text[n:]
			}
			if s.special {
				out = append(out, s)
			}
		}
		return out
	}
	all := [][]stretch{cut(func() int { return 1 })}
	for range 8 {
		n := 1 + r.IntN(20)
		all = append(all, cut(func() int { return r.IntN(n) + 1 }))
	}
	if len(in) == 1 && len(in[0].text) < 300 {
		text := in[0].text
		for i := 1; i < len(text); i++ {
			all = append(all, []stretch{{text[:i], false}, {text[i:], false}})
		}
	}
	return all
}

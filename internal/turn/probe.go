package turn

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/realizar/realizar/chat"
)

// Find recognizes these words in the text that a template renders.
const (
	probeUser    = "Xquestion"
	probeContent = "Xcontent"
	probeThought = "Xthought"
	probeName1   = "xfirst"
	probeName2   = "xsecond"
	probeID1     = "xidentif1" // nine letters, as Mistral's templates want
	probeID2     = "xidentif2"
	probeKey1    = "xkeya"
	probeKey2    = "xkeyb"
	probeValue1  = "xvaluea"
	probeValue2  = "xvalueb"
)

// A prober renders conversations with one template.
type prober struct {
	template *chat.Template
	special  map[string]string
	tools    []chat.Tool
	vars     map[string]json.RawMessage
}

// render returns the text of a question and the messages after it. generate asks for the prompt of
// an answer. ok is false if the template fails.
func (p *prober) render(generate bool, vars map[string]json.RawMessage, messages ...chat.Message) (string, bool) {
	all := map[string]json.RawMessage{}
	for _, from := range []map[string]json.RawMessage{p.vars, vars} {
		for k, v := range from {
			all[k] = v
		}
	}
	text, err := p.template.Render(context.Background(), &chat.Request{
		Messages:           append([]chat.Message{{Role: "user", Content: probeUser}}, messages...),
		Tools:              p.tools,
		NoGenerationPrompt: !generate,
		Vars:               all,
		Special:            p.special,
		Now:                func() time.Time { return time.Unix(0, 0) },
	})
	if err != nil {
		return "", false
	}
	s := text.String()
	i := strings.LastIndex(s, probeUser)
	if i < 0 {
		return "", false
	}
	return s[i+len(probeUser):], true
}

func assistant(content, reasoning string, calls ...chat.ToolCall) chat.Message {
	return chat.Message{Role: "assistant", Content: content, Reasoning: reasoning, ToolCalls: calls}
}

func callOf(name, id, arguments string) chat.ToolCall {
	return chat.ToolCall{ID: id, Name: name, Arguments: json.RawMessage(arguments)}
}

// prepare finds variables and tools with which the template renders.
func (p *prober) prepare() bool {
	tool := chat.Tool{
		Name: probeName1, Description: "A tool.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"` + probeKey1 + `":{"type":"string","description":"A text."}},"required":["` + probeKey1 + `"]}`),
	}
	other := tool
	other.Name = probeName2
	old := map[string]json.RawMessage{"functions": json.RawMessage(`"[]"`), "datetime": json.RawMessage(`"today"`)}
	for _, vars := range []map[string]json.RawMessage{nil, old} {
		for _, tools := range [][]chat.Tool{{tool, other}, nil} {
			p.vars, p.tools = vars, tools
			if _, ok := p.render(true, nil); ok {
				return true
			}
		}
	}
	return false
}

// commonPrefix returns the longest common prefix of a and b that does not end within a tag.
func commonPrefix(a, b string) string {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return a[:wholeTags(a, n)]
}

// wholeTags moves an end back if it is within a tag, <tag> or [TAG], to the start of the tag.
func wholeTags(s string, n int) int {
	if n == len(s) {
		return n
	}
	for _, tag := range []string{"<>", "[]"} {
		open := strings.LastIndexByte(s[:n], tag[0])
		if open < 0 || strings.IndexByte(s[open:n], tag[1]) >= 0 {
			continue
		}
		length := strings.IndexByte(s[open:], tag[1])
		if length < 0 {
			length = len(s) - open // the text ends with the probe's word, within a tag
		}
		if tagLike(s[open+1:open+length], tag) {
			n = open
		}
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return n
}

// tagLike reports whether the text between brackets looks like the name of a tag.
func tagLike(s, tag string) bool {
	const maxTag = 64
	not := "{}\n'<>[](),"
	if tag == "[]" {
		not += "\" "
	}
	return len(s) <= maxTag && !strings.ContainsAny(s, not)
}

// commonSuffix returns the longest common suffix of a and b that does not begin within a tag. If
// one text has a 0 and the other a 1, the result has the placeholder of the call's index.
func commonSuffix(a, b string) string {
	i, j := len(a), len(b)
	var out string
	for i > 0 && j > 0 {
		switch {
		case a[i-1] == b[j-1]:
			out = a[i-1:i] + out
		case a[i-1] == '0' && b[j-1] == '1':
			out = holdIndex + out
		default:
			return fromTag(out)
		}
		i, j = i-1, j-1
	}
	return out
}

// fromTag drops the rest of a tag if s begins within one.
func fromTag(s string) string {
	for _, tag := range []string{"<>", "[]"} {
		end := strings.IndexByte(s, tag[1])
		if end >= 0 && strings.IndexByte(s[:end], tag[0]) < 0 && tagLike(s[:end], tag) {
			s = s[end+1:]
		}
	}
	for s != "" && s[0]&0xc0 == 0x80 {
		s = s[1:]
	}
	return s
}

// whole renders a whole prompt.
func (p *prober) whole(vars map[string]json.RawMessage) (string, bool) {
	all := map[string]json.RawMessage{}
	for _, from := range []map[string]json.RawMessage{p.vars, vars} {
		for k, v := range from {
			all[k] = v
		}
	}
	text, err := p.template.Render(context.Background(), &chat.Request{
		Messages: []chat.Message{{Role: "user", Content: probeUser}},
		Tools:    p.tools, Vars: all, Special: p.special,
		Now: func() time.Time { return time.Unix(0, 0) },
	})
	return text.String(), err == nil
}

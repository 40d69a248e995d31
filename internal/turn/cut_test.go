package turn_test

import (
	"strings"
	"testing"

	"github.com/realizar/realizar/chat"
	"github.com/realizar/realizar/internal/turn"
)

// TestCut checks that a turn that is cut off anywhere keeps its calls as far as they have come, and
// that no part of a mark inside or after a call becomes text.
func TestCut(t *testing.T) {
	f := turn.Form{
		Start: "<|im_start|>assistant\n", End: "<|im_end|>\n",
		Reasoning: turn.ReasoningForm{Begin: "<think>\n", End: "\n</think>\n\n"},
		Calls:     turn.CallForm{Syntax: turn.SyntaxJSON, Call: "<tool_call>\n{\"name\": \"«name»\", \"arguments\": «arguments»}\n</tool_call>", Separator: "\n", Several: true},
	}
	const text = "Well: <tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": \"</tool_call>\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"g\", \"arguments\": {\"b\": [1, 2]}}\n</tool_call>"
	o := turn.ParserOptions{Calls: true, Tools: []chat.Tool{{Name: "f"}, {Name: "g"}}}
	mark := strings.Index(text, "<tool_call>")
	for n := range len(text) + 1 {
		p := f.NewParser(o)
		content, arguments, calls := "", map[int]string{}, 0
		for _, e := range append(p.Write(text[:n], false), p.Cut()...) {
			switch e.Kind {
			case turn.Text:
				content += e.Text
			case turn.CallBegin:
				calls++
			case turn.CallArguments:
				arguments[e.Call] += e.Text
			case turn.CallBroken:
				t.Errorf("%q: a call is broken", text[:n])
			}
		}
		if n >= mark+len("<tool_call>") && strings.TrimSpace(content) != "Well:" {
			t.Errorf("%q: the content is %q", text[:n], content)
		}
		for i, whole := range []string{`{"a":"</tool_call>"}`, `{"b":[1,2]}`} {
			if !strings.HasPrefix(whole, strings.ReplaceAll(arguments[i], " ", "")) {
				t.Errorf("%q: the arguments of call %d are %q", text[:n], i, arguments[i])
			}
		}
		if n == len(text) && calls != 2 {
			t.Errorf("%d calls", calls)
		}
	}
}

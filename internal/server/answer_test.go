package server

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/realizar/realizar"
)

// deltas is a writer that counts its Deltas and can keep the last one.
type deltas struct {
	n    int
	last *Delta // if not nil, gets the last Delta
}

func (*deltas) Begin([][]int32) error { return nil }
func (*deltas) End(*Result) error     { return nil }
func (w *deltas) Delta(d *Delta) error {
	if w.n++; w.last != nil {
		*w.last = *d
	}
	return nil
}

// TestCollector checks that events become answers, numbered over all prompts, without the
// log-probability of the token that ended one, and that the tokens of a prompt count once.
func TestCollector(t *testing.T) {
	c := newCollector(&Exchange{}, nil, 2, 2)
	score := func(id int32) []realizar.TokenLogProb { return []realizar.TokenLogProb{{Token: id, LogProb: -1}} }
	ended := func(reason realizar.FinishReason, stop string, tokens int) *realizar.Finish {
		return &realizar.Finish{Reason: reason, StopString: stop, Usage: realizar.Usage{PromptTokens: 5, CachedTokens: 2, CompletionTokens: tokens}}
	}
	finishes := []*realizar.Finish{ended("stop", "", 2), ended("stop", "x", 1), ended("length", "", 1), ended("stop", "", 0)}
	for _, e := range []struct {
		prompt int
		realizar.Event
	}{
		{1, realizar.Event{PromptLogProbs: score(9)}},
		{0, realizar.Event{Text: "a", LogProbs: score(1)}},
		{1, realizar.Event{Text: "c", LogProbs: score(3), Finish: finishes[2]}},
		{0, realizar.Event{Text: "b", LogProbs: score(2), Finish: finishes[0]}},
		{0, realizar.Event{Choice: 1, Text: "d", LogProbs: score(4), Finish: finishes[1]}},
		{1, realizar.Event{Choice: 1, Finish: finishes[3]}},
	} {
		if err := c.take(e.prompt, &e.Event); err != nil {
			t.Fatal(err)
		}
	}
	want := Result{
		Answers: []Answer{
			{Text: []byte("ab"), LogProbs: score(1), Finish: finishes[0]},
			{Text: []byte("d"), LogProbs: score(4), Finish: finishes[1]},
			{Text: []byte("c"), LogProbs: score(3), Finish: finishes[2]},
			{Finish: finishes[3]},
		},
		PromptLogProbs: [][]realizar.TokenLogProb{nil, score(9)},
		Usage:          realizar.Usage{PromptTokens: 10, CachedTokens: 4, CompletionTokens: 4},
	}
	if diff := cmp.Diff(want, c.result, cmpopts.IgnoreUnexported(Answer{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// TestAnswerParts checks that an answer collects all parts of its Deltas, with complete calls and
// without broken ones.
func TestAnswerParts(t *testing.T) {
	score := func(id int32) []realizar.TokenLogProb { return []realizar.TokenLogProb{{Token: id}} }
	call := func(parts ...realizar.ToolCallPart) *Delta { return &Delta{ToolCalls: parts} }
	var a Answer
	for i, d := range []*Delta{
		{Reasoning: "so"}, {Reasoning: " it"}, {}, {Text: "is"}, {}, {Text: "!"},
		call(realizar.ToolCallPart{ID: "a", Name: "f"}, realizar.ToolCallPart{Arguments: "{"}),
		call(realizar.ToolCallPart{Arguments: "}"}, realizar.ToolCallPart{Call: 1, ID: "b", Name: "g", Arguments: "{"}),
		{Text: "{x", ToolCalls: []realizar.ToolCallPart{{Call: 1, Broken: true}}},
		call(realizar.ToolCallPart{Call: 2, ID: "c", Name: "h", Arguments: "{}"}),
		{Finish: &realizar.Finish{}},
	} {
		d.LogProbs = score(int32(i))
		a.Add(d)
	}
	want := []ToolCall{{ID: "a", Name: "f", Arguments: []byte("{}")}, {ID: "c", Name: "h", Arguments: []byte("{}")}}
	if diff := cmp.Diff(want, a.ToolCalls, cmp.AllowUnexported(ToolCall{})); diff != "" || string(a.Text) != "is!{x" || string(a.Reasoning) != "so it" {
		t.Errorf("text %q, thought %q, calls (-want +got)\n%s", a.Text, a.Reasoning, diff)
	}
	if s := a.TextLogProbs(); s[0].Token != 2 || s[len(s)-1].Token != 8 {
		t.Errorf("the text has the scores %v", s)
	}
	if n := call(realizar.ToolCallPart{ID: "a", Name: "f", Arguments: strings.Repeat("a", 1000)}).bytes(); n < 2000 {
		t.Errorf("a call takes %d bytes", n)
	}
}

// TestDeltaAllocations checks that passing a token of a stream to the writer allocates nothing.
func TestDeltaAllocations(t *testing.T) {
	w := &deltas{}
	c := newCollector(&Exchange{stream: &Stream{}}, w, 1, 1)
	e := &realizar.Event{Text: " word", Tokens: []int32{5}, LogProbs: []realizar.TokenLogProb{{Token: 5}}}
	if n := testing.AllocsPerRun(100, func() {
		if err := c.take(0, e); err != nil {
			t.Fatal(err)
		}
	}); n != 0 || w.n == 0 {
		t.Errorf("%v allocations a token, %d deltas", n, w.n)
	}
}

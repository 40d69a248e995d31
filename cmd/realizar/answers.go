package main

import (
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/chat"
)

// An answerWriter writes the answers to one request, in order: each as it arrives once the previous
// ones are complete, or all as objects at the end.
type answerWriter struct {
	out      io.Writer
	thoughts io.Writer // thoughts are written here
	json     bool
	answers  []writtenAnswer
	current  int           // the answer that is written as it arrives
	headed   bool          // its number has been written
	last     byte          // of the output; 0 if it is empty
	timings  *tokenTimings // of the only answer, or nil
}

// A writtenAnswer is the state of one answer.
type writtenAnswer struct {
	text    strings.Builder // not yet written
	thought strings.Builder // for --json
	calls   []chat.ToolCall
	tokens  []int32
	finish  *realizar.Finish
}

// write writes all answers.
func (w *answerWriter) write(events iter.Seq2[realizar.Event, error], seed uint64) error {
	for e, err := range events {
		if err != nil {
			_ = w.endLine() // the error matters more
			return err
		}
		if w.timings != nil {
			w.timings.take(&e)
		}
		a := &w.answers[e.Choice]
		a.text.WriteString(e.Text)
		a.call(&e)
		if err := w.think(a, &e); err != nil {
			return err
		}
		if w.json {
			a.tokens = append(a.tokens, e.Tokens...)
		}
		a.finish = e.Finish
		if err := w.advance(); err != nil {
			return err
		}
	}
	if w.json {
		return w.writeJSON(seed)
	}
	return nil
}

// think writes a thought to thoughts.
func (w *answerWriter) think(a *writtenAnswer, e *realizar.Event) error {
	if w.json {
		a.thought.WriteString(e.Reasoning)
		return nil
	}
	if e.Reasoning == "" || len(w.answers) > 1 {
		return nil
	}
	_, err := io.WriteString(w.thoughts, shown(e.Reasoning))
	return err
}

// call adds the parts of calls to a.
func (a *writtenAnswer) call(e *realizar.Event) {
	for _, part := range e.ToolCalls {
		if part.Broken {
			a.calls = a.calls[:len(a.calls)-1]
			continue
		}
		if part.Name != "" {
			a.calls = append(a.calls, chat.ToolCall{ID: part.ID, Name: part.Name})
		}
		last := &a.calls[len(a.calls)-1]
		last.Arguments = append(last.Arguments, part.Arguments...)
	}
}

// advance writes the text of the current answer so far. If the answer is complete, advance
// continues with the next one.
func (w *answerWriter) advance() error {
	for !w.json && w.current < len(w.answers) {
		a := &w.answers[w.current]
		if err := w.put(a.text.String()); err != nil {
			return err
		}
		if a.text.Reset(); a.finish == nil {
			return nil
		}
		for i := range a.calls {
			if err := w.endLine(); err != nil {
				return err
			}
			data, err := json.Marshal(newCall(&a.calls[i]))
			if err != nil {
				return err
			}
			if err := w.put(string(data)); err != nil {
				return err
			}
		}
		if err := w.endAnswer(); err != nil {
			return err
		}
	}
	return nil
}

// put writes text of the current answer. If there are several answers, it first writes the number.
func (w *answerWriter) put(text string) error {
	if text == "" {
		return nil
	}
	if !w.headed && len(w.answers) > 1 {
		w.headed = true
		if err := w.raw(w.heading()); err != nil {
			return err
		}
	}
	return w.raw(text)
}

// heading returns the number of the current answer, separated from the previous answer.
func (w *answerWriter) heading() string {
	text := fmt.Sprintf("[%d]\n", w.current+1)
	if w.current > 0 {
		text = "\n" + text
	}
	return text
}

// endAnswer ends the current answer. An answer without text gets its number, too.
func (w *answerWriter) endAnswer() error {
	if len(w.answers) > 1 && !w.headed {
		if err := w.raw(w.heading()); err != nil {
			return err
		}
	}
	w.current, w.headed = w.current+1, false
	return w.endLine()
}

// endLine ends an unfinished line.
func (w *answerWriter) endLine() error {
	if w.last == '\n' || w.last == 0 {
		return nil
	}
	return w.raw("\n")
}

func (w *answerWriter) raw(text string) error {
	w.last = text[len(text)-1]
	_, err := io.WriteString(w.out, text)
	return err
}

// writeJSON writes an object for each answer.
func (w *answerWriter) writeJSON(seed uint64) error {
	out := json.NewEncoder(w.out)
	out.SetEscapeHTML(false)
	for i := range w.answers {
		a := newAnswer(i, &w.answers[i], seed)
		if w.timings != nil {
			a.Trace = w.timings.trace()
		}
		if err := out.Encode(a); err != nil {
			return err
		}
	}
	return nil
}

// An answer is one answer in the output of --json.
type answer struct {
	Choice       int     `json:"choice"`
	Text         string  `json:"text"`
	Reasoning    string  `json:"reasoning,omitempty"`
	ToolCalls    []call  `json:"tool_calls,omitempty"`
	Tokens       []int32 `json:"tokens"`
	FinishReason string  `json:"finish_reason"`
	StopString   string  `json:"stop_string,omitempty"`
	Usage        struct {
		Prompt     int `json:"prompt_tokens"`
		Cached     int `json:"cached_tokens"`
		Completion int `json:"completion_tokens"`
	} `json:"usage"`
	Timings struct {
		Queue       float64 `json:"queue_ms"`
		Prefill     float64 `json:"prefill_ms"`
		Decode      float64 `json:"decode_ms"`
		PrefillRate float64 `json:"prefill_tok_s"`
		DecodeRate  float64 `json:"decode_tok_s"`
	} `json:"timings"`
	Seed  uint64       `json:"seed"`
	Trace *timingTrace `json:"trace,omitempty"`
}

// A call is a call of a tool in the output of --json.
type call struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// newCall converts c. The arguments of a call that was cut off are a string.
func newCall(c *chat.ToolCall) call {
	arguments := c.Arguments
	if !json.Valid(arguments) {
		arguments, _ = json.Marshal(string(arguments))
	}
	return call{c.ID, c.Name, arguments}
}

func newAnswer(choice int, w *writtenAnswer, seed uint64) *answer {
	f := w.finish
	a := &answer{Choice: choice, Text: w.text.String(), Tokens: append([]int32{}, w.tokens...), FinishReason: string(f.Reason), StopString: f.StopString, Seed: seed}
	a.Reasoning = w.thought.String()
	for i := range w.calls {
		a.ToolCalls = append(a.ToolCalls, newCall(&w.calls[i]))
	}
	a.Usage.Prompt, a.Usage.Cached, a.Usage.Completion = f.Usage.PromptTokens, f.Usage.CachedTokens, f.Usage.CompletionTokens
	a.Timings.Queue, a.Timings.Prefill, a.Timings.Decode = milliseconds(f.Timings.Queue), milliseconds(f.Timings.Prefill), milliseconds(f.Timings.Decode)
	a.Timings.PrefillRate, a.Timings.DecodeRate = f.PrefillRate(), f.DecodeRate()
	return a
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// writeTimings writes how long the answers took.
func writeTimings(w io.Writer, loaded time.Duration, answers []writtenAnswer, g *realizar.Generation) {
	var b strings.Builder
	for i := range answers {
		f := answers[i].finish
		if i == 0 {
			fmt.Fprintf(&b, "\nload      %36.3f s\nprompt    %7d tokens %9.1f tok/s %9.3f s\n",
				loaded.Seconds(), f.Usage.PromptTokens, f.PrefillRate(), f.Timings.Prefill.Seconds())
		}
		reason := string(f.Reason)
		if f.StopString != "" {
			reason += fmt.Sprintf(" at %q", f.StopString)
		}
		fmt.Fprintf(&b, "answer    %7d tokens %9.1f tok/s %9.3f s\nended     %s\n",
			f.Usage.CompletionTokens, f.DecodeRate(), f.Timings.Decode.Seconds(), reason)
	}
	_, _ = fmt.Fprintf(w, "%ssampling  %s\n", &b, generationText(g))
}

// generationText describes how tokens are sampled.
func generationText(g *realizar.Generation) string {
	text := "greedy"
	if g.Temperature > 0 {
		text = fmt.Sprintf("temperature %g, top-k %d, top-p %g, min-p %g, seed %d", g.Temperature, g.TopK, g.TopP, g.MinP, g.Seed)
	}
	return text + fraction(g.Typical, ", typical-p %g") + fraction(g.RepetitionPenalty, ", repetition penalty %g") +
		fraction(g.PresencePenalty, ", presence penalty %g") + fraction(g.FrequencyPenalty, ", frequency penalty %g")
}

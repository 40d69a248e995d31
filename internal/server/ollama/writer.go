package ollama

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A shape is where an answer has its parts.
type shape struct{ open, close string }

var (
	chatShape     = shape{`"message":{"role":"assistant","content":`, `}`}
	generateShape = shape{`"response":`, ``}
)

// scoreForm is how tokens and their probabilities are written.
var scoreForm = server.ScoreForm{Sparse: true}

// A writer writes the answer to a request, as a stream of lines or as a whole.
type writer struct {
	x        *server.Exchange
	settings *settings
	shape    shape
	began    time.Time
	head     []byte         // of every line, up to its time
	stream   *server.Stream // nil where the answer comes as a whole
	line     []byte         // scratch
	calls    pending
	finish   *realizar.Finish
	context  *memory // nil where the answer has none
}

// newWriter makes the writer of an answer.
func newWriter(x *server.Exchange, s *settings, of shape) *writer {
	w := &writer{x: x, settings: s, shape: of, began: time.Now()}
	w.head = append(jsontext.AppendString([]byte(`{"model":`), cmp.Or(s.model, x.Name())), `,"created_at":"`...)
	return w
}

// begin makes the answer a stream where the request wants one.
func (w *writer) begin() *writer {
	if w.settings.stream {
		w.stream = w.x.Stream(server.Lines, func(e *server.Error) error { return w.send(errorBody(e)) })
	}
	return w
}

// send sends a line.
func (w *writer) send(line []byte) error {
	w.stream.Add(append(line, '\n'))
	return w.stream.Flush()
}

// load answers a request without a prompt, which wants the model to be loaded, or to go.
func (w *writer) load() error {
	b := append(jsontext.AppendString(w.open(nil), ""), w.shape.close...)
	reason := "load"
	if w.settings.keep.unload() {
		reason = "unload"
	}
	w.x.WriteJSON(append(append(append(b, `,"done":true,"done_reason":"`...), reason...), `"}`...))
	return nil
}

// Begin is called before the model runs.
func (w *writer) Begin(prompts [][]int32) error {
	if w.context != nil {
		w.context.prompt = prompts[0]
	}
	return nil
}

// Delta sends what the answer goes on with, where that is anything.
func (w *writer) Delta(d *server.Delta) error {
	if w.context != nil {
		if err := w.context.add(w.x, d.Text); err != nil {
			return err
		}
	}
	if err := w.calls.add(w.x, d); err != nil {
		return err
	}
	if d.Finish != nil {
		w.finish = d.Finish
	}
	if d.Text == "" && d.Reasoning == "" && len(w.calls.ready) == 0 && len(d.LogProbs) == 0 {
		return nil
	}
	b := jsontext.AppendString(w.open(w.line[:0]), d.Text)
	if d.Reasoning != "" {
		b = jsontext.AppendString(append(b, `,"thinking":`...), d.Reasoning)
	}
	b = append(w.calls.take(b), w.shape.close...)
	b = append(b, `,"done":false`...)
	if len(d.LogProbs) > 0 {
		b = append(w.x.AppendScores(append(b, `,"logprobs":[`...), scoreForm, d.LogProbs, server.Keep), ']')
	}
	w.line = append(b, '}')
	return w.send(w.line)
}

// End ends the stream, or writes the whole answer.
func (w *writer) End(r *server.Result) error {
	b := w.open(w.line[:0])
	if w.stream != nil {
		b = append(jsontext.AppendString(b, ""), w.shape.close...)
	} else {
		a := &r.Answers[0]
		w.finish = a.Finish
		if w.context != nil {
			w.context.text = a.Text
		}
		b = w.appendAnswer(b, a)
	}
	b = append(append(append(b, `,"done":true,"done_reason":"`...), doneReason(w.finish)...), '"')
	if w.context != nil {
		ids, err := w.context.tokens(w.x)
		if err != nil {
			return err
		}
		b = appendIDs(b, ids)
	}
	b = w.appendCounts(b, &r.Usage)
	if r.Timings != nil {
		data, _ := json.Marshal(r.Timings) // there is nothing in it that fails
		b = append(append(b, `,"timings":`...), data...)
	}
	b = append(b, '}')
	if w.stream != nil {
		return w.send(b)
	}
	w.x.WriteJSON(b)
	return nil
}

// appendAnswer appends a whole answer.
func (w *writer) appendAnswer(b []byte, a *server.Answer) []byte {
	b = w.x.Spill(jsontext.AppendString(b, a.Text))
	if len(a.Reasoning) > 0 {
		b = w.x.Spill(jsontext.AppendString(append(b, `,"thinking":`...), a.Reasoning))
	}
	for i := range a.ToolCalls {
		w.calls.finish(&a.ToolCalls[i])
	}
	b = append(w.x.Spill(w.calls.take(b)), w.shape.close...)
	if w.settings.logProbs {
		b = append(w.x.AppendScores(append(b, `,"logprobs":[`...), scoreForm, a.LogProbs, w.x.Spill), ']')
	}
	return w.x.Spill(b)
}

// open appends what a line begins with, up to its text.
func (w *writer) open(b []byte) []byte {
	b = time.Now().UTC().AppendFormat(append(b, w.head...), time.RFC3339Nano)
	return append(append(b, `",`...), w.shape.open...)
}

// appendCounts appends the counts of tokens, and times in nanoseconds. The model is there
// before the request, so that loading it takes none.
func (w *writer) appendCounts(b []byte, u *realizar.Usage) []byte {
	t := &w.finish.Timings
	b = appendDuration(append(b, `,"total_duration":`...), time.Since(w.began))
	b = jsontext.AppendInt(append(b, `,"load_duration":0,"prompt_eval_count":`...), u.PromptTokens)
	b = appendDuration(append(b, `,"prompt_eval_duration":`...), t.Prefill)
	b = jsontext.AppendInt(append(b, `,"eval_count":`...), u.CompletionTokens)
	return appendDuration(append(b, `,"eval_duration":`...), t.Decode)
}

// appendDuration appends nanoseconds, one at least: clients divide by them.
func appendDuration(b []byte, d time.Duration) []byte {
	return jsontext.AppendInt(b, int(max(1, d)))
}

// doneReason is why an answer ended. An answer of calls has come to its end.
func doneReason(f *realizar.Finish) string {
	if f.Reason == realizar.FinishLength {
		return "length"
	}
	return "stop"
}

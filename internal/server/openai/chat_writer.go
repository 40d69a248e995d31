package openai

import (
	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A chatWriter writes the answers to a chat request.
type chatWriter struct {
	*writer
	request *chatRequest
	opened  []bool                  // the choices of a stream whose role was sent
	scores  []realizar.TokenLogProb // of a Delta, until a chunk has them
}

// Begin is called before the model runs.
func (w *chatWriter) Begin([][]int32) error {
	w.opened = make([]bool, w.request.generation.Choices)
	return nil
}

// Delta sends what an answer goes on with: the role first, the reason of its end last.
func (w *chatWriter) Delta(d *server.Delta) error {
	if !w.opened[d.Index] {
		w.opened[d.Index] = true
		w.add(d.Index, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`)
	}
	w.scores = d.LogProbs
	if d.Reasoning != "" {
		b := jsontext.AppendString(w.piece(d.Index, `{"reasoning_content":`), d.Reasoning)
		w.send(append(jsontext.AppendString(append(b, `,"reasoning":`...), d.Reasoning), '}'))
	}
	if d.Text != "" {
		w.send(append(jsontext.AppendString(w.piece(d.Index, `{"content":`), d.Text), '}'))
	}
	for i := range d.ToolCalls {
		w.addCall(d.Index, &d.ToolCalls[i])
	}
	if len(w.scores) > 0 {
		w.send(append(w.piece(d.Index, `{"content":""`), '}'))
	}
	if d.Finish != nil {
		w.add(d.Index, `,"delta":{},"logprobs":null,"finish_reason":"`+w.reason(d.Finish)+`"}`)
	}
	return w.stream.Flush()
}

// addCall adds what a call goes on with: its name and no arguments first. That a call is
// broken cannot be told; its text follows.
func (w *chatWriter) addCall(choice int, p *realizar.ToolCallPart) {
	if p.ID != "" {
		if w.request.functions {
			b := jsontext.AppendString(w.piece(choice, `{"function_call":{"name":`), p.Name)
			w.send(append(b, `,"arguments":""}}`...))
		} else {
			b := jsontext.AppendInt(w.piece(choice, `{"tool_calls":[{"index":`), p.Call)
			b = jsontext.AppendString(append(b, `,"id":`...), p.ID)
			b = jsontext.AppendString(append(b, `,"type":"function","function":{"name":`...), p.Name)
			w.send(append(b, `,"arguments":""}}]}`...))
		}
	}
	switch {
	case p.Arguments == "":
	case w.request.functions:
		w.send(append(jsontext.AppendString(w.piece(choice, `{"function_call":{"arguments":`), p.Arguments), "}}"...))
	default:
		b := jsontext.AppendInt(w.piece(choice, `{"tool_calls":[{"index":`), p.Call)
		w.send(append(jsontext.AppendString(append(b, `,"function":{"arguments":`...), p.Arguments), "}}]}"...))
	}
}

// piece is a chunk of one choice up to its delta, which begins so.
func (w *chatWriter) piece(choice int, delta string) []byte {
	b := jsontext.AppendInt(append(append(w.chunk[:0], w.begin...), `{"index":`...), choice)
	return append(append(b, `,"delta":`...), delta...)
}

// send adds a chunk that [chatWriter.piece] began to those to be sent. The first of a
// Delta has the log-probabilities.
func (w *chatWriter) send(b []byte) {
	b = append(b, `,"logprobs":`...)
	if w.request.logProbs {
		b = append(w.x.AppendScores(append(b, `{"content":[`...), server.ScoreForm{}, w.scores, server.Keep), `],"refusal":null}`...)
	} else {
		b = append(b, "null"...)
	}
	w.scores = nil
	w.chunk = append(append(b, `,"finish_reason":null}`...), w.end...)
	w.stream.AddEvent("", w.chunk)
}

// add adds a chunk of one choice to those to be sent.
func (w *chatWriter) add(choice int, rest string) {
	b := jsontext.AppendInt(append(append(w.chunk[:0], w.begin...), `{"index":`...), choice)
	w.chunk = append(append(b, rest...), w.end...)
	w.stream.AddEvent("", w.chunk)
}

// reason is why an answer ended, as the request knows it.
func (w *chatWriter) reason(f *realizar.Finish) string {
	if f.Reason == realizar.FinishCalls && w.request.functions {
		return "function_call"
	}
	return string(f.Reason)
}

// End ends the stream, or writes the whole answer.
func (w *chatWriter) End(r *server.Result) error {
	if w.stream != nil {
		return w.finish(r)
	}
	b := w.head("chat.completion")
	for i := range r.Answers {
		a := &r.Answers[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = jsontext.AppendInt(append(b, `{"index":`...), i)
		b = append(w.appendMessage(append(b, `,"message":`...), a), `,"logprobs":`...)
		if w.request.logProbs {
			b = append(w.x.AppendScores(append(b, `{"content":[`...), server.ScoreForm{}, a.LogProbs, w.x.Spill), `],"refusal":null}`...)
		} else {
			b = append(b, "null"...)
		}
		b = append(append(append(w.x.Spill(b), `,"finish_reason":"`...), w.reason(a.Finish)...), `"}`...)
	}
	b = w.usage(append(b, `],"usage":`...), &r.Usage)
	if w.request.promptScores != nil {
		b = appendPromptScores(w.x, append(b, `,"prompt_logprobs":`...), r.PromptLogProbs[0], w.x.Spill)
	}
	w.x.WriteJSON(append(appendTimings(b, r.Timings), '}'))
	return nil
}

// appendMessage appends an answer. Its content is null where there are calls alone.
func (w *chatWriter) appendMessage(b []byte, a *server.Answer) []byte {
	b = append(b, `{"role":"assistant","content":`...)
	if len(a.Text) == 0 && len(a.ToolCalls) > 0 {
		b = append(b, "null"...)
	} else {
		b = jsontext.AppendString(b, a.Text)
	}
	b = append(w.x.Spill(b), `,"refusal":null`...)
	if len(a.Reasoning) > 0 {
		b = w.x.Spill(jsontext.AppendString(append(b, `,"reasoning_content":`...), a.Reasoning))
		b = w.x.Spill(jsontext.AppendString(append(b, `,"reasoning":`...), a.Reasoning))
	}
	switch {
	case len(a.ToolCalls) == 0:
	case w.request.functions:
		b = append(appendCalled(append(b, `,"function_call":{`...), &a.ToolCalls[0]), '}')
	default:
		b = append(b, `,"tool_calls":[`...)
		for i := range a.ToolCalls {
			c := &a.ToolCalls[i]
			if i > 0 {
				b = append(b, ',')
			}
			b = jsontext.AppendString(append(b, `{"id":`...), c.ID)
			b = w.x.Spill(append(appendCalled(append(b, `,"type":"function","function":{`...), c), "}}"...))
		}
		b = append(b, ']')
	}
	return append(b, '}')
}

// appendCalled appends the members of the function of a call.
func appendCalled(b []byte, c *server.ToolCall) []byte {
	b = jsontext.AppendString(append(b, `"name":`...), c.Name)
	return jsontext.AppendString(append(b, `,"arguments":`...), c.Arguments)
}

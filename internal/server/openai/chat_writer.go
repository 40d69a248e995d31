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
	opened  []bool                  // by choice: its role was sent
	scores  []realizar.TokenLogProb // of the current Delta, until a chunk has them
}

// Begin prepares for the request's choices.
func (w *chatWriter) Begin([][]int32) error {
	w.opened = make([]bool, w.request.generation.Choices)
	return nil
}

// Delta sends the next part of an answer: the role first, the finish reason last.
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

// addCall sends the next part of a call: first its name with empty arguments, then the arguments.
// The API has no way to say that a call is broken; the call's text follows as content.
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

// piece returns the beginning of a chunk of one choice, up to and including the first bytes of its
// delta.
func (w *chatWriter) piece(choice int, delta string) []byte {
	b := jsontext.AppendInt(append(append(w.chunk[:0], w.begin...), `{"index":`...), choice)
	return append(append(b, `,"delta":`...), delta...)
}

// send completes a chunk that [chatWriter.piece] began and adds it to the stream. The first chunk
// of a Delta carries its log-probabilities.
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

// add adds a chunk of one choice to the stream.
func (w *chatWriter) add(choice int, rest string) {
	b := jsontext.AppendInt(append(append(w.chunk[:0], w.begin...), `{"index":`...), choice)
	w.chunk = append(append(b, rest...), w.end...)
	w.stream.AddEvent("", w.chunk)
}

// reason returns the finish reason: "function_call" for calls if the request has functions.
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
	w.x.WriteJSON(append(appendTimings(w.appendTransfer(b, r.Offer), r.Timings), '}'))
	return nil
}

// appendMessage appends an answer's message. Its content is null if the answer has calls and no
// text.
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

// appendCalled appends the members of a called function.
func appendCalled(b []byte, c *server.ToolCall) []byte {
	b = jsontext.AppendString(append(b, `"name":`...), c.Name)
	return jsontext.AppendString(append(b, `,"arguments":`...), c.Arguments)
}

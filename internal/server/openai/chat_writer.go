package openai

import (
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A chatWriter writes the answers to a chat request.
type chatWriter struct {
	*writer
	request *chatRequest
	opened  []bool // the choices of a stream whose role was sent
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
	if d.Text != "" || len(d.LogProbs) > 0 {
		b := append(jsontext.AppendInt(append(append(w.chunk[:0], w.begin...), `{"index":`...), d.Index), `,"delta":{"content":`...)
		b = append(jsontext.AppendString(b, d.Text), `},"logprobs":`...)
		if w.request.logProbs {
			b = append(appendChatScores(w.x.Server, append(b, `{"content":[`...), d.LogProbs, keep), `],"refusal":null}`...)
		} else {
			b = append(b, "null"...)
		}
		w.chunk = append(append(b, `,"finish_reason":null}`...), w.end...)
		w.stream.AddEvent("", w.chunk)
	}
	if d.Finish != nil {
		w.add(d.Index, `,"delta":{},"logprobs":null,"finish_reason":"`+string(d.Finish.Reason)+`"}`)
	}
	return w.stream.Flush()
}

// add adds a chunk of one choice to those to be sent.
func (w *chatWriter) add(choice int, rest string) {
	b := jsontext.AppendInt(append(append(w.chunk[:0], w.begin...), `{"index":`...), choice)
	w.chunk = append(append(b, rest...), w.end...)
	w.stream.AddEvent("", w.chunk)
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
		b = append(jsontext.AppendInt(append(b, `{"index":`...), i), `,"message":{"role":"assistant","content":`...)
		b = append(jsontext.AppendString(b, a.Text), `,"refusal":null},"logprobs":`...)
		if w.request.logProbs {
			b = append(appendChatScores(w.x.Server, append(b, `{"content":[`...), a.LogProbs, w.x.Spill), `],"refusal":null}`...)
		} else {
			b = append(b, "null"...)
		}
		b = append(append(append(w.x.Spill(b), `,"finish_reason":"`...), a.Finish.Reason...), `"}`...)
	}
	b = appendUsage(append(b, `],"usage":`...), &r.Usage)
	if w.request.promptScores != nil {
		b = appendPromptScores(w.x.Server, append(b, `,"prompt_logprobs":`...), r.PromptLogProbs[0], w.x.Spill)
	}
	w.x.WriteJSON(append(appendTimings(b, r.Timings), '}'))
	return nil
}

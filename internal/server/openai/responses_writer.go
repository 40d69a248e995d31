package openai

import (
	"slices"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
)

// A responsesWriter writes the answer to a request for a response.
type responsesWriter struct {
	x       *server.Exchange
	object  *responseObject // with the items that have begun
	summary bool            // of thoughts is wanted
	kept    *keptItems      // nil where the items are not kept

	item    responseItem      // the last one, while it goes on; else nil
	text    []byte            // that it has so far
	call    int               // its number, of a call
	pending []responseLogProb // of tokens before the first item, which may be a message's
	finish  *realizar.Finish

	stream *server.Stream // nil where the answer comes as a whole
	number int            // of the next event
	opened bool           // the response was sent while nothing had come
}

func newResponsesWriter(x *server.Exchange, r *responsesRequest) *responsesWriter {
	w := &responsesWriter{x: x, object: newResponse(x.Name(), r), summary: r.summary != nil}
	if !r.unkept {
		w.kept = r.kept
	}
	if r.stream {
		w.stream = x.Stream(server.Events, w.fail)
	}
	return w
}

// Begin is called before the model runs.
func (w *responsesWriter) Begin([][]int32) error { return nil }

// Delta sends what the answer goes on with.
func (w *responsesWriter) Delta(d *server.Delta) error {
	if !w.opened {
		if err := w.open(); err != nil {
			return err
		}
	}
	if err := w.reserve(d); err != nil {
		return err
	}
	w.finish = d.Finish
	if d.Reasoning != "" {
		if err := w.addThought(d.Reasoning); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(d.ToolCalls, func(p realizar.ToolCallPart) bool { return p.Broken }) {
		if err := w.addCalls(d); err != nil {
			return err
		}
		return w.addText(d) // of the call
	}
	if err := w.addText(d); err != nil {
		return err
	}
	return w.addCalls(d)
}

func (w *responsesWriter) addCalls(d *server.Delta) error {
	for i := range d.ToolCalls {
		if err := w.addCall(&d.ToolCalls[i]); err != nil {
			return err
		}
	}
	return nil
}

// addThought adds a piece of a thought.
func (w *responsesWriter) addThought(piece string) error {
	if _, ok := w.item.(*responseThought); !ok {
		if err := w.begin(newResponseThought(w.summary)); err != nil {
			return err
		}
	}
	w.text = append(w.text, piece...)
	if err := w.emitDelta("response.reasoning_text.delta", content, piece); err != nil || !w.summary {
		return err
	}
	return w.emitDelta("response.reasoning_summary_text.delta", summary, piece)
}

// addText adds what a message goes on with. Log-probabilities are those of messages: those
// of tokens that are a thought, a call or a mark between them are left out.
func (w *responsesWriter) addText(d *server.Delta) error {
	m, ok := w.item.(*responseMessage)
	var scores []responseLogProb
	if len(d.LogProbs) > 0 {
		scores = responseLogProbs(w.x, d.LogProbs)
	}
	switch {
	case d.OfOther():
		w.pending = nil
		return nil
	case d.Text == "" && len(scores) == 0:
		return nil
	case d.Text == "" && len(w.object.Output) == 0:
		w.pending = append(w.pending, scores...)
		return nil
	case d.Text == "" && !ok:
		return nil
	case !ok:
		scores = append(w.pending, scores...)
		w.pending = nil
		m = newResponseMessage()
		if err := w.begin(m); err != nil {
			return err
		}
	}
	if scores == nil {
		scores = []responseLogProb{}
	}
	w.text = append(w.text, d.Text...)
	m.Content[0].LogProbs = append(m.Content[0].LogProbs, scores...)
	e := w.about("response.output_text.delta", content)
	e.Delta, e.LogProbs = &d.Text, &scores
	return w.emit(e)
}

// addCall adds what a call goes on with.
func (w *responsesWriter) addCall(p *realizar.ToolCallPart) error {
	if p.ID != "" {
		if err := w.begin(newResponseCall(p.ID, p.Name)); err != nil {
			return err
		}
		w.call = p.Call
	}
	if _, ok := w.item.(*responseCall); !ok || p.Call != w.call {
		return nil // of a call that is broken
	}
	if p.Broken {
		return w.end(statusIncomplete)
	}
	if p.Arguments == "" {
		return nil
	}
	w.text = append(w.text, p.Arguments...)
	return w.emitDelta("response.function_call_arguments.delta", whole, p.Arguments)
}

// begin ends the item before and begins one.
func (w *responsesWriter) begin(item responseItem) error {
	if err := w.end(statusCompleted); err != nil {
		return err
	}
	w.item, w.text = item, w.text[:0]
	w.object.Output = append(w.object.Output, item)
	added := w.about("response.output_item.added", whole)
	added.ItemID, added.Item = "", item.empty()
	if err := w.emit(added); err != nil {
		return err
	}
	var part any
	switch i := item.(type) {
	case *responseMessage:
		part = &i.Content[0]
	case *responseThought:
		part = &i.Content[0]
	default:
		return nil
	}
	if err := w.emitPart("response.content_part.added", content, part); err != nil {
		return err
	}
	if t, ok := item.(*responseThought); ok && w.summary {
		return w.emitPart("response.reasoning_summary_part.added", summary, &t.Summary[0])
	}
	return nil
}

// end ends the item that goes on, if there is one.
func (w *responsesWriter) end(status string) error {
	if w.item == nil {
		return nil
	}
	w.fill(status)
	defer func() { w.item = nil }()
	var events []responseEvent
	add := func(kind string, of place, set func(*responseEvent)) {
		e := w.about(kind, of)
		set(&e)
		events = append(events, e)
	}
	switch i := w.item.(type) {
	case *responseMessage:
		part := &i.Content[0]
		add("response.output_text.done", content, func(e *responseEvent) { e.Text, e.LogProbs = &part.Text, &part.LogProbs })
		add("response.content_part.done", content, func(e *responseEvent) { e.Part = part })
	case *responseThought:
		part := &i.Content[0]
		add("response.reasoning_text.done", content, func(e *responseEvent) { e.Text = &part.Text })
		add("response.content_part.done", content, func(e *responseEvent) { e.Part = part })
		for j := range i.Summary {
			part := &i.Summary[j]
			add("response.reasoning_summary_text.done", summary, func(e *responseEvent) { e.Text = &part.Text })
			add("response.reasoning_summary_part.done", summary, func(e *responseEvent) { e.Part = part })
		}
	case *responseCall:
		add("response.function_call_arguments.done", whole, func(e *responseEvent) { e.Name, e.Arguments = &i.Name, &i.Arguments })
	}
	add("response.output_item.done", whole, func(e *responseEvent) { e.ItemID, e.Item = "", w.item })
	for _, e := range events {
		if err := w.emit(e); err != nil {
			return err
		}
	}
	return nil
}

// fill has the item that goes on hold what has come of it.
func (w *responsesWriter) fill(status string) {
	w.item.base().Status = status
	switch i := w.item.(type) {
	case *responseMessage:
		i.Content[0].Text = string(w.text)
	case *responseThought:
		i.Content[0].Text = string(w.text)
		for j := range i.Summary {
			i.Summary[j].Text = i.Content[0].Text
		}
	case *responseCall:
		i.Arguments = string(w.text)
	}
}

// End writes the whole answer. A stream has it after its pieces, with the last item before
// it.
func (w *responsesWriter) End(r *server.Result) error {
	if w.stream == nil {
		if err := w.addAnswer(&r.Answers[0]); err != nil {
			return err
		}
	}
	if len(w.object.Output) == 0 { // so that there is one
		if err := w.begin(newResponseMessage()); err != nil {
			return err
		}
		w.item.(*responseMessage).Content[0].LogProbs = append([]responseLogProb{}, w.pending...)
	}
	w.object.end(w.finish.Reason, r)
	if err := w.end(w.object.Status); err != nil {
		return err
	}
	for _, item := range w.object.Output {
		w.kept.keep(w.x.Server.Spare, item)
	}
	if w.stream == nil {
		return w.x.JSON(w.object)
	}
	return w.emit(responseEvent{Type: "response." + w.object.Status, Response: w.object})
}

// addAnswer adds all of an answer.
func (w *responsesWriter) addAnswer(a *server.Answer) error {
	all := server.Delta{Text: string(a.Text), Reasoning: string(a.Reasoning), LogProbs: a.TextLogProbs()}
	for i := range a.ToolCalls {
		c := &a.ToolCalls[i]
		all.ToolCalls = append(all.ToolCalls, realizar.ToolCallPart{Call: i, ID: c.ID, Name: c.Name, Arguments: string(c.Arguments)})
	}
	all.Finish = a.Finish
	w.opened = true
	return w.Delta(&all)
}

// The object of an answer has its text twice, and as JSON once more; a thought may be its
// summary as well. So it has its scores, which are longer there.
const (
	textCopies    = 6
	thoughtCopies = 12
	scoreCopies   = 8
	itemBytes     = 1 << 10 // of an item beside its text
)

// reserve takes the memory for what the object has of an answer.
func (w *responsesWriter) reserve(d *server.Delta) error {
	n := textCopies*len(d.Text) + thoughtCopies*len(d.Reasoning)
	for i := range d.ToolCalls {
		p := &d.ToolCalls[i]
		n += textCopies * (len(p.ID) + len(p.Name) + len(p.Arguments))
		if p.ID != "" {
			n += itemBytes
		}
	}
	for i := range d.LogProbs {
		n += scoreCopies * int(d.LogProbs[i].Bytes())
	}
	return w.x.Reserve(n)
}

// fail ends the stream with what there is of the response, and that it failed.
func (w *responsesWriter) fail(e *server.Error) error {
	if w.item != nil {
		w.fill(statusIncomplete)
	}
	w.object.Status, w.object.Error = statusFailed, &responseFailure{Code: "server_error", Message: e.Message}
	return w.emit(responseEvent{Type: "response.failed", Response: w.object})
}

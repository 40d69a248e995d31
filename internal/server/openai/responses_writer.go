package openai

import (
	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A responseEvent is one of a stream. Only what belongs to its type is there.
type responseEvent struct {
	Type           string             `json:"type"`
	SequenceNumber int                `json:"sequence_number"`
	Response       *responseObject    `json:"response,omitempty"`
	ItemID         string             `json:"item_id,omitempty"`
	OutputIndex    *int               `json:"output_index,omitempty"`
	ContentIndex   *int               `json:"content_index,omitempty"`
	Item           *responseMessage   `json:"item,omitempty"`
	Part           *responsePart      `json:"part,omitempty"`
	Delta          *string            `json:"delta,omitempty"`
	Text           *string            `json:"text,omitempty"`
	LogProbs       *[]responseLogProb `json:"logprobs,omitempty"`
}

// A responsesWriter writes the answer to a request for a response.
type responsesWriter struct {
	x      *server.Exchange
	object *responseObject // with its one message of one part

	text   []byte // of the answer so far
	finish *realizar.Finish

	stream *server.Stream // nil where the answer comes as a whole
	number int            // of the next event
	opened bool           // the message was begun
}

func newResponsesWriter(x *server.Exchange, r *responsesRequest) *responsesWriter {
	w := &responsesWriter{x: x, object: newResponse(x.Server.Names()[0], r)}
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
	if err := w.reserve(len(d.Text), d.LogProbs); err != nil {
		return err
	}
	w.text = append(w.text, d.Text...)
	w.finish = d.Finish
	scores := responseLogProbs(w.x.Server, d.LogProbs)
	w.part().LogProbs = append(w.part().LogProbs, scores...)
	if d.Text == "" && len(scores) == 0 {
		return nil
	}
	e := w.about("response.output_text.delta", true)
	e.Delta, e.LogProbs = &d.Text, &scores
	return w.emit(e)
}

// End writes the whole answer. A stream has it after its pieces, with the whole text and
// the whole message before it.
func (w *responsesWriter) End(r *server.Result) error {
	if w.stream == nil {
		a := &r.Answers[0]
		if err := w.reserve(len(a.Text), a.LogProbs); err != nil {
			return err
		}
		w.text, w.finish = a.Text, a.Finish
		w.part().LogProbs = responseLogProbs(w.x.Server, a.LogProbs)
	}
	w.part().Text = string(w.text)
	w.object.end(w.finish.Reason, r)
	if w.stream == nil {
		return w.x.JSON(w.object)
	}
	text := w.about("response.output_text.done", true)
	text.Text, text.LogProbs = &w.part().Text, &w.part().LogProbs
	part := w.about("response.content_part.done", true)
	part.Part = w.part()
	item := w.about("response.output_item.done", false)
	item.Item = w.message()
	for _, e := range []responseEvent{text, part, item, {Type: "response." + w.object.Status, Response: w.object}} {
		if err := w.emit(e); err != nil {
			return err
		}
	}
	return nil
}

// The object of an answer has its text twice, and as JSON once more; so it has its scores,
// which are longer there.
const (
	textCopies  = 6
	scoreCopies = 8
)

// reserve takes the memory for what the object has of an answer.
func (w *responsesWriter) reserve(text int, scores []realizar.TokenLogProb) error {
	n := textCopies * text
	for i := range scores {
		n += scoreCopies * int(scores[i].Bytes())
	}
	return w.x.Reserve(n)
}

// fail ends the stream with what there is of the response, and that it failed.
func (w *responsesWriter) fail(e *server.Error) error {
	w.part().Text = string(w.text)
	w.object.Status, w.object.Error = statusFailed, &responseFailure{Code: "server_error", Message: e.Message}
	w.message().Status = statusIncomplete
	return w.emit(responseEvent{Type: "response.failed", Response: w.object})
}

// open sends the response while nothing has come, and its empty message.
func (w *responsesWriter) open() error {
	whole := *w.object
	whole.Output = []responseMessage{}
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := w.emit(responseEvent{Type: kind, Response: &whole}); err != nil {
			return err
		}
	}
	added := w.about("response.output_item.added", false)
	empty := *w.message()
	empty.Content = []responsePart{}
	added.Item = &empty
	if err := w.emit(added); err != nil {
		return err
	}
	w.opened = true
	opened := w.about("response.content_part.added", true)
	opened.Part = w.part()
	return w.emit(opened)
}

// emit sends an event of the response's.
func (w *responsesWriter) emit(e responseEvent) error {
	e.SequenceNumber = w.number
	w.number++
	data, err := jsontext.Encode(&e)
	if err != nil {
		return err
	}
	return w.stream.SendEvent(e.Type, data)
}

// about is an event of the message, and of its part where content is true.
func (w *responsesWriter) about(kind string, content bool) responseEvent {
	e := responseEvent{Type: kind, OutputIndex: new(0)}
	if content {
		e.ItemID, e.ContentIndex = w.message().ID, new(0)
	}
	return e
}

func (w *responsesWriter) message() *responseMessage { return &w.object.Output[0] }
func (w *responsesWriter) part() *responsePart       { return &w.message().Content[0] }

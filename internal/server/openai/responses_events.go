package openai

import (
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A responseEvent is an event of a stream. Only the members that belong to its type are set.
type responseEvent struct {
	Type           string             `json:"type"`
	SequenceNumber int                `json:"sequence_number"`
	Response       *responseObject    `json:"response,omitempty"`
	ItemID         string             `json:"item_id,omitempty"`
	OutputIndex    *int               `json:"output_index,omitempty"`
	ContentIndex   *int               `json:"content_index,omitempty"`
	SummaryIndex   *int               `json:"summary_index,omitempty"`
	Item           responseItem       `json:"item,omitempty"`
	Part           any                `json:"part,omitempty"`
	Name           *string            `json:"name,omitempty"`
	Delta          *string            `json:"delta,omitempty"`
	Text           *string            `json:"text,omitempty"`
	Arguments      *string            `json:"arguments,omitempty"`
	LogProbs       *[]responseLogProb `json:"logprobs,omitempty"`
}

// A place is the part of an item that an event is about.
type place uint8

const (
	whole   place = iota // the item itself
	content              // its one part of content
	summary              // its one part of the summary
)

// open sends the events that begin a stream, with an empty response.
func (w *responsesWriter) open() error {
	w.opened = true
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := w.emit(responseEvent{Type: kind, Response: w.object}); err != nil {
			return err
		}
	}
	return nil
}

// about returns an event about the current item.
func (w *responsesWriter) about(kind string, of place) responseEvent {
	e := responseEvent{Type: kind, ItemID: w.item.base().ID, OutputIndex: new(len(w.object.Output) - 1)}
	switch of {
	case content:
		e.ContentIndex = new(0)
	case summary:
		e.SummaryIndex = new(0)
	}
	return e
}

func (w *responsesWriter) emitDelta(kind string, of place, piece string) error {
	if w.stream == nil {
		return nil
	}
	e := w.about(kind, of)
	e.Delta = &piece
	return w.emit(e)
}

func (w *responsesWriter) emitPart(kind string, of place, part any) error {
	e := w.about(kind, of)
	e.Part = part
	return w.emit(e)
}

// emit sends an event if the answer is a stream.
func (w *responsesWriter) emit(e responseEvent) error {
	if w.stream == nil {
		return nil
	}
	e.SequenceNumber = w.number
	w.number++
	data, err := jsontext.Encode(&e)
	if err != nil {
		return err
	}
	return w.stream.SendEvent(e.Type, data)
}

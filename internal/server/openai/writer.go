package openai

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/server"
	"github.com/realizar/realizar/internal/server/jsontext"
)

// A writer is what those of chats and completions have in common.
type writer struct {
	x        *server.Exchange
	settings *settings
	id       string
	created  int64

	stream     *server.Stream // nil where the answer comes as a whole
	usage      func([]byte, *realizar.Usage) []byte
	begin, end []byte // of every chunk, up to its choices and after them
	chunk      []byte // scratch
}

// newWriter makes one for answers whose names begin with prefix, and whose tokens usage
// counts. Where they are asked for as a stream, its chunks are of that object.
func newWriter(x *server.Exchange, s *settings, prefix, object string, usage func([]byte, *realizar.Usage) []byte) *writer {
	w := &writer{x: x, settings: s, id: server.NewID(prefix), created: time.Now().Unix(), usage: usage}
	if !s.stream {
		return w
	}
	w.begin, w.end = w.head(object), []byte(`]}`)
	if s.options.usage {
		w.end = []byte(`],"usage":null}`) // of every chunk but the one that has it
	}
	w.stream = x.Stream(server.Events, func(e *server.Error) error { return w.stream.SendEvent("", errorBody(e)) })
	return w
}

// head is what answers and chunks begin with, up to their choices.
func (w *writer) head(object string) []byte {
	b := jsontext.AppendString([]byte(`{"id":`), w.id)
	b = jsontext.AppendString(append(b, `,"object":`...), object)
	b = strconv.AppendInt(append(b, `,"created":`...), w.created, 10)
	b = jsontext.AppendString(append(b, `,"model":`...), w.x.Name())
	return append(b, `,"choices":[`...)
}

// finish ends the stream, behind a chunk with what comes after all choices where that
// is asked for.
func (w *writer) finish(r *server.Result) error {
	if w.settings.options.usage || r.Timings != nil {
		b := append(append(w.chunk[:0], w.begin...), ']')
		if w.settings.options.usage {
			b = w.usage(append(b, `,"usage":`...), &r.Usage)
		}
		w.stream.AddEvent("", append(appendTimings(b, r.Timings), '}'))
	}
	return w.stream.SendEvent("", []byte("[DONE]"))
}

func appendUsage(b []byte, u *realizar.Usage) []byte {
	b = jsontext.AppendInt(append(b, `{"prompt_tokens":`...), u.PromptTokens)
	b = jsontext.AppendInt(append(b, `,"completion_tokens":`...), u.CompletionTokens)
	b = jsontext.AppendInt(append(b, `,"total_tokens":`...), u.PromptTokens+u.CompletionTokens)
	b = jsontext.AppendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), u.CachedTokens)
	return append(b, `}}`...)
}

// appendChatUsage is appendUsage with the tokens of thoughts.
func appendChatUsage(b []byte, u *realizar.Usage) []byte {
	b = appendUsage(b, u)
	b = jsontext.AppendInt(append(b[:len(b)-1], `,"completion_tokens_details":{"reasoning_tokens":`...), u.ReasoningTokens)
	return append(b, `}}`...)
}

// appendTimings appends the member of an answer that reports, where it was asked for.
func appendTimings(b []byte, t *server.Timings) []byte {
	if t == nil {
		return b
	}
	data, _ := json.Marshal(t) // there is nothing in it that fails
	return append(append(b, `,"timings":`...), data...)
}

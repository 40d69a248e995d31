package server

import (
	"strconv"

	"github.com/realizar/realizar"
)

// A chatAnswer is what a chat request is answered with, as a whole or as a stream.
type chatAnswer struct {
	server  *Server
	request *chatRequest
	id      string
	created int64
	usage   usage
	watch   *stopwatch

	choices      []chatChoice // of a whole answer
	promptScores []byte

	stream     *stream
	begin, end []byte // of every chunk, up to its choices and after them
	opened     []bool // the choices whose role was sent
	chunk      []byte // scratch
}

// A chatChoice is an answer as far as it has come.
type chatChoice struct {
	text   []byte
	scores []byte // of its tokens, as JSON without the brackets
	reason realizar.FinishReason
}

// head is what answers and chunks begin with, up to their choices.
func head(b []byte, id, object string, created int64, model string) []byte {
	b = appendString(append(b, `{"id":`...), id)
	b = appendString(append(b, `,"object":`...), object)
	b = strconv.AppendInt(append(b, `,"created":`...), created, 10)
	b = appendString(append(b, `,"model":`...), model)
	return append(b, `,"choices":[`...)
}

// prepare makes what the chunks have in common.
func (a *chatAnswer) prepare() {
	a.begin = head(nil, a.id, "chat.completion.chunk", a.created, a.server.config.Names[0])
	a.end = streamEnd(&a.request.settings)
	a.opened = make([]bool, a.request.generation.Choices)
}

// streamEnd ends every chunk but the one that has the usage.
func streamEnd(s *settings) []byte {
	if s.options.usage {
		return []byte(`],"usage":null}`)
	}
	return []byte(`]}`)
}

// take passes an event on.
func (a *chatAnswer) take(e *realizar.Event) error {
	if e.PromptLogProbs != nil {
		a.promptScores = a.server.appendPromptScores(nil, e.PromptLogProbs)
		return nil
	}
	a.watch.saw(e.Choice, e)
	if e.Finish != nil {
		a.usage.add(e.Choice, e.Finish)
	}
	if a.stream != nil {
		return a.sendChunks(e)
	}
	c := &a.choices[e.Choice]
	c.text = append(c.text, e.Text...)
	c.scores = a.server.appendChatScores(c.scores, textScores(e))
	if e.Finish != nil {
		c.reason = e.Finish.Reason
	}
	return nil
}

// sendChunks sends what an event has: the role first, the reason of its end last.
func (a *chatAnswer) sendChunks(e *realizar.Event) error {
	if !a.opened[e.Choice] {
		a.opened[e.Choice] = true
		a.add(e.Choice, `,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}`)
	}
	if scores := textScores(e); e.Text != "" || len(scores) > 0 {
		b := append(appendInt(append(append(a.chunk[:0], a.begin...), `{"index":`...), e.Choice), `,"delta":{"content":`...)
		b = append(appendString(b, e.Text), `},"logprobs":`...)
		if a.request.logProbs {
			b = append(a.server.appendChatScores(append(b, `{"content":[`...), scores), `],"refusal":null}`...)
		} else {
			b = append(b, "null"...)
		}
		a.chunk = append(append(b, `,"finish_reason":null}`...), a.end...)
		a.stream.add(a.chunk)
	}
	if e.Finish != nil {
		a.add(e.Choice, `,"delta":{},"logprobs":null,"finish_reason":"`+string(e.Finish.Reason)+`"}`)
	}
	return a.stream.flush()
}

// add adds a chunk of one choice to those to be sent.
func (a *chatAnswer) add(choice int, rest string) {
	b := appendInt(append(append(a.chunk[:0], a.begin...), `{"index":`...), choice)
	a.chunk = append(append(b, rest...), a.end...)
	a.stream.add(a.chunk)
}

// finish ends the stream.
func (a *chatAnswer) finish() error {
	if b := lastChunk(append(a.chunk[:0], a.begin...), &a.request.settings, &a.usage, a.watch); b != nil {
		a.stream.add(b)
	}
	return a.stream.done()
}

// lastChunk is b, the beginning of a chunk, with what comes after all choices; nil
// where nothing was asked for.
func lastChunk(b []byte, s *settings, u *usage, watch *stopwatch) []byte {
	if !s.options.usage && watch == nil {
		return nil
	}
	if b = append(b, ']'); s.options.usage {
		b = appendUsage(append(b, `,"usage":`...), u)
	}
	return append(watch.appendTimings(b), '}')
}

// body is the whole answer.
func (a *chatAnswer) body() []byte {
	b := head(nil, a.id, "chat.completion", a.created, a.server.config.Names[0])
	for i := range a.choices {
		c := &a.choices[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = append(appendInt(append(b, `{"index":`...), i), `,"message":{"role":"assistant","content":`...)
		b = append(appendString(b, c.text), `,"refusal":null},"logprobs":`...)
		if a.request.logProbs {
			b = append(append(append(b, `{"content":[`...), c.scores...), `],"refusal":null}`...)
		} else {
			b = append(b, "null"...)
		}
		b = append(append(append(b, `,"finish_reason":"`...), c.reason...), `"}`...)
	}
	b = appendUsage(append(b, `],"usage":`...), &a.usage)
	if a.promptScores != nil {
		b = append(append(b, `,"prompt_logprobs":`...), a.promptScores...)
	}
	return append(a.watch.appendTimings(b), '}')
}

func appendUsage(b []byte, u *usage) []byte {
	b = appendInt(append(b, `{"prompt_tokens":`...), u.prompt)
	b = appendInt(append(b, `,"completion_tokens":`...), u.completion)
	b = appendInt(append(b, `,"total_tokens":`...), u.prompt+u.completion)
	b = appendInt(append(b, `,"prompt_tokens_details":{"cached_tokens":`...), u.cached)
	return append(b, `}}`...)
}

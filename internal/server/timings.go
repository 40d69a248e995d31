package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/realizar/realizar"
)

// traceHeader asks for timings in the answer.
const traceHeader = "X-Trace-Level"

// The levels of detail.
const (
	traceBrick = "brick" // the parts of the request's time
	traceStep  = "step"  // and when each token came
	traceLayer = "layer" // and the time of each layer, which steps of many answers do not have
)

// A stopwatch collects the times of one request that asks for them. A nil one is that
// of a request that does not.
type stopwatch struct {
	steps bool
	begun time.Time
	times timings
}

// timings are what an answer has under that name. Times are in milliseconds.
type timings struct {
	Level    string          `json:"level"`
	Render   float64         `json:"render_ms"`
	Tokenize float64         `json:"tokenize_ms"`
	Choices  []choiceTimings `json:"choices"`
}

// choiceTimings are those of one answer of a request.
type choiceTimings struct {
	Index      int     `json:"index"`
	Queue      float64 `json:"queue_ms"`
	Prefill    float64 `json:"prefill_ms"`
	Decode     float64 `json:"decode_ms"`
	Detokenize float64 `json:"detokenize_ms"`
	// Tokens is when each token came, counted from when the request had been read.
	Tokens []float64 `json:"token_ms,omitempty"`
}

// watchFor begins to measure what the request's header asks for, of so many answers.
func (x *exchange) watchFor(answers int) error {
	level := x.Header.Get(traceHeader)
	switch level {
	case "":
		return nil
	case traceBrick, traceStep:
	case traceLayer:
		return badTrace("%s: %s is not possible: a step runs the layers of all answers under way at one time, and no backend measures them one by one; want %s or %s",
			traceHeader, traceLayer, traceBrick, traceStep)
	default:
		return badTrace("%s: %.40q is not a level; want %s or %s", traceHeader, level, traceBrick, traceStep)
	}
	x.watch = &stopwatch{steps: level == traceStep, begun: time.Now(), times: timings{Level: level, Choices: make([]choiceTimings, answers)}}
	for i := range x.watch.times.Choices {
		x.watch.times.Choices[i].Index = i
	}
	return nil
}

// noWatch refuses a header that asks for times where none are measured.
func (x *exchange) noWatch() error {
	if x.Header.Get(traceHeader) == "" {
		return nil
	}
	return badTrace("%s: %s has no timings; answers of the chat, completions and responses endpoints have", traceHeader, x.URL.Path)
}

func badTrace(format string, a ...any) error {
	return &Error{Status: http.StatusBadRequest, Code: "invalid_value", Param: traceHeader, Message: fmt.Sprintf(format, a...)}
}

// prepared notes what the prompt took.
func (t *stopwatch) prepared(render, tokenize time.Duration) {
	if t != nil {
		t.times.Render, t.times.Tokenize = milliseconds(render), milliseconds(tokenize)
	}
}

// saw notes what an event of the answer with that index tells.
func (t *stopwatch) saw(index int, e *realizar.Event) {
	if t == nil {
		return
	}
	c := &t.times.Choices[index]
	if t.steps {
		for range e.Tokens {
			c.Tokens = append(c.Tokens, milliseconds(time.Since(t.begun)))
		}
	}
	if f := e.Finish; f != nil {
		c.Queue, c.Prefill, c.Decode = milliseconds(f.Timings.Queue), milliseconds(f.Timings.Prefill), milliseconds(f.Timings.Decode)
		c.Detokenize = milliseconds(f.Timings.Detokenize)
	}
}

// report is what the answer has; nil where nothing was asked for.
func (t *stopwatch) report() *timings {
	if t == nil {
		return nil
	}
	return &t.times
}

// appendTimings appends the member of an answer that reports, where it was asked for.
func (t *stopwatch) appendTimings(b []byte) []byte {
	if t == nil {
		return b
	}
	data, _ := json.Marshal(&t.times) // there is nothing in it that fails
	return append(append(b, `,"timings":`...), data...)
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

package server

import (
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
	traceLayer = "layer" // and what each layer of the model took
)

// A stopwatch collects the times of one request. It is nil if the request asks for none.
type stopwatch struct {
	steps bool
	begun time.Time
	times Timings
}

// Timings is the field "timings" of an answer. Times are in milliseconds.
type Timings struct {
	Level    string          `json:"level"`
	Render   float64         `json:"render_ms"`
	Tokenize float64         `json:"tokenize_ms"`
	Choices  []ChoiceTimings `json:"choices"`
}

// ChoiceTimings has the times of one answer of a request.
type ChoiceTimings struct {
	Index      int     `json:"index"`
	Queue      float64 `json:"queue_ms"`
	Prefill    float64 `json:"prefill_ms"`
	Decode     float64 `json:"decode_ms"`
	Detokenize float64 `json:"detokenize_ms"`
	// Tokens has the time of each token since the request was read.
	Tokens []float64     `json:"token_ms,omitempty"`
	Layers *LayerTimings `json:"layers,omitempty"`
}

// LayerTimings has the times per layer of the steps in which an answer took part. The first element
// is the time outside all layers. Times are summed over tokens, so that longer answers do not have
// more numbers.
type LayerTimings struct {
	Prefill []float64 `json:"prefill_ms"`          // up to the first token
	Decode  []float64 `json:"decode_ms,omitempty"` // after the first token
}

// watchFor starts the stopwatch that the request's header asks for, for the given number of
// answers.
func (x *Exchange) watchFor(answers int) error {
	level := x.Header.Get(traceHeader)
	switch level {
	case "":
		return nil
	case traceBrick, traceStep, traceLayer:
	default:
		return badTrace("%s: %.40q is not a level; want %s, %s or %s", traceHeader, level, traceBrick, traceStep, traceLayer)
	}
	x.watch = &stopwatch{steps: level != traceBrick, begun: time.Now(), times: Timings{Level: level, Choices: make([]ChoiceTimings, answers)}}
	for i := range x.watch.times.Choices {
		x.watch.times.Choices[i].Index = i
	}
	return nil
}

// NoTimings returns an error if the header asks for timings and the answer has no field for them.
func (x *Exchange) NoTimings() error {
	if x.Header.Get(traceHeader) == "" {
		return nil
	}
	return badTrace("%s: %s has no timings, or not for what is asked of it; answers of the chat, completions and responses endpoints have", traceHeader, x.URL.Path)
}

func badTrace(format string, a ...any) error {
	return &Error{Status: http.StatusBadRequest, Code: "invalid_value", Param: traceHeader, Message: fmt.Sprintf(format, a...)}
}

// layered reports whether the model must measure its layers.
func (t *stopwatch) layered() bool { return t != nil && t.times.Level == traceLayer }

// prepared adds the times of a prompt.
func (t *stopwatch) prepared(p *realizar.Prompt) {
	if t != nil {
		t.times.Render += milliseconds(p.Render)
		t.times.Tokenize += milliseconds(p.Tokenize)
	}
}

// saw adds the times of an event of the answer with that index.
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
	for _, times := range e.LayerTimes {
		c.passed(times)
	}
	if f := e.Finish; f != nil {
		c.Queue, c.Prefill, c.Decode = milliseconds(f.Timings.Queue), milliseconds(f.Timings.Prefill), milliseconds(f.Timings.Decode)
		c.Detokenize = milliseconds(f.Timings.Detokenize)
	}
}

// passed adds the times per layer of a token.
func (c *ChoiceTimings) passed(times []time.Duration) {
	if c.Layers == nil {
		c.Layers = &LayerTimings{Prefill: make([]float64, len(times))}
		addTimes(c.Layers.Prefill, times)
		return
	}
	if c.Layers.Decode == nil {
		c.Layers.Decode = make([]float64, len(times))
	}
	addTimes(c.Layers.Decode, times)
}

func addTimes(to []float64, times []time.Duration) {
	for i, d := range times {
		to[i] += milliseconds(d)
	}
}

// report returns the timings for the answer; nil if none were asked for.
func (t *stopwatch) report() *Timings {
	if t == nil {
		return nil
	}
	return &t.times
}

func milliseconds(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

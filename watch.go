package realizar

import (
	"time"

	"github.com/realizar/realizar/internal/engine"
)

// A StepTiming is what a step of a model took. A step runs a token of each answer
// under way, or pieces of prompts, or both.
type StepTiming struct {
	Step    uint64 // its number, from 1
	Answers int    // that had a part in it
	Tokens  int    // run
	Prompt  int    // of Tokens, those that prompts were read by, several of one at a time
	Chosen  int    // tokens chosen

	// While a step runs the next one is made ready, so that it may have been submitted
	// before the step before it was done. Begun is when nothing was in its way any longer.
	Submitted, Begun, Done time.Time

	Capture time.Duration // of making a graph of steps of its size, before it began; 0 where there was one

	// What it took on the device, where the model runs: all of it, of that what comes
	// before the first layer, and the choice of tokens. The time from Begun to Done is
	// longer, by what the host did meanwhile.
	Device, Embed, Choose time.Duration

	// Spans are what the step was made of, one after the other, where
	// [Options.Profile] asks for them. They are valid until [Options.Watch] returns.
	Spans []Span
}

// A Span is a part of a step: on a GPU a kernel, on the processor what is done as one.
type Span struct {
	Kernel string        // what ran
	Where  string        // what it did, in words
	Layer  int           // counted from 0; -1: none, as the embedding and the head have
	Begin  time.Duration // from the step's beginning on the device
	Time   time.Duration
	// Bytes are what it had to read and write of the memory that holds weights and the
	// cache, at least: each weight once, and what it attended to.
	Bytes int64
}

// LoadTimings are what making a model ready took. Open, Load, Compile and the Capture
// that there was by then are what [Open] took.
type LoadTimings struct {
	Open    time.Duration // files, the architecture, the tokenizer, the device, planning its memory
	Load    time.Duration // reading the weights and laying them out
	Compile time.Duration // choosing and building kernels
	Capture time.Duration // of steps as graphs on a GPU, which goes on when sizes come up for the first time
}

// Setup is what making the model ready took by now.
func (m *Model) Setup() LoadTimings {
	s := m.engine.Setup()
	return LoadTimings{Open: m.opening, Load: s.Load, Compile: s.Compile, Capture: s.Capture}
}

// opened notes what Open took in all.
func (m *Model) opened(took time.Duration) {
	s := m.engine.Setup()
	m.opening = max(0, took-s.Load-s.Compile-s.Capture)
}

// watch is the options' Watch as an engine has it.
func (o *Options) watch() *engine.Watch {
	if o.Watch == nil {
		return nil
	}
	var spans []Span // used again
	return &engine.Watch{Timed: true, Spans: o.Profile, Step: func(r *engine.StepReport) {
		t := StepTiming{
			Step: r.Number, Answers: r.Seqs, Tokens: r.Tokens, Prompt: r.Prompt, Chosen: r.Chosen,
			Submitted: r.Submitted, Begun: r.Begun, Done: r.Done, Capture: r.Capture,
			Device: r.Times.Total, Embed: r.Times.Embed, Choose: r.Times.Choose,
		}
		if r.Spans != nil {
			spans = spans[:0]
			for i := range r.Spans {
				s := &r.Spans[i]
				spans = append(spans, Span{Kernel: s.Kernel, Where: s.Where, Layer: s.Layer, Begin: s.Begin, Time: s.Time, Bytes: int64(s.Bytes)})
			}
			t.Spans = spans
		}
		o.Watch(t)
	}}
}

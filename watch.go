package realizar

import (
	"sync"
	"time"

	"github.com/realizar/realizar/internal/engine"
)

// A StepTiming is the timing of one step of a model. A step runs a decode token of each running
// answer, chunks of prompts (prefill), or both.
type StepTiming struct {
	Replica int    // that ran the step, from 0
	Step    uint64 // number of the step of the replica, from 1
	Answers int    // answers in the step
	Tokens  int    // tokens that the step computed
	Prompt  int    // the part of Tokens in prefill chunks, which have several tokens each
	Chosen  int    // tokens that the step sampled
	// Proposed is the part of Tokens that was proposed, see [Options.Speculative], and Accepted the
	// part of Proposed that the step sampled as well.
	Proposed, Accepted int

	// Submitted is when the step was submitted to the device, Done when it was done. A step may be
	// submitted while the one before is still running. Begun is when the step before was done, or
	// Submitted if that is later.
	Submitted, Begun, Done time.Time

	// Capture is the time that it took to capture the step as a graph before it began. It is 0 if
	// there was a graph for steps of this size.
	Capture time.Duration

	// Device is the time of the step on the device. Embed is the part of it before the first
	// layer, and Choose the part for sampling. The time from Begun to Done is longer, by the work
	// of the host.
	Device, Embed, Choose time.Duration

	// Spans are the parts of the step, by device and in order, if [Options.Profile] is set. They are
	// valid until [Options.Watch] returns.
	Spans []Span
}

// A Span is a part of a step: a kernel on a GPU, a stage of the plan on the CPU.
type Span struct {
	Device int           // index of the GPU; 0 if one runs the whole model
	Kernel string        // name of the kernel
	Where  string        // operations that it computed
	Layer  int           // counted from 0; -1 outside of layers, as for the embedding and the head
	Begin  time.Duration // from the beginning of the step on the device
	Time   time.Duration
	// Bytes is the least number of bytes that the part had to read and write: each weight once,
	// and the keys and values that it attended to.
	Bytes int64
}

// LoadTimings are the times that it took to make a model ready. Their sum when [Open] returns is
// the time that Open took.
type LoadTimings struct {
	Open    time.Duration // opening files, tokenizer and device, and planning memory
	Load    time.Duration // reading and repacking weights
	Compile time.Duration // selecting and building kernels
	Capture time.Duration // capturing steps as GPU graphs; it grows with the first step of each size
}

// Setup returns the times that it took to make the model ready, up to now.
func (m *Model) Setup() LoadTimings {
	s := m.engine.Setup()
	return LoadTimings{Open: m.opening, Load: s.Load, Compile: s.Compile, Capture: s.Capture}
}

// opened sets m.opening, given the total time of Open.
func (m *Model) opened(took time.Duration) {
	s := m.engine.Setup()
	m.opening = max(0, took-s.Load-s.Compile-s.Capture)
}

// A watcher passes reports of all replicas to [Options.Watch].
type watcher struct {
	mu      sync.Mutex
	watch   func(StepTiming) // or nil
	profile bool
	spans   []Span // reused by each step
}

func (o *Options) watch() *watcher { return &watcher{watch: o.Watch, profile: o.Profile} }

// of returns the watch for the engine of a replica.
func (w *watcher) of(replica int) *engine.Watch {
	if w.watch == nil {
		return nil
	}
	return &engine.Watch{Timed: true, Spans: w.profile, Step: func(r *engine.StepReport) {
		w.mu.Lock()
		defer w.mu.Unlock()
		t := StepTiming{
			Replica: replica, Step: r.Number, Answers: r.Seqs, Tokens: r.Tokens, Prompt: r.Prompt, Chosen: r.Chosen, Proposed: r.Drafts, Accepted: r.Right,
			Submitted: r.Submitted, Begun: r.Begun, Done: r.Done, Capture: r.Capture,
			Device: r.Times.Total, Embed: r.Times.Embed, Choose: r.Times.Choose,
		}
		if r.Spans != nil {
			w.spans = w.spans[:0]
			for i := range r.Spans {
				s := &r.Spans[i]
				w.spans = append(w.spans, Span{Device: s.Device, Kernel: s.Kernel, Where: s.Where, Layer: s.Layer, Begin: s.Begin, Time: s.Time, Bytes: int64(s.Bytes)})
			}
			t.Spans = w.spans
		}
		w.watch(t)
	}}
}

package plan

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/realizar/realizar/tensor"
)

// A Backend compiles programs for one kind of hardware.
type Backend interface {
	// Name returns the backend's name for users, such as "cpu".
	Name() string
	// Rounds returns the format to which the backend rounds activations if [Limits.Activations] is
	// not F32: Q8_0 or F16.
	Rounds() tensor.DType
	// Memory returns the device's free and total memory.
	Memory() MemoryInfo
	// Compile picks a kernel for every operation by dtype and shape, plans the scratch memory and
	// allocates the pools of pages. It reads all weights; it stops early if ctx is done. If a
	// weight is not finite, the error is a [*tensor.NotFiniteError]. The program's weights must
	// stay readable until the executable is closed. If a weight becomes unreadable because its file
	// was truncated, Compile or the step that reads it returns a [*tensor.FaultError], and Close
	// still works.
	Compile(ctx context.Context, p *Program, l Limits, loaded Loaded) (Executable, error)
	// Weights returns the bytes that Compile allocates for its own copies of weights, in the memory
	// of the device that computes with them: see [Limits.Weights].
	Weights(*Program, Limits) int
	// Scratch returns the bytes that Compile allocates besides weights and states.
	Scratch(*Program, Limits) int
}

// A Loaded function, if not nil, is called for each of a program's weights, in order, after the
// weight has been read. spare reports that no step will read more than a few rows of w. The pages
// that hold those weights, or from which they are made, may then be given back to the system.
type Loaded func(w *tensor.Tensor, spare bool)

// MemoryInfo is a device's memory in bytes; 0 if the system does not tell.
type MemoryInfo struct{ Free, Total int64 }

// An Executable runs one program. Its methods must be called by one goroutine at a time.
type Executable interface {
	// Submit starts a step after all submitted steps. It never waits for the device. The batch must
	// not be changed until the step has been waited for.
	Submit(*Batch) (Step, error)
	// Choose starts sampling in the step submitted last, whose batch is [Batch.Late]. It does not
	// wait for the tokens. If it fails, the step is lost. Every late step needs one Choose before
	// the next Submit. Close ends a late step that has had no Choose; its result is undefined.
	Choose(Step) error
	// SetMask sets mask id of the executable's table to words [(vocabulary+31)/32], for steps that
	// sample after the call: bit i%32 of word i/32 allows token i. id is 1 to [Limits.Masks]; a
	// mask that was never set allows nothing. SetMask copies words and never waits for the device.
	// Every earlier step that uses the mask must have been waited for.
	SetMask(id int32, words []uint32) error
	// AllocHost allocates n bytes of host memory for pages. [SavePage] fills it and [RestorePage]
	// reads it, both asynchronously. It is not zeroed. It may be outside the garbage collector's
	// heap: do not touch it after FreeHost, or after Close, which frees the rest.
	AllocHost(n int) ([]byte, error)
	// FreeHost frees b, which AllocHost returned, once all submitted steps are done; it may wait
	// for them. b must begin where the returned slice did.
	FreeHost(b []byte) error
	// Setup returns the time that making the executable ready has taken.
	Setup() Setup
	// Close ends the executable after all submitted steps.
	Close() error
}

// A Step is a submitted step. Its methods may be called by any goroutine.
type Step interface {
	// Wait returns the step's result, or ctx's error if ctx is done first. The step itself goes on,
	// and Wait may be called again.
	Wait(ctx context.Context) (*Result, error)
	// Release gives the step and its result back for reuse. The step must have been waited for;
	// neither may be used afterwards. A step that is not released is left to the garbage collector.
	Release()
}

// A Result is the result of a step.
type Result struct {
	Tokens []int32     // [R] the sampled tokens, -1 for rows without [WantToken]
	Logits [][]float32 // [R] of [vocab], nil for rows without [WantLogits]
	Hidden [][]float32 // [R] of [d], nil for rows without [WantHidden]
	// LogProbabilities [R] are those of the sampled tokens under the plain softmax of the row's
	// logits, before adjustments, masks, temperature and filters. They are 0 for rows that did not
	// want one or have no token.
	LogProbabilities []float32
	// Layers [layers+1] is the program's time in the step by layer, a node's at its Layer+1. The
	// first is the time of what belongs to no layer: the embedding, the head, sampling. It is nil
	// unless [Batch.Trace] is set.
	Layers []time.Duration
	// Times is set if [Batch.Timed] is.
	Times Times
	// Spans is nil unless [Batch.Spans] is set.
	Spans []Span
	// Err is nil or holds an error, or nil, for each sequence. The rows and the state of a failed
	// sequence are undefined.
	Err []error
}

// ErrNotFinite reports that a model computed a value that is NaN or infinite.
var ErrNotFinite = errors.New("the model computed a value that is not finite")

// A NotFiniteError says where the first value that is not finite arose.
type NotFiniteError struct {
	Where    string // layer and operation
	Layer    int    // counted from 0, or NoLayer
	Position int    // absolute position of the token
	Value    float32
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("%v: %v at position %d, first in %s; the file may be damaged, or the activations leave the range of the dtypes used",
		ErrNotFinite, e.Value, e.Position, e.Where)
}

// Unwrap returns [ErrNotFinite].
func (e *NotFiniteError) Unwrap() error { return ErrNotFinite }

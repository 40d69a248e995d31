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
	// Name is what a user calls the backend, "cpu" for example.
	Name() string
	// Rounds is the format that the backend rounds activations to where they may be
	// rounded, what [Limits.Activations] may be beside F32: Q8_0 or F16.
	Rounds() tensor.DType
	// Memory is what the planner may count on.
	Memory() MemoryInfo
	// Compile makes all choices: a kernel for every operation by dtype and
	// shape, scratch memory, pools of pages. It reads all weights, and ends early
	// with ctx. One that is not finite is a [*tensor.NotFiniteError]. The program's
	// weights must stay readable until the executable is closed: where one is not, as
	// its file was cut short, Compile or the step that reads it has a
	// [*tensor.FaultError], and Close still works.
	Compile(ctx context.Context, p *Program, l Limits, loaded Loaded) (Executable, error)
	// Weights is the memory in bytes that Compile takes for weights beside those
	// of the program, where they are computed with: see [Limits.Weights].
	Weights(*Program, Limits) int
	// Scratch is the memory in bytes that Compile takes beside the weights and
	// the states.
	Scratch(*Program, Limits) int
}

// A Loaded function, where there is one, is told of each of a program's weights, in
// order, that it has been read. Where the weight is spare, no step will read more
// than a few rows of w, and the pages that they lie in, or are made of, may be given
// back to the system.
type Loaded func(w *tensor.Tensor, spare bool)

// MemoryInfo is a device's memory in bytes; 0 where the system does not say.
type MemoryInfo struct{ Free, Total int64 }

// An Executable runs one program. Its methods are called by one goroutine at a
// time.
type Executable interface {
	// Submit starts a step after those submitted before it and never waits for
	// the device. The batch must not be changed until the step is waited for.
	Submit(*Batch) (Step, error)
	// Choose lets the step submitted last, whose batch is [Batch.Late], choose its
	// tokens, and does not wait for them. The step is lost where it fails. Every such step
	// needs one Choose before the next Submit. Close ends a step that has had none, whose
	// result means nothing.
	Choose(Step) error
	// SetMask makes words [(vocabulary+31)/32] mask id of the executable's table, for
	// the steps that choose their tokens after it: bit i%32 of word i/32 allows token i.
	// id is 1 to [Limits.Masks]; a mask that was never set allows nothing. It copies words
	// and never waits for the device. No other step that uses the mask may be under way,
	// which is so until it was waited for.
	SetMask(id int32, words []uint32) error
	// AllocHost takes n bytes of the host's memory for pages: [SavePage] fills it and
	// [RestorePage] reads it while the host goes on. What it holds is whatever was
	// there before. The garbage collector need not know it: nothing may touch it after
	// FreeHost, or after Close, which gives back what is left.
	AllocHost(n int) ([]byte, error)
	// FreeHost gives back what AllocHost returned, once the steps submitted are done;
	// it may wait for them. b begins where that did.
	FreeHost(b []byte) error
	// Setup is what making it ready has taken.
	Setup() Setup
	// Close ends the executable after the steps submitted.
	Close() error
}

// A Step is a step under way. Its methods may be called by any goroutine.
type Step interface {
	// Wait returns the step's result, or ctx's error when that ends first; the
	// step itself goes on, and Wait may be called again.
	Wait(ctx context.Context) (*Result, error)
	// Release gives a step that has been waited for, and its result, back for
	// another one to use. Neither may be used after it. A step that is not
	// released is left to the garbage collector.
	Release()
}

// A Result is what a step gives back.
type Result struct {
	Tokens []int32     // [R] the sampled tokens, -1 where none was wanted
	Logits [][]float32 // [R] of [vocab], nil where none were wanted
	Hidden [][]float32 // [R] of [d], nil where none were wanted
	// LogProbabilities [R] are those of the sampled tokens under the plain softmax
	// of the row's logits, before adjustments, masks, temperature and filters. They
	// are 0 where none was wanted or there is no token.
	LogProbabilities []float32
	// Layers [layers+1] is what the program took of the step's time by layer, a node's
	// at its Layer+1; the first is what belongs to no layer: the embedding, the head, the
	// choice of tokens. It is nil unless [Batch.Trace] asked for it.
	Layers []time.Duration
	// Times are there where [Batch.Timed] asked for them.
	Times Times
	// Spans are nil unless [Batch.Spans] asked for them.
	Spans []Span
	// Err is nil or holds, for each sequence, nil or what went wrong with it
	// alone. A failed sequence's rows and state mean nothing.
	Err []error
}

// ErrNotFinite says that a model computed something that is not a number.
var ErrNotFinite = errors.New("the model computed a value that is not finite")

// A NotFiniteError says where the first value that is not finite arose.
type NotFiniteError struct {
	Where    string // layer and operation
	Layer    int    // counted from 0, or NoLayer
	Position int    // of the token, absolute
	Value    float32
}

func (e *NotFiniteError) Error() string {
	return fmt.Sprintf("%v: %v at position %d, first in %s; the file may be damaged, or the activations leave the range of the dtypes used",
		ErrNotFinite, e.Value, e.Position, e.Where)
}

// Unwrap is [ErrNotFinite].
func (e *NotFiniteError) Unwrap() error { return ErrNotFinite }

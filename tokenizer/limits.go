package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Limits bound what encoding may take. The zero Limits bound nothing.
type Limits struct {
	// Tokens is how many ids may come out, without those around a sequence. Encoding ends with a [*LengthError]
	// as soon as there are more, or when the text is so long that there will be. 0: any number.
	Tokens int
	// Reserve is asked before memory is taken that grows with the text, and told by a number below 0 of what is
	// given back; what stays is that of the ids. Its error ends encoding. nil: nobody is asked.
	Reserve func(bytes int) error
}

// A LengthError is a text that becomes more ids than there may be.
type LengthError struct {
	Tokens int // that there may be
	Least  int // that there would be, or more
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("tokenizer: the text becomes %d tokens or more, and %d may come of it", e.Least, e.Tokens)
}

// idBytes is the memory of an id.
const idBytes = 4

// A work is what one encoding has taken of its limits. Reaching one panics with the work itself, which
// within recovers: between it and the models are the callbacks of patterns, which return nothing. A nil work has no
// limits.
type work struct {
	ctx    context.Context
	limits Limits
	steps  int
	held   int // bytes
	err    error
}

// within runs do within limits.
func within(ctx context.Context, l Limits, do func(w *work) []int32) (ids []int32, err error) {
	w := &work{ctx: ctx, limits: l}
	defer func() {
		if v := recover(); v != nil && v != any(w) {
			panic(v)
		}
		w.release(w.held - cap(ids)*idBytes)
		err = w.err
	}()
	return do(w), nil
}

// fail ends the encoding.
func (w *work) fail(err error) {
	w.err = err
	panic(w)
}

// stepsPerLook is how many steps, of some nanoseconds each, are between two looks at the context.
const stepsPerLook = 1 << 16

// step counts n steps: bytes that were looked at, or parts that were merged. Whatever takes time in proportion to
// the text counts its steps as it takes them, so that there is little between two looks.
func (w *work) step(n int) {
	if w != nil {
		if w.steps += n; w.steps >= stepsPerLook {
			w.look()
		}
	}
}

// look ends the encoding if its context has ended, and lets others go first that are ready.
func (w *work) look() {
	w.steps = 0
	runtime.Gosched()
	if w.ctx.Err() != nil {
		w.fail(ended(w.ctx))
	}
}

// ended is the error of ctx, which has ended, and the cause of that.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// tokens says how many ids there are.
func (w *work) tokens(n int) {
	if w != nil && w.limits.Tokens > 0 && n > w.limits.Tokens {
		w.fail(&LengthError{w.limits.Tokens, n})
	}
}

// hold takes n bytes of memory.
func (w *work) hold(n int) {
	if w == nil || n == 0 {
		return
	}
	if w.limits.Reserve != nil {
		if err := w.limits.Reserve(n); err != nil {
			w.fail(err)
		}
	}
	w.held += n
}

// release gives n bytes back.
func (w *work) release(n int) {
	if w == nil || n == 0 {
		return
	}
	w.held -= n
	if w.limits.Reserve != nil {
		_ = w.limits.Reserve(-n) // what is given back is not refused
	}
}

// smallBytes are not worth asking for.
const smallBytes = 1 << 16

// holdLarge is hold where n is large; releaseLarge gives the same n back.
func (w *work) holdLarge(n int) {
	if n > smallBytes {
		w.hold(n)
	}
}

func (w *work) releaseLarge(n int) {
	if n > smallBytes {
		w.release(n)
	}
}

// What is found of added tokens is counted in so many, each of so many bytes while the list of them grows.
const (
	foundCount = 1 << 10
	foundBytes = 64
)

// found says that a list of added tokens in the text has n.
func (w *work) found(n int) {
	if n%foundCount == 0 {
		w.step(foundCount)
		w.hold(foundCount * foundBytes)
	}
}

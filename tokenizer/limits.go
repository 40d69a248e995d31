package tokenizer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

// Limits bounds the resources of one encoding. The zero Limits sets no bounds.
type Limits struct {
	// Tokens is the largest number of ids, without those around a sequence. Encoding fails with a
	// [*LengthError] as soon as there are more, or if the text is too long to have fewer. 0: no
	// limit.
	Tokens int
	// Reserve is called before encoding takes memory that grows with the text, with the size in
	// bytes, and with a negative size when it gives memory back; the memory of the ids is kept. An
	// error ends encoding. It may be nil.
	Reserve func(bytes int) error
}

// A LengthError reports a text that becomes too many ids.
type LengthError struct {
	Tokens int // the limit
	Least  int // the text has at least this many ids
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("tokenizer: the text becomes %d tokens or more, and %d may come of it", e.Least, e.Tokens)
}

// idBytes is the size of an id in bytes.
const idBytes = 4

// A work counts what one encoding has used of its limits. At a limit it panics with itself, and
// within recovers: between within and the models are the callbacks of patterns, which return
// nothing. A nil work has no limits.
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

// fail ends the encoding with err.
func (w *work) fail(err error) {
	w.err = err
	panic(w)
}

// stepsPerLook is the number of steps, of some nanoseconds each, between two checks of the context.
const stepsPerLook = 1 << 16

// step counts n steps: bytes that were read, or parts that were merged. Code whose time grows with
// the text counts its steps while it runs, so that little time passes between two checks.
func (w *work) step(n int) {
	if w != nil {
		if w.steps += n; w.steps >= stepsPerLook {
			w.look()
		}
	}
}

// look ends the encoding if its context has ended, and yields the processor.
func (w *work) look() {
	w.steps = 0
	runtime.Gosched()
	if w.ctx.Err() != nil {
		w.fail(ended(w.ctx))
	}
}

// ended returns the error of ctx, which has ended, with its cause.
func ended(ctx context.Context) error {
	err, cause := ctx.Err(), context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// tokens ends the encoding if n ids exceed the limit.
func (w *work) tokens(n int) {
	if w != nil && w.limits.Tokens > 0 && n > w.limits.Tokens {
		w.fail(&LengthError{w.limits.Tokens, n})
	}
}

// hold reserves n bytes of memory.
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

// release gives back n bytes.
func (w *work) release(n int) {
	if w == nil || n == 0 {
		return
	}
	w.held -= n
	if w.limits.Reserve != nil {
		_ = w.limits.Reserve(-n) // giving back cannot fail
	}
}

// smallBytes is the size in bytes up to which memory is not reserved.
const smallBytes = 1 << 16

// holdLarge is hold for sizes above smallBytes; releaseLarge gives the same n back.
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

// Added tokens found in a text are counted in batches of foundCount. Each takes foundBytes bytes
// while their list grows.
const (
	foundCount = 1 << 10
	foundBytes = 64
)

// found reports that the list of added tokens in the text has n entries.
func (w *work) found(n int) {
	if n%foundCount == 0 {
		w.step(foundCount)
		w.hold(foundCount * foundBytes)
	}
}

package realizar

import (
	"errors"
	"fmt"

	"github.com/realizar/realizar/internal/arch"
	"github.com/realizar/realizar/internal/check"
	"github.com/realizar/realizar/internal/engine"
	"github.com/realizar/realizar/internal/hub"
	"github.com/realizar/realizar/internal/memory"
	"github.com/realizar/realizar/internal/plan"
)

// The kinds of error of this package. They are wrapped with what they are
// about, so compare with [errors.Is].
var (
	// ErrArchitecture says that the file's architecture is not known.
	ErrArchitecture = arch.ErrUnknown
	// ErrConfig says that the file's metadata lacks something, or asks for
	// something that is not supported.
	ErrConfig = arch.ErrConfig
	// ErrTensor says that a tensor is missing, misshapen or without a meaning.
	ErrTensor = arch.ErrTensor
	// ErrNotFinite says that the model computed NaN or an infinity; the error
	// names the layer where it began.
	ErrNotFinite = plan.ErrNotFinite
	// ErrCheck says that a device computed something else than it should have, see
	// [Options.CheckArgmax] and [Options.CheckReference].
	ErrCheck = check.ErrDiffers
	// ErrClosed says that the model was closed.
	ErrClosed = engine.ErrClosed

	// ErrOptions says that an option has a value it cannot have.
	ErrOptions = hub.ErrOptions
	// ErrRequest says that a request has a value it cannot have.
	ErrRequest = errors.New("invalid request")
	// ErrGrammar says that the grammar of an answer takes more memory or time than one may.
	ErrGrammar = errors.New("the grammar of the answer takes too much; ask for a simpler one")
	// ErrContext says that a prompt is longer than the context; the error is a
	// [*ContextError].
	ErrContext = errors.New("the prompt exceeds the context")
	// ErrUnsuited says that the model is not made for what was asked of it, such as
	// text of one that gives embeddings alone; the error says what it is for.
	ErrUnsuited = errors.New("the model is not made for this")
	// ErrMemory says that the memory at hand is too small for what was asked.
	ErrMemory = memory.ErrTooLittle
	// ErrDevice says that a device cannot be used, or is not there.
	ErrDevice = errors.New("the device cannot be used")
	// ErrNoTokenizer says that the model has no tokenizer that can be used: it
	// takes token ids only.
	ErrNoTokenizer = hub.ErrNoTokenizer
	// ErrNoTemplate says that the model has no chat template.
	ErrNoTemplate = hub.ErrNoTemplate
)

// A ContextError is a prompt longer than the context.
type ContextError struct {
	Prompt  int  // tokens
	Context int  // tokens
	More    bool // the prompt has Prompt tokens at least: it was not read to its end
}

func (e *ContextError) Error() string {
	least := ""
	if e.More {
		least = " or more"
	}
	return fmt.Sprintf("%v: the prompt is %d tokens%s long, the context %d; shorten the prompt or open the model with a larger context", ErrContext, e.Prompt, least, e.Context)
}

// Unwrap is [ErrContext].
func (e *ContextError) Unwrap() error { return ErrContext }

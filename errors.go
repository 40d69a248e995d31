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

// Errors of this package. They are wrapped with details; use [errors.Is] to test for them.
var (
	// ErrArchitecture reports an unknown architecture.
	ErrArchitecture = arch.ErrUnknown
	// ErrConfig reports metadata that is missing, invalid or not supported.
	ErrConfig = arch.ErrConfig
	// ErrTensor reports a tensor that is missing, unknown or of the wrong shape.
	ErrTensor = arch.ErrTensor
	// ErrNotFinite reports that the model computed NaN or an infinity. The error names the layer
	// where the value first appeared.
	ErrNotFinite = plan.ErrNotFinite
	// ErrCheck reports that a check of [Options.CheckArgmax] or [Options.CheckReference] failed.
	ErrCheck = check.ErrDiffers
	// ErrClosed reports that the model was closed.
	ErrClosed = engine.ErrClosed

	// ErrOptions reports an invalid value of an option.
	ErrOptions = hub.ErrOptions
	// ErrRequest reports an invalid value in a request.
	ErrRequest = errors.New("invalid request")
	// ErrGrammar reports that a grammar exceeded its limits of memory or time during an answer.
	ErrGrammar = errors.New("the grammar of the answer exceeds its limits of memory or time; use a simpler one")
	// ErrContext reports a prompt that is longer than the context. The error is a
	// [*ContextError].
	ErrContext = errors.New("the prompt exceeds the context")
	// ErrUnsuited reports a request of a kind that the model is not made for, such as text from an
	// embedding model. The error says what the model is made for.
	ErrUnsuited = errors.New("the model does not support this")
	// ErrMemory reports that there is too little memory for the model and its options.
	ErrMemory = memory.ErrTooLittle
	// ErrDevice reports that a device is missing or cannot be used.
	ErrDevice = errors.New("the device cannot be used")
	// ErrNoTokenizer reports that the model has no tokenizer that can be used. Such a model takes
	// token ids only.
	ErrNoTokenizer = hub.ErrNoTokenizer
	// ErrNoTemplate reports that the model has no usable chat template.
	ErrNoTemplate = hub.ErrNoTemplate
)

// A ContextError reports a prompt that is longer than the context.
type ContextError struct {
	Prompt  int  // tokens of the prompt
	Context int  // tokens that the prompt may have
	More    bool // Prompt is a lower bound, since the prompt was tokenized only in part
}

func (e *ContextError) Error() string {
	least := ""
	if e.More {
		least = " or more"
	}
	return fmt.Sprintf("%v: the prompt is %d tokens%s long, the context %d; shorten the prompt or open the model with a larger context", ErrContext, e.Prompt, least, e.Context)
}

// Unwrap returns [ErrContext].
func (e *ContextError) Unwrap() error { return ErrContext }

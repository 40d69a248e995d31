package jinja

import (
	"errors"
	"fmt"
	"slices"
)

// The kinds of failure. Every error of this package except *CanceledError matches one of them with
// errors.Is; the concrete types hold the details.
var (
	// ErrSyntax reports that the template does not compile.
	ErrSyntax = errors.New("jinja: template does not compile")
	// ErrRuntime reports that rendering failed as it would in Python: a type error, a failed
	// lookup, a value out of range.
	ErrRuntime = errors.New("jinja: rendering failed")
	// ErrUndefined reports the use of an undefined value where a value is needed. Such errors also
	// match ErrRuntime.
	ErrUndefined = errors.New("jinja: value is undefined")
	// ErrSecurity reports an operation that the sandbox forbids. Such errors also match ErrRuntime.
	ErrSecurity = errors.New("jinja: forbidden by the sandbox")
	// ErrRaised reports that the template called raise_exception.
	ErrRaised = errors.New("jinja: refused by the template")
	// ErrLimit reports that a bound in Limits was reached.
	ErrLimit = errors.New("jinja: limit exceeded")
	// ErrJSON reports that the input of FromJSON is not JSON.
	ErrJSON = errors.New("jinja: not JSON")
)

// A SyntaxError reports where and why a template does not compile.
type SyntaxError struct {
	Name    string // the name given to Parse
	Line    int    // from 1
	Message string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("jinja: %s:%d: %s", e.Name, e.Line, e.Message)
}

// Unwrap makes a SyntaxError match ErrSyntax.
func (e *SyntaxError) Unwrap() error { return ErrSyntax }

// A RuntimeError is a failure while rendering.
type RuntimeError struct {
	Name    string // the name given to Parse
	Line    int    // of the statement that failed, from 1
	Class   string // the exception Python would have raised: "TypeError", "UndefinedError", ...
	Message string
}

func (e *RuntimeError) Error() string {
	return fmt.Sprintf("jinja: %s:%d: %s: %s", e.Name, e.Line, e.Class, e.Message)
}

// Is reports whether target is ErrRuntime or the narrower kind of e.
func (e *RuntimeError) Is(target error) bool {
	switch target {
	case ErrRuntime:
		return true
	case ErrUndefined:
		return e.Class == classUndefined
	case ErrSecurity:
		return e.Class == classSecurity
	}
	return false
}

// A RaiseError reports a call of raise_exception: the template rejected its variables.
type RaiseError struct {
	Name    string // the name given to Parse
	Line    int    // of the refusing statement, from 1
	Message string // what the template said
}

func (e *RaiseError) Error() string {
	return fmt.Sprintf("jinja: %s:%d: %s", e.Name, e.Line, e.Message)
}

// Unwrap makes a RaiseError match ErrRaised.
func (e *RaiseError) Unwrap() error { return ErrRaised }

// A LimitError names the bound that was reached.
type LimitError struct {
	What string // the field of Limits
	Max  int64  // its value
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("jinja: the template exceeds Limits.%s = %d", e.What, e.Max)
}

// Unwrap makes a LimitError match ErrLimit.
func (e *LimitError) Unwrap() error { return ErrLimit }

// A CanceledError reports that the context ended before the rendering did, or that Limits.Reserve
// failed.
type CanceledError struct {
	Err   error // of the context, or of Limits.Reserve
	Cause error // of its end, which may be Err itself
}

func (e *CanceledError) Error() string {
	return fmt.Sprintf("jinja: rendering was stopped: %v", e.Cause)
}

// Unwrap makes a CanceledError match the error of the context and its cause.
func (e *CanceledError) Unwrap() []error { return []error{e.Err, e.Cause} }

const (
	classType      = "TypeError"
	classValue     = "ValueError"
	classIndex     = "IndexError"
	classKey       = "KeyError"
	classOverflow  = "OverflowError"
	classZeroDiv   = "ZeroDivisionError"
	classRuntime   = "TemplateRuntimeError"
	classFilterArg = "FilterArgumentError"
	classAttribute = "AttributeError"
	classUndefined = "UndefinedError"
	classSecurity  = "SecurityError"
	classInternal  = "InternalError"
)

func raise(class, format string, args ...any) error {
	return &RuntimeError{Class: class, Message: fmt.Sprintf(format, args...)}
}

func typeErrorf(format string, args ...any) error  { return raise(classType, format, args...) }
func valueErrorf(format string, args ...any) error { return raise(classValue, format, args...) }

// isClass reports whether err is a RuntimeError of one of the classes.
func isClass(err error, classes ...string) bool {
	var re *RuntimeError
	return errors.As(err, &re) && slices.Contains(classes, re.Class)
}

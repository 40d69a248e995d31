package fields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// An Error says what is wrong with a field of a request.
type Error struct {
	Param   string // the field, as "messages[0].content"; empty where it is the whole
	Code    string // for programs
	Message string
}

func (e *Error) Error() string { return e.Message }

// ErrWrong says that a value is not what its field takes.
var ErrWrong = errors.New("another value is wanted")

// Invalid is an error of a value.
func Invalid(param, format string, a ...any) *Error {
	return &Error{Param: param, Code: "invalid_value", Message: fmt.Sprintf(format, a...)}
}

// Missing is the error of a required field that is left out.
func Missing(param string) *Error {
	return &Error{Param: param, Code: "missing_required_parameter", Message: "the field " + param + " is missing"}
}

// Unsupported is an error of what would change the answer and is not supported.
func Unsupported(format string, a ...any) *Error {
	return &Error{Code: "unsupported_parameter", Message: fmt.Sprintf(format, a...)}
}

// Named is err with the field that it is of, which takes other values than value.
func Named(err error, path, takes string, value json.RawMessage) error {
	var e *Error
	switch is := errors.As(err, &e); {
	case err == nil, is && e.Param != "":
		return err
	case is:
		if e.Param = path; !strings.Contains(e.Message, path[strings.LastIndexByte(path, '.')+1:]) {
			e.Message = path + ": " + e.Message
		}
		return e
	case errors.Is(err, ErrWrong):
		return Invalid(path, "%s is %s; want %s", path, Short(value), takes)
	}
	return Invalid(path, "%s: %v", path, err)
}

// Inside completes the name of the field that an error is of, which is part of what is
// at at.
func Inside(err error, at string) error {
	var e *Error
	if errors.As(err, &e) && !strings.HasPrefix(e.Param, at) {
		whole := join(at, e.Param)
		e.Param, e.Message = whole, strings.Replace(e.Message, e.Param, whole, 1)
	}
	return err
}

// Short is a value as an error quotes it.
func Short(value []byte) string {
	const most = 80
	if len(value) <= most {
		return string(value)
	}
	return string(bytes.ToValidUTF8(value[:most], nil)) + "…"
}

// join is the name of a field of what is at at, as far as errors quote it.
func join(at, name string) string {
	const most = 100
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	if at == "" {
		return name
	}
	return at + "." + name
}

// notJSON is the error of a body, or a part of it, that is not the JSON that is wanted.
func notJSON(err error, at string) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	what := "the body"
	if at != "" {
		what = at
	}
	return &Error{Param: at, Code: "invalid_json", Message: fmt.Sprintf("%s is not a JSON object: %v", what, err)}
}

package fields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// An Error reports an error of a field of a request.
type Error struct {
	Param   string // path of the field, such as "messages[0].content"; empty for the whole request
	Code    string // machine-readable kind of the error
	Message string
}

func (e *Error) Error() string { return e.Message }

// ErrWrong reports a value that its field does not take.
var ErrWrong = errors.New("another value is wanted")

// Invalid returns the error of an invalid value.
func Invalid(param, format string, a ...any) *Error {
	return &Error{Param: param, Code: "invalid_value", Message: fmt.Sprintf(format, a...)}
}

// Missing returns the error of a required field that is missing.
func Missing(param string) *Error {
	return &Error{Param: param, Code: "missing_required_parameter", Message: "the field " + param + " is missing"}
}

// Unsupported returns the error of a field that would change the answer and is not supported.
func Unsupported(format string, a ...any) *Error {
	return &Error{Code: "unsupported_parameter", Message: fmt.Sprintf(format, a...)}
}

// Named adds to err the path of its field. It turns [ErrWrong] into a message with the value and
// the values that the field takes.
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

// Inside completes the path of err's field, which is inside the value with path at.
func Inside(err error, at string) error {
	var e *Error
	if errors.As(err, &e) && !strings.HasPrefix(e.Param, at) {
		whole := join(at, e.Param)
		e.Param, e.Message = whole, strings.Replace(e.Message, e.Param, whole, 1)
	}
	return err
}

// Short returns a value truncated for an error message.
func Short(value []byte) string {
	const most = 80
	if len(value) <= most {
		return string(value)
	}
	return string(bytes.ToValidUTF8(value[:most], nil)) + "…"
}

// join returns the path of the field name of the value with path at. It truncates long names.
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

// notJSON returns the error of a request, or of the value with path at, that is not a JSON object.
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

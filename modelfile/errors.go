package modelfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// ErrFormat reports a file that is inconsistent: it is truncated, claims more than it holds,
	// points outside itself, or breaks the rules of its format.
	ErrFormat = errors.New("malformed file")

	// ErrUnsupported reports a valid file that holds something this package does not read: a
	// version, a byte order, a number format.
	ErrUnsupported = errors.New("not supported")

	// ErrNotModel reports a path without a model: a file of an unknown format, or a folder with no
	// candidate or several.
	ErrNotModel = errors.New("not a model")
)

// A FormatError reports a file that cannot be read, and where reading stopped. It wraps [ErrFormat]
// or [ErrUnsupported].
type FormatError struct {
	File    string // path of the file
	Key     string // metadata key, or empty
	Tensor  string // name of the tensor, or empty
	Offset  int64  // bytes from the start of the file; negative if there is no single place
	Problem string // the problem, with the values
	Err     error  // ErrFormat or ErrUnsupported
}

// Error names the file, the tensor or key, the offset and the problem.
func (e *FormatError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "modelfile: %s: ", e.File)
	if e.Key != "" {
		fmt.Fprintf(&b, "key %s: ", clip(e.Key))
	}
	if e.Tensor != "" {
		fmt.Fprintf(&b, "tensor %s: ", clip(e.Tensor))
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, "at byte %d: ", e.Offset)
	}
	fmt.Fprintf(&b, "%s (%v)", e.Problem, e.Err)
	return b.String()
}

// Unwrap returns Err.
func (e *FormatError) Unwrap() error { return e.Err }

// clip quotes a name from a file for an error message and limits its length.
func clip(name string) string {
	const most = 100
	if len(name) > most {
		return fmt.Sprintf("%q... (%d bytes)", name[:most], len(name))
	}
	return fmt.Sprintf("%q", name)
}

// printable reports whether a name can be displayed as it is: it is UTF-8 and has no characters
// that could steer a terminal. No architecture needs other names.
func printable(name string) bool {
	for _, r := range name {
		if !unicode.IsGraphic(r) {
			return false
		}
	}
	return utf8.ValidString(name)
}

package modelfile

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	// ErrFormat says that a file lies about itself: it is cut off, counts more
	// than it holds, points outside itself, or breaks its format's rules.
	ErrFormat = errors.New("malformed file")

	// ErrUnsupported says that a file is well formed but holds something this
	// package does not read: a version, a byte order, a number format.
	ErrUnsupported = errors.New("not supported")

	// ErrNotModel says that a path leads to no model: no file of a known format,
	// or a folder in which none, or more than one, could be meant.
	ErrNotModel = errors.New("not a model")
)

// A FormatError is a file that cannot be read, and the place where reading
// ended. It wraps [ErrFormat] or [ErrUnsupported].
type FormatError struct {
	File    string // path of the file
	Key     string // metadata key, or empty
	Tensor  string // name of the tensor, or empty
	Offset  int64  // bytes from the start of the file; negative when no one place is meant
	Problem string // what is wrong, with the values
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

// clip quotes a name that comes from a file for an error message, at a length
// that a message can bear.
func clip(name string) string {
	const most = 100
	if len(name) > most {
		return fmt.Sprintf("%q... (%d bytes)", name[:most], len(name))
	}
	return fmt.Sprintf("%q", name)
}

// printable reports whether a name can be shown as it stands: it is UTF-8 and holds
// nothing that steers a terminal. No architecture asks for another name, and lists
// and messages show those of files.
func printable(name string) bool {
	for _, r := range name {
		if !unicode.IsGraphic(r) {
			return false
		}
	}
	return utf8.ValidString(name)
}

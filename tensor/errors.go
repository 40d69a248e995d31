package tensor

import "errors"

var (
	// ErrDType reports a value or a name that is not a known number format, or a format that the
	// operation does not support.
	ErrDType = errors.New("unknown or unfit dtype")

	// ErrShape reports an invalid shape: a negative dimension, or more elements than an int can
	// count.
	ErrShape = errors.New("impossible shape")

	// ErrSize reports that a number of elements does not match a number of bytes or a block length.
	ErrSize = errors.New("sizes disagree")

	// ErrValue reports a number that the format cannot represent.
	ErrValue = errors.New("value out of range")
)

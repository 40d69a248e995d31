package tensor

import "errors"

var (
	// ErrDType says that a value or a name stands for no known number format,
	// or for one that the operation does not handle.
	ErrDType = errors.New("unknown or unfit dtype")

	// ErrShape says that a shape cannot be: a negative dimension, or more
	// elements than an int can count.
	ErrShape = errors.New("impossible shape")

	// ErrSize says that a number of elements and a number of bytes, or a number
	// of elements and a block length, do not fit each other.
	ErrSize = errors.New("sizes disagree")

	// ErrValue says that a number is none that the format can hold.
	ErrValue = errors.New("value out of range")
)

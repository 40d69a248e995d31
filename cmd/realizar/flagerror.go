package main

import (
	"errors"
	"fmt"
)

// A flagError reports an invalid value of a flag.
type flagError struct {
	flag  string
	value string // empty if err has the value
	err   error
}

// wrongFlag returns an error that says what a flag wants.
func wrongFlag(flag string, value any, want string) error {
	return &flagError{flag, fmt.Sprint(value), errors.New("want " + want)}
}

func (e *flagError) Error() string { return e.of("--" + e.flag) }

// of returns the error for a value that was set elsewhere than by the flag.
func (e *flagError) of(place string) string {
	if e.value != "" {
		place += "=" + e.value
	}
	return place + ": " + e.err.Error()
}

func (e *flagError) Unwrap() error { return e.err }

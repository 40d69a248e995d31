package main

import (
	"errors"
	"fmt"
)

// A flagError is what is wrong with a flag's value.
type flagError struct {
	flag  string
	value string // empty where the error says it
	err   error
}

// wrongFlag says what a flag wants.
func wrongFlag(flag string, value any, want string) error {
	return &flagError{flag, fmt.Sprint(value), errors.New("want " + want)}
}

func (e *flagError) Error() string { return e.of("--" + e.flag) }

// of is the error of a value that something else than the flag set.
func (e *flagError) of(place string) string {
	if e.value != "" {
		place += "=" + e.value
	}
	return place + ": " + e.err.Error()
}

func (e *flagError) Unwrap() error { return e.err }

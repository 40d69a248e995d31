// Package longtest divides tests into those of every run and those that take long, which run where
// the environment has REALIZAR_LONG, as in .ci/run.
package longtest

import (
	"os"
	"testing"
)

// Wanted reports whether long tests are to run.
func Wanted() bool { return !testing.Short() && os.Getenv("REALIZAR_LONG") != "" }

// Cases returns all cases of a test where long tests are to run, and otherwise some of them, which
// represent the others.
func Cases[T any](all, some T) T {
	if Wanted() {
		return all
	}
	return some
}

// Package longtest divides tests into those of every run and those that take long, which run where
// the environment has REALIZAR_LONG, as in .ci/run.
package longtest

import (
	"os"
	"testing"
)

// variable is the environment variable that asks for long tests.
const variable = "REALIZAR_LONG"

// Wanted reports whether long tests are to run.
func Wanted() bool { return !testing.Short() && os.Getenv(variable) != "" }

// Short runs t and its subtests as where long tests are not wanted. It is for tests whose long form
// repeats that of another test.
func Short(t *testing.T) {
	t.Helper()
	t.Setenv(variable, "")
}

// Cases returns all cases of a test where long tests are to run, and otherwise some of them, which
// represent the others.
func Cases[T any](all, some T) T {
	if Wanted() {
		return all
	}
	return some
}

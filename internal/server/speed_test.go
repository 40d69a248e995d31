package server

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func retryOf(t *testing.T, err error) int {
	t.Helper()
	var e *Error
	if !errors.As(err, &e) || e.Code != "queue_full" {
		t.Fatalf("got %v", err)
	}
	return e.RetryAfter
}

// Whoever is refused is told to come when a place will be free by the speed at which answers
// have left, one after the other, and no later than when all have.
func TestRetryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admission{limit: 8}
		for range 8 {
			if err := a.enter(1); err != nil {
				t.Fatal(err)
			}
		}
		if got := retryOf(t, a.enter(1)); got != 1 {
			t.Errorf("nothing is known: %d", got)
		}
		for range 20 { // an answer in four seconds
			time.Sleep(4 * time.Second)
			a.leave(1)
			if err := a.enter(1); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []int{4, 8, 12, 16, 20, 24, 28, 32, 32, 32} {
			if got := retryOf(t, a.enter(1)); got < want-2 || got > want+2 {
				t.Errorf("refusal %d: %d, want about %d", i, got, want)
			}
		}
		for range 2 { // who only looks does not wait
			if got := retryOf(t, a.enter(0)); got < 30 || got > 34 {
				t.Errorf("who looks is told %d", got)
			}
		}
		time.Sleep(28 * time.Second) // those are gone, but for the last
		a.leave(1)
		if err := a.enter(1); err != nil {
			t.Fatal(err)
		}
		if got := retryOf(t, a.enter(2)); got < 20 || got > 80 {
			t.Errorf("after a time without answers: %d", got)
		}
	})
}

// Where no answer has ended of late, tokens say how fast they will.
func TestRetryAfterByTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := admission{limit: 1}
		_ = a.enter(1)
		a.speed.tokens.Add(100)
		time.Sleep(time.Second)
		a.leave(1)
		time.Sleep(time.Hour) // nobody is there
		_ = a.enter(1)
		time.Sleep(10 * time.Second)
		a.speed.tokens.Add(50) // of answers of 100
		if got := retryOf(t, a.enter(1)); got != 20 {
			t.Errorf("%d, want 20", got)
		}
		a.leave(1)
		_ = a.enter(1)
		time.Sleep(time.Hour)
		a.speed.tokens.Add(1)
		if got := retryOf(t, a.enter(1)); got != int(longestRetry/time.Second) {
			t.Errorf("%d, want the longest", got)
		}
	})
}

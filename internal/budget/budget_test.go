package budget_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/budget"
)

func never(t *testing.T) func() { return func() { t.Error("a request that does not wait gave way") } }

// What does not fit is refused before it is read. Accounts that wait and hold more count as free.
func TestFits(t *testing.T) {
	b := budget.New(100)
	one, two := b.Open("one", func() {}), b.Open("two", never(t))
	if err := one.Reserve(60); err != nil || one.Owner() != "one" {
		t.Fatal(err, one.Owner())
	}
	if err := two.Fits(40); err != nil {
		t.Error(err)
	}
	if err := two.Fits(41); !errors.Is(err, budget.ErrFull) {
		t.Error(err)
	}
	one.Wait(true)
	if err := two.Fits(41); err != nil {
		t.Error(err)
	}
	if err := two.Fits(70); !errors.Is(err, budget.ErrFull) {
		t.Errorf("with only smaller waiting accounts: %v", err)
	}
	if s := b.Stats(); s.Used != 60 || two.Held() != 0 {
		t.Errorf("%+v", s)
	}
}

func TestReserve(t *testing.T) {
	b := budget.New(100)
	one, two := b.Open("", never(t)), b.Open("", never(t))
	if err := one.Reserve(60); err != nil {
		t.Fatal(err)
	}
	var full *budget.Error
	err := two.Reserve(50)
	if !errors.As(err, &full) || full.Alone() || full.Others != 60 || full.Wanted != 50 || full.Limit != 100 || !errors.Is(err, budget.ErrFull) {
		t.Errorf("with others: %v", err)
	}
	if err := two.Reserve(40); err != nil {
		t.Error(err)
	}
	if err := two.Reserve(61); !errors.As(err, &full) || !full.Alone() || full.Held != 40 {
		t.Errorf("alone: %v", err)
	}
	if err := one.Reserve(-1000); err != nil || one.Held() != 0 {
		t.Errorf("%v, and %d bytes are held", err, one.Held())
	}
	two.Close()
	if s := b.Stats(); s.Used != 0 || s.Limit != 100 || s.Refused != 2 || s.Evicted != 0 {
		t.Errorf("%+v", s)
	}
	var none *budget.Account
	if err := none.Reserve(1 << 60); err != nil {
		t.Error(err)
	}
}

// A request that waits for its client is evicted for one that holds less, the largest first. It
// cannot reserve memory afterwards.
func TestWaiting(t *testing.T) {
	b := budget.New(100)
	gone := 0
	large, small := b.Open("", func() { gone++ }), b.Open("", never(t))
	if err := errors.Join(large.Reserve(60), small.Reserve(30)); err != nil {
		t.Fatal(err)
	}
	other := b.Open("", never(t))
	if err := other.Reserve(20); !errors.Is(err, budget.ErrFull) {
		t.Errorf("without waiting requests: %v", err)
	}
	large.Wait(true)
	small.Wait(true)
	if err := other.Reserve(20); err != nil {
		t.Error(err)
	}
	var full *budget.Error
	if err := large.Reserve(1); !errors.As(err, &full) || !full.Evicted || gone != 1 || large.Held() != 0 || !errors.Is(large.Evicted(), budget.ErrFull) {
		t.Errorf("%v, gave way %d times, holds %d", err, gone, large.Held())
	}
	if err := large.Reserve(-60); err != nil {
		t.Error(err)
	}
	large.Close()
	if s := b.Stats(); s.Used != 50 || s.Evicted != 1 {
		t.Errorf("%+v", s)
	}
}

// A spare account uses free memory, evicts no request, and is evicted before any waiting request.
func TestSpare(t *testing.T) {
	b := budget.New(100)
	gone := 0
	spare, waits := b.OpenSpare(func() { gone++ }), b.Open("", never(t))
	if err := errors.Join(waits.Reserve(50), spare.Reserve(20)); err != nil {
		t.Fatal(err)
	}
	waits.Wait(true)
	if err := spare.Reserve(40); !errors.Is(err, budget.ErrFull) {
		t.Errorf("a request was evicted: %v", err)
	}
	if s := b.Stats(); s.Used != 70 || s.Spare != 20 || s.Refused != 0 {
		t.Errorf("%+v", s)
	}
	other := b.Open("", never(t))
	other.Wait(true)
	if err := errors.Join(other.Fits(50), other.Reserve(50)); err != nil {
		t.Error(err)
	}
	if err := spare.Reserve(1); !errors.Is(err, budget.ErrFull) || gone != 1 {
		t.Errorf("%v, gave way %d times", err, gone)
	}
	if s := b.Stats(); s.Used != 100 || s.Spare != 0 || s.Evicted != 0 {
		t.Errorf("%+v", s)
	}
	other.Close()
	again := b.OpenSpare(func() {})
	if err := again.Reserve(30); err != nil || b.Stats().Spare != 30 {
		t.Errorf("%v, %+v", err, b.Stats())
	}
	if again.Close(); b.Stats().Spare != 0 {
		t.Errorf("%+v", b.Stats())
	}
}

// Concurrent requests never hold more than the limit, and nothing in the end.
func TestTogether(t *testing.T) {
	const limit = 1000
	b := budget.New(limit)
	var all sync.WaitGroup
	for seed := range uint64(8) {
		all.Go(func() {
			g := rand.New(rand.NewPCG(seed, 0))
			for range 300 {
				a := b.Open("", func() {})
				for range 10 {
					a.Wait(true)
					_ = a.Reserve(g.Int64N(300) - 100)
					a.Wait(false)
					if s := b.Stats(); s.Used < 0 || s.Used > limit {
						t.Errorf("%+v", s)
					}
				}
				a.Close()
			}
		})
	}
	all.Wait()
	if s := b.Stats(); s.Used != 0 {
		t.Errorf("%+v", s)
	}
}

// A closed account reserves nothing.
func TestClosed(t *testing.T) {
	b := budget.New(100)
	a := b.Open("", never(t))
	if err := a.Reserve(10); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if err := a.Reserve(10); !errors.Is(err, budget.ErrFull) {
		t.Errorf("after the end: %v", err)
	}
	if err := a.Reserve(-10); err != nil {
		t.Error(err)
	}
	if s := b.Stats(); s.Used != 0 {
		t.Errorf("%+v", s)
	}
}

// A request that writes a piece of its answer is evicted only if the write takes long.
func TestSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := budget.New(100)
		gone := false
		one, two := b.Open("one", func() { gone = true }), b.Open("two", never(t))
		if err := one.Reserve(80); err != nil {
			t.Fatal(err)
		}
		one.Send(true)
		if err := two.Reserve(40); !errors.Is(err, budget.ErrFull) || gone {
			t.Errorf("a request was evicted at the start of a write: %v", err)
		}
		time.Sleep(time.Second)
		if err := two.Reserve(40); err != nil || !gone {
			t.Errorf("a request whose client does not read was not evicted: %v", err)
		}
	})
}

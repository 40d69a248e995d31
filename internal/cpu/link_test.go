package cpu

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/realizar/realizar/internal/plan"
)

// ports returns the ports of a link of parts that have no executables.
func ports(t *testing.T, parts int) []*port {
	t.Helper()
	var all []*port
	for _, b := range New(1).Connect(parts) {
		e := &executable{}
		if err := b.(*Backend).join(e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e.port)
	}
	return all
}

// attempt returns the error with which f panics.
func attempt(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = r.(error)
		}
	}()
	f()
	return nil
}

// No part passes a meeting before all have come to it, in many steps.
func TestMeetings(t *testing.T) {
	all := ports(t, 3)
	var mu sync.Mutex
	counts := map[string]int{} // by meeting
	var done sync.WaitGroup
	for i, p := range all {
		done.Go(func() {
			for step := range 50 {
				p.begin()
				for m := range 1 + step%3 {
					name := fmt.Sprint(step, m)
					mu.Lock()
					counts[name]++
					mu.Unlock()
					p.meet()
					mu.Lock()
					if counts[name] != len(all) {
						t.Errorf("part %d passed step %d, meeting %d, when %d parts had come", i, step, m, counts[name])
					}
					mu.Unlock()
				}
			}
		})
	}
	done.Wait()
}

// A part that fails ends its step in all parts, and no other step.
func TestMeetingFails(t *testing.T) {
	all := ports(t, 3)
	var done sync.WaitGroup
	errs := make([][4]error, len(all))
	for i, p := range all {
		done.Go(func() {
			for step := range errs[i] {
				p.begin()
				errs[i][step] = attempt(func() {
					p.meet()
					if step == 1 && i == 2 {
						panic(errors.New("broken"))
					}
					p.meet()
				})
				if err := errs[i][step]; err != nil {
					p.fail(err)
				}
			}
		})
	}
	done.Wait()
	for i := range errs {
		for step, err := range errs[i] {
			if (err != nil) != (step == 1) {
				t.Errorf("part %d, step %d: %v", i, step, err)
			}
		}
		if err := errs[i][1]; i < 2 && (!errors.Is(err, plan.ErrPeer) || !strings.Contains(err.Error(), "part 2 of 3: broken")) {
			t.Errorf("part %d: %v", i, err)
		}
	}
	if n := len(all[0].link.failed); n > 1 {
		t.Errorf("%d failures are kept", n)
	}
}

// A part that does not come fails the step after the link's patience, and not earlier.
func TestMeetingLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := ports(t, 2)
		begun := time.Now()
		for range 2 { // the second step has a time of its own
			all[0].begin()
			err := attempt(all[0].meet)
			if !errors.Is(err, plan.ErrPeer) || !strings.Contains(err.Error(), "part 1 of 2 has not answered for 1m0s") {
				t.Fatal(err)
			}
			if waited := time.Since(begun); waited != linkPatience {
				t.Errorf("waited %v", waited)
			}
			all[0].fail(err)
			begun = time.Now()
		}
		// The late part comes to the failed steps, and then both meet again.
		for range 2 {
			all[1].begin()
			if err := attempt(all[1].meet); !errors.Is(err, plan.ErrPeer) {
				t.Fatal(err)
			}
		}
		var done sync.WaitGroup
		for _, p := range all {
			done.Go(func() {
				p.begin()
				if err := attempt(p.meet); err != nil {
					t.Error(err)
				}
			})
		}
		done.Wait()
	})
}

// A part cannot be compiled twice, and not without the others.
func TestConnected(t *testing.T) {
	b := New(1).Connect(2)[1].(*Backend)
	if err := b.join(&executable{}); err != nil {
		t.Fatal(err)
	}
	if err := b.join(&executable{}); err == nil || err.Error() != "cpu: part 1 has been compiled already" {
		t.Error(err)
	}
	if _, err := (gather{}).reference(&executable{}, &plan.Node{}); !errors.Is(err, errAlone) {
		t.Error(err)
	}
}

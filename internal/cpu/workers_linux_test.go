package cpu

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func processorTime(t *testing.T) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Workers without work do not use the processor. Other work of the process, such as collecting the
// garbage of earlier tests, may take some time.
func TestParkedWorkersRest(t *testing.T) {
	w := poolOf(t, 4)
	checkShare(t, w, 100, 1)
	w.perform(func() { checkShare(t, w, 100, 1) })
	w.waitForParked()
	const window = 100 * time.Millisecond
	var used time.Duration
	for range 3 {
		before := processorTime(t)
		<-time.After(window)
		if used = processorTime(t) - before; used < window/2 {
			return
		}
	}
	t.Errorf("idle workers used %v of the processor in %v", used, window)
}

// Workers with a processor each stay on it, and the process's other threads do not.
func TestSettle(t *testing.T) {
	var before unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Skip("this system does not say what processors a thread may use: ", err)
	}
	m := thisMachine()
	places := m.places(len(m.cores))
	if places == nil {
		t.Skip("this system does not say what cores there are")
	}
	w := newWorkers(len(places))
	var during [2]unix.CPUSet // processors of worker 0, and of a goroutine that it starts
	w.perform(func() {
		_ = unix.SchedGetaffinity(0, &during[0])
		done := make(chan struct{})
		go func() {
			defer close(done)
			_ = unix.SchedGetaffinity(0, &during[1])
		}()
		<-done
	})
	w.close()
	if during[0].Count() != len(places[0]) || !during[0].IsSet(places[0][0]) {
		t.Errorf("worker 0 may run on %d processors, want only %v", during[0].Count(), places[0])
	}
	if during[1] != before {
		t.Errorf("another goroutine may run on %d processors, want %d", during[1].Count(), before.Count())
	}
}

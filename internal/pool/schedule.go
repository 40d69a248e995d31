package pool

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// The time from a failed load to the next attempt. It doubles with each failure.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// plan estimates the need of a load and adds the load to the queue.
func (p *Pool[M]) plan(l *load[M]) {
	var need Need
	err := guarded(func() (err error) {
		need, err = l.loader.Estimate(l.ctx, l.name)
		return err
	})
	if err == nil {
		err = p.check(need)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case l.entry.load != l: // it was dropped
		return
	case err != nil:
		p.fail(l, err)
		return
	}
	l.need = maps.Clone(need)
	if l.need == nil {
		l.need = Need{}
	}
	p.queue = append(p.queue, l)
	p.schedule()
}

// check returns an error for a need of an unknown device or of less than 0 bytes.
func (p *Pool[M]) check(need Need) error {
	for _, device := range devices(need) {
		if _, ok := p.config.Limits[device]; !ok || need[device] < 0 {
			return fmt.Errorf("the estimate is %d bytes of %s; the devices are %q", need[device], device, devices(p.config.Limits))
		}
	}
	return nil
}

// devices returns the devices of n in order.
func devices(n Need) []string { return slices.Sorted(maps.Keys(n)) }

// fail ends a load without memory. err is the model's error until the next attempt.
func (p *Pool[M]) fail(l *load[M], err error) {
	e := l.entry
	l.cancel()
	wait := min(firstRetry<<min(e.fails, 10), lastRetry)
	e.load, e.err, e.again = nil, err, time.Now().Add(wait)
	e.fails++
	e.counts.Failures++
	if e.state != Draining {
		p.set(e, Failed, err.Error())
	}
	p.serveAll(l, &LoadError{Model: e.Name, Err: err, Again: wait})
}

// schedule begins loads whose memory is free, in the order of the queue. The first load that lacks
// memory of a device keeps later ones from that device; models are evicted for it.
func (p *Pool[M]) schedule() {
	if p.wake != nil {
		p.wake.Stop()
		p.wake = nil
	}
	waited := map[string]bool{} // devices that an earlier load waits for
	for _, l := range slices.Clone(p.queue) {
		if err := p.impossible(l); err != nil {
			p.drop(l)
			p.serveAll(l, err)
			continue
		}
		first := !slices.ContainsFunc(devices(l.need), func(d string) bool { return waited[d] })
		if first && l.entry.state != Draining {
			if p.lacks(l, p.used) == nil {
				p.begin(l)
				continue
			}
			p.makeRoom(l)
		}
		for device := range l.need {
			waited[device] = true
		}
	}
}

// impossible returns an error if l cannot fit beside the pinned models.
func (p *Pool[M]) impossible(l *load[M]) error {
	pinned := Need{}
	for _, e := range p.entries {
		if e.Pinned && e.state != Draining && e != l.entry {
			pinned.add(e.need, 1)
		}
	}
	for _, device := range devices(p.lacks(l, pinned)) {
		return &MemoryError{Model: l.entry.Name, Device: device, Needs: l.need[device], Limit: p.config.Limits[device], Pinned: pinned[device]}
	}
	return nil
}

// late returns an error with the numbers of the first device that l lacks memory of.
func (p *Pool[M]) late(l *load[M]) error {
	err := &MemoryError{Model: l.entry.Name, Waited: p.config.MaxWait}
	lacks := devices(p.lacks(l, p.used))
	if len(lacks) == 0 {
		lacks = devices(l.need) // an earlier load gets it
	}
	if len(lacks) > 0 {
		d := lacks[0]
		err.Device, err.Needs, err.Limit, err.Used = d, l.need[d], p.config.Limits[d], p.used[d]
	}
	return err
}

// lacks returns what l needs beyond the limits if others have taken so much; nil if l fits.
func (p *Pool[M]) lacks(l *load[M], taken Need) Need {
	var lacks Need
	for device, n := range l.need { // no sum of needs, which could overflow
		free := p.config.Limits[device] - taken[device]
		if n <= free {
			continue
		}
		if lacks == nil {
			lacks = Need{}
		}
		lacks[device] = n - free
	}
	return lacks
}

// add adds other to n, times sign.
func (n Need) add(other Need, sign int64) {
	for device, bytes := range other {
		n[device] += sign * bytes
	}
}

// makeRoom drains models for l that are idle or have stayed long enough: as many as it takes, or
// none if all of them would not suffice. The memory of models that are draining already counts.
func (p *Pool[M]) makeRoom(l *load[M]) {
	left := maps.Clone(p.used)
	var may, later []*entry[M]
	for _, e := range p.entries {
		switch {
		case e.state == Draining:
			left.add(e.need, -1)
		case e.state != Ready || e.Pinned:
		case e.holds > 0 && time.Since(e.ready) < p.stays(e):
			later = append(later, e)
		default:
			may = append(may, e)
		}
	}
	slices.SortStableFunc(may, before)
	var chosen []*entry[M]
	for _, e := range may {
		lacks := p.lacks(l, left)
		if lacks == nil {
			break
		}
		if helps(e.need, lacks) {
			left.add(e.need, -1)
			chosen = append(chosen, e)
		}
	}
	if p.lacks(l, left) != nil {
		p.wakeFor(later)
		return
	}
	for _, e := range slices.Backward(chosen) { // the most valuable first
		if left.add(e.need, 1); p.lacks(l, left) == nil {
			continue // l fits without it
		}
		left.add(e.need, -1)
		e.counts.Evictions++
		p.drain(e, fmt.Sprintf("%s needs its memory", l.entry.Name))
	}
}

// stays returns how long e stays ready while it is in use.
func (p *Pool[M]) stays(e *entry[M]) time.Duration { return max(p.config.Stay, e.took) }

// wakeFor schedules again when the first of these models has stayed long enough.
func (p *Pool[M]) wakeFor(busy []*entry[M]) {
	for _, e := range busy {
		p.wakeAt(e.ready.Add(p.stays(e)))
	}
}

// wakeAt schedules again at that time, or earlier if that is planned.
func (p *Pool[M]) wakeAt(at time.Time) {
	wait := time.Until(at)
	if p.wake != nil {
		if p.wakes.Before(at) {
			return
		}
		p.wake.Stop()
	}
	p.wakes = at
	p.wake = time.AfterFunc(wait, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.schedule()
	})
}

// helps reports whether n has memory of a device that lacks some.
func helps(n, lacks Need) bool {
	for device := range lacks {
		if n[device] > 0 {
			return true
		}
	}
	return false
}

// before orders models by eviction: idle models first, the one with the largest [idleness] before
// the others; then models in use, the one that has been ready longest first.
func before[M io.Closer](a, b *entry[M]) int {
	switch {
	case (a.holds > 0) != (b.holds > 0):
		return cmp.Compare(min(a.holds, 1), min(b.holds, 1))
	case a.holds > 0:
		return a.ready.Compare(b.ready)
	}
	return cmp.Compare(idleness(b), idleness(a))
}

// idleness returns the idle time of e divided by the time of its last load.
func idleness[M io.Closer](e *entry[M]) float64 {
	return float64(time.Since(e.used)) / float64(max(e.took, time.Millisecond))
}

// begin reserves the memory of a load and starts it.
func (p *Pool[M]) begin(l *load[M]) {
	e := l.entry
	p.queue = slices.DeleteFunc(p.queue, func(other *load[M]) bool { return other == l })
	p.used.add(l.need, 1)
	l.begun = true
	e.need, e.gone = l.need, make(chan struct{})
	p.set(e, Loading, "")
	p.work.Go(func() { p.load(l) })
}

// load loads the model of l, whose memory is reserved.
func (p *Pool[M]) load(l *load[M]) {
	e := l.entry
	begun := time.Now()
	var m M
	err := guarded(func() (err error) {
		m, err = l.loader.Load(l.ctx, l.name, maps.Clone(l.need))
		return err
	})
	p.mu.Lock()
	defer p.mu.Unlock()
	l.cancel()
	switch {
	case err != nil && e.load != l: // it was unloaded
		p.gone(e)
	case err != nil:
		p.fail(l, err)
		p.gone(e)
	default:
		e.model, e.holds, e.looks = m, 0, 0
		e.took = time.Since(begun)
		e.ready, e.used = time.Now(), time.Now()
		e.counts.Loads++
		e.counts.LoadTime += e.took
		if e.load != l {
			p.left(e) // it was unloaded
			return
		}
		e.load, e.err, e.fails, e.again = nil, nil, 0, time.Time{}
		e.ttl = cmp.Or(e.TTL, -1)
		p.set(e, Ready, "")
		p.serveAll(l, nil)
		if e.holds == 0 {
			p.idle(e)
		}
		p.schedule()
	}
}

// drain has a ready model closed after its holds are released.
func (p *Pool[M]) drain(e *entry[M], why string) {
	e.stay()
	p.set(e, Draining, why)
	p.left(e)
}

// close closes a draining model without holds.
func (p *Pool[M]) close(e *entry[M]) {
	err := guarded(e.model.Close)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failed = append(p.failed, fmt.Errorf("pool: close model %.100q: %w", e.Name, err))
	}
	var none M
	e.model = none
	p.gone(e)
}

// gone frees the memory of e, which is closed or was never loaded.
func (p *Pool[M]) gone(e *entry[M]) {
	p.used.add(e.need, -1)
	e.need = nil
	close(e.gone)
	e.gone = nil
	switch {
	case e.removed:
		p.entries = slices.DeleteFunc(p.entries, func(other *entry[M]) bool { return other == e })
		p.set(e, Absent, "it was removed")
	case e.state == Failed:
	case e.err != nil:
		p.set(e, Failed, e.err.Error())
	default:
		p.set(e, Absent, "")
	}
	p.schedule()
}

package pool

import (
	"cmp"
	"slices"
	"time"
)

// Set replaces the list of models and their loader. A model that both lists have stays as it is,
// unless its Version changes: then it is unloaded after use, and callers that wait for it get the
// new one. A model that the new list lacks is unloaded after use; callers that wait for it get an
// [*UnknownError]. After an error the list is the old one.
func (p *Pool[M]) Set(models []Spec, loader Loader[M]) error {
	if err := validate(models, loader); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	p.loader = loader
	old := p.entries
	p.entries, p.names = nil, map[string]*entry[M]{}
	for _, s := range models {
		s.Aliases = slices.Clone(s.Aliases)
		at := slices.IndexFunc(old, func(e *entry[M]) bool { return e.Name == s.Name })
		e := &entry[M]{Spec: s}
		if at >= 0 {
			e = old[at]
			old = slices.Delete(old, at, at+1)
			p.update(e, s)
		}
		p.entries = append(p.entries, e)
		for _, name := range append([]string{s.Name}, s.Aliases...) {
			p.names[name] = e
		}
	}
	for _, e := range old {
		e.removed = true
		p.withdraw(e, p.unknown(e.Name))
	}
	p.entries = append(p.entries, old...)
	p.entries = slices.DeleteFunc(p.entries, func(e *entry[M]) bool { return e.removed && e.need == nil })
	p.schedule()
	return nil
}

// update makes s the description of e.
func (p *Pool[M]) update(e *entry[M], s Spec) {
	was := e.Spec
	e.Spec, e.removed = s, false
	if was.Version != s.Version {
		p.renew(e)
	}
	if e.state != Ready {
		return
	}
	if was.TTL != s.TTL {
		e.ttl = cmp.Or(s.TTL, -1)
	}
	if e.holds == 0 && (was.TTL != s.TTL || was.Pinned != s.Pinned) {
		e.stay()
		p.idle(e)
	}
}

// renew has the next hold of e be one of its new version. Callers that wait for the old one wait
// for the new one.
func (p *Pool[M]) renew(e *entry[M]) {
	const why = "its description changed"
	e.err, e.fails, e.again = nil, 0, time.Time{}
	switch e.state {
	case Failed:
		p.set(e, Absent, why)
	case Ready:
		p.drain(e, why)
	}
	l := e.load
	switch {
	case l == nil:
		return
	case l.begun:
		l.cancel()
		p.set(e, Draining, why)
	default:
		p.drop(l)
	}
	p.want(e)
	e.load.waiters, l.waiters = l.waiters, nil
	for _, w := range e.load.waiters {
		w.load = e.load
	}
}

package cuda

import "fmt"

// Where layers are staged, the stream is given the launches of a layer once its weights
// have been read. Submit does not wait for that: a conductor begins steps in its place.

// enqueue lets the conductor begin a step.
func (e *executable) enqueue(s *step) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queued = append(e.queued, s)
	e.work.Broadcast()
}

// conduct begins the steps in their order.
func (e *executable) conduct() {
	var before error // of the step before
	for {
		e.mu.Lock()
		for len(e.queued) == 0 && !e.closed {
			e.work.Wait()
		}
		if len(e.queued) == 0 {
			e.given = true
			e.work.Broadcast()
			e.mu.Unlock()
			return
		}
		s := e.queued[0]
		e.mu.Unlock()
		if before = e.conductOne(s, before); before == nil && !s.Batch.Late {
			e.begun(s)
		}
		e.mu.Lock()
		if before != nil { // else the step may be done by now
			s.Err = before
		}
		e.queued = append(e.queued[:0], e.queued[1:]...)
		e.work.Broadcast()
		e.mu.Unlock()
		if before != nil {
			s.Finish()
		}
	}
}

// conductOne begins a step, unless that goes on with tokens of a step that failed.
func (e *executable) conductOne(s *step, before error) error {
	if before != nil {
		for _, row := range s.Batch.From {
			if row >= 0 {
				return fmt.Errorf("cuda: the step before gave no tokens: %w", before)
			}
		}
	}
	err := e.b.Main.Do(s.start)
	if err == nil {
		return nil
	}
	// What the stream was given of it runs to its end before its memory has other use.
	_ = e.b.Main.Do(e.stream.Synchronize)
	return fmt.Errorf("cuda: %w", err)
}

// conducted waits until the stream was given all steps submitted.
func (e *executable) conducted() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queued) > 0 {
		e.work.Wait()
	}
}

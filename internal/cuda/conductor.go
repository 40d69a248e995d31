package cuda

import "fmt"

// If layers are staged, the launches of a layer can be queued only once its weights have been read.
// Submit does not wait for that: a conductor goroutine begins the steps instead.

// enqueue passes a step to the conductor.
func (e *executable) enqueue(s *step) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queued = append(e.queued, s)
	e.work.Broadcast()
}

// conduct begins the queued steps in order.
func (e *executable) conduct() {
	var before error // error of the previous step
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
		if before != nil { // without an error, the step may already be done
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

// conductOne begins a step, unless it continues with tokens of a step that failed.
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
	// Queued launches of the step must finish before its memory is reused.
	_ = e.b.Main.Do(e.stream.Synchronize)
	return fmt.Errorf("cuda: %w", err)
}

// conducted waits until all submitted steps are queued on the stream.
func (e *executable) conducted() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.queued) > 0 {
		e.work.Wait()
	}
}

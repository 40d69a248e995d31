package engine

import (
	"context"
	"runtime"
	"slices"

	"github.com/realizar/realizar/internal/plan"
)

// schedule makes steps until the engine is closed and nothing is under way. It
// holds e.mu, except where it submits and waits.
func (e *Engine) schedule() {
	defer close(e.done)
	e.mu.Lock()
	defer e.mu.Unlock()
	for {
		f := e.next()
		switch {
		case f != nil:
			e.submit(f)
		case len(e.flights) > 0:
			e.await()
		case e.closed:
			e.failure = e.exe.Close()
			return
		default:
			e.work.Wait()
		}
	}
}

// next is the step to submit now, or nil: a token of every sequence that decodes
// and whose caller is not far behind, and chunks of prompts, first come, first
// served.
func (e *Engine) next() *flight {
	if e.closed || len(e.flights) == stepsAhead || len(e.requests) == 0 {
		return nil
	}
	f := e.newFlight()
	for _, r := range e.requests {
		if r.decoding() && r.ahead < tokensAhead {
			e.add(f, r, 1, 1)
		}
	}
	room := e.limits.Tokens - (e.limits.Seqs - 1) // that the others have
	for _, r := range e.requests {
		if r.decoding() || r.ahead == stepsAhead {
			continue
		}
		n, rows := r.chunk(room, e.limits.Rows-len(f.batch.Rows))
		if n > 0 && r.start+r.sent+n <= r.sequence.length+e.ahead {
			e.add(f, r, n, rows)
			room -= n
		}
	}
	if len(f.parts) == 0 {
		e.keep(f)
		return nil
	}
	e.requests = slices.DeleteFunc(e.requests, func(r *request) bool { return r.sent == r.total })
	return f
}

// chunk is how many of r's ids, and of their outputs, go into a step that has room
// for so many.
func (r *request) chunk(tokens, outputs int) (n, rows int) {
	n = min(len(r.ids)-r.sent, tokens, chunkTokens-(r.start+r.sent)%chunkTokens)
	for _, o := range r.outputs[r.given:] {
		switch at := int(o.Token) - r.sent; {
		case at >= n:
			return n, rows
		case rows == outputs:
			return at, rows
		}
		rows++
	}
	return n, rows
}

// submit starts f. Where that fails, so do all of its requests.
func (e *Engine) submit(f *flight) {
	e.mu.Unlock()
	step, err := e.exe.Submit(&f.batch)
	e.mu.Lock()
	if err != nil {
		for i := range f.parts {
			e.fail(f.parts[i].request, err)
		}
		e.keep(f)
		return
	}
	f.step, f.users = step, 1
	e.flights = append(e.flights, f)
	e.steps++
}

// await waits for the oldest step and hands its results out.
func (e *Engine) await() {
	f := e.flights[0]
	e.mu.Unlock()
	res, err := f.step.Wait(context.Background())
	// Callers that are ready go first: Go would let this goroutine and the worker
	// that it waits for wake each other for milliseconds. Those that have been left
	// out get more than one opportunity, as others may be ready before them.
	runtime.Gosched()
	for i := 0; i < maxYields && e.someoneIsBehind(); i++ {
		runtime.Gosched()
	}
	e.mu.Lock()
	e.flights = slices.Delete(e.flights, 0, 1)
	for i := range f.parts {
		p := &f.parts[i]
		switch {
		case p.request.over:
		case err != nil:
			e.fail(p.request, err)
		case res.Err != nil && res.Err[i] != nil:
			e.fail(p.request, res.Err[i])
		default:
			f.deliver(p, res)
		}
	}
	e.drop(f)
}

// maxYields is how often a step gives way to callers who are behind. One who does not
// come in that time is slow, and delays nobody.
const maxYields = 8

// someoneIsBehind reports whether a sequence is left out of steps until its caller has
// taken in what it has.
func (e *Engine) someoneIsBehind() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.ContainsFunc(e.requests, func(r *request) bool { return r.decoding() && r.ahead >= tokensAhead })
}

// fail ends a request.
func (e *Engine) fail(r *request, err error) {
	if !r.over {
		e.forget(r)
		r.results <- result{err: err}
	}
}

// deliver hands the results of a part to its caller. Without any, the caller has
// nothing to take in.
func (f *flight) deliver(p *part, res *plan.Result) {
	r := p.request
	final := p.end == r.start+r.total
	if p.rows == 0 {
		r.ahead--
		r.sequence.length = p.end
		if final {
			r.results <- result{final: true, end: p.end}
		}
		return
	}
	for i := p.row; i < p.row+p.rows; i++ {
		got := result{row: true, last: i+1 == p.row+p.rows, end: p.end}
		got.final = final && got.last
		got.Result = Result{
			Index: p.index + int(f.batch.Rows[i].Token), Token: res.Tokens[i], Logits: res.Logits[i], Hidden: res.Hidden[i],
			LogProbability: res.LogProbabilities[i],
		}
		if got.Logits != nil || got.Hidden != nil {
			f.users++
			got.flight = f
		}
		r.results <- got
		r.token = got.Token
	}
}

package engine

import (
	"context"
	"fmt"

	"github.com/realizar/realizar/internal/plan"
)

// Decode runs ids through the model after what the sequence holds, chooses a token
// after them, goes on with that one, and so on, until n are chosen or yield wants
// no more. o says what is wanted of each and how it is chosen; the index of a
// result is the number of the token chosen, from 0. When Decode returns, the
// sequence holds ids and the tokens yielded, but for the last.
//
// While one step runs the next is submitted already, with a token that the device
// alone knows, unless another sequence's turn is in between. What such a step
// leaves behind when it is not wanted lies past the sequence's end, where the next
// step writes.
func (s *Sequence) Decode(ctx context.Context, ids []int32, n int, o Output, yield func(Result) (more bool, err error)) error {
	if len(ids) == 0 || n < 1 {
		return fmt.Errorf("engine: choosing %d tokens after %d does not exist; want 1 or more of both", n, len(ids))
	}
	if err := s.fits(len(ids) + n - 1); err != nil {
		return err
	}
	chunk := s.engine.limits.Tokens
	head := max(0, (s.length+len(ids)-1)/chunk*chunk-s.length) // what comes before the last chunk
	if err := s.Append(ctx, ids[:head], nil, nil); err != nil {
		return err
	}
	ctx, stop := s.engine.during(ctx)
	defer stop()

	o.Want |= plan.WantToken
	var index int
	var token int32
	var more bool
	each := func(r Result) (err error) {
		r.Index, token = index, r.Token
		more, err = yield(r)
		return err
	}
	last := o
	last.Token = int32(len(ids) - head - 1)
	o.Token = 0
	f, err := s.next(ctx, ids[head:], []Output{last}, 0)
	rows := []Output{o}
	for ; err == nil; index++ {
		var ahead *flight
		if index+1 < n {
			ahead = s.ahead(f, rows)
		}
		err = s.finish(ctx, f, 0, each)
		switch {
		case err == nil && more && ahead != nil:
			f = ahead
		case err == nil && more && index+1 < n:
			f, err = s.next(ctx, []int32{token}, rows, 0)
		default:
			if ahead != nil {
				s.engine.leave(ahead)
			}
			return err
		}
	}
	return err
}

// unknown stands for a token that the step before chooses.
var unknown = []int32{0}

// ahead submits the step after before, which is under way, or returns nil where
// the token must be waited for. What is wrong with that step, the one that follows
// the token will say.
func (s *Sequence) ahead(before *flight, rows []Output) *flight {
	if !s.engine.tryEnter(before) {
		return nil
	}
	defer s.engine.turn.Release(1)
	f, err := s.submit(unknown, rows, 0, before)
	if err != nil {
		return nil
	}
	return f
}

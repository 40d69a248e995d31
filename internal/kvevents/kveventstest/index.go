// Package kveventstest has the index of a subscriber to KV events, for tests.
package kveventstest

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/realizar/realizar"
	"github.com/realizar/realizar/internal/zmtp/zmtptest"
)

// A Page identifies a page of the cache.
type Page struct {
	Hash uint64
	Pool int
	Host bool
}

// An Index is what follows from messages: for each cached page what its event says of it.
type Index map[Page]string

// Store adds a page as the message of e does.
func (x Index) Store(e *realizar.CacheEvent) {
	var parent, salt, kind, window any
	if e.Parent != 0 {
		parent = e.Parent
	}
	if e.Salt != "" {
		salt = []any{e.Salt}
	}
	if e.Pools > 1 {
		switch {
		case e.Recurrent:
			kind = "mamba"
		case e.Chunk > 0:
			kind = "chunked_local_attention"
		case e.Window > 0:
			kind = "sliding_window"
		default:
			kind = "full_attention"
		}
		if e.Window > 0 && !e.Recurrent {
			window = e.Window
		}
	}
	var tokens []any
	for _, id := range e.Tokens {
		tokens = append(tokens, uint64(id))
	}
	x[Page{e.Hash, e.Pool, e.Host}] = fmt.Sprint(parent, tokens, salt, kind, window)
}

// Receive returns the number and the payload of the next message that a SUB socket gets, which must
// have the given topic.
func Receive(c *zmtptest.Client, topic string) (seq uint64, payload []byte, err error) {
	frames, err := c.Receive()
	if err != nil {
		return 0, nil, err
	}
	if len(frames) != 3 || string(frames[0]) != topic || len(frames[1]) != 8 {
		return 0, nil, fmt.Errorf("a message of %d frames for %.30q", len(frames), frames)
	}
	return binary.BigEndian.Uint64(frames[1]), frames[2], nil
}

// Replay asks with a DEALER socket for the messages from a number on, applies them, and returns the
// number of the next one.
func (x Index) Replay(c *zmtptest.Client, from uint64) (next uint64, err error) {
	if err := c.Send("", string(binary.BigEndian.AppendUint64(nil, from))); err != nil {
		return 0, err
	}
	for next = from; ; {
		frames, err := c.Receive()
		if err != nil {
			return 0, err
		}
		if len(frames) != 4 || len(frames[0]) != 0 || len(frames[2]) != 8 {
			return 0, fmt.Errorf("an answer of %d frames: %.30q", len(frames), frames)
		}
		seq := binary.BigEndian.Uint64(frames[2])
		if last := seq == math.MaxUint64; last != (len(frames[1]) == 0) {
			return 0, fmt.Errorf("message %d with the topic %.30q", seq, frames[1])
		} else if last {
			return next, nil
		}
		if err := x.Apply(frames[3]); err != nil {
			return 0, err
		}
		next = seq + 1
	}
}

// Apply applies the events of a message.
func (x Index) Apply(payload []byte) error {
	v, rest, err := decode(payload)
	batch, ok := v.([]any)
	if err != nil {
		return err
	}
	if !ok || len(rest) > 0 || len(batch) != 3 {
		return fmt.Errorf("a batch is %v, with %d bytes after it", v, len(rest))
	}
	for _, v := range batch[1].([]any) {
		e := v.([]any)
		switch e[0] {
		case "AllBlocksCleared":
			clear(x)
		case "BlockRemoved":
			for _, hash := range e[1].([]any) {
				delete(x, pageOf(hash, field(e, 3), e[2]))
			}
		case "BlockStored":
			tokens, size := e[3].([]any), int(e[4].(uint64))
			parent := e[2]
			for i, hash := range e[1].([]any) {
				var salt any
				if extra, ok := field(e, 8).([]any); ok {
					salt = extra[i]
				}
				x[pageOf(hash, field(e, 9), e[6])] = fmt.Sprint(parent, tokens[i*size:(i+1)*size], salt, field(e, 10), field(e, 11))
				parent = hash
			}
		default:
			return fmt.Errorf("an unknown event %v", e)
		}
	}
	return nil
}

// field returns field i of an event, or nil if it is left out.
func field(e []any, i int) any {
	if i < len(e) {
		return e[i]
	}
	return nil
}

func pageOf(hash, group, medium any) Page {
	n, _ := group.(uint64)
	return Page{hash.(uint64), int(n), medium == "CPU"}
}

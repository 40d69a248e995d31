package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/realizar/realizar/internal/budget"
)

// The memory in bytes that a body may need. Each byte of the body counts three times: as received,
// while the buffer grows, and in a decoded string. An element of a list needs room for a number or
// a string header, an object needs a struct.
const (
	bodyCost   = 3
	valueCost  = 16
	objectCost = 512
)

// readBody reads the request's body. It reads nothing if the request would be refused afterwards.
// Memory is reserved as the body arrives.
func (x *Exchange) readBody() ([]byte, error) {
	if err := x.Server.admission.enter(0); err != nil {
		return nil, err
	}
	if x.ContentLength > x.settings.maxBody {
		return nil, tooLarge(x.settings.maxBody)
	}
	if err := x.memory.Fits(bodyCost * max(0, x.ContentLength)); err != nil {
		return nil, err
	}
	x.memory.Wait(true)
	data, err := x.readAll(http.MaxBytesReader(x.w, x.Body, x.settings.maxBody))
	x.memory.Wait(false)
	var large *http.MaxBytesError
	var full *budget.Error
	switch {
	case err == nil:
	case as(err, &full):
		return nil, err
	case x.memory.Evicted() != nil:
		return nil, x.memory.Evicted()
	case x.work.Err() != nil && !errors.Is(context.Cause(x.work), context.Canceled): // the cause is that the client left, or that reading failed
		return nil, context.Cause(x.work)
	case as(err, &large):
		return nil, tooLarge(large.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &Error{Status: http.StatusBadRequest, Code: "body_timeout",
			Message: fmt.Sprintf("the body did not arrive within %v", x.settings.deadlines.Body)}
	default:
		return nil, &Error{Status: http.StatusBadRequest, Code: "body_incomplete", Message: "the body ended early: " + err.Error()}
	}
	x.came()
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // later reads only detect that the client leaves
	x.size = len(data)
	return data, nil
}

// becomes returns the memory in bytes for the values and objects that a piece of a body may decode
// to.
func becomes(piece []byte) int64 {
	return int64(valueCost*bytes.Count(piece, []byte{','}) + objectCost*bytes.Count(piece, []byte{'{'}))
}

// checkText returns an error if data is not valid text.
func checkText(data []byte) error {
	if at := notText(data); at >= 0 {
		return &Error{Status: http.StatusBadRequest, Code: "invalid_utf8",
			Message: fmt.Sprintf("byte %d of the body is not UTF-8, or is half of a \\u pair without the other", at)}
	}
	return nil
}

func tooLarge(limit int64) error {
	return &Error{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large",
		Message: fmt.Sprintf("the body has more than %d bytes, the limit of the server", limit)}
}

// readAll reads r to its end, or to the length that the client states. It stops when the work for
// the request ends.
func (x *Exchange) readAll(r io.Reader) ([]byte, error) {
	ended := make(chan struct{})
	stop := context.AfterFunc(x.work, func() {
		x.readBy(0)
		close(ended)
	})
	defer func() {
		if !stop() {
			<-ended
		}
	}()
	const first = 4 << 10
	var data []byte
	for room := int64(first); ; room = 2 * room {
		if n := x.ContentLength; n >= 0 {
			room = min(room, n+1) // one byte more, to see the end
		}
		if err := x.memory.Reserve(bodyCost * (room - int64(cap(data)))); err != nil {
			return nil, err
		}
		more := make([]byte, len(data), room)
		copy(more, data)
		data = more
		for len(data) < cap(data) {
			n, err := r.Read(data[len(data):cap(data)])
			data = data[:len(data)+n]
			if err := x.memory.Reserve(becomes(data[len(data)-n:])); err != nil {
				return nil, err // before the rest is read
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				return data, err
			}
		}
	}
}

// notText returns the index of the first bytes of data that are not UTF-8, or of a \u escape that
// is half of a surrogate pair, or -1. A JSON decoder would replace such characters.
func notText(data []byte) int {
	if !utf8.Valid(data) {
		for i := 0; i < len(data); {
			r, n := utf8.DecodeRune(data[i:])
			if r == utf8.RuneError && n == 1 {
				return i
			}
			i += n
		}
	}
	for i := 0; ; i++ {
		next := bytes.IndexByte(data[min(i, len(data)):], '\\')
		if i += next + 1; next < 0 || i >= len(data) {
			return -1
		}
		if data[i] != 'u' {
			continue
		}
		switch unit := escaped(data[i-1:]); {
		case 0xD800 <= unit && unit < 0xDC00:
			if low := escaped(data[i+5:]); low < 0xDC00 || low > 0xDFFF {
				return i - 1
			}
			i += 6
		case 0xDC00 <= unit && unit <= 0xDFFF:
			return i - 1
		}
	}
}

// escaped returns the UTF-16 unit of a \u escape at the beginning of p, or -1.
func escaped(p []byte) int {
	if len(p) < 6 || p[0] != '\\' || p[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(p[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return int(unit)
}

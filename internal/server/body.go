package server

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"time"
	"unicode/utf8"
)

// ReadBody reads the request's body, which is JSON. It is not read where the request would
// be refused after it.
func (x *Exchange) ReadBody() ([]byte, error) {
	s := x.Server
	if err := s.admission.enter(0); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(http.MaxBytesReader(x.w, x.Body, s.config.MaxBody))
	var large *http.MaxBytesError
	switch {
	case as(err, &large):
		return nil, &Error{Status: http.StatusRequestEntityTooLarge, Code: "body_too_large",
			Message: fmt.Sprintf("the body has more than %d bytes, which is what the server takes", large.Limit)}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &Error{Status: http.StatusBadRequest, Code: "body_timeout",
			Message: fmt.Sprintf("the body did not arrive within %v", s.config.ReadTimeout)}
	case err != nil:
		return nil, &Error{Status: http.StatusBadRequest, Code: "body_incomplete", Message: "the body ended early: " + err.Error()}
	}
	_ = http.NewResponseController(x.w).SetReadDeadline(time.Time{}) // what is read from here on is that the client leaves
	if at := notText(data); at >= 0 {
		return nil, &Error{Status: http.StatusBadRequest, Code: "invalid_utf8",
			Message: fmt.Sprintf("byte %d of the body is no UTF-8, or half of a \\u pair without the other", at)}
	}
	return data, nil
}

// notText is where data has bytes that are no UTF-8, or a \u escape that is half of a
// character, or -1: a decoder of JSON would put other characters in their place.
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
	for i := 0; i+1 < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		if i++; data[i] != 'u' {
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
	return -1
}

// escaped is the unit of UTF-16 of a \u escape at the beginning of p, or -1.
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

package server

import (
	"log/slog"
	"strings"
)

// leftOutHeader names what an answer does not take into account of its request.
const leftOutHeader = "X-Left-Out"

// The most that the header names, and of how many bytes each.
const (
	maxLeftOut      = 32
	maxLeftOutBytes = 120
)

// LeftOut says of parts of the request that the answer is made without them: in a header,
// and in the log. It is for before the answer.
func (x *Exchange) LeftOut(parts ...string) {
	if len(parts) == 0 {
		return
	}
	if len(parts) > maxLeftOut {
		parts = append(append([]string{}, parts[:maxLeftOut]...), "...")
	}
	named := make([]string, len(parts))
	for i, part := range parts {
		named[i] = inHeader(part)
	}
	text := strings.Join(named, ", ")
	x.w.Header().Add(leftOutHeader, text)
	x.Note(slog.String("left_out", text))
	x.Server.config.Logger.Warn("an answer is made without parts of its request", slog.String("id", x.id), slog.String("left_out", text))
}

// inHeader is a name of a client's as headers and logs may have it.
func inHeader(name string) string {
	name = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == ',' {
			return '?'
		}
		return r
	}, name)
	if len(name) > maxLeftOutBytes {
		name = name[:maxLeftOutBytes] + "..."
	}
	return name
}

package server

import (
	"log/slog"
	"strings"
)

// leftOutHeader names what an answer does not take into account of its request.
const leftOutHeader = "X-Left-Out"

// The most parts that the header names at one time, and of how many bytes each: proxies take
// headers of a few kilobytes in all.
const (
	maxLeftOut      = 16
	maxLeftOutBytes = 64
)

// LeftOut says of parts of the request that the answer is made without them: in a header,
// and in the log. It is for before the answer.
func (x *Exchange) LeftOut(parts ...string) {
	if len(parts) == 0 {
		return
	}
	var named []string
	for _, part := range parts[:min(maxLeftOut, len(parts))] {
		named = append(named, inHeader(part))
	}
	if len(parts) > maxLeftOut {
		named = append(named, "...")
	}
	text := strings.Join(named, ", ")
	x.w.Header().Add(leftOutHeader, text)
	x.Server.config.Logger.Warn("an answer is made without parts of its request", slog.String("request_id", x.id), slog.String("left_out", text))
}

// inHeader is a name of a client's as a list in a header may have it.
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

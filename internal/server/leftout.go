package server

import (
	"log/slog"
	"strings"
)

// leftOutHeader names the parts of the request that the answer ignores.
const leftOutHeader = "X-Left-Out"

// The maximum number of parts that the header names, and of bytes for each: proxies accept headers
// of a few kilobytes in all.
const (
	maxLeftOut      = 16
	maxLeftOutBytes = 64
)

// LeftOut reports, in a header and in the log, parts of the request that the answer ignores. It
// must be called before the answer begins.
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

// inHeader returns a client's name in a form that is safe in a header's list.
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

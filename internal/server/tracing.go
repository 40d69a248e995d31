package server

import (
	"encoding/hex"
	"log/slog"
	"net/http"
	"strings"
)

// Spans traces requests across several servers.
type Spans interface {
	// Begin is called when a request arrives. It returns the ID of the trace and a function to call
	// when the request was answered.
	Begin(r *http.Request) (trace string, end func(*Answered))
}

// An Answered describes a request that was answered.
type Answered struct {
	Route     string // its pattern; empty if it was answered before it was routed
	Operation string // see [Route]
	Model     string // empty if it used none
	Status    int
	Notes     []slog.Attr // of its line in the log
}

// follow adds the trace ID of a request to its log line and to the header of its answer.
func (s *Server) follow(x *Exchange) {
	var trace string
	if headers := x.Header.Values("Traceparent"); len(headers) == 1 {
		trace = parseTraceParent(headers[0]).trace
	}
	if s.config.Spans != nil {
		trace, x.traced = s.config.Spans.Begin(x.Request)
	}
	if trace != "" {
		x.w.Header().Set("X-Trace-Id", trace)
		x.Note(slog.String("trace_id", trace))
	}
}

// unfollow ends the request's span.
func (s *Server) unfollow(x *Exchange) {
	if x.traced == nil {
		return
	}
	notes := make([]slog.Attr, 0, len(x.attrs)+1)
	notes = append(notes, slog.String("request_id", x.id))
	for _, a := range x.attrs {
		if a.Key != promptNote && a.Key != "trace_id" {
			notes = append(notes, a)
		}
	}
	a := &Answered{Route: x.Pattern, Operation: s.operations[x.Pattern], Status: x.status, Notes: notes}
	if x.hold != nil {
		a.Model = x.Name()
	}
	x.traced(a)
}

// A traceParent is a traceparent header of the W3C's Trace Context: the trace that a
// request belongs to, and the caller's part of it.
type traceParent struct {
	trace   string // 32 hexadecimal digits; empty if there is no trace
	span    string // 16 hexadecimal digits
	sampled bool
}

// parseTraceParent parses a header. A malformed header counts as none, as the specification
// demands: the caller may only have passed it on.
func parseTraceParent(header string) traceParent {
	parts := strings.Split(header, "-")
	if len(parts) < 4 {
		return traceParent{}
	}
	version, ok := hexField(parts[0], 1)
	flags, flagged := hexField(parts[3], 1)
	trace, traced := hexField(parts[1], 16)
	span, spanned := hexField(parts[2], 8)
	switch {
	case !ok || !flagged || !traced || !spanned, version[0] == 0xff, version[0] == 0 && len(parts) > 4,
		zero(trace), zero(span):
		return traceParent{}
	}
	return traceParent{trace: parts[1], span: parts[2], sampled: flags[0]&1 != 0}
}

// hexField decodes n bytes of lower-case hexadecimal digits.
func hexField(s string, n int) ([]byte, bool) {
	b, err := hex.DecodeString(s)
	return b, err == nil && len(b) == n && s == strings.ToLower(s)
}

func zero(b []byte) bool { return strings.Trim(string(b), "\x00") == "" }

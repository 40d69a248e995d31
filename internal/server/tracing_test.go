package server

import "testing"

func TestParseTraceParent(t *testing.T) {
	const (
		trace = "4bf92f3577b34da6a3ce929d0e0e4736"
		span  = "00f067aa0ba902b7"
	)
	for header, want := range map[string]traceParent{
		"00-" + trace + "-" + span + "-01":            {trace, span, true},
		"00-" + trace + "-" + span + "-00":            {trace, span, false},
		"00-" + trace + "-" + span + "-ff":            {trace, span, true},
		"cc-" + trace + "-" + span + "-01-more-of-it": {trace, span, true},
		"":                                      {},
		"00-" + trace + "-" + span:              {},
		"00-" + trace + "-" + span + "-01-more": {},
		"ff-" + trace + "-" + span + "-01":      {},
		"0-" + trace + "-" + span + "-01":       {},
		"00-" + trace[1:] + "-" + span + "-01":  {},
		"00-" + trace + "-" + span[1:] + "-01":  {},
		"00-" + trace + "-" + span + "-1":       {},
		"00-" + "4BF92F3577B34DA6A3CE929D0E0E4736" + "-" + span + "-01": {},
		"00-00000000000000000000000000000000-" + span + "-01":           {},
		"00-" + trace + "-0000000000000000-01":                          {},
		"00-" + trace[2:] + "zz-" + span + "-01":                        {},
	} {
		if got := parseTraceParent(header); got != want {
			t.Errorf("%q: %+v, want %+v", header, got, want)
		}
	}
}

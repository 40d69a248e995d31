package realizar

import "strings"

// A stopMatcher passes text on until a stop string appears. It holds back the end of the text while
// that could be the beginning of a stop string.
type stopMatcher struct {
	stops []string
	held  string
}

// push adds text. It returns the text that can be passed on, and the stop string in it, if any: the
// one that begins first, and the longest one that begins there.
func (s *stopMatcher) push(text string) (out, stop string) {
	s.held += text
	at := len(s.held)
	for _, c := range s.stops {
		if i := strings.Index(s.held, c); i >= 0 && (i < at || i == at && len(c) > len(stop)) {
			at, stop = i, c
		}
	}
	if stop != "" {
		out, s.held = s.held[:at], ""
		return out, stop
	}
	keep := 0
	for _, c := range s.stops {
		for n := min(len(c)-1, len(s.held)); n > keep; n-- {
			if strings.HasSuffix(s.held, c[:n]) {
				keep = n
			}
		}
	}
	out = s.held[:len(s.held)-keep]
	s.held = s.held[len(out):]
	return out, ""
}

// flush returns the text that is held back.
func (s *stopMatcher) flush() string {
	out := s.held
	s.held = ""
	return out
}

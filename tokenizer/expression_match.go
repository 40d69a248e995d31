package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// search is the execution of a program on one text. It is not safe for concurrent use.
type search struct {
	of    *expression
	work  *work
	text  string
	stack []attempt
	runs  []knownRun
	known map[int32][]uint64 // what is known of states at positions, in pages
	steps int                // of the current match
}

// attempt is an alternative to try after a failure.
type attempt struct {
	kind attemptKind
	pc   int32
	pos  int // where to continue; for a run, its current end
	low  int // for a run, its earliest end
}

type attemptKind uint8

const (
	tryOther   attemptKind = iota // continue at pc
	tryShorter                    // shorten a run by a character
	markFailed                    // remember that every alternative from here fails
)

// knownRun is the last run of characters of a set that an instruction saw. It reaches from start,
// or before, to end. From failed on no position in it leads to a match.
type knownRun struct{ start, end, failed int }

// freeSteps is how many choices of a match are made before choices are remembered. Remembering
// costs more than most choices do.
const freeSteps = 256

const (
	placesOfPage = 256
	maxSearch    = 1 << 16 // attempts and runs that a search keeps for reuse
)

// search returns a search in text. The caller returns it with done.
func (e *expression) search(w *work, text string) *search {
	s, ok := e.pool.Get().(*search)
	if !ok {
		s = &search{of: e, runs: make([]knownRun, e.runs), known: make(map[int32][]uint64)}
	}
	s.work, s.text = w, text
	for i := range s.runs {
		s.runs[i] = knownRun{start: -1}
	}
	return s
}

func (s *search) done() {
	if cap(s.stack) > maxSearch {
		return
	}
	s.work, s.text = nil, ""
	clear(s.known)
	s.of.pool.Put(s)
}

// each implements finder. It skips an empty match at the end of the previous match or of the text.
func (e *expression) each(w *work, text string, match func(start, end int) (more bool)) {
	s := e.search(w, text)
	defer s.done()
	last := -1 // end of the previous match
	for at := 0; at < len(text); {
		start, end := s.find(at)
		if start == len(text) || start == end && start == last {
			if start == len(text) {
				return
			}
			_, n := utf8.DecodeRuneInString(text[start:])
			at = start + n
			continue
		}
		if !match(start, end) {
			return
		}
		at, last = end, end
		if start == end {
			_, n := utf8.DecodeRuneInString(text[start:])
			at = start + n
		}
	}
}

// find returns the first match that begins at or after from, or the end of the text twice if there
// is none.
func (s *search) find(from int) (start, end int) {
	s.steps = 0
	for i := from; i < len(s.text); {
		if s.of.prefix != "" {
			next := strings.Index(s.text[i:], s.of.prefix)
			if next < 0 {
				break
			}
			i += next
		}
		r, n := utf8.DecodeRuneInString(s.text[i:])
		s.work.step(n)
		if s.of.firsts == nil || s.of.firsts.has(r) {
			if end, ok := s.match(0, i, false); ok {
				return i, end
			}
		}
		i += n
	}
	return len(s.text), len(s.text)
}

// match runs the program at pc from a position and returns the end of the match. With look the end
// does not matter.
func (s *search) match(pc int32, pos int, look bool) (end int, ok bool) {
	base := len(s.stack)
	for {
		s.work.step(1)
		in := &s.of.code[pc]
		ok := false
		switch in.op {
		case opSet:
			var n int
			if n, ok = s.character(in, pos); ok {
				pos += n
				pc++
			}
		case opJump:
			pc, ok = in.x, true
		case opPlace:
			ok = s.at(in.place, pos)
			pc++
		case opSplit:
			if s.steps++; s.steps > freeSteps {
				failed, succeeded := s.recall(in.number, pos)
				if look && succeeded {
					s.succeed(base)
					return pos, true
				}
				if failed {
					break
				}
				s.stack = append(s.stack, attempt{markFailed, pc, pos, 0})
			}
			s.stack = append(s.stack, attempt{tryOther, in.y, pos, 0})
			pc, ok = in.x, true
		case opRun:
			if pos, ok = s.run(pc, in, pos); ok {
				pc++
			}
		case opLook:
			if ok = s.look(in, pos) != in.flag; ok {
				pc = in.y
			}
		case opAtomic:
			var end int
			if end, ok = s.match(in.x, pos, false); ok {
				pos, pc = end, in.y
			}
		case opAccept:
			if look {
				s.succeed(base)
			}
			s.stack = s.stack[:base]
			return pos, true
		}
		if !ok {
			if pc, pos, ok = s.another(base); !ok {
				return 0, false
			}
		}
	}
}

// succeed remembers that the choices on the way to a successful lookaround succeed.
func (s *search) succeed(base int) {
	for _, a := range s.stack[base:] {
		if a.kind == markFailed {
			s.remember(s.of.code[a.pc].number, a.pos, 2)
		}
	}
	s.stack = s.stack[:base]
}

// another returns where to continue after a failure.
func (s *search) another(base int) (pc int32, pos int, ok bool) {
	for len(s.stack) > base {
		a := &s.stack[len(s.stack)-1]
		switch a.kind {
		case tryOther:
			pc, pos = a.pc, a.pos
			s.stack = s.stack[:len(s.stack)-1]
			return pc, pos, true
		case markFailed:
			s.remember(s.of.code[a.pc].number, a.pos, 1)
		case tryShorter:
			_, n := decodeBefore(s.text, a.pos)
			if k := &s.runs[s.of.code[a.pc].number]; k.start >= 0 && k.start <= a.pos && a.pos <= k.end {
				if _, next := utf8.DecodeRuneInString(s.text[a.pos:]); a.pos == k.end || a.pos+next >= k.failed {
					k.failed = min(k.failed, a.pos)
				}
			}
			if a.pos > a.low {
				a.pos -= n
				return a.pc + 1, a.pos, true
			}
		}
		s.stack = s.stack[:len(s.stack)-1]
	}
	return 0, 0, false
}

// character returns the length of the character at pos, negative for the character before pos, if
// it is in the instruction's set.
func (s *search) character(in *instruction, pos int) (n int, ok bool) {
	var r rune
	switch {
	case in.back:
		if pos == 0 {
			return 0, false
		}
		r, n = decodeBefore(s.text, pos)
		n = -n
	case pos == len(s.text):
		return 0, false
	case s.text[pos] < utf8.RuneSelf:
		r, n = rune(s.text[pos]), 1
	default:
		r, n = utf8.DecodeRuneInString(s.text[pos:])
	}
	if in.char >= 0 {
		return n, r == in.char
	}
	return n, in.set.has(r)
}

// run returns the end of the longest run that begins at pos and may lead to a match. It stacks the
// shorter ones as attempts.
func (s *search) run(pc int32, in *instruction, pos int) (end int, ok bool) {
	k := &s.runs[in.number]
	if k.start < 0 || pos < k.start || pos > k.end {
		next := knownRun{start: pos, end: pos}
		for {
			if next.end == k.start && k.start >= 0 { // the known run begins here
				next.end, next.failed = k.end, k.failed
				break
			}
			n, ok := s.character(in, next.end)
			if !ok {
				next.failed = next.end + 1
				break
			}
			next.end += n
			s.work.step(n)
		}
		*k = next
	}
	if in.flag {
		return k.end, true
	}
	end = k.end
	if k.failed <= end {
		if k.failed <= pos {
			return pos, false
		}
		_, n := decodeBefore(s.text, k.failed)
		end = k.failed - n
	}
	s.stack = append(s.stack, attempt{tryShorter, pc, end, pos})
	return end, true
}

// look reports whether the program of a lookaround holds at pos.
func (s *search) look(in *instruction, pos int) bool {
	if s.steps++; s.steps > freeSteps {
		if failed, succeeded := s.recall(in.number, pos); failed || succeeded {
			return succeeded
		}
	}
	_, ok := s.match(in.x, pos, true)
	if s.steps > freeSteps {
		if ok {
			s.remember(in.number, pos, 2)
		} else {
			s.remember(in.number, pos, 1)
		}
	}
	return ok
}

// recall returns what is known of a state at a position: whether every alternative from there
// fails, or one in a lookaround succeeds.
func (s *search) recall(state int32, pos int) (failed, succeeded bool) {
	page := s.known[int32(pos/placesOfPage)]
	if page == nil {
		return false, false
	}
	bit := 2 * (pos%placesOfPage*s.of.states + int(state))
	bits := page[bit/64] >> (bit % 64)
	return bits&1 != 0, bits&2 != 0
}

func (s *search) remember(state int32, pos int, bits uint64) {
	number := int32(pos / placesOfPage)
	page := s.known[number]
	if page == nil {
		page = make([]uint64, (2*placesOfPage*s.of.states+63)/64)
		s.known[number] = page
	}
	bit := 2 * (pos%placesOfPage*s.of.states + int(state))
	page[bit/64] |= bits << (bit % 64)
}

// at reports whether p holds at pos.
func (s *search) at(p place, pos int) bool {
	text := s.text
	switch p {
	case textStart:
		return pos == 0
	case textEnd:
		return pos == len(text)
	case lastLineEnd:
		return pos == len(text) || pos == len(text)-1 && text[pos] == '\n'
	case lineStart:
		return pos == 0 || text[pos-1] == '\n' && pos < len(text)
	case lineEnd:
		return pos == len(text) || text[pos] == '\n'
	}
	word := func(r rune, n int) bool { return n > 0 && wordSet().has(r) }
	edge := word(decodeBefore(text, pos)) != word(utf8.DecodeRuneInString(text[pos:]))
	return edge == (p == wordEdge)
}

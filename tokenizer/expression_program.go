package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// expression is a regular expression compiled to a program for a backtracking machine. It finds
// what Oniguruma finds, in time proportional to the text for every expression: a state that has
// failed at a position is not tried there again.
type expression struct {
	code   []instruction
	prefix string   // what every match begins with
	firsts *runeSet // the characters that a match may begin with; nil for any
	empty  bool     // a match may be empty
	runs   int      // number of instructions that remember a run
	states int
	pool   sync.Pool // of searches
}

type operation uint8

const (
	opSet    operation = iota // a character of the set
	opSplit                   // first x, then y
	opJump                    // to x
	opRun                     // the longest run of characters of the set
	opLook                    // the program at x matches here; continue at y
	opAtomic                  // the first match of the program at x; continue at y
	opPlace                   // the condition place holds
	opAccept
)

// instruction is a step of a program.
type instruction struct {
	op     operation
	flag   bool // of opRun: does not backtrack; of opLook: the program must not match
	back   bool // the text is read backwards
	place  place
	x, y   int32
	number int32 // index of what opRun, opSplit and opLook remember
	char   rune  // the only character of the set, or -1
	set    *runeSet
}

// maxProgram is the largest number of instructions in a program.
const maxProgram = 1 << 14

// compiler writes a program.
type compiler struct {
	expression
	sets  map[string]*runeSet // by their ranges
	known map[*term]*runeSet  // sets of terms that are compiled more than once
}

// compileExpression compiles an expression in the syntax of Oniguruma.
func compileExpression(text string) (*expression, error) {
	t, err := parseExpression(text)
	c := &compiler{sets: make(map[string]*runeSet), known: make(map[*term]*runeSet)}
	if err == nil {
		if err = c.write(t, false); err == nil {
			c.add(instruction{op: opAccept})
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: the regular expression %s: %w", ErrUnsupported, quoted(text), err)
	}
	e := &c.expression
	least, _ := t.length()
	e.empty = least == 0
	e.prefix, _ = t.prefix()
	if firsts, all := t.firsts(); all && e.prefix == "" {
		e.firsts = newRuneSet(firsts)
	}
	return e, nil
}

// expressionFor returns the finder of a regular expression in a tokenizer.json: a hand-written
// matcher or a compiled program.
func expressionFor(text string) (named, error) {
	// A line break may be literal or escaped in the expression.
	canonical := strings.NewReplacer("\r", `\r`, "\n", `\n`, "\t", `\t`).Replace(text)
	if f, ok := patterns[canonical]; ok {
		return f, nil
	}
	e, err := compileExpression(text)
	if err != nil {
		return named{}, err
	}
	return named{finder: e}, nil
}

// length returns the least and the most characters that t matches, -1 for no limit.
func (t *term) length() (least, most int) {
	add := func(a, b int) int {
		if a < 0 || b < 0 {
			return -1
		}
		return min(a+b, 1<<20)
	}
	switch t.kind {
	case termSet:
		return 1, 1
	case termRepeat:
		least, most = t.parts[0].length()
		least = min(least*t.min, 1<<20)
		switch {
		case most == 0:
		case t.max < 0 || most < 0 && t.max > 0:
			most = -1
		default:
			most = min(most*t.max, 1<<20)
		}
	case termChoice:
		for i, part := range t.parts {
			low, high := part.length()
			switch {
			case i == 0:
				least, most = low, high
			case high < 0 || most < 0:
				least, most = min(least, low), -1
			default:
				least, most = min(least, low), max(most, high)
			}
		}
	case termSequence, termAtomic:
		for _, part := range t.parts {
			low, high := part.length()
			least, most = min(least+low, 1<<20), add(most, high)
		}
	}
	return least, most
}

// prefix returns a string that every match of t begins with, truncated if it is long, and whether
// it is the whole match.
func (t *term) prefix() (prefix string, whole bool) {
	const limit = 32
	switch t.kind {
	case termSet:
		// An invalid byte also reads as U+FFFD, with another spelling.
		if len(t.set) == 1 && t.set[0].first == t.set[0].last && t.set[0].first != utf8.RuneError {
			return string(t.set[0].first), true
		}
	case termRepeat:
		one, whole := t.parts[0].prefix()
		n := min(t.min, limit)
		if !whole {
			n = min(n, 1)
		}
		return strings.Repeat(one, n), whole && n == t.max
	case termSequence, termAtomic:
		for _, part := range t.parts {
			one, whole := part.prefix()
			if prefix += one; !whole || len(prefix) > limit {
				return prefix, false
			}
		}
		return prefix, true
	}
	return "", false
}

// firsts returns the characters that a match of t may begin with. all is false if a match may be
// empty, so that the set is of no use.
func (t *term) firsts() (set runeRanges, all bool) {
	switch t.kind {
	case termSet:
		return t.set, true
	case termRepeat:
		set, all = t.parts[0].firsts()
		return set, all && t.min > 0
	case termChoice:
		all = true
		for _, part := range t.parts {
			one, ok := part.firsts()
			set, all = union(set, one), all && ok
		}
		return set, all
	case termSequence, termAtomic:
		for _, part := range t.parts {
			one, ok := part.firsts()
			if set = union(set, one); ok {
				return set, true
			}
		}
	}
	return set, false
}

func (c *compiler) add(i instruction) int32 {
	c.code = append(c.code, i)
	return int32(len(c.code) - 1)
}

// split adds a choice between the next instruction and a target that fix sets later; lazy reverses
// their order.
func (c *compiler) split(lazy bool) (fix func()) {
	at := c.add(instruction{op: opSplit, number: int32(c.states)})
	c.states++
	c.code[at].x, c.code[at].y = at+1, -1
	return func() {
		i := &c.code[at]
		i.y = int32(len(c.code))
		if lazy {
			i.x, i.y = i.y, i.x
		}
	}
}

// setOf returns an instruction for a character in the set of t.
func (c *compiler) setOf(op operation, t *term, back bool) instruction {
	i := instruction{op: op, back: back, char: -1}
	if len(t.set) == 1 && t.set[0].first == t.set[0].last {
		i.char = t.set[0].first
		return i
	}
	if i.set = c.known[t]; i.set != nil {
		return i
	}
	key := fmt.Sprint(t.set)
	if i.set = c.sets[key]; i.set == nil {
		i.set = newRuneSet(t.set)
		c.sets[key] = i.set
	}
	c.known[t] = i.set
	return i
}

// write adds the program of t; with back the program reads the text backwards.
func (c *compiler) write(t *term, back bool) error {
	if len(c.code) > maxProgram {
		return unsupportedExpression("it is too large")
	}
	switch t.kind {
	case termSet:
		c.add(c.setOf(opSet, t, back))
	case termPlace:
		c.add(instruction{op: opPlace, place: t.place})
	case termSequence:
		for i := range t.parts {
			if back {
				i = len(t.parts) - 1 - i
			}
			if err := c.write(t.parts[i], back); err != nil {
				return err
			}
		}
	case termChoice:
		var ends []int32
		for i, part := range t.parts {
			last := i == len(t.parts)-1
			fix := func() {}
			if !last {
				fix = c.split(false)
			}
			if err := c.write(part, back); err != nil {
				return err
			}
			if !last {
				ends = append(ends, c.add(instruction{op: opJump}))
			}
			fix()
		}
		for _, end := range ends {
			c.code[end].x = int32(len(c.code))
		}
	case termRepeat:
		return c.repeat(t, back)
	case termAtomic, termLook:
		op := opAtomic
		if t.kind == termLook {
			op, back = opLook, t.behind
		} else if _, most := t.length(); most < 0 {
			return unsupportedExpression("an atomic group of any length")
		}
		at := c.add(instruction{op: op, flag: t.negative, number: int32(c.states)})
		c.states++
		c.code[at].x = at + 1
		for _, part := range t.parts {
			if err := c.write(part, back); err != nil {
				return err
			}
		}
		c.add(instruction{op: opAccept})
		c.code[at].y = int32(len(c.code))
	}
	return nil
}

// repeat adds the program of a repetition.
func (c *compiler) repeat(t *term, back bool) error {
	body := t.parts[0]
	least, most := body.length()
	if most == 0 { // an empty match holds once or any number of times
		if t.min == 0 {
			return nil
		}
		return c.write(body, back)
	}
	run := body.kind == termSet && t.max < 0 && !t.lazy && !back
	switch {
	case t.max < 0 && least == 0:
		return unsupportedExpression("any number of what may be nothing")
	case t.possessive && !run:
		greedy := *t
		greedy.possessive = false
		return c.write(&term{kind: termAtomic, parts: []*term{&greedy}}, back)
	}
	for range t.min {
		if err := c.write(body, back); err != nil {
			return err
		}
	}
	switch {
	case run:
		i := c.setOf(opRun, body, false)
		i.flag, i.number = t.possessive, int32(c.runs)
		c.runs++
		c.add(i)
	case t.max < 0:
		start := int32(len(c.code))
		fix := c.split(t.lazy)
		if err := c.write(body, back); err != nil {
			return err
		}
		c.add(instruction{op: opJump, x: start})
		fix()
	default:
		var fixes []func()
		for range t.max - t.min {
			fixes = append(fixes, c.split(t.lazy))
			if err := c.write(body, back); err != nil {
				return err
			}
		}
		for _, fix := range fixes {
			fix()
		}
	}
	return nil
}

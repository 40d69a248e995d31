package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"
)

// expression is a regular expression as a program for a machine that tries one way after the other. It finds
// what Oniguruma finds, but in time proportional to the text, whatever the expression: what has failed at a
// place is not tried there again.
type expression struct {
	code   []instruction
	prefix string   // what every match begins with
	firsts *runeSet // the characters that a match may begin with; nil for any
	empty  bool     // a match may be empty
	runs   int      // numbers of instructions that remember something
	states int
	pool   sync.Pool // of searches
}

type operation uint8

const (
	opSet    operation = iota // a character of the set
	opSplit                   // first x, then y
	opJump                    // to x
	opRun                     // as many characters of the set as there are
	opLook                    // the program at x holds here; go on at y
	opAtomic                  // the first way through the program at x; go on at y
	opPlace                   // it is such a place
	opAccept
)

// instruction is a step of a program.
type instruction struct {
	op     operation
	flag   bool // of opRun: it gives nothing back; of opLook: the program does not hold
	back   bool // the text is read backwards
	place  place
	x, y   int32
	number int32 // of what opRun, opSplit and opLook remember
	char   rune  // the only one of the set, or -1
	set    *runeSet
}

// maxProgram is the most instructions of a program.
const maxProgram = 1 << 14

// compiler writes a program.
type compiler struct {
	expression
	sets  map[string]*runeSet // by their ranges
	known map[*term]*runeSet  // of terms that are written again
}

// compileExpression returns the finder of an expression in the syntax of Oniguruma.
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

// expressionFor returns the finder of a regular expression of a tokenizer.json: one that is written by hand, or
// a program.
func expressionFor(text string) (named, error) {
	// A line break may stand in the expression as it is or escaped.
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

// length returns how many characters t matches at least and at most, -1 for any number.
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

// prefix returns what every match of t begins with, shortened when it is long, and whether that is all of it.
func (t *term) prefix() (prefix string, whole bool) {
	const limit = 32
	switch t.kind {
	case termSet:
		// What U+FFFD stands for may be spelled otherwise.
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

// firsts returns what a match of t begins with. all is false when a match may be empty, so that it says nothing.
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

// split adds a choice between what follows and a place that is not known yet; with lazy the other way round.
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

// setOf returns an instruction for a character of the set that t is.
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

// write adds the program of t; with back it reads the text backwards.
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
	if most == 0 { // what takes no room holds once or any number of times
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

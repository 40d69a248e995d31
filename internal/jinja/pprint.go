package jinja

// filterPprint is Python's pprint.pformat: repr with the keys of dicts sorted,
// broken into lines of 80 characters.
func filterPprint(in *interp, v Value, a *callArgs) (Value, error) {
	if _, err := a.bind(); err != nil {
		return nil, err
	}
	p := &prettyPrinter{in: in, b: in.builder()}
	if err := p.write(p.sorted(v, 0), 0, 0, 0); err != nil {
		return nil, err
	}
	return p.b.done(), nil
}

const prettyWidth = 80

type prettyPrinter struct {
	in *interp
	b  *builder
}

// sorted returns v with the entries of every dict in it sorted by key; keys
// without an order are sorted by their types.
func (p *prettyPrinter) sorted(v Value, depth int) Value {
	nesting(depth)
	p.in.step(1)
	each := func(items []Value) []Value {
		p.in.items(len(items))
		out := make([]Value, len(items))
		for i, item := range items {
			out[i] = p.sorted(item, depth+1)
		}
		return out
	}
	switch v := v.(type) {
	case *List:
		return NewList(each(v.items)...)
	case *Tuple:
		return newTuple(each(v.items)...)
	case *Dict:
		p.in.items(3 * v.Len())
		out := &Dict{entries: append([]entry(nil), v.entries...)}
		for i := range out.entries {
			out.entries[i].value = p.sorted(out.entries[i].value, depth+1)
		}
		before := func(a, b entry) bool {
			if less, err := p.in.order("<", a.key, b.key); err == nil {
				return less
			}
			p.in.step(stepsPerError)
			return a.key.typeName() < b.key.typeName()
		}
		// No comparison fails, so that sorting does not.
		_ = sortStable(p.in, out.entries, func(a, b entry) (bool, error) { return before(a, b), nil })
		return out
	}
	return v
}

// write appends v, which begins at column indent and is followed by allowance
// characters on its last line.
func (p *prettyPrinter) write(v Value, indent, allowance, level int) error {
	nesting(level)
	rep, err := p.in.repr(v)
	if err != nil {
		return err
	}
	if p.in.runeCount(rep.s) <= prettyWidth-indent-allowance {
		p.b.str(rep)
		return nil
	}
	switch v := v.(type) {
	case *List:
		return p.writeItems("[", v.items, "]", indent, allowance, level+1)
	case *Tuple:
		end := ")"
		if len(v.items) == 1 {
			end = ",)"
		}
		return p.writeItems("(", v.items, end, indent, allowance, level+1)
	case *Dict:
		return p.writeDict(v, indent, allowance, level+1)
	case *Str:
		if !v.safe && v.s != "" {
			p.writeStr(v, rep, indent, allowance, level+1)
			return nil
		}
	}
	p.b.str(rep)
	return nil
}

func (p *prettyPrinter) newline(indent int) {
	p.b.write("\n", false)
	p.b.repeat(" ", indent, false)
}

func (p *prettyPrinter) writeItems(open string, items []Value, end string, indent, allowance, level int) error {
	p.b.write(open, false)
	for i, item := range items {
		after := 1
		if i > 0 {
			p.b.write(",", false)
			p.newline(indent + 1)
		}
		if i == len(items)-1 {
			after = allowance + len(end)
		}
		if err := p.write(item, indent+1, after, level); err != nil {
			return err
		}
	}
	p.b.write(end, false)
	return nil
}

func (p *prettyPrinter) writeDict(d *Dict, indent, allowance, level int) error {
	p.b.write("{", false)
	for i, e := range d.entries {
		after := 1
		if i > 0 {
			p.b.write(",", false)
			p.newline(indent + 1)
		}
		if i == len(d.entries)-1 {
			after = allowance + 1
		}
		key, err := p.in.repr(e.key)
		if err != nil {
			return err
		}
		p.b.str(key)
		p.b.write(": ", false)
		if err := p.write(e.value, indent+1+p.in.runeCount(key.s)+2, after, level); err != nil {
			return err
		}
	}
	p.b.write("}", false)
	return nil
}

// writeStr breaks a long string into several literals, at its line ends and
// between words.
func (p *prettyPrinter) writeStr(s, whole *Str, indent, allowance, level int) {
	if level == 1 {
		indent++
		allowance++
	}
	quoted := func(part *Str) *Str {
		b := p.in.builder()
		writeStrRepr(b, part)
		return b.done()
	}
	var chunks []*Str
	width := prettyWidth - indent
	lines := p.in.splitLines(s, true)
	for i, line := range lines {
		last := i == len(lines)-1
		room := width
		if last {
			room -= allowance
		}
		rep := quoted(line)
		if p.in.runeCount(rep.s) <= room {
			chunks = append(chunks, rep)
			continue
		}
		from, to := 0, 0 // the words of the current literal
		for to < len(line.s) {
			end := to + p.wordAndSpace(line.s[to:])
			room = width
			if last && end == len(line.s) {
				room -= allowance
			}
			if p.in.runeCount(quoted(line.slice(from, end)).s) > room {
				if to > from {
					chunks = append(chunks, quoted(line.slice(from, to)))
				}
				from = to
			}
			to = end
		}
		if to > from {
			chunks = append(chunks, quoted(line.slice(from, to)))
		}
	}
	if len(chunks) == 1 {
		p.b.str(whole)
		return
	}
	if level == 1 {
		p.b.write("(", false)
	}
	for i, c := range chunks {
		if i > 0 {
			p.newline(indent)
		}
		p.b.str(c)
	}
	if level == 1 {
		p.b.write(")", false)
	}
}

// wordAndSpace is the length of a word and the white space behind it.
func (p *prettyPrinter) wordAndSpace(s string) int {
	i := p.in.indexFunc(s, isSpace)
	if i < 0 {
		return len(s)
	}
	return i + p.in.skip(s[i:], isSpace)
}

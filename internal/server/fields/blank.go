package fields

import "strings"

// Blank removes a field from the JSON of a request by overwriting it with blanks. The path is that
// of an [Error], such as "messages[0].name". Blank reports whether it found the field; it does not
// find fields with long names, which errors truncate.
func Blank(data []byte, path string) bool {
	from := blanks(data, 0)
	for {
		if m, ok := memberAt(data, from, strings.TrimPrefix(path, ".")); ok { // the name may have dots
			m.blank(data)
			return true
		}
		name, rest, element := step(path)
		if element { // "[3].rest"
			at, ok := elementAt(data, from, name)
			if !ok {
				return false
			}
			from, path = at, rest
			continue
		}
		m, ok := memberAt(data, from, name)
		if !ok {
			return false
		}
		from, path = m.value, rest
	}
}

// step returns the first part of a path and the rest. element says that the part is an index of a
// list.
func step(path string) (name, rest string, element bool) {
	path = strings.TrimPrefix(path, ".")
	if inside, ok := strings.CutPrefix(path, "["); ok {
		name, rest, _ = strings.Cut(inside, "]")
		return name, rest, true
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	return path[:end], path[end:], false
}

// A member has the offsets of a member of an object: of its name, its value, the end of its value,
// and the commas before and behind it, or -1.
type member struct{ name, value, end, before, behind int }

// memberAt returns the member with the given name of the object at i.
func memberAt(data []byte, i int, name string) (m member, ok bool) {
	if !is(data, i, '{') {
		return m, false
	}
	m.before = -1
	for i = blanks(data, i+1); is(data, i, '"'); i = blanks(data, m.behind+1) {
		end, err := stringEnd(data, i)
		if err != nil {
			return m, false
		}
		text := ""
		if ReadText(data[i:end], &text) != nil {
			return m, false
		}
		m.name = i
		if m.value, err = nameEnd(data, i); err != nil {
			return m, false
		}
		if m.end, err = valueEnd(data, m.value); err != nil {
			return m, false
		}
		if m.behind = blanks(data, m.end); !is(data, m.behind, ',') {
			m.behind = -1
		}
		if text == name {
			return m, true
		}
		if m.behind < 0 {
			return m, false
		}
		m.before = m.behind
	}
	return m, false
}

// blank overwrites a member and one comma with blanks.
func (m *member) blank(data []byte) {
	for i := m.name; i < m.end; i++ {
		data[i] = ' '
	}
	switch {
	case m.behind >= 0:
		data[m.behind] = ' '
	case m.before >= 0:
		data[m.before] = ' '
	}
}

// elementAt returns the offset of the element with the given index of the list at i.
func elementAt(data []byte, i int, number string) (at int, ok bool) {
	n, err := ReadWhole([]byte(number), 0, maxElements)
	if err != nil || !is(data, i, '[') {
		return 0, false
	}
	for i = blanks(data, i+1); ; n-- {
		end, err := valueEnd(data, i)
		if err != nil {
			return 0, false
		}
		if n == 0 {
			return i, true
		}
		if i = blanks(data, end); !is(data, i, ',') {
			return 0, false
		}
		i = blanks(data, i+1)
	}
}

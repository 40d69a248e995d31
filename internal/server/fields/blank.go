package fields

import "strings"

// Blank takes a field out of the JSON of a request, by writing blanks over it. The path is
// that of an [Error]: "messages[0].name". It reports whether there was one: paths of long
// names, which errors cut, name none.
func Blank(data []byte, path string) bool {
	from := blanks(data, 0)
	for {
		if m, ok := memberAt(data, from, strings.TrimPrefix(path, ".")); ok { // whose name may have dots
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

// step is the first part of a path, and what follows it.
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

// A member is where one of an object lies: its name, its value, and the comma before or
// behind it, -1 for none.
type member struct{ name, value, end, before, behind int }

// memberAt is the member of that name of the object at i.
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

// blank writes blanks over a member and one comma.
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

// elementAt is where the element of that number lies of the list at i.
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

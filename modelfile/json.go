package modelfile

// A jsonObject is an object before it is flattened: a later member of the same
// name replaces the value of an earlier one, in its place.
type jsonObject struct {
	keys   []string
	values map[string]any
}

// ParseJSON reads a JSON object and flattens it as [Meta] tells; name is the file
// that errors name. It reads what Python's json module reads and writes: NaN,
// Infinity and -Infinity are numbers, and of two members of the same name the
// last one counts. Errors are of type [*FormatError]: text that is no JSON
// object, is not UTF-8, is nested more than 64 deep, or holds a number that no
// float64 can.
func ParseJSON(name string, data []byte) (*Meta, error) {
	s := &jsonScanner{file: name, data: data}
	if s.peek() != '{' {
		return nil, s.errorf(s.pos, "%s instead of a JSON object", s.found())
	}
	root, err := s.value()
	if err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, err
	}
	// The path of a member repeats the names of the objects around it. In a real
	// file that makes the keys a few times longer than the text; a file made of
	// long names and many members could make them larger than memory.
	f := &flattener{scanner: s, budget: 16*int64(len(data)) + 1<<16}
	m := new(Meta)
	if err := f.flatten(m, "", root.(*jsonObject)); err != nil {
		return nil, err
	}
	return m, nil
}

// value reads any value: *jsonObject, []any, or what scalar returns.
func (s *jsonScanner) value() (any, error) {
	switch s.peek() {
	case '{':
		o := &jsonObject{values: make(map[string]any)}
		err := s.object(func(key string, _ int) error {
			v, err := s.value()
			if err != nil {
				return err
			}
			if _, ok := o.values[key]; !ok {
				o.keys = append(o.keys, key)
			}
			o.values[key] = v
			return nil
		})
		return o, err
	case '[':
		elements := []any{}
		err := s.array(func() error {
			v, err := s.value()
			elements = append(elements, v)
			return err
		})
		return elements, err
	}
	return s.scalar()
}

// A flattener turns objects into a Meta and counts the bytes of its keys.
type flattener struct {
	scanner *jsonScanner
	budget  int64
}

func (f *flattener) flatten(m *Meta, prefix string, o *jsonObject) error {
	for _, name := range o.keys {
		if f.budget -= int64(len(prefix) + len(name)); f.budget < 0 {
			return f.scanner.errorf(0, "the paths of its members are out of proportion to its %d bytes", len(f.scanner.data))
		}
		key := prefix + name
		value := o.values[name]
		if inner, ok := value.(*jsonObject); ok && len(inner.keys) > 0 {
			if err := f.flatten(m, key+".", inner); err != nil {
				return err
			}
			continue
		}
		value, err := f.convert(value)
		if err != nil {
			return err
		}
		if !m.set(key, value) {
			// Two paths read the same when a name holds a dot itself.
			m.values[key] = value
		}
	}
	return nil
}

// convert gives a value the type in which Meta holds it.
func (f *flattener) convert(value any) (any, error) {
	switch v := value.(type) {
	case *jsonObject:
		m := new(Meta)
		err := f.flatten(m, "", v)
		return m, err
	case []any:
		if len(v) == 0 {
			return v, nil
		}
		switch v[0].(type) {
		case int64:
			if typed, ok := sameType[int64](v); ok {
				return typed, nil
			}
		case float64:
			if typed, ok := sameType[float64](v); ok {
				return typed, nil
			}
		case bool:
			if typed, ok := sameType[bool](v); ok {
				return typed, nil
			}
		case string:
			if typed, ok := sameType[string](v); ok {
				return typed, nil
			}
		}
		for i := range v {
			var err error
			if v[i], err = f.convert(v[i]); err != nil {
				return nil, err
			}
		}
		return v, nil
	}
	return value, nil
}

// sameType returns the elements as a slice of T when all of them are of type T.
func sameType[T any](elements []any) ([]T, bool) {
	for _, e := range elements {
		if _, ok := e.(T); !ok {
			return nil, false
		}
	}
	typed := make([]T, len(elements))
	for i, e := range elements {
		typed[i] = e.(T)
	}
	return typed, true
}

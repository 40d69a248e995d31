package jsonschema

// enumeration reads enum or const. If a schema has both, the second becomes a schema of its own.
func (rd *reader) enumeration(name string, v *value) error {
	values := []*value{v}
	if name == "enum" {
		if err := rd.want(name, v, arrayKind); err != nil {
			return err
		}
		values = v.items
	}
	e := &enumeration{}
	for _, item := range values {
		if err := rd.enumerate(e, item, rd.at(name)); err != nil {
			return err
		}
	}
	if rd.s.enum != nil {
		other := rd.synthetic(rd.at(name))
		other.enum = e
		rd.s.allOf = append(rd.s.allOf, other)
		return nil
	}
	rd.s.enum = e
	return nil
}

// synthetic returns a new schema that is not in the source text.
func (l *loader) synthetic(path string) *schema {
	v := &value{kind: boolKind, truth: true}
	s := newSchema(len(l.schemas), path)
	l.schemas[v] = s
	return s
}

// enumerate adds a value to e.
func (rd *reader) enumerate(e *enumeration, v *value, path string) error {
	switch v.kind {
	case nullKind:
		e.null = true
	case boolKind:
		e.yes = e.yes || v.truth
		e.no = e.no || !v.truth
	case numberKind:
		d, err := parseDecimal(v.text)
		if err != nil {
			return &UnsupportedError{"enum", path, err.Error()}
		}
		e.numbers = append(e.numbers, d)
	case stringKind:
		e.strings = append(e.strings, v.text)
	case arrayKind:
		s, err := rd.onlyArray(v, path)
		e.arrays = append(e.arrays, s)
		return err
	case objectKind:
		s, err := rd.onlyObject(v, path)
		e.objects = append(e.objects, s)
		return err
	}
	return nil
}

// only returns a schema that only v satisfies.
func (rd *reader) only(v *value, path string) (*schema, error) {
	s := rd.synthetic(path)
	s.enum = &enumeration{}
	return s, rd.enumerate(s.enum, v, path)
}

func (rd *reader) onlyArray(v *value, path string) (*schema, error) {
	s := rd.synthetic(path)
	s.types = arrayType
	n := len(v.items)
	s.minItems, s.maxItems = &n, &n
	s.items = &itemRule{}
	for _, item := range v.items {
		one, err := rd.only(item, path)
		if err != nil {
			return nil, err
		}
		s.items.prefix = append(s.items.prefix, one)
	}
	return s, nil
}

func (rd *reader) onlyObject(v *value, path string) (*schema, error) {
	s := rd.synthetic(path)
	s.types = objectType
	never := rd.synthetic(path)
	never.never = true
	s.properties = &propertyRule{other: never}
	for _, m := range v.members {
		one, err := rd.only(m.value, path)
		if err != nil {
			return nil, err
		}
		s.properties.named = append(s.properties.named, property{m.name, one})
		s.required = append(s.required, m.name)
	}
	return s, nil
}

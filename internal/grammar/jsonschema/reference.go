package jsonschema

// reference reads $ref, $dynamicRef or $recursiveRef.
func (rd *reader) reference(name string, v *value) error {
	text, err := rd.text(name, v)
	if err != nil {
		return err
	}
	if name == "$recursiveRef" && text != "#" {
		return rd.wrong(name, "it is not #")
	}
	to, err := rd.find(rd.r, name, text, rd.at(name))
	if err != nil {
		return err
	}
	target := rd.places[to].resource
	switch {
	case name == "$recursiveRef" && target.recursive && rd.several(func(r *resource) bool { return r.recursive }),
		name == "$dynamicRef" && target.dynamicAt(to) != "" && rd.several(func(r *resource) bool { return r.dynamic[target.dynamicAt(to)] }):
		return rd.refuse(name, "several schemas have its anchor, and which one it means depends on the way that led to it")
	}
	s, err := rd.schema(to)
	if err != nil {
		return err
	}
	if rd.s.ref != nil {
		// The schema has two reference keywords: add the second to allOf.
		rd.s.allOf = append(rd.s.allOf, s)
		return nil
	}
	rd.s.ref = s
	return nil
}

// dynamicAt returns the name of v's dynamic anchor, or "".
func (r *resource) dynamicAt(v *value) string {
	if a := v.get("$dynamicAnchor"); a != nil && a.kind == stringKind {
		return a.text
	}
	return ""
}

// several reports whether has is true for more than one resource.
func (l *loader) several(has func(*resource) bool) bool {
	seen := map[*resource]bool{}
	for _, r := range l.resources {
		if has(r) {
			seen[r] = true
		}
	}
	return len(seen) > 1
}

package jsonschema

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// maxSchemas bounds the schemas in one text.
const maxSchemas = 200_000

// A resource is a schema with a URI of its own.
type resource struct {
	uri     string // absolute, or "" at the root
	root    *value
	path    string
	draft   draft
	guessed bool // no $schema; forms of other drafts are read too
	anchors map[string]anchor
	// dynamic holds the names of $dynamicAnchor. recursive says that $recursiveAnchor is true.
	dynamic   map[string]bool
	recursive bool
	twice     bool // another resource has the same URI
}

type anchor struct {
	value *value
	path  string
}

// A place is the position of a schema in the text.
type place struct {
	resource *resource
	path     string
}

// A loader finds the schemas of a text and resolves references between them.
type loader struct {
	resources map[string]*resource
	places    map[*value]place
	schemas   map[*value]*schema
	pending   []*value // schemas whose keywords are not read yet
	count     int
}

// load parses the text of a schema.
func load(text []byte) (*loader, *schema, error) {
	v, err := parseJSON(text)
	if err != nil {
		return nil, nil, err
	}
	l := &loader{resources: map[string]*resource{}, places: map[*value]place{}, schemas: map[*value]*schema{}}
	root := &resource{root: v, path: "#", draft: draft2020, guessed: true, anchors: map[string]anchor{}, dynamic: map[string]bool{}}
	if err := l.dialect(root, v); err != nil {
		return nil, nil, err
	}
	l.resources[""] = root
	if err := l.survey(v, root, "#"); err != nil {
		return nil, nil, err
	}
	s, err := l.schema(v)
	for err == nil && len(l.pending) > 0 {
		next := l.pending[0]
		l.pending = l.pending[1:]
		err = l.read(next)
	}
	return l, s, err
}

// dialect reads $schema.
func (l *loader) dialect(r *resource, v *value) error {
	s := v.get("$schema")
	if s == nil {
		return nil
	}
	if s.kind != stringKind {
		return &SchemaError{r.path + "/$schema", "it is not a string"}
	}
	d, ok := draftOf(s.text)
	if !ok {
		return &UnsupportedError{"$schema", r.path + "/$schema", fmt.Sprintf("%q is not draft 4, 6, 7, 2019-09 or 2020-12", clip(s.text))}
	}
	r.draft, r.guessed = d, false
	return nil
}

// survey finds the resources and anchors in v, which is at the position of a schema.
func (l *loader) survey(v *value, r *resource, path string) error {
	if v.kind != objectKind {
		l.places[v] = place{r, path}
		return nil
	}
	if l.count++; l.count > maxSchemas {
		return fmt.Errorf("%w: it holds more than %d schemas", ErrTooLarge, maxSchemas)
	}
	r, err := l.identify(v, r, path)
	if err != nil {
		return err
	}
	l.places[v] = place{r, path}
	for _, m := range v.members {
		shape, known := keywords[m.name]
		if !known {
			continue
		}
		at := path + "/" + escapePointer(m.name)
		if (shape == schemaShape || shape == eitherShape) && m.value.kind == objectKind {
			err = l.survey(m.value, r, at)
		}
		if (shape == listShape || shape == eitherShape) && m.value.kind == arrayKind {
			for i, item := range m.value.items {
				if err == nil {
					err = l.survey(item, r, at+"/"+strconv.Itoa(i))
				}
			}
		}
		if (shape == mapShape || shape == mixedShape) && m.value.kind == objectKind {
			for _, d := range m.value.members {
				if err == nil {
					err = l.survey(d.value, r, at+"/"+escapePointer(d.name))
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// identify reads $id and the anchors of a schema in r. It returns the resource to which the schema
// belongs.
func (l *loader) identify(v *value, r *resource, path string) (*resource, error) {
	d := r.draft
	if v.get("$schema") != nil && v.get("$id") != nil {
		// An embedded resource may use another draft.
		probe := *r
		probe.path = path
		if err := l.dialect(&probe, v); err != nil {
			return nil, err
		}
		d = probe.draft
	}
	if d.refAlone() && v.get("$ref") != nil {
		return r, nil
	}
	if id := v.get(d.idKey()); id != nil && id.kind == stringKind {
		whole, fragment, _ := strings.Cut(id.text, "#")
		if whole != "" || id.text == "" {
			uri, err := resolve(r.uri, whole)
			if err != nil {
				return nil, &SchemaError{path + "/" + d.idKey(), err.Error()}
			}
			own := &resource{uri: uri, root: v, path: path, draft: d, guessed: r.guessed, anchors: map[string]anchor{}, dynamic: map[string]bool{}}
			if path == "#" {
				own.guessed = r.guessed
				l.resources[""] = own
			}
			if old, ok := l.resources[uri]; ok && uri != "" && old.root != v {
				old.twice = true
			} else {
				l.resources[uri] = own
			}
			r = own
		}
		if fragment != "" && d <= draft7 {
			r.anchors[fragment] = anchor{v, path}
		}
	}
	if d >= draft2019 || r.guessed {
		for _, key := range []string{"$anchor", "$dynamicAnchor"} {
			if a := v.get(key); a != nil && a.kind == stringKind {
				r.anchors[a.text] = anchor{v, path}
				if key == "$dynamicAnchor" {
					r.dynamic[a.text] = true
				}
			}
		}
		if a := v.get("$recursiveAnchor"); a != nil && a.truth && v == r.root {
			r.recursive = true
		}
	}
	return r, nil
}

// resolve returns a reference as an absolute URI.
func resolve(base, reference string) (string, error) {
	b, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("%q is no URI", clip(base))
	}
	r, err := url.Parse(reference)
	if err != nil {
		return "", fmt.Errorf("%q is no URI", clip(reference))
	}
	if base == "" {
		return r.String(), nil
	}
	return b.ResolveReference(r).String(), nil
}

var (
	pointerEscaper   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")
)

func escapePointer(name string) string { return pointerEscaper.Replace(name) }

// find returns the value to which a reference in r points.
func (l *loader) find(r *resource, keyword, reference, path string) (*value, error) {
	whole, fragment, _ := strings.Cut(reference, "#")
	uri, err := resolve(r.uri, whole)
	if err != nil {
		return nil, &SchemaError{path, err.Error()}
	}
	to, ok := l.resources[uri]
	if whole == "" {
		to, ok = r, true
	} else if ok && to.twice {
		return nil, &SchemaError{path, fmt.Sprintf("two schemas have the URI %q", clip(uri))}
	}
	if !ok {
		return nil, &UnsupportedError{keyword, path, fmt.Sprintf("%q is not in the schema: put what it means under $defs", clip(reference))}
	}
	if fragment, err = url.PathUnescape(fragment); err != nil {
		return nil, &SchemaError{path, fmt.Sprintf("%q is no URI", clip(reference))}
	}
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		a, ok := to.anchors[fragment]
		if !ok {
			return nil, &SchemaError{path, fmt.Sprintf("%q means nothing in the schema", clip(reference))}
		}
		return a.value, nil
	}
	return l.walk(to, fragment, reference, path)
}

// walk follows a JSON pointer.
func (l *loader) walk(r *resource, pointer, reference, path string) (*value, error) {
	v, at := r.root, r.path
	for _, step := range strings.Split(pointer, "/")[1:] {
		name := pointerUnescaper.Replace(step)
		var next *value
		switch v.kind {
		case objectKind:
			next = v.get(name)
		case arrayKind:
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v.items) && strconv.Itoa(i) == name {
				next = v.items[i]
			}
		}
		if next == nil {
			return nil, &SchemaError{path, fmt.Sprintf("%q means nothing in the schema: there is no %q", clip(reference), clip(name))}
		}
		v, at = next, at+"/"+escapePointer(name)
		if p, ok := l.places[v]; ok {
			r = p.resource
		}
	}
	if _, ok := l.places[v]; !ok {
		// No keyword makes this value a schema, but the reference does.
		if err := l.survey(v, r, at); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// schema returns the schema of v. Its keywords are read later.
func (l *loader) schema(v *value) (*schema, error) {
	if s, ok := l.schemas[v]; ok {
		return s, nil
	}
	p := l.places[v]
	if v.kind != objectKind && v.kind != boolKind {
		return nil, &SchemaError{p.path, fmt.Sprintf("a schema is an object or a boolean, not a %s", v.kind)}
	}
	s := newSchema(len(l.schemas), p.path)
	l.schemas[v] = s
	l.pending = append(l.pending, v)
	return s, nil
}

func newSchema(id int, path string) *schema {
	return &schema{id: id, path: path, types: allTypes}
}

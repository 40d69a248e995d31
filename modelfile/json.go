package modelfile

import (
	"bytes"
	"cmp"
	"slices"
)

// ParseJSON parses a JSON object and flattens it as described at [Meta]. name is the file name for
// errors. It accepts what Python's json module reads and writes: NaN, Infinity and -Infinity are
// numbers, and the last of several members of the same name counts. Errors have type
// [*FormatError]: the text is not a JSON object, is not UTF-8, is nested more than 64 deep, holds a
// number beyond the range of float64, or would take more memory than its length justifies.
func ParseJSON(name string, data []byte) (*Meta, error) {
	b := &jsonBuilder{jsonScanner: &jsonScanner{
		file:   name,
		data:   data,
		memory: jsonAllowance(data),
	}}
	if b.peek() != '{' {
		return nil, b.errorf(b.pos, "%s instead of a JSON object", b.found())
	}
	root, err := b.object()
	if err != nil {
		return nil, err
	}
	if err := b.end(); err != nil {
		return nil, err
	}
	if root.leaves == 0 {
		return new(Meta), nil
	}
	return b.meta(root, 0)
}

// Limits on the memory allocated for a text: jsonFixed bytes, which no file of a hub comes near,
// plus jsonPerByte for each byte of text. An empty object takes three bytes of text, and ten times
// as many in memory.
const (
	jsonFixed   = 32 << 20
	jsonPerByte = 4
)

func jsonAllowance(text []byte) *allowance {
	return &allowance{most: jsonFixed + jsonPerByte*int64(len(text))}
}

// A jsonObject is an object before it is flattened. Its members have distinct names.
type jsonObject struct {
	members []jsonMember
	leaves  int // number of keys of the resulting Meta
}

// A jsonMember is a member of an object. Its value is a value of a Meta, or a *jsonObject.
type jsonMember struct {
	name  []byte
	value any
	at    int // position of the name
}

// The sizes in bytes of the parts of a Meta, for charge. A map has up to 2.3 slots for each of its
// values, and at least eight.
const (
	anyBytes    = 16
	memberBytes = 48
	objectBytes = 32
	stringBytes = 16 // besides its text
	slotBytes   = 16 + 96
	metaBytes   = 32 + 48 + 8*33
)

// Empty values are shared.
var (
	emptyObject     = new(jsonObject)
	emptyMeta       = new(Meta)
	emptyArray  any = []any{}
)

// A jsonBuilder builds values from a text, and charges for all that it allocates.
type jsonBuilder struct {
	*jsonScanner

	// Stacks with the members and elements of all incomplete objects and arrays, innermost last.
	members  []jsonMember
	elements []any
}

// value reads any value: a *jsonObject, or a value of a Meta.
func (b *jsonBuilder) value() (any, error) {
	switch b.peek() {
	case '{':
		return b.object()
	case '[':
		return b.array()
	case '"':
		at := b.pos
		text, escapes, err := b.quoted()
		if err != nil {
			return nil, err
		}
		if err := b.chargeText(at, text, escapes); err != nil {
			return nil, err
		}
		if err := b.charge(at, stringBytes+textBytes(len(text))); err != nil {
			return nil, err
		}
		if escapes {
			text = unescape(text)
		}
		return string(text), nil
	}
	if err := b.charge(b.pos, 8); err != nil {
		return nil, err
	}
	return b.scalar()
}

// chargeText charges for removing the escapes from a string.
func (b *jsonBuilder) chargeText(at int, text []byte, escapes bool) error {
	if !escapes {
		return nil
	}
	return b.charge(at, textBytes(len(text)))
}

func (b *jsonBuilder) object() (*jsonObject, error) {
	start, base := b.pos, len(b.members)
	more, err := b.begin('{')
	for more {
		var m jsonMember
		b.peek()
		m.at = b.pos
		name, escapes, err := b.quoted()
		if err != nil {
			return nil, err
		}
		if m.name = name; escapes {
			if err := b.chargeText(m.at, name, true); err != nil {
				return nil, err
			}
			m.name = unescape(name)
		}
		if err := b.expect(':', "after a key"); err != nil {
			return nil, err
		}
		if m.value, err = b.value(); err != nil {
			return nil, err
		}
		if b.members, err = push(b.jsonScanner, b.members, m, memberBytes); err != nil {
			return nil, err
		}
		if more, err = b.next('{'); err != nil {
			return nil, err
		}
	}
	if err != nil || len(b.members) == base {
		return emptyObject, err
	}
	members, err := b.lastOfEach(b.members[base:])
	if err != nil {
		return nil, err
	}
	if err := b.charge(start, objectBytes+memberBytes*int64(len(members))); err != nil {
		return nil, err
	}
	o := &jsonObject{members: slices.Clone(members)}
	for _, m := range o.members {
		if inner, ok := m.value.(*jsonObject); ok && inner.leaves > 0 {
			o.leaves += inner.leaves
		} else {
			o.leaves++
		}
	}
	b.members = b.members[:base]
	return o, nil
}

// push appends to a stack, and charges for its growth.
func push[T any](s *jsonScanner, stack []T, v T, size int) ([]T, error) {
	if len(stack) == cap(stack) {
		n := max(16, 2*cap(stack))
		if err := s.charge(s.pos, int64(n)*int64(size)); err != nil {
			return stack, err
		}
		stack = append(make([]T, 0, n), stack...)
	}
	return append(stack, v), nil
}

// lastOfEach removes duplicate members: each name keeps the position of its first member and the
// value of its last.
func (b *jsonBuilder) lastOfEach(members []jsonMember) ([]jsonMember, error) {
	const removed = -1 // replaces at
	const few = 8
	if len(members) <= few {
		for i := range members {
			for j := range i {
				if bytes.Equal(members[i].name, members[j].name) && members[j].at != removed {
					members[j].value, members[i].at = members[i].value, removed
				}
			}
		}
	} else {
		if err := b.charge(members[0].at, 8*int64(len(members))); err != nil {
			return nil, err
		}
		order := make([]int, len(members))
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(i, j int) int {
			return cmp.Or(bytes.Compare(members[i].name, members[j].name), cmp.Compare(i, j))
		})
		first := order[0]
		for _, i := range order[1:] {
			if bytes.Equal(members[i].name, members[first].name) {
				members[first].value, members[i].at = members[i].value, removed
			} else {
				first = i
			}
		}
	}
	return slices.DeleteFunc(members, func(m jsonMember) bool { return m.at == removed }), nil
}

// array reads an array as a value of a Meta.
func (b *jsonBuilder) array() (any, error) {
	start, base := b.pos, len(b.elements)
	more, err := b.begin('[')
	for more {
		at := b.pos
		v, err := b.value()
		if err != nil {
			return nil, err
		}
		if o, ok := v.(*jsonObject); ok {
			if v, err = b.meta(o, at); err != nil {
				return nil, err
			}
		}
		if b.elements, err = push(b.jsonScanner, b.elements, v, anyBytes); err != nil {
			return nil, err
		}
		if more, err = b.next('['); err != nil {
			return nil, err
		}
	}
	if err != nil || len(b.elements) == base {
		return emptyArray, err
	}
	elements := b.elements[base:]
	b.elements = b.elements[:base]
	// The slice, whose elements have at most anyBytes, and its header.
	if err := b.charge(start, 32+anyBytes*int64(len(elements))); err != nil {
		return nil, err
	}
	switch elements[0].(type) {
	case int64:
		if typed, ok := sameType[int64](elements); ok {
			return typed, nil
		}
	case float64:
		if typed, ok := sameType[float64](elements); ok {
			return typed, nil
		}
	case bool:
		if typed, ok := sameType[bool](elements); ok {
			return typed, nil
		}
	case string:
		if typed, ok := sameType[string](elements); ok {
			return typed, nil
		}
	}
	return slices.Clone(elements), nil
}

// sameType returns the elements as a []T if all of them have type T.
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

// meta converts the object at position at to metadata.
func (b *jsonBuilder) meta(o *jsonObject, at int) (*Meta, error) {
	if o.leaves == 0 {
		return emptyMeta, nil
	}
	if err := b.charge(at, metaBytes+slotBytes*int64(o.leaves)); err != nil {
		return nil, err
	}
	m := &Meta{keys: make([]string, 0, o.leaves), values: make(map[string]any, o.leaves)}
	return m, b.flatten(m, "", o)
}

// flatten adds the members of an object to m. A member's key repeats the names of the enclosing
// objects. A file of long names and many members could make the keys larger than memory, so flatten
// charges for them.
func (b *jsonBuilder) flatten(m *Meta, prefix string, o *jsonObject) error {
	for _, member := range o.members {
		n := len(prefix) + len(member.name) + 1
		if err := b.charge(member.at, textBytes(n)); err != nil {
			return err
		}
		value := member.value
		if inner, ok := value.(*jsonObject); ok {
			if inner.leaves > 0 {
				if err := b.flatten(m, prefix+string(member.name)+".", inner); err != nil {
					return err
				}
				continue
			}
			value = emptyMeta
		}
		key := prefix + string(member.name)
		if !m.set(key, value) {
			// Two paths are the same if a name contains a dot.
			m.values[key] = value
		}
	}
	return nil
}

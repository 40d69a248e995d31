package modelfile

import (
	"bytes"
	"cmp"
	"slices"
)

// ParseJSON reads a JSON object and flattens it as [Meta] tells; name is the file
// that errors name. It reads what Python's json module reads and writes: NaN,
// Infinity and -Infinity are numbers, and of two members of the same name the
// last one counts. Errors are of type [*FormatError]: text that is no JSON
// object, is not UTF-8, is nested more than 64 deep, holds a number that no
// float64 can, or would take more memory than its length justifies.
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

// What may be allocated for what a text holds: a fixed amount, which no file of a
// hub comes near, and jsonPerByte for each byte of the text. An empty object takes
// three bytes of text, and to know that it is there takes ten times as many.
const (
	jsonFixed   = 32 << 20
	jsonPerByte = 4
)

func jsonAllowance(text []byte) *allowance {
	return &allowance{most: jsonFixed + jsonPerByte*int64(len(text))}
}

// A jsonObject is an object before it is flattened. No two members have the same
// name.
type jsonObject struct {
	members []jsonMember
	leaves  int // keys of the Meta that it becomes
}

// A jsonMember is a member of an object. Its value is what Meta holds, or a
// *jsonObject.
type jsonMember struct {
	name  []byte
	value any
	at    int // where the name stands
}

// Bytes that the parts of a Meta take, for charge. A map has up to 2.3 places for
// each of its values, and at least eight.
const (
	anyBytes    = 16
	memberBytes = 48
	objectBytes = 32
	stringBytes = 16 // besides its text
	slotBytes   = 16 + 96
	metaBytes   = 32 + 48 + 8*33
)

// What has no parts is the same value wherever it stands.
var (
	emptyObject     = new(jsonObject)
	emptyMeta       = new(Meta)
	emptyArray  any = []any{}
)

// A jsonBuilder makes values of a text, and charges for all that it allocates.
type jsonBuilder struct {
	*jsonScanner

	// The members and elements of all objects and arrays that are not complete,
	// innermost last.
	members  []jsonMember
	elements []any
}

// value reads any value: *jsonObject, or what Meta holds.
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

// chargeText charges for taking the escapes out of a string.
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

// lastOfEach removes members so that of each name one is left: in the place of the
// first with that name, with the value of the last.
func (b *jsonBuilder) lastOfEach(members []jsonMember) ([]jsonMember, error) {
	const removed = -1 // in place of at
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

// array reads an array as Meta holds it.
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
	// The slice, no element of which is larger, and its header.
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

// meta returns an object that stands at a place as metadata.
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

// flatten adds the members of an object to m. The key of a member repeats the names
// of the objects around it, which a file made of long names and many members
// could make larger than memory.
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
			// Two paths read the same when a name holds a dot itself.
			m.values[key] = value
		}
	}
	return nil
}

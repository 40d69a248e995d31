package modelfile

import (
	"fmt"
	"math"
	"strings"
)

// A Meta is the metadata of a file: an ordered, typed, flat list of keys and values.
//
// In GGUF a value has the type that the file gives it: uint8 to int64, float32, float64, bool,
// string, a slice of one of these, or []any for an array of arrays. A string holds the bytes of the
// file and need not be UTF-8, as vocabulary pieces sometimes are not; a key is always UTF-8.
//
// In JSON the key of a member is its path, joined by dots ("rope_parameters.rope_type"). A value is
// an int64 (a number without fraction or exponent), a float64, a bool, a string, nil (null), a
// slice of int64, float64, bool or string if all elements have that type, or else []any. An object
// within an array, or one without members, is a *Meta.
//
// All methods may be called on a nil Meta, which is empty. A Meta is immutable and safe for
// concurrent use. Callers must not modify what its methods return.
type Meta struct {
	keys   []string
	values map[string]any
}

// Keys returns the keys in file order.
func (m *Meta) Keys() []string {
	if m == nil {
		return nil
	}
	return m.keys
}

// Value returns the value of key as stored, and whether there is one. A JSON null is a value: nil,
// true.
func (m *Meta) Value(key string) (any, bool) {
	if m == nil {
		return nil, false
	}
	v, ok := m.values[key]
	return v, ok
}

// String returns the string at key. ok is false if there is none or it has another type.
func (m *Meta) String(key string) (string, bool) { return get(m, key, toString) }

// Bool returns the bool at key. ok is false if there is none or it has another type.
func (m *Meta) Bool(key string) (value, ok bool) { return get(m, key, toBool) }

// Int returns the integer at key, of any width, or a float without a fraction. ok is false if there
// is none, it has another type, or it exceeds an int64.
func (m *Meta) Int(key string) (int64, bool) { return get(m, key, toInt) }

// Float returns the number at key, including integers. ok is false if there is none or it has
// another type.
func (m *Meta) Float(key string) (float64, bool) { return get(m, key, toFloat) }

// Strings returns the array of strings at key. ok is false if there is none or an element has
// another type.
func (m *Meta) Strings(key string) ([]string, bool) { return getAll(m, key, toString) }

// Bools returns the array of bools at key. ok is false if there is none or an element has another
// type.
func (m *Meta) Bools(key string) ([]bool, bool) { return getAll(m, key, toBool) }

// Ints returns the array of integers at key, each read as by [Meta.Int]. ok is false if there is
// none or an element cannot be read.
func (m *Meta) Ints(key string) ([]int64, bool) { return getAll(m, key, toInt) }

// Floats returns the array of numbers at key, each read as by [Meta.Float]. ok is false if there is
// none or an element has another type.
func (m *Meta) Floats(key string) ([]float64, bool) { return getAll(m, key, toFloat) }

// Under returns the members of the JSON object at key, by their own keys. It is empty if there is no
// such object.
func (m *Meta) Under(key string) *Meta {
	under := &Meta{values: map[string]any{}}
	for _, k := range m.Keys() {
		if own, ok := strings.CutPrefix(k, key+"."); ok {
			under.keys = append(under.keys, own)
			under.values[own] = m.values[k]
		}
	}
	return under
}

// Type returns the name of the type of the value at key, for error messages: "uint32", "[]string",
// "null", "object", or "" if there is none.
func (m *Meta) Type(key string) string {
	v, ok := m.Value(key)
	if !ok {
		return ""
	}
	switch v.(type) {
	case nil:
		return "null"
	case *Meta:
		return "object"
	case []any:
		return "[]any"
	}
	return fmt.Sprintf("%T", v)
}

// set adds a value and reports whether the key is new. An existing key keeps its position and
// value.
func (m *Meta) set(key string, value any) bool {
	if _, ok := m.values[key]; ok {
		return false
	}
	if m.values == nil {
		m.values = make(map[string]any)
	}
	m.keys = append(m.keys, key)
	m.values[key] = value
	return true
}

func get[T any](m *Meta, key string, convert func(any) (T, bool)) (T, bool) {
	v, ok := m.Value(key)
	if !ok {
		var zero T
		return zero, false
	}
	return convert(v)
}

func getAll[T any](m *Meta, key string, convert func(any) (T, bool)) ([]T, bool) {
	v, ok := m.Value(key)
	if !ok {
		return nil, false
	}
	switch v := v.(type) {
	case []T:
		return v, true
	case []any:
		return convertAll(v, convert)
	case []string:
		return convertAll(v, convert)
	case []bool:
		return convertAll(v, convert)
	case []uint8:
		return convertAll(v, convert)
	case []int8:
		return convertAll(v, convert)
	case []uint16:
		return convertAll(v, convert)
	case []int16:
		return convertAll(v, convert)
	case []uint32:
		return convertAll(v, convert)
	case []int32:
		return convertAll(v, convert)
	case []uint64:
		return convertAll(v, convert)
	case []int64:
		return convertAll(v, convert)
	case []float32:
		return convertAll(v, convert)
	case []float64:
		return convertAll(v, convert)
	}
	return nil, false
}

func convertAll[From, To any](from []From, convert func(any) (To, bool)) ([]To, bool) {
	if len(from) > 0 {
		// A slice of one type fails at its first element, before anything is allocated for the
		// rest.
		if _, ok := convert(from[0]); !ok {
			return nil, false
		}
	}
	to := make([]To, len(from))
	for i, v := range from {
		var ok bool
		if to[i], ok = convert(v); !ok {
			return nil, false
		}
	}
	return to, true
}

func toString(v any) (string, bool) {
	s, ok := v.(string)
	return s, ok
}

func toBool(v any) (bool, bool) {
	b, ok := v.(bool)
	return b, ok
}

func toInt(v any) (int64, bool) {
	switch v := v.(type) {
	case uint8:
		return int64(v), true
	case int8:
		return int64(v), true
	case uint16:
		return int64(v), true
	case int16:
		return int64(v), true
	case uint32:
		return int64(v), true
	case int32:
		return int64(v), true
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v), true
		}
	case int64:
		return v, true
	case float32:
		return integral(float64(v))
	case float64:
		return integral(v)
	}
	return 0, false
}

// integral returns f as an integer, and whether it is one. For a NaN all comparisons are false.
func integral(f float64) (int64, bool) {
	if f >= -0x1p63 && f < 0x1p63 && f == math.Trunc(f) {
		return int64(f), true
	}
	return 0, false
}

func toFloat(v any) (float64, bool) {
	switch v := v.(type) {
	case uint8:
		return float64(v), true
	case int8:
		return float64(v), true
	case uint16:
		return float64(v), true
	case int16:
		return float64(v), true
	case uint32:
		return float64(v), true
	case int32:
		return float64(v), true
	case uint64:
		return float64(v), true
	case int64:
		return float64(v), true
	case float32:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

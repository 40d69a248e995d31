// Package fields decodes the JSON of requests strictly, by lists of the fields that an object may
// have. An unknown name is an error, and so is a value that a field does not take. Every error
// names its field. The lists describe in words what fields take, so tests can compare the
// documentation with them.
package fields

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// A Field is a field of an object of a request.
type Field[R any] struct {
	Name  string
	Takes string // values that the field takes, such as "a number from 0 to 2"
	// Absent describes the default. If empty, the field is required.
	Absent string
	// Read reads a value other than null into the request. If nil, the field is ignored and may
	// have any value.
	Read func(to *R, value json.RawMessage) error
}

// A List has all fields that an object may have.
type List[R any] []Field[R]

// Decode reads an object into r. at is the path of the object for errors: empty for the request
// itself, and for example "messages[0]" inside it. A field that is null counts as missing, even if
// its name is unknown.
func (f List[R]) Decode(r *R, data []byte, at string) error {
	return Members(data, at, func(name string, value json.RawMessage) error {
		path := join(at, name)
		i := slices.IndexFunc(f, func(f Field[R]) bool { return f.Name == name })
		if i < 0 && IsNull(value) {
			return nil
		}
		if i < 0 {
			return &Error{Param: path, Code: "unknown_parameter", Message: fmt.Sprintf("unknown field %.100q; remove it", path)}
		}
		if f[i].Read == nil || IsNull(value) {
			return nil
		}
		return Named(f[i].Read(r, value), path, f[i].Takes, value)
	})
}

// Without returns f without the named fields.
func (f List[R]) Without(names ...string) List[R] {
	return slices.DeleteFunc(slices.Clone(f), func(f Field[R]) bool { return slices.Contains(names, f.Name) })
}

// Within turns the list of a part of a request into a list of the whole request.
func Within[R, P any](part func(*R) *P, list List[P]) List[R] {
	out := make(List[R], len(list))
	for i, f := range list {
		out[i] = Field[R]{Name: f.Name, Takes: f.Takes, Absent: f.Absent}
		if f.Read != nil {
			out[i].Read = func(r *R, value json.RawMessage) error { return f.Read(part(r), value) }
		}
	}
	return out
}

// New returns a field with the given read function. If read returns [ErrWrong], the request's error
// says what the field takes.
func New[R any](name, takes, absent string, read func(to *R, value json.RawMessage) error) Field[R] {
	return Field[R]{name, takes, absent, read}
}

// Text returns a field that takes a string.
func Text[R any](name, absent string, to func(*R) *string) Field[R] {
	return New(name, "a string", absent, func(r *R, value json.RawMessage) error { return ReadText(value, to(r)) })
}

// Object returns a field that takes a JSON object and stores its JSON text.
func Object[R any](name, takes, absent string, to func(*R) *json.RawMessage) Field[R] {
	return New(name, takes, absent, func(r *R, value json.RawMessage) error {
		if value[0] != '{' {
			return ErrWrong
		}
		*to(r) = value
		return nil
	})
}

// Flag returns a field that takes true or false.
func Flag[R any](name, absent string, to func(*R) *bool) Field[R] {
	return New(name, "true or false", absent, func(r *R, value json.RawMessage) error { return ReadFlag(value, to(r)) })
}

// Number returns a field that takes a number from least to most.
func Number[R any](name, absent string, least, most float64, to func(*R) *float32) Field[R] {
	return New(name, fmt.Sprintf("a number from %v to %v", least, most), absent, func(r *R, value json.RawMessage) error {
		v, err := strconv.ParseFloat(string(value), 64)
		if err != nil || !(v >= least && v <= most) {
			return ErrWrong
		}
		*to(r) = float32(v)
		return nil
	})
}

// Whole returns a field that takes a whole number from least to most.
func Whole[R any](name, absent string, least, most int, to func(*R) *int) Field[R] {
	takes := fmt.Sprintf("a whole number from %d to %d", least, most)
	if most == math.MaxInt32 {
		takes = fmt.Sprintf("a whole number from %d", least)
	}
	return New(name, takes, absent, func(r *R, value json.RawMessage) error {
		v, err := ReadWhole(value, least, most)
		if err == nil {
			*to(r) = v
		}
		return err
	})
}

// Optional returns a field that takes a whole number from least to most and stores a pointer to it,
// which stays nil if the field is missing.
func Optional[R any](name, absent string, least, most int, to func(*R) **int) Field[R] {
	return Whole(name, absent, least, most, func(r *R) *int {
		n := new(int)
		*to(r) = n
		return n
	})
}

// Limit returns a field for the most tokens of an answer: a whole number from least, or -1 for as
// many as fit.
func Limit[R any](name, absent string, least int, to func(*R) **int) Field[R] {
	return New(name, fmt.Sprintf("a whole number from %d, or -1 for no limit", least), absent, func(r *R, value json.RawMessage) error {
		n, err := ReadWhole(value, -1, math.MaxInt32)
		switch {
		case err != nil || n >= 0 && n < least:
			return ErrWrong
		case n < 0:
			*to(r) = nil
			return nil
		}
		*to(r) = &n
		return nil
	})
}

// Ignored returns a field that has no effect on the answer.
func Ignored[R any](name string) Field[R] {
	return Field[R]{Name: name, Takes: "anything", Absent: "it changes nothing"}
}

// Only returns a field that takes only the given values, written as JSON. why says why other values
// are not supported and what to do.
func Only[R any](name, takes, why string, values ...string) Field[R] {
	return New(name, takes, values[0], func(_ *R, value json.RawMessage) error {
		if slices.Contains(values, compact(value)) {
			return nil
		}
		return Unsupported("%s %s is not supported: %s", name, Short(value), why)
	})
}

// Refused returns a field that would change the answer and is not supported.
func Refused[R any](name, why string) Field[R] {
	return New(name, "nothing: "+why, "", func(*R, json.RawMessage) error {
		return Unsupported("%s is not supported: %s", name, why)
	})
}

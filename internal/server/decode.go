package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// A field is a name that an object of a request may have.
type field[R any] struct {
	name  string
	takes string // "a number from 0 to 2"
	// without says what holds where a request leaves it out.
	without string
	// read reads a value that is not null into the request. nil: the field changes
	// nothing about the answer and may have any value.
	read func(to *R, value json.RawMessage) error
}

// fields are all that an object may have; other names are errors.
type fields[R any] []field[R]

// decode reads an object into r. Errors name a field by at and its name: at is empty
// for the request itself, "messages[0]" for instance inside it. A field that is null
// is left out.
func (f fields[R]) decode(r *R, data []byte, at string) error {
	return members(data, at, func(name string, value json.RawMessage) error {
		path := join(at, name)
		i := slices.IndexFunc(f, func(f field[R]) bool { return f.name == name })
		if i < 0 {
			return &Error{Status: http.StatusBadRequest, Param: path, Code: "unknown_parameter",
				Message: fmt.Sprintf("the field %.100q is not known here; leave it out", path)}
		}
		if f[i].read == nil || isNull(value) {
			return nil
		}
		return named(f[i].read(r, value), path, f[i].takes, value)
	})
}

// join is the name of a field of what is at at, as far as errors quote it.
func join(at, name string) string {
	const most = 100
	if len(name) > most {
		name = strings.ToValidUTF8(name[:most], "") + "…"
	}
	if at == "" {
		return name
	}
	return at + "." + name
}

// errWrong says that a value is not what its field takes.
var errWrong = errors.New("another value is wanted")

// named is err with the field that it is of.
func named(err error, path, takes string, value json.RawMessage) error {
	var e *Error
	switch {
	case err == nil, as(err, &e) && e.Param != "":
		return err
	case as(err, &e):
		if e.Param = path; !strings.Contains(e.Message, path[strings.LastIndexByte(path, '.')+1:]) {
			e.Message = path + ": " + e.Message
		}
		return e
	case errors.Is(err, errWrong):
		return invalid(path, "%s is %s; want %s", path, short(value), takes)
	}
	return invalid(path, "%s: %v", path, err)
}

// short is a value as an error quotes it.
func short(value []byte) string {
	const most = 80
	if len(value) <= most {
		return string(value)
	}
	return string(bytes.ToValidUTF8(value[:most], nil)) + "…"
}

func isNull(value []byte) bool { return string(value) == "null" }

// members calls f for each member of an object in their order. Two of one name are an
// error, as one of them would be ignored.
func members(data []byte, at string, f func(name string, value json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		if err == nil {
			err = fmt.Errorf("it begins with %v; want an object", t)
		}
		return notJSON(err, at)
	}
	var seen []string
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return notJSON(err, at)
		}
		name, _ := t.(string) // the decoder takes nothing else here
		if slices.Contains(seen, name) {
			return invalid(join(at, name), "the field %.100q is there twice", join(at, name))
		}
		if seen = append(seen, name); len(seen) > maxMembers {
			return invalid(at, "an object has more than %d fields", maxMembers)
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return notJSON(err, join(at, name))
		}
		if err := f(name, value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil {
		return notJSON(err, at)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return notJSON(errors.New("something follows the object"), at)
	}
	return nil
}

// maxMembers are the most fields of an object that a field list reads.
const maxMembers = 1024

// notJSON is a body, or a part of it, that is not the JSON that is wanted.
func notJSON(err error, at string) error {
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	what := "the body"
	if at != "" {
		what = at
	}
	return &Error{Status: http.StatusBadRequest, Param: at, Code: "invalid_json", Message: fmt.Sprintf("%s is not a JSON object: %v", what, err)}
}

// maxElements are the most of a list that is read one by one, so that a small body does
// not become a large one in memory.
const maxElements = 1 << 16

// elements are those of a list; errWrong where value is none.
func elements(value json.RawMessage) (list []json.RawMessage, err error) {
	if len(value) == 0 || value[0] != '[' {
		return nil, errWrong
	}
	d := json.NewDecoder(bytes.NewReader(value))
	if _, err := d.Token(); err != nil {
		return nil, errWrong
	}
	list = []json.RawMessage{}
	for d.More() {
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, errWrong
		}
		if list = append(list, v); len(list) > maxElements {
			return nil, fmt.Errorf("a list of more than %d", maxElements)
		}
	}
	return list, nil
}

// within are the fields of a part of a request as those of the whole.
func within[R, P any](part func(*R) *P, list fields[P]) fields[R] {
	out := make(fields[R], len(list))
	for i, f := range list {
		out[i] = field[R]{name: f.name, takes: f.takes, without: f.without}
		if f.read != nil {
			out[i].read = func(r *R, value json.RawMessage) error { return f.read(part(r), value) }
		}
	}
	return out
}

// text is a field of a string.
func text[R any](name, without string, to func(*R) *string) field[R] {
	return field[R]{name, "a string", without, func(r *R, value json.RawMessage) error { return readText(value, to(r)) }}
}

func readText(value json.RawMessage, to *string) error {
	if value[0] != '"' || json.Unmarshal(value, to) != nil {
		return errWrong
	}
	return nil
}

// flag is a field of true or false.
func flag[R any](name, without string, to func(*R) *bool) field[R] {
	return field[R]{name, "true or false", without, func(r *R, value json.RawMessage) error { return readFlag(value, to(r)) }}
}

func readFlag(value json.RawMessage, to *bool) error {
	if s := string(value); s != "true" && s != "false" {
		return errWrong
	}
	*to = value[0] == 't'
	return nil
}

// number is a field of a number from least to most.
func number[R any](name, without string, least, most float64, to func(*R) *float32) field[R] {
	return field[R]{name, fmt.Sprintf("a number from %v to %v", least, most), without, func(r *R, value json.RawMessage) error {
		v, err := strconv.ParseFloat(string(value), 64)
		if err != nil || !(v >= least && v <= most) {
			return errWrong
		}
		*to(r) = float32(v)
		return nil
	}}
}

// whole is a field of a whole number from least to most.
func whole[R any](name, without string, least, most int, to func(*R) *int) field[R] {
	takes := fmt.Sprintf("a whole number from %d to %d", least, most)
	if most == math.MaxInt32 {
		takes = fmt.Sprintf("a whole number from %d", least)
	}
	return field[R]{name, takes, without, func(r *R, value json.RawMessage) error {
		v, err := readWhole(value, least, most)
		if err == nil {
			*to(r) = v
		}
		return err
	}}
}

func readWhole(value json.RawMessage, least, most int) (int, error) {
	v, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || v < int64(least) || v > int64(most) {
		return 0, errWrong
	}
	return int(v), nil
}

// ignored is a field that cannot change the answer.
func ignored[R any](name string) field[R] {
	return field[R]{name: name, takes: "anything", without: "it changes nothing"}
}

// only is a field that takes some values alone, which are JSON; why says what is wrong
// with others, and what to do.
func only[R any](name, takes, why string, values ...string) field[R] {
	return field[R]{name, takes, values[0], func(_ *R, value json.RawMessage) error {
		if slices.Contains(values, compact(value)) {
			return nil
		}
		return unsupported("%s %s is not supported: %s", name, short(value), why)
	}}
}

// refused is a field that would change the answer and is not supported.
func refused[R any](name, why string) field[R] {
	return field[R]{name, "nothing: " + why, "", func(*R, json.RawMessage) error {
		return unsupported("%s is not supported: %s", name, why)
	}}
}

func unsupported(format string, a ...any) *Error {
	return &Error{Status: http.StatusBadRequest, Code: "unsupported_parameter", Message: fmt.Sprintf(format, a...)}
}

func compact(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return ""
	}
	return b.String()
}

package fields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// IsNull reports whether a value is null.
func IsNull(value []byte) bool { return string(value) == "null" }

// Members calls f for each member of an object in order, with the JSON text of its value, a slice
// of data. Two members with the same name are an error. at is the path of the object for errors.
func Members(data []byte, at string, f func(name string, value json.RawMessage) error) error {
	i := blanks(data, 0)
	if !is(data, i, '{') {
		return notJSON(unexpected(data, i, "an object"), at)
	}
	var seen []string
	for i = blanks(data, i+1); len(seen) > 0 || !is(data, i, '}'); i = blanks(data, i+1) {
		from, err := nameEnd(data, i)
		if err != nil {
			return notJSON(err, at)
		}
		var name string
		end, _ := stringEnd(data, i)
		if err := ReadText(data[i:end], &name); err != nil {
			return notJSON(err, at)
		}
		if slices.Contains(seen, name) {
			return Invalid(join(at, name), "the field %.100q occurs twice", join(at, name))
		}
		if seen = append(seen, name); len(seen) > maxMembers {
			return Invalid(at, "an object has more than %d fields", maxMembers)
		}
		if i, err = valueEnd(data, from); err != nil {
			return notJSON(err, join(at, name))
		}
		if err := f(name, data[from:i:i]); err != nil {
			return err
		}
		if i = blanks(data, i); is(data, i, '}') {
			break
		} else if !is(data, i, ',') {
			return notJSON(unexpected(data, i, "a comma or the end"), at)
		}
	}
	if i = blanks(data, i+1); i < len(data) {
		return notJSON(errors.New("something follows the object"), at)
	}
	return nil
}

// maxMembers limits the members of an object.
const maxMembers = 1024

// maxElements limits the elements of a list, each of which takes more memory than its JSON text.
const maxElements = 1 << 16

// Elements returns the JSON texts of a list's elements, as slices of value. The error is [ErrWrong]
// if value is not a list.
func Elements(value json.RawMessage) (list []json.RawMessage, err error) {
	if !is(value, 0, '[') {
		return nil, ErrWrong
	}
	list = []json.RawMessage{}
	for i := blanks(value, 1); len(list) > 0 || !is(value, i, ']'); i = blanks(value, i+1) {
		from := i
		if i, err = valueEnd(value, from); err != nil {
			return nil, ErrWrong
		}
		if list = append(list, value[from:i:i]); len(list) > maxElements {
			return nil, fmt.Errorf("a list of more than %d", maxElements)
		}
		if i = blanks(value, i); is(value, i, ']') {
			break
		} else if !is(value, i, ',') {
			return nil, ErrWrong
		}
	}
	return list, nil
}

// ReadText reads a string. value must be a valid JSON value, as from [Members] and [Elements].
func ReadText(value json.RawMessage, to *string) error {
	if value[0] != '"' {
		return ErrWrong
	}
	if bytes.IndexByte(value, '\\') < 0 { // no escapes
		*to = string(value[1 : len(value)-1])
		return nil
	}
	if json.Unmarshal(value, to) != nil {
		return ErrWrong
	}
	return nil
}

// ReadFlag reads true or false.
func ReadFlag(value json.RawMessage, to *bool) error {
	if s := string(value); s != "true" && s != "false" {
		return ErrWrong
	}
	*to = value[0] == 't'
	return nil
}

// ReadWhole reads a whole number from least to most.
func ReadWhole(value json.RawMessage, least, most int) (int, error) {
	v, err := strconv.ParseInt(wholeDigits(value), 10, 64)
	if err != nil || v < int64(least) || v > int64(most) {
		return 0, ErrWrong
	}
	return int(v), nil
}

// wholeDigits returns the digits of a whole number, which some clients write as 40.0.
func wholeDigits(value json.RawMessage) string {
	whole, fraction, _ := strings.Cut(string(value), ".")
	if strings.Trim(fraction, "0") != "" {
		return string(value)
	}
	return whole
}

// ReadIDs reads a list of token ids. It does not check that the vocabulary has them.
func ReadIDs(value json.RawMessage) ([]int32, error) {
	if value[0] != '[' {
		return nil, ErrWrong
	}
	ids := []int32{}
	if bytes.Contains(value, []byte("null")) || json.Unmarshal(value, &ids) != nil { // Unmarshal reads null as 0
		return nil, ErrWrong
	}
	return ids, nil
}

// compact returns a value without white space.
func compact(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return ""
	}
	return b.String()
}

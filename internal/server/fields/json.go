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

// Members calls f for each member of an object in their order, with its value as it stands
// in data. Two of one name are an error, as one of them would be ignored.
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
			return Invalid(join(at, name), "the field %.100q is there twice", join(at, name))
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

// maxMembers are the most fields of an object that a field list reads.
const maxMembers = 1024

// maxElements are the most of a list that are read one by one, so that a small body does
// not become a large one in memory.
const maxElements = 1 << 16

// Elements are those of a list, as they stand in value; [ErrWrong] where value is none.
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

// ReadText reads a string, as [Members] and [Elements] give it.
func ReadText(value json.RawMessage, to *string) error {
	if value[0] != '"' {
		return ErrWrong
	}
	if bytes.IndexByte(value, '\\') < 0 { // what is between the quotes stands for itself
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

// wholeDigits are the digits of a whole number, which some clients write as 40.0.
func wholeDigits(value json.RawMessage) string {
	whole, fraction, _ := strings.Cut(string(value), ".")
	if strings.Trim(fraction, "0") != "" {
		return string(value)
	}
	return whole
}

// ReadIDs reads a list of token ids. Whether the vocabulary has them is for the model to
// say.
func ReadIDs(value json.RawMessage) ([]int32, error) {
	if value[0] != '[' {
		return nil, ErrWrong
	}
	ids := []int32{}
	if bytes.Contains(value, []byte("null")) || json.Unmarshal(value, &ids) != nil { // which would read null as 0
		return nil, ErrWrong
	}
	return ids, nil
}

// compact is a value without blanks.
func compact(value json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, value) != nil {
		return ""
	}
	return b.String()
}

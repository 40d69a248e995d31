package fields

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
)

// IsNull reports whether a value is null.
func IsNull(value []byte) bool { return string(value) == "null" }

// Members calls f for each member of an object in their order. Two of one name are an
// error, as one of them would be ignored.
func Members(data []byte, at string, f func(name string, value json.RawMessage) error) error {
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
			return Invalid(join(at, name), "the field %.100q is there twice", join(at, name))
		}
		if seen = append(seen, name); len(seen) > maxMembers {
			return Invalid(at, "an object has more than %d fields", maxMembers)
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

// maxElements are the most of a list that are read one by one, so that a small body does
// not become a large one in memory.
const maxElements = 1 << 16

// Elements are those of a list; [ErrWrong] where value is none.
func Elements(value json.RawMessage) (list []json.RawMessage, err error) {
	if len(value) == 0 || value[0] != '[' {
		return nil, ErrWrong
	}
	d := json.NewDecoder(bytes.NewReader(value))
	if _, err := d.Token(); err != nil {
		return nil, ErrWrong
	}
	list = []json.RawMessage{}
	for d.More() {
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, ErrWrong
		}
		if list = append(list, v); len(list) > maxElements {
			return nil, fmt.Errorf("a list of more than %d", maxElements)
		}
	}
	return list, nil
}

// ReadText reads a string.
func ReadText(value json.RawMessage, to *string) error {
	if value[0] != '"' || json.Unmarshal(value, to) != nil {
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
	v, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil || v < int64(least) || v > int64(most) {
		return 0, ErrWrong
	}
	return int(v), nil
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

package fields

import (
	"encoding/json"
	"math"
	"strconv"
)

// maxPrompts limits the prompts of one request.
const maxPrompts = 2048

// A Prompt is a text or a list of token ids.
type Prompt struct {
	Text string
	IDs  []int32
}

// ReadPrompts reads the field prompt: a string, a list of token ids, or a list of up to 2,048 of
// these. several reports the last. Unless mixed is set, all prompts of a list must be of one kind.
func ReadPrompts(v json.RawMessage, mixed bool) (prompts []Prompt, several bool, err error) {
	if v[0] == '"' {
		prompts = make([]Prompt, 1)
		return prompts, false, ReadText(v, &prompts[0].Text)
	}
	if ids, err := ReadIDs(v); err == nil && len(ids) > 0 {
		return []Prompt{{IDs: ids}}, false, nil
	}
	list, err := Elements(v)
	switch {
	case err != nil:
		return nil, false, err
	case len(list) == 0:
		return nil, false, Invalid("prompt", "prompt is an empty list; want one prompt at least")
	case len(list) > maxPrompts:
		return nil, false, Invalid("prompt", "prompt is a list of %d; want %d at most", len(list), maxPrompts)
	}
	prompts = make([]Prompt, len(list))
	for i, v := range list {
		p := &prompts[i]
		if v[0] == '[' {
			p.IDs, err = ReadIDs(v)
		} else {
			err = ReadText(v, &p.Text)
		}
		if err != nil || !mixed && (v[0] == '[') != (list[0][0] == '[') {
			return nil, false, ErrWrong
		}
	}
	return prompts, true, nil
}

// maxStops limits the stop strings of a request.
const maxStops = 64

// ReadStops reads stop strings: a string, or a list of up to 64. name is the field's name for
// errors.
func ReadStops(name string, v json.RawMessage) ([]string, error) {
	list, err := []json.RawMessage{v}, error(nil)
	if v[0] == '[' {
		if list, err = Elements(v); err != nil {
			return nil, err
		}
	}
	if len(list) > maxStops {
		return nil, Invalid("", "%s has %d strings; want %d at most", name, len(list), maxStops)
	}
	stops := make([]string, len(list))
	for i, v := range list {
		if err := ReadText(v, &stops[i]); err != nil {
			return nil, err
		}
		if stops[i] == "" {
			return nil, Invalid("", "a string of %s is empty; leave it out", name)
		}
	}
	return stops, nil
}

// ReadSeed reads a signed or unsigned 64-bit integer. A negative value becomes its two's
// complement.
func ReadSeed(v json.RawMessage) (uint64, error) {
	digits := wholeDigits(v)
	if n, err := strconv.ParseUint(digits, 10, 64); err == nil {
		return n, nil
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return 0, ErrWrong
	}
	return uint64(n), nil
}

// ReadShare reads a share of the probabilities, above 0 and up to 1. A share that is too small for
// a float32 becomes the smallest positive float32.
func ReadShare(v json.RawMessage) (float32, error) {
	if p, err := strconv.ParseFloat(string(v), 64); err != nil || p == 0 {
		return 0, ErrWrong
	}
	return ReadShareOr0(v)
}

// ReadShareOr0 is like ReadShare but takes 0 too. 0 becomes the smallest positive float32, which
// keeps only the most likely token.
func ReadShareOr0(v json.RawMessage) (float32, error) {
	p, err := strconv.ParseFloat(string(v), 64)
	if err != nil || !(p >= 0 && p <= 1) {
		return 0, ErrWrong
	}
	return max(float32(p), math.SmallestNonzeroFloat32), nil
}

package turn

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A piece is a part of a pattern: text or a placeholder.
type piece struct{ text, hold string }

var holds = []string{holdName, holdID, holdIndex, holdArguments, holdKey, holdValue}

// pieces splits a pattern at its placeholders.
func pieces(pattern string) []piece {
	var out []piece
	for pattern != "" {
		at, hold := len(pattern), ""
		for _, h := range holds {
			if i := strings.Index(pattern, h); i >= 0 && i < at {
				at, hold = i, h
			}
		}
		if at > 0 {
			out = append(out, piece{text: pattern[:at]})
		}
		if hold != "" {
			out = append(out, piece{hold: hold})
		}
		pattern = pattern[at+len(hold):]
	}
	return out
}

// around returns the parts of a pattern before and after a placeholder.
func around(pattern, hold string) (before, after string) {
	before, after, _ = strings.Cut(pattern, hold)
	return before, after
}

// An envelope is a JSON object that holds the name and the arguments of a call.
type envelope struct {
	before, after       string // the text around the object
	name, id, arguments string // the keys; name is empty if the name of the tool is the key of the arguments
	object              string // the pattern of the object itself
}

// findEnvelope finds the object in a call's pattern, if the call is an object.
func findEnvelope(pattern string) (envelope, bool) {
	filled := func(s string) string {
		return strings.NewReplacer(holdName, "@n", holdID, "@i", holdIndex, "@i",
			`"`+holdArguments+`"`, `"@a"`, holdArguments, `"@a"`).Replace(s)
	}
	for at := 0; at < len(pattern); at++ {
		if pattern[at] != '{' {
			continue
		}
		d := json.NewDecoder(strings.NewReader(filled(pattern[at:])))
		var raw json.RawMessage
		if d.Decode(&raw) != nil {
			continue
		}
		after := filled(pattern[at:])[d.InputOffset():]
		e := envelope{before: pattern[:at], after: after, object: pattern[at : len(pattern)-len(after)]}
		d = json.NewDecoder(bytes.NewReader(raw))
		_, _ = d.Token()
		for d.More() {
			key, _ := d.Token()
			var text string
			var v json.RawMessage
			if d.Decode(&v) != nil || json.Unmarshal(v, &text) != nil {
				return e, false
			}
			k, _ := key.(string)
			switch {
			case text == "@n":
				e.name = k
			case text == "@i":
				e.id = k
			case text == "@a" && k != "@n":
				e.arguments = k
			case text == "@a":
				e.arguments = ""
				return e, true
			}
		}
		return e, e.name != "" && e.arguments != ""
	}
	return envelope{}, false
}

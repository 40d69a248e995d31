package jinja

import (
	"errors"
	"strings"
	"testing"
)

func TestFromJSON(t *testing.T) {
	for _, c := range []struct{ data, repr string }{
		{`{"b": 1, "a": [1.0, -0, 1e2, 1E+400]}`, `{'b': 1, 'a': [1.0, 0, 100.0, inf]}`},
		{`{"a": 1, "b": 2, "a": 3}`, `{'a': 3, 'b': 2}`},
		{`"\u00e9\ud83d\ude00\ud83d \/\b"`, `'é😀` + "\uFFFD" + ` /\x08'`},
		{`123456789012345678901234567890`, `123456789012345678901234567890`},
		{`[null, true, false, NaN, Infinity, -Infinity]`, `[None, True, False, nan, inf, -inf]`},
		{" [ ] ", `[]`},
		{`{}`, `{}`},
		{"\"\xff\"", "'\uFFFD'"},
	} {
		v, err := FromJSON([]byte(c.data), false)
		if err != nil {
			t.Errorf("%s: %v", c.data, err)
			continue
		}
		vars := NewDict()
		vars.Set("v", NewList(v))
		if got, err := render(t, `{{ v }}`, vars, Options{}); err != nil || got.String() != "["+c.repr+"]" {
			t.Errorf("%s = %s, %v; want [%s]", c.data, got, err, c.repr)
		}
	}
	for _, bad := range []string{
		``, `{`, `[1,]`, `{"a":}`, `{"a" 1}`, `{a:1}`, `{"a":1,}`, `01`, `1.`, `.5`, `1e`, `+1`, `-`, `"`, `"\x"`, `"\u12"`,
		"\"\n\"", `tru`, `1 2`, `[1 2]`, `'a'`, strings.Repeat("[", 100000), strings.Repeat(`{"a":`, 100000),
		strings.Repeat("9", 5000),
	} {
		if v, err := FromJSON([]byte(bad), false); !errors.Is(err, ErrJSON) {
			t.Errorf("%.20q = %v, %v; want ErrJSON", bad, v, err)
		}
	}
}

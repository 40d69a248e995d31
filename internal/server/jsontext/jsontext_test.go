package jsontext

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\\n\r\t\x00\x1f\x7f", "ä€😀\u2028\u2029\uFFFD", "a\xffb\xe2\x82", "</script>"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, b := range [][]byte{AppendString(nil, s), AppendString(nil, []byte(s))} {
			var got string
			if err := json.Unmarshal(b, &got); err != nil {
				t.Fatalf("%q becomes %s: %v", s, b, err)
			}
			if want := strings.Map(func(r rune) rune { return r }, s); got != want { // with U+FFFD for each byte that is none
				t.Errorf("%q becomes %s, which is %q", s, b, got)
			}
			if !utf8.Valid(b) {
				t.Errorf("%q becomes %q", s, b)
			}
		}
	})
}

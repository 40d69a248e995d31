package jsontext

import (
	"encoding/json"
	"math"
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
			if want := strings.Map(func(r rune) rune { return r }, s); got != want { // with U+FFFD for each invalid byte
				t.Errorf("%q becomes %s, which is %q", s, b, got)
			}
			if !utf8.Valid(b) {
				t.Errorf("%q becomes %q", s, b)
			}
		}
	})
}

// AppendFloat writes a number as encoding/json does.
func TestAppendFloat(t *testing.T) {
	for bits := uint64(0); bits < 1<<32; bits += 99991 {
		f := math.Float32frombits(uint32(bits))
		want, err := json.Marshal(f)
		if err != nil {
			continue // it is not finite
		}
		if got := AppendFloat(nil, f); string(got) != string(want) {
			t.Fatalf("%g is %s, want %s", f, got, want)
		}
	}
}

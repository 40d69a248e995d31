package server

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
		for _, b := range [][]byte{appendString(nil, s), appendString(nil, []byte(s))} {
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

func TestAppendLogProb(t *testing.T) {
	for p, want := range map[float64]string{-0.25: "-0.25", math.Copysign(0, -1): "0", math.Inf(-1): "-9999", math.NaN(): "-9999", -1e-9: "-1e-09"} {
		if got := string(appendLogProb(nil, p)); got != want {
			t.Errorf("%v: %s, want %s", p, got, want)
		}
	}
}

func FuzzNotText(f *testing.F) {
	for _, s := range []string{`{"a":"b"}`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\\ud83d"`, `"\ud83d\n"`, "\"\xff\"", `"\u00`, `"\`, `"\ud83dx\ude00"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if json.Unmarshal([]byte(s), &got) != nil {
			_ = notText([]byte(s)) // which ends, whatever it says
			return
		}
		// The decoder puts U+FFFD where there is no character.
		replaced := strings.Count(got, "\uFFFD") > strings.Count(s, "\uFFFD")+strings.Count(strings.ToLower(s), `\ufffd`)
		if at := notText([]byte(s)); replaced && at < 0 {
			t.Errorf("%q becomes %q", s, got)
		} else if at >= 0 && !strings.Contains(got, "\uFFFD") {
			t.Errorf("%q is refused at %d, and becomes %q", s, at, got)
		}
	})
}

func TestNotText(t *testing.T) {
	for s, want := range map[string]int{`"\ud83d\ude00"`: -1, `"x\ud83d"`: 2, `"\ude00"`: 1, `"\\ud83d"`: -1, `"\ud83d\u0041"`: 1, "\"ab\xff\"": 3} {
		if got := notText([]byte(s)); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

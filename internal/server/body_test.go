package server

import (
	"encoding/json"
	"strings"
	"testing"
)

func FuzzNotText(f *testing.F) {
	for _, s := range []string{`{"a":"b"}`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00"`, `"\\ud83d"`, `"\ud83d\n"`, "\"\xff\"", `"\u00`, `"\`, `"\ud83dx\ude00"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if json.Unmarshal([]byte(s), &got) != nil {
			_ = notText([]byte(s)) // it must end, whatever it returns
			return
		}
		// The decoder replaces what is not a character by U+FFFD.
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

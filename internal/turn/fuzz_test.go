package turn

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzParser parses any text as a turn of each form, cut in two, and checks that the result is
// well-formed and that no text is lost.
func FuzzParser(f *testing.F) {
	var forms []*Form
	for _, tm := range templatesOf(f, "testdata/templates/*.jinja") {
		form := testForm(f, tm)
		forms = append(forms, form)
		for _, s := range samples(form) {
			if turn, ok := turnOf(tm, form, s.message); ok {
				f.Add(len(forms)-1, join(turn), len(s.name))
			}
		}
	}
	f.Fuzz(func(t *testing.T, which int, text string, cut int) {
		form := forms[uint(which)%uint(len(forms))]
		cut = int(uint(cut) % uint(len(text)+1))
		o := ParserOptions{Tools: testTools, Calls: true}
		whole := feed(form, o, text)
		parts := feed(form, o, text[:cut], text[cut:])
		if a, b := merged(whole), merged(parts); a != b {
			t.Fatalf("cut at %d:\n%s\nwhole:\n%s", cut, b, a)
		}
		checkEvents(t, whole)
		checkKept(t, text, whole)
		// Without calls, everything but the marks of text and reasoning is text.
		checkKept(t, text, feed(form, ParserOptions{}, text))
	})
}

func feed(f *Form, o ParserOptions, texts ...string) []Event {
	p := f.NewParser(o)
	var events []Event
	for _, text := range texts {
		events = append(events, p.Write(text, false)...)
	}
	return append(events, p.Close()...)
}

// merged formats events so that the boundaries of their texts do not matter.
func merged(events []Event) string {
	var b strings.Builder
	last := Event{Call: -1}
	for _, e := range events {
		if e.Kind != last.Kind || e.Call != last.Call {
			b.WriteString("\n" + e.Kind.String() + " " + e.Name + " " + e.ID + ": ")
		}
		b.WriteString(e.Text)
		last = e
	}
	return b.String()
}

// checkEvents checks the order of events, and that the arguments of complete calls are JSON
// objects.
func checkEvents(t *testing.T, events []Event) {
	open, call := false, 0
	var arguments strings.Builder
	for _, e := range events {
		switch e.Kind {
		case CallBegin:
			if open || e.Call != call || e.Name == "" {
				t.Fatalf("%v in %v", e, events)
			}
			open = true
			arguments.Reset()
		case CallArguments:
			if !open || e.Call != call {
				t.Fatalf("%v in %v", e, events)
			}
			arguments.WriteString(e.Text)
		case CallEnd:
			var object map[string]json.RawMessage
			if !open || e.Call != call || json.Unmarshal([]byte(arguments.String()), &object) != nil {
				t.Fatalf("%v in %v", e, events)
			}
			open = false
			call++
		case CallBroken:
			if !open || e.Call != call {
				t.Fatalf("%v in %v", e, events)
			}
			open = false
			call++
		default:
			if open || e.Text == "" {
				t.Fatalf("%v in %v", e, events)
			}
		}
	}
	if open {
		t.Fatalf("a call stays open: %v", events)
	}
}

// checkKept checks that texts, reasoning and broken calls occur in the turn in their order, and
// that nothing is lost if there are no marks and no calls.
func checkKept(t *testing.T, text string, events []Event) {
	at, calls, given := 0, 0, 0
	for _, e := range events {
		switch e.Kind {
		case CallEnd:
			calls++
		case Text, Reasoning, CallBroken:
			for i := range len(e.Text) {
				j := strings.IndexByte(text[at:], e.Text[i])
				if j < 0 {
					t.Fatalf("%v is not in the turn", e)
				}
				if strings.IndexByte(spaces, e.Text[i]) < 0 {
					given++
				}
				at += j + 1
			}
		}
	}
	solid := 0
	for i := range len(text) {
		if strings.IndexByte(spaces, text[i]) < 0 {
			solid++
		}
	}
	if calls == 0 && !strings.ContainsAny(text, "<[>]fA") && given != solid {
		t.Fatalf("%d bytes of %d came back: %v", given, solid, events)
	}
}

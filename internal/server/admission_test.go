package server

import "testing"

// TestAdmission checks that requests for many answers leave places for requests for few, and are
// admitted even if the server has fewer places in all.
func TestAdmission(t *testing.T) {
	many := admission{limit: 1040}
	let := 0
	for many.enter(128) == nil {
		let++
	}
	if free := many.limit - many.taken; let < 6 || free < 128 {
		t.Errorf("%d requests for 128 answers are let in and leave %d places", let, free)
	}
	for range many.limit - many.taken {
		if err := many.enter(1); err != nil {
			t.Fatal(err)
		}
	}
	if many.enter(1) == nil || many.taken != many.limit {
		t.Errorf("%d places are taken", many.taken)
	}
	few := admission{limit: 1}
	if err := few.enter(128); err != nil {
		t.Error(err)
	}
	some := admission{limit: 17, taken: 8}
	if err := some.enter(128); err != nil {
		t.Error(err)
	}
}

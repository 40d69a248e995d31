package sample_test

import (
	"math"
	"slices"
	"testing"

	"github.com/realizar/realizar/internal/sample"
)

// A token that was chosen once more changes nothing else, and the list stays valid.
func TestChosen(t *testing.T) {
	list := []sample.Adjustment{{Token: 3, Bias: 1, Count: 2, Prompt: true}, {Token: 7, Count: math.MaxInt32 - 1}}
	before := slices.Clone(list)
	for token, want := range map[int32][]sample.Adjustment{
		1: {{Token: 1, Count: 1}, list[0], list[1]},
		3: {{Token: 3, Bias: 1, Count: 3, Prompt: true}, list[1]},
		5: {list[0], {Token: 5, Count: 1}, list[1]},
		7: list, // no more can be counted
		9: {list[0], list[1], {Token: 9, Count: 1}},
	} {
		got := sample.Chosen(list, token)
		if !slices.Equal(got, want) || !slices.Equal(list, before) {
			t.Errorf("after token %d: %v, want %v; the list is %v", token, got, want, list)
		}
		if err := sample.ValidateAdjustments(got, 10); err != nil {
			t.Error(err)
		}
	}
	if got := sample.Chosen(nil, 4); !slices.Equal(got, []sample.Adjustment{{Token: 4, Count: 1}}) {
		t.Errorf("after token 4: %v", got)
	}
}

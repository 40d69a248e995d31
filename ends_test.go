package realizar

import (
	"errors"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/arch"
)

// Files whose end tokens are all outside the vocabulary are an error, since no answer would end.
func TestNoEnd(t *testing.T) {
	ends := func(ids ...int32) *Model {
		m := &Model{arch: &arch.Model{}, ends: map[int32]bool{}}
		m.arch.Spec.Vocab = 8
		for _, id := range ids {
			m.ends[id] = true
		}
		return m
	}
	if err := ends(9, 8).checkEnds(); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "token 8 as the end of answers") {
		t.Errorf("%v", err)
	}
	for _, ids := range [][]int32{nil, {7}, {7, 8}} {
		if err := ends(ids...).checkEnds(); err != nil {
			t.Errorf("%v: %v", ids, err)
		}
	}
}

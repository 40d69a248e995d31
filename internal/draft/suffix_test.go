package draft

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func propose(t *testing.T, s *Suffix, tokens []int32, n int, want []int32, evidence int) {
	t.Helper()
	got, e := s.Propose(tokens, n)
	if !slices.Equal(got, want) || e != evidence {
		t.Errorf("after %v: %v with evidence %d, want %v with %d", tokens, got, e, want, evidence)
	}
}

// The longest match wins, of equally long ones the last, and a repetition goes on beyond what is
// known.
func TestSuffix(t *testing.T) {
	var r Recent
	for _, test := range []struct {
		what         string
		tokens, want []int32
		evidence     int
	}{
		{"nothing is known of one token", []int32{5}, nil, 0},
		{"nothing occurred before", []int32{5, 6, 7, 8}, nil, 0},
		{"one token that occurred is too few", []int32{5, 6, 7, 5}, nil, 0},
		{"two tokens", []int32{5, 6, 7, 8, 9, 5, 6}, []int32{7, 8, 9}, 0},
		{"the last of equal ones", []int32{5, 6, 7, 8, 5, 6, 9, 1, 5, 6}, []int32{9, 1, 5}, 0},
		{"the longest", []int32{4, 5, 6, 7, 8, 1, 5, 6, 9, 1, 4, 5, 6}, []int32{7, 8, 1}, 1},
		{"a repetition", []int32{1, 2, 1, 2, 1, 2}, []int32{1, 2, 1}, 2},
		{"one token again and again", []int32{3, 3, 3}, []int32{3, 3, 3}, 0},
	} {
		t.Run(test.what, func(t *testing.T) {
			propose(t, r.New("", len(test.tokens)), test.tokens, 3, test.want, test.evidence)
		})
	}
}

// Answers are proposed to later ones of the same salt, and do not run into each other.
func TestRecent(t *testing.T) {
	var r Recent
	r.New("a", 1).End([]int32{1, 2, 3, 4})
	r.New("a", 1).End([]int32{9, 5, 6, 7})
	propose(t, r.New("a", 2), []int32{2, 3}, 3, []int32{4}, 0)
	propose(t, r.New("a", 2), []int32{5, 6}, 3, []int32{7}, 0)
	propose(t, r.New("a", 2), []int32{3, 4}, 3, nil, 0) // it ended there
	propose(t, r.New("a", 2), []int32{1, 2}, 3, nil, 0) // of the prompt
	propose(t, r.New("b", 2), []int32{2, 3}, 3, nil, 0) // of another salt
	propose(t, r.New("a", 2), []int32{2, 3, 8, 2, 3}, 1, []int32{8}, 0)
}

// However many answers and salts there are, memory is bounded, and the last answers are known.
func TestRecentIsBounded(t *testing.T) {
	var r Recent
	rng := rand.New(rand.NewPCG(1, 1))
	for i := range 2000 {
		answer := make([]int32, 1+rng.IntN(200))
		for i := range answer {
			answer[i] = rng.Int32()
		}
		salt := string(rune('a' + rng.IntN(40)))
		r.add(salt, answer)
		if n := len(answer); n > 2 {
			propose(t, r.New(salt, 0), answer[:2], 1, answer[2:3], 0)
		}
		if len(r.texts) > mostTexts {
			t.Fatalf("%d salts after %d answers", len(r.texts), i)
		}
		for _, text := range r.texts {
			if len(text.tokens) > textSize || len(text.chain.before) != len(text.tokens) || len(text.chain.heads) > 4*textSize {
				t.Fatalf("%d tokens, %d in a chain of %d heads", len(text.tokens), len(text.chain.before), len(text.chain.heads))
			}
		}
	}
}

// A draft is what a search of the whole text proposes, as long as it need not be bounded.
func FuzzSuffix(f *testing.F) {
	f.Add([]byte{1, 2, 3, 1, 2, 3, 1, 2}, 4, uint8(3))
	f.Add([]byte{0, 0, 0, 0, 1, 0, 0, 0}, 2, uint8(1))
	f.Fuzz(func(t *testing.T, text []byte, n int, values uint8) {
		if len(text) == 0 || n < 1 || n > 50 {
			return
		}
		tokens := make([]int32, len(text))
		for i, b := range text {
			tokens[i] = int32(b) % (1 + int32(values))
		}
		var r Recent
		s := r.New("", 0)
		for end := 1; end <= len(tokens); end++ {
			draft, evidence := s.Propose(tokens[:end], n)
			if len(draft) == 0 {
				continue
			}
			if len(draft) != n {
				t.Fatalf("%d tokens, want %d", len(draft), n)
			}
			// Some place before has the draft, after as many equal tokens as claimed.
			whole := slices.Concat(tokens[:end], draft)
			found := false
			for at := 1; at < end && !found; at++ {
				k := 0
				for k < min(longest, at) && tokens[at-1-k] == tokens[end-1-k] {
					k++
				}
				found = k == evidence+fewest && slices.Equal(whole[at:at+n], draft)
			}
			if !found {
				t.Fatalf("%v with evidence %d after %v occurred nowhere", draft, evidence, tokens[:end])
			}
		}
	})
}

// BenchmarkPropose is the time of a proposal in a text of 32,768 tokens with many repetitions.
func BenchmarkPropose(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 1))
	tokens := make([]int32, 32<<10)
	for i := range tokens {
		tokens[i] = int32(rng.ExpFloat64() * 50)
	}
	var r Recent
	var s *Suffix
	at := len(tokens)
	for b.Loop() {
		if at == len(tokens) {
			at -= 5000
			s = r.New("", 0)
			s.Propose(tokens[:at], 8)
		}
		at++
		s.Propose(tokens[:at], 8)
	}
}

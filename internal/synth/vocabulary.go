package synth

// The vocabulary is byte-level BPE: the 256 bytes, syllables, words of syllables after a space, and
// the special tokens. Each syllable and each word has exactly one merge, so a text of such words is
// tokenized as these words.

// specialTokens are the last tokens of the vocabulary.
var specialTokens = []string{"<|endoftext|>", "<|im_start|>", "<|im_end|>"}

const (
	consonants = "bdfghjklmnprstvwz"
	vowels     = "aeiou"
	syllables  = len(consonants) * len(vowels)
)

// minVocab is the size of the smallest vocabulary, which has one word.
const minVocab = 256 + syllables + 1 + 3

// chatTemplate is ChatML.
const chatTemplate = `{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content }}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}`

// A vocabulary has the tokens by id and the merges by rank.
type vocabulary struct {
	tokens, merges []string
	types          []int32
}

// The kinds of token in GGUF (tokenizer.ggml.token_type).
const (
	normalToken  = 1
	controlToken = 3
)

// newVocabulary returns a vocabulary of n tokens, at least minVocab.
func newVocabulary(n int) *vocabulary {
	v := &vocabulary{tokens: make([]string, 0, n), merges: make([]string, 0, n)}
	v.tokens = append(v.tokens, byteAlphabet()...)
	join := func(left, right string) {
		v.tokens = append(v.tokens, left+right)
		v.merges = append(v.merges, left+" "+right)
	}
	syllable := make([]string, 0, syllables)
	for _, c := range consonants {
		for _, w := range vowels {
			join(string(c), string(w))
			syllable = append(syllable, string(c)+string(w))
		}
	}
	// A word is a shorter word, or the space, followed by a syllable.
	const space = "Ġ"
	words := append(make([]string, 0, n), space)
	for i := 0; len(v.tokens) < n-len(specialTokens); i++ {
		join(words[i/syllables], syllable[i%syllables])
		words = append(words, v.tokens[len(v.tokens)-1])
	}
	v.tokens = append(v.tokens, specialTokens...)
	v.types = make([]int32, len(v.tokens))
	for i := range v.types {
		v.types[i] = normalToken
		if i >= len(v.types)-len(specialTokens) {
			v.types[i] = controlToken
		}
	}
	return v
}

// byteAlphabet returns the characters by which GPT-2's tokenizer writes the 256 bytes: printable
// Latin-1 characters stand for themselves, the other bytes are the characters from U+0100 on.
func byteAlphabet() []string {
	all := make([]string, 256)
	next := rune(256)
	for b := range rune(256) {
		all[b] = string(b)
		if b <= ' ' || b >= 0x7f && b <= 0xa0 || b == 0xad {
			all[b] = string(next)
			next++
		}
	}
	return all
}

// id returns the id of a token. It panics if there is no such token.
func (v *vocabulary) id(token string) uint32 {
	for i := len(v.tokens) - 1; i >= 0; i-- {
		if v.tokens[i] == token {
			return uint32(i)
		}
	}
	panic("synth: no token " + token)
}

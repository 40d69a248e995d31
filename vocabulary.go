package realizar

import "github.com/realizar/realizar/internal/grammar"

// makeVocabulary returns the vocabulary for grammars. It takes about 0.1 seconds for a large
// vocabulary, so it is called when a grammar is first used.
func (m *Model) makeVocabulary() *grammar.Vocabulary {
	pieces := make([][]byte, m.Vocab())
	special := map[string]int32{}
	for id := range min(int32(m.tok.VocabSize()), int32(len(pieces))) {
		if !m.tok.IsSpecial(id) {
			pieces[id] = m.tok.Piece(id)
		} else if text, ok := m.tok.Token(id); ok {
			special[text] = id
		}
	}
	ends := make([]int32, 0, len(m.ends))
	for id := range m.ends {
		ends = append(ends, id)
	}
	return grammar.NewVocabulary(pieces, special, ends)
}

package grammar_test

import (
	"bufio"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/realizar/realizar/internal/grammar"
	"github.com/realizar/realizar/modelfile"
	"github.com/realizar/realizar/tokenizer"
)

// A model is a model's vocabulary with the ids of its texts.
type model struct {
	pieces  [][]byte
	special map[string]int32
	end     []int32
	ids     map[string]int32
	longest int
}

func (m *model) vocabulary() *grammar.Vocabulary {
	return grammar.NewVocabulary(m.pieces, m.special, m.end)
}

// realVocabulary returns the vocabulary in the file REALIZAR_RANKS, or else GPT-2's from the
// conformance data. The file holds base64 texts and their ids in tiktoken's format; Llama 3's
// tokenizer.model is one.
func realVocabulary(t testing.TB) *model {
	t.Helper()
	m := &model{special: map[string]int32{}, ids: map[string]int32{}}
	if path := os.Getenv("REALIZAR_RANKS"); path != "" {
		m.readRanks(t, path)
	} else {
		m.readGGUF(t)
	}
	for id, piece := range m.pieces {
		if piece != nil {
			m.ids[string(piece)] = int32(id)
			m.longest = max(m.longest, len(piece))
		}
	}
	return m
}

func (m *model) readRanks(t testing.TB, path string) {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		text, _, _ := strings.Cut(lines.Text(), " ")
		piece, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		m.pieces = append(m.pieces, piece)
	}
	for i := range 256 {
		m.special[fmt.Sprintf("<|special_%d|>", i)] = int32(len(m.pieces))
		m.pieces = append(m.pieces, nil)
	}
	m.end = []int32{int32(len(m.pieces)) - 1}
}

func (m *model) readGGUF(t testing.TB) {
	root := os.Getenv("REALIZAR_CONFORMANCE")
	if root == "" {
		t.Skip("REALIZAR_CONFORMANCE is not set; it names the folder of conformance data")
	}
	f, err := modelfile.Open(filepath.Join(root, "tokenizers", "gguf", "ggml-vocab-gpt-2.gguf"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f.Meta())
	if err != nil {
		t.Fatal(err)
	}
	for id := range int32(tok.VocabSize()) {
		if tok.IsSpecial(id) {
			text, _ := tok.Token(id)
			m.special[text] = id
			m.pieces = append(m.pieces, nil)
			continue
		}
		m.pieces = append(m.pieces, tok.Piece(id))
	}
	m.end = tok.EndTokens()
}

// tokens splits text greedily into the longest pieces.
func (m *model) tokens(text string) []int32 {
	var ids []int32
	for text != "" {
		n := min(len(text), m.longest)
		for ; n > 0; n-- {
			if id, ok := m.ids[text[:n]]; ok {
				ids = append(ids, id)
				break
			}
		}
		text = text[n:]
	}
	return ids
}

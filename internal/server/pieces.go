package server

import "sync"

// pieces are the bytes of tokens by id, as far as they were asked for.
type pieces struct {
	known sync.Map // int32 to []byte
}

// Piece is what a token adds to a text; nil where the model has no tokenizer.
func (x *Exchange) Piece(id int32) []byte {
	m := x.Model()
	if p, ok := m.pieces.known.Load(id); ok {
		return p.([]byte)
	}
	tok, err := m.Tokenizer()
	if err != nil {
		return nil
	}
	p := tok.Piece(id)
	m.pieces.known.Store(id, p)
	return p
}

package server

import "sync"

// pieces caches the bytes of tokens by ID.
type pieces struct {
	known sync.Map // int32 to []byte
}

// Piece returns the bytes that a token adds to a text; nil if the model has no tokenizer.
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

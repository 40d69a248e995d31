package server

import "github.com/realizar/realizar/internal/server/fields"

// CheckSuffix returns an error for the field suffix, the text after a gap that the answer fills, if
// the model has no tokens for gaps.
func (x *Exchange) CheckSuffix() error {
	tok, err := x.Model().Tokenizer()
	if err != nil {
		return err
	}
	if _, ok := tok.Infill(); !ok {
		e := fields.Unsupported("suffix is not supported: the model's tokenizer has no fill-in-the-middle tokens; leave it out")
		e.Param = "suffix"
		return e
	}
	return nil
}

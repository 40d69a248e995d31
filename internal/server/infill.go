package server

import "github.com/realizar/realizar/internal/server/fields"

// CheckSuffix refuses the field suffix, the text behind a gap that the answer fills, where the
// model has no tokens for gaps.
func (x *Exchange) CheckSuffix() error {
	tok, err := x.Model().Tokenizer()
	if err != nil {
		return err
	}
	if _, ok := tok.Infill(); !ok {
		e := fields.Unsupported("suffix is not supported: the model's tokenizer has no tokens around a gap, so that it continues a text and cannot fill one in; leave it out")
		e.Param = "suffix"
		return e
	}
	return nil
}

package server

import (
	"errors"
	"slices"

	"github.com/realizar/realizar/internal/server/fields"
)

// A request is read once more for each field that nobody knows: so often in any case, and as
// long as no more bytes are read in all.
const (
	maxUnknown      = 32
	maxUnknownBytes = 64 << 20
)

// decode reads data, a request, into r. Where the server is lenient, fields that are not
// known are blanks afterwards, and said to be left out.
func decode[R any](x *Exchange, list fields.List[R], r *R, data []byte) error {
	if !x.Server.config.Lenient {
		return list.Decode(r, data, "")
	}
	before := *r
	var unknown []string
	for {
		err := list.Decode(r, data, "")
		var e *fields.Error
		if !errors.As(err, &e) || e.Code != "unknown_parameter" || len(unknown) >= maxUnknown && len(unknown)*len(data) > maxUnknownBytes ||
			slices.Contains(unknown, e.Param) || !fields.Blank(data, e.Param) {
			x.LeftOut(unknown...)
			return err
		}
		unknown = append(unknown, e.Param)
		*r = before
	}
}

package server

import (
	"errors"
	"slices"

	"github.com/realizar/realizar/internal/server/fields"
)

// A request is read once more for each field that nobody knows: so often in any case, and
// oftener as long as no more bytes are read in all.
const (
	maxUnknown      = 8
	maxUnknownBytes = 256 << 20
)

// decode reads data, a request, into r. Where the server is lenient, fields that are not
// known are blanks afterwards, and said to be left out.
func decode[R any](x *Exchange, list fields.List[R], r *R, data []byte) error {
	if !x.settings.lenient {
		return list.Decode(r, data, "")
	}
	before := *r
	var unknown []string
	for {
		err := list.Decode(r, data, "")
		var e *fields.Error
		again := errors.As(err, &e) && e.Code == "unknown_parameter" && !slices.Contains(unknown, e.Param) &&
			(len(unknown) < maxUnknown || len(unknown)*len(data) <= maxUnknownBytes)
		if !again || x.work.Err() != nil || !fields.Blank(data, e.Param) {
			x.LeftOut(unknown...)
			return err
		}
		unknown = append(unknown, e.Param)
		*r = before
	}
}

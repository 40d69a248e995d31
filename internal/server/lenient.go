package server

import (
	"errors"
	"slices"

	"github.com/realizar/realizar/internal/server/fields"
)

// A request is decoded again for each unknown field: maxUnknown times in any case, and more often
// as long as no more than maxUnknownBytes are read in all.
const (
	maxUnknown      = 8
	maxUnknownBytes = 256 << 20
)

// decode reads data, a request, into r. If the server is lenient, it blanks unknown fields in data
// and reports them as left out.
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

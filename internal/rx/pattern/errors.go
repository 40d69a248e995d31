package pattern

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// An Error says what is wrong with a pattern, where, and how to fix it.
type Error struct {
	Pattern string
	Offset  int // in bytes
	Problem string
}

func (e *Error) Error() string {
	return fmt.Sprintf("pattern %s: at byte %d: %s", clip(e.Pattern), e.Offset, e.Problem)
}

// clip quotes text. It shortens a long one.
func clip(text string) string {
	const limit = 80
	if len(text) <= limit {
		return strconv.Quote(text)
	}
	end := limit
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return strconv.Quote(text[:end]) + "..."
}

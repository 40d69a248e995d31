package jinja

import (
	"strconv"
	"strings"
	"time"
)

// writeTime appends t in the format of C's strftime in the C locale, for a time
// without a zone. A directive that is not known stands for itself.
func writeTime(b *builder, format *Str, t time.Time) {
	s := format.s
	for i := 0; i < len(s); {
		c := strings.IndexByte(s[i:], '%')
		if c < 0 {
			b.slice(format, i, len(s))
			return
		}
		b.slice(format, i, i+c)
		i += c
		b.in.step(16)
		n := 2
		if strings.HasPrefix(s[i+1:], "-") { // without padding
			n = 3
		}
		n = min(n, len(s)-i)
		text, ok := timeField(s[i+n-1], t)
		if !ok {
			n = stretchEnd(s[i:], 0, n+3) // whole characters
			b.slice(format, i, i+n)
			i += n
			continue
		}
		if n == 3 {
			text = strings.TrimLeft(text, " 0")
			if text == "" || text[0] < '0' || text[0] > '9' {
				text = "0" + text
			}
		}
		b.write(text, format.origin(i) && format.origin(i+n-1))
		i += n
	}
}

// timeLayouts are the directives for which package time has a layout.
var timeLayouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'h': "Jan", 'B': "January", 'c': "Mon Jan _2 15:04:05 2006", 'd': "02",
	'D': "01/02/06", 'x': "01/02/06", 'e': "_2", 'F': "2006-01-02", 'H': "15", 'I': "03", 'j': "002", 'm': "01",
	'M': "04", 'p': "PM", 'r': "03:04:05 PM", 'R': "15:04", 'S': "05", 'T': "15:04:05", 'X': "15:04:05", 'y': "06",
	'Y': "2006",
}

// timeField formats one directive.
func timeField(directive byte, t time.Time) (string, bool) {
	if layout, ok := timeLayouts[directive]; ok {
		return t.Format(layout), true
	}
	year, week := t.ISOWeek()
	weekday := int(t.Weekday())
	padded := func(n, digits int) string {
		text := strconv.Itoa(n)
		return strings.Repeat("0", max(0, digits-len(text))) + text
	}
	switch directive {
	case 'f':
		return padded(t.Nanosecond()/1000, 6), true
	case 'G':
		return strconv.Itoa(year), true
	case 's':
		return strconv.FormatInt(t.Unix(), 10), true
	case 'u':
		return strconv.Itoa((weekday+6)%7 + 1), true
	case 'U':
		return padded((t.YearDay()+6-weekday)/7, 2), true
	case 'V':
		return padded(week, 2), true
	case 'w':
		return strconv.Itoa(weekday), true
	case 'W':
		return padded((t.YearDay()+6-(weekday+6)%7)/7, 2), true
	case 'z', 'Z':
		return "", true
	case '%':
		return "%", true
	}
	return "", false
}

package jinja

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// writeTime appends t in the format of C's strftime in the C locale, with the
// flags and widths of the GNU library, as Python's datetime.strftime has it
// for a time without a zone.
func writeTime(b *builder, format *Str, t time.Time) error {
	s := format.s
	for i := 0; i < len(s); {
		c := strings.IndexByte(s[i:], '%')
		if c < 0 {
			b.slice(format, i, len(s))
			return nil
		}
		b.slice(format, i, i+c)
		i += c
		b.in.step(16)
		text, n, err := timeField(b.in, s[i:], t)
		if err != nil {
			return err
		}
		b.write(text, format.origin(i) && format.origin(i+n-1))
		i += n
	}
	return nil
}

// timeField formats the directive at the start of s and returns its length.
func timeField(in *interp, s string, t time.Time) (string, int, error) {
	i := 1
	pad, upper, swap := byte(0), false, false
	for ; i < len(s); i++ {
		switch s[i] {
		case '-', '_', '0', '+':
			pad = s[i]
			continue
		case '^':
			upper = true
			continue
		case '#':
			swap = true
			continue
		}
		break
	}
	width := 0
	for ; i < len(s) && isDigitByte(s[i]); i++ {
		width = min(width*10+int(s[i]-'0'), 1<<31)
	}
	if i < len(s) && (s[i] == 'E' || s[i] == 'O') {
		i++
	}
	if i >= len(s) {
		return s, len(s), nil
	}
	_, n := utf8.DecodeRuneInString(s[i:])
	text, digits, ok := timeDirective(s[i:i+n], t)
	if !ok {
		return s[:i+n], i + n, nil
	}
	fill := byte(' ')
	if digits > 0 {
		fill = '0'
		if digits > 10 { // a field that is padded with spaces by default
			digits, fill = digits-10, ' '
		}
		if width == 0 {
			width = digits
		}
	}
	switch pad {
	case '-':
		width = 0
	case '_':
		fill = ' '
	case '0', '+':
		fill = '0'
	}
	switch {
	case upper:
		text = strings.ToUpper(text)
	case swap && s[i] == 'p':
		text = strings.ToLower(text)
	case swap:
		text = strings.ToUpper(text)
	}
	if more := width - len(text); more > 0 {
		in.grow(more)
		sign := ""
		if fill == '0' && strings.HasPrefix(text, "-") {
			sign, text = "-", text[1:]
		}
		text = sign + strings.Repeat(string(fill), more) + text
	}
	return text, i + n, nil
}

// timeDirective returns the text of one directive and, for a number, the
// digits it is padded to; 10 is added to those where the padding is spaces.
func timeDirective(d string, t time.Time) (text string, digits int, ok bool) {
	num := func(n, digits int) (string, int, bool) { return fmt.Sprint(n), digits, true }
	str := func(s string) (string, int, bool) { return s, 0, true }
	hour12 := (t.Hour()+11)%12 + 1
	switch d {
	case "a":
		return str(t.Format("Mon"))
	case "A":
		return str(t.Format("Monday"))
	case "b", "h":
		return str(t.Format("Jan"))
	case "B":
		return str(t.Format("January"))
	case "c":
		return str(t.Format("Mon Jan _2 15:04:05 ") + fmt.Sprint(t.Year()))
	case "C":
		return num(t.Year()/100, 2)
	case "d":
		return num(t.Day(), 2)
	case "D", "x":
		return str(t.Format("01/02/06"))
	case "e":
		return num(t.Day(), 12)
	case "f":
		return num(t.Nanosecond()/1000, 6)
	case "F":
		return str(fmt.Sprintf("%d-%02d-%02d", t.Year(), int(t.Month()), t.Day()))
	case "g":
		year, _ := t.ISOWeek()
		return num(year%100, 2)
	case "G":
		year, _ := t.ISOWeek()
		return num(year, 1)
	case "H":
		return num(t.Hour(), 2)
	case "I":
		return num(hour12, 2)
	case "j":
		return num(t.YearDay(), 3)
	case "k":
		return num(t.Hour(), 12)
	case "l":
		return num(hour12, 12)
	case "m":
		return num(int(t.Month()), 2)
	case "M":
		return num(t.Minute(), 2)
	case "n":
		return str("\n")
	case "p":
		return str(t.Format("PM"))
	case "P":
		return str(t.Format("pm"))
	case "r":
		return str(t.Format("03:04:05 PM"))
	case "R":
		return str(t.Format("15:04"))
	case "s":
		return num(int(t.Unix()), 1)
	case "S":
		return num(t.Second(), 2)
	case "t":
		return str("\t")
	case "T", "X":
		return str(t.Format("15:04:05"))
	case "u":
		return num((int(t.Weekday())+6)%7+1, 1)
	case "U":
		return num((t.YearDay()+6-int(t.Weekday()))/7, 2)
	case "V":
		_, week := t.ISOWeek()
		return num(week, 2)
	case "w":
		return num(int(t.Weekday()), 1)
	case "W":
		return num((t.YearDay()+6-(int(t.Weekday())+6)%7)/7, 2)
	case "y":
		return num(t.Year()%100, 2)
	case "Y":
		return num(t.Year(), 1)
	case "z", "Z":
		return str("")
	case "%":
		return str("%")
	}
	return "", 0, false
}

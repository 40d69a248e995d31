package load

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Lengths are a distribution of token counts.
type Lengths struct {
	text     string
	least    int
	most     int
	median   float64 // of a log-normal distribution, 0 for a uniform one
	logSigma float64
}

// maxLength is more tokens than any context holds.
const maxLength = 1 << 24

const lengthsWanted = "want a number, uniform:LEAST:MOST or lognormal:MEDIAN:SIGMA[:MOST]"

// ParseLengths parses a distribution: a number N; uniform:A:B for all numbers from A to B with
// equal probability; lognormal:MEDIAN:SIGMA, where SIGMA is that of the logarithm; or
// lognormal:MEDIAN:SIGMA:MOST, where numbers above MOST are drawn again.
func ParseLengths(s string) (Lengths, error) {
	l := Lengths{text: s}
	var err error
	parts := strings.Split(s, ":")
	switch kind, n := parts[0], len(parts); {
	case n == 1:
		l.least, err = lengthOf(s)
		l.most = l.least
	case kind == "uniform" && n == 3:
		if l.least, err = lengthOf(parts[1]); err == nil {
			l.most, err = lengthOf(parts[2])
		}
		if err == nil && l.least > l.most {
			err = fmt.Errorf("%d is above %d", l.least, l.most)
		}
	case kind == "lognormal" && (n == 3 || n == 4):
		err = l.parseLogNormal(parts[1:])
	default:
		err = fmt.Errorf("it has %d parts", n)
	}
	if err != nil {
		return Lengths{}, fmt.Errorf("%.60q is no distribution of lengths, %w: %s", s, err, lengthsWanted)
	}
	return l, nil
}

func (l *Lengths) parseLogNormal(parts []string) error {
	median, err := lengthOf(parts[0])
	if err != nil {
		return err
	}
	l.least, l.most, l.median = 1, maxLength, float64(median)
	if l.logSigma, err = strconv.ParseFloat(parts[1], 64); err != nil || !(l.logSigma >= 0 && l.logSigma <= 10) {
		return fmt.Errorf("a sigma of %.20q is not between 0 and 10", parts[1])
	}
	if len(parts) > 2 {
		if l.most, err = lengthOf(parts[2]); err != nil {
			return err
		}
	}
	if l.most < median { // almost all would be drawn again
		return fmt.Errorf("the median %d is above %d", median, l.most)
	}
	return nil
}

func lengthOf(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > maxLength {
		return 0, fmt.Errorf("%.20q is not a number from 1 to %d", s, maxLength)
	}
	return n, nil
}

// UnmarshalText parses text as [ParseLengths] does.
func (l *Lengths) UnmarshalText(text []byte) (err error) {
	*l, err = ParseLengths(string(text))
	return err
}

// MarshalText returns the text that was parsed.
func (l Lengths) MarshalText() ([]byte, error) { return []byte(l.text), nil }

func (l Lengths) draw(r *rand.Rand) int {
	if l.median == 0 {
		return l.least + r.IntN(l.most-l.least+1)
	}
	for {
		v := math.Round(l.median * math.Exp(l.logSigma*r.NormFloat64()))
		if v <= float64(l.most) {
			return max(1, int(v))
		}
	}
}

package jsonschema

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// maxDecimalDigits is the largest number of digits of a number in a schema, written without an
// exponent.
const maxDecimalDigits = 400

// A decimal is an exact number: its digits, the last scale of which follow the point. The digits
// have no leading zeros, and no trailing zeros after the point. Zero has no digits and is not
// negative. Equal numbers are equal under ==.
type decimal struct {
	negative bool
	digits   string
	scale    int
}

// parseDecimal parses the text of a JSON number.
func parseDecimal(text string) (decimal, error) {
	mantissa, exponent, _ := strings.Cut(strings.ReplaceAll(text, "E", "e"), "e")
	shift := 0
	if exponent != "" {
		var err error
		if shift, err = strconv.Atoi(exponent); err != nil || shift > maxDecimalDigits || shift < -maxDecimalDigits {
			return decimal{}, fmt.Errorf("the exponent of %s is too large", clip(text))
		}
	}
	d := decimal{negative: strings.HasPrefix(mantissa, "-")}
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	d.digits, d.scale = whole+fraction, len(fraction)-shift
	d = d.normal()
	if len(d.digits) > maxDecimalDigits || d.scale > maxDecimalDigits {
		return decimal{}, fmt.Errorf("the number %s has more than %d digits", clip(text), maxDecimalDigits)
	}
	return d, nil
}

func (d decimal) normal() decimal {
	for d.scale < 0 {
		d.digits, d.scale = d.digits+strings.Repeat("0", -d.scale), 0
	}
	for d.scale > 0 && strings.HasSuffix(d.digits, "0") {
		d.digits, d.scale = d.digits[:len(d.digits)-1], d.scale-1
	}
	d.digits = strings.TrimLeft(d.digits, "0")
	if d.digits == "" {
		return decimal{}
	}
	return d
}

func (d decimal) isInteger() bool { return d.scale == 0 }

// parts returns the digits before and after the point; whole is "" if it is zero.
func (d decimal) parts() (whole, fraction string) {
	if len(d.digits) <= d.scale {
		return "", strings.Repeat("0", d.scale-len(d.digits)) + d.digits
	}
	cut := len(d.digits) - d.scale
	return d.digits[:cut], d.digits[cut:]
}

// String returns the shortest text without an exponent.
func (d decimal) String() string {
	whole, fraction := d.parts()
	if whole == "" {
		whole = "0"
	}
	if fraction != "" {
		whole += "." + fraction
	}
	if d.negative {
		whole = "-" + whole
	}
	return whole
}

// unscaled returns the number times 10^scale.
func (d decimal) unscaled(scale int) *big.Int {
	n := new(big.Int)
	if d.digits != "" {
		n.SetString(d.digits, 10)
	}
	if scale > d.scale {
		n.Mul(n, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(scale-d.scale)), nil))
	}
	if d.negative {
		n.Neg(n)
	}
	return n
}

func (d decimal) compare(e decimal) int {
	scale := max(d.scale, e.scale)
	return d.unscaled(scale).Cmp(e.unscaled(scale))
}

// multipleOf reports whether d is an integer multiple of m, which must not be zero.
func (d decimal) multipleOf(m decimal) bool {
	scale := max(d.scale, m.scale)
	return new(big.Int).Rem(d.unscaled(scale), m.unscaled(scale)).Sign() == 0
}

// clip shortens a text for a message.
func clip(text string) string {
	if len(text) > 40 {
		return text[:40] + "..."
	}
	return text
}

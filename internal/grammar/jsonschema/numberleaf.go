package jsonschema

import (
	"cmp"
	"fmt"
	"math/big"
	"strings"
	"sync"

	"github.com/realizar/realizar/internal/rx"
)

const (
	wholeDigits    = 64 // of a number, before the point
	fractionDigits = 32 // of a number, after the point
	exponentDigits = 3

	// The largest multipleOf, in units of its last digit. Each remainder is a state.
	maxModulus = 10_000
	// How many states alive visits to find those from which a number can be completed.
	maxNumberStates = 200_000
)

// A numberMachine reads JSON numbers and accepts those within a rule. It accepts an exponent only
// if the rule has nothing but bounds and one nonzero digit is before the point, as in 1.5e-7.
type numberMachine struct {
	rule     numberRule
	key      string
	min, max bound
	pointed  bool // a fraction may be written, even if only zeros are valid
	powers   bool // exponents may be written
	modulus  int64
	scale    int // digits of multipleOf after the point
	whole    int // most digits before the point

	mu    sync.Mutex
	fates map[numberState]bool // whether an accepting state is reachable
	full  bool
}

// A bound is the magnitude of minimum or maximum.
type bound struct {
	on              bool
	whole, fraction string
	digits          string // without leading zeros
	power           int    // exponent of ten of the first digit
}

func (b *bound) set(d *decimal) {
	if d != nil {
		b.on = true
		b.whole, b.fraction = d.parts()
		b.digits, b.power = d.digits, len(d.digits)-d.scale-1
	}
}

type numberPhase uint8

const (
	numberStart numberPhase = iota
	numberMinus
	numberZero     // "0"
	numberWhole    // digits, the first not 0
	numberPoint    // the point, before any digit after it
	numberFraction // digits after the point
	numberE        // the e, before any digit after it
	numberSign     // the sign after the e
	numberPower    // digits of the exponent
)

// A numberState is the state after some bytes.
type numberState struct {
	phase     numberPhase
	negative  bool
	nonzero   bool
	digits    uint8 // number of digits in this phase
	min, max  int8  // order of the magnitude so far relative to the bound's: -1, 0 or 1
	remainder int32

	// If single, one digit is before the point and an exponent may follow. minDigits and maxDigits
	// are the order of the digits relative to those of the bounds. The rest describes the exponent.
	single               bool
	minDigits, maxDigits int8
	power                int16
	powerDigits          uint8
	powerNegative        bool
}

// A numberLeaf is a state of a machine as an rx.Leaf.
type numberLeaf struct {
	machine *numberMachine
	state   numberState
}

// newNumberMachine returns the machine for a rule. It fails if the rule has too many digits.
func newNumberMachine(rule numberRule, pointed bool) (*numberMachine, error) {
	m := &numberMachine{rule: rule, key: rule.key() + fmt.Sprint(pointed), pointed: pointed, whole: wholeDigits, fates: map[numberState]bool{}}
	m.min.set(rule.min)
	m.max.set(rule.max)
	m.powers = pointed && !rule.integer && rule.multipleOf == nil
	for _, b := range []bound{m.min, m.max} {
		if len(b.fraction) > fractionDigits || len(b.whole) > wholeDigits {
			return nil, fmt.Errorf("a bound has more than %d digits before the point or %d after it", wholeDigits, fractionDigits)
		}
	}
	if d := rule.multipleOf; d != nil {
		n := d.unscaled(d.scale)
		if n.Cmp(big.NewInt(maxModulus)) > 0 || d.scale > fractionDigits {
			return nil, fmt.Errorf("multipleOf %s has more than four digits", clip(d.String()))
		}
		m.modulus, m.scale = n.Int64(), d.scale
	}
	return m, nil
}

// expr returns the numbers that m accepts.
func (m *numberMachine) expr(space *rx.Space) rx.Expr {
	start := numberState{}
	if !m.alive(start) {
		return rx.Nothing
	}
	return space.Leaf(numberLeaf{m, start})
}

func (l numberLeaf) Next(b byte) rx.Leaf {
	s, ok := l.machine.step(l.state, b)
	if !ok || !l.machine.alive(s) {
		return nil
	}
	return numberLeaf{l.machine, s}
}

// Key returns the same text for leaves that accept the same bytes.
func (l numberLeaf) Key() string { return fmt.Sprint(l.machine.key, l.state) }

func (l numberLeaf) Accepts() bool { return l.machine.accepts(l.state) }

// step reads one byte. It reports whether the bytes so far are a prefix of a number.
func (m *numberMachine) step(s numberState, b byte) (numberState, bool) {
	switch {
	case b == '-' && s.phase < numberE:
		if s.phase != numberStart || m.rule.min != nil && !m.rule.min.negative && m.rule.min.digits != "" {
			return s, false
		}
		s.phase, s.negative = numberMinus, true
		return s, true
	case b == '.':
		if s.phase != numberZero && s.phase != numberWhole || !m.pointed {
			return s, false
		}
		s.min = endWhole(&m.min, s, s.min)
		s.max = endWhole(&m.max, s, s.max)
		s.phase, s.digits = numberPoint, 0
		return s, true
	case b == 'e' || b == 'E' || b == '+' || s.phase >= numberE:
		return m.exponent(s, b)
	case b < '0' || b > '9':
		return s, false
	}
	if b != '0' {
		s.nonzero = true
	}
	switch s.phase {
	case numberStart, numberMinus:
		if b == '0' {
			s.phase = numberZero
			return s, true
		}
		s.phase = numberWhole
	case numberZero:
		return s, false
	case numberPoint:
		s.phase = numberFraction
	}
	if s.phase == numberWhole {
		return m.wholeDigit(s, b)
	}
	return m.fractionDigit(s, b)
}

func (m *numberMachine) wholeDigit(s numberState, b byte) (numberState, bool) {
	if int(s.digits) == m.whole {
		return s, false
	}
	s.min = order(m.min.whole, s, s.min, b)
	s.max = order(m.max.whole, s, s.max, b)
	s.single, s.minDigits, s.maxDigits = false, 0, 0
	if m.powers && s.digits == 0 {
		s.single = true
		s.minDigits = digitOrder(m.min.digits, 0, 0, b)
		s.maxDigits = digitOrder(m.max.digits, 0, 0, b)
	}
	s.digits++
	if m.modulus > 0 {
		s.remainder = int32((int64(s.remainder)*10 + int64(b-'0')) % m.modulus)
	}
	return s, true
}

func (m *numberMachine) fractionDigit(s numberState, b byte) (numberState, bool) {
	if int(s.digits) == fractionDigits {
		return s, false
	}
	if b != '0' && m.rule.integer || b != '0' && m.modulus > 0 && int(s.digits) >= m.scale {
		return s, false
	}
	s.min = order(m.min.fraction, s, s.min, b)
	s.max = order(m.max.fraction, s, s.max, b)
	if s.single {
		s.minDigits = digitOrder(m.min.digits, int(s.digits)+1, s.minDigits, b)
		s.maxDigits = digitOrder(m.max.digits, int(s.digits)+1, s.maxDigits, b)
	}
	if m.modulus > 0 && int(s.digits) < m.scale {
		s.remainder = int32((int64(s.remainder)*10 + int64(b-'0')) % m.modulus)
	}
	s.digits++
	return s, true
}

// order compares one more digit with that of a bound. so is the order so far.
func order(digits string, s numberState, so int8, b byte) int8 {
	if so != 0 {
		return so
	}
	have := byte('0')
	if int(s.digits) < len(digits) {
		have = digits[s.digits]
	} else if s.phase == numberWhole {
		return 0 // the number of digits decides
	}
	switch {
	case b < have:
		return -1
	case b > have:
		return 1
	}
	return 0
}

// endWhole returns the order of a number relative to a bound once its digits before the point are
// complete.
func endWhole(b *bound, s numberState, so int8) int8 {
	n := int(s.digits)
	if s.phase == numberZero {
		n = 0
	}
	switch {
	case n < len(b.whole):
		return -1
	case n > len(b.whole):
		return 1
	}
	return so
}

// beside returns the order of a complete number relative to a bound: negative, 0 or positive.
func beside(b *bound, d *decimal, s numberState, so, digits int8) int {
	if s.phase == numberPower {
		power := int(s.power)
		if s.powerNegative {
			power = -power
		}
		so = int8(cmp.Compare(power, b.power))
		if so == 0 {
			so = digits
		}
	} else if s.phase != numberFraction {
		so = endWhole(b, s, so)
		s.digits = 0
	}
	if rest := min(int(s.digits), len(b.fraction)); s.phase != numberPower && so == 0 && strings.Trim(b.fraction[rest:], "0") != "" {
		so = -1
	}
	sign := func(nonzero, negative bool) int {
		switch {
		case !nonzero:
			return 0
		case negative:
			return -1
		}
		return 1
	}
	mine, its := sign(s.nonzero, s.negative), sign(d.digits != "", d.negative)
	if mine != its {
		return mine - its
	}
	return mine * int(so)
}

// accepts reports whether the bytes read are a number within the rule.
func (m *numberMachine) accepts(s numberState) bool {
	if s.phase != numberZero && s.phase != numberWhole && s.phase != numberFraction && s.phase != numberPower {
		return false
	}
	if m.min.on {
		if o := beside(&m.min, m.rule.min, s, s.min, s.minDigits); o < 0 || o == 0 && m.rule.exclusiveMin {
			return false
		}
	}
	if m.max.on {
		if o := beside(&m.max, m.rule.max, s, s.max, s.maxDigits); o > 0 || o == 0 && m.rule.exclusiveMax {
			return false
		}
	}
	if m.modulus > 0 {
		r := int64(s.remainder)
		read := 0
		if s.phase == numberFraction {
			read = int(s.digits)
		}
		for ; read < m.scale; read++ {
			r = r * 10 % m.modulus
		}
		return r == 0
	}
	return true
}

// alive reports whether a number within the rule can be completed from state s.
func (m *numberMachine) alive(s numberState) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if fate, ok := m.fates[s]; ok {
		return fate
	}
	// Breadth-first search until a state accepts or is known to lead to one that does.
	type link struct {
		state numberState
		from  int
	}
	queue := []link{{s, -1}}
	seen := map[numberState]bool{s: true}
	for i := 0; i < len(queue); i++ {
		at := queue[i].state
		fate, known := m.fates[at]
		if known && fate || m.accepts(at) {
			for j := i; j >= 0; j = queue[j].from {
				m.fates[queue[j].state] = true
			}
			return true
		}
		if known {
			continue
		}
		if len(queue)+len(m.fates) > maxNumberStates {
			m.full = true
			return false
		}
		for _, b := range []byte("0123456789.-e+") {
			if next, ok := m.step(at, b); ok && !seen[next] {
				seen[next] = true
				queue = append(queue, link{next, i})
			}
		}
	}
	for _, dead := range queue {
		m.fates[dead.state] = false
	}
	return false
}

// overflows reports whether m had too many states to decide which are alive.
func (m *numberMachine) overflows() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.full
}

package engine

import "time"

// gap is the default of [Config.Gap].
const gap = 100 * time.Millisecond

// A pace is how fast prompts are read, which says how much of them goes into steps
// that others wait for.
type pace struct {
	gap  time.Duration
	each float64   // seconds that a token of a prompt takes, 0: not known
	last time.Time // when the last step was done
}

// tokens is how many tokens of prompts go into a step that has room for so many.
func (p *pace) tokens(room int, active []*sequence) int {
	if p.each == 0 {
		return room
	}
	n := int(min(p.gap.Seconds()/p.each, float64(room))) / pageTokens * pageTokens
	if n >= room {
		return room
	}
	for _, s := range active {
		if s.placed && s.run.Tokens > 0 && len(s.tokens)-s.sent <= 1 {
			return min(room, max(n, pageTokens))
		}
	}
	return room
}

// took notes how long f took.
func (p *pace) took(f *flight, now time.Time) {
	begun := f.begun
	if p.last.After(begun) {
		begun = p.last
	}
	p.last = now
	if f.prompt < pageTokens {
		return
	}
	each := now.Sub(begun).Seconds() / float64(f.prompt)
	if p.each > 0 {
		each = (3*p.each + each) / 4
	}
	p.each = each
}

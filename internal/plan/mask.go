package plan

import "fmt"

// MaskWords returns the number of 32-bit words of a mask of the program's vocabulary.
func (p *Program) MaskWords() int { return (int(p.Shapes[p.Logits][1]) + 31) / 32 }

// MaskBytes returns the size of a table of masks in bytes.
func (l *Limits) MaskBytes(p *Program) int { return 4 * p.MaskWords() * l.Masks }

// ValidateMask checks the arguments of [Executable.SetMask].
func (l *Limits) ValidateMask(p *Program, id int32, words []uint32) error {
	switch {
	case id < 1 || int(id) > l.Masks:
		return fmt.Errorf("plan: mask %d; want 1 to %d", id, l.Masks)
	case len(words) != p.MaskWords():
		return fmt.Errorf("plan: a mask of %d words; want %d for a vocabulary of %d", len(words), p.MaskWords(), p.Shapes[p.Logits][1])
	}
	return nil
}

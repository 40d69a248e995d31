package cuda

import (
	"github.com/realizar/realizar/internal/cuda/device"
	"github.com/realizar/realizar/internal/cuda/driver"
	"github.com/realizar/realizar/internal/cuda/lower"
)

// chooseFrequencies writes which set of a rope's frequencies each token uses.
func (s *step) chooseFrequencies(rope int, sets []int32) {
	b, a := s.Batch, &s.e.room.Ropes[rope]
	for q := range b.Seqs() {
		for t := int(b.Start[q]); t < int(b.Start[q+1]); t++ {
			switch {
			case !a.ByLength() || b.Length(q, t) <= a.LongFrom:
				sets[t] = 0
			case a.Dynamic != nil:
				sets[t] = int32(2 + t)
			default:
				sets[t] = 1
			}
		}
	}
}

// dynamicFrequencies copies the frequencies of tokens that depend on the length of their sequence.
func (s *step) dynamicFrequencies() error {
	e, b := s.e, s.Batch
	for i := range e.room.Ropes {
		a := &e.room.Ropes[i]
		if a.Dynamic == nil {
			continue
		}
		pairs := a.Dims / 2
		if err := s.grow(&s.freqs[i], 8*pairs*e.lim.Tokens); err != nil {
			return err
		}
		values, space := device.Words[float64](s.freqs[i]), make([]float64, 0, pairs)
		for q := range b.Seqs() {
			for t := int(b.Start[q]); t < int(b.Start[q+1]); t++ {
				copy(values[t*pairs:], a.Frequencies(space, b.Length(q, t)))
			}
		}
		to := e.scratchAt + driver.DevicePtr(e.room.Freqs[i]+8*2*pairs)
		if err := e.stream.CopyToDevice(to, s.freqs[i][:8*pairs*len(b.Tokens)]); err != nil {
			return err
		}
	}
	return nil
}

// setConstants writes what no step changes: the constant frequencies, and the columns of spreads.
func (e *executable) setConstants(at driver.DevicePtr, r *lower.Room) error {
	for _, s := range r.Spreads {
		columns := s.Columns()
		all := make([]byte, 4*len(columns))
		copy(device.Words[int32](all), columns)
		if err := e.b.Main.CopyToDevice(at+driver.DevicePtr(s.At), all); err != nil {
			return err
		}
	}
	for i := range r.Ropes {
		a := &r.Ropes[i]
		all := make([]byte, 8*2*len(a.Freqs))
		copy(device.Words[float64](all), a.Freqs)
		copy(device.Words[float64](all)[len(a.Freqs):], a.LongFreqs)
		if err := e.b.Main.CopyToDevice(at+driver.DevicePtr(r.Freqs[i]), all); err != nil {
			return err
		}
	}
	return nil
}
